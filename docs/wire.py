"""Write `docs/validation/wire.md`, `farlink send` over a bad path: `make wire`. An hour and a half, as root.

Every run is real: the commands `farlink send` and `farlink receive`, and beside them the kernel's TCP and quinn, between
network namespaces over the example `relay`. Finished runs are kept in `out/wire.jsonl` with commit and date, so that the same
command goes on where it stopped; those of other programs are made anew. `--page` measures nothing and writes the page only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import page
from aerotp_kernel import FLOW, TCP_PORT, relayed_count
from kernel_paths import CONTROLS, FAR, KernelPath, Place, Samples
from measuring import PROGRAMS, commit, finish_or_quit, keep_line, kept_lines, prepare, quit_for

from farlink import _core

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = page.ROOT / "out" / "wire.jsonl"
WATCH = Path(__file__).parent / "wire_watch.py"
QUINN_SOURCES = page.ROOT / "benches" / "loopback"
CLI = (sys.executable, "-m", "farlink.cli")
PORT = 47470
RATE_BPS, ROUND_TRIP_S, PACKET_BYTES = 10e6, 0.5, 1500
# Bandwidth times round trip.
QUEUE_PACKETS = 417
# IPv4 and UDP, the outer header and the tag, and a segment's own header in its sealed form: `docs/aerotp.md`, [O22].
HEADER_BYTES = 28 + 14 + 16 + 18
# With --damaged-links.
PARITY_BYTES = 64
LOSSES = (0.0, 1e-3, 1e-2, 5e-2, 1e-1)
# Wanted of friendly rates by loss, as in `aerotp_neighbours.py`.
FRIENDLY = {0.0: 0.80, 1e-3: 0.3, 1e-2: 0.3, 5e-2: 0.85, 1e-1: 0.85}
# A file that takes longer than any span at the rate of the relay; a hole.
LONG_BYTES = 170_000_000
FILE_BYTES = 40_000_000
SPAN_S, TCP_SPAN_S = (20.0, 120.0), (20.0, 60.0)
# Outages begin so long after the start; what follows them is measured for so long.
OUTAGE_FROM_S, AFTER_OUTAGE_S = 60.0, 30.0
# How soon data has to arrive after an outage.
RESUMED_S = ROUND_TRIP_S + 0.2


# Beside the commands.
PEERS = (*CONTROLS, "quinn")


@dataclass(frozen=True)
class Cell:
    """A path and who sends over it: `rate` and `friendly` are `farlink send`, others quinn or a control of the kernel."""

    place: Place
    control: str
    wanted: float | None = None
    outage_s: float = 0.0
    is_file: bool = False
    damaged_links: bool = False

    @property
    def is_farlink(self) -> bool:
        """Whether the commands are measured."""
        return self.control in ("rate", "friendly")

    def key(self, programs: str) -> str:
        """Names it among those that are kept."""
        program = programs if self.is_farlink else ""
        words = json.dumps(
            [program, asdict(self.place), self.control, self.outage_s, self.is_file, *[True][: self.damaged_links]]
        )
        return hashlib.sha256(words.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        links = " with --damaged-links" if self.damaged_links else ""
        return f"{self.place.name}, loss {self.place.loss:g}: {self.control}{links}"


@dataclass(frozen=True)
class Measured:
    """What was measured of a cell; packets are counted at the relay, on the way to the receiver."""

    goodput_bps: float
    # Of the span; of a file from its first packet to the end.
    sent: int
    dropped: int
    lost: int
    damaged: int
    back: int
    longest_bytes: int
    # Content that packets carried, parity left out.
    content_bytes: int = 0
    first_packet_s: float = 0.0
    first_content_s: float = 0.0
    resumed_s: float | None = None
    content_resumed_s: float | None = None
    is_equal: bool | None = None
    took_s: float = 0.0
    # Of the processor, in seconds a second.
    cpu: tuple[float, float] = (0.0, 0.0)
    # What arrived in each of the first seconds, in bit/s of IP packets.
    curve_bps: tuple[float, ...] = ()
    late_share: float = 0.0
    load: float = 0.0
    commit: str = ""
    date: str = ""


def place(name: str, loss: float = 0.0, options: str = "") -> Place:
    """A path of the relay."""
    return Place(name, QUEUE_PACKETS, relay=tuple(options.split()), loss=loss, rate_bps=RATE_BPS, round_trip_s=ROUND_TRIP_S)


def cells() -> list[Cell]:
    """The cells, the most important first."""
    bad = "--jitter 0.02 --overtake"
    # 2 % of packets of 1474 bytes have a wrong bit.
    damage = """--channel {"kind":"ber","ber":1.7e-6}"""
    return [
        Cell(place("outage of 10 min"), "rate", outage_s=600.0),
        *(Cell(place("plain", loss), "rate", 0.97) for loss in LOSSES),
        Cell(place("half lost on the way back", options="--back-loss 0.5"), "rate", 0.95),
        Cell(place("outage of 30 s"), "rate", outage_s=30.0),
        Cell(place("20 ms of jitter that reorders", options=bad), "rate", is_file=True),
        Cell(place("the same, 2 % damaged", options=f"{bad} {damage}"), "rate", is_file=True),
        Cell(place("2 % damaged", options=damage), "rate", is_file=True, damaged_links=True),
        *(Cell(place("plain", loss), "friendly", wanted) for loss, wanted in FRIENDLY.items()),
        *(Cell(place("plain", loss), control) for control in PEERS for loss in LOSSES),
    ]


def bound_bps(loss: float) -> float:
    """Content that a link can carry in packets of 1500 bytes."""
    return (1 - loss) * RATE_BPS * (PACKET_BYTES - HEADER_BYTES) / PACKET_BYTES


class Runs:
    """Measured cells, kept in a file."""

    def __init__(self, programs: Path) -> None:
        """Read those of these programs."""
        self.programs = programs
        parts = [Path(_core.__file__)] + ([programs / "relay"] if (programs / "relay").exists() else [])
        self.identity = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
        self.found: dict[str, Measured] = {}
        for kept in kept_lines(KEPT):
            self.found[kept["key"]] = Measured(**kept["measured"])

    def of(self, cell: Cell) -> Measured | None:
        """What was measured of a cell."""
        return self.found.get(cell.key(self.identity))

    def measure(self, wanted: Sequence[Cell], jobs: int) -> None:
        """Measure the cells that are missing, some at a time, each on a path of its own."""

        def one(cell: Cell) -> None:
            with KernelPath(cell.place, self.programs, seed=1) as path:
                measured = _farlink(cell, path) if cell.is_farlink else _peer(cell, path, self.programs)
            key = cell.key(self.identity)
            self.found[key] = measured
            keep_line(KEPT, {"key": key, "cell": str(cell), "measured": asdict(measured)})
            print(f"{cell}: {measured.goodput_bps / 1e6:.3f} Mb/s", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, [cell for cell in wanted if self.of(cell) is None]))


def _farlink(cell: Cell, path: KernelPath) -> Measured:
    """Measure `farlink send` to `farlink receive`."""
    make_keys(path.folder)
    content = path.folder / "content"
    if cell.is_file:
        content.write_bytes(os.urandom(FILE_BYTES))
    else:
        content.touch()
        os.truncate(content, LONG_BYTES)
    size = ("--packet-bytes", f"{PACKET_BYTES}", *["--damaged-links"][: cell.damaged_links])
    (path.folder / "in").mkdir()
    patience = ("--patience", f"{cell.outage_s + 300:g}") if cell.outage_s > 0 else ()
    receive = ("receive", "in", "--listen", FAR, *size, *patience, "--once", "--keys", "shore")
    path.start(path.far, *CLI, *receive, name="receiver")
    watched = path.start(path.far, sys.executable, WATCH, "out", path.folder / "in", name="watch")
    wait(path, 2)
    began_s = time.time()
    rate = ("--rate", f"{RATE_BPS:g}") if cell.control == "rate" else ()
    path.start(path.near, *CLI, "send", "content", FAR, *rate, *size, *patience, "--keys", "ship", name="sender")
    mended_s = None
    span_s = (began_s + SPAN_S[0], began_s + SPAN_S[1])
    if cell.outage_s > 0:
        wait(path, began_s + OUTAGE_FROM_S - time.time())
        path.cut()
        wait(path, cell.outage_s)
        path.mend()
        mended_s = time.time()
        span_s = (began_s + SPAN_S[0], mended_s + AFTER_OUTAGE_S)
    cpu = (0.0, 0.0)
    if cell.is_file:
        while path.is_running("sender"):
            wait(path, 0.1)
        span_s = (began_s, time.time())
        wait(path, 2)
    else:
        wait(path, span_s[0] - time.time())
        before = (path.cpu_s("sender"), path.cpu_s("receiver"))
        wait(path, span_s[1] - time.time())
        length_s = span_s[1] - span_s[0]
        cpu = ((path.cpu_s("sender") - before[0]) / length_s, (path.cpu_s("receiver") - before[1]) / length_s)
        wait(path, 0.6)  # for the relay's next line
    is_equal = None
    if cell.is_file:
        there = path.folder / "in" / "content"
        is_equal = there.exists() and sha256_of(there) == sha256_of(content)
    load = os.getloadavg()[0]
    path.stop()
    arrived = Samples(watched).lines
    grown = [now for before, now in pairwise(arrived) if now["content_bytes"] > before["content_bytes"]]
    packets = [now["unix_s"] for before, now in pairwise(arrived) if now["came_bytes"] >= before["came_bytes"] + 1000]
    goodput_bps = FILE_BYTES * 8 / (grown[-1]["unix_s"] - packets[0]) if cell.is_file else _goodput_bps(grown, span_s)
    came = Samples(watched)
    return Measured(
        goodput_bps,
        first_packet_s=packets[0] - began_s,
        first_content_s=grown[0]["unix_s"] - began_s,
        resumed_s=_after(packets, mended_s),
        content_resumed_s=_after([one["unix_s"] for one in grown], mended_s),
        is_equal=is_equal,
        took_s=span_s[1] - began_s,
        cpu=cpu,
        curve_bps=tuple(came.between(began_s + second, began_s + second + 1, "came_bytes") * 8 for second in range(20)),
        load=load,
        **_counted(path, PORT, span_s, PARITY_BYTES if cell.damaged_links else 0),
    )


def _goodput_bps(grown: Sequence[dict[str, float]], span_s: tuple[float, float]) -> float:
    """Content arrives in chunks: from the last one before the span to the last one within it."""
    first, last = ([one for one in grown if one["unix_s"] <= end_s][-1] for end_s in span_s)
    return (last["content_bytes"] - first["content_bytes"]) * 8 / (last["unix_s"] - first["unix_s"])


def _after(times_s: Sequence[float], from_s: float | None) -> float | None:
    return None if from_s is None else next((one - from_s for one in times_s if one > from_s), float("inf"))


def _peer(cell: Cell, path: KernelPath, programs: Path) -> Measured:
    """Measure the kernel's TCP, or quinn."""

    def program(end: str) -> tuple[str | Path, ...]:
        if cell.control == "quinn":
            return programs / "quic_flow", end, f"{FAR}:{TCP_PORT}"
        return sys.executable, FLOW, end, FAR, f"{TCP_PORT}", "--control", cell.control

    arrived = path.start(path.far, *program("receive"), name="receiver")
    wait(path, 1)
    began_s = time.time()
    path.start(path.near, *program("send"), name="sender")
    wait(path, TCP_SPAN_S[1] + 0.6)
    load = os.getloadavg()[0]
    path.stop()
    span_s = (began_s + TCP_SPAN_S[0], began_s + TCP_SPAN_S[1])
    moved = Samples(arrived)
    goodput_bps = moved.between(*span_s, "moved_bytes") * 8 / (TCP_SPAN_S[1] - TCP_SPAN_S[0])
    curve_bps = tuple(moved.between(began_s + second, began_s + second + 1, "moved_bytes") * 8 for second in range(20))
    return Measured(goodput_bps, curve_bps=curve_bps, load=load, **_counted(path, TCP_PORT, span_s))


def _counted(path: KernelPath, port: int, span_s: tuple[float, float], parity_bytes: int = 0) -> dict[str, Any]:
    """Counts of the relay within a span, how late it was, commit and date."""
    relayed = Samples(path.relay)
    names = ("came", "came_bytes", "dropped", "lost", "damaged")
    counts = {name: round(relayed_count(relayed, port, span_s, name)) for name in names}
    last = relayed.lines[-1]
    back = [name for name in last["back"] if name.split()[2] == f"{port}"]
    return {
        "sent": counts["came"],
        "dropped": counts["dropped"],
        "lost": counts["lost"],
        "damaged": counts["damaged"],
        "content_bytes": counts["came_bytes"] - (HEADER_BYTES + parity_bytes) * counts["came"],
        "back": round(sum(relayed.between(*span_s, "back", name, "came") for name in back)),
        "longest_bytes": max((flow["longest_bytes"] for flow in last["there"].values()), default=0),
        "late_share": last["late"]["beyond_1_ms"] / max(last["late"]["packets"], 1),
        "commit": commit(),
        "date": date.today().isoformat(),
    }


def make_keys(folder: Path) -> None:
    """Make the keys of two hosts that trust each other."""

    def farlink(*words: str) -> str:
        return subprocess.run([*CLI, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()

    ship, shore = (farlink("keygen", "--keys", name) for name in ("ship", "shore"))
    farlink("trust", shore, "shore", "--keys", "ship")
    farlink("trust", ship, "ship", "--keys", "shore")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wait(path: KernelPath, seconds: float) -> None:
    """Let the programs run, as long as none fails."""
    until_s = time.time() + seconds
    while (left_s := until_s - time.time()) > 0:
        time.sleep(min(left_s, 1.0))
        if fault := path.fault():
            raise RuntimeError(fault)


def share_table(runs: Runs) -> str:
    """Goodput over the bound."""
    rows = []
    for cell in cells():
        if cell.wanted is None or (measured := runs.of(cell)) is None:
            continue
        bound = bound_bps(cell.place.loss)
        share = measured.goodput_bps / bound
        row = [cell.place.name, f"{cell.place.loss:g}", cell.control, f"{measured.goodput_bps / 1e6:.3f}", f"{bound / 1e6:.3f}"]
        rows.append([*row, f"{share:.3f}", f"at least {cell.wanted:g}", "yes" if share >= cell.wanted else "**no**"])
    return page.table(["path", "loss", "control", "goodput", "bound", "/ bound", "wanted", "met"], rows, "lrlr")


def tcp_table(runs: Runs) -> str:
    """The commands beside the kernel's TCP and quinn, each alone on the path."""
    rows = []
    controls = ("rate", "friendly", *PEERS)
    for loss in LOSSES:
        found = [runs.of(Cell(place("plain", loss), control)) for control in controls]
        rows.append([f"{loss:g}", *("" if one is None else f"{one.goodput_bps / 1e6:.3f}" for one in found)])
    return page.table(["loss", *controls], rows, "r")


def packet_table(runs: Runs) -> str:
    """What the commands sent for it, in the span, and what it cost."""
    rows = []
    for cell in cells():
        if not cell.is_farlink or cell.is_file or cell.outage_s > 0 or (measured := runs.of(cell)) is None:
            continue
        row = [cell.place.name, f"{cell.place.loss:g}", cell.control, f"{measured.sent:,}"]
        row += [f"{measured.dropped:,}", f"{measured.lost:,}"]
        if cell.control == "rate":
            needed = needed_packets(measured, measured.goodput_bps * (SPAN_S[1] - SPAN_S[0]) / 8)
            row += [f"{needed:,.0f}", f"{1 - needed / measured.sent:.3f}"]
        else:  # content is counted in chunks, which says little where the rate changes
            row += ["", ""]
        row.append(f"{measured.back:,}")
        row += [f"{used:.3f}" for used in measured.cpu]
        rows.append([*row, f"{measured.late_share:.4f}", f"{measured.load:.0f}"])
    head = ["path", "loss", "control", "sent", "dropped", "lost", "needed", "not needed / sent", "sent back", "CPU of sender"]
    return page.table([*head, "CPU of receiver", "late", "load"], rows, "lrlr")


def outage_table(runs: Runs) -> str:
    """How soon something arrived after outages."""
    rows = []
    for cell in cells():
        if cell.outage_s == 0 or (one := runs.of(cell)) is None:
            continue
        assert one.resumed_s is not None
        assert one.content_resumed_s is not None
        rows.append([cell.place.name, f"{one.resumed_s:.2f}", f"{one.content_resumed_s:.2f}"])
    return page.table(["path", "first data after s", "first content after s"], rows, "lr")


def file_table(runs: Runs) -> str:
    """Files over paths that reorder and damage packets."""
    rows = []
    found = {cell: measured for cell in cells() if cell.is_file and (measured := runs.of(cell)) is not None}
    # What a transfer carries beside the file, where nothing is lost.
    said_bytes = min((one.content_bytes - FILE_BYTES for one in found.values() if one.damaged + one.lost == 0), default=0)
    for cell, measured in found.items():
        gone = measured.lost + measured.damaged + measured.dropped
        full_bytes = measured.longest_bytes - HEADER_BYTES - (PARITY_BYTES if cell.damaged_links else 0)
        again_bytes = measured.content_bytes - FILE_BYTES - said_bytes
        name = cell.place.name + (", `--damaged-links`" if cell.damaged_links else "")
        row = [name, "yes" if measured.is_equal else "**no**", f"{measured.goodput_bps / 1e6:.3f}", f"{measured.sent:,}"]
        row += [f"{gone:,}", f"{again_bytes / 1e3:,.0f}"]
        rows.append([*row, "" if gone == 0 else f"{again_bytes / (gone * full_bytes):.3f}"])
    head = ["path", "SHA-256 equal", "Mb/s", "packets sent", "lost or damaged", "sent again kB", "sent again / lost or damaged"]
    return page.table(head, rows, "llr")


def needed_packets(measured: Measured, content_bytes: float) -> float:
    """Packets for content, each as long as the longest that came by."""
    return content_bytes / (measured.longest_bytes - HEADER_BYTES)


def curves(runs: Runs) -> Figure:
    """What arrived in each of the first seconds."""
    from farlink.plot.style import new_figure

    figure, (axes,) = new_figure()
    for cell in cells():
        measured = runs.of(cell)
        if cell.control in ("rate", "friendly") and cell.place.name == "plain" and measured is not None:
            style = "-" if cell.control == "friendly" else ":"
            color = f"C{LOSSES.index(cell.place.loss)}"
            axes.plot(
                [second + 0.5 for second in range(20)],
                [bps / 1e6 for bps in measured.curve_bps],
                style,
                color=color,
                label=f"{cell.control}, loss {cell.place.loss:g}",
            )
    axes.set(
        title="What arrived in the first 20 s", xlabel="seconds since the start of farlink send", ylabel="Mb/s", ylim=(0, None)
    )
    axes.legend(fontsize="x-small", ncols=2)
    return figure


def write_page(runs: Runs) -> None:
    """Write what was measured; the page keeps what it has of tables of which cells are missing."""
    missing = [cell for cell in cells() if runs.of(cell) is None]
    shown: page.Values = {name: table for name, table in tables(runs).items() if not set(cells_of(name)) & set(missing)}
    if missing:
        print(f"not measured: {'; '.join(map(str, missing))}", file=sys.stderr)
    else:
        shown |= about(runs)
    page.write("wire.md", {} if missing else {"wire": curves(runs)}, only=True, **shown)


def cells_of(table: str) -> list[Cell]:
    """What a table of the page shows."""
    shows: dict[str, Callable[[Cell], bool]] = {
        "outages": lambda cell: cell.outage_s > 0,
        "shares": lambda cell: cell.wanted is not None,
        "tcp": lambda cell: cell.place.name == "plain",
        "packets": lambda cell: cell.is_farlink and not cell.is_file and cell.outage_s == 0,
        "files": lambda cell: cell.is_file,
    }
    return [cell for cell in cells() if shows[table](cell)]


def tables(runs: Runs) -> page.Values:
    """The tables of the page."""
    return {
        "outages": outage_table(runs),
        "shares": share_table(runs),
        "tcp": tcp_table(runs),
        "packets": packet_table(runs),
        "files": file_table(runs),
    }


def about(runs: Runs) -> page.Values:
    """When and how all was measured."""
    found = [measured for cell in cells() if (measured := runs.of(cell)) is not None]
    ours = [measured for cell in cells() if cell.is_farlink and (measured := runs.of(cell)) is not None]
    dates = sorted({one.date for one in found})
    return {
        "commits": ", ".join(sorted({one.commit for one in found})),
        "dates": dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        "load_least": min(one.load for one in found),
        "load_most": max(one.load for one in found),
        "late": max(one.late_share for one in found),
        "longest": max(one.longest_bytes for one in ours),
        "payload": max(one.longest_bytes for one in ours) - HEADER_BYTES,
        "first": max(one.first_packet_s for one in ours),
        "resumed_wanted": RESUMED_S,
    }


def add_quinn(programs: Path) -> None:
    """Build the ends of a QUIC stream, which need packages that farlink does not, and put them beside the relay."""
    if (programs / "quic_flow").exists():
        return
    print("Building quic_flow (minutes the first time)", file=sys.stderr)
    command = ["cargo", "build", "--release", "--quiet", "--bin", "quic_flow"]
    if subprocess.run(command, cwd=QUINN_SOURCES, check=False).returncode != 0:
        quit_for("benches/loopback cannot be built", "see above; --only leaves quinn out")
    target = Path(os.environ.get("CARGO_TARGET_DIR", QUINN_SOURCES / "target"))
    shutil.copy2(target / "release" / "quic_flow", programs / "quic_flow")


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    programs = (arguments.programs or PROGRAMS).resolve()
    if not arguments.page:
        prepare(arguments.programs, ("farlink-core", "relay"))
    runs = Runs(programs)
    if not arguments.page:
        wanted = [cell for cell in cells() if arguments.only in str(cell)]
        if any(cell.control == "quinn" and runs.of(cell) is None for cell in wanted):
            add_quinn(programs)
        runs.measure(wanted, arguments.jobs)
    if not arguments.only:
        write_page(runs)


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of the relay, instead of building it")
    parser.add_argument("--only", default="", metavar="WORDS", help="measure cells with these words in their names")
    parser.add_argument("--jobs", type=int, default=1, help="how many cells at a time (%(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()
