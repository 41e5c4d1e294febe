"""A bundle as an operator is told of it, and the keys of ``bundle.toml``."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from farlink.operator.config.alerts import AlertRules
from farlink.operator.tables import Key, name_of, number, switch, text, whole


@dataclass(frozen=True)
class Ppp:
    """PPP on the lines of a bundle. The defaults are those of the preset `farlink`.

    Attributes
    ----------
    local, remote
        Addresses of the bundle's two ends; none is asked of the peer if they are empty.
    ipv6
        Whether IPv6 goes over the bundle.
    mru_bytes
        Longest frame of a line.
    mrru_bytes
        Longest packet of the bundle, which goes over several lines.
    echo_interval_s, echo_failures
        An echo so often; a line without so many answers in a row is dead.
    echo_adaptive
        Whether there are no echoes while packets arrive.
    lcp_restart_s, ipcp_restart_s, auth_restart_s
        Repetition of requests of the set-up, above the round trip.
    lcp_tries
        How many such requests.
    connect_delay_s
        How long the far end may take until it speaks PPP: who dials starts pppd so long after CONNECT.
    compression
        Whether packets are compressed (CCP).
    line_packets
        How many packets wait in a line, for the rule of the echoes: Linux holds 4 KB for a serial port (12 KB for a
        pseudo-terminal), and Iridium's modem holds as much again. 9 KB unless given.
    """

    local: str = ""
    remote: str = ""
    ipv6: bool = False
    mru_bytes: int = 1500
    mrru_bytes: int = 1500
    # Twice what a full line of 2400 bit/s takes: a drop leaves TCP's packets there, which hold the answers up.
    echo_interval_s: int = 15
    echo_failures: int = 4
    echo_adaptive: bool = True
    lcp_restart_s: int = 8
    ipcp_restart_s: int = 8
    auth_restart_s: int = 8
    lcp_tries: int = 10
    connect_delay_s: float = 1.0
    compression: bool = False
    line_packets: int = 6


@dataclass(frozen=True)
class Limits:
    """Times and counts of the state machine (figure 7.2).

    Attributes
    ----------
    dropped_s
        Pause after a drop, T_d.
    failed_s, longest_failed_s
        Pause after the first failed dial, T_f, and the longest that it grows to.
    attempts
        Failed dials in a row until a line is blocked, Max_Attempts.
    blocked_s
        How long it is blocked.
    flaps, flap_window_s
        So many drops in such a time are damped.
    fail_back_s
        How long a better line must be up before it is used again.
    """

    dropped_s: float = 5.0
    failed_s: float = 20.0
    longest_failed_s: float = 600.0
    attempts: int = 5
    blocked_s: float = 3600.0
    flaps: int = 5
    flap_window_s: float = 600.0
    fail_back_s: float = 60.0


@dataclass(frozen=True)
class Budget:
    """Limits of a line's costs in a day and in a month, and the price of a minute that it has dialled; None for no limit."""

    airtime_s_per_day: float | None = None
    airtime_s_per_month: float | None = None
    money_per_min: float | None = None
    money_per_day: float | None = None
    money_per_month: float | None = None


@dataclass(frozen=True)
class BundleBudget:
    """Limits of the costs of all lines together; None for no limit."""

    airtime_s_per_day: float | None = None
    airtime_s_per_month: float | None = None
    money_per_day: float | None = None
    money_per_month: float | None = None


@dataclass(frozen=True)
class Line:
    """One line of a bundle.

    Attributes
    ----------
    name
        What it is called in journal, alerts and commands.
    port
        Its tty; a name in ``/dev/serial/by-id`` stays that of the modem. Empty if its kind has none.
    profile
        Of its modem. Empty if its kind has none.
    role
        ``dial`` or ``answer``.
    number
        What it dials; empty if it answers.
    rate_bps
        Of a call.
    sim
        Number of its SIM; empty if it has none or shares none.
    least_signal
        Below it nothing is dialled; None for the profile's.
    rank
        Lines of a lower rank are preferred, whatever their history.
    callers
        Numbers or names of those whose calls it answers; all calls if there are none.
    budget
        Of its calls; None for the one that all lines have.
    kind
        One of `kinds.KINDS`.
    settings
        What only its kind knows; None if all is said here.
    """

    name: str
    port: str = ""
    profile: str = ""
    role: str = "dial"
    number: str = ""
    rate_bps: float = 2400.0
    sim: str = ""
    least_signal: int | None = None
    rank: int = 0
    callers: tuple[str, ...] = ()
    budget: Budget | None = None
    kind: str = "at"
    settings: object = None


@dataclass(frozen=True)
class Bundle:
    """A bundle of lines.

    Attributes
    ----------
    name
        Of the bundle: part of names of files, and the name by which its ends know each other.
    lines
        Its lines, the first that which is tried first while none has a history.
    use
        How many of them are used at a time.
    primary
        Which line is the primary one, and what happens when it drops: one of `PRIMARY_RULES`.
    budget
        Of each line that has none of its own.
    bundle_budget
        Of all lines together.
    alerts
        When people are told of what is wrong, and how.
    user
        Name for the peer's authentication; none is done if it is empty.
    secrets
        File of its secrets; None if there is none.
    journal
        File of its journal.
    back_end
        What carries PPP: ``pppd``; ``farlink``, its own, which needs no kernel PPP; or ``stand-in``, which carries probes
        only and needs neither kernel PPP nor root.
    hook
        Program that is started with each change of a line and each alert; None if there is none.
    keep_days
        How long the journal keeps transitions, in days of running.
    """

    name: str
    lines: tuple[Line, ...]
    use: int
    primary: str = "passes-on"
    user: str = ""
    secrets: Path | None = None
    journal: Path = Path("bundle.journal")
    back_end: str = "pppd"
    hook: Path | None = None
    keep_days: float = 366.0
    ppp: Ppp = field(default_factory=Ppp)
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)
    bundle_budget: BundleBudget = field(default_factory=BundleBudget)
    alerts: AlertRules = field(default_factory=AlertRules)

    def budget_of(self, line: Line) -> Budget:
        """The budget of a line."""
        return self.budget if line.budget is None else line.budget

    @property
    def ppp_lines(self) -> tuple[Line, ...]:
        """Lines whose packets the back end carries."""
        return tuple(line for line in self.lines if line.kind == "at")


PRIMARY_RULES = {
    "passes-on": "the best line that is up is the primary one",
    "none": "there is none",
    "ends-bundle": "the primary line is dialled first; if it drops, all lines do",
    "stays-lost": "the primary line is dialled first; if it drops, it is not dialled while other lines are up",
}

PRESETS: dict[str, dict[str, dict[str, object]]] = {
    "farlink": {},
    # Zaghloul, Table 3.2; of "10 - 15 sec" the upper end, which is above the round trip of a full queue. Figure 7.2: an hour.
    "zaghloul-2005": {
        "ppp": {
            "echo_interval_s": 30,
            "echo_failures": 2,
            "echo_adaptive": False,
            "lcp_restart_s": 15,
            "auth_restart_s": 15,
            "lcp_tries": 10,
            "connect_delay_s": 5.0,
        },
        "limits": {"blocked_s": 3600.0},
    },
}
"""Preset -> what it sets instead of the defaults. Keys of the file go before it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_NAME_RULE = "a name of up to 32 letters, digits, '-', '_' and '.', which begins with a letter or digit"


def _is_address(value: str) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


def is_one_line(value: str) -> bool:
    """Whether a text can be a path."""
    return 0 < len(value) <= 255 and value.isprintable()


_PATH = "a path"
_TABLE = Key(lambda value: isinstance(value, dict), "a table")

TOP_KEYS: dict[str, Key] = {
    "name": text(lambda value: bool(_NAME.fullmatch(value)), _NAME_RULE, is_needed=True),
    "preset": name_of(PRESETS),
    "use": whole(1, 64),
    "primary": name_of(PRIMARY_RULES),
    "user": text(
        lambda value: bool(re.fullmatch(r"[!-~]{1,64}", value)) and not set(value) & set("\"'\\#") and value != "*",
        "a name without spaces, quotes, '\\' and '#', and not '*', which is everybody for pppd",
    ),
    "secrets": text(is_one_line, _PATH),
    "journal": text(is_one_line, _PATH),
    "back_end": name_of(("pppd", "farlink", "stand-in")),
    "hook": text(is_one_line, _PATH),
    "keep_days": number(1, 36600),
    "ppp": _TABLE,
    "limits": _TABLE,
    "budget": _TABLE,
    "bundle_budget": _TABLE,
    "alerts": _TABLE,
    "line": Key(
        lambda value: isinstance(value, list) and 1 <= len(value) <= 64 and all(isinstance(row, dict) for row in value),
        "1 to 64 tables [[line]]",
        is_needed=True,
    ),
}

LINE_KEYS: dict[str, Key] = {
    "name": text(lambda value: bool(_NAME.fullmatch(value)), _NAME_RULE, is_needed=True),
    "kind": text(lambda _: True, "a kind of lines"),
    "rank": whole(0, 1000),
    "budget": _TABLE,
}
"""Keys of a ``[[line]]`` of any kind; `kinds` has the others."""

PPP_KEYS: dict[str, Key] = {
    "local": text(_is_address, "an IPv4 address"),
    "remote": text(_is_address, "an IPv4 address"),
    "ipv6": switch(),
    "mru_bytes": whole(128, 16384),
    "mrru_bytes": whole(128, 16384),
    "echo_interval_s": whole(1, 3600),
    "echo_failures": whole(1, 100),
    "echo_adaptive": switch(),
    "lcp_restart_s": whole(1, 600),
    "ipcp_restart_s": whole(1, 600),
    "auth_restart_s": whole(1, 600),
    "lcp_tries": whole(1, 100),
    "connect_delay_s": number(0, 60),
    "compression": switch(),
    "line_packets": whole(1, 1000),
}

LIMIT_KEYS: dict[str, Key] = {
    "dropped_s": number(0, 86400),
    "failed_s": number(1, 86400),
    "longest_failed_s": number(1, 86400),
    "attempts": whole(1, 1000),
    "blocked_s": number(1, 604800),
    "flaps": whole(2, 1000),
    "flap_window_s": number(1, 86400),
    "fail_back_s": number(0, 86400),
}

BUDGET_KEYS: dict[str, Key] = {
    "airtime_s_per_day": number(1, 86400),
    "airtime_s_per_month": number(1, 31 * 86400),
    "money_per_min": number(0, 1e6),
    "money_per_day": number(0, 1e9),
    "money_per_month": number(0, 1e9),
}

BUNDLE_BUDGET_KEYS: dict[str, Key] = {
    "airtime_s_per_day": number(1, 64 * 86400),
    "airtime_s_per_month": number(1, 64 * 31 * 86400),
    "money_per_day": number(0, 1e9),
    "money_per_month": number(0, 1e9),
}
