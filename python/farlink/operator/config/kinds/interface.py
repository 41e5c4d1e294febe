"""Lines of kind ``interface``: an address that is already there, of a satellite dish, an LTE router or an Ethernet."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.bundle import Line as LineConfig
from farlink.operator.config.kinds.kind import Kind, Parts, Row, Traits
from farlink.operator.interface.settings import DAY_S, InterfaceSettings, host_and_port
from farlink.operator.tables import Key, number, switch, text, whole

if TYPE_CHECKING:
    from farlink.operator.lines import Line

# Beyond what a line takes to see that nothing is there.
_SPARE_S = 5.0
_METRIC, _METRICS_OF_RANK = 10, 64
_CAP_NET_ADMIN = 12
_KEYS = ("probe", "peer", "probe_listen", "probe_interval_s", "noticed_s", "probe_bytes_per_day", "route", "gateway", "metric")


def _is_host(value: object) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_:.-]{1,253}", value) or value.startswith("-"):
        return False
    # Labels of a name (RFC 1035, section 2.3.4); the last one may end with a dot.
    return all(0 < len(label) < 64 for label in value.removesuffix(".").split("."))


def _is_peer(value: str) -> bool:
    try:
        return _is_host(host_and_port(value)[0])
    except ValueError:
        return False


def _is_listening(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 1 <= value <= 65535
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(host_and_port(value)[0]))
    except ValueError:
        return False


def _is_ipv4(value: str) -> bool:
    try:
        return bool(ipaddress.IPv4Address(value))
    except ValueError:
        return False


class Interface(Kind):
    """An interface that is already there."""

    keys: ClassVar = {
        "interface": text(
            lambda value: bool(re.fullmatch(r"[!-.0-9;-~]{1,15}", value)) and value not in (".", ".."),
            "the name of an interface, of up to 15 characters",
            is_needed=True,
        ),
        "probe": Key(
            lambda value: isinstance(value, list) and 1 <= len(value) <= 16 and all(map(_is_host, value)),
            'a list of 1 to 16 addresses or names, such as ["192.0.2.1"]',
        ),
        "peer": text(_is_peer, "HOST:PORT of a far operator, such as far.example:7411"),
        "probe_listen": Key(_is_listening, "a port, which only this machine reaches, or ADDRESS:PORT"),
        "probe_interval_s": number(0.1, 3600),
        "noticed_s": number(0.5, 86400),
        "probe_bytes_per_day": whole(1, 10**12),
        "route": switch(),
        "gateway": text(_is_ipv4, "an IPv4 address"),
        "metric": whole(1, 1_000_000_000),
    }
    unique: ClassVar = {"interface": "give each line an interface", "metric": "give each route a metric"}

    def rules(self, row: Row) -> Iterator[Broken]:
        """Something to probe, times and budgets that go together, and a route for what belongs to one."""
        if not {"probe", "peer", "probe_listen"} & set(row.given):
            remedy = 'give addresses that answer pings, probe = ["192.0.2.1"], or peer = "HOST:PORT" of a far operator'
            yield row.broken("", " has neither probe nor peer nor probe_listen: a dead line would not be noticed", remedy)
        for key in ("gateway", "metric"):
            if key in row.valid and not row.valid.get("route"):
                yield row.broken(key, "there is no route that it is for", "leave it out, or give route = true")
        yield from times_broken(row)

    def rules_together(self, rows: Sequence[Row]) -> Iterator[Broken]:
        """One port is listened at once."""
        first: dict[str, int] = {}
        for row in rows:
            if "probe_listen" in row.valid:
                where = _listening(row.valid["probe_listen"])
                if where in first:
                    yield row.broken("probe_listen", f"{where} is that of line[{first[where]}], too", "give each line a port")
                first.setdefault(where, row.at)

    def settings(self, valid: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of this kind go into `InterfaceSettings`."""
        common = {key: value for key, value in valid.items() if key not in self.keys}
        return {**common, "settings": _settings(valid)}

    def device(self, line: LineConfig) -> str:
        """The interface."""
        return _of(line).interface

    def traits(self, line: LineConfig, bundle: Bundle, folder: Path) -> Traits:  # noqa: ARG002
        """A line is dialled within the time in which one that is dead is noticed."""
        limit_s = 3 * _of(line).noticed_s + _SPARE_S
        return Traits(dial_limit_s=limit_s, link_limit_s=limit_s)

    def notes(self, line: LineConfig) -> Iterator[str]:
        """How soon a dead line is noticed and what that costs, and which rights this user lacks."""
        settings = _of(line)
        if settings.probe_bytes:
            interval_s = max(settings.interval_s, settings.budget_interval_s)
            per_day = DAY_S / interval_s * settings.probe_bytes
            yield (
                f"a dead line is noticed within {settings.noticed_s:g} s; probes every {interval_s:.3g} s take "
                f"{per_day / 1e6:.3g} MB a day"
            )
        yield from rights_missing(settings)

    def make(self, line: LineConfig, parts: Parts) -> Line:
        """A line over the interface."""
        from farlink.operator.lines.interface_line import InterfaceLine

        settings = _of(line)
        metric = metric_of(line, parts.bundle) if settings.metric is None else settings.metric
        return InterfaceLine(line.name, settings, metric, parts.report)


def metric_of(line: LineConfig, bundle: Bundle) -> int:
    """Of a line's default route, where none is given: by rank, then by the place in the file."""
    return _METRIC + _METRICS_OF_RANK * line.rank + [one.name for one in bundle.lines].index(line.name)


def _of(line: LineConfig) -> InterfaceSettings:
    return cast("InterfaceSettings", line.settings)


def _listening(value: int | str) -> str:
    return f"127.0.0.1:{value}" if isinstance(value, int) else value


def _settings(valid: Mapping[str, Any]) -> InterfaceSettings:
    own = {key: valid[key] for key in _KEYS if key in valid}
    if "probe_listen" in own:
        own["probe_listen"] = _listening(own["probe_listen"])
    return InterfaceSettings(valid.get("interface", ""), **{**own, "probe": tuple(own.get("probe", ()))})


def times_broken(row: Row) -> Iterator[Broken]:
    """Intervals and budgets of probes that contradict the time in which a dead line is noticed."""
    settings = _settings(row.valid)
    longest_s = settings.noticed_s / 2
    given = settings.probe_interval_s
    if given is not None and given > longest_s:
        message = (
            f"{given:g} s, and noticed_s is {settings.noticed_s:g}: a single lost packet would drop the line, "
            f"so noticing takes {2 * given:g} s"
        )
        yield row.broken("probe_interval_s", message, f"give at most {longest_s:g}, or noticed_s = {2 * given:g}")
    budget_s = settings.budget_interval_s
    if budget_s > longest_s and settings.probe_bytes_per_day is not None:
        least = -(-int(DAY_S * settings.probe_bytes) // longest_s)
        message = (
            f"{settings.probe_bytes_per_day} allows a probe of {settings.probe_bytes} bytes every {budget_s:.4g} s, so "
            f"noticing a dead line takes {2 * budget_s:.4g} s, and noticed_s is {settings.noticed_s:g}"
        )
        remedy = f"give at least {least:.0f}, or noticed_s = {2 * budget_s + 0.5:.0f}"
        yield row.broken("probe_bytes_per_day", message, remedy)


def rights_missing(settings: InterfaceSettings) -> Iterator[str]:
    """Which rights this user lacks for probes and routes."""
    if settings.probe:
        from farlink.operator.interface.sockets import ping_socket

        try:
            ping_socket(4)[0].close()
        except PermissionError:
            yield "this user may not send pings: sysctl net.ipv4.ping_group_range='0 2147483647', or give it CAP_NET_RAW"
    if settings.route and not _has_capability(_CAP_NET_ADMIN):
        yield "route = true takes CAP_NET_ADMIN, which this user lacks: AmbientCapabilities=CAP_NET_ADMIN in a unit of systemd"


def _has_capability(number: int) -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, flags=re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> number & 1)
