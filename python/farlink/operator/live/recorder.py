"""Rows of the operator for its journal. A full disk does not stop it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import FarlinkError, JournalError
from farlink.operator.alerts import Raised
from farlink.operator.journal import AlertRow, Journal, Transition
from farlink.operator.journal.sign_of_life import Life
from farlink.operator.lines.line import Report

# Transitions that wait until the journal can be written again.
_MOST_WAITING = 10_000
# So long they are written at a time.
_RETRY_S = 0.2
_BARS = 5
# Calls that the operator ended are no drops of the network.
_ON_PURPOSE = ("by-hand", "bundle-ended")


def boot_id() -> str:
    """Which start of the machine the monotonic clock counts from."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass
class _Line:
    """State of a line for its next transition."""

    state: str = ""
    attempt: int | None = None
    bars: int | None = None
    recorded_bars: int | None = None
    most_signal: int | None = None
    observed_at: float = -1e9
    said: bytes = b""
    bytes_in: int | None = None
    bytes_out: int | None = None


@dataclass
class _Connection:
    """A connection: its number is known once the journal has taken it."""

    start_s: float
    first_indices: dict[str, int]
    indices: dict[str, int]
    number: int | None = None
    is_open: bool = True


class Recorder:
    """Records transitions; each is durable before what follows from it is done, unless the disk refuses it.

    Parameters
    ----------
    journal
        Open to write.
    failed
        Gets a message when the journal cannot be written, once, and an empty one when it can be again.

    Attributes
    ----------
    left_out
        Transitions that are lost, as the journal could not be written for too long, or takes no such time or state.
    """

    def __init__(self, journal: Journal, failed: Callable[[str], None]) -> None:
        self._journal, self._failed = journal, failed
        self._boot = boot_id()
        self._lines: dict[str, _Line] = {}
        self._waiting: deque[Callable[[], Any]] = deque()
        # Facts that are kept when the journal can be written again.
        self._facts: dict[str, str] = {}
        self._connection: _Connection | None = None
        self._refusal = ""
        self.left_out = 0

    @property
    def connection(self) -> int | None:
        """Number of the connection that is open."""
        return self._connection.number if self._connection is not None and self._connection.is_open else None

    @property
    def refusal(self) -> str:
        """Why the journal cannot be written; empty if it can."""
        return self._refusal

    @property
    def waiting(self) -> int:
        """How many transitions wait until the journal can be written again."""
        return len(self._waiting)

    def observe(self, report: Report, most_signal: int | None) -> None:
        """Note what goes with the line's next transition; what is worth it, is recorded as an observation."""
        line = self._line(report.line)
        line.bytes_in, line.bytes_out = report.bytes_in, report.bytes_out
        line.said = report.said or line.said
        line.most_signal = most_signal
        if report.event == "signal":
            line.bars = None if report.level is None else bars_of(report.level, most_signal)

    def note(self, line: str, state: str, cause: str, *, caller: str = "") -> None:
        """Record an observation, of which a few may be lost at a power cut."""
        if self._connection is not None:
            self._write(line, state, cause, caller=caller)

    def signal(self, line: str, every_s: float) -> None:
        """Record the line's signal if it is another than the last one recorded, or that was long ago."""
        kept, now = self._line(line), time.monotonic()
        if kept.bars != kept.recorded_bars or now - kept.observed_at >= every_s:
            kept.recorded_bars, kept.observed_at = kept.bars, now
            self.note(line, "alive", "" if kept.bars is not None else "no signal")

    def state(self, action: dict[str, Any]) -> None:
        """Record a change of state that the dialler says."""
        name, state = action["line"], action["state"]
        cause = _cause_of(action)
        line = self._line(name)
        was_up = line.state in ("connected", "silent")
        if line.state == state == "connecting":
            # The same attempt, one step further; a log of calls counts dials.
            self.note(name, "alive", cause)
            return
        if state == "silent":
            self.note(name, "alive", f"no answer to probes: {cause}")
            line.state = state
            return
        if state == "connected" and line.state == "silent":
            line.state = state
            self.note(name, "alive", "probes are answered again")
            return
        if was_up and state == "dropped" and action["reason"] in _ON_PURPOSE:
            line.state = state
            self._write(name, "ended", cause)
            return
        if was_up and state not in ("dropped", "connected"):
            self._write(name, "ended", cause)
        if state == "connecting":
            line.attempt = action["attempt"]
        # Behind a failure the dialler counts the next attempt already; a call that came up or to nothing is the one before.
        is_of_attempt = state == "connecting" or (line.state == "connecting" and state in ("connected", "failed", "blocked"))
        line.state = state
        self._write(
            *(name, state, cause),
            attempt=line.attempt if is_of_attempt else None,
            is_injected=action["reason"] == "injected",
            caller=_caller_of(action),
        )
        line.said = b""
        if state == "connecting":
            line.bytes_in = line.bytes_out = None

    def begin(self, order: list[str], *, is_try: bool = True) -> None:
        """Begin a connection if none is open.

        Parameters
        ----------
        order
            All lines, the primary first.
        is_try
            Whether a line is to come up. What happens otherwise belongs to the last connection, if there is one.
        """
        if self._connection is not None and (self._connection.is_open or not is_try):
            return
        indices = {name: at for at, name in enumerate(order, start=1)}
        begun = self._connection = _Connection(time.time(), indices, dict(indices))
        self._do(lambda: self._number(begun))

    def primary(self, name: str | None) -> None:
        """Make another line the primary one: it gets index 1, and the former one its place."""
        connection = self._connection
        if name is None or connection is None or connection.indices.get(name) == 1:
            return
        indices = connection.indices
        former = next((one for one, index in indices.items() if index == 1), name)
        indices[former], indices[name] = indices.get(name, len(indices)), 1
        given = dict(indices)
        self._do(lambda: self._journal.index(self._number(connection), given))

    def finish(self) -> None:
        """End the connection: its last line is lost or closed."""
        connection, end_s = self._connection, time.time()
        if connection is not None and connection.is_open:
            connection.is_open = False
            self._do(lambda: self._journal.finish(self._number(connection), end_s))

    def keep(self, name: str, content: str, *, later: bool = False) -> bool:
        """Keep a fact for the next start, or `later` if the journal cannot be written now; whether it is durable now."""
        self._facts.pop(name, None)
        try:
            self._journal.keep(name, content)
        except FarlinkError as error:
            self._refuse(error)
            if later:
                self._facts[name] = content
            return False
        return True

    def kept(self, name: str) -> str | None:
        """A fact that was kept."""
        return self._journal.kept(name)

    def raised(self, alert: Raised) -> None:
        """Record that an alert is raised. Its number is known once the journal has taken it."""
        row = AlertRow(alert.alert, alert.line, alert.severity, alert.since_unix_s, alert.cause)
        self._do(lambda: self._raise(alert, row))

    def cleared(self, alert: Raised) -> None:
        """Record that an alert is cleared."""
        cleared_s = time.time()
        self._do(lambda: self._journal.clear_alert(alert.number, cleared_s))

    def _raise(self, alert: Raised, row: AlertRow) -> None:
        alert.number = self._journal.raise_alert(row)

    def forget(self, keep_days: float) -> None:
        """Delete old transitions, by days of running."""
        self._do(lambda: self._journal.forget(86400 * keep_days, boot_id=self._boot, monotonic_s=time.monotonic()))

    def end_left_open(self, life: Life | None) -> None:
        """End the connections that a killed operator has left open, at its last sign of life. To be called before all else."""
        self._do(lambda: self._journal.end_left_open(life))

    def retry(self, within_s: float = _RETRY_S) -> None:
        """Try again to write what waits, for a short time: lines wait meanwhile, and each transition waits for the disk."""
        if not self._refusal:
            return
        # A fact may have been refused, which does not wait: whether the disk takes something again, is to be seen.
        until = time.monotonic() + within_s
        try:
            while self._waiting:
                self._write_now(self._waiting[0])
                self._waiting.popleft()
                if time.monotonic() >= until:
                    return
            for name, content in list(self._facts.items()):
                self._journal.keep(name, content)
                del self._facts[name]
            self._probe()
        except FarlinkError as error:
            self._refuse(error)
            return
        self._refusal = ""
        self._failed("")

    def _probe(self) -> None:
        self._journal.keep("last start", self._boot)

    def _number(self, connection: _Connection) -> int:
        """The number of a connection, which begins in the journal now if its beginning did not get there."""
        if connection.number is None:
            connection.number = self._journal.begin(connection.start_s, connection.first_indices)
        return connection.number

    def _line(self, name: str) -> _Line:
        return self._lines.setdefault(name, _Line())

    def _write(
        self,
        name: str,
        state: str,
        cause: str,
        *,
        attempt: int | None = None,
        is_injected: bool = False,
        caller: str = "",
    ) -> None:
        line = self._line(name)
        has_bytes = state in ("dropped", "ended")
        connection, time_s, monotonic_s = self._connection, time.time(), time.monotonic()
        assert connection is not None
        said = line.said if state in ("failed", "blocked") else b""
        bars, bytes_in, bytes_out = line.bars, line.bytes_in, line.bytes_out

        def record() -> None:
            self._journal.record(
                Transition(
                    connection=self._number(connection),
                    modem=name,
                    state=state,
                    time_s=time_s,
                    monotonic_s=monotonic_s,
                    boot_id=self._boot,
                    cause=cause,
                    bars=bars,
                    attempt=attempt,
                    bytes_in=bytes_in if has_bytes else None,
                    bytes_out=bytes_out if has_bytes else None,
                    is_injected=is_injected,
                    caller=caller or None,
                    nonsense=said,
                )
            )

        self._do(record)

    def _do(self, write: Callable[[], Any]) -> None:
        """Write, behind what waits already."""
        if not self._waiting:
            try:
                self._write_now(write)
            except FarlinkError as error:
                self._refuse(error)
            else:
                return
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self.left_out += 1
        self._waiting.append(write)

    def _write_now(self, write: Callable[[], Any]) -> None:
        try:
            write()
        except JournalError:
            # No space that is freed makes the journal take it, and all else would wait behind it for ever.
            self.left_out += 1

    def _refuse(self, error: FarlinkError) -> None:
        if not self._refusal:
            self._failed(error.message)
        self._refusal = error.message


def words_of(action: dict[str, Any]) -> str:
    """Why a line is in its state, and whom it answers."""
    caller = _caller_of(action)
    return f"{_cause_of(action)} {caller}" if caller else _cause_of(action)


def _caller_of(action: dict[str, Any]) -> str:
    return str(action["number"] or "") if action["reason"] == "answering" else ""


def _cause_of(action: dict[str, Any]) -> str:
    """In the words of modem, port or pppd if they ended something, else the dialler's reason."""
    is_end = action["state"] in ("dropped", "failed", "blocked", "held") or action["reason"] == "port-gone"
    return str((is_end and action["cause"]) or action["reason"])


def bars_of(level: int, most: int | None) -> int:
    """A signal in bars from 0 to 5.

    Examples
    --------
    >>> bars_of(3, 5), bars_of(18, 31), bars_of(1, 31)
    (3, 3, 1)
    """
    if not most:
        return 0
    return min(_BARS, -(-level * _BARS // most))


class JournalPins:
    """Which PINs may be tried, kept in the journal: one that was refused, or whose outcome nobody saw, is not tried again."""

    def __init__(self, recorder: Recorder, *, is_journal_damaged: bool) -> None:
        self._recorder = recorder
        self._is_journal_damaged = is_journal_damaged

    def may_try(self, line: str) -> bool:
        """Whether the PIN of this line may be sent. A damaged journal may have lost that it was refused, which is noted."""
        kept = self._recorder.kept(_fact(line))
        if kept is None and self._is_journal_damaged:
            self._recorder.keep(_fact(line), "unknown")
            return False
        return kept in (None, "accepted", "allowed")

    def note_tried(self, line: str) -> bool:
        """Note that it is about to be sent."""
        return self._recorder.keep(_fact(line), "tried")

    def note_outcome(self, line: str, outcome: str) -> None:
        """Note what came of it."""
        self._recorder.keep(_fact(line), outcome)

    def allow(self, line: str) -> bool:
        """Allow one more try, as a person has asked."""
        return self._recorder.keep(_fact(line), "allowed")


def _fact(line: str) -> str:
    return f"pin of {line}"
