"""One transfer over the path of `pathapati`, in ns-3 and in farlink: 10 s one way, 5 Mb/s, bit errors both ways.

Results of ns-3 are kept in `python/farlink/papers/pathapati/ns3.json`.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers import ns3
from tests.peers.estimate import Estimate, estimate
from tests.peers.ns2 import Setting

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "benches" / "ns3" / "telemetry.cc"
RECORD = ROOT / "python" / "farlink" / "papers" / "pathapati" / "ns3.json"

BERS = (0.0, 1e-6, 1e-5, 3.5e-5, 5e-5, 1e-4)
SIZES = (1_000_000, 10_000_000)
RUNS = 20
# Compared with farlink, at 1 MB: narrower intervals.
CLOSE_RUNS = 60
OFFERED_BPS = 4.416e6
MESSAGE_BYTES = 1472
TOLERANCE = 0.05

# A full packet is 1500 bytes, to which ns-3 adds 2 of PPP; timestamps take 12 of TCP's.
SEGMENT_BYTES = 1448
HEADER_BYTES = {"tcp": 42, "udp": 30}

# Settings that suit ns-3's TCP to a round trip of 20 s, where its own timers and retries end most connections.
TIMERS: dict[str, Setting] = {"syn_timeout_s": 45, "initial_rtt_s": 20, "min_rto_s": 30, "duration_s": 1e7}
# BBR slows down to four segments whenever no shorter round trip was seen for this long, so on this path always with the 10 s
# that both sides have unless told otherwise.
BBR_RTT_WINDOW_S = 1e4

TRANSPORTS: dict[str, dict[str, Setting]] = {
    "newreno": {"transport": "TcpNewReno", **TIMERS},
    "cubic": {"transport": "TcpCubic", **TIMERS},
    "bbr": {"transport": "TcpBbr", **TIMERS},
    "udp": {"transport": "Udp", "duration_s": 1e7},
    "newreno-corrected": {"transport": "TcpNewReno", "timeouts_corrected": 1, **TIMERS},
    "cubic-corrected": {"transport": "TcpCubic", "timeouts_corrected": 1, **TIMERS},
    "bbr-corrected": {"transport": "TcpBbr", "timeouts_corrected": 1, "bbr_rtt_window_s": BBR_RTT_WINDOW_S, **TIMERS},
}

FIGURES = (
    "completion_s",
    "delivered_bytes",
    "arrival_delay_mean_s",
    "delay_mean_s",
    "sent_arrival_delay_mean_s",
    "sent_delay_mean_s",
    "sent_bytes",
    "retransmitted_bytes",
    "forward_bytes",
    "forward_packets",
    "return_bytes",
    "return_packets",
)

STOCK_SEGMENTS = (536, SEGMENT_BYTES)
STOCK_BERS = (0.0, 1e-5, 1e-4)

# farlink's TCP as its counterpart in ns-3 is.
RTO = {"initial_s": 45.0, "minimum_s": 30.0, "maximum_s": 60.0, "forget_above_backoff": "never"}
CONTROLS: dict[str, dict[str, Any]] = {
    "newreno": {"congestion_control": "reno"},
    # ns-3.37 has no Reno-friendly region. HyStart stays on: with it farlink's slow start counts what is acknowledged, as ns-3's
    # CUBIC always does, and not acknowledgements.
    "cubic": {"congestion_control": "cubic", "cubic": {"reno_friendly": False}},
    "bbr": {"congestion_control": "bbr", "bbr": {"min_rtt_window_s": BBR_RTT_WINDOW_S}},
}


@dataclass(frozen=True)
class TelemetryCell:
    """A transport, a bit error rate and the length of the file."""

    transport: str
    ber: float
    file_bytes: int = SIZES[0]

    @property
    def name(self) -> str:
        return f"{self.transport}-{self.ber:.1e}-{self.file_bytes / 1e6:.0f}MB"

    @property
    def runs(self) -> int:
        """Runs in ns-3."""
        is_compared = self.transport.endswith("corrected") or self.transport == "udp"
        return CLOSE_RUNS if is_compared and self.file_bytes == SIZES[0] else RUNS

    def ns3(self) -> dict[str, Setting]:
        """Settings of `telemetry.cc`."""
        return {**TRANSPORTS[self.transport], "ber": self.ber, "bytes": self.file_bytes}

    def scenario(self) -> dict[str, Any]:
        """farlink's scenario."""
        network = {"rate_bps": 10e9, "delay_s": 0}
        channel = {"kind": "ber", "ber": self.ber}
        return {
            "title": f"peer comparison, {self.name}",
            "duration_s": 100 if self.transport == "udp" else 9e6,
            "engines": ["packet"],
            "path": ["near", "radio", "far"],
            "hop": {
                "near": network,
                "radio": {"rate_bps": 5e6, "delay_s": 10, "channel": channel, "return": {"channel": channel}},
                "far": network,
            },
            "transport": {"carrier": self._transport()},
            "flow": {
                "file": {
                    "transport": "carrier",
                    "traffic": {
                        "kind": "cbr",
                        "rate_bps": OFFERED_BPS,
                        "payload_bytes": MESSAGE_BYTES,
                        "bytes": self.file_bytes,
                    },
                }
            },
        }

    def _transport(self) -> dict[str, Any]:
        if self.transport == "udp":
            return {"kind": "udp", "header_bytes": HEADER_BYTES["udp"], "segment_bytes": MESSAGE_BYTES}
        return {
            "kind": "tcp",
            "variant": "sack",
            "segment_bytes": SEGMENT_BYTES,
            "header_bytes": HEADER_BYTES["tcp"],
            "timestamps": True,
            "fin": False,
            "rto": RTO,
            **CONTROLS[self.transport.removesuffix("-corrected")],
        }


ALL = tuple(TelemetryCell(transport, ber, size) for size in SIZES for transport in TRANSPORTS for ber in BERS)

# Compared with farlink. BBR's differ: `docs/validation/peers.md` says how and why.
COMPARED = tuple(cell for cell in ALL if cell.runs == CLOSE_RUNS and not cell.transport.startswith("bbr"))

# Here windows are wide when a recovery begins, and at partial acknowledgements ns-3 retransmits segments again: four times the
# retransmitted bytes in the same time.
REPEATS_DIFFER = TelemetryCell("cubic-corrected", 1e-6)


def build(folder: Path) -> Path:
    """Compile the program into `folder` and return its path."""
    return ns3.build(folder, SOURCE)


def run_ns3(program: Path, settings: Mapping[str, Setting], runs: Iterable[int]) -> list[dict[str, Any]]:
    """Output of the program, for each run."""

    def run_once(run: int) -> dict[str, Any]:
        command = [str(program), *(f"--{key}={value}" for key, value in settings.items()), f"--run={run}"]
        figures: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return figures

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run_once, runs))


def measure(program: Path, cell: TelemetryCell) -> dict[str, Any]:
    """A cell's entry in the record."""
    runs = run_ns3(program, cell.ns3(), range(1, cell.runs + 1))
    columns = {name: [run[name] for run in runs] for name in FIGURES}
    columns["goodput_bps"] = [8 * run["delivered_bytes"] / run["completion_s"] for run in runs]
    figures = {name: estimate(values) for name, values in columns.items() if None not in values}
    return {
        "transport": cell.transport,
        "ber": cell.ber,
        "file_bytes": cell.file_bytes,
        "runs": cell.runs,
        "settings": cell.ns3(),
        "figures": {name: [_short(value.mean), _short(value.half_width)] for name, value in figures.items()},
        "by": _progress([run["by"] for run in runs]),
    }


def measure_stock(program: Path, segment_bytes: int, ber: float) -> dict[str, Any]:
    """An entry of the record: ns-3's own NewReno, which gives connections up."""
    settings: dict[str, Setting] = {
        "transport": "TcpNewReno",
        "stock": 1,
        "segment_bytes": segment_bytes,
        "ber": ber,
        "bytes": SIZES[0],
        "duration_s": 1e7,
    }
    runs = run_ns3(program, settings, range(1, RUNS + 1))
    given_up = sorted(run["ended_s"] for run in runs if run["ended"] != "complete")
    return {
        "segment_bytes": segment_bytes,
        "ber": ber,
        "file_bytes": SIZES[0],
        "runs": RUNS,
        "given_up": len(given_up),
        "given_up_at_s": [_short(at_s) for at_s in given_up],
        "reasons": sorted({run["ended"] for run in runs}),
        "delivered_bytes": [run["delivered_bytes"] for run in runs],
    }


def write_record(cells: Sequence[Mapping[str, Any]], stock: Sequence[Mapping[str, Any]], at_s: Sequence[float]) -> None:
    """Keep results of ns-3, a line for each."""
    lists = {
        name: "[\n  " + ",\n  ".join(json.dumps(entry) for entry in entries) + "\n ]"
        for name, entries in (("cells", cells), ("stock", stock))
    }
    parts = ['"ns-3": "3.37"', f'"at_s": {json.dumps(list(at_s))}', *(f'"{name}": {text}' for name, text in lists.items())]
    RECORD.write_text("{\n " + ",\n ".join(parts) + "\n}\n")


def record(program: Path) -> None:
    """Measure everything in ns-3 and keep it."""
    ((probe,), cells) = run_ns3(program, ALL[0].ns3(), [1]), []
    for cell in ALL:
        cells.append(measure(program, cell))
        print(cell.name, cells[-1]["figures"]["completion_s"], flush=True)
    stock = [measure_stock(program, segment, ber) for segment in STOCK_SEGMENTS for ber in STOCK_BERS]
    write_record(cells, stock, [entry["at_s"] for entry in probe["by"]])


def farlink_figures(cell: TelemetryCell, runs: int) -> dict[str, Estimate]:
    """farlink's side: time to the last byte, delivered and repeated bytes."""
    import farlink

    rows = farlink.run({**cell.scenario(), "runs": runs}).rows
    return {
        name: estimate([value for flow, value in zip(rows["flow"], rows[column], strict=True) if flow == "file"])
        for name, column in (
            ("completion_s", "duration_s"),
            ("delivered_bytes", "delivered_bytes"),
            ("retransmitted_bytes", "retransmitted_bytes"),
            ("sent_arrival_delay_mean_s", "arrival_delay_mean_s"),
            ("sent_delay_mean_s", "delay_mean_s"),
        )
    }


def _progress(runs: Sequence[Sequence[Mapping[str, float | None]]]) -> dict[str, list[float | None]]:
    """Means over the runs at each time limit; of a delay, over the runs in which something had arrived."""
    names = [name for name in runs[0][0] if name != "at_s"]
    columns: dict[str, list[float | None]] = {name: [] for name in names}
    for entries in zip(*runs, strict=True):
        for name in names:
            values = [entry[name] for entry in entries if entry[name] is not None]
            columns[name].append(_short(math.fsum(values) / len(values)) if values else None)
    return columns


def _short(value: float) -> float:
    return float(f"{value:.7g}")
