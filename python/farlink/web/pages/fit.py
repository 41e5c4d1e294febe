"""How long calls last: the measured survival with the fitted curves, as `farlink bundle fit` has them."""

from __future__ import annotations

import asyncio
from html import escape
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from farlink.channels.calls.describe import FIT_HEAD
from farlink.errors import FarlinkError
from farlink.operator.live.status import duration
from farlink.untrusted import printable
from farlink.web.data.line_rows import mean_words
from farlink.web.data.survival import Survival, survival_of
from farlink.web.pages.frame import Site, choice_of_bundle, element, frame, table, told
from farlink.web.pages.timeline import chosen

# Distribution -> colour and kind of its line.
_LOOKS = {"exponential": ("--second", "solid"), "weibull": ("--third", "dashed"), "two-state-markov": ("--fourth", "dotted")}
_UNITS = (("s", 1.0, 300.0), ("min", 60.0, 300.0), ("h", 3600.0, 96.0), ("days", 86_400.0, float("inf")))
# A fit is work of a second for the processor: one at a time.
_ONE = asyncio.Semaphore(1)


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/fit", response_timeout=60)
    async def fit_page(bundle: str = "", line: str = "") -> None:
        with frame(site, "Fit", "/fit") as said:
            try:
                watched = chosen(site, bundle)
                choice_of_bundle(site, "/fit", watched.key)
                calls = await asyncio.to_thread(watched.calls)
                lines = sorted(calls.spans)
                _choice_of_line(watched.key, lines, line)
                spans = [span for name in lines if line in ("", name) for span in calls.of(name)]
                async with _ONE:
                    found = await asyncio.to_thread(survival_of, spans)
            except FarlinkError as error:
                said.set_content(told(error))
                return
            if calls.warning:
                element("p", markup=f"<strong>Journal:</strong> {escape(printable(calls.warning, 600))}", classes="alert")
            whose = f"line {printable(line, 40)}" if line else "all lines"
            element(
                "p",
                f"Calls of {whose} in the last 30 days: {found.calls}, of which {found.drops} dropped. "
                f"Mean up time {mean_words(spans)}.",
            )
            _show(found)


def _choice_of_line(key: str, lines: list[str], chosen_line: str) -> None:
    links = "".join(
        f'<li><a href="/fit?{escape(urlencode({"bundle": key, "line": name}))}"'
        f"{' aria-current=true' if name == chosen_line else ''}>{escape(name or 'all lines')}</a></li>"
        for name in ("", *lines)
    )
    element("nav", markup=f"<ul>{links}</ul>", classes="choice").props('aria-label="Lines"')


def _show(found: Survival) -> None:
    if found.reason:
        element("p", f"No fit: {found.reason}.")
        return
    ui.echart(_options(found)).classes("chart").props(
        'role=img aria-label="Share of calls still up over time; tables below have the same"'
    )
    rows = [[escape(cell) or "-" for cell in row] for row in found.rows]
    names = [name[0].upper() + name[1:] for name in FIT_HEAD]
    element(
        "div",
        markup=table(names, rows, "The star marks the fit of least AIC; p is the probability of such a misfit by chance."),
    )
    element("div", markup=_points(found))
    element("p", "farlink bundle fit tells more: redials, clusters of drops, causes.", classes="muted")


def _options(found: Survival) -> dict[str, Any]:
    reach_s = found.measured[-1][0]
    unit, size = next((unit, size) for unit, size, limit in _UNITS if reach_s / size < limit)
    ink: dict[str, Any] = {":color": "farlinkColour('--ink')"}
    split = {"lineStyle": {":color": "farlinkColour('--rule')"}}
    series: list[dict[str, Any]] = [_curve("measured", found.measured, size, "--measured", "solid", 3, step="end")]
    series += [_curve(name, points, size, *_LOOKS[name], 2) for name, points in found.fitted.items()]
    axis = {"nameTextStyle": ink, "axisLabel": {**ink, "showMaxLabel": False}, "splitLine": split}
    return {
        "animation": False,
        "tooltip": {"trigger": "axis", "confine": True, ":valueFormatter": "(value) => Number(value).toFixed(3)"},
        "legend": {"top": 0, "textStyle": ink},
        "grid": {"left": 16, "right": 24, "top": 56, "bottom": 48, "containLabel": True},
        "xAxis": {
            "type": "value",
            "name": f"time, {unit}",
            "nameLocation": "middle",
            "nameGap": 30,
            "max": reach_s / size,
            **axis,
        },
        "yAxis": {"type": "value", "name": "share still up", "min": 0, "max": 1, **axis, "axisLabel": ink},
        "series": series,
    }


def _curve(
    name: str, points: list[tuple[float, float]], size: float, colour: str, look: str, width: int, *, step: str | None = None
) -> dict[str, Any]:
    drawn = f"farlinkColour('{colour}')"
    curve: dict[str, Any] = {
        "name": name,
        "type": "line",
        "showSymbol": False,
        "lineStyle": {"type": look, "width": width, ":color": drawn},
        "itemStyle": {":color": drawn},
        "data": [[at_s / size, share] for at_s, share in points],
    }
    return curve if step is None else {**curve, "step": step}


def _points(found: Survival) -> str:
    """Some points of the curves, for who does not see them."""
    reach_s = found.measured[-1][0]
    rows = []
    for part in (0.1, 0.25, 0.5, 0.75, 1.0):
        at_s = part * reach_s
        row = [duration(at_s), f"{_at(found.measured, at_s):.3f}"]
        rows.append(row + [f"{_at(points, at_s):.3f}" for points in found.fitted.values()])
    return table(["Still up after", "measured", *found.fitted], rows, "Share of calls that are still up")


def _at(points: list[tuple[float, float]], at_s: float) -> float:
    return [share for time_s, share in points if time_s <= at_s + 1e-9][-1]
