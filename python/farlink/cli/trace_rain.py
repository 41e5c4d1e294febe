"""`farlink trace rain`: C/N0 of a satellite link from a measured attenuation by rain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.trace_summary import summary_lines

EXAMPLES = """
[bold]Examples[/bold]

farlink trace rain one_cml.h5 --column cml_0/channel_1 -o rain.npz --gaps hold --set clear_sky_dbhz=95 --set latitude_deg=47.66
--set longitude_deg=10.06 --set elevation_deg=30 --set frequency_hz=19.7e9

farlink trace rain beacon.csv -o beacon.npz --set clear_sky_dbhz=95 --set scale=none
"""


def rain(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Text with time_s and attenuation_db, or rsl (and tsl) of a microwave link; or HDF5 of pycomlink.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Trace to write, .npz or .parquet.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter; repeat as needed. --list shows them."),
    ] = None,
    gaps: Annotated[
        str, typer.Option(help="Missing values: refuse; hold the last; or take them as an outage, without signal.")
    ] = "refuse",
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of a text, or channel in HDF5.", show_default=False)
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the times, if not called time.", show_default=False)
    ] = None,
    sample_rate_hz: Annotated[
        float | None, typer.Option(metavar="HZ", help="Sampling rate, instead of times.", show_default=False)
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTER", help="Between the cells of a text: comma, semicolon, tab, space.", show_default=False
        ),
    ] = None,
    member: Annotated[str | None, typer.Option(help="File in an archive or directory.")] = None,
    is_list: Annotated[bool, typer.Option("--list", help="List the parameters, and stop.")] = False,
) -> None:
    """Turn a measured attenuation by rain into C/N0 of a satellite link, and print what it amounts to."""
    with user_errors():
        from farlink.channels.importers.recording import Hints, load_one
        from farlink.channels.rain.convert import PARAMETERS, cn0_of_measured
        from farlink.channels.rain.levels import read_measured
        from farlink.channels.trace_file import write
        from farlink.cli.trace_settings import setting, table
        from farlink.destinations import check_outputs
        from farlink.errors import OutputError

        if is_list:
            data(table(PARAMETERS))
            return
        if file is None or output is None:
            missing, remedy = ("measured file", "name it") if file is None else ("output", "say where to write: -o rain.npz")
            raise OutputError(f"no {missing} is given", f"{remedy}; farlink trace rain --list shows the parameters")
        check_outputs([("-o", output, "trace")], {"the measured file": file})
        hints = Hints(None, column, time_column, sample_rate_hz, None, separator)
        measured = read_measured(load_one(file, member, hints))
        trace = cn0_of_measured(measured, dict(setting(text) for text in settings or []), gaps=gaps, where=str(file))
        data(summary_lines(trace))
        write(trace, output)
        note(f"Trace written to {output}")
