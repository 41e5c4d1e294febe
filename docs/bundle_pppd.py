"""Write `docs/validation/bundle-pppd.md`: real pppds over modems that lose calls, in a guest, beside the simulator.

As root, with QEMU; a cell takes as long as it says, and half a minute more. Measured cells are appended to
`out/bundle-pppd.jsonl` with commit and date, and the same command goes on where it stopped. Without `--only` it measures the
short cells; the others take 20 minutes each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

import page
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for

sys.path.insert(0, str(page.ROOT))
from tests.qemu import guest, ppp_guest

import farlink

KEPT = page.ROOT / "out" / "bundle-pppd.jsonl"
# Of a datagram: IP and UDP.
HEADER_BYTES = 28
COMMON: dict[str, Any] = {
    "rate_bps": 2400,
    "delay_s": 0.5,
    "set_up_s": 2.0,
    "dropped_s": 5.0,
    "failed_s": 20.0,
    "attach_limit_s": 60.0,
    # The first with as many drops in 20 minutes as the mean, for 1, 2, 4 and 8 lines.
    "seed": 61,
    # A line holds 16 KB, see `simulated_bps`, which take 55 s: echoes have to bear that.
    "ppp": "line_packets = 11\necho_interval_s = 20\necho_failures = 4\n",
}
LONG: dict[str, Any] = {"duration_s": 1200.0, "mean_up_s": 1200.0}
# Schedules that nothing was fitted to: seed, and the end that notices each drop late, with by how much.
SCHEDULES: dict[int, dict[str, Any] | None] = {
    71: None,
    72: None,
    73: {"end": "far", "s": 15.0},
    74: {"end": "near", "s": 15.0},
    75: None,
}


def schedules() -> dict[str, dict[str, Any]]:
    """Each schedule with datagrams at half of the lines' rate, and twice with TCP whose window is four segments a line."""
    found: dict[str, dict[str, Any]] = {}
    for seed, late in SCHEDULES.items():
        draw = random.Random(f"schedule {seed}")
        lines, mean_up_s = draw.randint(2, 8), draw.uniform(100.0, 300.0)
        about: dict[str, Any] = {"lines": lines, "duration_s": 240.0, "mean_up_s": mean_up_s, "seed": seed}
        words = f"schedule {seed}, {lines} modems"
        if late is not None:
            about["late"] = late
            words += f", {late['end']} end {late['s']:g} s late"
        rate_bps = lines * COMMON["rate_bps"] / 2
        found[f"{words}, datagrams"] = about | {"datagrams": {"packet_bytes": 300, "rate_bps": rate_bps}}
        for time in ("", ", again"):
            found[f"{words}, TCP{time}"] = about | {"window_bytes": 4 * 1448 * lines, "is_clamped": True}
    return found


CELLS: dict[str, dict[str, Any]] = {
    "2 modems, 2 min": {"lines": 2, "duration_s": 120.0, "mean_up_s": 60.0},
    "8 modems, 2 min": {"lines": 8, "duration_s": 120.0, "mean_up_s": 240.0},
    **{f"{lines} modems, 20 min": {"lines": lines, **LONG} for lines in range(1, 9)},
    # The window of the thesis.
    "8 modems, 47.9 KB, 20 min": {"lines": 8, **LONG, "window_bytes": 47_900},
    **schedules(),
}
SHORT = "2 min"
# A guest that wakes later than this adds a tenth and more to the delay.
MOST_LATE_S = 0.05
# One that slept for longer did not play its schedule.
MOST_ASLEEP_S = 15.0


def measure(name: str) -> dict[str, Any]:
    """Play a cell in a guest."""
    cell = COMMON | CELLS[name]
    about: dict[str, Any] = {"commit": commit(), "date": date.today().isoformat()}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="farlink-pppd-") as temporary:
        work = Path(temporary)
        (work / "cell.json").write_text(json.dumps(cell))
        script = ppp_guest.SETUP.format(root=page.ROOT) + f"{sys.executable} -m tests.qemu.ppp_load /mnt /mnt/cell.json\n"
        ended = guest.run(script, work, modules=ppp_guest.MODULES, timeout_s=cell["duration_s"] + 400)
        if ended.status != 0:
            raise RuntimeError(f"{name}: the guest ended with {ended.status}: {ended.console[-2000:]}")
        found = json.loads((work / "found.json").read_text())
    if "error" in found:
        raise RuntimeError(f"{name}: {found['error']}")
    if (slept_s := found["late_most_s"]) > MOST_ASLEEP_S:
        raise RuntimeError(f"{name}: the guest slept for {slept_s:.0f} s, as other programs had the processors")
    return {"cell": cell, "found": found, "load": [load, os.getloadavg()[0]], **about}


def down_times(cell: Mapping[str, Any], events: list[tuple[float, int, str]]) -> list[list[list[float]]]:
    """When each line was not part of the bundle, as the simulator takes it."""
    found: list[list[list[float]]] = [[] for _ in range(cell["lines"])]
    for at_s, line, what in events:
        if what == "down":
            found[line].append([max(at_s, 0.0), cell["duration_s"]])
        elif what == "up" and found[line]:
            found[line][-1][1] = at_s
    return found


def longest_silence_s(cell: Mapping[str, Any], arrived: list[tuple[float, int]]) -> float:
    """The longest time in which TCP got nothing in order."""
    times = [0.0, *(at for at, _ in arrived), cell["duration_s"]]
    return max(after - before for before, after in itertools.pairwise(times))


def scenario_of(cell: Mapping[str, Any], events: list[tuple[float, int, str]]) -> dict[str, Any]:
    """What the packet engine plays: the same lines, down at the same times."""
    calls: dict[str, Any] = {"schedule": down_times(cell, events)}
    if "late" in cell:
        calls[f"detection_{cell['late']['end']}"] = {"distribution": "constant", "value_s": cell["late"]["s"]}
    bundle = {
        "lines": cell["lines"],
        "scheduler": "linux",
        # 12 KB of the pty, and 4 KB of the bank's modem behind it.
        "tty_bytes": 12288 + 4096,
        "calls": calls,
    }
    transport: dict[str, Any]
    if "datagrams" in cell:
        transport = {"kind": "udp"}
        packet_bytes, rate_bps = cell["datagrams"]["packet_bytes"], cell["datagrams"]["rate_bps"]
        payload_bytes = packet_bytes - HEADER_BYTES
        traffic = {"kind": "cbr", "rate_bps": rate_bps * payload_bytes / packet_bytes, "payload_bytes": payload_bytes}
    else:
        traffic = {"kind": "bulk"}
        transport = {
            "kind": "tcp",
            "variant": "rack",
            "congestion_control": "cubic",
            "segment_bytes": 1448,
            "timestamps": True,
            **({"max_window_segments": cell["window_bytes"] // 1448} if "window_bytes" in cell else {}),
            "rto": {"algorithm": "linux", "initial_s": 1, "minimum_s": 0.2},
        }
    return {
        "title": "A bundle of pppd",
        "duration_s": cell["duration_s"],
        "runs": 1,
        "link": {"rate_bps": cell["rate_bps"], "delay_s": cell["delay_s"], "bundle": bundle},
        "transport": {"used": transport},
        "flow": {"data": {"transport": "used", "traffic": traffic}},
    }


def delivered_bytes(scenario: Mapping[str, Any]) -> list[int]:
    """How much arrived, at each point of a scenario."""
    rows = farlink.run(scenario).rows
    return [int(rows["delivered_bytes"][at]) for at, flow in enumerate(rows["flow"]) if flow == "data"]


def simulated(cell: Mapping[str, Any], events: list[tuple[float, int, str]]) -> dict[str, float]:
    """Goodput of the packet engine, and its longest silence in whole seconds."""
    # The same run, cut off after each second: how much had arrived by then.
    seconds = [float(second) for second in range(1, int(cell["duration_s"]) + 1)]
    cut_off = scenario_of(cell, events) | {"grid": {"duration_s": seconds}}
    delivered = list(zip(seconds, delivered_bytes(cut_off), strict=True))
    changes = [(at, total) for (_, before), (at, total) in itertools.pairwise([(0.0, 0), *delivered]) if total > before]
    return {"goodput_bps": 8 * delivered[-1][1] / cell["duration_s"], "silence_s": longest_silence_s(cell, changes)}


def other_beginnings_bps(cell: Mapping[str, Any], events: list[tuple[float, int, str]]) -> list[float]:
    """Goodput of the packet engine, if the flow begins at any of ten times within two seconds."""
    begin = {"grid": {"flow.data.start_s": [0.2 * number for number in range(10)]}}
    return [8 * total / cell["duration_s"] for total in delivered_bytes(scenario_of(cell, events) | begin)]


@dataclass(frozen=True)
class Beside:
    """A cell beside the simulator: its row, goodput, and the simulator's at each of ten beginnings, in bit/s."""

    row: list[str]
    goodput_bps: float
    begun_bps: list[float]

    @property
    def is_inside(self) -> bool:
        """Whether the measured goodput is one that the simulator has at one of the beginnings."""
        return min(self.begun_bps) <= self.goodput_bps <= max(self.begun_bps)


def measured() -> dict[str, dict[str, Any]]:
    """What is kept of the cells as they are now; the last one of each."""
    found = [one for one in kept_lines(KEPT) if one.get("cell") == COMMON | CELLS.get(one["name"], {})]
    return {one["name"]: one for one in found if one["found"]["late_most_s"] <= MOST_ASLEEP_S}


def beside(name: str, one: Mapping[str, Any]) -> Beside:
    """A cell beside the simulator."""
    cell, found = COMMON | CELLS[name], one["found"]
    goodput_bps = 8 * found["bytes"] / cell["duration_s"]
    of_simulator = simulated(cell, found["events"])
    begun_bps = other_beginnings_bps(cell, found["events"])
    counts = [sum(what.startswith(words) for _, _, what in found["events"]) for words in ("dropped", "left the bundle")]
    late = f"{1e3 * found['late_p99_s']:.0f} ms"
    simulated_bps = of_simulator["goodput_bps"]
    row = [
        name,
        *map(str, counts),
        *(f"{found[key]:.1%}" for key in ("all_up", "any_up")),
        *(f"{goodput_bps:.0f}", f"{simulated_bps:.0f}", f"{goodput_bps / simulated_bps - 1:+.1%}"),
        f"{min(begun_bps):.0f} to {max(begun_bps):.0f}",
        f"{mean(begun_bps):.0f}",
        f"{goodput_bps / mean(begun_bps) - 1:+.1%}",
        *(f"{longest_silence_s(cell, found['arrived']):.0f} s", f"{of_simulator['silence_s']:.0f} s"),
        f"**{late}**" if found["late_p99_s"] > MOST_LATE_S else late,
        f"{sum(one['load']) / 2:.0f}" if "load" in one else "",
        one["commit"],
        one["date"],
    ]
    return Beside(row, goodput_bps, begun_bps)


def write_page() -> None:
    """Write what there is."""
    last = measured()
    names = sorted(last, key=list(CELLS).index)
    head = ["cell", "drops", "given up", "all up", "one up", "goodput, bit/s", "simulated", "apart", "begun at other times"]
    head += ["their mean", "apart", "silence", "simulated", "late, 99 %", "load", "commit", "date"]
    found = {name: beside(name, last[name]) for name in names}
    of_schedules, others = (
        [one.row for name, one in found.items() if name.startswith("schedule") is wanted] for wanted in (True, False)
    )
    of_72 = [one for name, one in found.items() if name.startswith("schedule 72,") and "TCP" in name]
    of_tcp = [one for name, one in found.items() if name.startswith("schedule") and "TCP" in name]
    page.write(
        "bundle-pppd.md",
        {},
        cells=page.table(head, others, "lr"),
        schedules=page.table(head, of_schedules, "lr"),
        measured=len(last),
        all_cells=len(CELLS),
        tcp_cells=len(of_tcp),
        tcp_inside=sum(one.is_inside for one in of_tcp),
        tcp_sum=f"{sum(one.goodput_bps for one in of_tcp) / sum(mean(one.begun_bps) for one in of_tcp) - 1:+.0%}",
        by_72=" and ".join(f"{100 * (one.goodput_bps / mean(one.begun_bps) - 1):.1f}" for one in of_72) + " %",
        most_late=f"{1e3 * MOST_LATE_S:.0f} ms",
    )


def work(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not arguments.page and (reason := ppp_guest.missing()) is not None:
        quit_for(f"no guest: {reason}", "as root: apt install qemu-system-x86 busybox-static ppp")
    there = measured()
    for name in () if arguments.page else CELLS:
        if arguments.only in name and name not in there:
            new = measure(name)
            keep_line(KEPT, {"name": name, **new})
            print(name, json.dumps({key: value for key, value in new["found"].items() if key != "arrived"}), file=sys.stderr)
    write_page()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=SHORT, metavar="WORDS", help="cells with these words in their names (%(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: work(arguments))


if __name__ == "__main__":
    main()
