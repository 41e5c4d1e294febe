"""`farlink trace show` of a capture: the time-sequence graph of a connection, with its losses and the drops of its links."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, labelled, note
from farlink.cli.progress import busy

if TYPE_CHECKING:
    from farlink.capture.connection import Direction
    from farlink.capture.connections import Connection
    from farlink.plot.time_sequence import Drop

EXAMPLES = """
[bold]Examples[/bold]

farlink trace show Verizon-EVDO-driving.down.gz

farlink trace show iperf.pcap --drops journal.jsonl

farlink trace show iperf.pcap --drops journal.jsonl --offset-s 3600 --span 600:1200 -o minutes.svg
"""

Drops = Annotated[
    list[Path] | None,
    typer.Option("--drops", metavar="LOG", help="Of a capture: log of calls whose drops are drawn. Repeatable.",
                 show_default=False),
]  # fmt: skip
Links = Annotated[
    list[str] | None,
    typer.Option("--link", metavar="NAME", help="Of a capture: only the drops of this link. Repeatable.", show_default="all"),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone",
        metavar="ZONE",
        help="Of a capture: where times of LOG without a zone were written: UTC, +02:00, or a name such as Europe/Berlin.",
        show_default=False,
    ),
]
Offset = Annotated[
    float | None,
    typer.Option(
        "--offset-s",
        metavar="S",
        help="Of a capture: added to the times of the log; 0 unless the capture was simulated, whose clock begins at 0 with "
        "the log.",
        show_default=False,
    ),
]
Stream = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Of a capture: which connection, as tcp.stream of Wireshark; AeroTP's follow TCP's.",
        show_default="the largest",
    ),
]
Span = Annotated[
    str | None,
    typer.Option(metavar="FROM:TO", help="Of a capture: which part, in s from its first packet.", show_default="all of it"),
]

_LISTED = 10
# Segments that were sent so long before a drop may be on the way when it happens.
_UNDER_WAY_S = 1.0


def is_asked(
    file: Path,
    *,
    drops: list[Path] | None,
    links: list[str] | None,
    zone: str | None,
    offset_s: float | None,
    stream: int | None,
    span: str | None,
) -> bool:
    """Whether a file is a capture.

    Raises
    ------
    CaptureError
        If it is none, and an option is given that only captures have.
    """
    from farlink.capture.files import is_capture
    from farlink.errors import CaptureError

    given = {"--drops": drops, "--link": links, "--zone": zone, "--offset-s": offset_s, "--stream": stream, "--span": span}
    named = [option for option, value in given.items() if value is not None]
    if is_capture(file):
        if offset_s is not None and drops is None:
            raise CaptureError("--offset-s moves the times of a log, and there is none", "add --drops LOG")
        if zone is not None and drops is None:
            raise CaptureError("--zone is that of the times of a log, and there is none", "add --drops LOG")
        if links is not None and drops is None:
            raise CaptureError("--link chooses links of a log, and there is none", "add --drops LOG")
        if offset_s is not None and not abs(offset_s) < 1e11:
            raise CaptureError(f"--offset-s: {offset_s:g} is no time", "give what to add to the times of the log, in s")
        return True
    if named and file.exists():
        raise CaptureError(f"{file}: {named[0]} is for captures, and this is none", "give a pcap or pcapng file")
    return False


def show(
    file: Path,
    target: Path,
    *,
    drops: list[Path],
    links: list[str],
    zone: str | None,
    offset_s: float | None,
    stream: int | None,
    span: str | None,
) -> None:
    """Draw a connection of a capture and print what it amounts to."""
    from farlink.capture import connections, files
    from farlink.destinations import check_outputs
    from farlink.errors import CaptureError
    from farlink.extras import require
    from farlink.output import whole_file
    from farlink.plot.style import LOOK
    from farlink.plot.time_sequence import drops_on, time_sequence

    check_outputs([("-o", target, "picture")])
    matplotlib = require("matplotlib", "a figure")
    part = _span(span)
    notes: list[str] = []
    with busy(f"reading {file.name}") as say:
        capture = files.read(file)
        say("sorting packets by connection")
        found = connections.connections(capture)
        connection = connections.chosen(found, capture, stream)
        begin_s, end_s = connection.span_s
        if part is not None and part[0] >= end_s - begin_s:
            message = f"--span: {span} is behind the end of the connection, which is {end_s - begin_s:.6g} s long"
            raise CaptureError(message, "give begin and end in s from its first packet")
        drawn: list[Drop] = []
        if drops:
            from farlink.channels.calls.study import load

            _, chosen = load(drops, only=links, zone=zone)
            drawn, added_s = drops_on(chosen, connection.span_s, offset_s=offset_s)
            if offset_s is None and added_s:
                begins = "the capture's clock begins at 0: the first event of the log is put there"
                notes.append(f"note: {begins} (--offset-s {added_s:.3f})")
        say("drawing")
        figure = time_sequence(connection, drawn, title=f"{file.name}: {connection.name}", span_s=part)
        stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix, {})
        with matplotlib.rc_context({**LOOK, "svg.hashsalt": "farlink"}), whole_file(target) as temporary:
            figure.savefig(temporary, format=target.suffix[1:], dpi=150, metadata=stamp)
    for line in notes:
        note(line)
    if capture.note:
        note(f"note: {capture.note}")
    _print(capture.name, found, connection, drawn if drops else None)
    note(f"Picture written to {target}")


def _span(text: str | None) -> tuple[float, float] | None:
    from farlink.errors import CaptureError

    if text is None:
        return None
    first, colon, second = text.partition(":")
    try:
        low, high = float(first or 0), float(second)
    except ValueError:
        low, high = math.nan, math.nan
    if not (colon and math.isfinite(high) and 0 <= low < high):
        raise CaptureError(f"--span: {text!r} is no part of a capture", "give begin and end in s, for example 600:1200")
    return low, high


def _print(name: str, found: list[Connection], connection: Connection, drops: list[Drop] | None) -> None:
    from farlink import units
    from farlink.capture import aerotp
    from farlink.plot.time_sequence import followed_by_repetition

    flow = connection.forward
    begin_s, end_s = connection.span_s
    rows = [
        ("Capture", f"{name}, {_counted(found)}"),
        ("Connection", f"{connection.stream}: {connection.name}"),
        ("Length", f"{end_s - begin_s:.6g} s"),
        ("Data", units.show(flow.stream_bytes, "data_bytes")),
        ("Segments", f"{flow.time_s.size}, {int(flow.is_again.sum())} of them sent again"),
    ]
    if flow.is_lost is not None and flow.is_arrived is not None:
        rows.append(("Lost", _lost(flow, drops)))
    elif isinstance(connection, aerotp.Connection):
        rows.append(("Lost", f"the capture cannot tell: {connection.untold}"))
    if drops is not None:
        links = len({drop.link for drop in drops})
        text = f"{len(drops)}, of {links} link{'s' if links != 1 else ''}"
        if drops:
            text += f"; {followed_by_repetition(connection, drops)} with something sent again until 60 s after the link is back"
        rows.append(("Drops", text))
    data(labelled(rows))
    others = sorted((one for one in found if one is not connection), key=lambda one: -one.data_bytes)
    if others:
        more = f", and {len(others) - _LISTED} smaller ones" if len(others) > _LISTED else ""
        listed = "; ".join(f"{one.stream}: {one.name}, {units.show(one.data_bytes, 'data_bytes')}" for one in others[:_LISTED])
        data(f"Others (--stream)  {listed}{more}\n")


def _counted(found: list[Connection]) -> str:
    """How many connections of which protocol."""
    from farlink.capture import aerotp

    special = sum(isinstance(one, aerotp.Connection) for one in found)
    counts = [(len(found) - special, "TCP"), (special, "AeroTP")]
    return ", ".join(f"{count} {name} connection{'s' if count > 1 else ''}" for count, name in counts if count)


def _lost(flow: Direction, drops: list[Drop] | None) -> str:
    """How many segments were lost, of how many no acknowledgement tells, and which were sent while a link was down."""
    assert flow.is_lost is not None
    assert flow.is_arrived is not None
    lost = int(flow.is_lost.sum())
    text = f"{lost} segment{'s' if lost != 1 else ''} of {flow.time_s.size}"
    if lost and drops:
        down = sum(
            any(drop.begin_s - _UNDER_WAY_S <= time_s <= (math.inf if math.isnan(drop.end_s) else drop.end_s) for drop in drops)
            for time_s in flow.time_s[flow.is_lost]
        )
        text += f", {down} of them sent while a link was down or in the second before"
    untold = flow.time_s.size - lost - int(flow.is_arrived.sum())
    return text + (f"; of {untold} no acknowledgement tells" if untold else "")
