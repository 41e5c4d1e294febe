"""Short messages: what goes to the modem, and what a modem of the bank makes of it."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.errors import ArgumentError, OutputError
from farlink.operator.at import Dialogue, State, load, pdu
from farlink.operator.at import events as ev
from farlink.operator.bank.config import config_of
from farlink.operator.bank.exchange import Exchange
from farlink.operator.lines.port import Port
from farlink.operator.lines.sms import send_sms

NUMBERS = st.from_regex(r"\+?[0-9]{2,20}", fullmatch=True)
TEXTS = st.text(st.sampled_from(sorted(pdu._CODES)), min_size=1, max_size=160)


def test_a_message_is_written_as_the_standard_has_it():
    # The example that is printed everywhere: "hellohello" in septets, and a number of an odd count of digits.
    assert pdu.submitted("+46708251358", "hellohello") == ("0001000B916407281553F800000AE8329BFD4697D9EC37", 22)
    # TON and NPI of a number without +: unknown, telephone.
    assert pdu.submitted("12", "a")[0][6:10] == "0281"


@given(NUMBERS, TEXTS)
def test_messages_are_read_back(number, text):
    assert pdu.read_submitted(*pdu.submitted(number, text)) == (number, text)


@given(st.text(max_size=160))
def test_any_text_becomes_one_of_the_same_length(text):
    assert len(pdu.read_submitted(*pdu.submitted("12", text))[1]) == len(text)


@given(st.text("0123456789ABCDEF", max_size=60), st.integers(0, 200))
def test_nonsense_is_no_message(text, length):
    try:
        number, _ = pdu.read_submitted(text, length)
    except (ValueError, IndexError):
        return
    assert len(number) <= 256


@pytest.mark.parametrize(("number", "text"), [("", "a"), ("1", "a"), ("12x", "a"), ("+" + "1" * 21, "a"), ("12", "a" * 161)])
def test_what_is_no_message_is_refused(number, text):
    with pytest.raises(ArgumentError):
        pdu.submitted(number, text)


class Talk:
    """A dialogue with a modem of the bank, in virtual time."""

    def __init__(self, profile: str, **modem: object) -> None:
        rows = [{"name": "ship", "number": "101", **modem}, {"name": "office", "number": "881600005009"}]
        self.exchange = Exchange(config_of({"modem": rows, "profile": profile}, where="test"))
        self.modem = self.exchange.modems["ship"]
        self.dialogue, self.now = Dialogue(load(profile)), 0.0
        self.dialogue.start(0.0)
        self.events = self.run()
        assert self.events == [ev.Ready()]

    def run(self) -> list[ev.Event]:
        found: list[ev.Event] = []
        for _ in range(50):
            self.exchange.typed(self.modem, self.dialogue.poll_output(), self.now)
            said, self.modem.output = bytes(self.modem.output), bytearray()
            if not said:
                due = self.dialogue.poll_timeout()
                if due is None:
                    break
                self.now = due
            found += self.dialogue.feed(said, self.now)
        return found

    def send(self, number: str, text: str) -> list[ev.Event]:
        self.dialogue.send_sms(*pdu.submitted(number, text), self.now)
        return self.run()


@pytest.mark.parametrize("profile", ["iridium-9522b", "iridium-9505a", "a3la", "sim7600"])
def test_a_modem_sends_a_message_and_is_ready_again(profile):
    talk = Talk(profile)
    for text in ("camp: bundle is down", "x" * 160):
        assert talk.send("+881600005009", text) == [ev.SmsSent(True, "OK")]
        assert talk.dialogue.state is State.READY
    assert talk.exchange.messages == [("ship", "office", "camp: bundle is down"), ("ship", "office", "x" * 160)]


def test_a_modem_without_signal_says_so():
    talk = Talk("sim7600")
    talk.modem.signal = 0
    assert talk.send("12", "a") == [ev.SmsSent(False, "+CMS ERROR: 331")]
    assert talk.exchange.messages == []
    assert talk.dialogue.is_idle


def test_a_modem_that_knows_no_messages_refuses_the_mode():
    talk = Talk("hayes")
    assert talk.send("12", "a") == [ev.SmsSent(False, "ERROR")]
    assert talk.dialogue.is_idle


def test_a_modem_that_falls_silent_behind_its_prompt_gets_an_escape():
    talk = Talk("sim7600")
    talk.dialogue.send_sms(*pdu.submitted("12", "a"), talk.now)
    talk.dialogue.poll_output()
    talk.dialogue.feed(b"\r\nOK\r\n", talk.now)
    assert talk.dialogue.poll_output() == b"AT+CMGS=9\r"
    talk.dialogue.feed(b"\r\n> ", talk.now)
    assert talk.dialogue.poll_output().endswith(b"\x1a")
    assert talk.dialogue.feed(b"", talk.now + 100) == [ev.SmsSent(False, "time limit")]
    assert talk.dialogue.poll_output() == b"\x1b"


class NoJournal:
    """Pins of a journal that cannot be read."""

    def may_try(self, line: str) -> bool:
        raise OutputError(f"journal: {line}", "free some space")


def test_a_port_is_not_left_open_if_the_journal_cannot_be_read():
    ours, theirs = os.openpty()
    path = os.ttyname(theirs)
    os.close(theirs)
    sent = {"number": "12", "text": "a", "limit_s": 5.0}

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(OutputError, match="journal: standby"):
                await send_sms("standby", path, load("sim7600"), pins=NoJournal(), pin="1234", **sent)
        port = await Port.open(path, 9600, lambda: None)
        await port.close()

    asyncio.run(main())
    os.close(ours)
