"""Speed and memory of farlink beside ns-2 and ns-3: the same scenarios, in turn, on the same core.

Usage:  python benches/peers.py [--repeats 5] [--quick] [--only CASE ...] [--resume]
        python benches/peers.py --page [FILE]

Prints Markdown tables; writes every run to `out/bench.json` as soon as it ends. `--resume` goes on from that file, if it is of
this commit and length. `--page` runs nothing: it computes the tables of docs/validation/speed.md from the file. A simulator
that is not installed leaves its columns empty.

The measure is data packets that the receivers delivered in order, per CPU second (user and system) of the whole process,
and the process's peak resident memory. Each simulator runs the scenario for as long as it takes to make
start-up negligible (seconds of CPU); the flows are in their steady state for nearly all of it. Runs alternate, so that a
slower or busier moment of the machine affects all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "benches" / "scenarios"
WORK = ROOT / "out" / "bench"
FARLINK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "run"
NS2_SCRIPT = ROOT / "tests" / "peers" / "ns2" / "dumbbell.tcl"
NS3_SOURCE = ROOT / "benches" / "ns3" / "dumbbell.cc"
NS3_LIBRARIES = ("applications", "internet", "traffic-control", "point-to-point", "network", "core")

NS2_VARIANTS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "Newreno", "sack": "Sack1", "rack": "Sack1"}
SIMULATORS = ("farlink", "ns-2", "ns-3")
HEADER_BYTES = 40

RESULTS = ROOT / "out" / "bench.json"
PAGE = ROOT / "docs" / "validation" / "speed.md"
TITLES = {
    "peers": "Beside ns-2 and ns-3",
    "users": "What users run, beside ns-2 where it has that",
    "flows": "farlink against the number of flows, 1.55 Mb/s and 270 ms each",
    "windows": "Against the window, 540 ms of round trip, a link that the window fills",
}

Scenario = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A scenario and how long each simulator runs it, in simulated seconds (farlink: as the file says).

    `transport` changes keys of the file's transport (None removes one), or replaces the transport if it names a kind. `ns2`
    changes settings of ns-2's script.
    """

    name: str
    file: str
    ns2_s: float | None = None
    ns3_s: float | None = None
    flows: int | None = None
    duration_s: float | None = None
    ber: float | None = None
    transport: Mapping[str, Any] = field(default_factory=dict)
    ns2: Mapping[str, Any] = field(default_factory=dict)

    def scenario(self, scale: float) -> Scenario:
        """The scenario farlink runs, with its duration multiplied by `scale`."""
        scenario = tomllib.loads((SCENARIOS / self.file).read_text())
        if self.flows:
            (flow,) = scenario["flow"].values()
            flow["count"] = self.flows
        if self.ber:
            scenario["link"]["channel"]["ber"] = self.ber
        (name,) = scenario["transport"]
        before = {} if "kind" in self.transport else scenario["transport"][name]
        keys = {**before, **self.transport}
        scenario["transport"][name] = {key: value for key, value in keys.items() if value is not None}
        scenario["duration_s"] = (self.duration_s or scenario["duration_s"]) * scale
        return scenario


SACK = {"variant": "sack"}
# ns-2 has no comparable CUBIC: its Sack1 runs instead.
CUBIC = {"variant": "sack", "congestion_control": "cubic"}

CASES = (
    Case("(i) 1 Mb/s, 250 ms, BER 1e-6", "geo-1m.toml", ns2_s=200_000, ns3_s=5_000),
    Case("(ii) 622 Mb/s, 10 ms, BER 1e-9", "optical-622m-1e-9.toml", ns2_s=200, ns3_s=8),
    Case("(ii) 622 Mb/s, 10 ms, BER 1e-7", "optical-622m-1e-7.toml", ns2_s=1_500, ns3_s=80),
    Case("(iii) 100 flows, 155 Mb/s, 270 ms", "shared-155m.toml", ns2_s=200, ns3_s=25),
    Case("(iii) with 1,000 flows", "shared-155m.toml", ns2_s=150, flows=1_000),
    Case("(iii) with 10,000 flows", "shared-155m.toml", flows=10_000),
    *(
        Case(f"{name}: {case}", file, ns2_s=ns2_s, transport=transport)
        for name, transport in (("SACK", SACK), ("CUBIC", CUBIC))
        for case, file, ns2_s in (
            ("(i)", "geo-1m.toml", 200_000),
            ("(ii) BER 1e-9", "optical-622m-1e-9.toml", 200),
            ("(ii) BER 1e-7", "optical-622m-1e-7.toml", 1_500),
            ("(iii) 100 flows", "shared-155m.toml", 200),
        )
    ),
)

# Typical use: a scenario's defaults, above all delayed ACKs, and the protocols of the guides. ns-2 runs its Sack1 with delayed
# ACKs, with timestamps where farlink has them, and for CUBIC its TCP/Linux. It has no BBR and none of the other protocols.
USED = {"variant": "sack", "delayed_ack": True}
RACK = {**USED, "variant": "rack", "timestamps": True}
WITH_TIMESTAMPS = {"tcp": "timestamps_ true"}
# Transport, ns-2's settings (None: ns-2 has no such protocol), and the factor by which farlink's runs are shorter than TCP's.
USED_TCP: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any] | None, float]] = {
    "delayed ACKs": (USED, {}, 1),
    "timestamps": ({**USED, "timestamps": True}, WITH_TIMESTAMPS, 0.4),
    "RACK": (RACK, WITH_TIMESTAMPS, 0.4),
    "RACK, CUBIC": ({**RACK, "congestion_control": "cubic"}, {"variant": "Linux", "control": "cubic"}, 0.4),
    "RACK, BBR": ({**RACK, "congestion_control": "bbr", "initial_ssthresh_segments": None}, None, 0.1),
}
USED_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "SCPS-TP": {"kind": "scps-tp", "segment_bytes": 960},
    "STP": {"kind": "stp", "segment_bytes": 960, "header_bytes": 40},
    "ARQ": {"kind": "arq", "mode": "selective-repeat", "segment_bytes": 960, "header_bytes": 40, "window_frames": 70},
    "AeroTP reliable": {"kind": "aerotp", "mode": "reliable", "packet_bytes": 960},
    "AeroTP quasi-reliable": {"kind": "aerotp", "mode": "quasi-reliable", "packet_bytes": 960, "rate_bps": 9.5e5},
}
USERS = (
    *(
        Case(
            f"{name}: {link}",
            file,
            ns2_s=None if ns2 is None else ns2_s,
            duration_s=seconds * share,
            transport=transport,
            ns2=ns2 or {},
        )
        for name, (transport, ns2, share) in USED_TCP.items()
        for link, file, ns2_s, seconds in (
            ("(i)", "geo-1m.toml", 100_000, 1_000_000),
            ("(ii) BER 1e-9", "optical-622m-1e-9.toml", 100, 1_000),
            ("(ii) BER 1e-7", "optical-622m-1e-7.toml", 500, 5_000),
        )
    ),
    *(
        Case(f"{name}: (i) BER {ber:.0e}", "geo-1m.toml", ber=ber, duration_s=seconds, transport=transport)
        for name, transport in USED_OTHERS.items()
        for ber, seconds in ((1e-8, 50_000), (1e-6, 50_000), (1e-5, 50_000))
    ),
)

# Every flow brings 1.55 Mb/s and its share of queue; fewer flows run for longer, so that start-up does not count.
SCALING_FLOWS = (1, 10, 100, 1_000, 10_000)
SCALING_FLOW_S = 60_000.0
SCALING_LEAST_S = 60.0

# One flow whose window fills a path of 540 ms: without loss against ns-3, and with half a segment lost in every round trip for
# any window, so that the cost of losses is the same and differences come from the window. Without congestion control, which
# would not allow such a window.
WINDOWS = (100, 2_000, 20_000)
WINDOW_PACKETS = 15e6
WINDOWS_NS3 = (100, 2_000)
WINDOW_PACKETS_NS3 = 2e5
LOSSES_PER_WINDOW = 0.5


def window_scenario(window: int, packets: float, losses: float) -> Scenario:
    """SACK over a link that `window` segments fill, with a duration to match; `losses` segments of each window are lost."""
    rate_bps, round_trip_s = window * 1500 * 8 / 0.54, 0.54
    return {
        "title": f"window of {window}, {losses} lost of each",
        "duration_s": packets / window * round_trip_s,
        "runs": 1,
        "link": {"rate_bps": rate_bps, "delay_s": 0.27, "channel": {"kind": "loss", "loss": losses / window}},
        "transport": {
            "sack": {
                "kind": "tcp",
                "variant": "sack",
                "congestion_control": "none",
                "segment_bytes": 1460,
                "initial_window_segments": 10,
                "max_window_segments": window,
                "delayed_ack": False,
            }
        },
        "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
    }


def scaling_scenario(flows: int, scale: float) -> Scenario:
    """`flows` flows at 1.55 Mb/s each: case (iii), grown or shrunk with its link and queue."""
    duration_s = max(SCALING_LEAST_S, SCALING_FLOW_S / flows)
    scenario = Case("", "shared-155m.toml", flows=flows, duration_s=duration_s).scenario(scale)
    share = flows / 100
    scenario["link"]["rate_bps"] *= share
    scenario["link"]["queue_packets"] = round(scenario["link"]["queue_packets"] * share)
    scenario["link"]["return"]["queue_packets"] *= max(1, round(share))
    return scenario


@dataclass(frozen=True)
class Run:
    """One process: packets delivered, CPU seconds and peak memory."""

    case: str
    simulator: str
    simulated_s: float
    packets: float
    cpu_s: float
    peak_mb: float
    repeat: int = 0

    @property
    def packets_per_cpu_s(self) -> float:
        return self.packets / self.cpu_s


def measure(command: list[str], count: Callable[[str], float]) -> tuple[float, float, float]:
    """Run `command`; give the packets that `count` reads from its output, CPU seconds and peak memory in MB.

    The peak is read while the process runs: the value of `wait4` starts at the size of the parent process.
    """
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, cwd=ROOT)
        status_file, peak_mb, ended = Path(f"/proc/{process.pid}/status"), 0.0, 0
        while not ended:
            time.sleep(0.02)
            for line in status_file.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak_mb = int(line.split()[1]) * 1024 / 1e6
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    return count(text), usage.ru_utime + usage.ru_stime, peak_mb


def toml_text(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """TOML of nested tables of numbers, strings, booleans and lists."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    text = "\n".join(lines) + "\n"
    return text + "".join(toml_text(value, (*path, key)) for key, value in table.items() if isinstance(value, Mapping))


def farlink_command(scenario: Scenario, name: str) -> list[str]:
    """farlink's benchmark program on one thread."""
    WORK.mkdir(parents=True, exist_ok=True)
    file = WORK / ("".join(c if c.isalnum() else "-" for c in name).strip("-") + ".toml")
    file.write_text(toml_text(scenario))
    return [str(FARLINK), str(file), "--runs", "1", "--single-thread"]


def run_farlink(scenario: Scenario, name: str) -> tuple[float, float, float]:
    """As `measure`; runs may be too short to watch, so the peak memory is the one that the program itself reports."""
    report: dict[str, float] = {}

    def read(output: str) -> float:
        report.update(json.loads(output))
        return report["delivered_packets"]

    packets, cpu_s, _ = measure(farlink_command(scenario, name), read)
    return packets, cpu_s, report["peak_rss_kib"] * 1024 / 1e6


def ns2_command(scenario: Scenario, duration_s: float, changes: Mapping[str, Any]) -> list[str]:
    """ns-2 with its default headers; every option not named here is its default."""
    (transport,) = scenario["transport"].values()
    (flow,) = scenario["flow"].values()
    link = scenario["link"]
    settings = {
        "variant": NS2_VARIANTS[transport["variant"]],
        "rate_bps": link["rate_bps"],
        "delay_s": link["delay_s"],
        "queue_packets": link.get("queue_packets", 10_000_000),
        "wire_bytes": transport["segment_bytes"] + HEADER_BYTES,
        "ber": link.get("channel", {}).get("ber", 0),
        "flows": flow.get("count", 1),
        "window": transport["max_window_segments"],
        "delayed_ack": int(transport["delayed_ack"]),
        "start_spread_s": flow.get("start_spread_s", 0),
        "duration_s": duration_s,
        **changes,
    }
    return ["ns", str(NS2_SCRIPT), *(str(word) for pair in settings.items() for word in pair)]


def ns3_command(scenario: Scenario, duration_s: float) -> list[str]:
    """ns-3's NewReno with its default, selective acknowledgements, which come nearest to the others' goodput."""
    (transport,) = scenario["transport"].values()
    (flow,) = scenario["flow"].values()
    link = scenario["link"]
    settings = {
        "variant": "TcpNewReno",
        "sack": 1,
        "rate_bps": link["rate_bps"],
        "delay_s": link["delay_s"],
        "queue_packets": link.get("queue_packets", 10_000_000),
        "wire_bytes": transport["segment_bytes"] + HEADER_BYTES,
        "ber": link.get("channel", {}).get("ber", 0),
        "flows": flow.get("count", 1),
        "window": transport["max_window_segments"],
        "initial_window": transport["initial_window_segments"],
        "delayed_ack": int(transport["delayed_ack"]),
        "start_spread_s": flow.get("start_spread_s", 0),
        "duration_s": duration_s,
    }
    return [str(WORK / "ns3-dumbbell"), *(f"--{key}={value}" for key, value in settings.items())]


def result_count(output: str) -> float:
    """Packets from the line  result DELIVERED ...  that both peers print."""
    (line,) = (line for line in output.splitlines() if line.startswith("result "))
    return float(line.split()[1])


def build_ns3() -> bool:
    """Compile the ns-3 program against the installed libraries; whether that was possible."""
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/ns3").is_dir():
        return False
    program = WORK / "ns3-dumbbell"
    changed = max(file.stat().st_mtime for file in NS3_SOURCE.parent.iterdir())
    if not program.exists() or program.stat().st_mtime < changed:
        WORK.mkdir(parents=True, exist_ok=True)
        libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
        subprocess.run([compiler, "-O2", "-std=c++17", "-o", str(program), str(NS3_SOURCE), *libraries], check=True)
    return True


def available() -> list[str]:
    """The simulators that can run here; says on stderr which cannot and what would help."""
    found = []
    for name, present, remedy in (
        ("farlink", FARLINK.exists(), "cargo build --release -p farlink-sim --features toml --example run"),
        ("ns-2", shutil.which("ns") is not None, "apt-get install ns2"),
        ("ns-3", build_ns3(), "apt-get install g++ libns3-dev"),
    ):
        if present:
            found.append(name)
        else:
            print(f"{name} is left out: it is not installed ({remedy})", file=sys.stderr)
    return found


def run_case(case: Case, simulator: str, scale: float) -> Run | None:
    """One run, or None where the case leaves this simulator out."""
    scenario = case.scenario(scale)
    simulated_s = {"farlink": scenario["duration_s"], "ns-2": case.ns2_s, "ns-3": case.ns3_s}[simulator]
    if simulated_s is None:
        return None
    if simulator == "farlink":
        measured = run_farlink(scenario, case.name)
    elif simulator == "ns-2":
        simulated_s *= scale
        measured = measure(ns2_command(scenario, simulated_s, case.ns2), result_count)
    else:
        simulated_s *= scale
        measured = measure(ns3_command(scenario, simulated_s), result_count)
    return Run(case.name, simulator, simulated_s, *measured)


def medians(runs: list[Run], case: str) -> dict[str, tuple[float, float, float]]:
    """Median packets per CPU second, of CPU seconds and of peak memory, by simulator."""
    table = {}
    for simulator in SIMULATORS:
        own = [run for run in runs if run.case == case and run.simulator == simulator]
        if own:
            table[simulator] = (
                median(run.packets_per_cpu_s for run in own),
                median(run.cpu_s for run in own),
                median(run.peak_mb for run in own),
            )
    return table


def millions(rate: float) -> str:
    return f"{rate / 1e6:.3g} M"


def speed_table(runs: list[Run], cases: list[Case]) -> str:
    """Markdown: packets per CPU second, nanoseconds a packet, ratios and memory."""
    lines = [
        "| scenario | farlink, packets per CPU s | ns a packet | ns-2 | ns-3 | times ns-2 | times ns-3 "
        "| peak MB: farlink | ns-2 | ns-3 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for case in cases:
        table = medians(runs, case.name)
        rate = {name: values[0] for name, values in table.items()}
        ours = rate.get("farlink")
        cells = [
            case.name,
            millions(ours) if ours else "–",
            f"{1e9 / ours:.1f}" if ours else "–",
            *(millions(rate[peer]) if peer in rate else "–" for peer in ("ns-2", "ns-3")),
            *(f"{ours / rate[peer]:.1f}" if ours and peer in rate else "–" for peer in ("ns-2", "ns-3")),
            *(f"{table[name][2]:.1f}" if name in table else "–" for name in SIMULATORS),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def scaling_table(runs: list[Run]) -> str:
    """Markdown: farlink's time and memory against the number of flows."""
    lines = [
        "| flows | packets | CPU s | ns a packet | CPU ms a flow | peak MB | KB a flow |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    smallest = medians(runs, str(SCALING_FLOWS[0]))["farlink"][2]
    for flows in SCALING_FLOWS:
        rate, cpu_s, peak_mb = medians(runs, str(flows))["farlink"]
        more = flows - SCALING_FLOWS[0]
        per_flow = f"{(peak_mb - smallest) * 1000 / more:.2f}" if more else "–"
        lines.append(
            f"| {flows:,} | {rate * cpu_s:,.0f} | {cpu_s:.2f} | {1e9 / rate:.1f} | {1000 * cpu_s / flows:.2f} "
            f"| {peak_mb:.1f} | {per_flow} |"
        )
    return "\n".join(lines)


def run_window(window: int, losses: float, scale: float) -> Run:
    """One run of farlink over a link that `window` segments fill."""
    name, scenario = f"window {window}, {losses}", window_scenario(window, WINDOW_PACKETS * scale, losses)
    return Run(name, "farlink", scenario["duration_s"], *run_farlink(scenario, f"window-{window}-{losses}"))


def run_window_ns3(window: int, scale: float) -> Run:
    """The same in ns-3, without losses."""
    scenario = window_scenario(window, WINDOW_PACKETS_NS3 * scale, 0)
    measured = measure(ns3_command(scenario, scenario["duration_s"]), result_count)
    return Run(f"window {window}, 0", "ns-3", scenario["duration_s"], *measured)


def run_scaling(flows: int, scale: float) -> Run:
    """One run of farlink with so many flows."""
    scenario = scaling_scenario(flows, scale)
    return Run(str(flows), "farlink", scenario["duration_s"], *run_farlink(scenario, f"scaling-{flows}"))


def window_table(runs: list[Run]) -> str:
    """Markdown: nanoseconds a packet against the window."""
    lines = [
        "| window, segments | farlink, ns a packet | with half a loss per round trip | ns-3, ns a packet |",
        "|--:|--:|--:|--:|",
    ]
    for window in WINDOWS:
        clear, lossy = (medians(runs, f"window {window}, {losses}") for losses in (0, LOSSES_PER_WINDOW))
        cells = [clear.get("farlink"), lossy.get("farlink"), clear.get("ns-3")]
        lines.append(f"| {window:,} | " + " | ".join(f"{1e9 / cell[0]:,.1f}" if cell else "–" for cell in cells) + " |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Processor, cores and how busy the machine was."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {"processor": model, "cores": os.cpu_count(), "load_average": os.getloadavg()[0]}


# What is run once in each repetition: the case, the simulator, and the call.
Step = tuple[str, str, Callable[[], Run | None]]


def steps(cases: list[Case], simulators: list[str], scale: float, has_series: bool) -> list[Step]:
    """One repetition, in order; `has_series` adds the series of windows and of flows."""
    every: list[Step] = [
        (case.name, simulator, partial(run_case, case, simulator, scale)) for case in cases for simulator in simulators
    ]
    if not has_series or "farlink" not in simulators:
        return every
    for window in WINDOWS:
        every += [
            (f"window {window}, {losses}", "farlink", partial(run_window, window, losses, scale))
            for losses in (0, LOSSES_PER_WINDOW)
        ]
    for window in WINDOWS_NS3 if "ns-3" in simulators else ():
        every.append((f"window {window}, 0", "ns-3", partial(run_window_ns3, window, scale)))
    return every + [(str(flows), "farlink", partial(run_scaling, flows, scale)) for flows in SCALING_FLOWS]


def commit() -> str:
    """The commit of the tree, with a plus sign if it has changes."""
    words = ["git", "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def load(file: Path) -> tuple[dict[str, Any], list[Run]]:
    """What `save` wrote: all but the runs, and the runs."""
    report = json.loads(file.read_text())
    return report, [Run(**run) for run in report.pop("runs")]


def save(about: Mapping[str, Any], runs: list[Run]) -> None:
    """Write all runs so far."""
    WORK.mkdir(parents=True, exist_ok=True)
    new = RESULTS.with_suffix(".new")
    new.write_text(json.dumps({**about, "runs": [asdict(run) for run in runs]}, indent=1) + "\n")
    new.replace(RESULTS)


def provenance(about: Mapping[str, Any], runs: list[Run]) -> str:
    """A sentence: on what, of what and when the runs are."""
    machine_ = about["machine"]
    repeats = max((run.repeat for run in runs), default=0) + 1
    return (
        f"{machine_['processor']}, one core of {machine_['cores']}, load {machine_['load_average']:.1f} at the start; commit "
        f"{about['commit']}, {about['date']}; medians of {repeats} alternating runs."
    )


def tables(runs: list[Run]) -> dict[str, str]:
    """The tables that the runs suffice for, by the name of their place in the page."""
    names = {run.case for run in runs}
    cases, used = ([case for case in group if case.name in names] for group in (CASES, USERS))
    found = {"peers": speed_table(runs, cases) if cases else "", "users": speed_table(runs, used) if used else ""}
    if all(str(flows) in names for flows in SCALING_FLOWS):
        found |= {"flows": scaling_table(runs), "windows": window_table(runs)}
    return {name: text for name, text in found.items() if text}


def write_page(file: Path) -> None:
    """Put the tables and where they come from between the marks `<!-- bench: NAME -->` and `<!-- end -->` of the page."""
    about, runs = load(file)
    if about["scale"] != 1.0:
        raise SystemExit(f"{file} is of a quick run (scale {about['scale']}); run benches/peers.py without --quick first")
    names = {run.case for run in runs}
    missing = [case.name for case in (*CASES, *USERS) if case.name not in names]
    if missing:
        raise SystemExit(f"{file} lacks {len(missing)} cases, first {missing[0]!r}; benches/peers.py --resume runs them")
    page = PAGE.read_text()
    for name, text in {"provenance": provenance(about, runs), **tables(runs)}.items():
        before, mark, rest = page.partition(f"<!-- bench: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not mark or not end:
            raise SystemExit(f"{PAGE} has no place for the table {name}: <!-- bench: {name} --> to <!-- end -->")
        page = f"{before}{mark}\n{text}\n\n{end}{after}"
    PAGE.write_text(page)


def main() -> None:
    """Run everything in turn; print the tables; write the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="how often each case runs (default 5)")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the length, once: does it work at all?")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="cases whose name contains one of these")
    parser.add_argument("--resume", action="store_true", help="go on with the runs that are missing in out/bench.json")
    parser.add_argument("--page", nargs="?", const=RESULTS, type=Path, metavar="FILE", help="only rewrite the page's tables")
    options = parser.parse_args()
    if options.page:
        write_page(options.page)
        return

    repeats, scale = (1, 0.05) if options.quick else (options.repeats, 1.0)
    simulators = available()
    wanted = [case for case in (*CASES, *USERS) if not options.only or any(text in case.name for text in options.only)]
    about: dict[str, Any] = {"machine": machine(), "commit": commit(), "date": time.strftime("%Y-%m-%d"), "scale": scale}
    runs: list[Run] = []
    if options.resume and RESULTS.exists():
        before, runs = load(RESULTS)
        if any(before[key] != about[key] for key in ("commit", "scale")):
            raise SystemExit(
                f"{RESULTS} is of commit {before['commit']} and scale {before['scale']}, and this is {about['commit']} and "
                f"{scale}; run without --resume to begin anew"
            )
        about = before
    done = {(run.repeat, run.case, run.simulator) for run in runs}
    begun = time.monotonic()
    for repeat in range(repeats):
        for name, simulator, call in steps(wanted, simulators, scale, not options.only):
            if (repeat, name, simulator) in done:
                continue
            run = call()
            if run is None:
                continue
            runs.append(replace(run, repeat=repeat))
            save(about, runs)
            print(
                f"{repeat + 1}/{repeats} {name}, {simulator}: {millions(run.packets_per_cpu_s)} packets per CPU s in "
                f"{run.cpu_s:.2f} s, {run.peak_mb:.0f} MB",
                file=sys.stderr,
            )

    print(provenance(about, runs))
    for name, text in tables(runs).items():
        print(f"\n{TITLES[name]}:\n\n{text}")
    print(f"\nEvery run: {RESULTS.relative_to(ROOT)}; {time.monotonic() - begun:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
