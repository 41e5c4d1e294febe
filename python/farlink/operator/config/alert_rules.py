"""Rules for ``[alerts]``: what it needs on this machine, and what it excludes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.at import pdu
from farlink.operator.config.alerts import STANDBY, AlertRules, Standby
from farlink.operator.config.broken import Broken
from farlink.operator.config.kinds.at import At, profile_of
from farlink.operator.config.kinds.kind import Row
from farlink.operator.tables import Key, name_of, number, whole
from farlink.untrusted import printable

_WHERE = ("alerts", "standby")

STANDBY_KEYS: Mapping[str, Key] = {
    "way": name_of(("sms", "call")),
    **{key: At.keys[key] for key in ("port", "profile", "rate_bps")},
    "number": replace(At.keys["number"], is_needed=True),
    "after_s": number(0, 604800),
    "most_per_day": whole(1, 1000),
}


def read(table: Mapping[str, Any], standby: Mapping[str, Any] | None, folder: Path) -> AlertRules:
    """The rules of the valid values of both tables; paths are relative to the folder of the file."""
    plain = {key: value for key, value in table.items() if key not in ("standby", "urls_from")}
    urls_from = folder / table["urls_from"] if "urls_from" in table else None
    is_whole = standby is not None and {"port", "profile", "number"} <= standby.keys()
    return AlertRules(**plain, urls_from=urls_from, standby=Standby(**standby) if standby is not None and is_whole else None)


class _StandbyRow(Row):
    """The table ``[alerts.standby]``, which is looked through as one of a line of kind ``at``."""

    def broken(self, key: str, message: str, remedy: str) -> Broken:
        """A rule that a value breaks."""
        return Broken((*_WHERE, key), f"alerts.standby.{key}: {message}", remedy)


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
    row = {"port": standby.port, "profile": standby.profile, "number": standby.number}
    yield from At().rules(_StandbyRow(0, row, row, folder, needs_ports))
    yield from _of_modem(standby, folder)


def _of_modem(standby: Standby, folder: Path) -> Iterator[Broken]:
    try:
        profile = profile_of(standby.profile, folder)
    except OperatorError:
        return  # said already
    if standby.way == "sms" and not profile.sends_sms:
        message = f"alerts.standby.profile: a {profile.title} sends no short messages"
        yield Broken((*_WHERE, "profile"), message, 'give way = "call", or a profile with sends_sms = true')
    if standby.way == "sms" and not pdu.is_telephone(standby.number):
        message = f"alerts.standby.number: {standby.number} is no number of a telephone"
        yield Broken((*_WHERE, "number"), message, "give 2 to 20 digits, which may begin with +")
