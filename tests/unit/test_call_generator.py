"""Calls drawn from causes of drops: against their survival in closed form, against the rules, and against fits."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.channels.calls import replay
from farlink.channels.calls.causes import low_snr_spells
from farlink.channels.calls.generator.causes import (
    Cells,
    DropCauses,
    Handovers,
    LowSignal,
    MobileIp,
    Redial,
    SetUp,
    crossing_rate_hz,
    fitted,
)
from farlink.channels.calls.generator.draw import draw
from farlink.channels.calls.generator.fit import expected_drops, fit, halves, log_likelihood, still_up
from farlink.channels.calls.generator.low_signal import LowSpells
from farlink.channels.calls.generator.parameters import PARAMETERS, causes_of
from farlink.channels.calls.generator.survival import drop_rates_hz, log_survival
from farlink.channels.calls.links import links_of
from farlink.channels.calls.samples import sample, up_times
from farlink.engines import run
from farlink.errors import ArgumentError, JournalError
from farlink.scenario import from_data

pytest.importorskip("scipy.stats")

# Calls begin long after the drop before them, so that their beginnings do not depend on its cause.
SELDOM = Redial(20_000.0)
DATA = Path(os.environ.get("FARLINK_DATA") or Path(__file__).parents[3] / "shared" / "data")
SEAGLIDERS = DATA / "iridium-seaglider-commlog"

CAUSES = {
    "handovers": DropCauses(handovers=Handovers(failure=0.3, is_common=False)),
    "handovers that all fail": DropCauses(handovers=Handovers(60.0, 90.0, failure=1.0, is_common=False)),
    "cells": DropCauses(cells=Cells(20.0, 1000.0, failure=0.2)),
    "registrations": DropCauses(cells=Cells(20.0, 500.0, mobile_ip=MobileIp(loss=0.5, attempts=2)), other_mean_s=2000.0),
    "low signal": DropCauses(low_signal=LowSignal(7.0, 4.0, 30.0)),
    "low signal, fast": DropCauses(low_signal=LowSignal(5.0, 3.0, 8.0)),
    "low signal, one rule": DropCauses(low_signal=LowSignal(4.0, 6.0, 20.0, rules=((1.0, 10.0),))),
    "set-up": DropCauses(set_up=SetUp(0.3, 5.0), other_mean_s=900.0),
    "everything": DropCauses(
        handovers=Handovers(failure=0.1, is_common=False),
        cells=Cells(30.0, 2000.0, failure=0.05),
        low_signal=LowSignal(8.0, 4.0, 30.0),
        set_up=SetUp(0.1),
        other_mean_s=3000.0,
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_drawn_calls_survive_as_the_closed_form_says(name):
    causes = replace(CAUSES[name], redial=SELDOM)
    up = up_times(links_of(draw(causes, lines=40, duration_s=1e6, seed=5).events))
    ages_s = np.array([2.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0])

    found, _ = still_up(up, ages_s=ages_s)

    expected = np.exp(log_survival(causes, ages_s))
    # Four standard errors: one comparison in 16,000 would be beyond.
    errors = np.sqrt(expected * (1 - expected) / up.times_s.size)
    assert np.all(np.abs(found - expected) <= 4 * errors + 1e-9)
    assert up.events > 1000


@pytest.mark.parametrize(
    "causes",
    [
        DropCauses(handovers=Handovers(failure=0.02)),
        DropCauses(cells=Cells(20.0, 1000.0, failure=0.02)),
        DropCauses(low_signal=LowSignal(8.0)),
        DropCauses(handovers=Handovers(failure=0.02), cells=Cells(5.0, 900.0, failure=0.01), other_mean_s=4000.0),
    ],
)
def test_survival_falls_at_the_rates_of_its_causes_in_the_end(causes):
    late = log_survival(causes, np.array([10_000.0, 30_000.0]))

    # A renewal that fails with p has the rate -ln(1 - p) over its mean, here within 1 %.
    assert (late[0] - late[1]) / 20_000.0 == pytest.approx(sum(drop_rates_hz(causes).values()), rel=0.02)


def test_a_signal_that_is_always_low_or_never_has_the_rate_of_its_rule():
    never, always = (drop_rates_hz(DropCauses(low_signal=LowSignal(mean, 1.0)))["low signal"] for mean in (100.0, -100.0))

    assert never == pytest.approx(0, abs=1e-12)
    # Five answers, 4 s apart: dead at the fifth.
    assert 1 / always == pytest.approx(18.0, abs=3.0)
    low = log_survival(DropCauses(low_signal=LowSignal(-100.0, 1.0)), np.array([0.0, 15.0, 21.0]))
    assert low == pytest.approx([0.0, 0.0, -690.0], abs=1e-9)


def test_times_in_a_cell_are_those_of_random_straight_lines():
    rng = np.random.default_rng(2)
    place = rng.uniform(-1, 1, (500_000, 2))
    place = place[np.sum(place**2, axis=1) < 1]
    angle = rng.uniform(0, 2 * np.pi, len(place))
    along = place[:, 0] * np.cos(angle) + place[:, 1] * np.sin(angle)
    ahead_s = 700.0 / 15.0 * (-along + np.sqrt(1 - np.sum(place**2, axis=1) + along**2))
    cells = Cells(15.0, 700.0)

    times_s = cells.intervals_s(rng.random(400_000))

    # From anywhere in a cell to its edge is the residual time of the renewals whose mean is one over the rate of crossings.
    assert np.mean(times_s) == pytest.approx(1 / crossing_rate_hz(15.0, radius_m=700.0), rel=0.005)
    for age_s in (0.0, 5.0, 30.0, 70.0):
        residual = np.mean(np.maximum(times_s - age_s, 0)) / np.mean(times_s)
        assert np.mean(ahead_s > age_s) == pytest.approx(residual, abs=0.005)


def test_a_call_drops_at_the_fifth_answer_below_0_db_or_the_sixth_below_2_db():
    signal = LowSignal(10.0)

    deep = LowSpells(signal, np.array([9.0, -1, -1, -1, -1, -1, -1, 9]))
    shallow = LowSpells(signal, np.array([9.0, 1, 1, -1, 1, 1, 1, 9]))
    interrupted = LowSpells(signal, np.array([1.0, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1]))

    assert [deep.first(begin) for begin in (0, 1, 2, 3)] == [5, 5, 6, None]
    assert [shallow.first(begin) for begin in (0, 1, 2)] == [6, 6, None]
    assert interrupted.first(0) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(-2, 8), st.floats(1, 6), st.floats(2, 120), st.integers(0, 30))
def test_drops_by_a_low_signal_are_those_of_a_plain_search(seed, mean_db, deviation_db, correlation_s, begin):
    signal = LowSignal(mean_db, deviation_db, correlation_s)
    rng = np.random.default_rng(seed)
    ratios = rng.normal(mean_db, deviation_db, 60).round(1)

    expected = None
    for place in range(begin, ratios.size):
        for (level_db, _), answers in zip(signal.rules, signal.answers, strict=True):
            if place - answers + 1 >= begin and np.all(ratios[place - answers + 1 : place + 1] < level_db):
                expected = place if expected is None else expected

    assert LowSpells(signal, ratios).first(begin) == expected


def test_the_causes_that_a_log_shows_are_those_that_it_was_drawn_from():
    causes = DropCauses(low_signal=LowSignal(8.0), other_mean_s=5000.0)
    (link,) = links_of(draw(causes, duration_s=4e5, seed=3, with_snr=True).events)

    low = {call.drop_s for call in link.drops if call.cause == "low signal"}
    ends = {end for rule in causes.low_signal.rules for _, end in low_snr_spells(link, *rule)}

    assert len(low) > 100
    assert low <= ends


def test_outages_are_what_the_log_says_and_interruptions():
    causes = DropCauses(
        handovers=Handovers(failure=0.1, interruption_s=0.5), cells=Cells(10.0, 500.0, interruption_s=0.2), other_mean_s=3000.0
    )
    drawn = draw(causes, lines=3, duration_s=50_000.0, seed=4)
    handovers, cells = (replace(one, interruption_s=0.0) for one in (causes.handovers, causes.cells))
    quiet = draw(replace(causes, handovers=handovers, cells=cells), lines=3, duration_s=50_000.0, seed=4)

    # Without interruptions, what `farlink bundle fit --replay` reads out of the log.
    of_log = replay.down_times(links_of(quiet.events))
    for drawn_line, read in zip(quiet.down, of_log, strict=True):
        inside = [outage for outage in drawn_line.outages if outage[1] < 50_000.0]
        assert np.allclose([one for one in read.outages if one[1] < read.span_s][: len(inside) - 1], inside[:-1], atol=2e-3)
    for with_breaks, without in zip(drawn.down, quiet.down, strict=True):
        changes = sum(event.kind == "handover" for event in drawn.events if event.link == with_breaks.link)
        extra_s = with_breaks.down_s - without.down_s
        assert 0.1 * changes < extra_s < 0.5 * changes
        assert all(first[1] < second[0] for first, second in zip(with_breaks.outages, with_breaks.outages[1:], strict=False))


def test_lines_do_not_depend_on_how_many_there_are():
    few = draw(fitted(), lines=2, duration_s=40_000.0, seed=9)
    many = draw(fitted(), lines=5, duration_s=40_000.0, seed=9)

    assert [times.outages for times in many.down[:2]] == [times.outages for times in few.down]
    assert [event for event in many.events if event.link in ("line-1", "line-2")] == few.events
    assert draw(fitted(), lines=2, duration_s=40_000.0, seed=10).events != few.events


def test_common_handovers_come_to_all_lines_at_once():
    causes = DropCauses(handovers=Handovers(failure=0.0))
    times = [{event.time_s for event in draw(causes, lines=2, duration_s=20_000.0).events
              if event.kind == "handover" and event.link == f"line-{number}"} for number in (1, 2)]  # fmt: skip
    apart = draw(DropCauses(handovers=Handovers(is_common=False)), lines=2, duration_s=20_000.0).events

    assert times[0] == times[1]
    assert np.all(np.diff(sorted(times[0])) >= 540)
    assert np.all(np.diff(sorted(times[0])) <= 600)
    assert {event.time_s for event in apart if event.kind == "handover" and event.link == "line-1"}.isdisjoint(
        event.time_s for event in apart if event.kind == "handover" and event.link == "line-2"
    )


@pytest.mark.parametrize(
    ("truth", "free"),
    [
        (DropCauses(other_mean_s=1500.0, set_up=SetUp(0.1, 4.0)), ("other_mean_s", "set_up.drops", "set_up.mean_s")),
        (DropCauses(handovers=Handovers(failure=0.2, is_common=False)), ("handovers.failure",)),
        (DropCauses(low_signal=LowSignal(7.5)), ("low_signal.mean_db",)),
        (DropCauses(cells=Cells(25.0, 1000.0, failure=0.1)), ("cells.failure",)),
    ],
)
def test_a_fit_finds_what_calls_were_drawn_with(truth, free):
    drawn = draw(replace(truth, redial=SELDOM), lines=30, duration_s=6e5, seed=6)
    start = truth
    for name in free:
        table, _, key = name.rpartition(".")
        value = 0.6 * (getattr(getattr(truth, table), key) if table else getattr(truth, key))
        start = replace(start, **({table: replace(getattr(start, table), **{key: value})} if table else {key: value}))

    found = fit(up_times(links_of(drawn.events)), start, free=free)

    for name in free:
        table, _, key = name.rpartition(".")
        right = getattr(getattr(truth, table), key) if table else getattr(truth, key)
        low, high = found.intervals[name]
        # Intervals of 95 %, widened by half: four fits at this seed.
        assert low - (high - low) / 4 <= right <= high + (high - low) / 4
        assert low < found.values[name] < high


def test_short_calls_do_not_tell_handovers_from_a_constant_rate():
    """The residual time of the first handover is all but uniform: until 9 min its hazard is constant."""
    closed = np.random.default_rng(1).uniform(30, 500, 200).tolist()
    truth = DropCauses(handovers=Handovers(failure=0.15, is_common=False), redial=SELDOM)
    up = up_times(links_of(draw(truth, lines=40, duration_s=1e6, seed=6, closed_after_s=closed).events))
    constant = fit(up, DropCauses(other_mean_s=2000.0), free=["other_mean_s"])

    assert abs(log_likelihood(up, truth) - constant.log_likelihood) < 2.0


@pytest.mark.skipif(not SEAGLIDERS.exists(), reason="needs FARLINK_DATA")
def test_the_fitted_description_is_what_the_measured_calls_say():
    from farlink.channels.calls.links import merged
    from farlink.channels.calls.logs import read

    links = merged([links_of(read(path).events) for path in sorted(Path(SEAGLIDERS).glob("*.gz"))])
    up = up_times(links)
    causes = fitted()
    found = fit(
        up,
        DropCauses(other_mean_s=3000.0, set_up=SetUp(0.02, 3.0)),
        free=["other_mean_s", "set_up.drops", "set_up.mean_s"],
        with_intervals=False,
    )

    assert found.values["set_up.drops"] == pytest.approx(causes.set_up.drops, rel=0.01)
    assert found.values["set_up.mean_s"] == pytest.approx(causes.set_up.mean_s, rel=0.01)
    rates = drop_rates_hz(causes)
    assert 1 / found.values["other_mean_s"] == pytest.approx(rates["other"] + rates["handover"], rel=0.005)
    # A tenth of the drops at handovers: Zaghloul, section 5.1.
    assert rates["handover"] / (rates["other"] + rates["handover"]) == pytest.approx(0.1, abs=0.001)
    first, second = halves(links)
    assert first.times_s.size + second.times_s.size == up.times_s.size
    assert first.events + second.events == up.events


def test_still_up_and_expected_drops_by_hand():
    up = sample("up", [10, 20, 20, 40], [True, True, False, False])

    survival, errors = still_up(up, ages_s=[0, 10, 25])

    assert survival == pytest.approx([1, 0.75, 0.5])
    assert errors == pytest.approx([0, math.sqrt(0.75 * 0.25 / 4), 0.25])
    assert expected_drops(up, DropCauses(other_mean_s=100), ages_s=[0, 15, 100]) == pytest.approx([0.55, 0.35])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Handovers(shortest_s=0), "handovers.shortest_s must be above 0"),
        (lambda: Handovers(600, 540), "handovers.longest_s must be from shortest_s"),
        (lambda: Handovers(failure=-0.1), "handovers.failure must be from 0 to 1"),
        (lambda: Handovers(failure=math.nan), "handovers.failure must be from 0 to 1"),
        (lambda: Handovers(interruption_s=61), "handovers.interruption_s must be from 0 to 60"),
        (lambda: Cells(0, 100), "cells.speed_mps must be above 0"),
        (lambda: Cells(1000, 10), "cells must be crossed in 1 s"),
        (lambda: MobileIp(attempts=0), "mobile_ip.attempts must be a whole number from 1 to 20"),
        (lambda: MobileIp(loss=1.0), "mobile_ip.loss must be from 0 to below 1"),
        (lambda: LowSignal(5.0, 0.1), "low_signal.deviation_db must be from 0.5"),
        (lambda: LowSignal(5.0, rules=()), "low_signal.rules must be pairs"),
        (lambda: SetUp(11.0), "set_up.drops must be from 0 to 10"),
        (lambda: Redial(0.0), "redial.mean_s must be above 0"),
        (lambda: DropCauses(other_mean_s=0.5), "other_mean_s must be at least 1"),
        (lambda: draw(DropCauses(), lines=65), "lines must be from 1 to 64"),
        (lambda: draw(DropCauses(), duration_s=1e8), "duration_s must be from 1 to 1e7"),
        (lambda: draw(DropCauses(), closed_after_s=[0.0]), "closed_after_s must be above 0"),
        (lambda: draw(DropCauses(low_signal=LowSignal(5.0)), lines=64, duration_s=1e7, with_snr=True), "at most 5e6"),
        (lambda: log_survival(DropCauses(), np.array([-1.0])), "ages_s must be from 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("free", "message"),
    [
        (["nothing"], "there is nothing to fit of the name 'nothing'"),
        (["cells.failure"], "cells.failure cannot be fitted"),
        ([], "0 parameters cannot be fitted"),
        (["other_mean_s", "set_up.drops", "set_up.mean_s"], "3 parameters cannot be fitted to 2 drops"),
    ],
)
def test_fits_that_cannot_be_are_refused(free, message):
    up = sample("up", [10, 20, 30], [True, True, False])
    with pytest.raises(JournalError, match=message):
        fit(up, DropCauses(other_mean_s=100.0, set_up=SetUp(0.1)), free=free)


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_changes_the_description(name):
    beside = {"speed_mps": 10.0} if name.startswith(("cell", "mobile")) else {}
    beside |= {"mobile_ip_rtt_s": 0.1} if name.startswith("mobile") else {}
    beside |= {"snr_mean_db": 8.0} if name.startswith("snr") else {}
    beside.pop(name, None)
    known = PARAMETERS[name]
    value = {"handover_shortest_s": 100.0, "handover_longest_s": 700.0, "handover_common": 0, "speed_mps": 3.0}.get(
        name, (known.low + min(known.high, 50.0)) / 2
    )

    given = {**beside, name: str(int(value) if isinstance(known.default, int) else value)}

    assert causes_of(given) != causes_of(beside)


def test_a_table_of_a_scenario_is_read_and_drives_a_bundle():
    drawn = draw(DropCauses(other_mean_s=400.0, redial=Redial(100.0)), lines=2, duration_s=4000.0, seed=2)
    text = (
        'title = "drawn calls"\nduration_s = 4000\n[link]\nrate_bps = 2400\ndelay_s = 0.5\n[transport.tcp]\nkind = "tcp"\n'
        'variant = "sack"\n[flow.data]\ntransport = "tcp"\ntraffic = { kind = "bulk" }\n'
    )
    result = run(from_data(tomllib.loads(text + replay.bundle_text(drawn.down))))
    (every,) = (entry for entry in result.summary() if entry["flow"] == "all")

    # The engine and the log count the same time with both lines up.
    edges = sorted({0.0, 4000.0, *(edge for times in drawn.down for outage in times.outages for edge in outage)})
    up = sum(b - a for a, b in itertools.pairwise(edges) if not any(x <= a < y for one in drawn.down for x, y in one.outages))
    assert every["all_lines_up_fraction"]["mean"] == pytest.approx(up / 4000.0, abs=1e-6)
