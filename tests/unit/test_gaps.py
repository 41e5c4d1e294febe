"""Gaps of a series are named with their times, and filled as requested."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.importers.gaps import POLICIES, filled
from farlink.errors import TraceError

MINUTES = np.arange(20.0) * 60
NAN = float("nan")


def with_gap(*indices):
    values = np.arange(20.0)
    values[list(indices)] = NAN
    return values


def test_a_whole_series_is_left_alone():
    found = filled(MINUTES, np.arange(20.0), "refuse", lost=-1, where="x")

    np.testing.assert_array_equal(found.values, np.arange(20.0))
    assert (found.note, found.gaps_s.size, found.duration_s) == (None, 0, 1200.0)


def test_gaps_are_refused_with_their_times():
    with pytest.raises(TraceError) as refused:
        filled(MINUTES, with_gap(3, 4, 10), "refuse", lost=-1, where="x.csv")

    assert refused.value.message == "x.csv: missing for 180 s in 2 gaps: 180 to 300 s, 600 to 660 s"
    assert "--gaps hold" in refused.value.remedy
    assert "--gaps outage" in refused.value.remedy


def test_the_first_gaps_are_named_and_the_rest_counted():
    with pytest.raises(TraceError, match=r"in 6 gaps: 60 to 120 s, .*, 420 to 480 s and 2 more"):
        filled(MINUTES, with_gap(1, 3, 5, 7, 9, 11), "refuse", lost=-1, where="x")


def test_a_held_gap_repeats_the_previous_value_or_at_the_start_the_first():
    found = filled(MINUTES, with_gap(0, 1, 5, 6), "hold", lost=-1, where="x")

    np.testing.assert_array_equal(found.values[:8], [2, 2, 2, 3, 4, 4, 4, 7])
    assert found.note == "missing for 240 s in 2 gaps: 0 to 120 s, 300 to 420 s; held at the value before"


def test_an_outage_lasts_from_the_missing_value_to_the_next():
    found = filled(MINUTES, with_gap(5, 6), "outage", lost=-np.inf, where="x")

    assert np.flatnonzero(np.isneginf(found.values)).tolist() == [5, 6]
    assert found.gaps_s.tolist() == [[300.0, 420.0]]


def test_missing_rows_are_a_gap_that_begins_a_step_after_the_last_value():
    times = np.delete(MINUTES, [7, 8, 9])

    found = filled(times, np.arange(17.0), "outage", lost=-np.inf, where="x")
    assert found.gaps_s.tolist() == [[420.0, 600.0]]
    assert found.values[found.time_s == 420.0].tolist() == [-np.inf]
    assert found.duration_s == 1200.0


def test_adjacent_missing_rows_and_values_are_one_gap():
    keep = np.delete(np.arange(20), [7, 8, 9])
    values = with_gap(6, 10)[keep]

    found = filled(MINUTES[keep], values, "hold", lost=-np.inf, where="x")
    assert found.gaps_s.tolist() == [[360.0, 660.0]]


def test_unequal_steps_are_not_gaps():
    found = filled(np.array([0.0, 5, 6, 100, 1000]), np.arange(5.0), "refuse", lost=-1, where="x")

    assert found.gaps_s.size == 0


@pytest.mark.parametrize(
    ("times", "values", "policy", "said"),
    [
        ([0, 60, 50, 120], [1, 2, 3, 4], "hold", "x: the clock goes backwards at row 3, 50 s after 60 s"),
        ([0, 60, 60, 120], [1, 2, 3, 4], "hold", "x: the clock stands still at row 3"),
        ([0, NAN, 120, 180], [1, 2, 3, 4], "hold", "x: the time of row 2 is missing"),
        ([0, 60, 120], [NAN, NAN, NAN], "hold", "x: no value is a number"),
        ([0, 60], [1, 2], "blocked", "gaps 'blocked' is not one of refuse, hold, outage"),
    ],
)
def test_refused(times, values, policy, said):
    with pytest.raises(TraceError) as refused:
        filled(np.array(times, dtype=float), np.array(values, dtype=float), policy, lost=-1, where="x")

    assert said in refused.value.message


@given(
    values=st.lists(st.floats(0, 100) | st.just(NAN), min_size=2, max_size=60),
    left_out=st.sets(st.integers(1, 58)),
    policy=st.sampled_from(POLICIES[1:]),
)
def test_gaps_leave_all_other_values_unchanged(values, left_out, policy):
    keep = [index for index in range(len(values)) if index not in left_out]
    times, known = np.array(keep, dtype=float), np.array([values[index] for index in keep])
    if np.isnan(known).all():
        return

    found = filled(times, known, policy, lost=-1.0, where="x")
    assert not np.isnan(found.values).any()
    assert np.all(np.diff(found.time_s) > 0)
    assert found.time_s[0] == 0
    assert found.time_s[-1] < found.duration_s
    kept = found.values[np.isin(found.time_s, times - times[0])]
    np.testing.assert_array_equal(kept[~np.isnan(known)], known[~np.isnan(known)])
    if policy == "outage":
        held = np.diff(np.append(found.time_s, found.duration_s))
        assert held[found.values == -1.0].sum() == pytest.approx(np.diff(found.gaps_s).sum())
