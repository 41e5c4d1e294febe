"""Lines of kind ``modemmanager``: a modem that ModemManager has, by QMI or MBIM, which brings an interface of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from farlink.errors import MissingExtraError
from farlink.extras import require
from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import LINE_KEYS, Bundle
from farlink.operator.config.bundle import Line as LineConfig
from farlink.operator.config.kinds.interface import Interface, metric_of, rights_missing, times_broken
from farlink.operator.config.kinds.kind import Kind, Parts, Row, Traits
from farlink.operator.config.modem_manager import IP_TYPES, MOST_SIGNAL, ModemManagerSettings
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.tables import Key, name_of, number, switch, text, whole

if TYPE_CHECKING:
    from farlink.operator.lines import Line

_Answer = TypeVar("_Answer")

# Beyond the line's own limits, for ModemManager to end what it has begun.
_SPARE_S = 30.0
_LINK_LIMIT_S = 40.0
# Keys of lines of kind `interface` that probe the interface of a bearer.
_OF_PROBES = ("probe", "peer", "probe_interval_s", "noticed_s", "probe_bytes_per_day", "route", "metric")
_SECRETS = {
    "pin": "write it below [pin] into the file that `secrets` names, and change the SIM's if others could read this file",
    "password": "write it below [apn_password] into the file that `secrets` names; have it changed if others could read this",
}


def _is_printable(value: str) -> bool:
    return 0 < len(value) <= 255 and value.isprintable()


class ModemManager(Kind):
    """A modem of ModemManager."""

    keys: ClassVar = {
        "modem": text(
            lambda value: (
                _is_printable(value) and not re.fullmatch(r"(/org/freedesktop/ModemManager1)?/Modem/\d+|\d{1,3}", value)
            ),
            "a name of the modem that stays, as `mmcli -m any` tells it: device id, IMEI, device or ICCID, not its index",
            is_needed=True,
        ),
        "apn": text(lambda value: bool(re.fullmatch(r"[A-Za-z0-9._-]{1,100}", value)), "the name of an access point"),
        "ip_type": name_of(IP_TYPES),
        "user": text(_is_printable, "a name"),
        "roaming": switch(),
        "configure": switch(),
        "dial_limit_s": number(1, 600),
        "least_signal": whole(0, MOST_SIGNAL),
        # Here by mistake: named without their values, with where they belong.
        **{name: Key(lambda _: True, "") for name in _SECRETS},
        **{name: Interface.keys[name] for name in _OF_PROBES},
    }
    unique: ClassVar = {"modem": "a modem carries one line: give each line a modem", "metric": "give each route a metric"}
    has_pin = True
    extra = ("dbus_fast", "a line of kind modemmanager")

    def rules(self, row: Row) -> Iterator[Broken]:
        """Secrets that stand in the wrong file, and probes."""
        for key, remedy in _SECRETS.items():
            if key in row.given:
                yield row.broken(key, "a secret, which has no place in this file", remedy)
        if {"probe", "peer"} & set(row.given):
            yield from times_broken(row)
            return
        for key in _OF_PROBES[2:]:
            if key in row.valid:
                yield row.broken(key, "neither probe nor peer is given, so nothing is probed", f"give one, or leave {key} out")

    def rules_together(self, rows: Sequence[Row]) -> Iterator[Broken]:
        """Modems on this machine."""
        named = [row for row in rows if "modem" in row.valid]
        if not (named and all(row.needs_ports for row in named)):
            return
        try:
            require(*self.extra)
        except MissingExtraError:
            return  # `notes` says it
        from farlink.operator.lines.modem_manager import listed, meant, modems_here

        found, failure = _in_thread(modems_here)
        for row in named:
            name = row.valid["modem"]
            if failure:
                yield row.broken("modem", failure, "start D-Bus and ModemManager: sudo systemctl start ModemManager")
            elif len(same := meant(name, found)) > 1:
                yield row.broken("modem", f"{len(same)} modems have this name: {listed(same)}", "give a name that only one has")
            elif not same:
                yield row.broken(
                    "modem",
                    f"ModemManager has no such modem; it has {listed(found) or 'none'}",
                    "give a name that one of them has",
                )

    def settings(self, valid: Mapping[str, Any]) -> dict[str, Any]:
        """Keys that `Line` does not have are in its settings."""
        own = {one.name: valid[one.name] for one in fields(ModemManagerSettings) if one.name in valid}
        probes = {key: valid[key] for key in _OF_PROBES if key in valid}
        if probes:
            own["probes"] = InterfaceSettings("", **{**probes, "probe": tuple(probes.get("probe", ()))})
        shared = {key: value for key, value in valid.items() if key in LINE_KEYS or key == "least_signal"}
        return {**shared, "settings": ModemManagerSettings(**own)}

    def device(self, line: LineConfig) -> str:
        """The name of its modem."""
        return _settings(line).modem

    def traits(self, line: LineConfig, bundle: Bundle, folder: Path) -> Traits:  # noqa: ARG002
        """The limits of `Connect` and of a bearer; signals in percent."""
        settings = _settings(line)
        limit_s, link_limit_s = settings.dial_limit_s + _SPARE_S, settings.proven_s + _LINK_LIMIT_S
        return Traits(limit_s, link_limit_s, most_signal=MOST_SIGNAL, least_signal=line.least_signal)

    def notes(self, line: LineConfig) -> Iterator[str]:
        """Whether dbus-fast is there, and the rights for probes."""
        probes = _settings(line).probes
        if probes is not None:
            yield from rights_missing(probes)
        try:
            require(*self.extra)
        except MissingExtraError as error:
            yield f"{error.message}; {error.remedy}"

    def make(self, line: LineConfig, parts: Parts) -> Line:
        """A line over D-Bus."""
        from farlink.operator.lines.modem_manager import ModemManagerLine

        settings = _settings(line)
        if settings.probes is not None and settings.probes.metric is None:
            settings = replace(settings, probes=replace(settings.probes, metric=metric_of(line, parts.bundle)))
        return ModemManagerLine(line.name, settings, parts.report, pins=parts.pins, pin=parts.pin, password=parts.apn_password)


def _settings(line: LineConfig) -> ModemManagerSettings:
    assert isinstance(line.settings, ModemManagerSettings)
    return line.settings


def _in_thread(ask: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
    """The result of a coroutine: whoever checks a file may have an event loop of its own."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(lambda: asyncio.run(ask())).result()
