"""Write the generated parts of the documentation: `make docs`, or `make docs PAGE=guides/coding.md` for one page.

- `docs/reference/scenario.md` and a page per table in `docs/reference/scenario/`, from the JSON Schema of the types that run
- `docs/reference/quantities.md`, every column of a result
- `docs/reference/commands.md`, every command and its options
- `docs/validation/coverage.md`, what farlink has of the papers, from the rows in `docs/coverage`
- what the commands of guides and of `README.md` print (`docs/replay.py`)
- `python/README.md`, the README of the package: that of the project with links that hold anywhere
- the table in `README.md` and the picture below it, from `scenarios/geo-tcp.toml`
- the picture of `scenarios/compare-geo.toml`
- the tables of `docs/validation/codecs.md`, if `make bench` has left `out/bench-codecs.json`
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import command_pages
import replay
import result_page
import scenario_pages
from scenario_sections import HEADING

from farlink import papers

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
SCENARIO = "scenarios/geo-tcp.toml"
CODECS = DOCS / "validation" / "codecs.md"
MEASURED = ROOT / "out" / "bench-codecs.json"
PICTURES = DOCS / "pictures"
# Each picture shows the goodput of the scenario of that name.
SCENARIO_PICTURES = ("geo-tcp", "compare-geo")


def main(wanted: list[str]) -> None:
    """Write all of it, or the pages that are named as in `docs`."""
    named = [README if name == "README.md" else (DOCS / name.removeprefix("docs/")) for name in wanted]
    every = {**reference(), **dict.fromkeys(replay.pages(), current)}
    if unknown := [str(page) for page in named if page not in every]:
        sys.exit(f"error: {', '.join(unknown)}: no page with something that is generated or run")
    for path in named or every:
        path.parent.mkdir(exist_ok=True)
        path.write_text(every[path](path), encoding="utf-8")
        print(path.relative_to(ROOT))
    if named:
        return
    for path in tables_without_a_section():
        path.unlink()
    if MEASURED.exists():
        codecs = _program("bench_codecs", ROOT / "benches" / "codecs.py")
        CODECS.write_text(codecs.page_with_tables(CODECS.read_text(encoding="utf-8"), json.loads(MEASURED.read_text())))
        print(CODECS.relative_to(ROOT))
    PICTURES.mkdir(exist_ok=True)
    for name in SCENARIO_PICTURES:
        path = PICTURES / f"{name}.svg"
        path.write_text(picture(name), encoding="utf-8")
        print(path.relative_to(ROOT))


def _program(name: str, path: Path) -> Any:
    """A program that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def reference() -> dict[Path, Callable[[Path], str]]:
    """Pages that the code has in it, and what makes each of them."""
    folder = DOCS / "reference"
    tables = scenario_pages.tables()
    return {
        folder / "scenario.md": lambda _: scenario_pages.index(),
        **{folder / scenario_pages.FOLDER / name: lambda _, text=text: text for name, text in tables.items()},
        folder / "quantities.md": lambda _: result_page.page(),
        folder / "commands.md": lambda _: command_pages.page(),
        DOCS / "validation" / "coverage.md": lambda _: coverage_page(),
        ROOT / "python" / "README.md": lambda _: of_package(README.read_text(encoding="utf-8")),
    }


def of_package(readme: str) -> str:
    """The README as an index of packages shows it: links and pictures lead into the repository."""
    repository = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")

    def whole(link: re.Match[str]) -> str:
        kind = "tree" if (ROOT / link["target"]).is_dir() else "blob"
        return f"{link['text']}({f'{raw}/main' if link['picture'] else f'{repository}/{kind}/main'}/{link['target']})"

    head = "<!-- Written by docs/generate.py (`make docs`) from README.md. -->\n"
    text = re.sub(r"^<!-- .*? -->\n", "", readme, flags=re.MULTILINE)
    return head + re.sub(r"(?P<text>(?P<picture>!?)\[[^\]\n]*\])\((?P<target>(?!https?:)[^)\s]+)\)", whole, text)


def tables_without_a_section() -> list[Path]:
    """Pages of tables that a scenario has no more."""
    folder = DOCS / "reference" / scenario_pages.FOLDER
    return sorted(set(folder.glob("*.md")) - {folder / name for name in scenario_pages.tables()})


def current(page: Path, run: replay.Run | None = None) -> str:
    """A page with what its commands print today."""
    text = replay.replayed(page, run)
    return with_table(text, run) if page == README else text


def coverage_page() -> str:
    """What farlink has of the papers."""
    for name in ("paper_places", "paper_coverage"):
        program = _program(name, DOCS / f"{name}.py")
    text: str = program.page([program.load(program.ROWS / f"{key}.toml") for key in papers.PAPERS], HEADING)
    return text


def with_table(readme: str, run: replay.Run | None = None) -> str:
    """The README with what its command prints today: the title, the heading and the rows from 1e-7 to 1e-5."""
    with replay.inside(ROOT) as environment:
        printed, _ = (run or replay.run_command)(f"farlink run {SCENARIO}", ROOT, environment)
    head, *groups, foot = re.split(r"\n\s*\n", printed.strip())
    table, first = groups[0].rsplit("─\n", 1)
    chosen = [group for group in (first, *groups[1:]) if group.split()[0] in ("1e-7", "1e-6", "1e-5")]
    shown = "\n\n".join([head, f"{table}─\n ...\n" + "\n\n".join(chosen) + "\n ...", foot])
    return re.sub(
        r"(<!-- output -->\n```\n).*?(\n```\n<!-- end -->)", lambda found: found[1] + shown + found[2], readme, flags=re.DOTALL
    )


def picture(name: str) -> str:
    """Goodput of each transport of a scenario against what its grid varies, as an SVG file."""
    import farlink
    from farlink.plot.style import picture_svg

    return picture_svg(farlink.run(ROOT / "scenarios" / f"{name}.toml").plot(), name)


if __name__ == "__main__":
    main(sys.argv[1:])
