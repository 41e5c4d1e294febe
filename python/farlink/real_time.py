"""Priorities of threads that have to be on time."""

from __future__ import annotations

import os

# Above other programs, below the kernel's own threads.
_PRIORITY = 50


def prioritise() -> bool:
    """Give this thread a real-time priority, and none to those that it starts; whether the system permits it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
    except (AttributeError, OSError):
        return False
    return True
