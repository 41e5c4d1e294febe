"""A short message by a modem that nobody else uses: the port is opened, the message sent, the port closed."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from farlink.errors import FarlinkError
from farlink.operator.at import Dialogue, Profile, pdu
from farlink.operator.at import events as ev
from farlink.operator.lines.line import Pins
from farlink.operator.lines.port import Port

_LIMIT_S = 180.0


async def send_sms(
    name: str,
    port: str,
    profile: Profile,
    *,
    number: str,
    text: str,
    pins: Pins,
    pin: str | None = None,
    limit_s: float = _LIMIT_S,
) -> str:
    """Send a short message.

    Parameters
    ----------
    name
        Of the line, by which its PIN is noted.
    port, profile
        Of the modem.
    number, text
        Who gets it, and up to 160 letters.
    pins, pin
        Whether a PIN may be tried, and that of the SIM.
    limit_s
        For all of it.

    Returns
    -------
    str
        Empty if the network has it, else why not.
    """
    wake = asyncio.Event()
    may_try = pin is not None and pins.may_try(name)
    try:
        content, length = pdu.submitted(number, text)
        opened = await Port.open(port, profile.speed_bps, wake.set)
    except FarlinkError as error:
        return error.message
    except OSError as error:
        return f"{port}: {(error.strerror or str(error)).lower()}"
    dialogue = Dialogue(profile, pin=pin, is_pin_spent=not may_try)
    try:
        async with asyncio.timeout(limit_s):
            dialogue.start(time.monotonic())
            while True:
                opened.write(dialogue.poll_output())
                due = dialogue.poll_timeout()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                        await wake.wait()
                wake.clear()
                now = time.monotonic()
                if opened.is_lost:
                    return f"{port} hung up"
                for event in dialogue.feed(opened.take(), now):
                    match event:
                        case ev.Ready():
                            dialogue.send_sms(content, length, now)
                        case ev.PinNeeded():
                            # Before it is sent: a power cut between the two must not lead to a second wrong one.
                            if not pins.note_tried(name):
                                return "that the PIN is tried cannot be noted in the journal, so it is not tried"
                            dialogue.enter_pin(now)
                        case ev.PinTried(outcome):
                            pins.note_outcome(name, outcome)
                        case ev.Failed(reason):
                            return reason
                        case ev.SmsSent(is_sent, result):
                            return "" if is_sent else f"the modem answers {result}"
    except TimeoutError:
        return f"not sent within {limit_s:g} s"
    finally:
        await opened.close()
