"""Write `docs/validation/wire-faults.md`: floods, kills, clock steps and shortages during transfers. Part of `make wire`.

Every run is real: `farlink send` and `farlink receive` on the loopback interface of a network namespace of their own, as root.
Finished parts are kept in `out/wire-faults.jsonl` with commit and date, so that the same command goes on where it stopped;
those of other builds are made anew. `--page` measures nothing and writes the page only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import page
from measuring import PROGRAMS, commit, finish_or_quit, keep_line, kept_lines, prepare
from wire import CLI, make_keys, sha256_of
from wire_host import LIBFAKETIME, LISTEN, Host
from wire_shortages import SHORTAGES, Shortage, shortage_table
from wire_watch import content_bytes

from farlink import _core

KEPT = page.ROOT / "out" / "wire-faults.jsonl"
FLOODS = {
    "hello": "as long as an initiation, with a wrong code",
    "stray": "sealed packets of sessions that do not exist",
    "noise": "random bytes",
    "hello at-once": "as the first, 64 in a call; read are groups of 64",
}
FLOOD_S, ALONE_S, RATE_BPS = 60.0, 20.0, 10e6
# Files of a transfer that is killed again and again: their number, and bytes.
FILES, KILLS, KILL_RATE_BPS = (40, 500_000), 200, 50e6
CLOCK_STEP_S = 3600
STEPPING = "kills while clocks step"


@dataclass(frozen=True)
class Flood:
    """A flood of one kind beside a transfer with a set rate."""

    kind: str
    datagram_bytes: int
    sent_per_s: float
    # Those that the receiver read: the others found its buffer full.
    read_per_s: float
    cpu_ns: float
    grown_bytes: int
    alone_bps: float
    beside_bps: float


@dataclass(frozen=True)
class Kills:
    """Transfers whose ends were killed again and again."""

    clocks: str
    kills: dict[str, int] = field(default_factory=dict)
    transfers: int = 0
    equal: int = 0
    wrong_codes: list[str] = field(default_factory=list)
    took_s: float = 0.0
    steps: int = 0


def flood(kind: str, programs: Path) -> Flood:
    """Flood a receiver that takes a file."""
    with Host() as host:
        make_keys(host.folder)
        (host.folder / "content").write_bytes(os.urandom(int(RATE_BPS / 8 * (FLOOD_S + ALONE_S + 60))))
        (host.folder / "in").mkdir()
        host.start("receiver", *CLI, "receive", "in", "--listen", LISTEN, "--keys", "shore")
        time.sleep(2)
        host.start("sender", *CLI, "send", "content", LISTEN, "--rate", f"{RATE_BPS:g}", "--keys", "ship")
        time.sleep(5)
        alone = _span(host, ALONE_S)
        flooding = host.start("flood", programs / "flood", LISTEN, f"{FLOOD_S:g}", *kind.split())
        time.sleep(1)
        beside = _span(host, FLOOD_S - 2)
        flooding.wait()
        grown = round(beside["memory"] - alone["memory"])
        if flooding.returncode != 0:
            raise RuntimeError(f"flood has ended: {host.said('flood')}")
        told = json.loads((host.folder / "flood.out").read_text(encoding="utf-8"))
    strangers_per_s = beside["arrived"] - alone["arrived"]
    return Flood(
        kind,
        told["bytes"],
        told["datagrams"] / told["seconds"],
        strangers_per_s,
        (beside["cpu"] - alone["cpu"] * beside["bps"] / alone["bps"]) / strangers_per_s * 1e9,
        grown,
        alone["bps"],
        beside["bps"],
    )


def _check(host: Host) -> None:
    for name in ("sender", "receiver"):
        if host.running[name].poll() is not None:
            raise RuntimeError(f"the {name} has ended: {host.said(name)}")


def _span(host: Host, seconds: float) -> dict[str, float]:
    """Rates within a span: content, datagrams, processor time of the receiver; its memory at most."""

    def counts() -> tuple[float, float, float, float]:
        return time.monotonic(), content_bytes(host.folder / "in") * 8, host.arrived(), host.cpu_s("receiver")

    before, memory = counts(), 0
    while time.monotonic() < before[0] + seconds:
        time.sleep(0.5)
        _check(host)
        memory = max(memory, host.memory_bytes("receiver"))
    after = counts()
    took = after[0] - before[0]
    rates = {name: (after[at] - before[at]) / took for at, name in ((1, "bps"), (2, "arrived"), (3, "cpu"))}
    return {**rates, "memory": memory}


def kills(*, clocks: str, count: int) -> Kills:
    """Kill sender or receiver at random moments until so many have died, and compare the files of each transfer.

    Wall clocks are `right`, wrong `from the start` of each program, or `step` while it runs, thrice for each kill.
    """
    draw = random.Random(7)
    steps = 0
    died, transfers, equal, wrong = {"sender": 0, "receiver": 0}, 0, 0, list[str]()
    began_s = time.monotonic()

    def wrong_by() -> float:
        return draw.choice((-CLOCK_STEP_S, 0, CLOCK_STEP_S))

    with Host() as host:
        make_keys(host.folder)
        source, target = host.folder / "content", host.folder / "in"

        def start(name: str) -> None:
            clock: dict[str, float] = {"step_s": wrong_by()} if clocks == "from the start" else {"may_step": clocks == "step"}
            if name == "receiver":
                host.start(name, *CLI, "receive", "in", "--listen", LISTEN, "--keys", "shore", **clock)
            else:
                rate = ("--rate", f"{KILL_RATE_BPS:g}", "--patience", "30")
                host.start(name, *CLI, "send", "content", LISTEN, *rate, "--keys", "ship", **clock)

        while sum(died.values()) < count:
            for folder in (source, target):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            for number in range(FILES[0]):
                (source / f"{number}").write_bytes(random.Random(transfers * 1000 + number).randbytes(FILES[1]))
            start("receiver")
            start("sender")
            while sum(died.values()) < count:
                for _ in range(3 if clocks == "step" else 0):
                    time.sleep(draw.uniform(0.1, 0.6))
                    host.step(draw.choice(("sender", "receiver")), wrong_by())
                    steps += 1
                time.sleep(draw.uniform(0.3, 2.0))
                if (code := host.running["sender"].poll()) is not None:
                    break
                name = draw.choice(("sender", "receiver"))
                host.running[name].kill()
                host.running[name].wait()
                died[name] += 1
                start(name)
            code = host.running["sender"].wait(timeout=120)
            if code != 0:
                wrong.append(f"{code}: {host.said('sender')[-200:]}")
            host.running["receiver"].send_signal(signal.SIGINT)
            host.running["receiver"].wait(timeout=30)
            transfers += 1
            sums = [{path.name: sha256_of(path) for path in folder.rglob("*") if path.is_file()} for folder in (source, target)]
            there = {name: value for name, value in sums[1].items() if name in sums[0]}
            equal += there == sums[0]
            died_so_far = sum(died.values())
            print(f"{died_so_far} of {count} kills, {transfers} transfers, {equal} equal", flush=True)
    return Kills(clocks, died, transfers, equal, wrong, time.monotonic() - began_s, steps)


class Parts:
    """Measured parts, kept in a file."""

    def __init__(self) -> None:
        """Read those of this build."""
        self.identity = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:24]
        self.found: dict[str, dict[str, Any]] = {}
        self.found.update((kept["part"], kept) for kept in kept_lines(KEPT) if kept["identity"] == self.identity)

    def keep(self, part: str, measured: Flood | Kills | Shortage) -> None:
        """Append a part."""
        about = {"identity": self.identity, "part": part, "commit": commit(), "date": date.today().isoformat()}
        kept = {**about, "load": os.getloadavg()[0], "measured": asdict(measured)}
        self.found[part] = kept
        keep_line(KEPT, kept)

    def measure(self, programs: Path, count: int, only: str) -> None:
        """Measure what is missing of parts with some words in their names."""
        parts: dict[str, Callable[[], Flood | Kills | Shortage]] = {}
        parts |= {f"flood {kind}": partial(flood, kind, programs) for kind in FLOODS}
        parts |= {f"shortage {what}": measured for what, measured in SHORTAGES.items()}
        parts["kills"] = partial(kills, clocks="right", count=count)
        if Path(LIBFAKETIME).exists():
            parts["kills with clock steps"] = partial(kills, clocks="from the start", count=count)
            parts[STEPPING] = partial(kills, clocks="step", count=count)
        for part, measured in parts.items():
            if part not in self.found and only in part:
                one = measured()
                self.keep(part, one)
                print(f"{part}: {one}", flush=True)


def flood_table(parts: Parts) -> str:
    """What floods cost."""
    rows = []
    for kind, words in FLOODS.items():
        if (kept := parts.found.get(f"flood {kind}")) is None:
            continue
        one = Flood(**kept["measured"])
        row = [f"{kind}: {words}", f"{one.datagram_bytes}", f"{one.sent_per_s:,.0f}", f"{one.read_per_s:,.0f}"]
        row += [f"{one.cpu_ns:,.0f}", f"{one.grown_bytes / 2**20:.1f}", f"{one.alone_bps / 1e6:.2f}"]
        rows.append([*row, f"{one.beside_bps / 1e6:.2f}", f"{one.beside_bps / one.alone_bps:.2f}"])
    head = ["datagrams", "bytes", "sent a second", "read a second", "CPU ns for each read", "memory + MiB"]
    return page.table([*head, "alone Mb/s", "beside Mb/s", "share"], rows, "lr")


def kill_table(parts: Parts, *names: str) -> str:
    """What kills left behind."""
    rows = []
    for part in names:
        if (kept := parts.found.get(part)) is None:
            continue
        one = Kills(**kept["measured"])
        row = [part, f"{one.kills['sender']}", f"{one.kills['receiver']}", f"{one.transfers}", f"{one.equal}"]
        rows.append([*row, f"{len(one.wrong_codes)}", f"{one.took_s:.0f}"])
    head = [
        "what",
        "kills of the sender",
        "of the receiver",
        "transfers",
        "all files equal",
        "exit codes other than 0",
        "took s",
    ]
    return page.table(head, rows, "lr")


def write_page(parts: Parts) -> None:
    """Write what was measured; where floods or kills were not, or a shortage, the page keeps what it has of these."""
    others = [*(f"flood {kind}" for kind in FLOODS), "kills", "kills with clock steps"]
    missing = [part for part in (*others, *(f"shortage {what}" for what in SHORTAGES)) if part not in parts.found]
    print(f"not measured: {'; '.join(missing) or 'nothing'}", file=sys.stderr)
    shown: page.Values = {}
    if set(missing) <= set(others):
        shown |= shortage_values(parts)
    if not set(missing) & set(others):
        shown |= other_values([parts.found[part] for part in others], parts)
    if STEPPING in parts.found:
        shown |= stepping_values(parts)
    page.write("wire-faults.md", {}, only=True, **shown)


def other_values(found: Sequence[dict[str, Any]], parts: Parts) -> page.Values:
    """Floods and kills."""
    return {
        "commits": ", ".join(sorted({one["commit"] for one in found})),
        "dates": ", ".join(sorted({one["date"] for one in found})),
        "floods": flood_table(parts),
        "kills": kill_table(parts, "kills", "kills with clock steps"),
    }


def stepping_values(parts: Parts) -> page.Values:
    """Kills while clocks step."""
    kept = parts.found[STEPPING]
    return {
        "steps": f"{kept['measured']['steps']}",
        "stepping_commit": kept["commit"],
        "stepping": kill_table(parts, STEPPING),
    }


def shortage_values(parts: Parts) -> page.Values:
    """Shortages."""
    found = {what: kept for what in SHORTAGES if (kept := parts.found.get(f"shortage {what}")) is not None}
    return {
        "shortages": shortage_table({what: Shortage(**kept["measured"]) for what, kept in found.items()}),
        "shortage_commits": ", ".join(sorted({kept["commit"] for kept in found.values()})),
    }


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of the example flood, instead of building it")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORDS", help="measure parts with these words in their names")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    parts = Parts()
    if not arguments.page:
        prepare(arguments.programs, ("farlink-net", "flood"))
        parts.measure((arguments.programs or PROGRAMS).resolve(), arguments.kills, arguments.only)
    write_page(parts)


if __name__ == "__main__":
    main()
