"""Look-up tables over round trips and buffers: tuning, files, the table of a path, interpolation, errors."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning

pytest.importorskip("pydantic")

from farlink.errors import TuneError
from farlink.tune import files
from farlink.tune import study as studies
from farlink.tune import table as tables
from farlink.tune.basis import basis
from farlink.tune.candidate_points import candidate_points, to_csv
from farlink.tune.describe import report
from farlink.tune.evaluate import rated
from farlink.tune.path_reader import PathLookUp
from farlink.tune.points import points
from farlink.tune.reader import LookUp, TuningWarning
from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, OK, Row

GRID = {"round_trip_s": [0.5, 0.02, 0.1], "buffer_bdp": [1.0, 0.25], "goodput": "padhye", "flows": [1]}


@pytest.fixture(scope="module")
def table():
    return tables.tune(tuning.study(**GRID), tuning.modem())


def quietly(reader, **path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return reader.on_path(**path)


def test_each_path_has_the_rows_of_its_own_study(table):
    for round_trip_s, buffer_bdp in itertools.product(GRID["round_trip_s"], GRID["buffer_bdp"]):
        alone = tables.tune(tuning.study(**{**GRID, "round_trip_s": round_trip_s, "buffer_bdp": buffer_bdp}), tuning.modem())

        own = [row for row in table.rows if row.path == (round_trip_s, buffer_bdp) and row.status != CANDIDATE]
        assert [replace(row, round_trip_s=None, buffer_bdp=None) for row in own] == alone.rows


def test_a_candidate_is_set_on_another_path_and_may_be_used_here(table):
    candidates = [row for row in table.rows if row.status == CANDIDATE]
    assert candidates
    study, modem = tuning.study(**GRID), tuning.modem()
    for row in candidates[::3]:
        alike = [one for one in table.rows if (one.share, one.flows, one.cn0_dbhz) == (row.share, row.flows, row.cn0_dbhz)]
        assert any(one.status == OK and one.setting == row.setting for one in alike)
        (chosen,) = [one for one in alike if one.path == row.path and one.status == OK]
        assert row.loss <= study.usable.loss
        assert row.goodput_bps <= chosen.goodput_bps / (1 - study.tolerance)
        (path,) = [one for one in study.paths if (one.round_trip_s, one.buffer_bdp) == row.path]
        (every,) = points(modem, [row.cn0_dbhz], share=row.share)
        direct = [
            one
            for one in rated(every, name="padhye", flows=1, path=path)
            if replace(row, status=OK).is_set_as(one.point.setting)
        ]
        assert row.goodput_bps == pytest.approx(direct[0].goodput_bps, rel=1e-12)


def test_one_path_is_written_as_before():
    single = tables.tune(tuning.study(), tuning.modem())
    listed = tables.tune(tuning.study(round_trip_s=[0.5], buffer_bdp=[1.0]), tuning.modem())

    assert listed.rows == single.rows
    assert files.text(listed, ".csv") == files.text(single, ".csv")
    assert single.to_dict()["format"] == 1
    assert "round_trip_s" not in files.text(single, ".csv").splitlines()[0]
    assert all("buffer_bdp" not in row for row in single.to_dict()["rows"])


@pytest.mark.parametrize("suffix", [".csv", ".json", ".toml"])
def test_a_table_over_paths_is_read_back(tmp_path, table, suffix):
    files.write(table, tmp_path / f"table{suffix}")

    assert files.read_rows(tmp_path / f"table{suffix}") == table.rows
    assert PathLookUp.load(tmp_path / f"table{suffix}").round_trips_s == (0.02, 0.1, 0.5)
    assert json.loads(files.text(table, ".json"))["format"] == 2
    with pytest.raises(TuneError, match="over several round trips or buffers") as refused:
        LookUp.load(tmp_path / f"table{suffix}")
    assert "PathLookUp" in refused.value.remedy


def test_a_path_of_the_table_has_its_rows(table):
    reader = PathLookUp(reversed(table.rows))
    for round_trip_s, buffer_bdp in itertools.product(reader.round_trips_s, reader.buffers_bdp):
        found = reader.on_path(round_trip_s=round_trip_s, buffer_bdp=buffer_bdp)
        for share in (0.25, 1.0):
            own = [row for row in table.rows if row.path == (round_trip_s, buffer_bdp) and row.share == share]
            assert found.lookup.rows(share=share) == tuple(row for row in own if row.status != CANDIDATE)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_between_paths_only_what_is_usable_on_all_of_them_is_set(seed, along, across):
    rows = tuning.random_path_rows(seed)
    reader = PathLookUp(rows)
    place = [axis[0] * (axis[-1] / axis[0]) ** at for axis, at in ((reader.round_trips_s, along), (reader.buffers_bdp, across))]

    found = quietly(reader, round_trip_s=place[0], buffer_bdp=place[1]).lookup
    around = [_around(value, axis) for value, axis in zip(place, (reader.round_trips_s, reader.buffers_bdp), strict=True)]
    corners = list(itertools.product(*around))
    usable = {
        (row.share, row.flows, row.cn0_dbhz, row.path, row.setting): row.goodput_bps
        for row in rows
        if row.status != NO_TRANSMISSION
    }
    for share, flows in tuning.PATH_ENTRIES:
        for row in found.rows(share=share, flows=flows):
            here = (share, flows, row.cn0_dbhz)
            shared = {
                key[-1] for key in usable if key[:3] == here and all((*here, path, key[-1]) in usable for path in corners)
            }
            if row.status == OK:
                assert row.setting in shared
                values = [usable[(*here, path, row.setting)] for path in corners]
                assert min(values) * (1 - 1e-9) <= row.goodput_bps <= max(values) * (1 + 1e-9)
            else:
                # On a path of the table it is silent by its own rows; between paths if nothing is usable on all of them.
                assert len(corners) == 1 or not shared


def _around(value, axis):
    for one in axis:
        if abs(value / one - 1) <= 1e-9:
            return [one]
    return [max(one for one in axis if one < value), min(one for one in axis if one > value)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_the_table_of_a_path_is_a_table(seed, along):
    """Steps ascend from 0, each with the thresholds of its lowest C/N0: 0.25 and 0.75 dB above in the invented tables."""
    reader = PathLookUp(tuning.random_path_rows(seed))
    low, high = reader.round_trips_s[0], reader.round_trips_s[-1]

    found = quietly(reader, round_trip_s=low * (high / low) ** along, buffer_bdp=reader.buffers_bdp[0] * 1.01).lookup
    for share, flows in tuning.PATH_ENTRIES:
        steps = [list(step) for _, step in itertools.groupby(found.rows(share=share, flows=flows), key=lambda row: row.step)]
        assert [step[0].step for step in steps] == list(range(len(steps)))
        for before, step in itertools.pairwise(steps):
            assert (step[0].down_dbhz, step[0].up_dbhz) == (step[0].cn0_dbhz + 0.25, step[0].cn0_dbhz + 0.75)
            assert step[0].differs_from(before[-1])
            assert not any(row.differs_from(step[0]) for row in step)


def test_goodput_that_is_a_power_of_the_round_trip_is_interpolated_exactly():
    """Mathis' law with many losses: goodput is 1 / round trip at the same setting."""
    study = tuning.study(round_trip_s=[2.0, 8.0], goodput="mathis", shares=[1.0], flows=[1], usable={"loss": 0.3})
    reader = PathLookUp(tables.tune(study, tuning.modem(implementation_loss_db=3.0)).rows)

    path = studies.NetworkPath(4.0, 1.0)
    compared = 0
    for row in reader.on_path(round_trip_s=4.0).lookup.rows():
        (every,) = points(tuning.modem(implementation_loss_db=3.0), [row.cn0_dbhz])
        for one in rated(every, name="mathis", flows=1, path=path):
            if row.is_set_as(one.point.setting) and row.goodput_bps < 0.1 * row.information_bps:
                # T has the time that a segment takes to be sent, some ms of s.
                assert row.goodput_bps == pytest.approx(one.goodput_bps, rel=2e-3)
                compared += 1
    assert compared


def _beside_direct(reader, modem):
    """Interpolated goodput over that of a direct evaluation, and what the choice loses against the best one."""
    errors, losses = [], []
    for round_trip_s, buffer_bdp in itertools.product((0.025, 0.03, 0.06, 0.2, 0.35), (0.4, 0.7)):
        path = studies.NetworkPath(round_trip_s, buffer_bdp)
        for row in reader.on_path(round_trip_s=round_trip_s, buffer_bdp=buffer_bdp).lookup.rows(share=1.0):
            (every,) = points(modem, [row.cn0_dbhz])
            direct = rated([one for one in every if one.loss <= 0.3], name="relation", flows=1, path=path)
            if row.status == OK:
                (own,) = [one for one in direct if row.is_set_as(one.point.setting)]
                errors.append(row.goodput_bps / own.goodput_bps - 1)
                losses.append(1 - own.goodput_bps / max(one.goodput_bps for one in direct))
    return np.array(errors), np.array(losses)


def test_interpolated_goodput_is_never_above_a_direct_evaluation_and_nears_it():
    """By relation (1) its logarithm bends down over that of the round trip; the guide has errors of Celandroni's modem."""
    modem = tuning.modem()
    coarse, fine = (
        _beside_direct(PathLookUp(tables.tune(tuning.study(round_trip_s=each, buffer_bdp=[0.25, 1.0]), modem).rows), modem)
        for each in ([0.02, 0.1, 0.5], [0.02, 0.03162, 0.05, 0.1, 0.15811, 0.25, 0.5])
    )

    for errors, _ in (coarse, fine):
        assert errors.max() < 1e-9
        assert np.median(errors) > -1e-3
    assert coarse[0].min() < fine[0].min()
    assert fine[1].mean() < coarse[1].mean() / 2


def test_outside_the_table_its_nearest_path_is_used_with_a_warning(table):
    reader = PathLookUp(table.rows)

    with pytest.warns(TuningWarning, match=r"a round trip of 2 s is outside the table, 0\.02 to 0\.5 s"):
        far = reader.on_path(round_trip_s=2.0, buffer_bdp=1.0)
    assert len(far.warnings) == 1
    assert far.lookup.rows() == reader.on_path(round_trip_s=0.5, buffer_bdp=1.0).lookup.rows()
    with pytest.warns(TuningWarning, match=r"a buffer of 0\.1 BDP is outside the table, 0\.25 to 1 BDP"):
        reader.on_path(round_trip_s=0.02, buffer_bdp=0.1)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ({}, "entered by the round trip, 0.02 to 0.5 s, which is not given"),
        ({"round_trip_s": 0.1}, "entered by the buffer, 0.25 to 1 BDP, which is not given"),
        ({"round_trip_s": 0.0, "buffer_bdp": 1.0}, "round trip is 0 s"),
        ({"round_trip_s": 0.1, "buffer_bdp": -1.0}, "buffer is -1 BDP"),
        ({"round_trip_s": math.nan, "buffer_bdp": 1.0}, "round trip is nan s"),
        ({"round_trip_s": 0.1, "buffer_bdp": math.inf}, "buffer is inf BDP"),
    ],
)
def test_a_path_that_is_none_is_refused(table, path, message):
    with pytest.raises(TuneError, match=message) as refused:
        PathLookUp(table.rows).on_path(**path)
    assert refused.value.remedy


def test_rows_that_do_not_form_a_table_over_paths_are_refused(table):
    rows = table.rows
    candidate = next(at for at, row in enumerate(rows) if row.status == CANDIDATE)

    def changed(**values):
        return [*rows[:candidate], replace(rows[candidate], **values), *rows[candidate + 1 :]]

    for wrong, message in (
        ([], "of one path"),
        (tuning.shared_rows(), "of one path"),
        (rows[1:], "a path lacks a condition"),
        ([row for row in rows if row.path != (0.5, 1.0)], "a path lacks a condition"),
        ([*rows, rows[candidate]], "a setting occurs twice"),
        (changed(status=OK), "a path lacks a condition|occurs twice"),
        (changed(goodput_bps=None), "without a goodput"),
        (changed(goodput_bps=0.0), "without a goodput"),
        (changed(buffer_bdp=-1.0), "not a condition"),
        (changed(share=math.nan), "not a condition"),
    ):
        with pytest.raises(TuneError, match=message):
            PathLookUp(wrong)


def test_a_choice_on_another_path_is_ignored(table):
    reader = PathLookUp(table.rows)
    here, there = (reader.on_path(round_trip_s=at, buffer_bdp=1.0).lookup for at in (0.02, 0.5))

    for cn0 in (64.0, 68.3, 72.2):
        assert here.pick(cn0, current=there.pick(76.0)) == here.pick(cn0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"round_trip_s": []}, "round_trip_s"),
        ({"round_trip_s": [0.1, -1.0]}, "round_trip_s"),
        ({"buffer_bdp": [1.0, 1.0]}, "buffer_bdp: a value is given twice"),
        ({"buffer_bdp": 0.0}, "buffer_bdp"),
        ({"buffer_bdp": "1"}, "buffer_bdp"),
        (
            {"round_trip_s": [1 + 0.01 * at for at in range(200)], "cn0_step_db": 0.01},
            "1,280,800 conditions, and at most 500,000",
        ),
    ],
)
def test_a_study_refuses_paths_that_are_none(tmp_path, keys, message):
    with pytest.raises(TuneError) as refused:
        studies.load(tuning.write(tmp_path, study=keys))
    assert message in refused.value.message


def test_progress_counts_the_points_of_all_paths():
    told: list[tuple[str, int, int]] = []

    class Watched:
        def __init__(self, title):
            self.title = title

        def __enter__(self):
            return lambda done, total: told.append((self.title, done, total))

        def __exit__(self, *_):
            return None

    study = tuning.study(**{**GRID, "goodput": "fluid", "shares": [1.0], "cn0_from_dbhz": 72, "precision": {"ci": 0.2}})
    tables.tune(study, tuning.modem(), watch=Watched)

    goodput = [(done, total) for title, done, total in told if title.startswith("goodput")]
    assert len({total for _, total in goodput}) == 1
    assert [done for done, _ in goodput] == sorted(done for done, _ in goodput)
    assert goodput[-1][0] == goodput[-1][1]
    assert goodput[-1][1] % len(study.paths) == 0


def test_a_model_without_a_buffer_says_so():
    found = tables.tune(tuning.study(buffer_bdp=[0.5, 1.0], shares=[1.0], flows=[1]), tuning.modem())

    assert found.remarks == ("goodput by relation does not depend on the buffer: rows of all buffers are alike",)
    assert not any(row.status == CANDIDATE for row in found.rows)


def test_the_report_has_a_list_for_each_path(table):
    text = report(table)

    assert text.count("share 1, 1 flow, round trip 0.02 s, buffer 0.25 BDP\n") == 1
    assert text.count("share ") == 2 * 6
    assert CANDIDATE not in text


def test_operating_points_name_their_path(table):
    rows = candidate_points(tuning.study(**GRID, cn0_from_dbhz=74), tuning.modem())

    assert {(row["round_trip_s"], row["buffer_bdp"]) for row in rows} == {row.path for row in table.rows}
    assert to_csv(rows).splitlines()[0].endswith("is_best,round_trip_s,buffer_bdp")


def test_a_modem_is_played_by_the_table_of_its_path(tmp_path, table):
    files.write(table, tmp_path / "table.json")

    found = basis(tmp_path / "table.json", round_trip_s=0.2, buffer_bdp=0.5)
    assert (found.path.round_trip_s, found.path.buffer_bdp) == (0.2, 0.5)
    assert found.lookup.rows() == PathLookUp(table.rows).on_path(round_trip_s=0.2, buffer_bdp=0.5).lookup.rows()
    with pytest.raises(TuneError, match="entered by the round trip"):
        basis(tmp_path / "table.json")
    with pytest.warns(TuningWarning):
        assert len(basis(tmp_path / "table.json", round_trip_s=9.0, buffer_bdp=0.5).warnings) == 1

    files.write(tables.tune(tuning.study(round_trip_s=[0.5]), tuning.modem()), tmp_path / "one.json")
    assert basis(tmp_path / "one.json").path.round_trip_s == 0.5
    with pytest.raises(TuneError, match=r"round_trip_s is given, and .* is a table of one path"):
        basis(tmp_path / "one.json", round_trip_s=0.1)


def test_tables_of_paths_match_the_vectors_shared_with_rust():
    content = json.loads(tuning.VECTORS.read_text())

    assert content["paths"] == json.loads(json.dumps(tuning.shared_paths())), "write them anew: python -m tests.tuning"
    assert content["bandwidths"] == tuning.shared_bandwidths(tuning.shared_rows())
    statuses = {row[3] for over in content["paths"] for query in over["queries"] for row in query["rows"]}
    assert statuses == {OK, NO_TRANSMISSION}
    assert {query["warnings"] for over in content["paths"] for query in over["queries"]} == {0, 1, 2}


def test_a_row_of_one_path_has_none():
    assert Row(1.0, 1, 60.0, OK).path is None
    assert Row(1.0, 1, 60.0, OK).place == "share 1, 1 flow"
