"""`farlink trace`: import measured files, make traces of decoders' errors, draw traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli import (
    trace_adapt,
    trace_bursts,
    trace_calibrate,
    trace_fades,
    trace_packets,
    trace_rain,
    trace_receivers,
    trace_sequence,
    trace_synthesize,
)
from farlink.cli.messages import data, note, user_errors
from farlink.cli.power_options import DEFAULT_RECEIVER, ReceiverName
from farlink.cli.progress import busy
from farlink.cli.trace_summary import summary_lines

if TYPE_CHECKING:
    pass

app = typer.Typer(
    no_args_is_help=True,
    help="Import measured capacity, delay, loss, received power and C/N0, make traces of wrong bits, and draw them.",
)
app.command(epilog=trace_bursts.EXAMPLES)(trace_bursts.bursts)
app.command(epilog=trace_packets.EXAMPLES)(trace_packets.packets)
app.command(epilog=trace_synthesize.EXAMPLES)(trace_synthesize.synthesize)
app.command(epilog=trace_rain.EXAMPLES)(trace_rain.rain)
app.command(epilog=trace_adapt.EXAMPLES)(trace_adapt.adapt)
app.command(epilog=trace_calibrate.EXAMPLES)(trace_calibrate.calibrate)
app.command(epilog=trace_fades.EXAMPLES)(trace_fades.fades)
app.command(epilog=trace_receivers.EXAMPLES)(trace_receivers.receivers)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Measured file, archive or directory, or a trace that was imported before.")
]
Shown = Annotated[
    Path, typer.Argument(metavar="FILE", help="Trace, measured file, archive or directory; or a capture (pcap, pcapng).")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of a measured file, recognised by default: mahimahi, leoreplayer-delay, rutgers-802.11, "
        "fjordlink-starlink, csv; of received power csv-power, matlab, hdf5, netcdf; of C/N0 csv-cn0.",
    ),
]
Member = Annotated[
    str | None, typer.Option(help="File in an archive or directory; a pattern such as '*/dbm-10/*' joins several loss traces.")
]
_IMPORT_EXAMPLES = """
[bold]Examples[/bold]

farlink trace import Verizon-EVDO-driving.down.gz

farlink trace import power.csv --unit dBm --sample-rate-hz 10000 -o power.npz

farlink trace import record.mat --column P_rx --unit uW --sample-rate-hz 10000 --gaps blocked

farlink trace import modem.csv --gaps outage -o cn0.npz
"""

# How to read a measurement of received power, if the file does not say so itself.
Unit = Annotated[
    str | None,
    typer.Option(
        help="Unit of a received power: W, mW, uW, nW, pW, dBm, dBW, or linear for one without a unit.", show_default=False
    ),
]
Column = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column, variable or data set of the power; or its number from 1.", show_default=False),
]
TimeColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="That of the times, if not called time_s or the like.", show_default=False)
]
SampleRate = Annotated[
    float | None, typer.Option(metavar="HZ", help="Sampling rate of the power, instead of times.", show_default=False)
]
Gaps = Annotated[
    str | None,
    typer.Option(
        help="Missing values: refuse; hold the one before; or take them as blocked (power), as an outage (C/N0).",
        show_default="refuse",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Between the cells of a text: comma, semicolon, tab, space.", show_default=False),
]


@app.command("import", epilog=_IMPORT_EXAMPLES)
def import_(
    file: File,
    format: Format = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Trace to write, .npz or .parquet; by default FILE.npz in this folder."
        ),
    ] = None,
    member: Member = None,
    unit: Unit = None,
    column: Column = None,
    time_column: TimeColumn = None,
    sample_rate_hz: SampleRate = None,
    gaps: Gaps = None,
    separator: Separator = None,
) -> None:
    """Turn a measured FILE into a trace that scenarios can name, and print what it amounts to."""
    with user_errors():
        from farlink.channels import cache
        from farlink.channels.importers.recording import Hints
        from farlink.channels.trace_file import write
        from farlink.destinations import check_outputs
        from farlink.errors import OutputError

        target = output or Path(f"{_stem(file, member)}.npz")
        if target.exists() and target.resolve() == file.resolve():
            raise OutputError(f"{target} is the file to import", "choose another name with -o")
        check_outputs([("-o", target, "trace")])
        hints = Hints(unit, column, time_column, sample_rate_hz, gaps, separator)
        with busy(f"reading {file.name}") as say:
            trace = cache.import_file(file, format=format, member=member, hints=hints)
            say(f"writing {target.name}")
            write(trace, target)
            say("summing up")
            lines = summary_lines(trace)
        data(lines)
        note(f"Trace written to {target}")


@app.command(epilog=trace_sequence.EXAMPLES)
def show(
    file: Shown,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PICTURE",
            help="Picture to write, .png, .svg, .pdf or .html; by default FILE.png in this folder.",
        ),
    ] = None,
    format: Format = None,
    member: Member = None,
    receiver: ReceiverName = DEFAULT_RECEIVER,
    drops: trace_sequence.Drops = None,
    link: trace_sequence.Links = None,
    zone: trace_sequence.Zone = None,
    offset_s: trace_sequence.Offset = None,
    stream: trace_sequence.Stream = None,
    span: trace_sequence.Span = None,
) -> None:
    """Draw FILE and print what it amounts to. Of a received power also the bit error rate of RECEIVER.

    Of a capture the sequence numbers of its largest TCP or AeroTP connection over time, with what was sent again, and of AeroTP
    what was lost on the way; with --drops also when links were down.
    """
    with user_errors():
        if trace_sequence.is_asked(file, drops=drops, links=link, zone=zone, offset_s=offset_s, stream=stream, span=span):
            trace_sequence.show(
                file,
                output or Path(f"{_stem(file, None)}.png"),
                drops=drops or [],
                links=link or [],
                zone=zone,
                offset_s=offset_s,
                stream=stream,
                span=span,
            )
            return
        from farlink.channels import cache
        from farlink.channels.receiver import Receiver
        from farlink.destinations import check_outputs
        from farlink.plot import trace as picture

        target = output or Path(f"{_stem(file, member)}.png")
        check_outputs([("-o", target, "picture or page")])
        with busy(f"reading {file.name}") as say:
            trace = cache.import_file(file, format=format, member=member)
            model = Receiver.parse(receiver) if trace.kind == "power" else None
            say("drawing")
            picture.save(trace, target, model)
            say("summing up")
            lines = summary_lines(trace, model)
        data(lines)
        note(f"Picture written to {target}")


def _stem(file: Path, member: str | None) -> str:
    """Name of an output: that of the input without its directory and known suffixes."""
    name = Path(member).name.strip("*?") if member else ""
    name = name or file.name
    for suffix in (
        ".gzip",
        ".gz",
        ".tar",
        ".tgz",
        ".parquet",
        ".npz",
        ".txt",
        ".csv",
        ".mat",
        ".h5",
        ".hdf5",
        ".nc",
        ".pcap",
        ".pcapng",
        ".cap",
    ):
        name = name.removesuffix(suffix)
    return name or "trace"
