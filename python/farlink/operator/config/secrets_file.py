"""The file of a bundle's secrets: a password, PINs of SIMs, URLs of alerts. No message and no `repr` shows one."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.near_names import instead
from farlink.operator.tables import Mistake
from farlink.untrusted import printable, read_text, toml_tables

_PIN = re.compile("[0-9]{4,8}")
_KEYS = ("password", "pin", "apn_password", "alerts")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,31}://[!-~]{0,1000}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_MOST_URLS = 16


@dataclass(frozen=True)
class Secrets:
    """Secrets of a bundle.

    Attributes
    ----------
    password
        For the authentication of PPP; empty if there is none.
    pins
        Line -> PIN of its SIM.
    alert_urls
        Name -> URL to which alerts go.
    apn_passwords
        Line -> password for the authentication of its mobile network.
    """

    password: str = field(default="", repr=False)
    pins: dict[str, str] = field(default_factory=dict, repr=False)
    alert_urls: dict[str, str] = field(default_factory=dict, repr=False)
    apn_passwords: dict[str, str] = field(default_factory=dict, repr=False)

    def texts(self) -> tuple[str, ...]:
        """What must stand in no log, export or journal."""
        given = (self.password, *self.pins.values(), *self.alert_urls.values(), *self.apn_passwords.values())
        return tuple(text for text in given if text)

    def hidden(self, text: str) -> str:
        """A text without the secrets that may be in it."""
        for secret in sorted(self.texts(), key=len, reverse=True):
            text = text.replace(secret, "***")
        return printable(text)


def read(path: Path, lines: Iterable[str]) -> tuple[Secrets, list[Mistake]]:
    """The secrets of a file, and what is wrong with it.

    Parameters
    ----------
    path
        The file.
    lines
        Names of the bundle's lines.
    """
    try:
        mode = path.stat().st_mode
        text = read_text(path, OperatorError)
    except OSError as error:
        return Secrets(), [Mistake(f"secrets {path}: {error.strerror}", "name the file of the secrets, or leave it out")]
    except (UnicodeDecodeError, OperatorError):
        return Secrets(), [Mistake(f"secrets {path}: not a text in UTF-8", "save it as UTF-8")]
    mistakes = []
    if stat.S_IMODE(mode) & 0o077:
        message = f"secrets {path}: others may read or write it (mode {stat.S_IMODE(mode):04o})"
        mistakes.append(Mistake(message, f"chmod 600 {path}"))
    try:
        tables = toml_tables(text)
    except ValueError as error:
        # The parser's words may have a part of the text in them.
        place = re.search(r"at line \d+", str(error))
        message = f"secrets {path}: not valid TOML" + (f" ({place[0]})" if place else "")
        return Secrets(), [*mistakes, Mistake(message, "strings need quotes, keys need '='")]
    mistakes += [Mistake(f"secrets {path}: {one.message}", one.remedy) for one in _mistakes(tables, list(lines))]
    password = tables.get("password")
    known = [_texts(tables.get(key)) for key in ("pin", "alerts", "apn_password")]
    return Secrets(password if isinstance(password, str) else "", *known), mistakes


def _mistakes(tables: dict[str, Any], lines: list[str]) -> list[Mistake]:
    found = [Mistake(f"{printable(key, 40)}: there is no such key", instead(key, _KEYS)) for key in tables if key not in _KEYS]
    password = tables.get("password", "")
    if not isinstance(password, str) or not password.isprintable() or len(password) > 255 or set(password) & set('"\\'):
        found.append(Mistake("password: not a text of up to 255 letters without quotes and backslashes", "choose another"))
    elif password.startswith("@/"):
        found.append(Mistake("password: begins with @/, which pppd takes for the name of a file", "choose another"))
    found += _of_urls(tables.get("alerts", {}))
    found += _of_apns(tables.get("apn_password", {}), lines)
    pins = tables.get("pin", {})
    if not isinstance(pins, dict):
        return [*found, Mistake("pin: not a table", 'write [pin], and below it kansas = "1234"')]
    for line, pin in pins.items():
        # If both are written the wrong way round, the name of a line is a PIN.
        shown = "****" if line not in lines and _PIN.fullmatch(line) else printable(line, 40)
        if line not in lines:
            found.append(Mistake(f"pin.{shown}: there is no such line", instead(line, lines) if lines else "name a line"))
        if not isinstance(pin, str) or not _PIN.fullmatch(pin):
            found.append(Mistake(f"pin.{shown}: not a text of 4 to 8 digits", 'write it in quotes, as "1234"'))
    return found


def _texts(table: object) -> dict[str, str]:
    return {name: value for name, value in table.items() if isinstance(value, str)} if isinstance(table, dict) else {}


def _of_urls(table: object) -> list[Mistake]:
    example = 'write [alerts], and below it office = "mailto://..."'
    if not isinstance(table, dict):
        return [Mistake("alerts: not a table", example)]
    found = []
    if len(table) > _MOST_URLS:
        found.append(Mistake(f"alerts: {len(table)} URLs", f"give at most {_MOST_URLS}"))
    for at, (name, url) in enumerate(table.items(), start=1):
        # If both are written the wrong way round, the name is a secret.
        if not _NAME.fullmatch(name):
            remedy = "give each URL a name of letters, digits, '-' and '_'"
            found.append(Mistake(f"alerts, URL {at}: its name is none of up to 32 letters", remedy))
        elif not isinstance(url, str) or not _URL.fullmatch(url):
            found.append(
                Mistake(f"alerts.{name}: not a URL", "give one of Apprise, such as mailtos://user:password@example.org")
            )
    return found


def _of_apns(table: object, lines: list[str]) -> Iterator[Mistake]:
    if not isinstance(table, dict):
        yield Mistake("apn_password: not a table", 'write [apn_password], and below it lte = "..."')
        return
    for line, password in table.items():
        shown = printable(line, 40) if line in lines else "****"  # who writes both the wrong way round has a password there
        if line not in lines:
            remedy = f"name one of {', '.join(lines)}" if lines else "name a line"
            yield Mistake(f"apn_password.{shown}: there is no such line", remedy)
        if not isinstance(password, str) or not password.isprintable() or not 0 < len(password) <= 255:
            yield Mistake(f"apn_password.{shown}: not a text of 1 to 255 letters", "write it in quotes")
