"""Ctrl-C and termination requests, raised as `KeyboardInterrupt` at a safe moment."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

# An import that is interrupted leaves half a module; the extension cannot bear that while it asks for NumPy. A temporary file
# that is interrupted while it is made is left behind, as nobody knows its name yet. Rich cannot end a progress bar that has
# begun in part.
_NOT_WITHIN = ("<frozen importlib", f"{os.sep}numpy{os.sep}", f"{os.sep}tempfile.py", f"{os.sep}rich{os.sep}live.py")
_AGAIN_S = 0.005


def handler(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, or do so a little later, once what must not be interrupted is over.

    Parameters
    ----------
    number
        The signal.
    frame
        What was running.
    """
    if any(mark in file for file in _files(frame) for mark in _NOT_WITHIN):
        timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()
        return
    signal.default_int_handler(number, frame)


def listen() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` from now on, if it ended the process at once before."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, handler)


def _files(frame: FrameType | None) -> list[str]:
    """The source file of each running function."""
    found = []
    while frame is not None:
        found.append(frame.f_code.co_filename)
        frame = frame.f_back
    return found
