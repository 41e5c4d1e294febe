"""The first page: every line of every bundle, alerts, and orders to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode

from nicegui import ui

from farlink.errors import ArgumentError, FarlinkError
from farlink.operator.live.status import costs, title
from farlink.shown import counted
from farlink.untrusted import printable
from farlink.web.data.bundles import ORDERS, View, Watched
from farlink.web.data.calls import Calls
from farlink.web.data.line_rows import LineRow, alert_words, capital, line_rows
from farlink.web.pages.frame import EVERY_S, Site, element, file_words, frame, note, on_order, order_button, told
from farlink.web.pages.signs import sign

HEAD = ("Line", "State", "For", "Why", "Until", "Signal", "Drops", "Mean up time", "Throughput", "Orders")


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/", response_timeout=30)
    async def overview() -> None:
        with frame(site, "Overview", "/") as said:
            on_order(lambda order: carry_out(site, said, order))
            if not len(site.bundles):
                element(
                    "p", markup='There is no bundle yet. <a href="/profiles">Make one</a>, or start farlink web with its file.'
                )
            for one in site.bundles:
                await _Section(site, one).begin()


class _Section:
    """One bundle. Cells are kept and their contents set anew, so that who has the focus keeps it."""

    def __init__(self, site: Site, watched: Watched) -> None:
        self._site, self._watched = site, watched
        self._shown: list[str] = []
        self._cells: dict[str, list[ui.html]] = {}

    async def begin(self) -> None:
        with ui.element("section").classes("section").props(f"aria-labelledby=bundle-{self._watched.key}"):
            element("h2", f"Bundle {self._watched.key}").props(f"id=bundle-{self._watched.key}")
            self._lead = element("div")
            self._alerts = element("div").props("aria-live=polite")
            self._table = ui.element("div").classes("wide")
            self._buttons = element("p", classes="buttons")
        await self._update()
        ui.timer(EVERY_S, self._update, immediate=False)

    async def _update(self) -> None:
        view, calls, warning = await looked(self._watched)
        rows = line_rows(view, calls)
        self._lead.set_content(lead(view, warning, self._site))
        self._alerts.set_content(_alerts(view))
        if self._shown != [row.name for row in rows]:
            self._shown = [row.name for row in rows]
            self._make()
        for row in rows:
            for cell, content in zip(
                self._cells[row.name], _contents(row, self._watched.key, self._site.may_change), strict=True
            ):
                cell.set_content(content)
        self._buttons.set_content(bundle_buttons(view, self._site))

    def _make(self) -> None:
        self._table.clear()
        self._cells = {}
        if not self._shown:
            return
        with self._table, ui.element("table").props("role=table").classes("lines"):
            element("caption", "Drops and mean up time are those of the last 30 days in the journal, with the 95 % interval.")
            heads = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in HEAD)
            element("thead", markup=f'<tr role="row">{heads}</tr>').props("role=rowgroup")
            with ui.element("tbody").props("role=rowgroup"):
                for name in self._shown:
                    with ui.element("tr").props("role=row"):
                        self._cells[name] = [element("td").props(f'role=cell data-label="{head}"') for head in HEAD]


async def looked(watched: Watched) -> tuple[View, Calls | None, str]:
    """A bundle and its calls, and why there are none, or what is missing of them."""
    view = await asyncio.to_thread(watched.view)
    try:
        calls = await asyncio.to_thread(watched.calls)
    except FarlinkError as error:
        # An operator that has never run has no journal: that it is away is said already.
        return view, None, error.message if view.status is not None or view.bundle is None else ""
    return view, calls, calls.warning


def lead(view: View, warning: str, site: Site) -> str:
    """Lines above the table of a bundle."""
    parts = []
    if view.status is None:
        parts.append(
            f'<p class="error"><strong>Operator away:</strong> {escape(view.away)}<br><span>{escape(view.remedy)}</span></p>'
        )
        started = site.programs.told(view.path)
        if started is not None and not started.is_running and started.lines:
            last = "\n".join(started.lines)
            parts.append(f"<p>It was started here and ended with status {started.status}:</p><pre>{escape(last)}</pre>")
    else:
        said = title(view.status).removeprefix(f"Bundle {view.status['bundle']}: ")
        parts.append(f"<p>{escape(capital(said))}. {escape(costs(view.status))}</p>")
    if view.mistakes and view.status is not None:
        found = counted(len(view.mistakes), "mistake")
        parts.append(
            f'<p class="alert"><strong>File:</strong> {escape(file_words(view.path))} has {found} now. '
            f'<a href="/edit?bundle={view.key}">Correct it</a>; the operator goes on with what it has read.</p>'
        )
    if warning:
        parts.append(f'<p class="alert"><strong>Journal:</strong> {escape(printable(warning, 600))}</p>')
    return "".join(parts)


def _alerts(view: View) -> str:
    shown = []
    for one in view.alerts:
        severity = capital(printable(one.get("severity") or "alert", 20))
        shown.append(f'<p class="alert"><strong>{escape(severity)}:</strong> {escape(alert_words(one))}</p>')
    return "".join(shown)


def _contents(row: LineRow, key: str, may_change: bool) -> list[str]:
    address = escape("/line?" + urlencode({"bundle": key, "line": row.name}))
    name = f'<a href="{address}">{escape(row.name)}</a>' + (" (primary)" if row.is_primary else "")
    name = f"<span>{name}</span>"
    texts = (row.since, row.why, row.until, row.signal, row.drops, row.mean_up, row.throughput)
    return [
        name,
        sign(row.state),
        *(escape(text) for text in texts),
        line_buttons(row.name, row.state, key) if may_change else "",
    ]


def line_buttons(line: str, state: str, key: str) -> str:
    """Markup of the orders that do something to a line in this state."""
    if state == "unknown":
        return "-"
    if state == "held":
        found = [order_button("release", "Release", f"{line} is dialled again.", line=line, bundle=key)]
    else:
        asked = f"{line} {ORDERS['hold'].replace('hangs the line up, and dials it', 'is hung up, and dialled')}."
        found = [order_button("hold", "Hold", asked, is_with_reason=True, line=line, bundle=key)]
        asked = f"{line} is dialled now, whatever pause or block it is in."
        asked += " Its call is ended first: packets that are under way are lost." if state in ("connected", "silent") else ""
        found.append(order_button("redial", "Redial", asked, line=line, bundle=key))
    return f'<span class="buttons">{"".join(found)}</span>'


def bundle_buttons(view: View, site: Site) -> str:
    """Markup of what can be done to a whole bundle."""
    if not site.may_change:
        return ""
    if view.status is None:
        asked = f"farlink bundle up {file_words(view.path)}: it dials its lines, and goes on when the dashboard ends."
        return order_button("up", "Start operator", asked, bundle=view.key) if view.bundle is not None else ""
    asked = "All lines are hung up, and nothing is dialled until the operator is started again."
    return order_button("down", "Stop operator", asked, bundle=view.key)


async def carry_out(site: Site, said: ui.html, order: Mapping[str, str]) -> None:
    """Do what was confirmed, and say what came of it."""
    try:
        said.set_content(note(await asyncio.to_thread(_done, site, order)))
    except FarlinkError as error:
        said.set_content(told(error))


def _done(site: Site, order: Mapping[str, str]) -> str:
    if not site.may_change:
        raise ArgumentError("this dashboard shows only", "start it without --read-only")
    watched, what = site.bundles.get(order.get("bundle", "")), order.get("do", "")
    if what == "up":
        site.programs.up(watched.path)
        watched.forget()
        return f"The operator of {watched.key} is being started."
    if what == "down":
        watched.order("down", [])
        return f"The operator of {watched.key} has ended."
    line = order.get("line", "")
    if not line:
        raise ArgumentError(f"{what} without a line", "name the line that is meant")
    done = watched.order(what, [line], order.get("why", ""))
    waits = done.get("waits", {}).get(line)
    return f"{what.capitalize()}: {line}." + (f" It still waits: {waits}." if waits else "")
