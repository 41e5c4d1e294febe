"""The dashboard in a browser: a bundle is configured, dialled over a bank and watched; keyboard, phone, light and dark."""

from __future__ import annotations

import contextlib
import re

import pytest

from farlink.errors import OperatorError
from farlink.operator.config import load
from farlink.operator.live import ask
from tests.operator.live_world import until
from tests.web.journals import write_bundle, write_calls
from tests.web.web_world import Dashboard, Watched, browser, missing

pytestmark = pytest.mark.skipif(bool(missing(browser=True)), reason=missing(browser=True))

PAGES = ("/", "/line?bundle=old&line=kansas", "/timeline?span=1d", "/fit?bundle=old", "/journal?bundle=old", "/profiles")
PAGES += ("/edit?bundle=old", "/bank")
NEAR = """name = "near"
back_end = "stand-in"
[limits]
dropped_s = 3
failed_s = 1
[[line]]
name = "kansas"
port = "{folder}/modems/modem-1"
profile = "hayes"
number = "00881600005002"
rate_bps = 100000
"""
FAR = """name = "far"
back_end = "stand-in"
[[line]]
name = "one"
port = "{folder}/modems/modem-2"
profile = "hayes"
role = "answer"
rate_bps = 100000
"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """One with a bundle that has had calls, and whose operator is away."""
    folder = tmp_path_factory.mktemp("dashboard")
    write_calls(folder / "old.journal", calls=60)
    write_bundle(folder)
    made = Dashboard(folder)
    yield made
    for name in ("near", "far"):
        with contextlib.suppress(OperatorError):
            ask(folder / f"{name}.journal", {"do": "down"}, bundle=name)
    assert made.end() == 0, made.log
    assert "Traceback" not in made.log, made.log


@pytest.fixture
def watched(chromium, dashboard):
    """A page in which nothing may go wrong."""
    made = Watched(chromium, dashboard.url, viewport={"width": 1200, "height": 800})
    yield made
    made.close()
    assert made.faults == []


def make_bundle(watched: Watched, name: str, text: str) -> None:
    page = watched.open("/profiles")
    page.get_by_label("New bundle").fill(name)
    page.locator("form", has_text="New bundle").get_by_role("button", name="Make").click()
    page.get_by_label("The bundle, as TOML").fill(text)
    page.get_by_role("button", name="Save").click()
    page.get_by_text(re.compile(r"Saved: .*\.toml")).wait_for()


def order(page, button: str, reason: str = "") -> None:
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    if reason:
        dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button").first.click()


def focused(page) -> str:
    return page.evaluate("document.activeElement.innerText || document.activeElement.id")


def test_from_nothing_to_a_line_that_drops_returns_and_is_held(watched, dashboard):
    folder = dashboard.folder
    page = watched.open("/profiles")
    page.get_by_label("New bundle").fill("near")
    page.locator("form", has_text="New bundle").get_by_role("button", name="Make").click()
    editor = page.get_by_label("The bundle, as TOML")
    editor.fill(NEAR.format(folder=folder).replace("hayes", "hays"))
    page.get_by_role("button", name="Save").click()
    mistakes = page.locator("#mistakes table")
    mistakes.wait_for()
    assert re.search(r"9\s+11\s+line\[0\]\.profile: .*hays", mistakes.inner_text()), mistakes.inner_text()
    assert not (folder / "near.toml").exists()
    page.get_by_role("button", name="Go to line 9, column 11").click()
    caret = "[...document.activeElement.value.slice(0, document.activeElement.selectionStart)].filter(c => c == '\\n').length"
    assert (focused(page), page.evaluate(caret)) == ("toml", 8)
    editor.fill(NEAR.format(folder=folder))
    page.get_by_role("button", name="Check").click()
    page.get_by_text("No mistake.").wait_for()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved: ").wait_for()
    make_bundle(watched, "far", FAR.format(folder=folder))

    page = watched.open("/bank")
    page.get_by_label("Modems").fill("2")
    page.get_by_label("Bit rate").fill("100000")
    page.get_by_role("button", name="Start bank").click()
    page.get_by_text("The bank runs.").wait_for()
    page.locator("pre", has_text="881600005002").wait_for()

    page = watched.open("/")
    near, far = (page.locator("section", has=page.get_by_role("heading", name=f"Bundle {name}")) for name in ("near", "far"))
    for one in (far, near):
        one.get_by_text("Operator away:").wait_for()
        order(_Within(page, one), "Start operator")
    state = near.locator("tbody td").nth(1)
    state.get_by_text("connected").wait_for()
    assert state.locator("svg").count() == 1, "a shape beside the word"

    bundle, _ = load(folder / "near.toml", needs_ports=False)
    ask(bundle.journal, {"do": "inject", "now": True, "lines": ["kansas"]}, bundle="near")
    state.get_by_text("dropped").wait_for()
    state.get_by_text("connected").wait_for()

    order(_Within(page, near), "Hold kansas", "antenna is repaired")
    state.get_by_text("held").wait_for()
    page.get_by_text("Hold: kansas.").wait_for()
    near.get_by_text("antenna is repaired").wait_for()
    order(_Within(page, near), "Release kansas")
    state.get_by_text("connect").wait_for()

    page = watched.open("/journal?bundle=near&text=antenna")
    page.locator("td", has_text="antenna is repaired").first.wait_for()
    page = watched.open("/journal?bundle=near&state=dropped")
    page.locator("td", has_text="(injected)").first.wait_for()
    page = watched.open("/timeline?bundle=near&span=1h")
    page.locator("canvas").wait_for()
    for word in ("connected", "held"):  # calls are read from the journal every few seconds
        page.locator("tbody td:nth-child(3)", has_text=word).first.wait_for()

    page = watched.open("/")
    order(_Within(page, near), "Stop operator")
    near.get_by_text("Operator away:").wait_for()
    with pytest.raises(OperatorError, match="no operator"):
        ask(bundle.journal, {"do": "status"}, bundle="near")


class _Within:
    """Buttons of a part of a page, and dialogs of all of it."""

    def __init__(self, page, part) -> None:
        self._page, self._part = page, part

    def get_by_role(self, role: str, **options):
        return (self._page if role == "dialog" else self._part).get_by_role(role, **options)


def test_the_fit_is_read_without_seeing_it(watched):
    page = watched.open("/fit?bundle=old")
    page.locator("canvas").wait_for()
    rows = page.locator("tbody tr").all_inner_texts()
    assert any(row.startswith("exponential") for row in rows)
    assert any(row.startswith("weibull") for row in rows)
    head = page.locator("table").nth(1).locator("th").all_inner_texts()
    assert head[:3] == ["Still up after", "measured", "exponential"]
    page.get_by_role("link", name="iowa").click()
    page.get_by_text("Calls of line iowa in the last 30 days: 30").wait_for()


def test_every_page_is_accessible_light_and_dark_and_on_a_phone(watched):
    found = []
    for path in PAGES:
        page = watched.open(path)
        for scheme, width in (("light", 1200), ("dark", 360)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 740})
            page.wait_for_function(f"document.body.classList.contains('body--{scheme}')")
            rules = () if scheme == "light" else ("color-contrast", "target-size")  # the others know no colours
            found += [f"{path} {scheme} {width}: {one}" for one in watched.violations(*rules)]
            wide = page.evaluate("document.documentElement.scrollWidth")
            found += [f"{path}: {wide} pixels wide"] if wide > width else []
    assert found == []


def test_axe_finds_what_is_wrong(watched):
    page = watched.open("/bank")
    page.evaluate("document.querySelector('label[for=modems]').remove()")
    assert any(one.startswith("label") for one in watched.violations())
    page.evaluate("fetch('http://192.0.2.1/').catch(() => 0)")
    until(lambda: (page.wait_for_timeout(50), any("192.0.2.1" in one for one in watched.faults))[1])
    watched.faults.clear()


def test_everything_is_reached_by_keyboard_and_the_focus_is_seen(watched):
    page = watched.open("/profiles")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    assert page.locator(".skip").bounding_box()["x"] == 0
    order_of_tabs = []
    for _ in range(7):
        page.keyboard.press("Tab")
        order_of_tabs.append(focused(page))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert outline == "3px", order_of_tabs
    assert order_of_tabs == ["farlink", "Overview", "Timeline", "Fit", "Journal", "Profiles", "Bank"]
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page) in ("far", "near", "old")

    page = watched.open("/")
    button = page.get_by_role("button", name="Start operator").last
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert focused(page) == "Start operator", "the first button of the dialog"
    assert watched.violations() == []
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.dataset.do") == "up"
