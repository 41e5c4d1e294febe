"""What ``[alerts]`` needs on this machine, and what it may not be together with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.at import profiles
from farlink.operator.config.alerts import STANDBY, AlertRules, Standby
from farlink.operator.config.broken import Broken
from farlink.untrusted import printable

_WHERE = ("alerts", "standby")


def read(table: Mapping[str, Any], standby: Mapping[str, Any] | None, folder: Path) -> AlertRules:
    """The rules of the valid values of both tables; paths are relative to the folder of the file."""
    plain = {key: value for key, value in table.items() if key not in ("standby", "urls_from")}
    urls_from = folder / table["urls_from"] if "urls_from" in table else None
    is_whole = standby is not None and {"port", "profile", "number"} <= standby.keys()
    return AlertRules(**plain, urls_from=urls_from, standby=Standby(**standby) if standby is not None and is_whole else None)


def of_alerts(
    alerts: AlertRules, rows: Sequence[Mapping[str, Any]], folder: Path, *, has_urls: bool, needs_ports: bool
) -> Iterator[Broken]:
    """Rules of alerts.

    Parameters
    ----------
    alerts
        What the file says of them.
    rows
        The valid values of each line.
    folder
        That of the file, for profiles that are files.
    has_urls
        Whether there is a URL to which messages go.
    needs_ports
        Whether ports must be there.
    """
    if alerts.urls_from is not None and not has_urls:
        message = f"alerts.urls_from: {alerts.urls_from} has no URL"
        yield Broken(("alerts", "urls_from"), message, 'write [alerts] there, and below it office = "mailto://..."')
    standby = alerts.standby
    if standby is None:
        return
    for at, row in enumerate(rows):
        if row.get("name") == STANDBY:
            message = f"line[{at}].name: {STANDBY} is the name of the line of [alerts.standby]"
            yield Broken(("line", at, "name"), message, "give the line another name")
        if "port" in row and os.path.realpath(row["port"]) == os.path.realpath(standby.port):
            message = f"alerts.standby.port: {printable(standby.port, 60)} is that of line[{at}], too"
            yield Broken((*_WHERE, "port"), message, "a stand-by line needs a modem of its own")
    if standby.way == "call" and not has_urls:
        message = "alerts.standby.way: a call carries messages to URLs, and there is none"
        yield Broken((*_WHERE, "way"), message, 'give urls_from, or way = "sms"', _WHERE)
    yield from _of_modem(standby, folder)
    if needs_ports:
        yield from _of_port(standby.port)


def _of_modem(standby: Standby, folder: Path) -> Iterator[Broken]:
    name = standby.profile
    try:
        profile = profiles.load(str(folder / name) if name.endswith(".toml") else name)
    except OperatorError as error:
        yield Broken((*_WHERE, "profile"), f"alerts.standby.profile: {error.message}", error.remedy)
        return
    if standby.way == "sms" and not profile.sends_sms:
        message = f"alerts.standby.profile: a {profile.title} sends no short messages"
        yield Broken((*_WHERE, "profile"), message, 'give way = "call", or a profile with sends_sms = true')
    if standby.way == "sms" and set(standby.number.removeprefix("+")) - set("0123456789"):
        message = f"alerts.standby.number: {standby.number} is no number of a telephone"
        yield Broken((*_WHERE, "number"), message, "give digits, which may begin with +")


def _of_port(port: str) -> Iterator[Broken]:
    shown = f"alerts.standby.port: {printable(port, 80)}"
    try:
        mode = os.stat(port).st_mode  # noqa: PTH116 (as in `rules`)
    except OSError as error:
        remedy = "plug the modem in, and look into /dev/serial/by-id"
        yield Broken((*_WHERE, "port"), f"{shown}: {(error.strerror or 'not there').lower()}", remedy)
        return
    if not stat.S_ISCHR(mode):
        yield Broken((*_WHERE, "port"), f"{shown}: not a device", "name the tty of the modem")
    elif not os.access(port, os.R_OK | os.W_OK):
        yield Broken((*_WHERE, "port"), f"{shown}: may not be read and written", "join the group of the device")
