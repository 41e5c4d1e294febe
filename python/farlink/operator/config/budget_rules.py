"""Rules for budgets of a ``bundle.toml``: no limits that are never reached, and no money without a price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from farlink.operator.config.broken import Broken
from farlink.operator.config.toml_places import Path as KeyPath

_PAIRS = (("airtime_s_per_day", "airtime_s_per_month"), ("money_per_day", "money_per_month"))
_MONEY = ("money_per_day", "money_per_month")
_DAY_S = 86_400


def of_budgets(
    common: Mapping[str, Any], own: Sequence[Mapping[str, Any]], shared: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Iterator[Broken]:
    """Rules of budgets.

    Parameters
    ----------
    common
        Of each line: the table ``[budget]``.
    own
        Of single lines, whose keys go before the common ones.
    shared
        Of all lines together.
    rows
        The lines.
    """
    for at, mine in enumerate(own):
        yield from _of_line(common, mine, shared, at, is_dialling=rows[at].get("role", "dial") == "dial")
    yield from _day_and_month(shared, lambda _: ("bundle_budget",))
    prices = [{**common, **mine}.get("money_per_min") for mine, row in zip(own, rows, strict=True) if _dials(row)]
    for key in _MONEY:
        if key in shared and not any(price is not None for price in prices):
            message = f"bundle_budget.{key}: no line that dials has a price"
            yield Broken(("bundle_budget", key), message, "say what a minute costs with money_per_min, or limit the airtime")
    most_s = _DAY_S * len(rows)
    if shared.get("airtime_s_per_day", 0) > most_s:
        message = (
            f"bundle_budget.airtime_s_per_day: {shared['airtime_s_per_day']:g}, and a day of {len(rows)} lines has {most_s}"
        )
        yield Broken(("bundle_budget", "airtime_s_per_day"), message, f"give at most {most_s}, or leave it out")


def _dials(row: Mapping[str, Any]) -> bool:
    return bool(row.get("role", "dial") == "dial")


def _of_line(
    common: Mapping[str, Any], mine: Mapping[str, Any], shared: Mapping[str, Any], at: int, *, is_dialling: bool
) -> Iterator[Broken]:
    whole = {**common, **mine}

    def table_of(key: str) -> KeyPath:
        return ("line", at, "budget") if key in mine else ("budget",)

    for key in _MONEY:
        if key in whole and "money_per_min" not in whole:
            where = table_of(key)
            message = f"{_shown(where)}.{key} without money_per_min"
            yield Broken((*where, key), message, "say what a minute costs, or limit airtime_s_per_day")
    if "money_per_min" in mine and not is_dialling:
        message = f"line[{at}].budget.money_per_min: an answering line pays nothing"
        yield Broken(("line", at, "budget", "money_per_min"), message, "leave the price out")
    yield from _day_and_month(whole, table_of)
    for key in (*_PAIRS[0], *_PAIRS[1]):
        if key in whole and key in shared and whole[key] > shared[key]:
            where = table_of(key)
            message = f"{_shown(where)}.{key}: {whole[key]:g} is more than all lines may have, {shared[key]:g}"
            yield Broken((*where, key), message, f"give at most {shared[key]:g}, or bundle_budget.{key} more")


def _day_and_month(table: Mapping[str, Any], table_of: Any) -> Iterator[Broken]:
    """A day's limit above that of the month is never reached."""
    for day, month in _PAIRS:
        if day in table and month in table and table[day] > table[month]:
            where = table_of(day)
            message = f"{_shown(where)}.{day}: {table[day]:g} is more than {month}, {table[month]:g}: it is never reached"
            yield Broken((*where, day), message, f"give at most {table[month]:g}, or leave it out")


def _shown(table: KeyPath) -> str:
    return f"{table[0]}" if len(table) == 1 else f"line[{table[1]}].budget"
