"""A modem over a series of C/N0: when it changes its setting, what its link loses, and the summary."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tuning

pytest.importorskip("pydantic")

from farlink.channels.trace import Trace
from farlink.errors import TuneError
from farlink.models.arq import goodput_selective_repeat, packet_loss
from farlink.tune.curves import ber_of, lost_of
from farlink.tune.instants import instants
from farlink.tune.play import play, rounded
from farlink.tune.points import point
from farlink.tune.policies import SILENT, name
from farlink.tune.reader import LookUp
from farlink.tune.row import OK
from farlink.tune.table import tune

STUDY = tuning.study(shares=[1.0], flows=[1], thresholds={"margin_db": 0.0, "hysteresis_db": 1.0})
MODEM = tuning.modem()
ROWS = tune(STUDY, MODEM).rows
LOOKUP = LookUp(ROWS)
BARE = LookUp([replace(row, up_dbhz=row.down_dbhz) for row in ROWS])


def series(values, *, step_s=10.0, **meta) -> Trace:
    """A series with one step per value."""
    times = step_s * np.arange(len(values))
    return Trace("cn0", {"time_s": times, "cn0_dbhz": values}, {"duration_s": step_s * len(values), "title": "Steps", **meta})


def names(played) -> list[str]:
    return ["" if at == SILENT else name(played.settings[at]) for at in played.setting]


def row_at(cn0_dbhz: float):
    return next(row for row in ROWS if row.cn0_dbhz == cn0_dbhz)


def test_a_setting_changes_after_the_given_delay():
    high, low = row_at(76.0), row_at(67.0)
    assert high.differs_from(low)

    played = play(series([76.0, 67.0, 76.0], step_s=10), LOOKUP, MODEM, detection_s=4)

    assert played.step_s == 2
    changes = np.flatnonzero(np.diff(played.setting)) + 1
    assert (played.step_s * changes).tolist() == [14, 24]
    assert (names(played)[0], names(played)[8]) == (high.name, low.name)
    # Until then the old setting is used at the new C/N0.
    assert played.loss[0] < 0.01 < 0.9 < played.loss[6]
    assert played.loss[7] < 0.01
    assert played.switches_per_hour == pytest.approx(2 * 3600 / 30)


def test_with_a_delay_longer_than_the_series_the_setting_never_changes():
    played = play(series([76.0, 67.0, 70.0]), LOOKUP, MODEM, detection_s=1000)

    assert set(names(played)) == {row_at(76.0).name}


def test_variation_within_the_hysteresis_changes_nothing():
    down = next(row.down_dbhz for row in ROWS if row.down_dbhz is not None and row.down_dbhz > 68)
    swings = series([down + 0.1, down + 0.9, down + 0.2, down + 0.8] * 5)

    assert play(swings, LOOKUP, MODEM).switches_per_hour == 0
    # The ideal needs no hysteresis, and a table without one follows every crossing.
    across = series([down - 0.1, down + 0.1] * 5)
    assert play(across, LOOKUP, MODEM).switches_per_hour == 0
    assert play(across, BARE, MODEM).switches_per_hour == pytest.approx(9 * 3600 / 100)


def test_figures_match_hand_calculation():
    nothing = ROWS[0]
    assert nothing.status != OK

    played = play(series([76.0, nothing.cn0_dbhz, -math.inf, 76.0]), BARE, MODEM)

    best = row_at(76.0)
    assert (played.silence, played.outage) == (0.5, 0.5)
    assert played.switches_per_hour == pytest.approx(2 * 3600 / 40)
    assert played.information_bps == pytest.approx(best.information_bps / 2)
    assert played.mean_goodput_bps == pytest.approx(best.goodput_bps / 2, rel=1e-6)
    assert played.time_in == {best.name: 0.5, "no transmission": 0.5}
    rate, ber = played.rate_trace(), played.ber_trace()
    assert rate["time_s"].tolist() == [0, 10, 30]
    assert rate["rate_bps"].tolist() == pytest.approx([best.information_bps, 0, best.information_bps])
    assert ber["ber"][1:3].tolist() == [0.5, 0.5]
    assert ber["ber"].size == 4
    assert ber.duration_s == 40


def test_segments_are_lost_as_often_as_the_modem_loses_them():
    cn0 = [64.03, 66.17, 68.0, 70.41]
    for at, setting in enumerate(played := play(series(cn0), LOOKUP, MODEM, policy="fixed").settings):
        assert setting.packet_bytes == 552, (at, played)
    fixed = play(series(cn0), LOOKUP, MODEM, policy="fixed")
    setting = fixed.settings[fixed.setting[0]]

    expected = [point(MODEM, setting, one).loss for one in cn0]
    lost = packet_loss(fixed.ber, packet_bytes=552)
    assert lost == pytest.approx(expected, rel=0.02, abs=1e-12)
    assert fixed.loss == pytest.approx(expected, rel=0.02, abs=1e-12)


@given(st.floats(0, 1), st.integers(1, 100_000))
def test_equivalent_error_rates_lose_as_much(loss, bits):
    ber = ber_of(np.array([loss]), bits)

    assert 0 <= ber[0] <= 0.5
    if ber[0] < 0.5:
        assert lost_of(ber, bits)[0] == pytest.approx(loss, rel=1e-9, abs=1e-15)


@given(st.floats(1e-30, 0.5))
def test_rounding_keeps_four_digits(ber):
    assert rounded(np.array([ber]))[0] == pytest.approx(ber, rel=5.1e-4)
    assert 0 <= rounded(np.array([ber]))[0] <= 0.5


@settings(max_examples=12)
@given(st.lists(st.floats(58.0, 77.0) | st.just(-math.inf), min_size=1, max_size=12).filter(lambda one: max(one) > 0))
def test_no_policy_beats_the_ideal(values):
    trace = series(values)

    ideal, adaptive, fixed = (play(trace, LOOKUP, MODEM, policy=policy) for policy in ("ideal", "adaptive", "fixed"))
    assert np.all(ideal.goodput_bps >= adaptive.goodput_bps)
    assert np.all(ideal.goodput_bps >= fixed.goodput_bps)
    assert np.all((adaptive.rate_bps == 0) == (adaptive.setting == SILENT))
    for setting in fixed.settings:
        one = play(trace, LOOKUP, MODEM, policy="fixed", setting=f"{setting.modulation}, {setting.code_name}")
        assert one.mean_goodput_bps <= fixed.mean_goodput_bps


def test_a_late_policy_equals_a_delayed_series():
    values = [70.0, 72.0, 66.0, 75.0, 64.0]

    late = play(series(values), LOOKUP, MODEM, detection_s=10)
    known = play(series([values[0], *values[:-1]]), LOOKUP, MODEM)
    assert late.setting.tolist() == known.setting.tolist()


def test_synthetic_labels_and_gaps_are_kept():
    played = play(series([76.0], synthetic=True, seed=3, gaps_s=[[1, 2]], notes="missing"), LOOKUP, MODEM, policy="fixed")

    for trace in (played.rate_trace(), played.ber_trace()):
        assert (trace.meta["synthetic"], trace.meta["seed"], trace.meta["gaps_s"]) == (True, 3, [[1, 2]])
        assert "missing Modem: Small modem, share 1." in trace.meta["notes"]
    assert played.meta["setting"] in played.time_in


def test_a_share_outside_the_table_is_reported():
    assert "a share of 0.1 is outside the table, 1 to 1" in play(series([76.0]), LOOKUP, MODEM, share=0.1).warnings


@pytest.mark.parametrize(
    ("given", "said", "remedy"),
    [
        ({"policy": "adaptiv"}, "policy: there is none called 'adaptiv'", "adaptive"),
        ({"setting": "qpsk, none"}, "a setting is given, but the policy is adaptive", "fixed"),
        ({"policy": "fixed", "setting": "qspk, uncoded"}, "the modem has no setting 'qspk, uncoded'", "qpsk"),
        ({"share": 0.0}, "share is 0", "above 0"),
        ({"flows": 0}, "flows is 0", "at least 1"),
        ({"detection_s": -1.0}, "detection_s is -1", "at least 0"),
        ({"detection_s": math.nan}, "detection_s is nan", "at least 0"),
        ({"step_s": 0.0}, "a step of 0 s", "above 0"),
        ({"step_s": 1e-6}, "steps of 1e-06 s", "above 0"),
        ({"goodput": "mathys"}, "no model or engine 'mathys'", "mathis"),
    ],
)
def test_invalid_arguments_are_refused(given, said, remedy):
    with pytest.raises(TuneError) as refused:
        play(series([76.0, 70.0]), LOOKUP, MODEM, **given)
    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_other_traces_and_tables_are_refused():
    with pytest.raises(TuneError, match="a rate trace, where C/N0 is wanted"):
        play(Trace("rate", {"time_s": [0], "rate_bps": [1e6]}, {"duration_s": 1.0}), LOOKUP, MODEM)
    other = [replace(row, code="RS(9,8)") if row.status == OK else row for row in ROWS]
    with pytest.raises(TuneError, match=r"no setting 'qpsk RS\(9,8\), 512 bytes' of the table|no setting 'bpsk RS\(9,8\)"):
        play(series([76.0]), LookUp(other), MODEM)


def test_uneven_times_require_a_step():
    trace = Trace("cn0", {"time_s": [0, 0.333333, 7.1], "cn0_dbhz": [70, 71, 72]}, {"duration_s": 86_400.0})

    with pytest.raises(TuneError) as refused:
        instants(trace, 0.0)
    assert "give a step" in refused.value.remedy
    step_s, found = instants(trace, 0.0, 0.1)
    assert (step_s, found.size) == (0.1, 864_000)
    assert found[[3, 4, 70, 71]].tolist() == [70, 71, 71, 72]


def test_frame_length_for_arq_is_optimal():
    pick = LOOKUP.pick(67.0)
    assert pick.row.ber

    best = pick.frame_bytes(header_bytes=20)
    lengths = np.arange(1, 200_000)
    goodput = goodput_selective_repeat(
        packet_loss(pick.row.ber, packet_bytes=lengths + 20), payload_bytes=lengths, header_bytes=20
    )
    tops = lengths[int(np.argmax(goodput))]
    assert best in (tops, 65_535)
    assert pick.frame_bytes(header_bytes=20, most_bytes=100) == min(100, best)
    assert LOOKUP.pick(60.0).frame_bytes(header_bytes=20) is None
