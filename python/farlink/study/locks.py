"""Locks in the folder of a study. The kernel lets go of them when their owner ends, however it ends."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from farlink.errors import StudyError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

# Errors of file systems without locks, such as some NFS servers.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


@contextmanager
def held(path: Path, *, shared: bool = False, wait: bool = False, tell: Callable[[str], None] | None = None) -> Iterator[bool]:
    """Hold a lock while the block runs.

    Parameters
    ----------
    path
        File of the lock, which stays.
    shared
        Whether others may hold it too, as long as nobody holds it alone.
    wait
        Wait for its owner, in place of an error.
    tell
        Called with a remark if the file system has no locks.

    Yields
    ------
    bool
        Whether it is held; False on a file system without locks.

    Raises
    ------
    StudyError
        If someone else holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        is_held = _lock(handle, path, shared, wait, tell)
        if is_held and not shared:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield is_held
    finally:
        os.close(handle)


def _lock(handle: int, path: Path, shared: bool, wait: bool, tell: Callable[[str], None] | None) -> bool:
    if fcntl is None:
        return False
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
        raise StudyError(
            f"{path.parent} is being worked on by {owner}", "wait for it, or share the work by --shard I/N in all of them"
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise StudyError(f"cannot lock {path}: {error.strerror}", "choose another folder") from error
        if tell is not None:
            tell(f"{path.parent} is on a file system without locks: see to it that nobody else works on it, except by --shard")
        return False
    return True
