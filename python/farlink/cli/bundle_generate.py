"""`farlink bundle generate`: calls drawn from causes of drops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.channels.calls.generator.causes import DropCauses
    from farlink.channels.calls.generator.draw import DrawnCalls

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle generate --list

farlink bundle generate -o journal.jsonl --lines 8 --duration-s 172800

farlink bundle generate --replay bundle.toml --set handover_failure=0.1 --set snr_mean_db=9

farlink bundle generate --replay bundle.toml --set speed_mps=20 --set mobile_ip_rtt_s=0.3

farlink bundle generate -o - --snr --set snr_mean_db=9 > journal.jsonl
"""


def generate(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="LOG|-", help="Log to write, .jsonl; - is standard output.", show_default=False),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="TOML|-",
            help="Write when each line was down or interrupted, as the bundle of a scenario has it; - is standard output.",
            show_default=False,
        ),
    ] = None,
    lines: Annotated[int, typer.Option(metavar="N", help="Lines of the bundle, 1 to 64.")] = 4,
    duration_s: Annotated[float, typer.Option("--duration-s", metavar="S", help="Length of the log, in seconds.")] = 86_400.0,
    seed: Annotated[int, typer.Option(help="Seed of every random stream.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a parameter; repeat as needed. --list shows them."),
    ] = None,
    snr: Annotated[bool, typer.Option("--snr", help="Write the signal-to-noise ratio of each line every 4 s, too.")] = False,
    is_list: Annotated[bool, typer.Option("--list", help="List the parameters and their defaults, and stop.")] = False,
) -> None:
    """Draw calls that drop for causes: handovers, low signal, cells at a speed, set-up, and others at a constant rate.

    The defaults are fitted to measured calls of Iridium. The log is one that `farlink bundle fit` reads; the lines of
    --replay go into a scenario. Both are synthetic.
    """
    with user_errors():
        from farlink.channels.calls import replay as played
        from farlink.channels.calls.generator.draw import draw
        from farlink.channels.calls.generator.parameters import PARAMETERS, causes_of
        from farlink.channels.calls.journal import HEADING, line_of, write
        from farlink.cli.trace_settings import setting, table
        from farlink.destinations import check_outputs
        from farlink.errors import JournalError, TraceError
        from farlink.limits import check_seed
        from farlink.output import whole_file

        if is_list:
            data(table(PARAMETERS))
            return
        if output == "-" and replay == "-":
            raise JournalError("-o and --replay both go to standard output", "give one of them a file")
        check_seed(seed)
        _check_numbers(lines, duration_s)
        try:
            given = dict(setting(text) for text in settings or [])
        except TraceError as error:
            raise JournalError(error.message, "write for example --set handover_failure=0.05") from error
        causes = causes_of(given)
        if snr and causes.low_signal is None:
            raise JournalError("--snr: the signal has no ratio", "give its mean, for example --set snr_mean_db=9")
        check_outputs([("-o", output, ""), ("--replay", replay, "TOML")])
        with progress_bar("calls", "lines") as progress:
            drawn = draw(causes, lines=lines, duration_s=duration_s, seed=seed, with_snr=snr, progress=progress)
        origin = f"farlink bundle generate, synthetic, seed {seed}"
        schedule = "" if replay is None else played.bundle_text(drawn.down, source=origin)
        if output == "-":
            data("".join(f"{line}\n" for line in (HEADING, *map(line_of, drawn.events))))
        elif replay == "-":
            data(schedule)
        else:
            data(report(causes, drawn))
        if output not in (None, "-"):
            write(drawn.events, output)
            note(f"log: {output}")
        if replay not in (None, "-"):
            with whole_file(replay) as temporary:
                temporary.write_text(schedule, encoding="utf-8")
            note(f"replay: {replay}")


def report(causes: DropCauses, drawn: DrawnCalls) -> str:
    """Drops of each line by cause, and the rates that they come from."""
    from farlink.channels.calls.generator.draw import CELL, HANDOVER, LOW_SIGNAL, OTHER, SET_UP
    from farlink.channels.calls.generator.survival import drop_rates_hz
    from farlink.channels.calls.words import duration
    from farlink.text_table import table

    names = (HANDOVER, LOW_SIGNAL, CELL, SET_UP, OTHER)
    rows = []
    for times in drawn.down:
        events = [event for event in drawn.events if event.link == times.link]
        counts = [sum(event.kind == "dropped" and event.cause == name for event in events) for name in names]
        calls = sum(event.kind == "connected" for event in events)
        up = 100 * (1 - times.down_s / times.span_s)
        rows.append((times.link, f"{calls}", f"{sum(counts)}", *map(str, counts), f"{up:.1f} %"))
    rates = [f"{name} {duration(1 / rate)}" for name, rate in drop_rates_hz(causes).items() if rate > 0]
    foot = f"Mean time up between drops of a cause: {', '.join(rates)}\n" if rates else ""
    return table(("line", "calls", "drops", *names, "up"), rows) + "\n" + foot


def _check_numbers(lines: int, duration_s: float) -> None:
    from farlink.errors import JournalError

    if not 1 <= lines <= 64:
        raise JournalError(f"--lines: {lines} is out of range", "give 1 to 64")
    if not 1 <= duration_s <= 1e7:
        raise JournalError(f"--duration-s: {duration_s:g} is out of range", "give 1 to 1e7 s")
