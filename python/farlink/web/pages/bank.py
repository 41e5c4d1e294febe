"""The bank of modems: a bundle is tried without modems and airtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from nicegui import ui

from farlink.errors import ArgumentError, FarlinkError
from farlink.operator.bank.config import MOST_MODEMS
from farlink.untrusted import printable
from farlink.web.pages.frame import EVERY_S, Site, element, frame, note, on_order, order_button, told

_VALUES = "() => emit(Object.fromEntries(new FormData(document.getElementById('bank'))))"


def register(site: Site) -> None:
    """Make the page."""

    @ui.page("/bank")
    def bank() -> None:
        with frame(site, "Bank of modems", "/bank") as said:
            element(
                "p",
                "Pseudo-terminals that answer as modems do, call each other and lose their calls. A line may have one of "
                "them as its port. The bank ends with the dashboard.",
            )
            if site.may_change:
                element("div", markup=_form(site.bundles.folder / "modems"))
                made = element("button", "Start bank", classes="button main").props("type=button")
                made.on("click", lambda event: _do(said, lambda: _start(site, event.args)), js_handler=_VALUES)
            on_order(lambda order: _do(said, lambda: _stop(site, order)))
            state, stop = element("div"), element("p", classes="buttons")

            async def update() -> None:
                found = await asyncio.to_thread(site.programs.bank_told)
                asked = "Its ports vanish, and every call over it is lost."
                stop.set_content(
                    order_button("end-bank", "Stop bank", asked) if found and found.is_running and site.may_change else ""
                )
                if found is None:
                    state.set_content("<p>No bank was started here.</p>")
                    return
                words = "The bank runs." if found.is_running else f"The bank has ended with status {found.status}."
                lines = escape("\n".join(found.lines)) or "nothing yet"
                state.set_content(f"<p>{words} It has told, in {escape(str(found.log))}:</p><pre>{lines}</pre>")

            ui.timer(EVERY_S, update)


def _form(folder: Path) -> str:
    return (
        '<form class="fields" id="bank" onsubmit="return false">'
        '<p><label for="modems">Modems</label>'
        f'<input id="modems" name="modems" type="number" min="1" max="{MOST_MODEMS}" value="4"></p>'
        f'<p><label for="folder">Folder of the ports</label><input id="folder" name="folder" value="{escape(str(folder))}"></p>'
        '<p><label for="mean">Mean time to a drop, s (empty: none)</label>'
        '<input id="mean" name="mean_up_s" inputmode="decimal"></p>'
        '<p><label for="rate">Bit rate of a call, bit/s</label>'
        '<input id="rate" name="rate_bps" inputmode="decimal" value="2400"></p></form>'
    )


async def _do(said: ui.html, work: Callable[[], str]) -> None:
    try:
        said.set_content(note(await asyncio.to_thread(work)))
    except FarlinkError as error:
        said.set_content(told(error))


def _start(site: Site, given: Any) -> str:
    fields: Mapping[str, Any] = given if isinstance(given, dict) else {}
    _check_may(site)
    modems = _number(fields, "modems", 1, MOST_MODEMS)
    folder = Path(str(fields.get("folder", "")).strip() or "/").expanduser()
    if modems is None or modems != int(modems):
        raise ArgumentError("modems: not a whole number", f"give 1 to {MOST_MODEMS}")
    if not str(folder).isprintable() or not folder.is_absolute() or folder.parent == folder or not folder.parent.is_dir():
        raise ArgumentError(
            f"folder {printable(folder, 100)!r}: not a path whose parent is a folder", "give for example /tmp/modems"
        )
    site.programs.bank(
        folder, int(modems), mean_up_s=_number(fields, "mean_up_s", 0.1, 1e9), rate_bps=_number(fields, "rate_bps", 50, 1e8)
    )
    return "The bank is being started."


def _stop(site: Site, order: Mapping[str, str]) -> str:
    _check_may(site)
    if order.get("do") != "end-bank":
        raise ArgumentError(f"there is no order {printable(order.get('do', ''), 40)!r} here", "use the buttons")
    site.programs.end_bank()
    return "The bank has ended."


def _check_may(site: Site) -> None:
    if not site.may_change:
        raise ArgumentError("this dashboard shows only", "start it without --read-only")


def _number(fields: Mapping[str, Any], name: str, least: float, most: float) -> float | None:
    text = str(fields.get(name, "")).strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ArgumentError(
            f"{name}: {printable(text, 40)!r} is no number from {least:g} to {most:g}", "give one, or leave it empty"
        )
    return value
