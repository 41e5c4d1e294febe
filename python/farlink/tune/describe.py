"""A look-up table in words, for people: a line for each step."""

from __future__ import annotations

from itertools import groupby

from farlink.intervals import percent
from farlink.text_table import table as columns
from farlink.tune.impaired.impairment import words
from farlink.tune.row import OK, Row
from farlink.tune.table import Table
from farlink.units import Scale, scale_for

_HEAD = ("C/N0", "modulation", "code", "segment", "information", "bit errors", "lost", "goodput", "down", "up")


def report(table: Table) -> str:
    """The steps of a table: the range where each is the best, its setting, its goodput at its lowest C/N0, its thresholds."""
    scale = scale_for("goodput_bps", [row.information_bps or 0.0 for row in table.rows])
    blocks = [table.title]
    for place, rows in table.chosen():
        lines = [_line(list(step), scale) for _, step in groupby(rows, key=lambda row: row.step)]
        share, comma, rest = place.partition(",")
        head = f"{share}{_bandwidth(table, rows[0].share)}{comma}{rest}"
        blocks.append(f"{head}\n{columns(_HEAD, lines)}")
    blocks.append(
        f"rates in {scale.unit}, goodput by {table.study['goodput']}; errors and goodput at the lowest C/N0 of a line\n"
        f"{_intervals(table)}{_impairment(table)}"
        "C/N0 in dBHz: where a setting is the best, below which it is left (down), from which it is entered (up)"
    )
    return "\n\n".join(blocks) + "\n"


def _bandwidth(table: Table, share: float) -> str:
    """A share in symbols per second, if the study has bandwidths."""
    if not table.study.get("bandwidths_hz"):
        return ""
    scale = scale_for("bandwidth_hz", [whole := table.modem["symbol_rates_hz"][0]])
    return f" ({scale.exact(share * whole)} {scale.unit})"


def _intervals(table: Table) -> str:
    """The meaning of ±, where goodput is simulated."""
    if not any(row.goodput_half_width_bps for row in table.rows):
        return ""
    return f"± is the half-width of the {percent(table.study['precision']['level'])} interval\n"


def _impairment(table: Table) -> str:
    """The impairment on top of the modem's noise; bit errors are those of noise."""
    said = table.study.get("impairment")
    return (
        "" if said is None else f"impaired by {words(said)}; bit errors are those of noise alone; seed {table.study['seed']}\n"
    )


def _goodput(row: Row, scale: Scale) -> str:
    mean, half_width = row.goodput_bps or 0.0, row.goodput_half_width_bps or 0.0
    return scale.interval(mean, half_width) if half_width else f"{mean * scale.factor:.4g}"


def _line(step: list[Row], scale: Scale) -> tuple[str, ...]:
    first, last = step[0], step[-1]
    where = f"{first.cn0_dbhz:g}" if first is last else f"{first.cn0_dbhz:g} to {last.cn0_dbhz:g}"
    thresholds = tuple("–" if value is None else f"{value:g}" for value in (first.down_dbhz, first.up_dbhz))
    if first.status != OK:
        return (where, first.status, "", "", "", "", "", "", *thresholds)
    return (
        where,
        str(first.modulation),
        str(first.code),
        f"{first.segment_bytes} B",
        f"{(first.information_bps or 0.0) * scale.factor:.4g}",
        f"{first.ber:.1e}",
        f"{first.loss:.1e}",
        _goodput(first, scale),
        *thresholds,
    )
