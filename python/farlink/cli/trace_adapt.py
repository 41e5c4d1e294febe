"""`farlink trace adapt`: a modem over a series of C/N0, as a rate and an error rate that scenarios replay."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, labelled, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.tune.play import Played

EXAMPLES = """
[bold]Examples[/bold]

farlink trace adapt rain.npz --table table.json --modem modem.toml --share 0.125 --detection-s 2 -o rain

farlink trace adapt rain.npz --table table.json --modem modem.toml --policy fixed --setting "qpsk, CV 3/4" -o fixed
"""


def adapt(
    cn0: Annotated[
        Path, typer.Argument(metavar="CN0", help="Trace of C/N0, a log of it, or synthetic:rain?latitude_deg=...&...")
    ],
    table: Annotated[Path, typer.Option(metavar="TABLE", help="Look-up table of the modem, .json or .toml: farlink tune.")],
    modem: Annotated[Path, typer.Option(metavar="MODEM", help="Description of the modem (TOML).")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="PREFIX", help="Write PREFIX-rate.npz and PREFIX-ber.npz.", show_default=False),
    ] = None,
    share: Annotated[float, typer.Option(metavar="S", help="Share of the carrier.")] = 1.0,
    flows: Annotated[int, typer.Option(metavar="N", help="TCP connections on it.")] = 1,
    round_trip_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Round trip, of a table over several.", show_default="the table's"),
    ] = None,
    buffer_bdp: Annotated[
        float | None,
        typer.Option(metavar="BDP", help="Buffer in bandwidth-delay products, likewise.", show_default="the table's"),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(help="adaptive: by the table; ideal: the best at every instant; fixed: one setting for all of the time."),
    ] = "adaptive",
    setting: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help='Which setting is fixed: "MODULATION, CODE" as tables name them.',
            show_default="the best on average",
        ),
    ] = None,
    detection_s: Annotated[
        float, typer.Option(metavar="S", help="How old a C/N0 is when the modem acts on it (adaptive).")
    ] = 0.0,
    step_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Time from value to value.", show_default="the longest that meets all times"),
    ] = None,
) -> None:
    """Play a modem over a C/N0: print how often it switches and what it carries, and write the rate and the errors of its link.

    Goodput and outage are by the study in TABLE: its model, its path, its largest usable loss.
    """
    with user_errors():
        from farlink.channels import cache
        from farlink.channels.trace_file import write
        from farlink.destinations import check_outputs
        from farlink.errors import TraceError
        from farlink.tune import modem as modems
        from farlink.tune.basis import basis
        from farlink.tune.play import play
        from farlink.tune.reader import TuningWarning

        targets = [] if output is None else [Path(f"{output}-rate.npz"), Path(f"{output}-ber.npz")]
        check_outputs([("-o", target, "trace") for target in targets], {"the trace of C/N0": cn0})
        with warnings.catch_warnings():
            # Printed below.
            warnings.simplefilter("ignore", TuningWarning)
            made = basis(table, round_trip_s=round_trip_s, buffer_bdp=buffer_bdp)
        read = modems.load(modem)
        trace = cache.import_file(cn0, kinds=["cn0"])
        if trace.kind != "cn0":
            raise TraceError(f"{cn0}: a {trace.kind} trace, where C/N0 is wanted", "give one of kind cn0: farlink trace import")
        with progress_bar("settings", "settings") as progress:
            played = play(
                trace,
                made.lookup,
                read,
                share=share,
                flows=flows,
                policy=policy,
                setting=setting,
                detection_s=detection_s,
                step_s=step_s,
                goodput=made.goodput,
                path=made.path,
                usable_loss=made.usable_loss,
                progress=progress,
            )
        traces = [played.rate_trace(), played.ber_trace()] if targets else []
        _print(played, made.goodput)
        for sentence in (*made.warnings, *played.warnings):
            note(f"warning: {sentence}")
        for target, one in zip(targets, traces, strict=True):
            write(one, target)
            note(f"Trace written to {target}")


def _print(played: Played, goodput: str) -> None:
    from farlink.units import scale_for

    scale = scale_for("goodput_bps", [played.information_bps])
    lines = [
        ("Title", str(played.meta["title"])),
        ("Duration", f"{played.duration_s:g} s, in steps of {played.step_s:g} s"),
        ("No transmission", f"{100 * played.silence:.3g} % of the time"),
        ("Outage", f"{100 * played.outage:.3g} % of the time: none, or over {played.usable_loss:g} of the segments lost"),
        ("Switches", f"{played.switches_per_hour:.3g} per hour"),
        ("Information rate", f"{played.information_bps * scale.factor:.4g} {scale.unit} on average"),
        ("Goodput", f"{played.mean_goodput_bps * scale.factor:.4g} {scale.unit} on average, by {goodput}"),
        *(("Set to", f"{name}: {100 * share:.3g} % of the time") for name, share in played.time_in.items()),
    ]
    data(labelled(lines))
