"""The documentation site is built from the pages, and what is wrong with it is found."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.conftest import program_of_docs

site = program_of_docs("build_site")


def test_no_link_of_the_site_leads_nowhere_and_no_page_asks_another_machine(tmp_path):
    pytest.importorskip("griffe")
    pytest.importorskip("zensical")
    site.pages(tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--config-file", "mkdocs.yml"]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    assert site.check(tmp_path / "html") == []
    pages = {path.parent.relative_to(tmp_path / "html").as_posix() for path in (tmp_path / "html").rglob("index.html")}
    assert {"guides/install", "guides/first-scenario", "concepts/engines", "reference/commands", "reference/python"} <= pages


def test_every_page_of_the_navigation_is_there_once(tmp_path):
    site.pages(tmp_path)
    found = [page for entries in site.sections().values() for _, page in entries]

    assert list(site.sections())[:3] == ["Start", "Guides", "Concepts"]
    assert len(found) == len(set(found))
    assert [page for page in found if not (site.DOCS / page).is_file()] == [site.PYTHON]
    written = (tmp_path / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(site.DOCS).as_posix() for page in site.DOCS.rglob("*.md") if page.parent.name != "coverage"]
    assert [page for page in pages if len(re.findall(rf"(?:- |: ){re.escape(page)}$", written, re.MULTILINE)) != 1] == []


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
