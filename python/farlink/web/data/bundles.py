"""The bundles of the dashboard: what their files say, what their operators answer, and orders to these."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from farlink.errors import ArgumentError, FarlinkError, OperatorError
from farlink.near_names import instead
from farlink.operator.config import Bundle, Mistake, check
from farlink.operator.live import ask
from farlink.operator.live.status import costs, rows, title
from farlink.untrusted import printable
from farlink.web.data.calls import CallReader, Calls
from farlink.web.data.journal_file import JournalFile

# A status is asked for so often at most, however many pages want it; of an operator that does not answer, more rarely.
_FRESH_S = 1.0
_FRESH_IF_AWAY_S = 2.0
_FRESH_IF_SLOW_S = 15.0
_ANSWER_S = 3.0
_ORDER_S = 20.0
# Calls are read from the journal so often at most.
_CALLS_FRESH_S = 5.0
# The rate of a call is that of the last so many seconds.
_RATE_S = 20.0

ORDERS = {
    "hold": "hangs the line up, and dials it no more until it is released",
    "release": "uses the line again",
    "redial": "dials the line now, whatever pause or block it is in; a call that is up is ended first",
}


@dataclass(frozen=True)
class View:
    """State of a bundle at a time.

    Attributes
    ----------
    key
        Its name in addresses.
    path
        Its file.
    bundle
        What the file says; None if it has mistakes.
    mistakes
        Of the file.
    status
        What the operator answers; None if it is away.
    away, remedy
        Why there is no status, and what to do.
    rates_bps
        Line -> bit rate of its call now, both ways together; of lines whose bytes are counted.
    taken_s
        When, on the monotonic clock, in s.
    """

    key: str
    path: Path
    bundle: Bundle | None
    mistakes: tuple[Mistake, ...] = ()
    status: Mapping[str, Any] | None = None
    away: str = ""
    remedy: str = ""
    rates_bps: Mapping[str, float] = field(default_factory=dict)
    taken_s: float = 0.0

    @property
    def name(self) -> str:
        """Of the bundle; that of its file if the file has mistakes."""
        return self.key if self.bundle is None else self.bundle.name

    @property
    def lines(self) -> list[str]:
        """Names of its lines."""
        if self.status is not None:
            return [str(one["line"]) for one in self.status["lines"]]
        return [] if self.bundle is None else [line.name for line in self.bundle.lines]

    @property
    def alerts(self) -> list[Mapping[str, Any]]:
        """Alerts that are raised; none if the operator knows none."""
        found = (self.status or {}).get("alerts")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def line(self, name: str) -> Mapping[str, Any] | None:
        """The state of a line."""
        return next((one for one in (self.status or {"lines": []})["lines"] if one["line"] == name), None)


class Watched:
    """One bundle. Its methods wait for files and operators: call them in a thread; several may at once.

    Parameters
    ----------
    path
        Its ``bundle.toml``.
    key
        Its name in addresses.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self._lock, self._calls_lock = threading.Lock(), threading.Lock()
        self._view: View | None = None
        self._fresh_s = 0.0
        self._read: tuple[object, Bundle | None, tuple[Mistake, ...]] | None = None
        self._last_good: Bundle | None = None
        self._carried: dict[str, deque[tuple[float, int, int]]] = {}
        self._reader: CallReader | None = None
        self._calls: tuple[float, Calls] | None = None

    def view(self) -> View:
        """The present state, at most a second old."""
        # While somebody else asks an operator that hangs, pages get what was known before.
        if not self._lock.acquire(blocking=self._view is None):
            return self._view  # type: ignore[return-value]
        try:
            began = time.monotonic()
            if self._view is None or began - self._view.taken_s >= self._fresh_s:
                found = self._looked()
                ended = time.monotonic()
                self._view = replace(found, taken_s=ended)
                away_s = _FRESH_IF_SLOW_S if ended - began >= _ANSWER_S else _FRESH_IF_AWAY_S
                self._fresh_s = _FRESH_S if found.status is not None else away_s
            return self._view
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Look anew when next asked: something was changed."""
        self._fresh_s = 0.0

    def calls(self) -> Calls:
        """Its calls by the journal, some seconds old at most.

        Raises
        ------
        JournalError, OutputError
            If there is no journal, or it cannot be read.
        """
        self.journal()
        known = self._calls
        if not self._calls_lock.acquire(blocking=known is None):
            return known[1]  # type: ignore[index]
        try:
            if self._reader is not None and (self._calls is None or time.monotonic() - self._calls[0] >= _CALLS_FRESH_S):
                is_operated = self._view is not None and self._view.status is not None
                found = self._reader.calls(time.time(), is_operated=is_operated)
                self._calls = (time.monotonic(), found)
            return Calls() if self._calls is None else self._calls[1]
        finally:
            self._calls_lock.release()

    def journal(self) -> JournalFile:
        """Its journal.

        Raises
        ------
        OperatorError
            If its file has mistakes, so that nobody knows where the journal is.
        """
        self.view()
        if self._last_good is None:
            raise OperatorError(f"{self.path} has mistakes, so its journal is unknown", "correct the file: see Profiles")
        reader = self._reader
        if reader is None or reader.journal.path != self._last_good.journal:
            reader = self._reader = CallReader(JournalFile(self._last_good.journal))
            self._calls = None
        return reader.journal

    def order(self, what: str, lines: Iterable[str], why: str = "") -> dict[str, Any]:
        """Have the operator do something.

        Parameters
        ----------
        what
            One of `ORDERS`, or ``down``.
        lines
            Which; none for all.
        why
            For the journal.

        Returns
        -------
        dict
            ``lines`` to which it was done, and ``left``: to which not, and why.

        Raises
        ------
        OperatorError
            If the operator is away or refuses.
        """
        if what not in (*ORDERS, "down"):
            raise ArgumentError(f"there is no order {printable(what, 40)!r}", instead(what, ORDERS))
        self.view()
        if self._last_good is None:
            raise OperatorError(f"{self.path} has mistakes", "correct the file: see Profiles")
        request = {"do": what, "lines": list(lines) or None, "cause": why}
        try:
            return ask(self._last_good.journal, request, bundle=self._last_good.name, within_s=_ORDER_S)
        finally:
            self.forget()

    def _looked(self) -> View:
        bundle, mistakes = self._file()
        known = bundle or self._last_good
        if known is None:
            first = mistakes[0]
            away = f"line {first.line}, column {first.column}: {first.message}"
            return View(self.key, self.path, None, mistakes, away=away, remedy=first.remedy)
        self._last_good = known
        try:
            status = ask(known.journal, {"do": "status"}, bundle=known.name, within_s=_ANSWER_S)
            rows(status), title(status), costs(status)  # whoever shows it relies on its parts
            rates = self._rates(status)
        except FarlinkError as error:
            return View(self.key, self.path, bundle, mistakes, None, error.message, error.remedy)
        except (LookupError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
            away = f"the operator of bundle {known.name} answers what is no status: {printable(repr(error), 100)}"
            return View(self.key, self.path, bundle, mistakes, None, away, "start it with this version of farlink")
        return View(self.key, self.path, bundle, mistakes, status, rates_bps=rates)

    def _file(self) -> tuple[Bundle | None, tuple[Mistake, ...]]:
        """Content of the file; it is read again when it has changed."""
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            stamp = (0, 0, 0)
        if self._read is None or self._read[0] != stamp:
            try:
                checked = check(self.path, needs_ports=False)
                self._read = (stamp, checked.bundle, checked.mistakes)
            except FarlinkError as error:
                self._read = (stamp, None, (Mistake(1, 1, error.message, error.remedy),))
        return self._read[1], self._read[2]

    def _rates(self, status: Mapping[str, Any]) -> dict[str, float]:
        """Bit rates of calls, from what they had carried some seconds ago."""
        now, rates = time.monotonic(), {}
        for one in status["lines"]:
            name, bytes_in, bytes_out = one["line"], one.get("bytes_in"), one.get("bytes_out")
            seen = self._carried.setdefault(name, deque())
            if one["state"] not in ("connected", "silent") or bytes_in is None or bytes_out is None:
                seen.clear()
                continue
            carried = int(bytes_in) + int(bytes_out)
            # The next call counts from 0.
            if seen and (seen[-1][1] != int(one.get("call") or 0) or carried < seen[-1][2]):
                seen.clear()
            seen.append((now, int(one.get("call") or 0), carried))
            while now - seen[0][0] > _RATE_S:
                seen.popleft()
            if now > seen[0][0]:
                rates[name] = 8 * (carried - seen[0][2]) / (now - seen[0][0])
        return rates


class Bundles:
    """All bundles of the dashboard.

    Parameters
    ----------
    paths
        Their files.
    folder
        Where new ones are made.
    """

    def __init__(self, paths: Iterable[Path], folder: Path) -> None:
        self.folder = folder
        self._of_key: dict[str, Watched] = {}
        for path in paths:
            self.add(path)

    def __iter__(self) -> Any:
        return iter(list(self._of_key.values()))

    def __len__(self) -> int:
        return len(self._of_key)

    def add(self, path: Path) -> Watched:
        """Watch one more file; one that is watched already stays."""
        path = path.absolute()
        for one in self._of_key.values():
            if one.path == path:
                return one
        stem = re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem)[:40] or "bundle"
        key = next(name for at in range(1, 10_000) if (name := stem if at == 1 else f"{stem}-{at}") not in self._of_key)
        self._of_key[key] = Watched(path, key)
        return self._of_key[key]

    def get(self, key: str) -> Watched:
        """The bundle of a name in addresses.

        Raises
        ------
        ArgumentError
            If there is none.
        """
        if key not in self._of_key:
            raise ArgumentError(f"there is no bundle {printable(key, 40)!r}", "choose one of the overview")
        return self._of_key[key]


def found_in(folder: Path) -> list[Path]:
    """Files of a folder that look like bundles: TOML with ``[[line]]`` tables and a name."""
    from farlink.operator.tables import read_tables

    found = []
    for path in sorted(folder.glob("[!.]*.toml")):
        try:
            tables = read_tables(path, "a bundle")
        except FarlinkError:
            continue
        if isinstance(tables.get("line"), list) and "name" in tables:
            found.append(path)
    return found
