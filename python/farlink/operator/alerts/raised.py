"""Which alerts are raised: views of a bundle and times in, raises and clears out. It has no clock and tells nobody.

Call `Alerts.observe` whenever a line has changed its state, and once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from farlink.operator.alerts.causes import CAUSES, Cause, Row, View

Key = tuple[str, str | None]
_MOST_WORDS = 300


@dataclass
class Raised:
    """An alert that is raised.

    Attributes
    ----------
    alert, line
        Name of its cause, and the line; None if it is about the bundle.
    severity
        One of ``causes.SEVERITIES``.
    cause
        Why, in the words of modem, disk or network.
    since_unix_s
        When its cause began, in s since 1970-01-01 UTC.
    number
        Of this raise in the journal; 0 before it is recorded.
    """

    alert: str
    line: str | None
    severity: str
    cause: str
    since_unix_s: float
    number: int = 0
    # On the clock of `observe`, which may go on from below 0: when its cause began.
    first_at: float = 0.0
    told_at: float = 0.0
    gone_at: float | None = None

    @property
    def title(self) -> str:
        """The alert in a few words."""
        return title_of(self.alert, self.line)

    @property
    def words(self) -> str:
        """The alert with its reason."""
        return f"{self.title}: {self.cause}" if self.cause else self.title


@dataclass(frozen=True)
class Change:
    """An alert is raised, cleared, or raised still."""

    kind: Literal["raised", "cleared", "again"]
    alert: Raised


def title_of(name: str, line: str | None) -> str:
    """An alert in a few words.

    Examples
    --------
    >>> title_of("blocked", "kansas"), title_of("of a newer farlink", None)
    ('kansas is blocked', 'of a newer farlink')
    """
    cause = CAUSES.get(name)
    return (cause.title if cause else name).replace("{line}", line or "")


class Alerts:
    """The alerts of a bundle.

    Parameters
    ----------
    after_s
        A damped cause is raised once it has lasted so long.
    clear_s
        An alert is cleared once its cause has been gone for so long.
    again_s
        An alert that stays raised is told again so often; 0 for never.
    raised
        Those that an earlier operator has raised and not cleared.
    clean
        Takes secrets out of a cause: modems echo what they are sent.
    """

    def __init__(
        self,
        *,
        after_s: float,
        clear_s: float,
        again_s: float = 0.0,
        raised: Iterable[Raised] = (),
        clean: Callable[[str], str] = str,
    ) -> None:
        self._after_s, self._clear_s, self._again_s = after_s, clear_s, again_s
        self._clean = clean
        self._raised: dict[Key, Raised] = {(one.alert, one.line): one for one in raised}
        # When what may become an alert was seen first.
        self._first_at: dict[Key, float] = {}

    @property
    def raised(self) -> list[Raised]:
        """Raised alerts, the oldest first."""
        return sorted(self._raised.values(), key=lambda one: one.since_unix_s)

    def status(self, unix_s: float) -> list[dict[str, Any]]:
        """Raised alerts, for `farlink bundle status`."""
        return [
            {
                "alert": one.alert,
                "line": one.line,
                "severity": one.severity,
                "since_unix_s": round(one.since_unix_s, 3),
                "for_s": round(max(0.0, unix_s - one.since_unix_s), 3),
                "cause": one.cause,
                "words": one.words,
            }
            for one in self.raised
        ]

    def observe(self, now: float, unix_s: float, view: View) -> list[Change]:
        """Take what is known now.

        Parameters
        ----------
        now
            Reading of a clock that is never set, in s.
        unix_s
            Time of day, in s since 1970-01-01 UTC.
        view
            The bundle.

        Returns
        -------
        list of Change
            What people are to be told.
        """
        found: list[Change] = []
        seen: set[Key] = set()
        for cause in CAUSES.values():
            for line in view.lines if cause.is_of_line else ({},):
                key = (cause.name, line.get("line"))
                seen.add(key)
                found += self._looked_at(cause, key, line, view, now, unix_s)
        # A line that is no longer in the file is in no trouble.
        found += [Change("cleared", self._raised.pop(key)) for key in list(self._raised) if key not in seen]
        return found

    def _looked_at(self, cause: Cause, key: Key, line: Row, view: View, now: float, unix_s: float) -> list[Change]:
        raised = self._raised.get(key)
        if raised is None:
            return self._may_raise(cause, key, line, view, now, unix_s)
        if not cause.cleared_by(view, line):
            raised.gone_at = None
            # A repeated message has the present state.
            raised.cause = self._clean(cause.raised_by(view, line))[:_MOST_WORDS] or raised.cause
            if self._again_s > 0 and now - raised.told_at >= self._again_s:
                raised.told_at = now
                return [Change("again", raised)]
            return []
        raised.gone_at = now if raised.gone_at is None else raised.gone_at
        if now - raised.gone_at < self._clear_s:
            return []
        return [Change("cleared", self._raised.pop(key))]

    def _may_raise(self, cause: Cause, key: Key, line: Row, view: View, now: float, unix_s: float) -> list[Change]:
        words = self._clean(cause.raised_by(view, line))[:_MOST_WORDS]
        if not words or any((name, key[1]) in self._raised for name in cause.hidden_by):
            self._first_at.pop(key, None)
            return []
        first_at = self._first_at.setdefault(key, now)
        if cause.is_damped and now - first_at < self._after_s:
            return []
        del self._first_at[key]
        # A clock that was set back meanwhile may show less than has passed.
        since_s = max(0.0, unix_s - (now - first_at))
        raised = Raised(cause.name, key[1], cause.severity, words, since_s, first_at=first_at, told_at=now)
        self._raised[key] = raised
        return [Change("raised", raised)]
