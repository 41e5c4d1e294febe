"""`farlink trace`: import measured files, make traces of decoders' errors, draw traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli import trace_bursts, trace_synthesize
from farlink.cli.messages import data, note, user_errors

if TYPE_CHECKING:
    from farlink.channels.trace import Trace

app = typer.Typer(
    no_args_is_help=True, help="Import measured capacity, delay and loss, make traces of wrong bits, and draw them."
)
app.command(epilog=trace_bursts.EXAMPLES)(trace_bursts.bursts)
app.command(epilog=trace_synthesize.EXAMPLES)(trace_synthesize.synthesize)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Measured file, archive or directory, or a trace that was imported before.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of a measured file, recognised by default: mahimahi, leoreplayer-delay, rutgers-802.11, "
        "fjordlink-starlink, csv.",
    ),
]
Member = Annotated[
    str | None, typer.Option(help="File in an archive or directory; a pattern such as '*/dbm-10/*' joins several loss traces.")
]


@app.command("import")
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
) -> None:
    """Turn a measured FILE into a trace that scenarios can name, and print what it amounts to."""
    with user_errors():
        from farlink.channels import cache
        from farlink.channels.trace import write
        from farlink.errors import OutputError
        from farlink.output import check_writable

        target = output or Path(f"{_stem(file, member)}.npz")
        if target.suffix not in (".npz", ".parquet"):
            raise OutputError(f"{target}: no trace has the suffix {target.suffix!r}", "use .npz or .parquet")
        if target.exists() and target.resolve() == file.resolve():
            raise OutputError(f"{target} is the file to import", "choose another name with -o")
        check_writable(target)
        trace = cache.import_file(file, format=format, member=member)
        write(trace, target)
        _print_summary(trace)
        note(f"Trace written to {target}")


@app.command()
def show(
    file: File,
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
) -> None:
    """Draw FILE and print what it amounts to."""
    with user_errors():
        from farlink.channels import cache
        from farlink.output import check_writable
        from farlink.plot import trace as picture

        target = output or Path(f"{_stem(file, member)}.png")
        check_writable(target)
        trace = cache.import_file(file, format=format, member=member)
        picture.save(trace, target)
        _print_summary(trace)
        note(f"Picture written to {target}")


def _stem(file: Path, member: str | None) -> str:
    """Name of an output: that of the input without its directory and known suffixes."""
    name = Path(member).name.strip("*?") if member else ""
    name = name or file.name
    for suffix in (".gzip", ".gz", ".tar", ".tgz", ".parquet", ".npz", ".txt", ".csv"):
        name = name.removesuffix(suffix)
    return name or "trace"


def _print_summary(trace: Trace) -> None:
    from farlink.channels.describe import describe

    lines = [("Title", trace.title), *describe(trace)]
    width = max(len(label) for label, _ in lines)
    data("".join(f"{label:<{width}}  {value}\n" for label, value in lines))
