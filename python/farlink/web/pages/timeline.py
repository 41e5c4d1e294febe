"""When each line was in which state: a chart to zoom into, and the same as a table."""

from __future__ import annotations

import time
from html import escape
from typing import Any

from nicegui import ui

from farlink.errors import ArgumentError, FarlinkError
from farlink.operator.live.status import duration
from farlink.untrusted import printable
from farlink.web.data.bundles import Watched
from farlink.web.data.calls import Calls, Span, within
from farlink.web.data.line_rows import clock
from farlink.web.pages.frame import Site, choice_of_bundle, element, frame, table, told
from farlink.web.pages.overview import looked
from farlink.web.pages.signs import COLOURS, sign

SPANS = {"1h": 3600.0, "6h": 6 * 3600.0, "1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}
_WORDS = {"1h": "1 hour", "6h": "6 hours", "1d": "1 day", "7d": "7 days", "30d": "30 days"}
_EVERY_S = 10.0
# More would make a browser slow; the newest are drawn.
_MOST_DRAWN = 6000
_ROWS = 30
_STATES = ("connected", "connecting", "dropped", "failed", "blocked", "held", "waiting", "ended")


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/timeline", response_timeout=30)
    async def timeline(bundle: str = "", span: str = "6h") -> None:
        with frame(site, "Timeline", "/timeline") as said:
            try:
                watched = chosen(site, bundle)
                if span not in SPANS:
                    raise ArgumentError(f"span {printable(span, 20)!r} is none", f"choose one of {', '.join(SPANS)}")
            except FarlinkError as error:
                said.set_content(told(error))
                return
            choice_of_bundle(site, "/timeline", watched.key, span=span)
            links = "".join(
                f'<li><a href="/timeline?bundle={watched.key}&amp;span={one}"{" aria-current=true" if one == span else ""}>'
                f"{words}</a></li>"
                for one, words in _WORDS.items()
            )
            element("nav", markup=f"<ul>{links}</ul>", classes="choice").props('aria-label="How far back"')
            await _show(watched, SPANS[span])


def chosen(site: Site, key: str) -> Watched:
    """The bundle that a page is about: the first, unless one is named.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    if key:
        return site.bundles.get(key)
    first = next(iter(site.bundles), None)
    if first is None:
        raise ArgumentError("there is no bundle yet", "make one: see Profiles")
    return first  # type: ignore[no-any-return]


async def _show(watched: Watched, span_s: float) -> None:
    warned = element("div")
    words = "Each line has a row. The more of a call there is, the higher its bar."
    element("p", f"{words} Drag the ends of the slider, or turn the wheel, to zoom.", classes="muted")
    element("p", "Times are UTC. The table below says the same.", classes="muted")
    chart = (
        ui.echart({})
        .classes("chart")
        .props('role=img aria-label="States of the lines over time; the table below has the same"')
    )
    rows = element("div")

    async def update() -> None:
        view, calls, warning = await looked(watched)
        warned.set_content(
            f'<p class="alert"><strong>Journal:</strong> {escape(printable(warning, 600))}</p>' if warning else ""
        )
        now_s = time.time()
        lines = view.lines or sorted(calls.spans if calls else [])
        spans = _cut(calls, lines, now_s - span_s, now_s)
        options = _options(spans, lines, now_s - span_s, now_s)
        if chart.options.get("series") != options["series"] or not chart.options:
            # The user's zoom stays.
            if chart.options:
                del options["dataZoom"]
            chart.options.update(options)
            chart.update()
        rows.set_content(_table(spans))

    await update()
    ui.timer(_EVERY_S, update, immediate=False)


def _cut(calls: Calls | None, lines: list[str], since_s: float, until_s: float) -> list[Span]:
    if calls is None:
        return []
    found = [span for line in lines for span in within(calls.of(line), since_s, until_s)]
    return sorted(found, key=lambda span: span.start_s)[-_MOST_DRAWN:]


def _options(spans: list[Span], lines: list[str], since_s: float, until_s: float) -> dict[str, Any]:
    """Options of ECharts. Keys with a colon are evaluated by the browser: colours are those of the page, light or dark."""
    ink: dict[str, Any] = {":color": "farlinkColour('--ink')"}
    rule: dict[str, Any] = {"lineStyle": {":color": "farlinkColour('--rule')"}}
    series = []
    for state in _STATES:
        data = [_datum(span, lines) for span in spans if span.state == state]
        series.append(
            {
                "name": state,
                "type": "custom",
                ":renderItem": f"(params, api) => farlinkSpan({state!r}, params, api)",
                "itemStyle": {":color": f"farlinkColour('--{COLOURS[state]}')"},
                "encode": {"x": [0, 1], "y": 2},
                "clip": True,
                "data": data,
            }
        )
    return {
        "animation": False,
        "useUTC": True,
        "tooltip": {":formatter": "farlinkTip", "confine": True},
        "legend": {"top": 0, "textStyle": ink, "type": "scroll"},
        "grid": {"left": 8, "right": 16, "top": 40, "bottom": 70, "containLabel": True},
        "xAxis": {
            "type": "time",
            "min": since_s * 1000,
            "max": until_s * 1000,
            "axisLabel": {**ink, "hideOverlap": True},
            "splitLine": {"show": True, **rule},
        },
        "yAxis": {"type": "category", "data": lines, "inverse": True, "axisLabel": ink, "axisTick": {"show": False}},
        "dataZoom": [
            {"type": "slider", "filterMode": "weakFilter", "bottom": 16, "height": 24, "textStyle": ink},
            {"type": "inside", "filterMode": "weakFilter"},
        ],
        "series": series,
    }


def _datum(span: Span, lines: list[str]) -> dict[str, Any]:
    length = f"for {duration(span.length_s)}" + (" so far" if span.is_open else "")
    words = [f"{span.line}: {span.state}", length, f"from {clock(span.start_s)} UTC", span.cause]
    words += [f"then {span.ended}: {span.end_cause}"] if span.ended else []
    # Of an open span the end moves, but no more than a bar shows.
    return {"value": [span.start_s * 1000, span.end_s * 1000, lines.index(span.line)], "words": [w for w in words if w]}


def _table(spans: list[Span]) -> str:
    if not spans:
        return "<p>Nothing is recorded in this time.</p>"
    rows = [
        [
            clock(one.start_s),
            escape(one.line),
            sign(one.state),
            duration(one.length_s),
            escape(printable(one.cause, 100)) or "-",
        ]
        for one in reversed(spans[-_ROWS:])
    ]
    left = len(spans) - len(rows)
    more = f"; {left:,} older ones are in the chart and in the journal" if left else ""
    return "<h2>The same as a table</h2>" + table(
        ["Since", "Line", "State", "For", "Why"], rows, f"Times are UTC, the newest first{more}."
    )
