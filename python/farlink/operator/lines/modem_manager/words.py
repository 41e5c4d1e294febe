"""ModemManager's numbers in words (``ModemManager-enums.h`` of ModemManager 1.24)."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """``MMModemState``."""

    FAILED = -1
    UNKNOWN = 0
    INITIALIZING = 1
    LOCKED = 2
    DISABLED = 3
    DISABLING = 4
    ENABLING = 5
    ENABLED = 6
    SEARCHING = 7
    REGISTERED = 8
    DISCONNECTING = 9
    CONNECTING = 10
    CONNECTED = 11


FAILURES = {
    2: "its SIM is missing",
    3: "its SIM has an error",
    4: "its capabilities are unknown",
    5: "its eSIM has no profile",
}
"""``MMModemStateFailedReason``."""

SIM_PIN = 2
LOCKS = {
    2: "SIM-PIN",
    3: "SIM-PIN2",
    4: "SIM-PUK",
    5: "SIM-PUK2",
    6: "service provider's PIN",
    7: "service provider's PUK",
    8: "network's PIN",
    9: "network's PUK",
    10: "PIN that ties it to a SIM",
    11: "corporation's PIN",
    12: "corporation's PUK",
    13: "PIN that ties it to its first SIM",
    14: "PUK that ties it to its first SIM",
    15: "network subset's PIN",
    16: "network subset's PUK",
}
"""``MMModemLock``."""

REGISTRATIONS = {
    0: "not registered",
    1: "registered, home",
    2: "searching",
    3: "denied",
    4: "unknown",
    5: "registered, roaming",
    6: "registered, home, SMS only",
    7: "registered, roaming, SMS only",
    8: "emergency calls only",
    9: "registered, home",
    10: "registered, roaming",
    11: "restricted local services only",
}
"""``MMModem3gppRegistrationState``."""

_TECHNOLOGIES = (
    *("POTS", "GSM", "GSM compact", "GPRS", "EDGE", "UMTS", "HSDPA", "HSUPA", "HSPA", "HSPA+"),
    *("1xRTT", "EV-DO 0", "EV-DO A", "EV-DO B", "LTE", "5G NR", "LTE-M", "NB-IoT"),
)

IP_METHODS = {1: "ppp", 2: "static", 3: "dhcp"}
"""``MMBearerIpMethod``."""


def technologies(bits: int) -> str:
    """``MMModemAccessTechnology`` in words; empty if it is unknown.

    Examples
    --------
    >>> technologies(1 << 14 | 1 << 15), technologies(0)
    ('LTE, 5G NR', '')
    """
    return ", ".join(name for at, name in enumerate(_TECHNOLOGIES) if bits >> at & 1) if 0 < bits < 0xFFFFFFFF else ""
