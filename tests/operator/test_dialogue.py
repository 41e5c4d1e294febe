"""The dialogue with a modem: what it sends, what it makes of answers, limits, and what it never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.errors import ArgumentError
from farlink.operator.at import events as ev
from farlink.operator.at.dialogue import Dialogue, State
from farlink.operator.at.profiles import load, profile_of
from tests.operator.random_modem import PIECES, PIN, PROFILES, act, fuzz

OK = b"\r\nOK\r\n"


def ready(name: str = "iridium-9522b", **options: object) -> Dialogue:
    dialogue = Dialogue(PROFILES[name], **options)  # type: ignore[arg-type]
    dialogue.start(0.0)
    while dialogue.state is State.STARTING:
        said = dialogue.poll_output()
        assert said
        dialogue.feed(b"+CPIN: READY\r\n" + OK if b"CPIN?" in said else OK, 0.0)
    assert dialogue.state is State.READY
    dialogue.poll_output()
    return dialogue


def test_the_lines_of_a_profile_are_sent_one_by_one():
    dialogue = Dialogue(load("iridium-9522b"))
    dialogue.start(0.0)
    sent, found = [], []
    while said := dialogue.poll_output():
        sent.append(said.decode().strip())
        found += dialogue.feed(said + OK, 0.0)

    assert sent == list(load("iridium-9522b").init)
    assert "AT+CBST=71,0,1" in sent
    assert found == [ev.Ready()]


def answering(result: bytes = OK, name: str = "iridium-9522b") -> Dialogue:
    """A dialogue whose modem has answered AT+CLIP=1 so."""
    dialogue = Dialogue(load(name), asks_callers=True)
    dialogue.start(0.0)
    found = []
    while said := dialogue.poll_output():
        found += dialogue.feed(result if b"CLIP" in said else b"+CPIN: READY\r\n" + OK if b"CPIN" in said else OK, 0.0)
    assert found == [ev.Ready()]
    return dialogue


def test_ring_waits_for_the_name_of_the_caller():
    dialogue = answering()
    assert dialogue.names_callers
    assert dialogue.feed(b"\r\nRING\r\n", 1.0) == []
    assert dialogue.feed(b'\r\n+CLIP:"+881600005001",145\r\n', 1.1) == [ev.Ringing("+881600005001", "")]
    # Who calls next may be another one, however soon.
    assert dialogue.feed(b"\r\nRING\r\n", 5.0) == []
    assert dialogue.feed(b'\r\n+CLIP:"+881600005002",145\r\n', 5.1) == [ev.Ringing("+881600005002", "")]
    assert dialogue.feed(b"", 15.2) == [ev.RingingEnded()]
    assert dialogue.feed(b"\r\nRING\r\n", 20.0) == []
    assert dialogue.feed(b"", dialogue.poll_timeout()) == [ev.Ringing("", "")]


def test_who_rings_before_the_modem_is_asked_to_name_callers_is_named_with_the_next_ring():
    dialogue = Dialogue(load("iridium-9522b"), asks_callers=True)
    dialogue.start(0.0)
    assert dialogue.feed(b"\r\nRING\r\n", 0.1) == []
    while dialogue.poll_output():
        dialogue.feed(OK, 0.2)
    assert dialogue.feed(b"\r\nRING\r\n", 4.0) == []
    assert dialogue.feed(b'\r\n+CLIP:"101",129\r\n', 4.1) == [ev.Ringing("101", "")]


def test_a_caller_who_is_not_named_rings_all_the_same():
    dialogue = answering()
    dialogue.feed(b"\r\nRING\r\n", 1.0)
    assert dialogue.poll_timeout() == 3.0
    assert dialogue.feed(b"", 3.0) == [ev.Ringing("", "")]


@pytest.mark.parametrize("result", [b"\r\nERROR\r\n", b""])
def test_a_modem_that_does_not_name_callers_is_ready_all_the_same(result):
    dialogue = Dialogue(load("iridium-9522b"), asks_callers=True)
    dialogue.start(0.0)
    found, asked = [], 0
    while said := dialogue.poll_output():
        asked += b"CLIP" in said
        found += dialogue.feed(result if b"CLIP" in said else OK, 0.0)
        if not result and b"CLIP" in said:
            found += dialogue.feed(b"", dialogue.poll_timeout())
    assert (found, asked, dialogue.names_callers) == ([ev.Ready()], 1 if result else 3, False)
    assert dialogue.feed(b"\r\nRING\r\n", 100.0) == [ev.Ringing("", "")]


def test_a_call_that_is_taken_rings_no_more_however_long_its_set_up_takes():
    """Iridium needs 20 s: an end of ringing meanwhile would be taken for a caller who has given up."""
    dialogue = ready()
    assert dialogue.feed(b"\r\nRING\r\n", 1.0) == [ev.Ringing()]
    dialogue.answer(1.1)
    assert dialogue.feed(b"\r\nRING\r\n", 5.0) == []
    assert dialogue.feed(b'\r\n+CLIP:"101",129\r\n', 5.1) == []
    assert dialogue.feed(b"", 40.0) == []
    assert dialogue.feed(b"\r\nCONNECT 19200\r\n", 45.0) == [ev.Connected(19200, is_incoming=True)]


def test_what_comes_back_of_a_pin_is_not_kept_though_it_is_damaged():
    dialogue = Dialogue(load("sim7600"), pin=PIN)
    dialogue.start(0.0)
    while b"CPIN?" not in (said := dialogue.poll_output()):
        assert said
        dialogue.feed(OK, 0.0)
    assert dialogue.feed(b"\r\n+CPIN: SIM PIN\r\n" + OK, 0.0) == [ev.PinNeeded()]
    dialogue.enter_pin(0.0)
    echo = dialogue.poll_output()
    assert PIN.encode() in echo
    found = dialogue.feed(echo.replace(PIN[-1:].encode(), b"\xff") + b"\r\nERROR\r\n", 0.1)
    assert [type(event) for event in found] == [ev.PinTried, ev.Failed]
    assert PIN[:2].encode() not in found[1].tail
    assert b"SIM PIN" in found[1].tail


def test_a_line_that_dials_does_not_ask_who_calls():
    dialogue = Dialogue(load("iridium-9522b"))
    dialogue.start(0.0)
    sent = []
    while said := dialogue.poll_output():
        sent.append(said)
        dialogue.feed(OK, 0.0)
    assert b"AT+CLIP=1\r" not in sent


def test_a_silent_modem_is_asked_three_times_and_then_fails():
    dialogue = Dialogue(load("hayes"))
    dialogue.start(0.0)
    asked, found = [dialogue.poll_output()], []
    while (due := dialogue.poll_timeout()) is not None:
        found += dialogue.feed(b"~" * 3000, due)
        asked.append(dialogue.poll_output())

    assert asked == [b"ATZ\r"] * 3 + [b""]
    assert [type(event) for event in found] == [ev.Failed]
    assert found[0].reason == "ATZ was not answered within 5 s, 3 times"
    assert found[0].tail == b"~" * 4096


def test_a_modem_with_a_call_that_was_left_behind_is_escaped():
    """It takes all lines for data, until it hears the escape sequence with silence around it; ATZ then ends the call."""
    dialogue = Dialogue(load("iridium-9505a"))
    dialogue.start(0.0)
    assert dialogue.poll_output() == b"ATZ\r"
    assert (dialogue.feed(b"", 5.0), dialogue.poll_output()) == ([], b"")
    dialogue.feed(b"", 6.0)
    assert dialogue.poll_output() == b"+++"
    dialogue.feed(OK, 7.5)
    assert dialogue.poll_output() == b"ATZ\r"
    dialogue.feed(OK, 7.6)
    assert dialogue.poll_output().startswith(b"ATS0=0")


def test_a_refused_line_fails():
    dialogue = Dialogue(load("hayes"))
    dialogue.start(0.0)

    assert dialogue.feed(b"\r\n+CME ERROR: 3\r\n", 0.0)[0].reason == "ATZ was answered +CME ERROR: 3"


@pytest.mark.parametrize(
    ("said", "result"),
    [(b"BUSY", "BUSY"), (b"NO CARRIER", "NO CARRIER"), (b"NO ANSWER", "NO ANSWER"), (b"NO DIAL TONE", "NO DIALTONE")],
)
def test_a_dial_that_fails_says_how_and_asks_for_the_cause(said, result):
    dialogue = ready()
    dialogue.dial("00881600005123", 0.0)
    assert dialogue.poll_output() == b"ATDT00881600005123\r"

    assert dialogue.feed(b"\r\n" + said + b"\r\n", 9.0) == [ev.DialFailed(result)]
    assert dialogue.poll_output() == b"AT+CEER\r"
    assert dialogue.feed(b"\r\n+CEER: 17\r\n" + OK, 9.5) == [ev.Cause("17")]


def test_numbers_for_results():
    table = {"title": "numbers", "init": ["ATV0"], "results": "numbers"}
    dialogue = Dialogue(profile_of(table, "numbers", where="test"))
    dialogue.start(0.0)

    assert dialogue.feed(b"ATV0\r0\r", 0.0) == [ev.Ready()]
    dialogue.dial("1", 0.0)
    assert dialogue.feed(b"ATDT1\r10\r~", 0.0) == [ev.Connected(2400, False), ev.Data(b"~")]


def test_a_dial_without_a_result_ends_at_its_limit_and_hangs_up():
    dialogue = ready()
    dialogue.dial("1", 0.0)
    dialogue.poll_output()
    assert dialogue.poll_timeout() == 90.0

    assert dialogue.feed(b"", 89.9) == []
    assert dialogue.feed(b"", 90.0) == [ev.DialFailed("time limit"), ev.DropDtr()]
    assert dialogue.poll_output() == b""
    dialogue.feed(b"", 91.5)
    assert dialogue.poll_output() == b"\rATH0\r"
    # Its late results are no answer to ATH0.
    assert dialogue.feed(b"\r\nNO CARRIER\r\n", 91.6) == []
    assert dialogue.feed(OK, 91.7) == [ev.HungUp(is_confirmed=True)]


def test_a_connect_that_comes_too_late_is_hung_up():
    dialogue = ready("iridium-9505a")
    dialogue.dial("1", 0.0)
    dialogue.feed(b"", 90.0)
    dialogue.poll_output()

    assert dialogue.feed(b"\r\nCONNECT\r\n\r\nCONNECT\r\n", 90.5) == []
    dialogue.feed(b"", 91.5)
    assert dialogue.poll_output() == b"+++"


def test_escape_has_silence_around_it():
    dialogue = ready("iridium-9505a")
    dialogue.dial("1", 0.0)
    dialogue.feed(b"\r\nCONNECT 9600\r\n", 5.0)
    dialogue.poll_output()
    dialogue.hang_up(10.0)

    assert dialogue.poll_output() == b""
    dialogue.feed(b"", dialogue.poll_timeout())
    assert dialogue.poll_output() == b"+++"
    dialogue.feed(OK, 12.0)
    assert dialogue.poll_output() == b""
    dialogue.feed(b"", 13.0)
    assert dialogue.poll_output() == b"ATH0\r"
    assert dialogue.feed(OK, 13.1) == [ev.HungUp(is_confirmed=True)]


def test_no_carrier_in_data_counts_only_with_silence_behind_it():
    dialogue = ready()
    dialogue.dial("1", 0.0)
    dialogue.feed(b"\r\nCONNECT 9600\r\n", 1.0)

    assert dialogue.feed(b"\r\nNO CARRIER\r\nand more", 2.0) == [ev.Data(b"\r\nNO CARRIER\r\nand more")]
    assert dialogue.poll_timeout() is None
    dialogue.feed(b"\r\nNO CARR", 3.0)
    dialogue.feed(b"IER\r\n", 3.0)
    assert dialogue.feed(b"", 3.9) == []
    assert dialogue.feed(b"", 4.0) == [ev.Dropped("NO CARRIER")]


def test_a_lost_carrier_drops_the_call_once():
    dialogue = ready()
    dialogue.dial("1", 0.0)
    dialogue.feed(b"\r\nCONNECT 9600\r\n", 1.0)
    dialogue.poll_output()

    assert dialogue.carrier(False, 2.0) == [ev.Dropped("DCD")]
    assert dialogue.carrier(False, 2.0) == []
    assert dialogue.feed(b"\r\nNO CARRIER\r\n", 2.1) == []
    assert dialogue.poll_output() == b"AT+CEER\r"


def test_rings_and_answers():
    dialogue = ready()

    assert dialogue.feed(b"\r\nRING\r\n", 0.0) == [ev.Ringing()]
    assert dialogue.feed(b"\r\nRING\r\n", 4.0) == [ev.Ringing()]
    assert dialogue.poll_timeout() == 14.0
    dialogue.answer(5.0)
    assert dialogue.poll_output() == b"ATA\r"
    assert dialogue.feed(b"\r\nCONNECT 19200\r\n", 8.0) == [ev.Connected(19_200, is_incoming=True)]
    assert dialogue.poll_timeout() is None


def test_a_caller_who_gives_up():
    dialogue = ready()
    dialogue.feed(b"\r\nRING\r\n", 0.0)

    assert dialogue.feed(b"", 10.0) == [ev.RingingEnded()]


def test_a_call_that_is_taken_is_not_given_up_while_it_is_set_up():
    """A satellite's call takes longer to be set up than the pause between two rings."""
    dialogue = ready("hayes")
    dialogue.feed(b"\r\nRING\r\n", 0.0)
    dialogue.answer(0.5)
    assert dialogue.feed(b"\r\nRING\r\n", 1.0) == []
    assert dialogue.feed(b"", 12.0) == []
    assert dialogue.feed(b"\r\nCONNECT 9600\r\n", 40.0) == [ev.Connected(9600, is_incoming=True)]


def test_signal_is_asked_for_after_registration_only():
    dialogue = ready()
    dialogue.ask_signal(0.0)
    assert dialogue.poll_output() == b"AT+CREG?\r"
    found = dialogue.feed(b"\r\n+CREG:002,001\r\n\r\nRING\r\n" + OK, 0.0)
    assert found == [ev.Registration(1, "registered", True), ev.Ringing()]
    assert dialogue.poll_output() == b"AT+CSQ\r"
    assert dialogue.feed(b"\r\n+CSQ:4\r\n" + OK, 8.0) == [ev.Signal(4)]

    dialogue.ask_signal(9.0)
    assert dialogue.feed(b"\r\n+CREG:002,000\r\n" + OK, 9.0)[-1] == ev.Signal(None)
    assert dialogue.is_idle


def test_a_pin_is_tried_once_and_never_again():
    dialogue = Dialogue(load("sim7600"), pin=PIN)
    written, found = b"", []
    for _ in range(3):
        dialogue.start(0.0)
        while said := dialogue.poll_output():
            written += said
            if b"CPIN?" in said:
                found += dialogue.feed(said + b"\r\n+CPIN: SIM PIN\r\n" + OK, 0.0)
                if found[-1] == ev.PinNeeded():
                    dialogue.enter_pin(0.0)
            elif b"CPIN=" in said:
                found += dialogue.feed(said + b"\r\n+CME ERROR: 16\r\n", 0.0)
            else:
                found += dialogue.feed(said + OK, 0.0)

    assert written.count(PIN.encode()) == 1
    assert [event.outcome for event in found if isinstance(event, ev.PinTried)] == ["refused"]
    assert PIN not in repr(found)
    assert dialogue.state is State.FAILED


def test_a_pin_that_was_refused_before_a_restart_is_not_sent():
    dialogue = Dialogue(load("sim7600"), pin=PIN, is_pin_spent=True)
    dialogue.start(0.0)
    found = []
    while said := dialogue.poll_output():
        assert PIN.encode() not in said
        found += dialogue.feed(b"\r\n+CPIN: SIM PIN\r\n" + OK, 0.0)

    assert "before, and it is not tried again" in found[-1].reason


def test_an_accepted_pin_goes_on():
    dialogue = Dialogue(load("sim7600"), pin=PIN)
    dialogue.start(0.0)
    found = []
    while said := dialogue.poll_output():
        found += dialogue.feed(b"\r\n+CPIN: SIM PIN\r\n" + OK if b"CPIN?" in said else OK, 0.0)
        if found[-1:] == [ev.PinNeeded()]:
            dialogue.enter_pin(0.0)

    assert found == [ev.PinNeeded(), ev.PinTried("accepted"), ev.Ready()]


def test_a_pin_is_not_written_before_its_owner_has_noted_that_it_is_tried():
    dialogue = Dialogue(load("sim7600"), pin=PIN)
    dialogue.start(0.0)
    written = b""
    while said := dialogue.poll_output():
        written += said
        dialogue.feed(b"\r\n+CPIN: SIM PIN\r\n" + OK if b"CPIN?" in said else OK, 0.0)
    assert PIN.encode() not in written
    dialogue.enter_pin(1.0)
    assert PIN.encode() in dialogue.poll_output()
    with pytest.raises(ArgumentError, match="does not wait for its PIN"):
        dialogue.enter_pin(2.0)


@pytest.mark.parametrize("number", ["", "555x", "ATH", "1\r2", "1" * 40])
def test_only_numbers_are_dialled(number):
    with pytest.raises(ArgumentError, match="is no number to dial"):
        ready().dial(number, 0.0)


@pytest.mark.parametrize("pin", ["", "12", "12a4", '1234"'])
def test_only_digits_are_a_pin(pin):
    with pytest.raises(ArgumentError, match="4 to 8 digits"):
        Dialogue(PROFILES["sim7600"], pin=pin)


def joined(found: list[ev.Event]) -> list[ev.Event]:
    """Data one after the other as one event."""
    whole: list[ev.Event] = []
    for event in found:
        if isinstance(event, ev.Data) and whole and isinstance(whole[-1], ev.Data):
            whole[-1] = ev.Data(whole[-1].content + event.content)
        else:
            whole.append(event)
    return whole


@given(
    st.sampled_from(sorted(PROFILES)),
    st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=30)), max_size=30),
    st.lists(st.integers(0, 400), max_size=20),
    st.integers(0, 7),
)
def test_where_bytes_are_cut_makes_no_difference(name, pieces, cuts, kind):
    sent = b"".join(pieces)

    def told(places: list[int]) -> tuple[list[ev.Event], bytes, bytes, float | None]:
        dialogue = ready(name)
        found = act(dialogue, kind, 0.0)
        for begin, end in zip([0, *places], [*places, len(sent)], strict=True):
            found += dialogue.feed(sent[begin:end], 1.0)
        return joined(found), dialogue.poll_output(), dialogue.tail, dialogue.poll_timeout()

    assert told(sorted(min(cut, len(sent)) for cut in cuts)) == told([])


def test_random_inputs_never_raise_and_all_events_occur():
    counts = fuzz(20_000, seed=3)

    assert set(counts) == {kind.__name__ for kind in ev.Event.__args__}  # type: ignore[attr-defined]
