"""Search in a journal: by text, line, state and time, a page at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from farlink.errors import ArgumentError
from farlink.near_names import instead
from farlink.operator.journal.rows import OBSERVATIONS, STATES
from farlink.untrusted import printable
from farlink.web.data.journal_file import Found, JournalFile

PAGE = 50
"""Transitions of a page."""

_MOST_TEXT = 200
_LAST_PAGE = 10_000_000


@dataclass(frozen=True)
class Search:
    """A search.

    Attributes
    ----------
    text
        Must stand in cause or caller, in any case.
    line, state
        Of the transition; empty for any.
    since_s, until_s
        Times, in s since 1970-01-01 UTC; None for any.
    observations
        Whether readings of the signal and their like are shown, too.
    page
        From 1, the newest first.
    """

    text: str = ""
    line: str = ""
    state: str = ""
    since_s: float | None = None
    until_s: float | None = None
    observations: bool = False
    page: int = 1
    given: dict[str, str] = field(default_factory=dict, compare=False)

    def found(self, journal: JournalFile) -> Found:
        """The transitions of the page.

        Raises
        ------
        JournalError, OutputError
            If there is no journal, or it cannot be read.
        """
        where, values = self._condition()
        return journal.transitions(where, values, most=PAGE, offset=PAGE * (self.page - 1))

    def _condition(self) -> tuple[str, tuple[Any, ...]]:
        parts: list[tuple[str, Any]] = []
        if self.text:
            escaped = self.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            parts.append(("cause || ' ' || coalesce(caller, '') LIKE ? ESCAPE '\\'", f"%{escaped}%"))
        if self.line:
            parts.append(("modem = ?", self.line))
        if self.state:
            parts.append(("state = ?", self.state))
        if self.since_s is not None:
            parts.append(("time_s >= ?", self.since_s))
        if self.until_s is not None:
            parts.append(("time_s < ?", self.until_s))
        conditions = [condition for condition, _ in parts]
        if not self.observations and self.state not in OBSERVATIONS:
            conditions.append(f"state NOT IN ({', '.join(repr(one) for one in OBSERVATIONS)})")
        return " AND ".join(conditions) or "1", tuple(value for _, value in parts)


def search_of(given: Mapping[str, str]) -> Search:
    """A search from the fields of a form or an address.

    Parameters
    ----------
    given
        ``text``, ``line``, ``state``, ``since``, ``until`` (ISO 8601, UTC unless they say a zone), ``observations``, ``page``.

    Raises
    ------
    ArgumentError
        If a value cannot be; it names the value and the rule.

    Examples
    --------
    >>> search_of({"text": "NO CARRIER", "since": "2026-07-04T12:00", "page": "2"}).since_s
    1783166400.0
    """
    state = given.get("state", "")
    if state and state not in STATES:
        raise ArgumentError(f"state {printable(state, 40)!r} is none", instead(state, STATES))
    text = given.get("text", "").strip()
    if len(text) > _MOST_TEXT:
        raise ArgumentError(f"the text has {len(text)} letters", f"look for at most {_MOST_TEXT}")
    page = given.get("page", "") or "1"
    if not (page.isascii() and page.isdigit() and 1 <= int(page[:10]) <= _LAST_PAGE):
        raise ArgumentError(f"page {printable(page, 40)!r} is none", "give a whole number from 1")
    return Search(
        text=text,
        line=given.get("line", "")[:300],
        state=state,
        since_s=_time(given.get("since", ""), "since"),
        until_s=_time(given.get("until", ""), "until"),
        observations=bool(given.get("observations")),
        page=int(page),
        given=dict(given),
    )


def _time(text: str, name: str) -> float | None:
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        message = f"{name}: {printable(text, 40)!r} is no time"
        raise ArgumentError(message, "write it as 2026-07-04T12:00, which is UTC") from error
    if not math.isfinite(seconds):
        raise ArgumentError(f"{name}: {printable(text, 40)!r} is no time", "write it as 2026-07-04T12:00")
    return seconds
