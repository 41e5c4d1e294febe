"""`farlink bundle bank`: modems that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, note, user_errors

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle bank --modems 4 --rate-bps 2400 --delay-s 0.7 --mean-up-s 1800

farlink bundle bank --modems 16 --dir modems --log journal.jsonl --seed 7

farlink bundle bank --profile hayes --modems 2 --duration-s 3600

farlink bundle bank bank.toml --dir modems
"""


def bank(
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="The bank, a TOML or JSON file. Options come before its keys.")
    ] = None,
    modems: Annotated[
        int | None, typer.Option(metavar="N", help="Modems, 1 to 64.", show_default="2, or those of CONFIG")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Whose modems: iridium-9522b, a3la, iridium-9505a, hayes, sim7600, or a TOML file.",
            show_default="iridium-9522b",
        ),
    ] = None,
    rate_bps: Annotated[float | None, typer.Option(metavar="BPS", help="Bit rate of a call.", show_default="2400")] = None,
    delay_s: Annotated[float | None, typer.Option(metavar="S", help="Delay of a call, one way.", show_default="0.7")] = None,
    mean_up_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Mean time from connection to drop (exponential).", show_default="calls do not drop"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG", help="Drop calls as those of this log did; any that `farlink bundle fit` reads.", show_default=False
        ),
    ] = None,
    link: Annotated[str | None, typer.Option(metavar="NAME", help="Only this link of the log.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the drops.", show_default="1")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", metavar="FOLDER", help="Where the names of the ports are made.", show_default="a temporary one"),
    ] = None,
    duration_s: Annotated[float | None, typer.Option(metavar="S", help="How long.", show_default="until Ctrl-C")] = None,
) -> None:
    """Play N modems: pseudo-terminals that speak AT, call each other by number, and lose their calls.

    Prints name, number and port of each. A lost carrier closes the pty, which is a hang-up for its reader; the name of the
    port then stands for a new one.
    """
    with user_errors():
        import asyncio

        from farlink.errors import OperatorError
        from farlink.operator import bank as banks

        if duration_s is not None and not 0 < duration_s <= 1e9:
            raise OperatorError(f"--duration-s {duration_s}: not above 0 s and at most 1e9 s", "give seconds, for example 60")
        given = {
            "modems": modems,
            "profile": profile,
            "rate_bps": rate_bps,
            "delay_s": delay_s,
            "mean_up_s": mean_up_s,
            "log": None if log is None else str(log),
            "link": link,
            "seed": seed,
        }
        found = banks.of_options(**given) if config is None else banks.read(config, **given)
        asyncio.run(
            banks.serve(
                found,
                folder=folder,
                duration_s=duration_s,
                ready=lambda ports: data("".join(f"{name} {number} {path}\n" for name, number, path in ports)),
                tell=lambda at_s, said: note(f"{at_s:.1f} s: {said}"),
            )
        )
