"""Pages of results: their marks are those that their programs write, and a page with wrong marks is left unchanged."""

from __future__ import annotations

import ast
import importlib.util
import re
from types import ModuleType

import pytest
from tests.conftest import ROOT

PROGRAMS = {
    "../design/tuning.md": ["tuning_bursts"],
    "../guides/tuning.md": ["tuning_paths"],
    "aerotp-kernel.md": ["aerotp_kernel"],
    "aerotp-neighbours.md": ["aerotp_neighbours"],
    "arq.md": ["arq"],
    "bundle-again.md": ["bundle_again"],
    "bundle-pppd.md": ["bundle_pppd"],
    "bundles.md": ["bundles", "bundle_late", "cellular_values"],
    "call-drops.md": ["call_drops", "call_generator", "cellular"],
    "erasure-bursts.md": ["erasure_bursts"],
    "fading.md": ["fading"],
    "fluid.md": ["fluid", "fluid_closed_forms"],
    "gateways.md": ["gateway_paths"],
    "link-kinds.md": ["link_kinds"],
    "rain-geo.md": ["rain_geo"],
    "rain.md": ["rain"],
    "tcp-latency.md": ["tcp_latency"],
    "wire-faults.md": ["wire_faults"],
    "wire.md": ["wire", "wire_engine", "wire_far"],
}
TEXT = "Of <!--= cells -->3<!--/--> cells:\n\n<!--= rows -->\n| old |\n<!--/-->\n\nThe end.\n"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_page", ROOT / "docs" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written_by(program: str) -> set[str]:
    """Names of the values that a program passes to `page.write`, directly or from functions that return `Values`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / "docs" / f"{program}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "page.write":
            names |= {one.arg for one in node.keywords if one.arg not in (None, "change", "only")}
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) in ("Values", "page.Values"):
            values = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
            names |= {ast.literal_eval(key) for value in values if isinstance(value, ast.Dict) for key in value.keys}
    return names


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_has_exactly_the_marks_that_its_program_writes(page, name):
    text = (ROOT / "docs" / "validation" / name).read_text(encoding="utf-8")

    assert {mark["name"] for mark in page.MARK.finditer(text)} == set.union(*map(written_by, PROGRAMS[name]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_mark_of_a_page_is_closed(page, name):
    text = (ROOT / "docs" / "validation" / name).read_text(encoding="utf-8")

    assert page.filled(text, {}, name, only=True) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_line_of_text_starts_with_a_mark(name):
    # Markdown takes a whole line that begins with a comment for HTML.
    text = (ROOT / "docs" / "validation" / name).read_text(encoding="utf-8")

    assert re.findall(r"^ *(?:- )?<!--= [^>\n]*-->[^\n]+", text, flags=re.MULTILINE) == []


@pytest.mark.parametrize("program", [programs[0] for programs in PROGRAMS.values()])
def test_page_programs_have_help(program, programs):
    done = programs.run([f"docs/{program}.py", "--help"], cwd=ROOT)

    assert done.returncode == 0, done.stderr
    assert b"Write" in done.stdout


def test_values_replace_what_stands_between_marks(page):
    text = page.filled(TEXT, {"cells": 4, "rows": "| new |"}, "page.md")

    assert text == TEXT.replace("3", "4").replace("old", "new")
    assert page.filled("<!--= share:.0% -->1 %<!--/-->", {"share": 0.25}, "page.md") == "<!--= share:.0% -->25 %<!--/-->"


@pytest.mark.parametrize(
    ("text", "said", "message"),
    [
        (TEXT, {"cells": 4}, "page.md: no value for rows"),
        (TEXT, {"cells": 4, "rows": "", "more": 1}, "page.md: no mark for more"),
        (TEXT.replace("<!--/--> cells", " cells"), {"cells": 4, "rows": ""}, "<!--= rows --> after <!--= cells -->"),
        (TEXT.replace("| old |\n<!--/-->", "| old |"), {"cells": 4, "rows": ""}, "<!--= rows --> after <!--/-->"),
        (TEXT + "<!--/-->", {"cells": 4, "rows": ""}, "<!--/--> after <!--/-->"),
        (TEXT.replace("= cells", "= 2 cells"), {"rows": ""}, "<!--= 2 cells --> after the beginning"),
    ],
)
def test_a_page_with_wrong_marks_is_left_unchanged(page, monkeypatch, tmp_path, text, said, message):
    monkeypatch.setattr(page, "VALIDATION", tmp_path)
    (tmp_path / "page.md").write_text(text, encoding="utf-8")

    with pytest.raises(page.PageError, match=re.escape(message)):
        page.write("page.md", {}, **said)
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text


def test_one_part_of_a_page_may_be_written(page):
    assert page.filled(TEXT, {"cells": 4}, "page.md", only=True) == TEXT.replace("3", "4")
