"""No core dump of a process that holds secrets, and nobody else reads its memory."""

from __future__ import annotations

import ctypes
import resource
from contextlib import suppress

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, and of programs that it starts, such as pppd, which holds the password, too.

    A process that is not dumpable leaves no core, whatever ``core_pattern`` says, and other processes of its user may neither
    trace it nor read its memory (prctl(2)). A program that is started is dumpable again; it inherits the limit: with one of
    1 byte the kernel writes no file and, other than with 0, starts no program of ``core_pattern`` (fs/coredump.c of Linux).
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
