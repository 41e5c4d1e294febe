"""Documentation: generated pages are current, examples run, links have targets."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import ROOT

import farlink
from farlink import papers
from farlink.scenario import from_data

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TRIED = [ROOT / "README.md", ROOT / "docs" / "guides" / "first-scenario.md", ROOT / "docs" / "guides" / "traces.md"]
TRIED += [ROOT / "docs" / "guides" / "optical-links.md", ROOT / "docs" / "guides" / "call-drops.md"]
TRIED += [ROOT / "docs" / "guides" / "bundles.md", ROOT / "docs" / "guides" / "tuning.md"]


def _generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generate()


@pytest.fixture
def generate() -> ModuleType:
    return GENERATE


# Twenty seconds or more each.
LONG_PAGES = {"call-drops.md", "optical-links.md", "tuning.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.nightly] if page.name in LONG_PAGES else []) for page in GENERATE.GENERATED],
    ids=lambda page: page.name,
)
def test_generated_page_is_current(page, generate, programs, monkeypatch):
    """Commands that need no shell start with their imports; those with pipes and files run in a shell, as users type them."""
    shell = generate.run_command

    def run(command: str, folder: Path, environment: dict[str, str]) -> str:
        kind, *rest = shlex.split(command)
        starts = {"farlink": ["-m", "farlink.cli"], "python": []}
        if kind not in starts or re.search(r"[|&;<>()$`*?#~!]", re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command)):
            return shell(command, folder, environment)
        return programs.run([*starts[kind], *rest], cwd=folder, env=environment, is_merged=True).stdout.decode()

    monkeypatch.setattr(generate, "run_command", run)
    assert page.read_text(encoding="utf-8") == generate.made(page), "write it anew with `make docs`, and see what has changed"


def test_a_scenario_table_without_a_reference_section_is_an_error(generate, monkeypatch):
    monkeypatch.setattr(generate, "HEADING", {place: head for place, head in generate.HEADING.items() if place != "RtoConfig"})

    with pytest.raises(LookupError, match="RtoConfig is a table without a section"):
        generate.scenario_page()


def test_reference_has_every_column_of_a_result(small):
    page = (ROOT / "docs" / "reference" / "quantities.md").read_text(encoding="utf-8")

    result = farlink.run(small)
    names = set(re.findall(r"^\| `(\w+)`", page, flags=re.MULTILINE))
    assert names == set(result.rows) - set(result.grid_paths)


def test_null_appears_only_where_the_reference_allows_it(generate, small):
    result = farlink.run(small)
    never = {name for name, _, _, unknown in generate._core.quantities() if not unknown}

    assert never
    assert all(value is not None for name in never for value in result.rows[name])


@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    for name, content in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        with (tmp_path / name).open("a") as file:
            file.write(content)
    names: dict[str, object] = {}

    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        if block.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
            assert doctest.DocTestRunner().run(test).failed == 0
        else:
            exec(compile(block, str(page), "exec"), names)


def test_commands_of_the_readme_run(tmp_path):
    commands = re.findall(r"^\$ (farlink .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

    assert len(commands) >= 4
    for command in commands:
        if "jq" in command and shutil.which("jq") is None:
            command = command.partition("|")[0]
        short = re.sub(r"farlink run \S+", r"\g<0> --set duration_s=20", command)
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(["bash", "-c", short], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{short}\n{done.stderr}"
        assert done.stdout


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
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


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
