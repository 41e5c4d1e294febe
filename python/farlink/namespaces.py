"""Two network namespaces with a TUN device each, which are removed at the end, or at the next start if nobody could."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from farlink.errors import FarlinkError

NEAR, FAR = "198.18.0.1", "198.18.0.2"
"""Addresses of the two ends, of the block for tests of networks (RFC 2544)."""
DEVICE = "farlink0"
"""Name of the device in both namespaces."""

# Whose namespaces are whose: a file for each pair, locked while its emulator lives.
_LOCKS = Path("/run/farlink")
_NAMED = Path("/run/netns")
_MOST = 100


class NamespaceError(FarlinkError):
    """Network namespaces cannot be made."""


class DeviceGoneError(NamespaceError):
    """Somebody has removed the device of a running emulator."""

    exit_code = 1


class Namespaces:
    """Two network namespaces, as a context. Names are `farlink-near` and `farlink-far`, with a number if these are in use.

    Entering makes them. Those that a killed emulator left behind are removed first.
    """

    def __init__(self) -> None:
        self.near = ""
        self.far = ""
        self._lock: IO[str] | None = None

    def __enter__(self) -> Namespaces:
        if shutil.which("ip") is None:
            raise NamespaceError("the program ip is missing", "install iproute2, or relay UDP with --listen and --to")
        try:
            _LOCKS.mkdir(exist_ok=True)
        except OSError as error:
            raise NamespaceError(
                f"cannot make network namespaces: {_LOCKS}: {error.strerror}",
                "run it as root, or relay UDP with --listen and --to, which needs nothing",
            ) from error
        for number in sorted(int(path.name.split("-")[-1]) for path in _LOCKS.glob("emulate-*")):
            if (left := _locked(number)) is not None:
                _remove(left)
                left.close()
        for number in range(1, _MOST):
            end = "" if number == 1 else f"-{number}"
            near, far = f"farlink-near{end}", f"farlink-far{end}"
            lock = _locked(number)
            if lock is not None and not (_NAMED / near).exists() and not (_NAMED / far).exists():
                self._make(lock, near, far)
                return self
            # A running emulator has it, or somebody else has made namespaces of these names.
            if lock is not None:
                lock.close()
        raise NamespaceError(f"{_MOST - 1} emulators run already", "end some of them")

    def _make(self, lock: IO[str], near: str, far: str) -> None:
        self._lock, self.near, self.far = lock, near, far
        lock.write(f"{near} {far}")
        lock.flush()
        try:
            for name in (near, far):
                _ip("netns", "add", name)
                # Packets that nobody sent would come in between those that are tested.
                _ip("netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", may_fail=True)
                _ip("-n", name, "link", "set", "lo", "up")
        except BaseException:
            self._end()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        if self._lock is not None:
            _remove(self._lock)
            self._lock.close()
            self._lock = None

    def move(self, devices: tuple[str, str]) -> None:
        """Move the devices of a tunnel into the namespaces, and give them addresses and routes."""
        for device, name, own in zip(devices, (self.near, self.far), (NEAR, FAR), strict=True):
            _ip("link", "set", "dev", device, "netns", name, "name", DEVICE)
            _ip("-n", name, "addr", "add", f"{own}/30", "dev", DEVICE)
            _ip("-n", name, "link", "set", "dev", DEVICE, "txqueuelen", "2000", "up")
            _ip("-n", name, "route", "add", "default", "dev", DEVICE)

    def unread(self) -> tuple[int, int]:
        """Packets for which the queues of the devices had no room, at the near end and at the far one.

        Raises
        ------
        DeviceGoneError
            If a device is no longer there: how many it was is not known then.
        """
        return _unread(self.near), _unread(self.far)


def inside(name: str, command: Sequence[str]) -> list[str]:
    """The command that runs another one in a namespace."""
    return ["ip", "netns", "exec", name, *command]


def _locked(number: int) -> IO[str] | None:
    """The file of a pair of namespaces; None if an emulator has it."""
    try:
        lock = (_LOCKS / f"emulate-{number}").open("a+")
    except OSError as error:
        raise NamespaceError(
            f"cannot make network namespaces: {error}",
            "run it as root, or relay UDP with --listen and --to, which needs nothing",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def _remove(lock: IO[str]) -> None:
    """Remove the namespaces that a file names."""
    lock.seek(0)
    for name in lock.read().split():
        if name.startswith("farlink-") and (_NAMED / name).exists():
            _ip("netns", "del", name, may_fail=True)
    lock.seek(0)
    lock.truncate()


def _unread(name: str) -> int:
    shown = subprocess.run(
        ["ip", "-n", name, "-s", "-j", "link", "show", "dev", DEVICE], capture_output=True, text=True, check=False
    )
    try:
        return int(json.loads(shown.stdout)[0]["stats64"]["tx"]["dropped"])
    except (ValueError, LookupError, TypeError) as error:
        raise DeviceGoneError(
            f"the device {DEVICE} of the namespace {name} is gone, and with it the count of packets that were not read",
            "leave namespaces and devices of a running emulator alone, and run it again",
        ) from error


def _ip(*arguments: str, may_fail: bool = False) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        remedy = "run it as root on Linux with network namespaces, or relay UDP with --listen and --to"
        raise NamespaceError(f"ip {' '.join(arguments)}: {said}", remedy)
