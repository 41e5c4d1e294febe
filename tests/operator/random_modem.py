"""Bytes of a modem that answers at random: results, unasked lines, echoes, halves of them, and nonsense."""

from __future__ import annotations

import random

from farlink.operator.at import events as ev
from farlink.operator.at.dialogue import Dialogue, State
from farlink.operator.at.profiles import load, names

PIECES = (
    *(b"\r\n%s\r\n" % words for words in (b"OK", b"ERROR", b"RING", b"BUSY", b"NO CARRIER", b"NO ANSWER", b"NO DIALTONE")),
    *(b"\r\n%s\r\n" % words for words in (b"CONNECT", b"CONNECT 19200", b"+CME ERROR: 10", b"CARRIER 9600")),
    *(b"\r\n%s\r\n" % words for words in (b"+CSQ:1", b"+CSQ:099,099", b"+CSQF:3", b"+CREG:002,005", b'+CREG: 1,"00A3","1F"')),
    *(b"\r\n%s\r\n" % words for words in (b"+CPIN: READY", b"+CPIN: SIM PIN", b"+CPIN: SIM PUK", b"+CEER: 16")),
    *(b"\r\n%s\r\n" % words for words in (b'+CLIP: "5550123",129', b'+CLIP:"+88",145,"",,"x",0', b'+CLIP: "', b"+CLIP: 1,1")),
    *(b"\r\n%s\r\n" % words for words in (b"+CSQ:", b"+CREG:9", b"+CPIN:", b"+CSQ: 99999999999", b"+CREG: 0,,")),
    *(b"\r\n> ", b"\r\n+CMGS: 12\r\n\r\nOK\r\n", b"\r\n+CMS ERROR: 331\r\n"),
    *(b"%d\r" % code for code in (0, 1, 2, 3, 4, 7, 10, 99)),
    b"AT+CSQ\r", b"ATZ\r", b"ATDT5550123\r", b"\r", b"\n", b"\0", b"+", b"\xff" * 40, b"CONN", b"OK", b"A" * 700,
)  # fmt: skip
PROFILES = {name: load(name) for name in names()}
PIN = "8265"


def act(dialogue: Dialogue, kind: int, now: float) -> list[ev.Event]:
    """Let the owner of a dialogue do something that its state permits."""
    if kind == 0:
        return dialogue.hang_up(now)
    if kind == 1:
        return dialogue.carrier(False, now)
    if dialogue.state in (State.CLOSED, State.FAILED) or kind == 2:
        dialogue.start(now)
    elif dialogue.state is State.READY and dialogue.is_idle:
        if kind == 3:
            return dialogue.dial("5550123", now)
        if kind == 4:
            dialogue.answer(now)
        elif kind == 5:
            dialogue.ask("AT+CGSN", now)
        elif kind == 6:
            dialogue.send_sms("0001000B916407281553F800000AE8329BFD4697D9EC37", 22, now)
        else:
            dialogue.ask_signal(now)
    return []


def obliging(last: bytes) -> bytes:
    """A sensible answer to what was written, so that a dialogue comes far."""
    if b"CPIN?" in last:
        return b"\r\n+CPIN: SIM PIN\r\n\r\nOK\r\n"
    if b"CREG?" in last:
        return b"\r\n+CREG:002,001\r\n\r\nOK\r\n"
    if b"CMGS=" in last:
        return b"\r\n> "
    if b"CEER" in last:
        return b"\r\n+CEER: 16\r\n\r\nOK\r\n"
    return b"\r\nCONNECT 9600\r\n" if b"ATD" in last or b"ATA" in last else b"\r\nOK\r\n"


def fuzz(inputs: int, seed: int) -> dict[str, int]:
    """Feed a dialogue random inputs; how often each event came."""
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    dialogue, now, is_spent, last = Dialogue(PROFILES["hayes"]), 0.0, False, b""
    for number in range(inputs):
        if number % 2000 == 0:
            profile = PROFILES[rng.choice(sorted(PROFILES))]
            dialogue, is_spent = Dialogue(profile, pin=rng.choice((None, PIN)), asks_callers=rng.random() < 0.5), False
        now += rng.choice((0.0, 0.01, 0.1, 1.0, 5.0, 100.0))
        what = rng.random()
        if what < 0.2:
            found = act(dialogue, rng.randrange(8), now)
        elif what < 0.55:
            found = dialogue.feed(obliging(last), now)
        elif what < 0.9:
            piece = rng.choice(PIECES)
            cut = rng.randrange(len(piece) + 1) if rng.random() < 0.2 else len(piece)
            found = dialogue.feed(piece[:cut], now)
        else:
            found = dialogue.feed(rng.randbytes(rng.randrange(64)), now)
        if any(isinstance(event, ev.PinNeeded) for event in found) and dialogue.state is State.STARTING:
            dialogue.enter_pin(now)
        written = dialogue.poll_output()
        last = written or last
        # After a refusal, or no answer, never again.
        assert not (is_spent and PIN.encode() in written)
        assert len(written) < 4096
        assert len(dialogue.tail) <= 4096
        # Something is to come, or the owner may act: nothing is stuck.
        is_waiting = dialogue.poll_timeout() is not None
        assert is_waiting or dialogue.state in (State.CLOSED, State.READY, State.ONLINE, State.FAILED)
        for event in found:
            is_spent = is_spent or (isinstance(event, ev.PinTried) and event.outcome != "accepted")
            counts[type(event).__name__] = counts.get(type(event).__name__, 0) + 1
    return counts


if __name__ == "__main__":
    import os
    import resource

    given = int(os.environ.get("SEED", "1"))
    fuzz(20_000, given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(*(f"{name} {count}" for name, count in sorted(fuzz(1_000_000, given).items())), sep=", ")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"a million inputs, seed {given}: nothing raised, memory grew by {grown} KiB")
    assert grown < 5 * 1024
