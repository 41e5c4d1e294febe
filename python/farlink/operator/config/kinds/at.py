"""Lines of kind ``at``: a modem on a tty, which is dialled with AT commands and carries PPP."""

from __future__ import annotations

import grp
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from farlink.errors import OperatorError
from farlink.operator.at import Profile, profiles
from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import Bundle, is_one_line
from farlink.operator.config.bundle import Line as LineConfig
from farlink.operator.config.kinds.kind import Kind, Parts, Row, Traits
from farlink.operator.tables import Key, name_of, number, text, whole
from farlink.untrusted import printable

if TYPE_CHECKING:
    from farlink.operator.lines import Line

LATE_S = 5.0
"""An answer that takes longer tells of a handover: it comes within 2 s as a rule, and takes 10 s in one (section 5.1)."""

# Beyond the modem's own limit for a dial, and PPP's for its set-up.
_SPARE_S = 30.0


def _is_caller(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 40 and value.isprintable()


def profile_of(name: str, folder: Path) -> Profile:
    """The profile of a line; files are looked for in the folder of ``bundle.toml``.

    Raises
    ------
    OperatorError
        If there is none, or it has mistakes.
    """
    return profiles.load(str(folder / name) if name.endswith(".toml") else name)


class At(Kind):
    """A modem on a tty."""

    keys: ClassVar = {
        "port": text(
            lambda value: is_one_line(value) and value.startswith("/") and not set(value) & set("\"'\\# "),
            "the path of a tty",
            is_needed=True,
        ),
        "profile": text(is_one_line, "the name of a profile, or a file NAME.toml", is_needed=True),
        "role": name_of(("dial", "answer")),
        "number": text(
            lambda value: bool(re.fullmatch(r"\+?[0-9*#]{2,31}", value)),
            "a number to dial, of digits, * and #, which may begin with +",
        ),
        "rate_bps": number(300, 4e6),
        "sim": text(lambda value: bool(re.fullmatch("[0-9]{6,22}", value)), "the digits of a SIM's number (ICCID)"),
        "least_signal": whole(0, 31),
        "callers": Key(
            lambda value: isinstance(value, list) and 1 <= len(value) <= 100 and all(map(_is_caller, value)),
            'a list of 1 to 100 numbers or names, such as ["881600005001"]',
        ),
    }
    unique: ClassVar = {
        "port": "give each line a port; names in /dev/serial/by-id tell modems apart",
        "sim": "a SIM carries one call: give each line a SIM",
    }
    has_ppp = True
    has_pin = True
    extra = ("serialx", "a line with a modem")

    def settings(self, valid: Mapping[str, Any]) -> dict[str, Any]:
        """All keys are fields of `Line`."""
        return {**valid, "callers": tuple(valid.get("callers", ()))}

    def rules(self, row: Row) -> Iterator[Broken]:
        """Role, profile, and the port on this machine."""
        yield from _role(row)
        if "profile" in row.valid:
            yield from _profile(row)
        if row.needs_ports and "port" in row.valid:
            yield from _port(row)

    def device(self, line: LineConfig) -> str:
        """Its tty."""
        return line.port

    def traits(self, line: LineConfig, bundle: Bundle, folder: Path) -> Traits:
        """Times and signals of the modem's profile; the set-up of the link takes what PPP may take."""
        profile, ppp = profile_of(line.profile, folder), bundle.ppp
        most = profiles.SCALES[profile.signal] or None
        least = profile.least_signal if line.least_signal is None else line.least_signal
        return Traits(
            dial_limit_s=profile.dial_limit_s + _SPARE_S,
            link_limit_s=ppp.lcp_restart_s * ppp.lcp_tries + ppp.connect_delay_s + _SPARE_S,
            most_signal=most,
            least_signal=None if most is None else least,
            late_signal_s=LATE_S,
        )

    def make(self, line: LineConfig, parts: Parts) -> Line:
        """A line over the back end."""
        from farlink.operator.lines.at_line import AtLine

        profile = profile_of(line.profile, parts.folder)
        return AtLine(line, profile, parts.back_end, parts.report, pins=parts.pins, pin=parts.pin)


def _role(row: Row) -> Iterator[Broken]:
    if row.valid.get("role", "dial") == "dial":
        if "number" not in row.given:
            yield row.broken("", ".number is missing", 'give what it dials, or role = "answer"')
        if row.valid.get("callers"):
            yield row.broken("callers", "a line that dials takes no calls", "leave the callers out")
    elif row.valid.get("number"):
        yield row.broken("number", "an answering line dials nothing", "leave the number out")


def _profile(row: Row) -> Iterator[Broken]:
    try:
        profile = profile_of(row.valid["profile"], row.folder)
    except OperatorError as error:
        yield row.broken("profile", error.message, error.remedy)
        return
    if row.valid.get("callers") and (profile.answer == "auto" or not profile.names_callers):
        why = "answers by itself" if profile.names_callers else "does not say who calls"
        remedy = 'leave the callers out, or give a profile with names_callers = true and answer = "ata"'
        yield row.broken("callers", f"a {profile.title} {why}", remedy)
    most, least = profiles.SCALES[profile.signal], row.valid.get("least_signal", 0)
    if least > most:
        yield row.broken("least_signal", f"{least}, and a {profile.title} says 0 to {most}", f"give 0 to {most}")


def _port(row: Row) -> Iterator[Broken]:
    port = row.valid["port"]
    shown = printable(port, 80)
    try:
        status = os.stat(port)  # noqa: PTH116 (so that tests put a device in its place)
    except OSError as error:
        remedy = "plug the modem in, and look into /dev/serial/by-id"
        yield row.broken("port", f"{shown}: {(error.strerror or 'not there').lower()}", remedy)
        return
    if not stat.S_ISCHR(status.st_mode):
        yield row.broken("port", f"{shown}: not a device", "name the tty of the modem")
    elif not os.access(port, os.R_OK | os.W_OK):
        remedy = f"join its group: sudo usermod -aG {_group(status.st_gid)} $USER, then log in again"
        yield row.broken("port", f"{shown}: may not be read and written", remedy)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return "dialout"
