"""A duplicate key in a TOML text is named, whatever follows it."""

from __future__ import annotations

import pytest

from farlink.untrusted import toml_tables

TWICE = {
    "in the middle": ("a = 1\nb = 2\na = 3\nc = 4\n", "a", 3),
    "at the end, no line end": ("a = 1\na = 2", "a", 2),
    "at the end": ("a = 1\na = 2\n", "a", 2),
    "before blank lines": ("a = 1\na = 2\n\n\n", "a", 2),
    "in a table": ("[link]\nrate_bps = 1\n[flow]\nx = 1\nx = 2", "x", 5),
    "dotted": ("link.rate_bps = 1\nlink.rate_bps = 2", "link.rate_bps", 2),
    "quoted": ('"a=b" = 1\n"a=b" = 2', '"a=b"', 2),
    "a list of several lines": ("a = 1\na = [\n  1,\n  2,\n]", "a", 2),
    "a text of several lines": ('a = 1\na = """\nb = 2\n"""', "a", 2),
    "an inline table": ("a = { x = 1, x = 2 }", "x", 1),
    "a table": ("[a]\nx = 1\n[b]\n[a]", "a", 4),
    "a table in the middle": ("[a.b]\nx = 1\n[a.b]\ny = 2\n", "a.b", 3),
    "behind a remark": ("a = 1 # first\na = 2 # second", "a", 2),
}


@pytest.mark.parametrize("case", TWICE)
def test_the_duplicate_key_and_its_line_are_named(case):
    text, key, line = TWICE[case]

    with pytest.raises(ValueError, match="occurs twice") as caught:
        toml_tables(text)

    assert f"the key {key} occurs" in str(caught.value)
    assert f"(at line {line})" in str(caught.value)
