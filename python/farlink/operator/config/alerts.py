"""How people are told of alerts: the keys of ``[alerts]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farlink.operator.alerts import SEVERITIES
from farlink.operator.tables import Key, name_of, number, text

STANDBY = "standby"
"""Name of the stand-by line in messages, in the journal, and in the file with its PIN."""


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


KEYS: Mapping[str, Key] = {
    "urls_from": text(lambda value: 0 < len(value) <= 255 and value.isprintable(), "a path"),
    "after_s": number(0, 604800),
    "clear_s": number(0, 86400),
    "again_s": number(0, 604800),
    "severity": name_of(SEVERITIES),
    "free_bytes": number(0, 1e15),
    "standby": Key(lambda value: isinstance(value, dict), "a table"),
}
