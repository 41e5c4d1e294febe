"""Files: bundles and profiles of modems, looked through before they are saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from farlink.errors import ArgumentError, FarlinkError
from farlink.operator.at import profiles
from farlink.operator.config import Mistake
from farlink.shown import counted
from farlink.untrusted import printable
from farlink.web.data import editing
from farlink.web.pages.frame import Site, element, file_words, frame, note, table, told

_NEW_BUNDLE = """name = "{name}"
back_end = "stand-in"            # pppd carries packets; stand-in tries a bundle without it

[[line]]
name = "line-1"
port = "/dev/serial/by-id/usb-..."
profile = "iridium-9522b"
number = "00881600005003"
"""
_NEW_PROFILE = """title = "{name}"
init = ["ATZ", "ATE1Q0V1X4&C1&D2"]
dial = "ATDT{{number}}"
dial_limit_s = 60
"""


def register(site: Site) -> None:
    """Make the pages."""

    @ui.page("/profiles", response_timeout=30)
    async def profiles_page() -> None:
        with frame(site, "Profiles", "/profiles") as said:
            await _list(site, said)

    @ui.page("/edit", response_timeout=30)
    async def edit(bundle: str = "", profile: str = "", new: str = "", name: str = "") -> None:
        with frame(site, "Edit", "/profiles") as said:
            try:
                file = await asyncio.to_thread(_file, site, bundle, profile, new, name)
            except FarlinkError as error:
                said.set_content(told(error))
                return
            _edit(site, *file)

    @ui.page("/profile")
    def profile_page(name: str = "") -> None:
        with frame(site, f"Profile {printable(name, 40)}", "/profiles") as said:
            if name not in profiles.names():
                said.set_content(
                    told(ArgumentError(f"farlink has no profile {printable(name, 40)!r}", "choose one of Profiles"))
                )
                return
            text = (Path(profiles.__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
            element("p", "One of farlink's own. Copy it into a new profile to change it.")
            element("pre", text).props('tabindex=0 role=region aria-label="The profile"')


def _folders(site: Site) -> list[Path]:
    return [site.bundles.folder, *(one.path.parent for one in site.bundles)]


async def _list(site: Site, said: ui.html) -> None:
    rows = []
    for one in site.bundles:
        view = await asyncio.to_thread(one.view)
        found = f'<span class="sign bad">{counted(len(view.mistakes), "mistake")}</span>' if view.mistakes else "right"
        rows.append([f'<a href="/edit?bundle={one.key}">{escape(one.key)}</a>', escape(file_words(one.path)), found])
    element("h2", "Bundles")
    if rows:
        element("div", markup=table(["Bundle", "File", "Check"], rows, "bundle.toml of each bundle"))
    if site.may_change:
        element("div", markup=_new_form("bundle", f"New bundle, in {file_words(site.bundles.folder)}"))
    element("h2", "Profiles of modems")
    try:
        own = await asyncio.to_thread(editing.own_profiles, _folders(site))
    except OSError as error:
        said.set_content(told(ArgumentError(f"folders cannot be read: {error.strerror}", "give their user the right to")))
        own = []
    rows = [
        [f'<a href="/edit?{escape(urlencode({"profile": str(path)}))}">{escape(path.stem)}</a>', escape(file_words(path))]
        for path in own
    ]
    rows += [[f'<a href="/profile?name={escape(name)}">{escape(name)}</a>', "farlink's own"] for name in profiles.names()]
    element("div", markup=table(["Profile", "File"], rows, "What is said to a kind of modem, and how long it may take"))
    if site.may_change:
        element("div", markup=_new_form("profile", f"New profile, in {file_words(site.bundles.folder)}"))


def _new_form(what: str, words: str) -> str:
    return (
        f'<form class="fields" method="get" action="/edit"><input type="hidden" name="new" value="{what}">'
        f'<p><label for="new-{what}">{escape(words)}: its name</label>'
        f'<input id="new-{what}" name="name" maxlength="32" required></p><p><button class="button">Make</button></p></form>'
    )


def _file(site: Site, bundle: str, profile: str, new: str, name: str) -> tuple[editing.Text, bool]:
    """The file that is edited, and whether it is a bundle. Only bundles that are watched and profiles beside them are."""
    if new in ("bundle", "profile"):
        path = editing.new_file(site.bundles.folder, name)
        template = _NEW_BUNDLE if new == "bundle" else _NEW_PROFILE
        return editing.Text(path, template.format(name=name), ""), new == "bundle"
    if profile:
        known = {str(path): path for path in editing.own_profiles(_folders(site))}
        if profile not in known:
            raise ArgumentError(f"{printable(profile, 100)} is no profile beside a bundle", "choose one of Profiles")
        return editing.opened(known[profile]), False
    return editing.opened(site.bundles.get(bundle).path), True


def _edit(site: Site, file: editing.Text, is_bundle: bool) -> None:
    path, stamp = file.path, [file.stamp]
    element("p", f"{file_words(path)}. Secrets stand in a file of their own, which is not shown here.")
    what = "bundle" if is_bundle else "profile"
    disabled = "" if site.may_change else " readonly"
    element(
        "div",
        markup=f'<label for="toml">The {what}, as TOML</label>'
        f'<textarea id="toml" rows="24" spellcheck="false" autocomplete="off" autocapitalize="off"{disabled}>'
        f"\n{escape(file.text)}</textarea>",  # a newline behind the tag is no part of the text
    )
    if not site.may_change:
        return
    buttons = ui.element("p").classes("buttons")
    found = element("div").props("role=status aria-live=polite id=mistakes")

    def button(words: str, handler: Callable[[str], Any], classes: str = "button") -> None:
        async def pressed(event: Any) -> None:
            try:
                await handler(str(event.args))
            except FarlinkError as error:
                found.set_content(told(error))

        made = element("button", words, classes=classes).props("type=button")
        made.on("click", pressed, js_handler="() => emit(document.getElementById('toml').value)")

    async def checked(text: str) -> None:
        look = editing.mistakes_of_bundle if is_bundle else editing.mistakes_of_profile
        found.set_content(_mistakes(await asyncio.to_thread(look, path, text)) or note("No mistake."))

    async def saved(text: str) -> None:
        save = editing.save_bundle if is_bundle else editing.save_profile
        mistakes = await asyncio.to_thread(save, path, text, stamp[0])
        if mistakes:
            found.set_content("<p><strong>Not saved.</strong></p>" + _mistakes(mistakes))
            return
        was_new = not stamp[0]
        stamp[0] = (await asyncio.to_thread(editing.opened, path)).stamp
        words = f"Saved: {file_words(path)}." + ("" if was_new else f" The old one is {path.name}.old.")
        if is_bundle:
            watched = site.bundles.add(path)
            watched.forget()
            view = await asyncio.to_thread(watched.view)
            words += " Its operator goes on with what it has read: stop and start it." if view.status is not None else ""
        found.set_content(note(words))

    with buttons:
        button("Check", checked)
        button("Save", saved, "button main")


def _mistakes(mistakes: tuple[Mistake, ...]) -> str:
    if not mistakes:
        return ""
    rows = [
        [_place(one), str(one.column), escape(printable(one.message, 600)), escape(printable(one.remedy, 600))]
        for one in mistakes
    ]
    return table(["Line", "Column", "What is wrong", "What to do"], rows, counted(len(mistakes), "mistake"), classes="mistakes")


def _place(one: Mistake) -> str:
    """A button that goes to the line."""
    label = f"Go to line {one.line}, column {one.column}"
    return f'<button type="button" class="button" data-place="{one.line}:{one.column}" aria-label="{label}">{one.line}</button>'
