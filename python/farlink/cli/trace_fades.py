"""`farlink trace fades`: how deep, how often and how long a received power fades."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.power_options import DEFAULT_RECEIVER, ReceiverName, numbers, power_trace
from farlink.cli.trace_summary import summary_lines

if TYPE_CHECKING:
    from farlink.channels.fades import Fades

EXAMPLES = """
[bold]Examples[/bold]

farlink trace fades link.npz

farlink trace fades link.npz --threshold-db -1,-2,-3,-6 --receiver 1.35e-9,0.8 --json -
"""


def fades(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Trace of received power, or a file that is imported without options.")
    ],
    threshold_db: Annotated[str, typer.Option(metavar="DB,...", help="Thresholds relative to the mean power.")] = "-3,-6,-10",
    receiver: ReceiverName = DEFAULT_RECEIVER,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write all of it as JSON; - is standard output.")] = None,
) -> None:
    """Fade rate and length, scintillation, correlation time and bit error rate of a received power, without its blockages."""
    with user_errors():
        from farlink.channels import cache
        from farlink.channels import fades as statistics
        from farlink.channels.power import blocked, sample_rate_hz
        from farlink.channels.receiver import Receiver
        from farlink.channels.summary import power_summary
        from farlink.destinations import check_outputs

        thresholds = numbers("--threshold-db", threshold_db, "-3,-6,-10")
        model = Receiver.parse(receiver)
        check_outputs([("--json", json, "JSON")], {"the trace": file})
        trace = power_trace(cache.import_file(file, kinds=["power"]), str(file))
        rate_hz = sample_rate_hz(trace)
        found = statistics.fade_statistics(trace["power_w"], rate_hz, thresholds, blocked=blocked(trace))
        if json != "-":
            data(summary_lines(trace, model) + "\n" + _table(found))
        if json is not None:
            _write(json, {"title": trace.title, **power_summary(trace, model)}, found)


def _table(found: list[Fades]) -> str:
    head = (
        f"{'threshold':>9}  {'fades':>8}  {'rate, 1/s':>16}  {'time below':>10}  {'mean, ms':>16}  {'median':>8}  {'p90':>8}  "
        f"{'p99':>8}  {'longest':>8}"
    )
    lines = [head]
    for one in found:
        rate = _with_interval(one.rate_per_s, one.rate_ci95_per_s)
        mean = _with_interval(1e3 * one.mean_s, 1e3 * one.mean_ci95_s)
        lengths = "  ".join(f"{_plain(1e3 * value):>8}" for value in (one.median_s, one.p90_s, one.p99_s, one.max_s))
        lines.append(
            f"{one.threshold_db:>6g} dB  {one.fades:>8,}  {rate:>16}  {100 * one.time_below:>8.3g} %  {mean:>16}  {lengths}"
        )
    return "\n".join([*lines, "± is the half-width of the 95 % interval over 20 blocks of the record", ""])


def _with_interval(mean: float, half_width: float) -> str:
    from farlink.units import Scale

    return Scale(1.0, "").interval(mean, half_width)


def _plain(value: float) -> str:
    return f"{value:.3g}" if value == value else "–"


def _write(name: str, known: dict[str, Any], found: list[Fades]) -> None:
    import json as json_text
    from dataclasses import asdict

    from farlink import __version__
    from farlink.output import whole_file

    content = {"farlink": __version__, **_without_nan(known), "fades": [_without_nan(asdict(one)) for one in found]}
    text = json_text.dumps(content, allow_nan=False, indent=1) + "\n"
    if name == "-":
        data(text)
        return
    with whole_file(name) as temporary:
        temporary.write_text(text, encoding="utf-8")
    note(f"json: {name}")


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Unknown values are null."""
    return {key: None if isinstance(value, float) and value != value else value for key, value in row.items()}
