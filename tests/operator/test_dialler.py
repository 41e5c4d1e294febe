"""The dialler of a bundle, from Python."""

from __future__ import annotations

import json

import pytest

from farlink._core import BundleDialler, ScenarioError

ONE = json.dumps({"lines": [{"name": "kansas"}]})


def test_events_give_actions() -> None:
    dialler = BundleDialler(ONE)
    state, dial = dialler.handle(0.0, "start")
    assert (state["action"], state["state"], state["reason"]) == ("state", "connecting", "dialling")
    assert dial == {"action": "dial", "line": "kansas", "call": 1}
    assert dialler.next_wakeup() == 90.0
    assert dialler.handle(20.0, "carrier", "kansas", call=1)[-1] == {"action": "start-link", "line": "kansas", "call": 1}
    up = dialler.handle(25.0, "link-up", "kansas", call=1)
    assert [action["action"] for action in up] == ["state", "primary", "alert"]
    assert (dialler.primary(), dialler.next_wakeup()) == ("kansas", None)
    dropped = dialler.handle(125.0, "dropped", "kansas", call=1, cause="NO CARRIER")[0]
    assert (dropped["cause"], dropped["drops"], dropped["connected_s"]) == ("NO CARRIER", 1, 100.0)
    assert dropped["until_s"] == pytest.approx(130.0, abs=1.0)


def test_the_history_is_read_again() -> None:
    dialler = BundleDialler(ONE)
    dialler.handle(0.0, "start")
    dialler.handle(0.0, "carrier", "kansas")
    dialler.handle(0.0, "link-up", "kansas")
    dialler.handle(90_000.0, "dropped", "kansas")
    [before] = dialler.status(90_000.0)

    [after] = BundleDialler(ONE, dialler.history()).status(0.0)

    assert after["expected_up_s"] == pytest.approx(before["expected_up_s"])
    assert after["expected_up_s"] > 40_000


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ("{}", ""),
        ('{"lines": []}', "lines"),
        ('{"lines": [{"name": "a"}, {"name": "a"}]}', "lines[1].name"),
        ('{"lines": [{"name": "a", "roll": "dial"}]}', "lines[0].roll"),
        ('{"lines": [{"name": "a"}], "use": 2}', "use"),
        ('{"lines": [{"name": "a"}], "limits": {"jitter": 0.6}}', "limits.jitter"),
        ('{"lines": [{"name": "a"}], "limits": {"failed_s": 700}}', "limits.longest_failed_s"),
        ('{"lines": [{"name": "a", "budget": {"money_per_day": 1}}]}', "lines[0].budget.money_per_day"),
    ],
)
def test_contradictions_are_refused(config: str, path: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        BundleDialler(config)
    assert raised.value.path == path
    assert raised.value.remedy


def test_what_is_no_event_line_or_time_is_refused() -> None:
    dialler = BundleDialler(ONE)
    for event, line in (("started", None), ("carier", "kansas"), ("carrier", "iowa"), ("wall-clock", None)):
        with pytest.raises(ValueError, match=r"event|line|unix_s"):
            dialler.handle(0.0, event, line)
    for now_s in (float("nan"), -1.0, 1e11):
        with pytest.raises(ValueError, match="no time"):
            dialler.advance(now_s)
    for level in (float("nan"), -1e300, 1e300):
        dialler.handle(0.0, "signal", "kansas", level=level)
    dialler.handle(0.0, "wall-clock", unix_s=float("nan"), zone_s=1e300)


DAY_S = 86_400.0
BUDGETED = json.dumps({"lines": [{"name": "kansas", "budget": {"airtime_s_per_day": 50_000}}]})


def test_a_day_that_the_clock_shows_twice_is_charged_for_each_second_once_and_over_a_start_too() -> None:
    """Who sleeps amid a call learns late that its budget is spent: by day, and again in the night before, shown later."""
    dialler = BundleDialler(BUDGETED)

    def airtime_s(now_s: float) -> float:
        return dialler.status(now_s)[0]["airtime_s_today"]

    def up(now_s: float, *events: tuple[str, str | None]) -> None:
        for event, line in (*events, ("carrier", "kansas"), ("link-up", "kansas")):
            dialler.handle(now_s, event, line)
        assert dialler.status(now_s)[0]["state"] == "connected"

    dialler.handle(0.0, "wall-clock", unix_s=20_454 * DAY_S)
    up(0.0, ("start", None))
    dialler.advance(49_990.0)
    dialler.advance(60_790.0)  # a sleep of three hours
    assert (airtime_s(60_790.0), dialler.status(60_790.0)[0]["reason"]) == (60_790.0, "budget-airtime-day")

    now_s = 61_000.0
    dialler = BundleDialler(BUDGETED, dialler.history())
    dialler.handle(now_s, "wall-clock", unix_s=20_453 * DAY_S + 82_800)  # 23:00 of the day before
    assert airtime_s(now_s) == 0.0
    up(now_s, ("start", None))
    now_s += 10_800.0  # the same
    dialler.advance(now_s)
    assert airtime_s(now_s) == 60_790.0 + 7200.0
