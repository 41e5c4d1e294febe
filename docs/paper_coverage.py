"""Write `docs/validation/coverage.md`: what farlink has of the five papers, row by row. `make docs` writes it too.

The rows are in `docs/coverage/PAPER.toml`, in the order of the paper. `equations`, `tables` and `figures` at the top are all
numbers that the paper has, each of which needs a row. A `[[row]]` has

- `item`: "eq. (4)", "eqs. (10) to (13)", "table I", "figures 7.8 to 7.11", "section 6.4.2: ..." or "future work: ..."; a part
  of an item follows a colon, as in "table 1: back channel"
- `what`: what the paper has there, in a few words
- `state`: "has it", "differently" or "open"
- `key`, `command`, `python`, `paper-item`, `page`: where it is, a text or a list of texts; `paper_places.py` looks each of them
  up. An open row may name what is nearest, the others need a place
- `note`: how it differs, or what is missing; rows that have it need none
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paper_places
from paper_places import ROOT, PlaceError

from farlink import papers
from farlink.errors import FarlinkError
from farlink.near_names import instead

ROWS = ROOT / "docs" / "coverage"
PAGE = ROOT / "docs" / "validation" / "coverage.md"
STATES = ("has it", "differently", "open")
NUMBERED = {"equations": "eq.", "tables": "table", "figures": "figure"}
# Heading of a table -> how its items begin.
GROUPS = {
    "Equations": ("eq. ", "eqs. "),
    "Tables": ("table ", "tables "),
    "Figures": ("figure ", "figures "),
    "Mechanisms and findings": ("section ",),
    "Future work": ("future work: ",),
}
# Most characters of a cell, so that tables fit a page.
LONGEST = {"item": 60, "what": 70, "place": 75, "note": 130}

_COLUMN = {"Mechanisms and findings": "section", "Future work": "subject"}
_FIELDS = {"item", "what", "state", "note", *paper_places.KINDS}
_NUMBERS = re.compile(r"^(?:eqs?\.|tables?|figures?) (?P<numbers>[^:]+)")
_RANGE = re.compile(r"^(?P<chapter>(?:[0-9]+\.)?)(?P<low>[0-9]{1,3})-(?P<same>(?:[0-9]+\.)?)(?P<high>[0-9]{1,3})$")


class CoverageError(FarlinkError):
    """Rows are wrong or missing; the message names each."""


@dataclass(frozen=True)
class Row:
    """A row of a table file; its attributes are the fields of the file, `places` pairs of kind and place."""

    item: str
    what: str
    state: str
    places: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Coverage:
    """All rows of a paper, and the numbers that the paper has."""

    paper: str
    rows: tuple[Row, ...]
    numbers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def main() -> None:
    """Write the page."""
    from generate import HEADING

    try:
        text = page([load(ROWS / f"{key}.toml") for key in papers.PAPERS], HEADING)
    except CoverageError as error:
        print(f"error: {error.message}\nhint: {error.remedy}", file=sys.stderr)
        raise SystemExit(1) from None
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE.relative_to(ROOT))


def load(path: Path) -> Coverage:
    """Rows of a table file.

    Raises
    ------
    CoverageError
        If it is no TOML, or a row has a wrong or missing field.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CoverageError(f"{path.name}: {error}", "correct the TOML there") from None
    for name in data:
        if name not in (*NUMBERED, "row"):
            raise CoverageError(f"{path.name}: no field {name!r}", instead(name, (*NUMBERED, "row")))
    for name in NUMBERED:
        if not isinstance(data.get(name), str):
            raise CoverageError(f"{path.name}: {name} is missing", f'give all numbers of the paper, as in {name} = "1-13, 47"')
    if not isinstance(tables := data.get("row", []), list) or not all(isinstance(table, dict) for table in tables):
        raise CoverageError(f"{path.name}: row is no list of tables", "begin each row with [[row]]")
    rows = tuple(_row(path.name, place, table) for place, table in enumerate(tables, 1))
    return Coverage(path.stem, rows, {name: tuple(_expanded(data[name])) for name in NUMBERED})


def problems(coverage: Coverage, headings: Mapping[str, str]) -> list[str]:
    """What is wrong with the rows of a paper, a line each: row, fault and remedy."""
    items = Counter(row.item for row in coverage.rows)
    found = [
        f"{item}: {count} rows have this item; name the part of each after a colon"
        for item, count in items.items()
        if count > 1
    ]
    found += [f"{row.item}: {fault}" for row in coverage.rows for fault in _faults(row, headings)]
    return [f"{coverage.paper}.toml: {problem}" for problem in (*found, *gaps(coverage))]


def gaps(coverage: Coverage) -> Iterator[str]:
    """Numbers of the paper without a row, and rows with numbers that the paper has not."""
    for kind, word in NUMBERED.items():
        listed = {number: row.item for row in coverage.rows for number in numbers(row.item, word)}
        for number in coverage.numbers[kind]:
            if number not in listed:
                yield f"{word} {number} of the paper has no row; add one, open if farlink lacks it"
        for number in listed.keys() - set(coverage.numbers[kind]):
            yield f"{listed[number]}: {word} {number} is not among the paper's {kind}; correct the row or `{kind}` at the top"


def numbers(item: str, word: str) -> list[str]:
    """Numbers of the equations, tables or figures (`word` is one of `NUMBERED`) that an item stands for.

    >>> numbers("figures 7.8 to 7.11: windows", "figure"), numbers("eqs. (1) and (2)", "eq."), numbers("table I", "figure")
    (['7.8', '7.9', '7.10', '7.11'], ['1', '2'], [])
    """
    match = _NUMBERS.match(item)
    if match is None or not item.replace("eqs.", "eq.").startswith(word):
        return []
    text = re.sub(r"[() ]", "", match["numbers"].replace(" to ", "-").replace(" and ", ","))
    return list(_expanded(text))


def page(every: list[Coverage], headings: Mapping[str, str]) -> str:
    """The page.

    Raises
    ------
    CoverageError
        If rows are wrong or missing.
    """
    found = [problem for coverage in every for problem in problems(coverage, headings)]
    if found:
        raise CoverageError("\n".join(found), "correct docs/coverage")
    lines = [
        "<!-- Written by docs/paper_coverage.py (`make docs`) from the rows in docs/coverage. -->",
        "# Coverage of the five papers",
        "",
        *_verdict(every),
        "",
        "Every numbered equation, table and figure of the papers, their mechanisms and their future work: where farlink has",
        "it, or why not.",
        "",
        "| paper | items | has it | differently | open |",
        "|---|--:|--:|--:|--:|",
        *(_counts(f"[{coverage.paper.capitalize()}](#{coverage.paper})", coverage.rows) for coverage in every),
        _counts("all", tuple(row for coverage in every for row in coverage.rows)),
        "",
        "- **has it**: farlink computes or does it. Whether it agrees with the printed numbers is on the paper's page.",
        "- **differently**: farlink has it otherwise than the paper, for the reason that is given.",
        "- **open**: farlink lacks it, for the reason or with the gap that is given; what is named there is nearest.",
        "",
        "A key is written without the names of tables and with their kinds: `transport.tcp.variant` is `variant` of a",
        '`[transport.NAME]` with `kind = "tcp"`. The rows are in `docs/coverage`, a file for each paper. A test fails if a',
        "key, command, Python name, item of `farlink papers` or page is gone, or if a number of a paper has no row.",
        "",
    ]
    for coverage in every:
        lines += _paper(coverage, headings)
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(every: list[Coverage]) -> list[str]:
    states = Counter(row.state for coverage in every for row in coverage.rows)
    most = max(every, key=lambda coverage: sum(row.state == "open" for row in coverage.rows))
    of_it = sum(row.state == "open" for row in most.rows)
    said = (
        f"**Verdict.** Of {states.total()} items of {len(every)} papers farlink has {states['has it']}, and "
        f"{states['differently']} otherwise than the paper. What falls short: {states['open']} are open, {of_it} of them of "
        f"{most.paper.capitalize()}. Whether numbers agree stands on the page of each paper."
    )
    return textwrap.wrap(said, 116, break_on_hyphens=False)


def _paper(coverage: Coverage, headings: Mapping[str, str]) -> Iterator[str]:
    paper = papers.load(coverage.paper)
    yield f"## {coverage.paper.capitalize()}"
    yield ""
    yield f"{paper.authors}: [{paper.title}]({paper.key}.md)"
    yield ""
    for heading, begins in GROUPS.items():
        rows = sorted((row for row in coverage.rows if row.item.startswith(begins)), key=_first_number)
        if rows:
            yield f"**{heading}**"
            yield ""
            yield f"| {_COLUMN.get(heading, 'item')} | what the paper has | state | here |"
            yield "|---|---|---|---|"
            yield from (_line(row, headings) for row in rows)
            yield ""


def _first_number(row: Row) -> list[int]:
    """Place of a row among equations, tables or figures; other rows stay in the order of the file."""
    found = [number for word in NUMBERED.values() for number in numbers(row.item, word)]
    return [int(part) if part.isdecimal() else len(part) for part in found[0].split(".")] if found else []


def _line(row: Row, headings: Mapping[str, str]) -> str:
    item = row.item.removeprefix("section ").removeprefix("future work: ")
    here = [paper_places.found(kind, place, headings) for kind, place in row.places]
    note = [f"{row.note[0].upper()}{row.note[1:]}."] if row.note else []
    state = f"**{row.state}**" if row.state == "open" else row.state
    return f"| {item} | {row.what} | {state} | {'<br>'.join(here + note)} |"


def _counts(name: str, rows: tuple[Row, ...]) -> str:
    count = Counter(row.state for row in rows)
    return f"| {name} | {len(rows)} | {' | '.join(str(count[state]) for state in STATES)} |"


def _row(name: str, place: int, table: dict[str, Any]) -> Row:
    item = table.get("item", f"row {place}")
    for key in table:
        if key not in _FIELDS:
            raise CoverageError(f"{name}: {item}: no field {key!r}", instead(key, _FIELDS))
    for key in ("item", "what", "state"):
        if not table.get(key):
            raise CoverageError(f"{name}: {item}: {key} is missing", f"give the row its {key}")
    for key, value in table.items():
        is_list = key in paper_places.KINDS and isinstance(value, list) and all(isinstance(one, str) for one in value)
        if not isinstance(value, str) and not is_list:
            remedy = "write a text, or a list of texts" if key in paper_places.KINDS else "write a text"
            raise CoverageError(f"{name}: {item}: {key} is {value!r}", remedy)
    if table["state"] not in STATES:
        raise CoverageError(f"{name}: {item}: no state {table['state']!r}", instead(table["state"], STATES))
    places = []
    for kind in paper_places.KINDS:
        given = table.get(kind, [])
        places += [(kind, one) for one in ([given] if isinstance(given, str) else given)]
    return Row(item, table["what"], table["state"], tuple(places), table.get("note", ""))


def _faults(row: Row, headings: Mapping[str, str]) -> Iterator[str]:
    if not row.item.startswith(tuple(begin for begins in GROUPS.values() for begin in begins)):
        yield "no such kind of item; begin it with eq., table, figure, section or future work:"
    if row.state != "open" and not row.places:
        yield f"no place is named; say where it is, or call it open instead of {row.state!r}"
    if row.state == "differently" and not row.note:
        yield "no reason is given; say in note how it differs and why"
    if row.state == "open" and not row.note:
        yield "no gap is named; say in note what is missing"
    shown = [("place", place) for kind, place in row.places if kind != "page"]
    cells = [("item", row.item), ("what", row.what), ("note", row.note), *shown]
    for name, text in cells:
        if len(text) > LONGEST[name]:
            yield f"{name} has {len(text)} characters; at most {LONGEST[name]} fit"
        if "|" in text or "\n" in text:
            yield f"{name} {text!r} would break the table; leave out | and line ends"
    for kind, place in row.places:
        try:
            paper_places.found(kind, place, headings)
        except PlaceError as error:
            yield f"{error.message}; {error.remedy}"


def _expanded(text: str) -> Iterator[str]:
    """Single numbers of a list with ranges, such as "2.1-2.4, 3.1" or "I, II"; what is no range stays as it is."""
    for part in filter(None, re.split(r", *", text)):
        ends = _RANGE.match(part)
        if ends is None or ends["chapter"] != ends["same"]:
            yield part
        else:
            yield from (f"{ends['chapter']}{number}" for number in range(int(ends["low"]), int(ends["high"]) + 1))


if __name__ == "__main__":
    main()
