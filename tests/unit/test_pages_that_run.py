"""Commands, files and Python of each page run in its order, and print what the page shows.

A page is a test of its own, and the processes of pytest-xdist share them (`tests/conftest.py`); `-k coding` tries one alone.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.conftest import ROOT, program_of_docs

GENERATE = program_of_docs("generate")
REPLAY = GENERATE.replay
# Ten seconds of the processor or more each.
LONG_PAGES = {"call-drops.md", "optical-links.md", "tuning.md"}
EVERY = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.nightly] if page.name in LONG_PAGES else []) for page in REPLAY.pages()],
    ids=lambda page: page.name,
)
def test_page_prints_what_it_shows(page, programs):
    """Commands that need no shell start with their imports; those with pipes and files run in a shell, as users type them."""

    def run(command: str, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
        kind, *rest = shlex.split(command, comments=True)
        starts = {"farlink": ["-m", "farlink.cli"], "python": []}
        if kind not in starts or re.search(r"[|&;<>()$`*?#~!]", re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command)):
            return REPLAY.run_command(command, folder, environment)
        done = programs.run([*starts[kind], *rest], cwd=folder, env=environment, is_merged=True)
        return done.stdout.decode(), done.returncode

    assert page.read_text(encoding="utf-8") == GENERATE.current(page, run), "write it anew with `make docs`"


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_not_run_has_its_reason_or_its_own_test(page):
    """A line behind `$ ` in no block that is found would be run by nobody."""
    text = page.read_text(encoding="utf-8")
    blocks = list(REPLAY.BLOCK.finditer(text))
    within = [line for block in blocks for line in REPLAY.commands(block)]

    assert len(within) == len(re.findall(r"^\$ ", text, flags=re.MULTILINE))
    for block in blocks:
        mark = block["mark"] or ""
        if test := re.fullmatch(r"run by (\S+)", mark):
            assert page.name in (ROOT / test[1]).read_text(encoding="utf-8"), f"{test[1]} does not read {page.name}"
        assert not mark.startswith("not run") or len(mark.split()) > 3, f"{mark}: why?"


PAGE = """
```toml a.toml
x = 1
```

```console
$ cat a.toml
```

```python
import tomllib
from pathlib import Path

found = tomllib.loads(Path("a.toml").read_text())
```

```toml a.toml
y = 2
```

```python
>>> found
{'x': 1}
>>> len(Path("a.toml").read_text().split())
6
```
"""


def test_files_commands_and_python_share_a_folder_in_the_order_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    before = Path.cwd()

    assert REPLAY.replayed(page) == PAGE.replace("$ cat a.toml\n", "$ cat a.toml\nx = 1\n")
    assert Path.cwd() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3"),
        ("```\n$ false\n```\n", "page.md: false"),
        ("<!-- run with --runs 1 -->\n```\n$ test farlink = run\n```\n", "page.md: test farlink = run"),
    ],
)
def test_what_does_not_do_as_the_page_says_is_an_error(text, said, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)

    with pytest.raises(REPLAY.PageError, match=re.escape(said)):
        REPLAY.replayed(page)


def test_a_marked_block_is_left_alone_and_a_continued_line_is_one_command(tmp_path):
    page = tmp_path / "page.md"
    text = "<!-- not run: it needs root -->\n```console\n$ false\nold\n```\n\n```console\n$ echo a \\\n    b\nold\n```\n"
    page.write_text(text)

    assert REPLAY.replayed(page) == text.replace("b\nold", "b\na b")
