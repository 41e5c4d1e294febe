"""Transfers without room on a disk or without descriptors, for `wire_faults.py`."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import page
from kernel_paths import output_of
from wire import CLI, make_keys, sha256_of
from wire_host import LISTEN, Host

# What is sent, and at which rate: the disk fills in the middle.
FILES, FILE_BYTES, RATE_BPS = 10, 2_000_000, 20e6
FILLED_AFTER_S = 4.0
# Of programs that are started with fewer, Python itself does not start.
DESCRIPTORS = range(5, 18)
# A program that has not ended after so long hangs.
LONGEST_S = 60
# What takes all the room.
FILLER = "filler"


@dataclass(frozen=True)
class Shortage:
    """Transfers with a shortage, and the same commands without it."""

    # Exit codes of the sender; where the receiver did not start, there was none.
    sender_codes: list[int]
    # Those of the receiver; None if it went on.
    receiver_codes: list[int | None]
    # Errors and hints, of whom it was that failed first.
    said: list[list[str]]
    # Files that had got their names, and those of them that differ from what was sent.
    placed: int
    wrong: int
    # Exit codes of the sender and the receiver later, and whether all files were equal then.
    later_codes: list[list[int]]
    equal: int


class Transfer:
    """A transfer that is tried again and again, between a folder `content` and one called `in`."""

    def __init__(self, host: Host, files: int, file_bytes: int) -> None:
        """Make what is sent."""
        make_keys(host.folder)
        self.host, self.source, self.target = host, host.folder / "content", host.folder / "in"
        self.source.mkdir()
        self.target.mkdir()
        for number in range(files):
            (self.source / f"{number}").write_bytes(random.Random(number).randbytes(file_bytes))

    def tried(
        self, *, receiver_limit: int | None = None, sender_limit: int | None = None, meanwhile: Callable[[], None] | None = None
    ) -> tuple[int | None, int | None]:
        """Exit codes of sender and receiver; None if it was not started, or went on until it was interrupted."""
        for name in ("sender", "receiver"):
            for end in ("out", "err"):
                (self.host.folder / f"{name}.{end}").unlink(missing_ok=True)
        receive = (*CLI, "receive", "in", "--listen", LISTEN, "--once", "--keys", "shore")
        receiver = self.host.start("receiver", *_limited(receiver_limit), *receive)
        until_s = time.monotonic() + LONGEST_S
        while "listening" not in self.host.said("receiver"):
            if receiver.poll() is not None:
                return None, receiver.returncode
            if time.monotonic() > until_s:
                raise RuntimeError("the receiver does not start")
            time.sleep(0.05)
        send = (*CLI, "send", "content", LISTEN, "--rate", f"{RATE_BPS:g}", "--patience", "10", "--keys", "ship")
        sender = self.host.start("sender", *_limited(sender_limit), *send)
        if meanwhile is not None:
            time.sleep(FILLED_AFTER_S)
            meanwhile()
        code = sender.wait(timeout=LONGEST_S)
        try:
            return code, receiver.wait(timeout=2)
        except subprocess.TimeoutExpired:
            receiver.send_signal(signal.SIGINT)
            receiver.wait(timeout=LONGEST_S)
            return code, None

    def said(self) -> list[str]:
        """What the sender said, or the receiver if there was no sender: errors and hints, not the folder's name."""
        name = "sender" if (self.host.folder / "sender.err").exists() else "receiver"
        lines = self.host.said(name).splitlines()
        return [line for line in lines if line.startswith(("error:", "hint:", "Traceback"))]

    def sums(self, folder: Path) -> dict[str, str]:
        """Hashes of the files in a folder."""
        return {path.name: sha256_of(path) for path in folder.iterdir() if path.is_file()}

    def placed_and_wrong(self) -> tuple[int, int]:
        """Files with names of sent ones, and those of them with another content."""
        there = self.target / "content"
        sent, found = self.sums(self.source), self.sums(there) if there.exists() else {}
        return len(found), sum(sent.get(name) != value for name, value in found.items())

    def is_equal(self) -> bool:
        """Whether all has arrived."""
        return self.sums(self.source) == self.sums(self.target / "content")


def _limited(descriptors: int | None) -> Sequence[str]:
    return () if descriptors is None else ("prlimit", f"--nofile={descriptors}")


@contextmanager
def _small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """A file system of its own in a folder, owned by root."""
    output_of("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=700", "tmpfs", f"{folder}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def _fill(folder: Path) -> None:
    """Somebody else takes all the room that there is."""
    with (folder / FILLER).open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1 << 16)) > 0:
            pass


def _told(transfer: Transfer, codes: tuple[int | None, int | None]) -> Shortage:
    """What there is after the failure, and after another try with room."""
    sender, receiver = codes
    said, (placed, wrong) = transfer.said(), transfer.placed_and_wrong()
    later = [code if code is not None else -1 for code in transfer.tried()]
    codes_of_sender = [] if sender is None else [sender]
    return Shortage(codes_of_sender, [receiver], [said], placed, wrong, [later], int(transfer.is_equal()))


def _full_disk(files: int, file_bytes: int, *, is_full_before: bool) -> Shortage:
    """The folder of the receiver has no room, from the beginning or in the middle."""
    with Host() as host:
        transfer = Transfer(host, files, file_bytes)
        with _small_disk(transfer.target, files * file_bytes * 2):
            if is_full_before:
                _fill(transfer.target)
            codes = transfer.tried(meanwhile=None if is_full_before else lambda: _fill(transfer.target))
            (transfer.target / FILLER).unlink()
            return _told(transfer, codes)


def _full_disk_of_keys(keys: str) -> Shortage:
    """The folder of the keys has no room."""
    with Host() as host:
        transfer = Transfer(host, FILES, FILE_BYTES)
        folder, aside = host.folder / keys, host.folder / "aside"
        folder.rename(aside)
        folder.mkdir()
        with _small_disk(folder, 1 << 20):
            shutil.copytree(aside, folder, dirs_exist_ok=True)
            _fill(folder)
            codes = transfer.tried()
            (folder / FILLER).unlink()
            return _told(transfer, codes)


def _few_descriptors(name: str) -> Shortage:
    """The sender or the receiver may have that many files and sockets open, for each number anew."""
    all_of: list[Shortage] = []
    for limit in DESCRIPTORS:
        with Host() as host:
            transfer = Transfer(host, FILES, FILE_BYTES)
            limits = (limit, None) if name == "receiver" else (None, limit)
            codes = transfer.tried(receiver_limit=limits[0], sender_limit=limits[1])
            if 0 in codes:
                print(f"{limit} descriptors are enough for the {name}", flush=True)
                break
            all_of.append(_told(transfer, codes))
            print(f"{name} with {limit} descriptors: {all_of[-1]}", flush=True)
    return Shortage(
        [code for one in all_of for code in one.sender_codes],
        [code for one in all_of for code in one.receiver_codes],
        [said for one in all_of for said in one.said],
        sum(one.placed for one in all_of),
        sum(one.wrong for one in all_of),
        [codes for one in all_of for codes in one.later_codes],
        sum(one.equal for one in all_of),
    )


SHORTAGES: dict[str, Callable[[], Shortage]] = {
    "disk full from the start": lambda: _full_disk(FILES, FILE_BYTES, is_full_before=True),
    "disk fills between files": lambda: _full_disk(FILES, FILE_BYTES, is_full_before=False),
    "disk fills within a file": lambda: _full_disk(1, FILES * FILE_BYTES, is_full_before=False),
    "no room for the receiver's keys": lambda: _full_disk_of_keys("shore"),
    "no room for the sender's keys": lambda: _full_disk_of_keys("ship"),
    "receiver with few descriptors": lambda: _few_descriptors("receiver"),
    "sender with few descriptors": lambda: _few_descriptors("sender"),
}


def shortage_table(found: dict[str, Shortage]) -> str:
    """Shortages, and what came of them."""
    rows = []
    for what, one in found.items():
        row = [what, f"{len(one.said)}", _codes(one.sender_codes), _codes(one.receiver_codes)]
        row += [f"{sum(_has_remedy(said) for said in one.said)}", f"{one.placed}", f"{one.wrong}"]
        rows.append([*row, _codes([code for codes in one.later_codes for code in codes]), f"{one.equal}"])
    head = ["shortage", "tries", "sender's exit codes", "receiver's", "with a remedy", "files placed", "half-written"]
    return page.table([*head, "exit codes later", "all equal later"], rows, "lr")


def _codes(codes: Sequence[int | None]) -> str:
    """Which exit codes there were, and how often if there are several."""
    names = ["goes on" if code is None else f"{code}" for code in codes]
    kinds = sorted(set(names))
    return ", ".join(kinds if len(kinds) == 1 else [f"{kind} ({names.count(kind)})" for kind in kinds])


def _has_remedy(said: Sequence[str]) -> bool:
    """Whether an error was followed by what to do, and by nothing of the interpreter."""
    starts = [line.partition(":")[0] for line in said]
    return starts == ["error", "hint"]
