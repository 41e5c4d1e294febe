"""`farlink bundle`: operation of bundles of lines, statistics from their logs, and logs that are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli import (
    bundle_alert_test,
    bundle_bank,
    bundle_carry,
    bundle_check,
    bundle_expect,
    bundle_generate,
    bundle_log,
    bundle_operate,
    bundle_ppp,
    bundle_report,
    bundle_serve,
    bundle_simulate,
    bundle_token,
)
from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.channels.calls.study import Study

app = typer.Typer(no_args_is_help=True, help="Operate bundles of lines that drop out, and look at their logs.")

_FIT_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle fit journal.jsonl

farlink bundle fit events.csv --link modem-1 --plot drops.png -o drops.toml

farlink bundle fit events.csv --link modem-1 --replay modem-1.toml

farlink bundle fit greenland.csv --zone America/Godthab

farlink bundle fit 5g-router/*.parquet --replay bundle.toml --handover-s 0.2

farlink bundle fit sg*.comm.log.gz --json - | jq '.parts[].name'
"""


@app.callback()
def bundle() -> None:
    """Operate bundles of lines that drop out, and look at their logs."""


@app.command(epilog=_FIT_EXAMPLES)
def fit(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs of calls; compressed ones (.gz) too.")],
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of the logs, recognised by default: journal, csv, seaglider, slocum, fjordlink-5g, fjordlink-starlink.",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        list[str] | None, typer.Option("--link", metavar="NAME", help="Only this link; may be repeated.", show_default=False)
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Where times without a zone were written: UTC, +02:00, or a name such as Europe/Berlin.",
            show_default=False,
        ),
    ] = None,
    pause_s: Annotated[
        float, typer.Option(metavar="S", help="Times from a drop to the next call above this are pauses, not redials.")
    ] = 3600.0,
    replicates: Annotated[
        int, typer.Option(metavar="N", help="Samples that the bootstrap of Anderson and Darling's test draws.")
    ] = 499,
    seed: Annotated[int, typer.Option(help="Seed of its random numbers.")] = 1,
    json: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Write all of it as JSON; - is standard output.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Picture to write, .png, .svg or .pdf.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TOML", help="Write the fitted process as a scenario has it.", show_default=False
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="TOML|-",
            help="Write the log itself as a scenario has it: when the link was down; - is standard output.",
            show_default=False,
        ),
    ] = None,
    handover_s: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="With --replay: take each handover for an interruption of so many seconds, which logs do not have.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fit how long links stay up, how often they drop and how soon they are back: per link and for the bundle.

    Calls that ended on purpose count as links that stayed up for at least so long. Exponential, Weibull and two-state
    Markov fits, each tested; whether drops cluster; what is known of their causes.
    """
    with user_errors():
        from farlink.channels.calls import replay as played
        from farlink.channels.calls.describe import report
        from farlink.channels.calls.distributions import DISTRIBUTIONS
        from farlink.channels.calls.process import scenario_text
        from farlink.channels.calls.study import study
        from farlink.destinations import check_outputs
        from farlink.limits import check_seed
        from farlink.output import whole_file

        _check_numbers(pause_s, replicates)
        _check_handovers(handover_s, replay)
        check_seed(seed)
        check_outputs(
            [("--json", json, "JSON"), ("--plot", plot, "picture"), ("-o", output, "TOML"), ("--replay", replay, "TOML")],
            dict(zip(map(str, logs), logs, strict=True)),
        )
        with progress_bar("fits", "parts") as progress:
            found = study(
                logs,
                format=format,
                only=link or (),
                zone=zone,
                pause_s=pause_s,
                replicates=replicates,
                seed=seed,
                progress=progress,
            )
        # A log with handovers and no drop has no process, which is an error only if it is requested; a replay needs none.
        fewest = 1 if replay is None else DISTRIBUTIONS["exponential"].fewest
        is_dropping = output is not None or found.whole.drops >= fewest
        process = scenario_text(found.whole, measured_on=_names(found)) if is_dropping else ""
        schedule = ""
        if replay is not None:
            schedule = played.scenario_text(found.links, measured_on=_names(found), handover_s=handover_s)
        _warn(found)
        if replay == "-":
            data(schedule)
        elif json != "-":
            data(report(found) + ("\n" + process if process else ""))
        if json is not None:
            _write_json(json, found)
        if output is not None:
            with whole_file(output) as temporary:
                temporary.write_text(process, encoding="utf-8")
            note(f"scenario: {output}")
        if replay not in (None, "-"):
            with whole_file(replay) as temporary:
                temporary.write_text(schedule, encoding="utf-8")
            note(f"replay: {replay}")
        if plot is not None:
            from farlink.plot import call_drops

            call_drops.save(found, plot)
            note(f"picture: {plot}")


app.command(epilog=bundle_generate.EXAMPLES)(bundle_generate.generate)
app.command(epilog=bundle_bank.EXAMPLES)(bundle_bank.bank)
app.command(epilog=bundle_carry.EXAMPLES)(bundle_carry.carry)
app.command(epilog=bundle_ppp.EXAMPLES)(bundle_ppp.ppp)
app.command(epilog=bundle_check.EXAMPLES)(bundle_check.check)
app.command(epilog=bundle_log.EXAMPLES)(bundle_log.log)
app.command(epilog=bundle_expect.EXAMPLES)(bundle_expect.expect)
app.command(epilog=bundle_simulate.EXAMPLES)(bundle_simulate.simulate)
app.command(epilog=bundle_operate.UP_EXAMPLES)(bundle_operate.up)
app.command(epilog=bundle_operate.DOWN_EXAMPLES)(bundle_operate.down)
app.command(epilog=bundle_operate.STATUS_EXAMPLES)(bundle_operate.status)
app.command(epilog=bundle_operate.HOLD_EXAMPLES)(bundle_operate.hold)
app.command(epilog=bundle_operate.RELEASE_EXAMPLES)(bundle_operate.release)
app.command(epilog=bundle_operate.REDIAL_EXAMPLES)(bundle_operate.redial)
app.command(epilog=bundle_operate.INJECT_EXAMPLES)(bundle_operate.inject)
app.command("alert-test", epilog=bundle_alert_test.EXAMPLES)(bundle_alert_test.alert_test)
app.command(epilog=bundle_report.EXAMPLES)(bundle_report.report)
app.command(epilog=bundle_serve.EXAMPLES)(bundle_serve.serve)
app.command(epilog=bundle_serve.MONITORING_EXAMPLES)(bundle_serve.monitoring)
app.add_typer(bundle_token.app, name="token")


def _check_numbers(pause_s: float, replicates: int) -> None:
    from farlink.errors import JournalError

    if not 0 < pause_s < 1e10:
        raise JournalError(f"--pause-s: {pause_s:g} is not a time above 0", "give it in s, for example 3600")
    # With 19 the least probability there is would be that of an accepted fit.
    if not 39 <= replicates <= 100_000:
        raise JournalError(f"--replicates: {replicates} is out of range", "give 39 to 100000; 499 tells 5 % well enough")


def _check_handovers(handover_s: float | None, replay: str | None) -> None:
    from farlink.channels.calls.handovers import LONGEST_S, SHORTEST_S
    from farlink.errors import JournalError

    if handover_s is None:
        return
    if replay is None:
        raise JournalError("--handover-s changes what --replay writes, and that is not given", "give --replay FILE, too")
    if not SHORTEST_S <= handover_s <= LONGEST_S:
        remedy = f"give {SHORTEST_S:g} to {LONGEST_S:g} s; what takes longer is a drop"
        raise JournalError(f"--handover-s: {handover_s:g} is out of range", remedy)


def _names(found: Study) -> str:
    """The fitted logs, on one line."""
    names = [log.name for log in found.logs]
    return ", ".join(names if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"])


def _warn(found: Study) -> None:
    """Warn about links with too few drops for the request."""
    for part in found.parts:
        times = part.times.get("airtime")
        if times is not None and times.sample.times_s.size and not times.judged[0].fit.is_fitted:
            note(f"note: {part.name}: no fit of up times: {times.judged[0].fit.reason}")


def _write_json(name: str, found: Study) -> None:
    import json as json_text

    from farlink import __version__
    from farlink.output import whole_file

    text = json_text.dumps({"farlink": __version__, **found.to_dict()}, allow_nan=False, indent=1) + "\n"
    if name == "-":
        data(text)
        return
    with whole_file(name) as temporary:
        temporary.write_text(text, encoding="utf-8")
    note(f"json: {name}")
