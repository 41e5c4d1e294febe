"""One line: what is known of it, and its last calls."""

from __future__ import annotations

import time
from html import escape
from urllib.parse import urlencode

from nicegui import ui

from farlink.errors import FarlinkError
from farlink.operator.live.status import duration
from farlink.untrusted import printable
from farlink.web.data.bundles import View
from farlink.web.data.calls import Calls, Span
from farlink.web.data.line_rows import LineRow, capital, clock, line_rows, observed_words, rate_words
from farlink.web.pages.frame import EVERY_S, Site, element, frame, on_order, table, told
from farlink.web.pages.overview import carry_out, line_buttons, looked
from farlink.web.pages.signs import sign

_CALLS = 20


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/line", response_timeout=30)
    async def line_page(bundle: str = "", line: str = "") -> None:
        with frame(site, f"Line {printable(line, 40)}") as said:
            try:
                watched = site.bundles.get(bundle)
            except FarlinkError as error:
                said.set_content(told(error))
                return
            on_order(lambda order: carry_out(site, said, order))
            address = {name: escape(f"/{name}?" + urlencode({"bundle": bundle, "line": line})) for name in ("journal", "fit")}
            element(
                "p",
                markup=f'Of bundle <a href="/">{escape(bundle)}</a>. Its <a href="{address["journal"]}">journal</a>, '
                f'its <a href="{address["fit"]}">fit</a>, '
                f'the <a href="/timeline?bundle={escape(bundle)}">timeline of all lines</a>.',
            )
            facts, buttons, calls_shown = element("dl", classes="facts"), element("p", classes="buttons"), element("div")

            async def update() -> None:
                view, calls, warning = await looked(watched)
                row = next((one for one in line_rows(view, calls) if one.name == line), None)
                if row is None:
                    facts.set_content(f"<dt>Line</dt><dd>{escape(bundle)} has no line {escape(printable(line, 40))}</dd>")
                    return
                facts.set_content(_facts(row, view, warning))
                buttons.set_content(line_buttons(line, row.state, bundle) if site.may_change else "")
                calls_shown.set_content(_calls(calls, line))

            await update()
            ui.timer(EVERY_S, update, immediate=False)


def _facts(row: LineRow, view: View, warning: str) -> str:
    known = [("State", sign(row.state)), ("For", row.since), ("Why", row.why), ("Until", row.until), ("Signal", row.signal)]
    known += [("Drops in 30 days", row.drops), ("Mean up time, 95 %", row.mean_up), ("Throughput", row.throughput)]
    known += [("Airtime today", row.airtime)]
    known += [(capital(name), text) for name, text in observed_words(view.line(row.name) or {})]
    if view.status is None:
        known.append(("Operator", f"{view.away}; {view.remedy}"))
    if warning:
        known.append(("Journal", printable(warning, 600)))
    return "".join(f"<dt>{escape(name)}</dt><dd>{text if name == 'State' else escape(text)}</dd>" for name, text in known)


def _calls(calls: Calls | None, line: str) -> str:
    spans = [span for span in (calls.of(line) if calls is not None else []) if span.state == "connected"][-_CALLS:]
    rows = [_call(span) for span in reversed(spans)]
    head = ["Began", "Was up", "Ended", "Cause", "Throughput"]
    return "<h2>Last calls</h2>" + (
        table(head, rows, "Times are UTC, the newest call first.") if rows else "<p>No call yet.</p>"
    )


def _call(span: Span) -> list[str]:
    is_old = span.is_open and span.end_s < time.time() - 60
    ended = "still up" if span.is_open and not is_old else "not known" if span.is_open else span.ended
    ended += " (injected)" if span.is_end_injected else ""
    rate = "not counted" if span.throughput_bps is None else rate_words(span.throughput_bps)
    texts = (clock(span.start_s), duration(span.length_s), ended, printable(span.end_cause, 100) or "-", rate)
    return [escape(text) for text in texts]
