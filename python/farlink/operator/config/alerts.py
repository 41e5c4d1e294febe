"""How people are told of alerts: the keys of ``[alerts]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farlink.operator.tables import Key, name_of, number, text, whole

SEVERITIES = ("info", "warning", "critical")

STANDBY = "standby"
"""What the stand-by line is called in messages, in the journal, and where its PIN stands."""


@dataclass(frozen=True)
class Standby:
    """A line outside the bundle, by which people are told when nothing else goes out.

    Attributes
    ----------
    way
        ``sms``: a short message goes to `number`; ``call``: `number` is dialled, and the messages that wait go over the call.
    port, profile, number
        As of a line of kind ``at``.
    after_s
        It is used once the bundle has been down, or the journal unwritable, for so long.
    most_per_day
        Short messages or calls in 24 h.
    rate_bps
        Of a call.
    """

    port: str
    profile: str
    number: str
    way: str = "sms"
    after_s: float = 600.0
    most_per_day: int = 20
    rate_bps: float = 2400.0


@dataclass(frozen=True)
class AlertRules:
    """When an alert is raised and cleared, and how people are told.

    Attributes
    ----------
    urls_from
        File whose table ``[alerts]`` has the URLs to which messages go; None if there is none.
    after_s
        A line or bundle that is down is told of after so long.
    clear_s
        An alert is cleared once its cause has been gone for so long.
    again_s
        An alert that stays raised is told again so often; 0 for never.
    severity
        Messages are sent of alerts that are so bad, and of worse ones.
    free_bytes
        Below it the disk of the journal is nearly full.
    standby
        The line outside the bundle; None if there is none.
    """

    urls_from: Path | None = None
    after_s: float = 120.0
    clear_s: float = 10.0
    again_s: float = 0.0
    severity: str = "warning"
    free_bytes: float = 100e6
    standby: Standby | None = None


def _is_port(value: str) -> bool:
    return 1 < len(value) <= 255 and value.isprintable() and value.startswith("/") and not set(value) & set("\"'\\# ")


def _is_number(value: str) -> bool:
    digits = value.removeprefix("+")
    return 2 <= len(digits) <= 31 and not set(digits) - set("0123456789*#")


KEYS: Mapping[str, Key] = {
    "urls_from": text(lambda value: 0 < len(value) <= 255 and value.isprintable(), "a path"),
    "after_s": number(0, 604800),
    "clear_s": number(0, 86400),
    "again_s": number(0, 604800),
    "severity": name_of(SEVERITIES),
    "free_bytes": number(0, 1e15),
    "standby": Key(lambda value: isinstance(value, dict), "a table"),
}
STANDBY_KEYS: Mapping[str, Key] = {
    "way": name_of(("sms", "call")),
    "port": text(_is_port, "the path of a tty", is_needed=True),
    "profile": text(bool, "the name of a profile, or a file NAME.toml", is_needed=True),
    "number": text(_is_number, "a number of digits, * and #, which may begin with +", is_needed=True),
    "after_s": number(0, 604800),
    "most_per_day": whole(1, 1000),
    "rate_bps": number(300, 4e6),
}
