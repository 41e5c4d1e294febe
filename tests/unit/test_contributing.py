"""CONTRIBUTING.md names what exists, and its recipe for a paper works as written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farlink import papers
from farlink.cli.commands import app

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# The file to which each recipe adds its line, and an existing line there.
REGISTRIES = {
    "channels": ("crates/farlink-core/src/channel/mod.rs", 'Loss = "loss" => loss::'),
    "congestion_controls!": ("crates/farlink-core/src/protocol/tcp/congestion/names.rs", 'None = "none" => none::None,'),
    "variants!": (
        "crates/farlink-core/src/protocol/tcp/variant/names.rs",
        'Tahoe = "tahoe" => tahoe::Tahoe { sack: false },',
    ),
    "codes!": ("crates/farlink-core/src/coding/mod.rs", 'Uncoded = "uncoded" => uncoded::Uncoded,'),
    "PAPERS": ("python/farlink/papers/__init__.py", '"zaghloul": "farlink.papers.zaghloul",'),
}

# The trait of each recipe, and the file of its example.
EXAMPLES = {
    "Channel": "crates/farlink-core/src/channel/loss.rs",
    "Control": "crates/farlink-core/src/protocol/tcp/congestion/none.rs",
    "Reaction": "crates/farlink-core/src/protocol/tcp/variant/tahoe.rs",
    "CodeConfig": "crates/farlink-core/src/coding/uncoded.rs",
}


def test_every_file_named_in_contributing_exists():
    named = re.findall(r"`((?:crates|tests|docs|python|fuzz|\.ci)/[\w./-]+)`", TEXT)
    assert len(named) > 8

    # NAME is a placeholder for the new file.
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]

    assert missing == []


@pytest.mark.parametrize("registry", REGISTRIES)
def test_registry_lines_are_where_the_recipes_say(registry):
    file, line = REGISTRIES[registry]
    text = (ROOT / file).read_text(encoding="utf-8")

    assert f"`{registry}`" in TEXT
    assert registry in text
    assert line in text


@pytest.mark.parametrize("trait", EXAMPLES)
def test_the_example_of_each_recipe_fits_it(trait):
    text = (ROOT / EXAMPLES[trait]).read_text(encoding="utf-8")

    assert f"`{trait}`" in TEXT
    assert re.search(rf"impl {trait} for ", text)


def test_a_toy_paper_takes_one_file_and_one_line(tmp_path, monkeypatch):
    (tmp_path / "toy_paper.py").write_text(
        """
from farlink.papers.check import Check, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Item, Paper


def table_1(bench):
    value = Estimate(4.0, 0.0)
    return [Check("table-1", "two and two", 4.0, "model", value, number(value, "4.0"), "as printed")], []


PAPER = Paper("toy", "A toy", "Nobody", (Item("table-1", "A sum", 1, table_1),))
""",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(papers.PAPERS, "toy", "toy_paper")

    result = CliRunner().invoke(app, ["papers", "toy"])

    sys.modules.pop("toy_paper", None)
    assert result.exit_code == 0, result.output
    assert re.search(r"two and two.*agrees", result.output)
