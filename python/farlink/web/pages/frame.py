"""Frame of every page: links to the others, and a place for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from farlink.errors import FarlinkError
from farlink.web.data.bundles import Bundles
from farlink.web.data.programs import Programs

EVERY_S = 2.0
"""How often a page looks for something new, in s."""

PAGES = {
    "/": "Overview",
    "/timeline": "Timeline",
    "/fit": "Fit",
    "/journal": "Journal",
    "/profiles": "Profiles",
    "/bank": "Bank",
}


@dataclass(frozen=True)
class Site:
    """Data of the pages.

    Attributes
    ----------
    bundles, programs
        The bundles, and what was started here.
    may_change
        Whether lines are held, files saved and programs started here.
    has_login
        Whether there is a password.
    """

    bundles: Bundles
    programs: Programs = field(default_factory=Programs)
    may_change: bool = True
    has_login: bool = False


def element(tag: str, text: str = "", *, markup: str | None = None, classes: str = "") -> ui.html:
    """An element of HTML with a text, or with markup of ours. Its content may be set again."""
    made = ui.html(escape(text) if markup is None else markup, sanitize=False, tag=tag)
    return made.classes(classes) if classes else made


def told(error: FarlinkError) -> str:
    """Markup of an error: what is wrong, and what to do."""
    return f'<p class="error"><strong>Error:</strong> {escape(error.message)}<br><span>{escape(error.remedy)}</span></p>'


def note(text: str) -> str:
    """Markup of what was done."""
    return f'<p class="done">{escape(text)}</p>'


@contextmanager
def frame(site: Site, title: str, active: str = "") -> Iterator[ui.html]:
    """A page; gives the place where something is said, which is read out."""
    ui.page_title(f"{title} - farlink")
    with ui.header(fixed=False, elevated=False).classes("top"):
        links = "".join(
            f'<li><a href="{path}"{" aria-current=page" if path == active else ""}>{name}</a></li>'
            for path, name in PAGES.items()
        )
        out = '<form method="post" action="/logout"><button class="button">Log out</button></form>' if site.has_login else ""
        markup = (
            '<a class="skip" href="#content">Skip to content</a>'
            f'<nav aria-label="Pages"><a class="home" href="/">farlink</a><ul>{links}</ul></nav>{out}'
        )
        element("div", markup=markup, classes="bar")
    with ui.element("div").props("id=content tabindex=-1"):
        element("h1", title)
        said = element("div", classes="said").props("role=status aria-live=polite")
        if not site.may_change:
            element("p", "This dashboard shows only: it was started with --read-only.", classes="muted")
        yield said
    element("div", markup=_CONFIRM)


def choice_of_bundle(site: Site, path: str, chosen: str, **more: str) -> None:
    """Links to the same page of other bundles, if there are several."""
    if len(site.bundles) < 2:
        return
    links = "".join(
        f'<li><a href="{path}?{escape(urlencode({"bundle": one.key, **more}))}"'
        f"{' aria-current=true' if one.key == chosen else ''}>{escape(one.key)}</a></li>"
        for one in site.bundles
    )
    element("nav", markup=f"<ul>{links}</ul>", classes="choice").props('aria-label="Bundles"')


def table(head: list[str], rows: list[list[str]], caption: str, *, classes: str = "", numeric: tuple[int, ...] = ()) -> str:
    """Markup of a table whose cells are markup already; on a phone each row is a block with the names of its columns."""
    ths = "".join(f'<th scope="col" role="columnheader">{escape(name)}</th>' for name in head)
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<td role="cell" data-label="{escape(head[at])}"{" class=n" if at in numeric else ""}>{cell}</td>'
            for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table role="table" class="{classes}"><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{ths}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'
    )


def order_button(what: str, words: str, ask: str, *, is_with_reason: bool = False, **data: str) -> str:
    """Markup of a button that does something once it is confirmed. ``farlink.js`` asks, and tells `on_order`."""
    attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items())
    reason = " data-reason" if is_with_reason else ""
    label = f' aria-label="{escape(words + " " + data["line"])}"' if data.get("line") else ""
    order = f'data-do="{what}" data-ask="{escape(ask)}"{reason}{attributes}{label}'
    return f'<button type="button" class="button" {order}>{escape(words)}</button>'


def on_order(handler: Callable[[Mapping[str, str]], Any]) -> None:
    """Have confirmed orders of this page go to a handler, as texts."""

    async def got(event: Any) -> None:
        given = event.args if isinstance(event.args, dict) else {}
        await handler({str(key): str(value)[:300] for key, value in given.items()})

    ui.on("farlink_order", got)


def file_words(path: Path) -> str:
    """A path as people know it."""
    home = str(Path.home())
    return f"~{str(path)[len(home) :]}" if str(path).startswith(f"{home}/") else str(path)


_CONFIRM = """
<dialog id="confirm" aria-labelledby="confirm-title">
  <form method="dialog">
    <h2 id="confirm-title"></h2>
    <p id="confirm-text"></p>
    <p id="confirm-why-row"><label for="confirm-why">Reason, for the journal</label><input id="confirm-why" maxlength="200"></p>
    <p class="buttons"><button class="button main" value="yes" id="confirm-yes">Yes</button>
    <button class="button" value="no" formnovalidate>Cancel</button></p>
  </form>
</dialog>
"""
