"""Write the part of `docs/validation/wire.md` on a far, lossy link, a part of `make wire`. A quarter of an hour, as root.

A coded stream of `farlink-net`, sealed, by its example `coded`, over the example `relay` with 10 s one way and a loss of 0.3.
What was measured is kept in `out/wire-far.jsonl`; `--page` measures nothing and writes the page only.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import page
from kernel_paths import FAR, KernelPath, Place, Samples
from measuring import PROGRAMS, commit, finish_or_quit, keep_line, kept_lines, prepare
from wire import HEADER_BYTES, PACKET_BYTES, PORT, make_keys, wait

KEPT = page.ROOT / "out" / "wire-far.jsonl"
RATE_BPS, ROUND_TRIP_S, LOSS = 5e6, 20.0, 0.3
# A bandwidth-delay product.
QUEUE_PACKETS = 8333
SPAN_S = (500.0, 900.0)
WANTED = 0.95


@dataclass(frozen=True)
class Measured:
    """Counts of a stream: of its content, and of its packets at the relay within the span."""

    goodput_bps: float
    # From the start to the beginning of the span.
    start_bps: float
    sent: int
    lost: int
    dropped: int
    late_share: float
    load: float
    commit: str
    date: str


def stream(programs: Path) -> Measured:
    """Send from the start to the end of the span."""
    place = Place("far", QUEUE_PACKETS, loss=LOSS, rate_bps=RATE_BPS, round_trip_s=ROUND_TRIP_S)
    with KernelPath(place, programs, seed=1) as path:
        make_keys(path.folder)
        program, address = programs / "coded", f"{FAR}:{PORT}"
        arrived = path.start(path.far, program, "receive", "shore", address, f"{LOSS}", name="receiver")
        wait(path, 1)
        began_s = time.time()
        path.start(path.near, program, "send", "ship", address, f"{LOSS}", f"{RATE_BPS:g}", name="sender")
        wait(path, SPAN_S[1] + 0.6)
        load = os.getloadavg()[0]
        path.stop()
        moved, relayed = Samples(arrived), Samples(path.relay)
        span_s = (began_s + SPAN_S[0], began_s + SPAN_S[1])
        [flow] = {flow for line in relayed.lines for flow in line["there"] if flow.split()[-1] == f"{PORT}"}
        last = relayed.lines[-1]["late"]
        counts = {name: round(relayed.between(*span_s, "there", flow, name)) for name in ("came", "lost", "dropped")}
    return Measured(
        moved.between(*span_s, "moved_bytes") * 8 / (SPAN_S[1] - SPAN_S[0]),
        moved.between(began_s, span_s[0], "moved_bytes") * 8 / SPAN_S[0],
        counts["came"],
        counts["lost"],
        counts["dropped"],
        last["beyond_1_ms"] / max(last["packets"], 1),
        load,
        commit(),
        date.today().isoformat(),
    )


def write_page(measured: Measured) -> None:
    """Write what was measured."""
    bound_bps = (1 - LOSS) * RATE_BPS * (PACKET_BYTES - HEADER_BYTES) / PACKET_BYTES
    share = measured.goodput_bps / bound_bps
    row = [f"{SPAN_S[0]:g} to {SPAN_S[1]:g} s", f"{measured.goodput_bps / 1e6:.3f}", f"{bound_bps / 1e6:.3f}", f"{share:.3f}"]
    row += [f"at least {WANTED:g}", "yes" if share >= WANTED else "**no**"]
    row += [f"{measured.sent:,}", f"{measured.lost:,}", f"{measured.dropped:,}"]
    head = ["span", "goodput Mb/s", "bound", "/ bound", "wanted", "met", "sent", "lost", "dropped"]
    page.write(
        "wire.md",
        {},
        only=True,
        far=page.table(head, [row], "lr"),
        far_start=measured.start_bps / 1e6,
        far_commit=measured.commit,
        far_late=measured.late_share,
        far_load=measured.load,
    )


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    found = [Measured(**kept) for kept in kept_lines(KEPT)]
    if not arguments.page:
        prepare(arguments.programs, ("farlink-core", "relay"), ("farlink-net", "coded"))
        found.append(stream((arguments.programs or PROGRAMS).resolve()))
        keep_line(KEPT, asdict(found[-1]))
    if not found:
        raise RuntimeError("nothing was measured yet")
    write_page(found[-1])


def main() -> None:
    """Measure, and write the part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of relay and coded, instead of building them")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()
