"""Modems of a bank call each other, in virtual time, with the operator's dialogue at both ends."""

from __future__ import annotations

import random
import statistics

import pytest

from farlink.operator.at import events as ev
from farlink.operator.at.dialogue import State
from farlink.operator.at.profiles import names
from farlink.operator.bank.drops import Drops
from farlink.operator.bank.pace import Pace
from tests.operator.virtual import World

PAIR = [{"name": "a", "number": "100"}, {"name": "b", "number": "200"}]


def world(**table: object) -> World:
    made = World({"modem": [dict(one) for one in PAIR], "delay_s": 0.5, "rate_bps": 2400.0, **table})
    made.start()
    return made


def connected(made: World) -> World:
    made.note("a", made.dialogues["a"].dial("00200", made.now))
    made.run(1.0)
    assert made.seen("b", ev.Ringing)
    made.dialogues["b"].answer(made.now)
    made.run(3.0)
    assert made.dialogues["a"].state is made.dialogues["b"].state is State.ONLINE
    return made


@pytest.mark.parametrize("profile", names())
def test_data_of_a_call_are_equal_both_ways_and_take_the_time_of_the_line(profile):
    made = connected(world(profile=profile))
    begin, sent = made.now, {name: random.Random(name).randbytes(3000) for name in "ab"}
    made.data = dict(sent)
    made.run(60.0)

    assert made.received("b") == sent["a"]
    assert made.received("a") == sent["b"]
    last = max(at for at, name, event in made.events if name == "b" and isinstance(event, ev.Data))
    # 3000 bytes at 2400 bit/s take 10 s, and half a second for the way.
    assert last - begin == pytest.approx(10.5, abs=0.2)


@pytest.mark.parametrize(
    ("profile", "caller", "said"),
    [
        ("iridium-9522b", {}, ev.Ringing("100", "")),
        ("sim7600", {}, ev.Ringing("100", "")),
        ("sim7600", {"hides_number": True}, ev.Ringing("", "")),
        ("hayes", {}, ev.Ringing("", "")),
    ],
)
def test_who_is_called_learns_who_calls(profile, caller, said):
    made = World({"modem": [{**PAIR[0], **caller}, PAIR[1]], "profile": profile}, asks_callers=True)
    made.start()
    made.note("a", made.dialogues["a"].dial("200", made.now))
    begin = made.now
    made.run(9.0)

    assert made.seen("b", ev.Ringing) == [said] * 3, "with each RING"
    first = next(at for at, name, event in made.events if name == "b" and isinstance(event, ev.Ringing))
    assert first - begin < 0.1, "the name comes right behind RING"


def test_the_caller_is_answered_by_s0():
    made = world()
    made.dialogues["b"].ask("ATS0=2", made.now)
    made.run(1.0)
    made.dialogues["a"].dial("200", made.now)
    made.run(8.0)

    assert len(made.seen("b", ev.Ringing)) == 2
    assert made.seen("a", ev.Connected)


@pytest.mark.parametrize(
    ("event", "x_level", "result"),
    [("busy", 4, "BUSY"), ("busy", 1, "NO CARRIER"), ("silent", 4, "NO ANSWER"), ("normal", 4, "NO ANSWER")],
)
def test_a_call_that_nobody_takes(event, x_level, result):
    made = world(event=[{"at_s": 20, "modem": "b", "do": event}])
    made.run(15.0)
    made.dialogues["a"].ask(f"ATX{x_level}", made.now)
    made.run(1.0)
    made.dialogues["a"].dial("200", made.now)
    made.run(100.0)

    assert made.seen("a", ev.DialFailed) == [ev.DialFailed(result)]
    assert made.seen("a", ev.Cause)
    assert made.dialogues["a"].state is State.READY


def test_an_unknown_number_has_no_carrier():
    made = world()
    made.dialogues["a"].dial("999", made.now)
    made.run(10.0)

    assert made.seen("a", ev.DialFailed) == [ev.DialFailed("NO CARRIER")]
    assert made.seen("a", ev.Cause) == [ev.Cause("NO SUCH NUMBER".lower())]


def test_a_silent_modem_lets_commands_run_into_their_limit():
    made = world(event=[{"at_s": 20, "modem": "a", "do": "silent"}])
    made.run(15.0)
    made.dialogues["a"].ask("AT+CGSN", made.now)
    made.run(10.0)

    assert made.seen("a", ev.Answered) == [ev.Answered("AT+CGSN", "time limit", ())]


def test_two_that_dial_each_other_are_both_busy():
    made = world()
    for name, number in (("a", "200"), ("b", "100")):
        made.dialogues[name].dial(number, made.now)
    made.run(20.0)

    assert made.seen("a", ev.DialFailed) == made.seen("b", ev.DialFailed) == [ev.DialFailed("BUSY")]


def test_a_drop_is_seen_at_both_ends_and_the_line_can_be_dialled_again():
    made = connected(world(event=[{"at_s": 100, "modem": "b", "do": "drop"}]))
    made.run(100.0)

    assert made.seen("a", ev.Dropped) == made.seen("b", ev.Dropped) == [ev.Dropped("DCD")]
    assert made.seen("a", ev.Cause) == [ev.Cause("NO CARRIER")]
    connected(made)


def test_hanging_up_is_a_drop_at_the_other_end_only():
    made = connected(world())
    made.note("a", made.dialogues["a"].hang_up(made.now))
    made.run(10.0)

    assert made.seen("a", ev.HungUp) == [ev.HungUp(is_confirmed=True)]
    assert made.seen("a", ev.Dropped) == []
    assert made.seen("b", ev.Dropped) == [ev.Dropped("DCD")]


def test_escape_and_ath_hang_up():
    made = connected(world(profile="iridium-9505a"))
    made.run(5.0)
    made.note("a", made.dialogues["a"].hang_up(made.now))
    made.run(10.0)

    assert made.seen("a", ev.HungUp) == [ev.HungUp(is_confirmed=True)]
    assert made.seen("b", ev.Dropped) == [ev.Dropped("DCD")]


def test_a_deaf_modem_keeps_its_carrier_and_carries_nothing():
    made = connected(world(event=[{"at_s": 60, "modem": "b", "do": "deaf"}, {"at_s": 120, "modem": "b", "do": "normal"}]))
    made.run(60.0 - made.now)
    made.data = {"a": b"x" * 500, "b": b"y" * 500}
    made.run(50.0)

    assert made.received("a") == made.received("b") == b""
    assert made.dialogues["a"].state is State.ONLINE
    made.run(20.0)
    made.data = {"a": b"again"}
    made.run(5.0)
    assert made.received("b") == b"again"


def test_a_lost_signal_loses_the_call_and_registration():
    made = connected(world(event=[{"at_s": 60, "modem": "a", "do": "signal", "level": 0}]))
    made.run(60.0)
    made.dialogues["a"].ask_signal(made.now)
    made.run(5.0)
    made.dialogues["a"].dial("200", made.now)
    made.run(5.0)

    assert made.seen("a", ev.Dropped) == made.seen("b", ev.Dropped) == [ev.Dropped("DCD")]
    assert made.seen("a", ev.Cause)[0] == ev.Cause("no signal")
    assert made.seen("a", ev.Signal) == [ev.Signal(None)]
    assert made.seen("a", ev.DialFailed) == [ev.DialFailed("NO DIALTONE")]


@pytest.mark.parametrize(("profile", "level"), [("iridium-9522b", 4), ("iridium-9505a", 4), ("sim7600", 18)])
def test_the_signal_of_each_modem_is_understood(profile, level):
    made = world(profile=profile, event=[{"at_s": 15, "modem": "a", "do": "signal", "level": level}])
    made.run(10.0)
    made.dialogues["a"].ask_signal(made.now)
    made.run(5.0)

    assert made.seen("a", ev.Signal) == [ev.Signal(level)]


def test_the_right_pin_opens_a_sim_and_a_wrong_one_is_tried_once():
    table = {"modem": [dict(one) for one in PAIR], "profile": "sim7600", "pin": "4711"}
    right = World(table, pin="4711")
    right.start()
    assert right.seen("a", ev.PinTried) == [ev.PinTried("accepted")]

    wrong = World(table, pin="4712")
    for _ in range(5):
        for dialogue in wrong.dialogues.values():
            dialogue.start(wrong.now)
        wrong.run(60.0)
    assert wrong.seen("a", ev.PinTried) == [ev.PinTried("refused")]
    assert wrong.exchange.modems["a"].pin_tries_left == 2


def test_calls_drop_by_the_process_and_the_same_seed_gives_the_same():
    def ends(seed: int) -> list[float]:
        made = world(mean_up_s=3000.0, seed=seed)
        for _ in range(20):
            connected(made)
            while made.dialogues["a"].state is State.ONLINE:
                made.run(10.0)
            made.run(10.0)
        return [at for at, name, event in made.events if name == "a" and isinstance(event, ev.Dropped)]

    assert ends(1) == ends(1) != ends(2)


def test_the_mean_of_up_times_is_the_given_one():
    drops = Drops(random.Random(1), mean_up_s=300.0)

    # Four standard errors.
    assert statistics.fmean(drops.next_s() for _ in range(10_000)) == pytest.approx(300.0, abs=12.0)


def test_a_buffer_is_bounded_and_loses_nothing_that_it_took():
    pace = Pace(rate_bps=2400, delay_s=0.7, buffer_bytes=256)
    data, taken, arrived, now = bytes(range(256)) * 8, 0, b"", 0.0
    while taken < len(data) or pace.next_at is not None:
        taken += pace.put(data[taken:], now)
        assert pace.room(now) <= 256
        now += 0.05
        arrived += pace.take(now)

    assert arrived == data
    assert now == pytest.approx(len(data) * 8 / 2400 + 0.7, abs=0.1)
