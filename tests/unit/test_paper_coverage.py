"""Rows of docs/coverage: each place is there, each number of a paper has a row, and a wrong row is reported by name."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.conftest import ROOT, program_of_docs

from farlink import papers

KINDS = ("key", "command", "python", "paper-item", "page")
# A right place of each kind.
RIGHT = {
    "key": "transport.tcp.delayed_ack",
    "command": "farlink trace show --drops",
    "python": "farlink.models.arq.round_trip_s",
    "paper-item": "epple table-1-theory",
    "page": "docs/validation/epple.md#blocks",
}
# kind, wrong place -> what the message and the remedy say.
WRONG = [
    ("key", "transport.tcp.delayed_ack_s", "no key 'delayed_ack_s'", "did you mean 'delayed_ack'?"),
    ("key", "transport.tpc.variant", "no kind 'tpc'", "did you mean 'tcp'?"),
    ("key", "transport.udp.rate", "no key 'rate'", "give one of "),
    ("key", "seed.value", "no key 'value'", "the key before it holds no table"),
    ("key", 'transport.tcp.variant = "taho"', 'no value "taho"', "did you mean 'tahoe'?"),
    ("key", "transport.tcp.delayed_ack = 1", "no value 1", "give one of True, False"),
    ("key", "transport.tcp.segment_bytes = 5", "no value 5", "leave the value out"),
    ("key", "transport.tcp.variant = tahoe", "tahoe is no value", 'write text as "text"'),
    ("command", "farlink trace shows", "no command 'shows'", "did you mean 'show'?"),
    ("command", "farlink trace show --drop", "no option '--drop'", "did you mean '--drops'?"),
    ("command", "farlink trace show --drops x link", "names a file or another argument", "write options only"),
    ("command", "farlink schema now", "names a file or another argument", "write options only"),
    ("command", "farlink trace synthesize kido", "no preset 'kido'", "did you mean 'kiodo'?"),
    ("command", "farlink trace synthesize kiodo --set jiter_rad=", "'jiter_rad' is no parameter", "did you mean 'jitter_rad'?"),
    ("command", "farlink trace synthesize rain --set latitude=5", "--set is not looked up there", "name a preset"),
    ("command", "trace show", "does not begin with farlink", "write it as one types it"),
    ("python", "farlink.models.arq.window_byte", "there is no 'window_byte'", "did you mean 'window_bytes'?"),
    ("python", "farlink.modles.arq", "there is no 'modles'", "did you mean 'models'?"),
    ("python", "numpy.float64", "no public name of farlink", "write it from farlink."),
    ("python", "farlink.cli.__main__", "no public name of farlink", "write it from farlink."),
    ("paper-item", "epple table-1-theori", "no item 'table-1-theori'", "did you mean 'table-1-theory'?"),
    ("paper-item", "eple blocks", "no paper 'eple'", "did you mean 'epple'?"),
    ("page", "docs/validation/eple.md", "does not exist", "did you mean 'docs/validation/epple.md'?"),
    ("page", "docs/validation/epple.md#block", "no heading 'block'", "did you mean 'blocks'?"),
    ("page", "docs/generate.py", "does not exist", "docs/"),
]


@pytest.fixture(scope="module")
def docs() -> SimpleNamespace:
    """The programs of the page, and the headings of the scenario reference."""
    loaded = {name: program_of_docs(name) for name in ("paper_places", "paper_coverage", "generate")}
    return SimpleNamespace(**loaded, headings=loaded["generate"].HEADING)


def rows_of(docs, key):
    return docs.paper_coverage.load(ROOT / "docs" / "coverage" / f"{key}.toml")


@pytest.mark.parametrize("key", papers.PAPERS)
def test_rows_of_a_paper_name_places_that_exist_and_leave_no_number_out(docs, key):
    assert docs.paper_coverage.problems(rows_of(docs, key), docs.headings) == []


def test_each_paper_has_a_table_file_and_each_file_is_of_a_paper():
    assert {path.stem for path in (ROOT / "docs" / "coverage").iterdir()} == set(papers.PAPERS)


# Counted by hand in the papers' texts, apart from the table files.
@pytest.mark.parametrize(
    ("key", "equations", "tables", "figures"),
    [
        ("brodbekier", 1, 2, 6),
        ("celandroni", 1, 1, 4),
        ("epple", 13, 1, 4),
        ("pathapati", 0, 1, 16),
        ("zaghloul", 36 + 1, 2 + 2 + 3 + 3 + 2, 4 + 4 + 11 + 3 + 6 + 15),
    ],
)
def test_table_files_list_as_many_numbers_as_the_paper_has(docs, key, equations, tables, figures):
    numbers = rows_of(docs, key).numbers

    assert {kind: len(set(found)) for kind, found in numbers.items()} == {
        "equations": equations,
        "tables": tables,
        "figures": figures,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_place_is_found_and_leads_there(docs, kind):
    assert RIGHT[kind].split()[-1].split("#")[-1] in docs.paper_places.found(kind, RIGHT[kind], docs.headings)


@pytest.mark.parametrize(("kind", "place", "fault", "remedy"), WRONG)
def test_a_wrong_place_is_reported_with_its_row_and_the_remedy(docs, kind, place, fault, remedy):
    coverage = rows_of(docs, "epple")
    wrong = replace(coverage.rows[3], places=((kind, place),))

    (problem,) = docs.paper_coverage.problems(
        replace(coverage, rows=(*coverage.rows[:3], wrong, *coverage.rows[4:])), docs.headings
    )
    assert problem.startswith(f"epple.toml: {wrong.item}: ")
    assert repr(place) in problem
    assert fault in problem
    assert remedy in problem


@pytest.mark.parametrize("key", papers.PAPERS)
def test_a_number_without_a_row_is_reported(docs, key):
    coverage = rows_of(docs, key)
    for word, kind in (("eq.", "equations"), ("table", "tables"), ("figure", "figures")):
        for number in coverage.numbers[kind]:
            left = tuple(row for row in coverage.rows if number not in docs.paper_coverage.numbers(row.item, word))
            assert len(left) < len(coverage.rows)
            found = list(docs.paper_coverage.gaps(replace(coverage, rows=left)))
            assert f"{word} {number} of the paper has no row; add one, open if farlink lacks it" in found


@pytest.mark.parametrize(
    ("item", "word", "numbers"),
    [
        ("eq. (4): in the simulation", "eq.", ["4"]),
        ("eqs. (10) to (13)", "eq.", ["10", "11", "12", "13"]),
        ("figures 7.8 to 7.11", "figure", ["7.8", "7.9", "7.10", "7.11"]),
        ("tables 4.2 and 4.3", "table", ["4.2", "4.3"]),
        ("table I: ns-2 and TGEP", "table", ["I"]),
        ("table 1", "figure", []),
        ("section 3.1: figure 2", "figure", []),
        ("figures 1 to x", "figure", ["1-x"]),
        ("figures 4.9 to 5.1", "figure", ["4.9-5.1"]),
    ],
)
def test_numbers_of_an_item(docs, item, word, numbers):
    assert docs.paper_coverage.numbers(item, word) == numbers


def test_a_number_that_the_paper_has_not_is_reported(docs):
    coverage = rows_of(docs, "epple")
    extra = replace(coverage.rows[0], item="figures 4 and 5: a misprint")

    (problem,) = docs.paper_coverage.problems(replace(coverage, rows=(*coverage.rows, extra)), docs.headings)
    assert problem.startswith(
        "epple.toml: figures 4 and 5: a misprint: figure 5 is not among the paper's figures; correct the row or `figures`"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"places": ()}, "no place is named; say where it is, or call it open instead of 'has it'"),
        ({"state": "differently"}, "no reason is given; say in note how it differs and why"),
        ({"state": "open"}, "no gap is named; say in note what is missing"),
        ({"item": "chapter 7"}, "no such kind of item; begin it with eq., table, figure, section or future work:"),
        ({"what": "x" * 71}, "what has 71 characters; at most 70 fit"),
        ({"note": "a | b"}, "note 'a | b' would break the table"),
    ],
)
def test_an_incomplete_row_is_reported(docs, change, fault):
    coverage = rows_of(docs, "epple")
    row = next(row for row in coverage.rows if row.item.startswith("section") and row.state == "has it" and not row.note)
    rows = tuple(replace(one, **change) if one is row else one for one in coverage.rows)

    (problem,) = docs.paper_coverage.problems(replace(coverage, rows=rows), docs.headings)
    assert problem.startswith(f"epple.toml: {change.get('item', row.item)}: ")
    assert fault in problem


def test_two_rows_of_one_item_are_reported(docs):
    coverage = rows_of(docs, "epple")

    (problem,) = docs.paper_coverage.problems(replace(coverage, rows=(*coverage.rows, coverage.rows[0])), docs.headings)
    assert problem == f"epple.toml: {coverage.rows[0].item}: 2 rows have this item; name the part of each after a colon"


@pytest.mark.parametrize(
    ("text", "fault", "remedy"),
    [
        ('equations = "1"\n[[row]\n', "Expected ']]'", "correct the TOML there"),
        ('equations = "1"\n', "tables is missing", "give all numbers of the paper"),
        ('equations = "1"\ntables = ""\nfigures = ""\n[[rows]]\n', "no field 'rows'", "did you mean 'row'?"),
        ('equations = "1"\ntables = ""\nfigures = ""\n[row]\n', "row is no list", "begin each row with [[row]]"),
        ('item = "eq. (1)"\nwhere = "x"', "eq. (1): no field 'where'", "give one of "),
        ('item = "eq. (1)"\nwhat = "x"', "eq. (1): state is missing", "give the row its state"),
        ('what = "x"\nstate = "open"', "row 1: item is missing", "give the row its item"),
        ('item = "eq. (1)"\nwhat = "x"\nstate = "opne"', "eq. (1): no state 'opne'", "did you mean 'open'?"),
        ('item = "eq. (1)"\nwhat = "x"\nstate = "open"\nkey = 5', "eq. (1): key is 5", "write a text, or a list of texts"),
        ('item = "eq. (1)"\nwhat = 7\nstate = "open"', "eq. (1): what is 7", "write a text"),
    ],
)
def test_a_table_file_that_cannot_be_read_is_refused(docs, tmp_path, text, fault, remedy):
    path = tmp_path / "epple.toml"
    head = "" if text.startswith("equations") else 'equations = "1"\ntables = ""\nfigures = ""\n[[row]]\n'
    path.write_text(head + text, encoding="utf-8")

    with pytest.raises(docs.paper_coverage.CoverageError, match=re.escape(fault)) as caught:
        docs.paper_coverage.load(path)
    assert str(caught.value).startswith("epple.toml: ")
    assert remedy in caught.value.remedy


def test_the_page_is_current(docs):
    text = (ROOT / "docs" / "validation" / "coverage.md").read_text(encoding="utf-8")

    assert docs.generate.coverage_page() == text, "write it anew with `python docs/paper_coverage.py`"


def test_the_page_has_all_rows_and_counts_them(docs):
    text = (ROOT / "docs" / "validation" / "coverage.md").read_text(encoding="utf-8")
    every = [rows_of(docs, key) for key in papers.PAPERS]

    counts = [
        [int(cell) for cell in found.split(" | ")] for found in re.findall(r"^\| .+? \| ([\d |]+\d) \|$", text, re.MULTILINE)
    ]
    assert len(counts) == len(every) + 1
    assert all(total == sum(states) for total, *states in counts)
    assert counts[-1] == [sum(column) for column in zip(*counts[:-1], strict=True)]
    assert [total for total, *_ in counts[:-1]] == [len(coverage.rows) for coverage in every]
    assert (
        len(re.findall(r"^\| [^|]+ \| [^|]+ \| (?:has it|differently|\*\*open\*\*) \| [^|]+ \|$", text, re.MULTILINE))
        == counts[-1][0]
    )


def test_equations_tables_and_figures_are_in_the_order_of_their_numbers():
    text = (ROOT / "docs" / "validation" / "coverage.md").read_text(encoding="utf-8")
    zaghloul = text.partition("## Zaghloul")[2]

    equations = [int(number) for number in re.findall(r"^\| eqs?\. \((\d+)\)", zaghloul, re.MULTILINE)]
    figures = [(int(one), int(two)) for one, two in re.findall(r"^\| figures? (\d)\.(\d+)", zaghloul, re.MULTILINE)]
    assert len(equations) > 30
    assert len(figures) > 30
    assert equations == sorted(equations)
    assert figures == sorted(figures)


def test_no_page_is_made_of_wrong_rows(docs):
    coverage = rows_of(docs, "epple")
    wrong = replace(coverage.rows[0], places=(("page", "docs/nowhere.md"),))

    with pytest.raises(docs.paper_coverage.CoverageError, match=r"docs/nowhere\.md"):
        docs.paper_coverage.page([replace(coverage, rows=(wrong, *coverage.rows[1:]))], docs.headings)


@given(kind=st.sampled_from(KINDS), place=st.text(max_size=40))
@example(kind="page", place="/etc/passwd")
@example(kind="page", place="docs/../README.md")
@example(kind="python", place="farlink..models")
@example(kind="command", place="")
@example(kind="key", place=" = ")
@example(kind="key", place="transport.tcp.variant = [" + "[" * 30)
def test_whatever_is_written_as_a_place_is_found_or_refused(docs, kind, place):
    try:
        found = docs.paper_places.found(kind, place, docs.headings)
    except docs.paper_places.PlaceError as error:
        found = error.remedy
    assert found


@given(kind=st.sampled_from(KINDS), at=st.integers(1, 200), letter=st.sampled_from("qzxj_9"))
def test_a_letter_too_many_is_noticed(docs, kind, at, letter):
    right = RIGHT[kind]
    at %= len(right)
    wrong = right[: at + 1] + letter + right[at + 1 :]

    with pytest.raises(docs.paper_places.PlaceError, match=re.escape(repr(wrong))):
        docs.paper_places.found(kind, wrong, docs.headings)


@given(key=st.sampled_from(sorted(papers.PAPERS)), at=st.integers(0, 10**6), letters=st.text(max_size=3), is_cut=st.booleans())
def test_a_table_file_with_a_slip_is_read_or_refused(docs, tmp_path_factory, key, at, letters, is_cut):
    text = (ROOT / "docs" / "coverage" / f"{key}.toml").read_text(encoding="utf-8")
    at %= len(text)
    path = tmp_path_factory.mktemp("rows") / f"{key}.toml"
    path.write_text(text[:at] + letters + text[at + is_cut :], encoding="utf-8", errors="replace")

    try:
        coverage = docs.paper_coverage.load(path)
    except docs.paper_coverage.CoverageError as error:
        found = [error.message]
    else:
        found = docs.paper_coverage.problems(coverage, docs.headings)
    assert all(problem.startswith(f"{key}.toml: ") for problem in found)
