"""The reader of look-up tables: picks, hysteresis, warnings."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import sys
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning

pytest.importorskip("pydantic")

from farlink.errors import TuneError
from farlink.tune import files
from farlink.tune import table as tables
from farlink.tune.reader import LookUp, Pick, TuningWarning
from farlink.tune.row import NO_TRANSMISSION, OK, Row

CN0 = st.floats(55.0, 80.0)


@st.composite
def entries(draw):
    """Rows of one share and number of flows: settings over some conditions, thresholds with margin and hysteresis."""
    codes = draw(st.lists(st.sampled_from([None, "A", "B", "C"]), min_size=1, max_size=12))
    step_db, margin, hysteresis = draw(st.sampled_from([0.1, 0.5, 1.0])), draw(st.floats(0, 2)), draw(st.floats(0, 3))
    rows: list[Row] = []
    step, down, up = 0, None, None
    for at, code in enumerate(codes):
        cn0 = round(60 + at * step_db, 9)
        if at and code != codes[at - 1]:
            step, down = step + 1, round(cn0 + margin, 9)
            up = round(down + hysteresis, 9)
        status = NO_TRANSMISSION if code is None else OK
        rows.append(Row(1.0, 1, cn0, status, step, down, up, code=code))
    return rows


def quietly(reader: LookUp, cn0_dbhz: float, **more) -> Pick:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return reader.pick(cn0_dbhz, **more)


@given(entries())
def test_without_margin_every_row_is_picked_at_its_own_condition(rows):
    # Thresholds without margin.
    first = {}
    for row in rows:
        first.setdefault(row.step, row.cn0_dbhz)
    plain = [Row(1.0, 1, r.cn0_dbhz, r.status, r.step, first[r.step] if r.step else None, None, code=r.code) for r in rows]
    reader = LookUp(reversed(plain))

    for row in plain:
        assert reader.pick(row.cn0_dbhz).row == row


@given(entries(), CN0, CN0)
def test_a_higher_cn0_never_picks_a_lower_step(rows, one, other):
    reader = LookUp(rows)

    low, high = (quietly(reader, cn0).row.step for cn0 in sorted((one, other)))
    assert low <= high


@given(entries(), st.lists(CN0, min_size=1, max_size=30))
def test_a_step_is_kept_between_its_thresholds_and_left_outside(rows, walk):
    reader = LookUp(rows)
    ends = {row.step: (row.down_dbhz, row.up_dbhz) for row in rows}
    low, high = rows[0].cn0_dbhz, rows[-1].cn0_dbhz

    current = quietly(reader, walk[0])
    for cn0 in walk[1:]:
        before, current = current, quietly(reader, cn0, current=current)
        at = min(max(cn0, low), high)
        down = ends[current.row.step][0]
        assert down is None or at >= down
        if current.row.step > before.row.step:
            assert at >= ends[current.row.step][1]
        if current.row.step < before.row.step:
            assert at < ends[before.row.step][0]
        # A reader without a current step never stays below a step that it may enter.
        assert all(step <= current.row.step for step, (_, up) in ends.items() if up is None or at >= up)


@given(entries(), CN0, st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_the_pick_never_oscillates_within_the_hysteresis(rows, start, swings):
    reader = LookUp(rows)
    ends = [(row.down_dbhz, row.up_dbhz) for row in rows if row.down_dbhz is not None]
    if not ends:
        return
    down, up = ends[0]
    # Anywhere from the lower threshold of a step up to, not including, its upper one.
    inside = [down + share * (up - down) for share in swings if down + share * (up - down) < up]

    current = quietly(reader, start)
    steps = []
    for cn0 in inside:
        current = quietly(reader, cn0, current=current)
        steps.append(current.row.step)
    of_this = next(row.step for row in rows if row.down_dbhz == down)
    crossings = sum((a >= of_this) != (b >= of_this) for a, b in itertools.pairwise(steps))
    assert crossings == 0


@given(entries(), CN0)
def test_picking_again_changes_nothing(rows, cn0):
    reader = LookUp(rows)

    once = quietly(reader, cn0)
    assert quietly(reader, cn0, current=once) == once


@settings(max_examples=20)
@given(CN0)
def test_outside_the_table_its_end_rows_are_picked_with_a_warning(cn0):
    reader = LookUp(tuning.shared_rows())

    if 60 <= cn0 <= 68:
        assert reader.pick(cn0).warnings == ()
        return
    with pytest.warns(TuningWarning, match="outside the table, 60 to 68 dBHz"):
        found = reader.pick(cn0)
    assert found == Pick(quietly(reader, 60.0 if cn0 < 60 else 68.0).row, found.warnings)
    assert len(found.warnings) == 1


def test_a_number_of_flows_not_in_the_table_is_one_flow_at_a_smaller_share():
    reader = LookUp(tuning.shared_rows())

    assert reader.pick(63.0, share=1.0, flows=8).row.flows == 8
    assert (reader.pick(63.0, share=1.0, flows=4).row.share, reader.pick(63.0, share=1.0, flows=4).row.flows) == (0.25, 1)
    assert reader.pick(63.0, share=1.0, flows=2).row.share == 0.5
    with pytest.warns(TuningWarning, match=r"share of 0\.0625 is outside the table, 0\.25 to 1"):
        assert reader.pick(63.0, share=1.0, flows=16).row.share == 0.25


def test_a_dedicated_carrier_takes_the_nearest_number_of_flows():
    reader = LookUp([Row(**{**vars(row), "access": "scpc"}) for row in tuning.shared_rows()])

    with pytest.warns(TuningWarning, match="4 flows are not in the table: 8 are used"):
        assert reader.pick(63.0, share=1.0, flows=4).row.flows == 8


def test_a_pick_for_another_share_is_ignored():
    reader = LookUp(tuning.shared_rows())
    high = reader.pick(68.0, share=1.0)

    fresh = reader.pick(64.3, share=0.5)
    assert reader.pick(64.3, share=0.5, current=high) == fresh


def test_the_picked_row_is_at_the_condition_or_nearest_within_the_step():
    reader = LookUp(tuning.shared_rows())

    assert reader.pick(62.9).row.cn0_dbhz == 62.5
    # Step D is left below 66.2, so it is kept at 66.3 after a fall.
    held = reader.pick(66.3, current=reader.pick(67.5))
    assert (held.row.code, held.row.cn0_dbhz) == ("D", 66.0)
    # Step C begins at 64, and without a previous step is entered at 64.2.
    assert (reader.pick(64.3).row.code, reader.pick(64.3).row.cn0_dbhz) == ("C", 64.0)


def test_picks_match_the_vectors_shared_with_rust():
    content = json.loads(tuning.VECTORS.read_text())
    rows = tuning.shared_rows()

    assert [Row(**row) for row in content["rows"]] == rows
    assert content["picks"] == tuning.shared_picks(rows), (
        "write them anew: python -m tests.tuning, and look at what has changed"
    )
    assert {pick["warnings"] for pick in content["picks"]} == {0, 1}
    assert len({pick["picked"]["step"] for pick in content["picks"]}) == 6


@pytest.mark.parametrize("suffix", [".csv", ".json", ".toml"])
def test_a_table_picks_its_own_rows(tmp_path, suffix):
    study = tuning.study(thresholds={"margin_db": 0.0, "hysteresis_db": 0.0})
    table = tables.tune(study, tuning.modem())
    files.write(table, tmp_path / f"table{suffix}")

    reader = LookUp.load(tmp_path / f"table{suffix}")
    for row in table.rows:
        assert reader.pick(row.cn0_dbhz, share=row.share, flows=row.flows).row == row


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ((math.nan, 1.0, 1), "not a condition"),
        ((60.0, 0.0, 1), "share 0"),
        ((60.0, math.inf, 1), "share inf"),
        ((60.0, 1.0, 0), "0 flows"),
    ],
)
def test_an_invalid_condition_is_refused(condition, words):
    cn0_dbhz, share, flows = condition

    with pytest.raises(TuneError) as refused:
        LookUp(tuning.shared_rows()).pick(cn0_dbhz, share=share, flows=flows)
    assert words in refused.value.message


def test_reading_a_table_needs_no_extras(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(tuning.VECTORS.read_text())
    code = f"""
import sys
sys.modules["pydantic"] = sys.modules["scipy"] = sys.modules["matplotlib"] = None
from farlink.tune.reader import LookUp
print(LookUp.load({str(path)!r}).pick(62.0).row.code)
try:
    import farlink.tune.study
except Exception as error:
    print(type(error).__name__, error, error.remedy, sep="; ")
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "B",
        "MissingExtraError; a description of a modem or of a study needs pydantic, which is not installed; "
        "install it with: pip install 'farlink[tune]'",
    ]


def test_rows_that_do_not_form_a_table_are_refused():
    row = tuning.shared_rows()[3]

    with pytest.raises(TuneError, match="without rows"):
        LookUp([])
    with pytest.raises(TuneError, match="a C/N0 occurs twice"):
        LookUp([row, row])
    with pytest.raises(TuneError, match="do not ascend"):
        LookUp([row, Row(**{**vars(row), "cn0_dbhz": 99.0, "step": 0})])


@pytest.mark.parametrize(("ber", "limits", "expected"), [(1e-5, {}, 687), (1e-5, {"most_bytes": 500}, 500), (0.0, {}, 65_535)])
def test_frame_length_follows_the_error_rate_of_its_row(ber, limits, expected):
    picked = Pick(Row(1.0, 1, 60.0, OK, 0, None, None, code="A", ber=ber))

    # h/2 (sqrt(1 + 4 / (8 p h)) - 1) for a header of h = 40 bytes.
    assert picked.frame_bytes(header_bytes=40, **limits) == expected


def test_a_bandwidth_is_a_share_of_the_symbol_rate():
    """All rows of the invented table have 1 Msymbol/s."""
    lookup = LookUp(tuning.shared_rows())
    for share in (0.25, 0.3, 0.5, 1.0):
        for cn0 in (60.0, 61.7, 64.0, 66.1, 68.0):
            assert lookup.pick(cn0, bandwidth_hz=share * 1e6) == lookup.pick(cn0, share=share)
    assert lookup.rows(bandwidth_hz=0.5e6) == lookup.rows(share=0.5)


@pytest.mark.published("Celandroni, section V")
def test_the_bandwidth_is_divided_by_the_number_of_connections():
    lookup = LookUp(tuning.shared_rows())

    picked = lookup.pick(63.0, bandwidth_hz=1e6, flows=2)
    assert (picked.row.share, picked.row.flows) == (0.5, 1)
    assert picked == lookup.pick(63.0, bandwidth_hz=1e6 / 2)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"bandwidth_hz": 0.0}, "bandwidth_hz is 0"),
        ({"bandwidth_hz": -1.0}, "bandwidth_hz is -1"),
        ({"bandwidth_hz": float("nan")}, "bandwidth_hz is nan"),
        ({"bandwidth_hz": float("inf")}, "bandwidth_hz is inf"),
        ({"bandwidth_hz": 1e6, "share": 0.5}, "both are given"),
    ],
)
def test_a_bandwidth_that_is_none_is_refused(entry, message):
    with pytest.raises(TuneError, match=message) as refused:
        LookUp(tuning.shared_rows()).pick(63.0, **entry)

    assert refused.value.remedy


def test_a_bandwidth_outside_the_table_is_told():
    with pytest.warns(TuningWarning, match="a share of 2 is outside the table"):
        LookUp(tuning.shared_rows()).pick(63.0, bandwidth_hz=2e6)


def test_a_bandwidth_needs_one_symbol_rate():
    first, *others = [row for row in tuning.shared_rows() if row.status == OK]
    mixed = [dataclasses.replace(first, symbol_rate_hz=2e6), *others]
    with pytest.raises(TuneError, match="settings of 1e\\+06, 2e\\+06, not of one symbol rate"):
        LookUp(mixed).pick(63.0, bandwidth_hz=1e6)
