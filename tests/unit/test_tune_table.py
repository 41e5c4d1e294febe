"""Look-up tables: choice of settings, thresholds, no transmission, the guard, and files."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning

pytest.importorskip("pydantic")

from farlink.errors import OutputError, TuneError
from farlink.tune import files
from farlink.tune import study as studies
from farlink.tune import table as tables
from farlink.tune.describe import report
from farlink.tune.evaluate import rated
from farlink.tune.goodput import GOODPUT, goodput
from farlink.tune.guard import guard
from farlink.tune.offered import Offered, Path, Precision
from farlink.tune.points import points
from farlink.tune.row import NO_TRANSMISSION, OK, Row
from farlink.tune.study import Study

CLOSED = ("relation", "padhye", "padhye-approximate", "mathis")


@pytest.fixture(scope="module")
def table():
    return tables.tune(tuning.study(), tuning.modem())


def entries(rows):
    return [list(entry) for _, entry in itertools.groupby(rows, key=lambda row: (row.share, row.flows))]


def test_every_condition_has_a_row_in_order(table):
    keys = [(row.share, row.flows, row.cn0_dbhz) for row in table.rows]

    assert keys == [(share, flows, cn0) for share in (0.25, 1.0) for flows in (1, 4) for cn0 in range(60, 77)]


def test_every_row_is_the_best_of_all_settings(table):
    study = tuning.study()
    for row in table.rows[::3]:
        (every,) = points(tuning.modem(), [row.cn0_dbhz], share=row.share)
        reached = rated(every, name="relation", flows=row.flows, path=study.path)
        usable = [one.goodput_bps for one in reached if one.point.loss <= study.usable.loss]
        if row.status == OK:
            assert row.goodput_bps >= (1 - study.tolerance) * max(usable)
            (own,) = [one for one in reached if row.is_set_as(one.point.setting)]
            assert (own.goodput_bps, own.point.loss, own.point.ber) == (row.goodput_bps, row.loss, row.ber)
        else:
            assert usable == []


def test_an_unusable_condition_means_no_transmission(table):
    silent = [row for row in table.rows if row.status == NO_TRANSMISSION]

    assert {row.cn0_dbhz for row in silent} >= {60.0, 61.0}
    assert all(row.goodput_bps is None and row.modulation is None and row.code is None for row in silent)
    assert all("every setting loses more than 0.3" in row.reason for row in silent)
    # All conditions above the first usable one are usable.
    for entry in entries(table.rows):
        assert [row.status for row in entry] == sorted((row.status for row in entry), key=lambda status: status == OK)


def test_a_demodulator_that_never_works_sends_nothing():
    silent = tables.tune(tuning.study(), tuning.modem(lowest_esn0_db=99.0))

    assert {row.status for row in silent.rows} == {NO_TRANSMISSION}
    assert {row.reason for row in silent.rows} == {"the demodulator works with no setting"}


def test_a_minimum_goodput_is_respected():
    study = tuning.study(usable={"goodput_bps": 5e5}, shares=[1.0], flows=[1])
    found = tables.tune(study, tuning.modem())

    assert any("no setting has a goodput above 500000 b/s" in row.reason for row in found.rows)
    assert all(row.goodput_bps > 5e5 for row in found.rows if row.status == OK)


def test_thresholds_are_where_a_step_begins():
    thresholds = {"margin_db": 0.3, "hysteresis_db": 0.7}
    found = tables.tune(tuning.study(thresholds=thresholds), tuning.modem())

    for entry in entries(found.rows):
        steps = [list(step) for _, step in itertools.groupby(entry, key=lambda row: row.step)]
        assert [step[0].step for step in steps] == list(range(len(steps)))
        assert (steps[0][0].down_dbhz, steps[0][0].up_dbhz) == (None, None)
        for below, step in itertools.pairwise(steps):
            assert step[0].down_dbhz == pytest.approx(step[0].cn0_dbhz + 0.3)
            assert step[0].up_dbhz == pytest.approx(step[0].cn0_dbhz + 1.0)
            assert step[0].differs_from(below[-1])
            assert not any(row.differs_from(step[0]) for row in step)


def test_a_finer_table_contains_the_coarse_one():
    narrow = {"cn0_from_dbhz": 66, "cn0_to_dbhz": 68, "shares": [1.0], "flows": [1], "tolerance": 0.0}
    coarse = tables.tune(tuning.study(**narrow), tuning.modem())
    fine = tables.tune(tuning.study(**narrow, cn0_step_db=0.1), tuning.modem())

    assert len(fine.rows) == 21
    assert [row.cn0_dbhz for row in fine.rows][:4] == [66.0, 66.1, 66.2, 66.3]
    same = [(row.modulation, row.code, row.goodput_bps) for row in fine.rows[::10]]
    assert same == [(row.modulation, row.code, row.goodput_bps) for row in coarse.rows]


def test_tolerance_keeps_a_setting_that_is_nearly_as_good():
    found = {
        tolerance: tables.tune(tuning.study(tolerance=tolerance, shares=[1.0], flows=[1], cn0_step_db=0.25), tuning.modem())
        for tolerance in (0.0, 0.3)
    }

    steps = {tolerance: max(row.step for row in table.rows) for tolerance, table in found.items()}
    assert steps[0.3] < steps[0.0]
    for kept, best in zip(found[0.3].rows, found[0.0].rows, strict=True):
        assert (kept.goodput_bps or 0) >= 0.7 * (best.goodput_bps or 0)


def test_the_best_of_several_packet_sizes_is_chosen():
    sizes = tuning.modem(segment_bytes=[64, 256, 1400], code={"none": {"kind": "uncoded"}})
    found = tables.tune(tuning.study(shares=[1.0], flows=[1], cn0_step_db=0.25), sizes)

    chosen = [row.segment_bytes for row in found.rows if row.modulation == "bpsk"]
    assert set(chosen) > {1400}
    assert chosen == sorted(chosen)


@pytest.mark.parametrize("name", CLOSED)
def test_goodput_of_closed_forms_makes_a_monotone_table(name):
    found = tables.tune(tuning.study(goodput=name), tuning.modem())

    assert found.study["goodput"] == name
    assert all(one.is_harmless for one in found.findings)
    for entry in entries(found.rows):
        reached = [row.goodput_bps or 0.0 for row in entry]
        assert reached == sorted(reached)


@settings(max_examples=30)
@given(
    st.sampled_from(CLOSED),
    st.floats(1.0, 1e5),
    st.floats(1e-9, 0.9),
    st.floats(1.0, 5.0),
    st.integers(1, 20),
    st.floats(0.01, 2.0),
)
def test_goodput_is_a_share_that_falls_with_loss_and_grows_with_flows(name, rate, loss, more, flows, round_trip_s):
    def share(loss: float, flows: int) -> float:
        found, half_width = goodput(name, Offered(np.array([rate]), np.array([loss]), flows, Path(round_trip_s)))
        assert half_width.tolist() == [0.0]
        return float(found[0])

    here = share(loss, flows)
    assert 0 < here <= 1 - loss
    # Padhye's window limit switches abruptly, so that slightly more can arrive where it begins to apply.
    assert share(min(0.95, more * loss), flows) <= here * (1.02 if name.startswith("padhye") else 1)
    assert share(loss, flows + 1) >= here * (0.98 if name.startswith("padhye") else 1)


def test_the_packet_engine_is_near_relation_1_within_its_range():
    links = Offered(np.array([455.0]), np.array([1e-2]), 5, Path(0.5, 0.8), Precision(level=0.95))
    packet, half_width = goodput("packet", links)
    relation, _ = goodput("relation", links)

    assert packet[0] == pytest.approx(relation[0], rel=0.12)
    assert 0 < half_width[0] < 0.1 * packet[0]


def test_unknown_goodput_is_refused():
    with pytest.raises(TuneError) as refused:
        goodput("relations", Offered(np.ones(1), np.zeros(1), 1, Path()))
    assert "did you mean 'relation'?" in refused.value.remedy


def test_selection_uses_the_fluid_engine_from_half_the_rate(monkeypatch):
    asked = []

    def fluid(rate, _round_trip, _buffer, loss, flows, **options):
        asked.extend(loss.tolist())
        assert flows == 1
        assert options["timeouts"] is False
        return SimpleNamespace(goodput=np.full_like(rate, 0.75), half_width=np.full_like(rate, 0.01))

    monkeypatch.setattr("farlink.engines.fluid.goodput", fluid)
    share, half_width = GOODPUT["selection"].of(Offered(np.full(2, 455.0), np.array([1e-5, 1e-2]), 1, Path()), None)
    assert asked == [1e-5]
    assert (share[0], half_width[0]) == (0.75, 0.01)
    assert share[1] < 0.5
    assert half_width[1] == 0


def rows_of(goodputs, rates, half_width=0.0):
    """Rows of one share and number of flows with these goodputs, and a setting for each rate."""
    found = []
    for at, (reached, rate) in enumerate(zip(goodputs, rates, strict=True)):
        step = len([one for one in itertools.pairwise(rates[: at + 1]) if one[0] != one[1]])
        found.append(
            Row(
                0.5, 1, 60.0 + at, OK, step, symbol_rate_hz=1e6, modulation="bpsk", family="X", code=f"R{rate:g}",
                segment_bytes=512, information_bps=rate, ber=1e-6, loss=1e-3 / (at + 1), goodput_bps=reached,
                goodput_half_width_bps=half_width,
            )
        )  # fmt: skip
    return found


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=12))
def test_guard_finds_exactly_the_drops_in_goodput(goodputs):
    findings = guard(rows_of(goodputs, [1.0] * len(goodputs)))

    falls = [60.0 + at + 1 for at, (below, here) in enumerate(itertools.pairwise(goodputs)) if here < below]
    assert [one.cn0_dbhz for one in findings] == falls
    assert all(one.what == "goodput_bps" and not one.is_harmless for one in findings)


def test_guard_gives_the_reason():
    (unsure,) = guard(rows_of([100.0, 99.0], [1.0, 1.0], half_width=0.6))
    assert (unsure.is_harmless, unsure.reason) == (True, "within the intervals, 1.2 b/s together")

    (slower,) = guard(rows_of([100.0, 101.0], [2.0, 1.0]))
    assert (slower.what, slower.is_harmless) == ("information_bps", True)
    assert "loses less" in slower.reason

    back = [one.what for one in guard(rows_of([100.0, 101.0, 102.0], [1.0, 2.0, 1.0]))]
    assert back == ["information_bps", "setting"]

    gone = [*rows_of([100.0], [1.0]), Row.of_nothing(61.0, 0.5, 1, "tdma", "too dear")]
    (finding,) = guard(gone)
    assert (finding.what, finding.is_harmless, finding.reason) == ("status", False, "too dear")
    assert str(finding) == "share 0.5, 1 flows, 61 dBHz: status from ok to no transmission: too dear"


@pytest.mark.parametrize("suffix", [".csv", ".json", ".toml"])
def test_files_give_back_the_same_rows(table, tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    files.write(table, path)

    assert files.read_rows(path) == table.rows


def test_a_failed_write_leaves_the_old_table(table, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("kept")
    with pytest.raises(TuneError, match=r"no look-up table has the suffix '\.xlsx'"):
        files.write(table, tmp_path / "table.xlsx")
    with pytest.raises(OutputError):
        files.write(table, tmp_path / "missing" / "table.csv")
    monkeypatch.setattr("pathlib.Path.write_text", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OutputError, match="No space left"):
        files.write(table, path)
    monkeypatch.undo()
    assert path.read_text() == "kept"
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.csv", None, "cannot read"),
        ("t.json", "{", "is no look-up table"),
        ("t.json", '{"rows": []}', "there is no row"),
        ("t.json", '{"rows": [{"share": 1}]}', "row 1 lacks 'flows'"),
        ("t.json", '{"rows": [1]}', "row 1"),
        ("t.toml", "rows = 1", "is no look-up table"),
        ("t.csv", "a,b\n1,2\n", "row 1 has no column 'a'"),
        ("t.csv", "share,flows,cn0_dbhz,status,step\n1,1,60,maybe,0\n", "status is 'maybe'"),
        ("t.csv", "share,flows,cn0_dbhz,status,step\n1,1,60\n", "another number of values"),
        ("t.json", '{"rows": [{"share":1,"flows":1,"cn0_dbhz":"60","status":"ok","step":0}]}', "cn0_dbhz is '60'"),
    ],
)
def test_files_that_are_not_tables_are_refused(tmp_path, name, text, words):
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(TuneError) as refused:
        files.read_rows(tmp_path / name)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cn0_to_dbhz": 59}, "cn0_to_dbhz = 59 is below cn0_from_dbhz"),
        ({"cn0_step_db": 0}, "cn0_step_db: 0"),
        ({"cn0_step_db": 1e-6}, "too many conditions"),
        ({"shares": [0.5, 0.5]}, "shares: a value is given twice"),
        ({"shares": [1.5]}, "shares[0]: 1.5"),
        ({"flows": [0]}, "flows[0]: 0"),
        ({"flows": [1.5]}, "flows[0]: 1.5"),
        ({"goodput": "relaton"}, "there is no model or engine 'relaton'"),
        ({"families": ["CW"]}, "the modem has no codes 'CW'"),
        ({"modem": "none.toml"}, "cannot read modem"),
        ({"thresholds": {"margin": 1}}, "thresholds.margin: there is no such key"),
        ({"cn0_from_dbhz": "60"}, "cn0_from_dbhz: '60'"),
    ],
)
def test_bad_studies_are_refused(tmp_path, changes, words):
    path = tuning.write(tmp_path, study=changes)

    with pytest.raises(TuneError) as refused:
        studies.load(path)
    assert words in refused.value.message


def test_rows_differ_only_by_their_setting():
    row = rows_of([1.0], [1.0])[0]

    assert not row.differs_from(replace(row, cn0_dbhz=61.0, loss=0.5, goodput_bps=2.0))
    for change in ({"code": "R2"}, {"modulation": "qpsk"}, {"segment_bytes": 100}, {"symbol_rate_hz": 2.0}):
        assert row.differs_from(replace(row, **change))


def test_bandwidths_are_shares_of_the_carrier():
    by_share = tables.tune(tuning.study(shares=[1.0, 0.25]), tuning.modem())
    data = {key: value for key, value in tuning.STUDY.items() if key != "shares"}
    study = Study.model_validate({**data, "bandwidths_hz": [1e6, 0.25e6]})
    by_bandwidth = tables.tune(study, tuning.modem())

    assert by_bandwidth.rows == by_share.rows
    assert "shares" not in by_bandwidth.study
    assert "share 0.25 (0.25 MHz), 1 flow" in report(by_bandwidth)
    assert "MHz" not in report(by_share)


@pytest.mark.parametrize(
    ("study", "modem", "message"),
    [
        ({"bandwidths_hz": [2e6]}, {}, "bandwidths_hz of 2e\\+06 are more than the carrier's 1e\\+06"),
        ({"bandwidths_hz": [1e5]}, {"symbol_rates_hz": [1e6, 2e6]}, "several symbol rates: 1e\\+06, 2e\\+06"),
        ({"bandwidths_hz": [1e5, 1e5]}, {}, "a value is given twice"),
        ({"bandwidths_hz": [0.0]}, {}, "bandwidths_hz"),
        ({"bandwidths_hz": []}, {}, "bandwidths_hz"),
        ({"bandwidths_hz": [1e5], "shares": [1.0]}, {}, "both given"),
    ],
)
def test_bandwidths_that_are_none_are_refused(tmp_path, study, modem, message):
    path = tuning.write(tmp_path, modem=modem)
    data = {key: value for key, value in tuning.STUDY.items() if key != "shares"}
    path.write_text(tomli_w.dumps({**data, **study}))
    with pytest.raises(TuneError, match=message) as refused:
        studies.load(path)

    assert refused.value.remedy
