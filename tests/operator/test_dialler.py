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
