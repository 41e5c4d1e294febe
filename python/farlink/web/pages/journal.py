"""Search in the journal, a page at a time."""

from __future__ import annotations

import asyncio
from html import escape
from urllib.parse import urlencode

from fastapi import Request
from nicegui import ui

from farlink.errors import FarlinkError
from farlink.operator.journal import Transition
from farlink.operator.journal.rows import OBSERVATIONS, STATES
from farlink.operator.journal.words import cause_words, signal_words
from farlink.untrusted import printable
from farlink.web.data.bundles import Watched
from farlink.web.data.line_rows import clock
from farlink.web.data.search import PAGE, Search, search_of
from farlink.web.pages.frame import Site, choice_of_bundle, element, frame, table, told
from farlink.web.pages.signs import sign
from farlink.web.pages.timeline import chosen

_FIELDS = ("text", "line", "state", "since", "until", "observations")


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/journal", response_timeout=60)
    async def journal(request: Request) -> None:
        given = {key: value[:400] for key, value in request.query_params.items()}
        with frame(site, "Journal", "/journal") as said:
            try:
                watched = chosen(site, given.get("bundle", ""))
            except FarlinkError as error:
                said.set_content(told(error))
                return
            choice_of_bundle(site, "/journal", watched.key)
            try:
                file = await asyncio.to_thread(watched.journal)
                element("div", markup=_form(watched, await asyncio.to_thread(file.modems), given))
                search = search_of(given)
                found = await asyncio.to_thread(search.found, file)
            except FarlinkError as error:
                said.set_content(told(error))
                return
            if found.warning:
                element("p", markup=f"<strong>Journal:</strong> {escape(printable(found.warning, 600))}", classes="alert")
            element("div", markup=_shown(found.transitions, found.count, search, watched.key))


def _form(watched: Watched, lines: list[str], given: dict[str, str]) -> str:
    def options(names: list[str], name: str) -> str:
        every = [("", "any"), *((one, one) for one in names)]
        return "".join(
            f'<option value="{escape(one)}"{" selected" if one == given.get(name, "") else ""}>{escape(words)}</option>'
            for one, words in every
        )

    def select(name: str, words: str, names: list[str]) -> str:
        return f'<p><label for="{name}">{words}</label><select id="{name}" name="{name}">{options(names, name)}</select></p>'

    def field(name: str, words: str, kind: str) -> str:
        value = escape(given.get(name, ""))
        return f'<p><label for="{name}">{words}</label><input id="{name}" name="{name}" type="{kind}" value="{value}"></p>'

    checked = " checked" if given.get("observations") else ""
    return (
        '<form class="fields" method="get" action="/journal" role="search">'
        f'<input type="hidden" name="bundle" value="{escape(watched.key)}">'
        + field("text", "Text in cause or caller", "text")
        + select("line", "Line", lines)
        + select("state", "State", sorted(STATES))
        + field("since", "From (UTC)", "datetime-local")
        + field("until", "Until (UTC)", "datetime-local")
        + f'<p class="check"><input id="observations" name="observations" type="checkbox" value="1"{checked}>'
        '<label for="observations">with readings of the signal</label></p>'
        '<p><button class="button main">Search</button></p></form>'
    )


def _shown(transitions: tuple[Transition, ...], count: int, search: Search, key: str) -> str:
    if not transitions:
        where = f" on page {search.page}" if count else ""
        return f"<p>Nothing is found{where}.</p>"
    first = PAGE * (search.page - 1) + 1
    caption = f"{first:,} to {first + len(transitions) - 1:,} of {count:,}, the newest first. Times are UTC."
    rows = [_row(one) for one in reversed(transitions)]
    return table(["Time", "Line", "State", "Signal", "Attempt", "Cause", "Number"], rows, caption) + _pager(search, count, key)


def _row(one: Transition) -> list[str]:
    state = sign(one.state) if one.state not in OBSERVATIONS else escape(one.state)
    cause = printable(cause_words(one), 400)
    texts = (signal_words(one) or "-", str(one.attempt or "-"), cause or "-", str(one.number))
    return [clock(one.time_s), escape(one.modem), state, *(escape(text) for text in texts)]


def _pager(search: Search, count: int, key: str) -> str:
    pages = -(-count // PAGE)
    fields = {name: search.given[name] for name in _FIELDS if search.given.get(name)}

    def link(page: int, words: str) -> str:
        return f'<a class="button" href="/journal?{escape(urlencode({"bundle": key, **fields, "page": page}))}">{words}</a>'

    newer = link(search.page - 1, "Newer") if search.page > 1 else ""
    older = link(search.page + 1, "Older") if search.page < pages else ""
    return f'<p class="buttons">{newer}{older}<span class="muted">Page {search.page:,} of {pages:,}</span></p>'
