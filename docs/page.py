"""Code shared by the programs that write pages of results.

A page is edited by hand. Its program replaces what stands between marks, `<!--= NAME -->` and `<!--/-->`: a number within a
sentence, or tables and paragraphs where both marks have lines of their own. `<!--= NAME:.1f -->` formats a number.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farlink.cli.progress import progress_bar
from farlink.output import whole_file
from farlink.plot.style import picture_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
VALIDATION = ROOT / "docs" / "validation"
PICTURES = ROOT / "docs" / "pictures"
DATA = Path(os.environ.get("FARLINK_DATA") or ROOT.parent / "shared" / "data")

# The values of a page, by the names of its marks.
Values = dict[str, Any]

MARK = re.compile(r"(?P<open><!--= (?P<name>[a-z]\w*)(?::(?P<format>[^ ]+))? -->)(?P<old>.*?)<!--/-->", re.DOTALL)


class PageError(ValueError):
    """A page and its program have different marks."""


def start(doc: str, *needed: Path) -> None:
    """Read the command line, which has `--help` only, and stop if measured data are missing."""
    argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for path in needed:
        if not path.exists():
            print(f"error: {path} is not there\nhint: set FARLINK_DATA to the directory of the measured data", file=sys.stderr)
            raise SystemExit(2)


def write(
    name: str, pictures: Mapping[str, Figure], *, change: Callable[[str], str] = str, only: bool = False, **said: Any
) -> None:
    """Write the values of a page between its marks, and its pictures; `change` is applied to the SVG.

    Raises
    ------
    PageError
        If the page has a mark without a value (unless `only`) or a value has no mark; the page is left unchanged.
    """
    path = VALIDATION / name
    text = filled(path.read_text(encoding="utf-8"), said, name, only=only)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(path.relative_to(ROOT))
    for stem, figure in pictures.items():
        path = PICTURES / f"{stem}.svg"
        svg = change(picture_svg(figure, stem))
        with whole_file(path) as temporary:
            temporary.write_text(svg, encoding="utf-8")
        print(path.relative_to(ROOT))


def filled(text: str, said: Mapping[str, Any], name: str, *, only: bool = False) -> str:
    """The text of a page with new values between its marks; with `only`, marks without a value stay."""
    tokens = re.findall(r"<!--= .*?-->|<!--/-->", text)
    for place, token in enumerate(tokens):
        is_fine = token == "<!--/-->" if place % 2 else MARK.match(token + "<!--/-->")
        if not is_fine or (place % 2 == 0 and place + 1 == len(tokens)):
            before = tokens[place - 1] if place else "the beginning"
            msg = f"{name}: {token} after {before} is no mark that is opened and closed"
            raise PageError(msg)
    names = {mark["name"] for mark in MARK.finditer(text)}
    if (unknown := sorted(names - said.keys())) and not only:
        msg = f"{name}: no value for {', '.join(unknown)}"
        raise PageError(msg)
    if unused := sorted(said.keys() - names):
        msg = f"{name}: no mark for {', '.join(unused)}"
        raise PageError(msg)

    def value(mark: re.Match[str]) -> str:
        if mark["name"] not in said:
            return mark[0]
        new = re.sub(r"(?<=\d)%", " %", format(said[mark["name"]], mark["format"] or ""))
        return f"{mark['open']}\n{new.strip()}\n<!--/-->" if mark["old"].startswith("\n") else f"{mark['open']}{new}<!--/-->"

    return MARK.sub(value, text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], rule: str = "") -> str:
    """A table; `rule` has an `l` or an `r` for each column, of which the last stands for all that follow."""
    head = list(head)
    sides = (rule + rule[-1:] * len(head))[: len(head)]
    lines = ["|" + "|".join("--:" if side == "r" else "---" for side in sides) + "|"]
    cells = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([cells[0], *lines, *cells[1:]])


def paragraph(text: str) -> str:
    """A paragraph in lines of at most 128 characters."""
    return textwrap.fill(text, 128, break_on_hyphens=False, break_long_words=False)


@contextmanager
def steps(title: str, total: int, unit: str = "runs") -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` steps, which shows the progress."""
    with progress_bar(title, unit) as tell:
        done = 0

        def told() -> None:
            nonlocal done
            done += 1
            tell(done, total)

        yield told
