"""`farlink bundle simulate`: days of a bundle with calls at random, through the operator's dialler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, user_errors

if TYPE_CHECKING:
    from farlink.operator.simulate import Days

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle simulate bundle.toml

farlink bundle simulate bundle.toml --days 365 --mean-up-s 1200 --fail 0.3

farlink bundle simulate bundle.toml --json | jq '.any_up'
"""


def simulate(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")],
    days: Annotated[float, typer.Option(help="For how many days.", min=0.01, max=10_000)] = 30.0,
    mean_up_s: Annotated[float, typer.Option(help="Mean time until a call drops, in s.", min=1.0, max=1e9)] = 3000.0,
    fail: Annotated[float, typer.Option(help="Share of dials that fail.", min=0.0, max=1.0)] = 0.1,
    dial_s: Annotated[float, typer.Option(help="Mean time that a dial takes, in s.", min=0.1, max=3600.0)] = 30.0,
    seed: Annotated[int, typer.Option(help="Seed of the random calls.", min=0, max=2**63 - 1)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Write the table as JSON.")] = False,
) -> None:
    """Let the bundle of FILE run for some days, with calls at random, and print what its lines did and cost.

    Lines are dialled by the same state machine, limits and budgets as by `farlink bundle up`. Nothing real is dialled.
    """
    with user_errors():
        from farlink.operator.config import load
        from farlink.operator.simulate import Calls
        from farlink.operator.simulate import simulate as run

        bundle, _ = load(config, needs_ports=False)
        found = run(bundle, days, Calls(mean_up_s, fail, dial_s), seed, config.parent)
        data(_as_json(found) if json else _shown(found))


def _shown(found: Days) -> str:
    from farlink.text_table import table

    span_s = found.days * 86_400
    rows = [
        (
            row.name,
            *(str(count) for count in (row.ups, row.attempts, row.drops, row.blocks)),
            f"{100 * row.up_s / span_s:.1f}",
            f"{row.airtime_s / 3600:.1f}",
            f"{row.money:.2f}",
        )
        for row in found.lines
    ]
    head = ("line", "ups", "attempts", "drops", "blocked", "up, %", "airtime, h", "money")
    return (
        table(head, rows)
        + f"\nAll lines that are wanted were up {100 * found.all_up_s / span_s:.1f} % of the time, at least one"
        + f" {100 * found.any_up_s / span_s:.1f} %. Costs: {sum(row.money for row in found.lines):.2f}.\n"
    )


def _as_json(found: Days) -> str:
    import json as json_text
    from dataclasses import asdict

    from farlink import __version__

    span_s = found.days * 86_400
    shares = {"all_up": found.all_up_s / span_s, "any_up": found.any_up_s / span_s}
    rows = [asdict(row) for row in found.lines]
    return json_text.dumps({"farlink": __version__, "days": found.days, **shares, "lines": rows}, indent=1) + "\n"
