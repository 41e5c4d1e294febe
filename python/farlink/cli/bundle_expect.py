"""`farlink bundle expect`: a scenario of a bundle of IP paths, from its configuration and its logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import note, user_errors

if TYPE_CHECKING:
    from farlink.net.expected_paths import Given

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle expect ship.toml --journal ship.log --metrics metrics.txt -o expect.toml && farlink run expect.toml

farlink bundle expect ship.toml --path starlink:50e6:0.014 --path lte:10e6:0.02 --path iridium:2400:0.7 -o expect.toml

farlink bundle expect ship.toml --metrics metrics.txt --calls iridium=calls.jsonl -o expect.toml
"""


def expect(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration of farlink bundle carry, a TOML file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="TOML", help="The scenario; traces of paths are written beside it.")
    ],
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What journalctl -o short-unix -u farlink-bundle@NAME wrote.", show_default=False),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Metrics that were saved now and then, each time behind a line '# at SECONDS'.",
            show_default=False,
        ),
    ] = None,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=LOG",
            help="When the modem of a path was down, by a log of its calls; may be repeated.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:BPS:S",
            help="Rate and one-way delay of a path, which go before what logs say; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a scenario of a bundle of IP paths, whose paths are as the bundle's own logs have found them.

    The scenario runs the code of farlink bundle carry in virtual time: farlink run says what each flow and each path gets.
    """
    with user_errors():
        from farlink.net.expected_paths import expected_paths
        from farlink.output import whole_file
        from farlink.scenario import from_data

        given = dict(_given(text) for text in path or [])
        found = expected_paths(
            config, journal=journal, metrics=metrics, calls=dict(_calls(text) for text in calls or []), given=given
        )
        for name, text in found.traces.items():
            with whole_file(output.with_name(name)) as temporary:
                temporary.write_text(text, encoding="utf-8")
        scenario = from_data(found.data, base=output.parent)
        scenario.points()
        with whole_file(output) as temporary:
            temporary.write_text(scenario.to_toml(), encoding="utf-8")
        for sentence in found.notes:
            note(f"note: {sentence}")
        note(f"scenario: {output}" + "".join(f", {name}" for name in found.traces))


def _given(text: str) -> tuple[str, Given]:
    from farlink.errors import ArgumentError
    from farlink.net.expected_paths import Given

    name, *numbers = text.split(":")
    try:
        rate_bps, delay_s = (float(number) for number in numbers)
    except ValueError as error:
        raise ArgumentError(f"--path {text}: it has no rate and delay", "write for example starlink:50e6:0.014") from error
    return name, Given(rate_bps, delay_s)


def _calls(text: str) -> tuple[str, list[tuple[float, float]]]:
    from farlink.channels.calls.replay import down_times
    from farlink.channels.calls.study import load
    from farlink.errors import ArgumentError

    name, sign, log = text.partition("=")
    if not sign:
        raise ArgumentError(f"--calls {text}: it names no log", "write for example iridium=calls.jsonl")
    _, links = load([Path(log)])
    if len(links) != 1:
        raise ArgumentError(
            f"--calls {text}: the log has {len(links)} links, and a path is one", "give a log of its modem alone"
        )
    times = down_times(links)[0]
    return name, [(times.origin_s + begin, times.origin_s + end) for begin, end in times.outages]
