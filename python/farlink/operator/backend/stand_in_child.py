"""The process of the stand-in: probes over the tty on its standard input. It imports nothing of farlink, so it starts fast.

Arguments: seconds between probes, how many without an answer end the link, seconds for the far end to answer first, a mark.
It writes what it observes, a line each: ``up``, ``probe answered``, ``probe lost``, ``carried IN OUT``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress

_HELLO_S = 0.3
_MOST_LINE_BYTES = 64


def main(interval_s: float, failures: int, set_up_s: float) -> int:
    """Probe until the tty hangs up, the far end falls silent, or a signal comes; the exit status is one of pppd's."""
    line = 0
    os.set_blocking(line, False)
    try:
        tty.setraw(line)
    except (OSError, termios.error):
        return 16
    begin = time.monotonic()
    is_up, next_at, number, answered, lost, pending = False, begin, 0, 0, 0, b""
    counts = [0, 0]

    def say(text: str) -> None:
        os.write(1, f"{text}\n".encode())

    def write(data: bytes) -> None:
        with suppress(BlockingIOError):  # a full buffer: the probe is lost
            counts[1] += os.write(line, data)

    while True:
        now = time.monotonic()
        if now >= next_at:
            if not is_up and now - begin >= set_up_s:
                return 10
            if is_up and answered < number:
                lost += 1
                say("probe lost")
                if lost >= failures:
                    say(f"carried {counts[0]} {counts[1]}")
                    return 15
            number += 1
            next_at = now + (interval_s if is_up else _HELLO_S)
            try:
                write(b"P%d\n" % number)
            except OSError:
                return 16
        try:
            select.select([line], [], [], max(0.0, next_at - time.monotonic()))
            data = os.read(line, 4096)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        if not data:
            say(f"carried {counts[0]} {counts[1]}")
            return 16
        counts[0] += len(data)
        *lines, pending = (pending + data).split(b"\n")
        pending = pending[-_MOST_LINE_BYTES:]
        for one in lines:
            kind, text = one[:1], one[1:].strip()
            if not text.isdigit() or len(text) > 12:
                continue  # of the modem, or damaged
            if kind == b"P":
                try:
                    write(b"A%s\n" % text)
                except OSError:
                    return 16
            elif kind == b"A" and int(text) <= number:
                answered, lost = max(answered, int(text)), 0
                if not is_up:
                    is_up, next_at = True, time.monotonic() + interval_s
                    say("up")
                elif answered == number:
                    say("probe answered")
                    say(f"carried {counts[0]} {counts[1]}")


def _end(number: int, _frame: object) -> None:
    sys.exit(5 if number == signal.SIGTERM else 0)


if __name__ == "__main__":
    for caught in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(caught, _end)
    try:
        sys.exit(main(float(sys.argv[1]), int(float(sys.argv[2])), float(sys.argv[3])))
    except BrokenPipeError:
        sys.exit(5)  # the operator is gone
