"""Output of the operator, written by a thread: a stopped terminal, a pipe without a reader and a full disk stop no line."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from os import write

_MOST_WAITING = 1000
_CLOSE_S = 1.0


def to_stderr(text: str) -> None:
    """Write to standard error, without Python's buffer: a thread that waits in there would stop the end of the process.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if sys.stderr is None:  # closed by the parent process
        return
    try:
        file = sys.stderr.fileno()
    except (OSError, ValueError):  # replaced by something that is no file
        sys.stderr.write(text)
        return
    rest = text.encode("utf-8", "backslashreplace")
    while rest:
        rest = rest[write(file, rest) :]


class Teller:
    r"""Gets messages, which never takes long, and writes them in order. A context manager.

    Parameters
    ----------
    out
        Writes one; what it cannot write is left out.

    Examples
    --------
    >>> said = []
    >>> with Teller(said.append) as tell:
    ...     tell("kansas: connected")
    >>> said
    ['kansas: connected\n']
    """

    def __init__(self, out: Callable[[str], None] = to_stderr) -> None:
        self._out = out
        self._waiting: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._left_out = 0
        self._thread = threading.Thread(target=self._write, name="teller", daemon=True)

    def __enter__(self) -> Teller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what waits, but wait no longer than a second for it."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_CLOSE_S)
            self._thread.join(_CLOSE_S)

    def __call__(self, said: str) -> None:
        """Take a message; if too many wait, it is left out, and the next one says how many were."""
        text = f"{said}\n"
        if self._left_out:
            text = f"({self._left_out} messages are left out: nobody read them)\n{text}"
        try:
            self._waiting.put_nowait(text)
            self._left_out = 0
        except queue.Full:
            self._left_out += 1

    def _write(self) -> None:
        while (text := self._waiting.get()) is not None:
            with suppress(OSError, ValueError):
                self._out(text)
