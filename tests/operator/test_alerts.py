"""Which alerts are raised, and when: in virtual time, and under random histories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.operator.alerts import CAUSES, Alerts, Change, Raised, View

LIMITS = {"airtime_s_per_day": 1000.0}


def line(state: str = "connected", reason: str = "up", *, name: str = "kansas", **more: Any) -> dict[str, Any]:
    return {"line": name, "state": state, "reason": reason, "cause": "", "modem_failure": "", "airtime_s_today": 0.0, **more}


def view(*lines: dict[str, Any], **more: Any) -> View:
    given = {"costs": {}, "bundle_budget": {}, "budgets": {"kansas": LIMITS}, "least_free_bytes": 100e6}
    return View(lines=lines, **{**given, **more})


class Watch:
    """Alerts that are looked at every second."""

    def __init__(self, **limits: float) -> None:
        self.alerts = Alerts(**{"after_s": 10.0, "clear_s": 5.0, **limits})
        self.now, self.changes = 100.0, []

    def look(self, shown: View, for_s: int = 1) -> list[tuple[str, str]]:
        found = []
        for _ in range(for_s):
            self.now += 1
            found += self.alerts.observe(self.now, 1e9 + self.now, shown)
        self.changes += found
        return [(one.kind, one.alert.alert) for one in found]


UP, OTHER = line(), line(name="iowa")
DOWN = line("connecting", "dialling", cause="NO CARRIER")


def test_no_alert_is_raised_before_1970():
    """A clock that loses its battery shows 1970: a journal takes no time before it."""
    alerts = Alerts(after_s=120.0, clear_s=5.0)
    alerts.observe(1000.0, 1.8e9, view(DOWN))
    changes = alerts.observe(1121.0, 5.0, view(DOWN))
    assert {(one.alert.alert, one.alert.since_unix_s) for one in changes} == {("line-down", 0.0), ("bundle-down", 0.0)}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sim-locked", view(line("failed", "attempt-failed", modem_failure="the SIM asks for SIM PUK"), OTHER)),
        ("modem-failed", view(line("failed", "attempt-failed", modem_failure="ATZ was not answered"), OTHER)),
        ("port-gone", view(line("waiting", "port-gone"), OTHER)),
        ("blocked", view(line("blocked", "attempts", cause="BUSY"), OTHER)),
        ("line-down", view(DOWN, OTHER)),
        ("flapping", view(line("dropped", "flapping"), OTHER)),
        ("budget-spent", view(line("waiting", "budget-airtime-day", airtime_s_today=1000.0), OTHER)),
        ("budget-low", view(line(airtime_s_today=800.0), OTHER)),
        (
            "bundle-budget-spent",
            view(
                *(line("waiting", "bundle-budget-money-day"), OTHER),
                **{"costs": {"money_today": 9.0}, "bundle_budget": {"money_per_day": 10.0}},
            ),
        ),
        ("bundle-budget-low", view(UP, costs={"money_today": 9.0}, bundle_budget={"money_per_day": 10.0})),
        ("bundle-down", view(DOWN)),
        ("journal", view(UP, journal_failure="database or disk is full")),
        ("disk-low", view(UP, free_bytes=99e6)),
        ("hook-failing", view(UP, hook_failure="./tell ended with 1")),
        ("delivery-failing", view(UP, delivery_failure="office: no connection")),
    ],
)
def test_each_cause_is_raised_once_and_cleared_once(name, shown):
    watch = Watch()
    assert watch.look(view(UP, OTHER), 20) == []
    raised = watch.look(shown, 60)
    extra = [("raised", "line-down")] if name == "bundle-down" else []
    assert sorted(raised) == sorted([("raised", name), *extra])
    (told,) = (one for one in watch.alerts.status(1e9 + watch.now) if one["alert"] == name)
    assert told["severity"] == CAUSES[name].severity
    assert told["since_unix_s"] == 1e9 + 121
    assert told["for_s"] == 59
    assert told["words"] == f"{CAUSES[name].title.replace('{line}', 'kansas')}: {told['cause']}"
    assert told["cause"]
    assert told["line"] == ("kansas" if CAUSES[name].is_of_line else None)
    cleared = watch.look(view(UP, OTHER), 60)
    assert sorted(cleared) == sorted(("cleared", one) for _, one in raised)
    assert watch.alerts.raised == []


def test_every_cause_is_tried_above():
    (mark,) = test_each_cause_is_raised_once_and_cleared_once.pytestmark
    assert {row[0] for row in mark.args[1]} == set(CAUSES)


def test_nothing_is_told_while_a_line_flaps_within_its_damping():
    watch = Watch()
    for _ in range(50):
        assert watch.look(view(DOWN, OTHER), 9) == []
        assert watch.look(view(UP, OTHER), 1) == []
    # Nor is a raised alert cleared by a line that comes up for a moment.
    assert watch.look(view(DOWN, OTHER), 11) == [("raised", "line-down")]
    for _ in range(50):
        assert watch.look(view(UP, OTHER), 4) == []
        assert watch.look(view(DOWN, OTHER), 20) == []
    assert watch.look(view(UP, OTHER), 6) == [("cleared", "line-down")]


@pytest.mark.parametrize(
    "rest",
    [
        line("held", "by-hand"),
        line("waiting", "spare"),
        line("waiting", "listening"),
        line("waiting", "bundle-budget-money-day"),
        line("silent", "probes"),
    ],
)
def test_a_line_that_is_not_wanted_is_not_dead(rest):
    assert ("raised", "line-down") not in Watch().look(view(rest, OTHER), 100)


def test_a_blocked_line_that_is_dialled_again_is_not_well():
    watch = Watch()
    assert watch.look(view(line("blocked", "attempts"), OTHER), 30) == [("raised", "blocked")]
    assert watch.look(view(DOWN, OTHER), 300) == []
    assert watch.look(view(UP, OTHER), 30) == [("cleared", "blocked")]


def test_a_modem_that_begins_anew_is_not_well_yet():
    failed = line("failed", "attempt-failed", modem_failure="ATZ was not answered", modem="failed")
    watch = Watch()
    assert watch.look(view(failed, OTHER), 30) == [("raised", "modem-failed")]
    for state in ("starting", "port closed"):
        assert watch.look(view(line("connecting", "dialling", modem=state), OTHER), 30) == []
    assert watch.look(view(line("connecting", "dialling", modem="ready"), OTHER), 6) == [("cleared", "modem-failed")]


def test_held_lines_are_no_bundle_that_is_down_and_a_listening_one_that_nobody_calls_is():
    assert Watch().look(view(line("held", "by-hand")), 100) == []
    assert Watch().look(view(line("waiting", "listening")), 100) == [("raised", "bundle-down")]


def test_what_stays_is_told_again_if_that_is_asked_for():
    watch = Watch(again_s=60.0)
    assert watch.look(view(DOWN, OTHER), 200) == [("raised", "line-down")] + [("again", "line-down")] * 3
    watch = Watch()
    assert watch.look(view(DOWN, OTHER), 10_000) == [("raised", "line-down")]


def test_what_an_earlier_operator_raised_is_not_raised_again_and_is_cleared():
    earlier = [
        Raised("line-down", "kansas", "warning", "BUSY", 1e9, number=7),
        Raised("blocked", "a line of another file", "warning", "", 1e9, number=8),
        Raised("of a newer farlink", None, "warning", "", 1e9, number=9),
    ]
    alerts = Alerts(after_s=10.0, clear_s=5.0, raised=earlier)
    found = [(one.kind, one.alert.number) for one in alerts.observe(1.0, 2e9, view(DOWN, OTHER))]
    assert found == [("cleared", 8), ("cleared", 9)]
    assert [one["for_s"] for one in alerts.status(2e9)] == [1e9]
    for now in range(2, 20):
        found += [(one.kind, one.alert.number) for one in alerts.observe(float(now), 2e9, view(UP, OTHER))]
    assert found[2:] == [("cleared", 7)]


STATES = st.sampled_from(
    [
        *(("connected", "up"), ("silent", "probes"), ("connecting", "dialling"), ("dropped", "drop"), ("dropped", "flapping")),
        *(("waiting", "flapping"), ("failed", "attempt-failed"), ("blocked", "attempts"), ("held", "by-hand")),
        *(("waiting", "spare"), ("waiting", "port-gone"), ("waiting", "budget-airtime-day"), ("waiting", "signal")),
    ]
)
LINES = st.builds(
    lambda state, failure, used: line(*state, modem_failure=failure, airtime_s_today=used),
    *(STATES, st.sampled_from(["", "", "", "the SIM has refused its PIN", "nonsense"]), st.sampled_from([0.0, 850.0, 1000.0])),
)
VIEWS = st.builds(
    lambda lines, journal, free: view(
        *({**one, "line": f"l{at}"} for at, one in enumerate(lines)), journal_failure=journal, free_bytes=free
    ),
    *(st.lists(LINES, min_size=1, max_size=3), st.sampled_from(["", "", "full"]), st.sampled_from([None, 1.0, 1e12])),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(VIEWS, st.floats(0.0, 40.0)), max_size=40),
    st.floats(0.0, 30.0),
    st.floats(0.0, 30.0),
    st.sampled_from([0.0, 7.0]),
)
def test_raises_and_clears_alternate_whatever_happens(steps, after_s, clear_s, again_s):
    alerts = Alerts(after_s=after_s, clear_s=clear_s, again_s=again_s)
    raised: dict[tuple[str, str | None], float] = {}
    told: dict[tuple[str, str | None], float] = {}
    now = 0.0
    for shown, step_s in steps:
        now += step_s
        for change in alerts.observe(now, now, shown):
            assert isinstance(change, Change)
            key = (change.alert.alert, change.alert.line)
            if change.kind == "raised":
                assert key not in raised, "raised twice without a clear"
                raised[key] = now
                if CAUSES[key[0]].is_damped:
                    assert now - change.alert.since_unix_s >= after_s - 1e-9
            elif change.kind == "again":
                assert again_s > 0
                assert now - told[key] >= again_s
                assert key in raised
            else:
                del raised[key]  # a clear without a raise is a KeyError
            told[key] = now
        assert {(one.alert, one.line) for one in alerts.raised} == set(raised)
