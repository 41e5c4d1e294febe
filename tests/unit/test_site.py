"""The documentation site is built from the pages; what is wrong with it is found, and first questions have answers."""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.conftest import program_of_docs
from tests.web.web_world import Watched, browser, missing

site = program_of_docs("build_site")

# What a new user asks: the page with the answer, its heading and what stands there.
QUESTIONS = {
    "How is it installed in an environment of my own?": (
        "guides/install",
        "into-an-environment-of-your-own",
        "pip install",
    ),
    "Which engine do I need?": ("concepts/engines", "", "use it for"),
    "What does \u00b1 mean?": ("concepts/engines", "what--means", "half-width of the 95 % interval"),
    "How do I limit the cores?": ("guides/troubles", "it-uses-every-core", "--threads 1"),
    "How do I go on with a study that was killed?": ("guides/studies", "begin-look-go-on", "goes on"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site."""
    pytest.importorskip("griffe")
    pytest.importorskip("zensical")
    folder = tmp_path_factory.mktemp("site")
    site.pages(folder)
    build = [sys.executable, "-m", "zensical", "build", "--config-file", "mkdocs.yml"]
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_no_link_of_the_site_leads_nowhere_and_no_page_asks_another_machine(built):
    assert site.check(built / "html") == []
    pages = {path.parent.relative_to(built / "html").as_posix() for path in (built / "html").rglob("index.html")}
    assert {"guides/install", "guides/first-scenario", "concepts/engines", "reference/commands", "reference/python"} <= pages


def test_every_page_of_the_navigation_is_there_once(built):
    found = [page for entries in site.sections().values() for _, page in entries]

    assert list(site.sections())[:3] == ["Start", "Guides", "Concepts"]
    assert len(found) == len(set(found))
    assert [page for page in found if not (site.DOCS / page).is_file()] == [site.PYTHON]
    written = (built / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(site.DOCS).as_posix() for page in site.DOCS.rglob("*.md") if page.parent.name != "coverage"]
    assert [page for page in pages if len(re.findall(rf"(?:- |: ){re.escape(page)}$", written, re.MULTILINE)) != 1] == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_clicks_of_the_front_page(question, built):
    page, heading, answer = QUESTIONS[question]
    there = built / "html" / page / "index.html"
    clicks = {built / "html" / "index.html": 0}
    for path in list(clicks):
        clicks |= {other: 1 for other in links(path) if other not in clicks}
    for path in [one for one, count in clicks.items() if count == 1]:
        clicks |= {other: 2 for other in links(path) if other not in clicks}

    assert clicks.get(there, 99) <= 2
    text = there.read_text(encoding="utf-8")
    section = text[text.index(f'id="{heading}"') :] if heading else text
    assert answer in re.sub(r"<[^>]+>", "", section.partition("<h2")[0] if heading else section)


def links(page: Path) -> set[Path]:
    """Pages that the text of a page leads to; those of the navigation are left out."""
    (article,) = re.findall(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
    targets = (href.partition("#")[0] for href in re.findall(r'href="([^"]+)"', article) if "://" not in href)
    return {Path(os.path.normpath(page.parent / target / "index.html")) for target in targets if target}


@pytest.fixture(scope="module")
def served(built):
    """The address of the site, on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built / "html")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium():
    if lacking := missing(browser=True):
        pytest.skip(lacking)
    with browser() as made:
        yield made


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_shows_pages_without_a_fault_and_without_scrolling_sideways(width, served, chromium):
    watched = Watched(chromium, served, viewport={"width": width, "height": 800})
    for path in ("/", "/reference/scenario/a-bundle-of-lines/", "/guides/first-scenario/", "/validation/coverage/"):
        watched.page.goto(served + path)
        watched.page.wait_for_selector("article h1")
        within, whole = watched.page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
        assert whole <= within, path
    watched.close()
    assert watched.faults == []


def test_the_search_finds_a_key_among_the_first_three(served, chromium):
    watched = Watched(chromium, served, viewport={"width": 1280, "height": 800})
    page = watched.page
    page.goto(served)
    page.wait_for_selector("article h1")
    # Found in whatever a generator puts it: Zensical's search has a tree of its own.
    seen = """() => {
      const found = [], walk = root => root.querySelectorAll('*').forEach(one => {
        if (one.localName == 'a' && one.href.includes('h=reorder_timeout_s')) found.push(one.href);
        if (one.shadowRoot) walk(one.shadowRoot);
      });
      walk(document);
      return found.length ? found : null;
    }"""
    page.get_by_role("button", name="Search").first.click()
    page.wait_for_timeout(300)
    page.keyboard.type("reorder_timeout_s")
    found = page.wait_for_function(seen).json_value()
    key = "/reference/scenario/a-bundle-of-lines/?h=reorder_timeout_s#linkbundlereorder_timeout_s"
    watched.close()
    assert served + key in found[:3]
    assert watched.faults == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="../none/">x</a>', "../none/ leads nowhere"),
        ('<a href="#other">x</a>', "#other names no heading there"),
        ('<a href="b/#c">x</a>', "b/#c names no heading there"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from elsewhere"),
        ("<p>```toml a.toml</p>", "a block of code is shown as text"),
        ('<h2 id="own">x</h2><a href="#own">x</a><a href="b/">b</a><a href="https://example.org">far</a>', None),
    ],
)
def test_a_fault_is_named(text, said, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text("<p>b</p>")
    (tmp_path / "index.html").write_text(text)

    assert site.check(tmp_path) == ([] if said is None else [f"index.html: {said}"])


def test_a_program_in_the_site_is_named(tmp_path):
    (tmp_path / "tool.py").write_text("")

    assert site.check(tmp_path) == ["tool.py: a program is in the site"]
