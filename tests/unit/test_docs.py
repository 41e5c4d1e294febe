"""Documentation: generated pages are current, examples run, links have targets."""

from __future__ import annotations

import functools
import re
import textwrap
from pathlib import Path

import pytest
from tests.conftest import ROOT, program_of_docs

import farlink
from farlink import _core, papers
from farlink.scenario import from_data

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GENERATE = program_of_docs("generate")
REFERENCE = GENERATE.reference()


# That of coverage is in test_paper_coverage.py.
@pytest.mark.parametrize("page", [page for page in REFERENCE if page.name != "coverage.md"], ids=lambda page: page.name)
def test_generated_page_is_current(page):
    assert page.read_text(encoding="utf-8") == REFERENCE[page](page), "write it anew with `make docs`, and see what has changed"


def test_no_page_of_a_table_is_left_over():
    assert GENERATE.tables_without_a_section() == []


def test_a_scenario_table_without_a_reference_section_is_an_error(monkeypatch):
    program = GENERATE.scenario_pages
    monkeypatch.setattr(program, "HEADING", {place: head for place, head in program.HEADING.items() if place != "RtoConfig"})

    with pytest.raises(LookupError, match="RtoConfig is a table without a section"):
        program.tables()


def test_reference_has_every_column_of_a_result(small):
    page = (ROOT / "docs" / "reference" / "quantities.md").read_text(encoding="utf-8")

    result = farlink.run(small)
    names = set(re.findall(r"^\| `(\w+)`", page, flags=re.MULTILINE))
    assert names == set(result.rows) - set(result.grid_paths)


def test_null_appears_only_where_the_reference_allows_it(small):
    result = farlink.run(small)
    never = {name for name, _, _, unknown in _core.quantities() if not unknown}

    assert never
    assert all(value is not None for name in never for value in result.rows[name])


def test_the_scenario_in_the_readme_is_valid():
    import tomllib

    (block,) = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)

    scenario = from_data(tomllib.loads(block))
    assert len(scenario.points()) == 6
    assert farlink.run(scenario, set={"duration_s": 20}, runs=2).finished_runs == 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(path)


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings)


def test_rust_version_in_the_pages_is_that_of_the_workspace():
    import tomllib

    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]

    for page in ("README.md", "Makefile"):
        assert re.findall(r"Rust (\d+\.\d+)", (ROOT / page).read_text()) == [version]


def test_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")

    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/*/*.md")} | {"glossary.md"}
    assert sorted(page for page in pages if f"({page})" not in index) == []


@pytest.mark.parametrize("key", papers.PAPERS)
def test_verdict_of_a_paper_is_that_of_its_rows(key):
    program, folder = program_of_docs("paper_verdict"), ROOT / "docs" / "validation"
    page = (folder / f"{key}.md").read_text(encoding="utf-8")
    appendices = [path.read_text(encoding="utf-8") for path in (folder / key).glob("*.md")]

    head, sections, _ = program.parts(page)
    if appendices:
        items = [item.key for item in papers.load(key).items if (folder / key / f"{item.key}.md").exists()]
        sections = {item: (folder / key / f"{item}.md").read_text(encoding="utf-8") for item in items}
        assert len(items) == len(appendices)
        for item, text in sections.items():
            assert f"{program.in_words(program.counts(text)).capitalize()}: [{item}]({key}/{item}.md)" in page
    verdict = program.verdict(sections)
    assert verdict in head if not appendices else verdict in page
    assert page.index(verdict) < page.index("\n## ")


def test_every_validation_page_begins_with_its_verdict():
    """In at most five lines of 128 characters, marks of programs not counted."""
    for path in sorted((ROOT / "docs" / "validation").glob("*.md")):
        text = re.sub(r"<!--.*?-->\n?", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        title, said = text.split("\n\n")[:2]
        assert title.startswith("# "), path.name
        assert said.startswith("**Verdict.** "), path.name
        assert len(textwrap.wrap(said, 128, break_on_hyphens=False)) <= 5, path.name


def test_figures_of_a_verdict_stand_in_its_page():
    """A page that was measured again has other figures, and its verdict is wrong then. Papers have a test of their own."""
    for path in sorted((ROOT / "docs" / "validation").glob("*.md")):
        text = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        said, _, body = text[text.index("**Verdict.**") :].partition("\n\n")
        figures = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", re.sub(r"\]\([^)]*\)", "]", said))
        if path.stem not in {*papers.PAPERS, "coverage"}:
            missing = [one for one in figures if not re.search(rf"(?<!\d){re.escape(one)}(?!\d|\.\d)", body)]
            assert missing == [], path.name


@pytest.mark.parametrize("key", papers.PAPERS)
def test_page_of_a_paper_has_every_item(key):
    paper = papers.load(key)
    page = (ROOT / "docs" / "validation" / f"{key}.md").read_text(encoding="utf-8")

    assert paper.title in page
    for item in paper.items:
        # The page keeps items that need measured data even where the data are missing now.
        assert f"## {item.key}\n\n{item.title}." in page or (
            item.not_yet and f"- {item.key}, {item.title}: {item.not_yet}" in page
        )
    for sentence in paper.setting:
        assert sentence in " ".join(page.split())


def test_no_word_in_brackets_of_a_help_text_is_taken_for_a_style():
    """Rich leaves out what it takes for one; a table of a scenario has a backslash in front."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`]*`", "", page, flags=re.DOTALL)

    assert r"\[grid]" in prose
    assert not re.findall(r"(?<!\\)\[[a-z][a-z_.]*\](?!\()", prose)
