"""Messages to people: what happened to which alert, with its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from farlink.untrusted import printable

MOST_TOGETHER = 20
"""So many messages go out as one, after a time in which none did."""

_MOST_WORDS = 200
# Of a short message in the alphabet of GSM.
MOST_SMS = 160
_KINDS = {"raised": "", "again": "still: ", "cleared": "cleared: "}


@dataclass(frozen=True)
class Message:
    """A message to people.

    Attributes
    ----------
    bundle
        Its name.
    kind
        ``raised``, ``again``, ``cleared`` or ``test``.
    key
        Which alert it is about: that of its raise and its clear are the same.
    title, words
        In a few words, and with the reason.
    severity
        Of the alert.
    time_unix_s
        When it happened, in s since 1970-01-01 UTC.
    """

    bundle: str
    kind: str
    key: str
    title: str
    words: str
    severity: str
    time_unix_s: float


def stamp(unix_s: float) -> str:
    """A time of day in UTC.

    Examples
    --------
    >>> stamp(1783166400.4)
    '2026-07-04 12:00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s))


def text_of(messages: Sequence[Message]) -> tuple[str, str]:
    """Title and body of one or several messages that go out together."""
    first = messages[0]
    title = f"{_KINDS.get(first.kind, '')}{first.title}" if len(messages) == 1 else f"{len(messages)} alerts"
    lines = [f"{stamp(one.time_unix_s)}: {_KINDS.get(one.kind, '')}{one.words}" for one in messages]
    body = "\n".join(printable(line, _MOST_WORDS) for line in lines)
    return printable(f"farlink {first.bundle}: {title}", _MOST_WORDS), body


def type_of(messages: Sequence[Message]) -> str:
    """Apprise's name for a message of this kind.

    Examples
    --------
    >>> type_of([Message("camp", "cleared", "", "", "", "critical", 0.0)])
    'success'
    """
    kinds = {one.kind for one in messages}
    if kinds == {"cleared"}:
        return "success"
    if kinds == {"test"}:
        return "info"
    return "failure" if any(one.severity == "critical" and one.kind != "cleared" for one in messages) else "warning"


def sms_of(messages: Sequence[Message]) -> str:
    """Text of a short message: times of day in UTC, and as many words as there is room for.

    Examples
    --------
    >>> sms_of([Message("camp", "raised", "", "bundle is down", "bundle is down: kansas: BUSY", "critical", 1783166400.0)])
    'camp 12:00Z bundle is down: kansas: BUSY'
    """
    words = [f"{time.strftime('%H:%MZ', time.gmtime(one.time_unix_s))} {_KINDS.get(one.kind, '')}" for one in messages]
    for texts in ([one.words for one in messages], [one.title for one in messages]):
        whole = f"{messages[0].bundle} " + "; ".join(f"{at}{text}" for at, text in zip(words, texts, strict=True))
        if len(whole) <= MOST_SMS:
            break
    shown = printable(whole, 10 * MOST_SMS)
    return shown if len(shown) <= MOST_SMS else f"{shown[: MOST_SMS - 3]}..."
