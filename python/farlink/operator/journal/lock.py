"""One operator writes a journal: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from farlink.errors import JournalError, OutputError
from farlink.untrusted import printable


class Lock:
    """An exclusive lock beside a file.

    Parameters
    ----------
    path
        The locked file; the lock itself is ``NAME.lock``, which stays.

    Raises
    ------
    JournalError
        If another process, or another object of this one, has the lock.
    OutputError
        If the lock cannot be made.
    """

    def __init__(self, path: Path) -> None:
        name = path.with_name(f"{path.name}.lock")
        try:
            self._file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(f"cannot write {name}: {error.strerror}", "choose a directory you may write to") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = printable(os.pread(self._file, 20, 0).decode("ascii", "replace"), 20)
            os.close(self._file)
            by = f"process {holder}" if holder else "another process"
            raise JournalError(f"{path} is in use by {by}", "stop the other operator of this bundle first") from error
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
