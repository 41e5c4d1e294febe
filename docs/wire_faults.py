"""Write `docs/validation/wire-faults.md`: floods of strangers, kills and clock steps during transfers. Part of `make wire`.

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
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import page
from aerotp_kernel import PROGRAMS
from kernel_paths import MEMORY, PREFIX, check_machine, cpu_s, output_of, remove_leftovers
from measuring import build, commit, finish_or_quit, keep_line, kept_lines
from wire import CLI, make_keys, sha256_of
from wire_watch import content_bytes

from farlink import _core

KEPT = page.ROOT / "out" / "wire-faults.jsonl"
LISTEN = "127.0.0.1:47470"
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
LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Host:
    """A network namespace with nothing but its loopback interface, and programs in it; both end with it."""

    def __init__(self) -> None:
        """Nothing is made before `with`."""
        self.name = f"{PREFIX}{os.getpid()}-faults"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if MEMORY.is_dir() else None)
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Self:
        """Make the namespace."""
        output_of("ip", "netns", "add", self.name)
        output_of("ip", "-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all programs and remove the namespace."""
        for process in self.running.values():
            process.kill()
            process.wait()
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)
        self._folder.cleanup()

    def start(self, name: str, *command: str | Path, step_s: float = 0.0) -> subprocess.Popen[bytes]:
        """Start a program, with a wall clock that is a step ahead."""
        words = ["ip", "netns", "exec", self.name, *map(str, command)]
        environment = dict(os.environ)
        if step_s:
            environment |= {"LD_PRELOAD": LIBFAKETIME, "FAKETIME": f"{step_s:+g}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        with (self.folder / f"{name}.out").open("ab") as out, (self.folder / f"{name}.err").open("ab") as err:
            process = subprocess.Popen(
                words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder, env=environment
            )
        self.running[name] = process
        return process

    def said(self, name: str) -> str:
        """What a program wrote to stdout and stderr."""
        return "".join((self.folder / f"{name}.{end}").read_text(encoding="utf-8") for end in ("out", "err"))

    def cpu_s(self, name: str) -> float:
        """Processor time that a running program has used, with its threads."""
        return cpu_s(self.running[name])

    def memory_bytes(self, name: str) -> int:
        """Resident memory of a running program."""
        pages = Path(f"/proc/{self.running[name].pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def arrived(self) -> int:
        """Datagrams that programs of the namespace could read."""
        lines = output_of("ip", "netns", "exec", self.name, "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("InDatagrams")])


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
    """A transfer whose ends were killed again and again."""

    has_steps: bool
    kills: dict[str, int] = field(default_factory=dict)
    transfers: int = 0
    equal: int = 0
    wrong_codes: list[str] = field(default_factory=list)
    took_s: float = 0.0


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


def kills(*, has_steps: bool, count: int) -> Kills:
    """Kill sender or receiver at random moments until so many have died, and compare the files of each transfer."""
    draw = random.Random(7)
    died, transfers, equal, wrong = {"sender": 0, "receiver": 0}, 0, 0, list[str]()
    began_s = time.monotonic()

    def step() -> float:
        return draw.choice((-CLOCK_STEP_S, 0, CLOCK_STEP_S)) if has_steps else 0.0

    with Host() as host:
        make_keys(host.folder)
        source, target = host.folder / "content", host.folder / "in"

        def start(name: str) -> None:
            if name == "receiver":
                host.start(name, *CLI, "receive", "in", "--listen", LISTEN, "--keys", "shore", step_s=step())
            else:
                rate = ("--rate", f"{KILL_RATE_BPS:g}", "--patience", "30")
                host.start(name, *CLI, "send", "content", LISTEN, *rate, "--keys", "ship", step_s=step())

        while sum(died.values()) < count:
            for folder in (source, target):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            for number in range(FILES[0]):
                (source / f"{number}").write_bytes(random.Random(transfers * 1000 + number).randbytes(FILES[1]))
            start("receiver")
            start("sender")
            while sum(died.values()) < count:
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
    return Kills(has_steps, died, transfers, equal, wrong, time.monotonic() - began_s)


class Parts:
    """Measured parts, kept in a file."""

    def __init__(self) -> None:
        """Read those of this build."""
        self.identity = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:24]
        self.found: dict[str, dict[str, Any]] = {}
        self.found.update((kept["part"], kept) for kept in kept_lines(KEPT) if kept["identity"] == self.identity)

    def keep(self, part: str, measured: Flood | Kills) -> None:
        """Append a part."""
        about = {"identity": self.identity, "part": part, "commit": commit(), "date": date.today().isoformat()}
        kept = {**about, "load": os.getloadavg()[0], "measured": asdict(measured)}
        self.found[part] = kept
        keep_line(KEPT, kept)

    def measure(self, programs: Path, count: int) -> None:
        """Measure what is missing."""
        for kind in FLOODS:
            if f"flood {kind}" not in self.found:
                one = flood(kind, programs)
                self.keep(f"flood {kind}", one)
                print(f"flood of {kind}: {one}", flush=True)
        for has_steps in (False, True):
            part = "kills with clock steps" if has_steps else "kills"
            if part not in self.found and not (has_steps and not Path(LIBFAKETIME).exists()):
                self.keep(part, kills(has_steps=has_steps, count=count))


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


def kill_table(parts: Parts) -> str:
    """What kills left behind."""
    rows = []
    for part in ("kills", "kills with clock steps"):
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
    """Write what was measured."""
    wanted = [*(f"flood {kind}" for kind in FLOODS), "kills", "kills with clock steps"]
    missing = [part for part in wanted if part not in parts.found]
    found = list(parts.found.values())
    page.write(
        "wire-faults.md",
        {},
        commits=", ".join(sorted({one["commit"] for one in found})),
        dates=", ".join(sorted({one["date"] for one in found})),
        floods=flood_table(parts),
        kills=kill_table(parts),
        missing=page.paragraph(f"Not measured: {'; '.join(missing)}." if missing else "All parts were measured."),
    )


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of the example flood, instead of building it")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many (%(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    parts = Parts()
    if not arguments.page:
        check_machine()
        remove_leftovers()
        if arguments.programs is None:
            build("farlink-net", "flood")
        parts.measure((arguments.programs or PROGRAMS).resolve(), arguments.kills)
    write_page(parts)


if __name__ == "__main__":
    main()
