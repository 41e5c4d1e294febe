"""The cells of today's TCP compared with ns-3: congestion control by loss on a long path, with the settings of both sides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.peers import ns3
from tests.peers.agreement import Excuse
from tests.peers.estimate import Estimate
from tests.peers.ns2 import Setting

TOLERANCE = 0.05
RECORD = Path(__file__).with_name("ns3_modern.json")

NS3_NAMES = {"reno": "TcpNewReno", "cubic": "TcpCubic", "hybla": "TcpHybla", "bbr": "TcpBbr"}
# Of ns-3's two Renos, the one that counts acknowledged segments: `TcpNewReno` counts acknowledgements.
NS3_COUNTS_BYTES = {"reno": "TcpLinuxReno", "cubic": "TcpCubic"}
LOSSES = (0.0, 1e-4, 1e-3, 1e-2)

DELAY_S = 0.25
WARMUP_S = 100.0
ACK_INTERVAL_S = 0.1
DELAYED = {"byte_counting": True, "delayed_ack_timeout_s": ACK_INTERVAL_S}
HEADER_BYTES = 40
# More than any of the windows, so that neither side's buffers limit the sender.
WINDOW_SEGMENTS = 4000


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck: the bandwidth-delay product is where slow start ends, half of it is the queue.

    A longer queue would bring the round trip of a full path to the minimum of the retransmission timer: milliseconds would
    then decide whether a recovery outlasts the timer.
    """

    rate_bps: float
    wire_bytes: int

    @property
    def product_segments(self) -> int:
        """Bandwidth-delay product, in packets on the wire."""
        return round(self.rate_bps * 2 * DELAY_S / (8 * self.wire_bytes))

    @property
    def queue_packets(self) -> int:
        return self.product_segments // 2


PATHS = {"10m": Bottleneck(10e6, 1500), "1m": Bottleneck(1e6, 1000)}

# Simulated seconds of a run of ns-3: long enough for many losses, short enough that twenty runs are a matter of a minute.
DURATION_S = {
    ("reno", 1e-4): 600.0,
    ("cubic", 1e-4): 600.0,
    ("hybla", 1e-4): 500.0,
    ("reno", 1e-3): 1100.0,
    ("cubic", 1e-3): 1100.0,
    ("hybla", 1e-3): 500.0,
    ("reno", 1e-2): 3000.0,
    ("cubic", 1e-2): 3000.0,
    ("hybla", 1e-2): 1000.0,
    **{("bbr", loss): 300.0 for loss in LOSSES},
}


@dataclass(frozen=True)
class ModernCell:
    """One bulk flow with selective acknowledgements, independent losses on the way out.

    Every segment is acknowledged, or every second one; then both sides count bytes, not acknowledgements.
    """

    path: str
    control: str
    loss: float
    delayed_ack: bool = False

    @property
    def name(self) -> str:
        return f"{self.path}-{self.control}-{self.loss:.0e}{'-delayed' if self.delayed_ack else ''}"

    @property
    def duration_s(self) -> float:
        return 2000.0 if self.path == "1m" else DURATION_S.get((self.control, self.loss), 400.0)

    @property
    def is_deterministic(self) -> bool:
        """Whether all runs are alike: nothing is lost at random, and only BBR draws numbers of its own."""
        return self.loss == 0 and self.control != "bbr"

    def ns3(self, *, corrected: bool = True) -> dict[str, Setting]:
        """Settings of `dumbbell.cc`."""
        path = PATHS[self.path]
        return {
            "variant": (NS3_COUNTS_BYTES if self.delayed_ack else NS3_NAMES)[self.control],
            "corrected": int(corrected),
            "rate_bps": path.rate_bps,
            "delay_s": DELAY_S,
            "wire_bytes": path.wire_bytes,
            "queue_packets": path.queue_packets,
            "initial_ssthresh": path.product_segments,
            "initial_window": 10,
            "window": WINDOW_SEGMENTS,
            "loss": self.loss,
            "sack": 1,
            "delayed_ack": int(self.delayed_ack),
            **({"ack_interval_s": ACK_INTERVAL_S} if self.delayed_ack else {}),
            "hystart": 0,
            "reference_rtt_s": 0.025,
            "min_rto_s": 1,
            "warmup_s": WARMUP_S,
            "duration_s": self.duration_s,
        }

    def scenario(self, transport: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """farlink's scenario; `transport` replaces single keys of its transport."""
        path = PATHS[self.path]
        return {
            "title": f"peer comparison, {self.name}",
            "duration_s": self.duration_s,
            "engines": ["packet"],
            "measure": {"warmup_s": WARMUP_S},
            "link": {
                "rate_bps": path.rate_bps,
                "delay_s": DELAY_S,
                "queue_packets": path.queue_packets,
                "channel": {"kind": "loss", "loss": self.loss},
                "return": {"queue_packets": 1_000_000, "channel": {"kind": "none"}},
            },
            "transport": {
                "tcp": {
                    "kind": "tcp",
                    "variant": "sack",
                    "congestion_control": self.control,
                    "segment_bytes": path.wire_bytes - HEADER_BYTES,
                    "header_bytes": HEADER_BYTES,
                    "initial_window_segments": 10,
                    # BBR has none.
                    **({} if self.control == "bbr" else {"initial_ssthresh_segments": path.product_segments}),
                    "max_window_segments": WINDOW_SEGMENTS,
                    "delayed_ack": self.delayed_ack,
                    **(DELAYED if self.delayed_ack else {}),
                    "rto": {"initial_s": 3.0, "minimum_s": 1.0, "maximum_s": 60.0, "granularity_s": 0.001},
                    **(transport or {}),
                }
            },
            "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
        }


MODERN_CELLS = (
    *(ModernCell("10m", control, loss) for control in NS3_NAMES for loss in LOSSES),
    *(ModernCell("1m", control, loss) for control in ("cubic", "bbr") for loss in (1e-3, 1e-2)),
    *(ModernCell("10m", control, loss, delayed_ack=True) for control in NS3_COUNTS_BYTES for loss in LOSSES),
)

# Cheap on both sides: seconds of ns-3.
QUICK_CELLS = tuple(
    cell
    for cell in MODERN_CELLS
    if cell.name
    in (
        "10m-reno-1e-02",
        "10m-cubic-1e-02",
        "10m-hybla-1e-02",
        "1m-cubic-1e-02",
        "1m-bbr-1e-02",
        "10m-reno-1e-02-delayed",
        "10m-cubic-1e-02-delayed",
    )
)

EXCUSED: dict[str, Excuse] = {}
"""Cell name -> excuse. At most a tenth of the cells."""

SHIPPED_DIFFERS = ("10m-reno-1e-02", "10m-cubic-1e-02", "10m-hybla-1e-02", "10m-bbr-1e-02", "10m-reno-1e-02-delayed")
"""Cells that show what each correction of ns-3 is for."""


@dataclass(frozen=True)
class Recorded:
    """A result of ns-3, and its settings."""

    settings: Mapping[str, Setting]
    estimate: Estimate


def recorded() -> dict[str, Recorded]:
    """Results of ns-3 that are kept with the tests, by cell; `-shipped` follows the name of one without corrections."""
    entries = json.loads(RECORD.read_text())["cells"] if RECORD.exists() else {}
    return {
        name: Recorded(entry["settings"], Estimate(entry["mean"], entry["half_width"], entry["runs"]))
        for name, entry in entries.items()
    }


def write_record(cells: Mapping[str, Recorded]) -> None:
    """Keep results of ns-3, so that a comparison does not need it."""
    entries = {name: {"settings": dict(cell.settings), **asdict(cell.estimate)} for name, cell in cells.items()}
    RECORD.write_text(json.dumps({"ns-3": "3.37", "cells": entries}, indent=1) + "\n")


def farlink_goodput(cell: ModernCell, *, relative: float) -> Estimate:
    """farlink's goodput; two runs where all are alike."""
    from tests.peers import farlink_side

    if cell.is_deterministic:
        return farlink_side.goodput(cell.scenario(), batch=2, max_runs=2)
    return farlink_side.goodput(cell.scenario(), relative=relative, max_runs=2000)


def ns3_settings(cell: ModernCell) -> dict[str, Setting]:
    """Settings of ns-3, with those that an excuse asks for."""
    return EXCUSED[cell.name].apply(cell.ns3()) if cell.name in EXCUSED else cell.ns3()


def ns3_goodput(program: Path, cell: ModernCell, *, relative: float) -> Estimate:
    """ns-3's goodput; two runs where all are alike."""
    if cell.is_deterministic:
        return ns3.goodput(program, ns3_settings(cell), batch=2, max_runs=2)
    return ns3.goodput(program, ns3_settings(cell), relative=relative)
