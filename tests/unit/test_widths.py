"""Tables at every width: numbers are complete, and omitted columns are named."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from farlink import shown
from farlink.shown_table import fitted
from farlink.text_table import table
from farlink.units import Scale

WIDTHS = (60, 80, 100, 120, 200)

FIGURES = st.builds(
    lambda mean, half: Scale(1.0, "").interval(mean, half), st.floats(1e-9, 1e9), st.one_of(st.just(0.0), st.floats(1e-9, 1e9))
)
NAMES = st.text("abcdefghij", min_size=1, max_size=14)
QUANTITIES = ["goodput\nkb/s", "of the link\n%", "mean delay\nms", "99 % delay\ns", "lost\n%", "timeouts", "transfer time\ns"]


@st.composite
def tables(draw):
    """Output of a run: some columns of a grid, goodput, and some of the other quantities."""
    keys = [f"{draw(NAMES)} {number}" for number in range(draw(st.integers(0, 4)))]
    others = draw(st.lists(st.sampled_from(QUANTITIES[1:]), unique=True))
    headings = [(name, False) for name in keys] + [(name, True) for name in ["runs", QUANTITIES[0], *others]]
    count = draw(st.integers(1, 6))
    rows = [
        [*(draw(NAMES) for _ in keys), str(draw(st.integers(1, 1000))), *(draw(FIGURES) for _ in [0, *others])]
        for _ in range(count)
    ]
    return headings, rows, len(keys) + 2


def printed(table, width):
    page = io.StringIO()
    Console(file=page, width=width, color_system=None).print(table)
    return page.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@given(made=tables())
def test_no_number_is_cut_and_omitted_columns_are_named(width, made):
    headings, rows, keep = made
    text = printed(fitted(headings, rows, keep=keep), width)

    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    table_text, _, left_out = text.partition("left out at this width: ")
    left = set(" ".join(left_out.split()).split(", ")) - {""}
    names = [heading.partition("\n")[0] for heading, _ in headings]
    assert left <= set(names[keep:])
    cells = [cell for row in rows for name, cell in zip(names, row, strict=True) if name not in left]
    for cell in cells:
        whole = re.compile(r"(?<![\w.])" + r"\s+".join(map(re.escape, cell.split())) + r"(?![\w.])")
        assert whole.search(table_text), cell


@pytest.mark.parametrize("width", WIDTHS)
@given(made=tables())
def test_a_wide_text_table_continues_below(width, made):
    headings, rows, _ = made
    head = [heading.partition("\n")[0] for heading, _ in headings]
    token = shown.WIDTH.set(width)
    try:
        text = table(head, rows)
    finally:
        shown.WIDTH.reset(token)

    assert all(len(line) <= width for line in text.splitlines())
    for cell in [*head, *(cell for row in rows for cell in row)]:
        assert cell in text


def test_without_a_width_a_text_table_is_not_split():
    assert "\n\n" not in table(["a" * 100, "b" * 100, "c" * 100], [["1", "2", "3"]])


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", [["code", "list"], ["trace", "receivers"]], ids=" ".join)
def test_a_terminal_wraps_no_line(command, width):
    ours, theirs = pty.openpty()
    try:
        environment = {**os.environ, "COLUMNS": str(width), "LINES": "50"}
        process = subprocess.Popen(
            [sys.executable, "-c", "from farlink.cli import main; main()", *command], stdout=theirs, env=environment
        )
        os.close(theirs)
        printed = b""
        # On Linux, reading a terminal whose other end is closed fails.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                printed += piece
        assert process.wait() == 0
    finally:
        os.close(ours)
    lines = printed.decode().splitlines()

    assert max(map(len, lines)) <= width
    assert any("source" in line for line in lines)
