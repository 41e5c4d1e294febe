"""Modems of a bank under random input: nothing raises, and phases of modems agree with calls and dials."""

from __future__ import annotations

import random

import pytest

from farlink.operator.bank.config import config_of
from farlink.operator.bank.exchange import Exchange
from farlink.operator.bank.modem import MOST_LINE_BYTES, Modem, Phase

TYPED = (
    b"ATZ\r", b"ATD100\r", b"ATDT200\r", b"ATDT00300\r", b"ATA\r", b"ATH0\r", b"ATO\r", b"+++", b"ATS0=1\r", b"ATS0?\r",
    b"ATV0X1\r", b"ATV1X4E0\r", b"AT+CSQ;+CREG?\r", b"AT+CPIN?\r", b'AT+CPIN="1"\r', b"AT+CEER\r", b"AT+CLAC\r", b"ATI\r",
    b"AT&C1&D2&K3\r", b"ATQ1\r", b"\r", b"\n", b"AT" + b"E1" * 200 + b"\r", b"A" * 600, b"\xff\xdf\xb2\r", b"ATS\xb2=1\r",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_phases_agree_with_calls_whatever_is_typed(seed):
    rng = random.Random(seed)
    rows = [{"name": f"m{at}", "number": f"{at}00"} for at in range(1, 4)]
    actions = ("drop", "busy", "silent", "deaf", "normal")
    events = [{"at_s": rng.uniform(0, 4000), "modem": f"m{rng.randint(1, 3)}", "do": rng.choice(actions)} for _ in range(60)]
    profile = rng.choice(("iridium-9522b", "sim7600", "hayes"))
    exchange = Exchange(config_of({"modem": rows, "event": events, "profile": profile, "mean_up_s": 60.0}, where="test"))
    now, seen = 0.0, set()
    for _ in range(4000):
        now += rng.choice((0.0, 0.1, 1.1, 3.0))
        modem = rng.choice(list(exchange.modems.values()))
        if rng.random() < 0.02:
            exchange.closed(modem, now)
        else:
            typed = rng.choice(TYPED) if rng.random() < 0.9 else rng.randbytes(rng.randrange(40))
            exchange.typed(modem, typed, now)
        exchange.advance(now)
        for one in exchange.modems.values():
            one.output.clear()
            calls = [call for call in exchange._calls if one in call.ends]
            dials = [attempt for attempt in exchange._attempts if attempt.caller is one]
            rung = [attempt for attempt in exchange._attempts if attempt.called is one]
            seen.add(one.phase)
            assert len(calls) == (one.phase in (Phase.ONLINE, Phase.ESCAPED))
            assert len(dials) == (one.phase is Phase.DIALLING)
            assert one.phase is not Phase.ANSWERING or len(rung) == 1
            assert len(one._line) <= MOST_LINE_BYTES + 1
        due = exchange.poll_timeout()
        assert due is None or due > now - 1e-6, "what is due has been done"

    assert {Phase.COMMAND, Phase.DIALLING, Phase.ONLINE} <= seen


def answer(line: bytes, **given: object) -> bytes:
    config = config_of({"modem": [{"name": "a", "number": "881600005001"}], **given}, where="test").modems[0]
    modem = Modem(config.name, config.number, config.profile, config.pin)
    modem.typed(b"ATE0\r", 0.0)
    modem.output.clear()
    modem.typed(line + b"\r", 0.0)
    return bytes(modem.output)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"AT", b"\r\nOK\r\n"),
        (b"atv0", b"0\r"),
        (b"ATV0+CLAC", b"4\r"),
        (b"AT+CFUN?", b"\r\nERROR\r\n"),
        (b"AT+CSQ", b"\r\n+CSQ:5\r\n\r\nOK\r\n"),
        (b"AT+CREG?", b"\r\n+CREG:000,001\r\n\r\nOK\r\n"),
        (b"ATQ1", b""),
        (b"ATS0=2S0?", b"\r\n002\r\n\r\nOK\r\n"),
        (b"hello", b"\r\nERROR\r\n"),
        (b"AT" + b"E0" * 200, b"\r\nERROR\r\n"),
        (b"ATA", b"\r\nNO CARRIER\r\n"),
        (b"ATX1D", b"\r\nERROR\r\n"),
    ],
)
def test_answers(line, said):
    assert answer(line) == said


def test_a_sim_is_locked_after_three_wrong_pins():
    config = config_of({"modems": 1, "profile": "sim7600", "pin": "4711"}, where="test").modems[0]
    modem = Modem(config.name, config.number, config.profile, config.pin)
    for pin in (b"1", b"2", b"3", b"4711"):
        modem.typed(b'AT+CPIN="%s"\r' % pin, 0.0)
        assert modem.output.endswith(b"\r\nERROR\r\n")
    modem.typed(b"AT+CPIN?\r", 0.0)

    assert b"+CPIN: SIM PUK" in modem.output
