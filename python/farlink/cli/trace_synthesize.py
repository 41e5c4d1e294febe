"""`farlink trace synthesize`: synthetic received power of an optical link, C/N0 under rain, or delay to a vehicle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, labelled, note, user_errors
from farlink.cli.progress import progress_bar
from farlink.cli.trace_settings import setting, table

EXAMPLES = """
[bold]Examples[/bold]

farlink trace synthesize --list

farlink trace synthesize kiodo -o kiodo.npz --delay kiodo-delay.npz

farlink trace synthesize fasolt -o fasolt.npz --duration-s 60 --seed 7 --set alpha=3 --set tau_s=0.01

farlink trace synthesize rain -o rain.npz --set latitude_deg=50.67 --set longitude_deg=4.61 --set elevation_deg=30 --set
frequency_hz=19.7e9 --set clear_sky_dbhz=95
"""


def synthesize(
    preset: Annotated[
        str | None, typer.Argument(metavar="PRESET", help="What it stands for; --list names them.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Trace to write, .npz or .parquet.")
    ] = None,
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration-s", metavar="S", help="How long, in seconds.", show_default="100; all of a whole pass; 30 days of rain"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random stream.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a parameter; repeat as needed. PRESET --list shows them."),
    ] = None,
    delay: Annotated[
        Path | None,
        typer.Option("--delay", metavar="FILE", help="Write the propagation delay of the pass too, .npz or .parquet."),
    ] = None,
    is_list: Annotated[bool, typer.Option("--list", help="List the presets, or the parameters of PRESET, and stop.")] = False,
) -> None:
    """Draw received power of a free-space optical link, C/N0 under rain, or the delay to a vehicle, labelled as synthetic."""
    with user_errors():
        from farlink.channels.synthesis.summary import summary_lines
        from farlink.channels.synthesis.text import settled
        from farlink.channels.trace_file import write
        from farlink.destinations import check_outputs
        from farlink.errors import OutputError

        if is_list or preset is None:
            if preset is None and not is_list:
                raise OutputError("no preset is given", "name one; farlink trace synthesize --list shows them")
            data(_presets() if preset is None else _parameters(preset))
            return
        if output is None:
            raise OutputError("no file is given", f"say where to write: -o {preset}.npz")
        check_outputs([("-o", output, "trace"), ("--delay", delay, "trace")])
        given = {"seed": str(seed), **dict(setting(text) for text in settings or [])}
        if duration_s is not None:
            given["duration_s"] = str(duration_s)
        wanted = settled(preset, given)
        delays = None if delay is None else wanted.delay()
        with progress_bar(wanted.title, "steps") as progress:
            trace = wanted.draw(progress)
        lines = summary_lines(wanted, trace)
        data(labelled(lines))
        write(trace, output)
        note(f"Trace written to {output}")
        if delay is not None and delays is not None:
            write(delays, delay)
            note(f"Delay written to {delay}")


def _presets() -> str:
    from farlink.channels.synthesis.presets import PRESETS
    from farlink.channels.synthesis.text import SERIES

    titles = {name: preset.title for name, preset in PRESETS.items()} | {name: title for name, (title, _) in SERIES.items()}
    width = max(map(len, titles))
    return "".join(f"{name:<{width}}  {title}\n" for name, title in titles.items())


def _parameters(name: str) -> str:
    from farlink.channels.synthesis.parameters import PARAMETERS, with_overrides
    from farlink.channels.synthesis.presets import preset
    from farlink.channels.synthesis.text import SERIES

    if name in SERIES:
        title, parameters = SERIES[name]
        return f"{name}: {title}\n" + table(parameters)
    found = preset(name)
    head = f"{name}: {found.title}\n" + (f"{found.notes}\n" if found.notes else "")
    return head + table(PARAMETERS, with_overrides(found.values, {}), found.values)
