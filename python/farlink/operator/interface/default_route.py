"""A default route that is there while its line is up. The kernel is asked what is there: a killed operator leaves nothing."""

from __future__ import annotations

from collections.abc import Iterable

from farlink.operator.interface.netlink import Route
from farlink.operator.interface.settings import InterfaceSettings

PROTOCOL = 112
"""The protocol number by which Linux knows the routes that farlink made (``ip route show proto 112``)."""

LAST_RESORT = 2_000_000_000
"""Added to the metric of a route that only probes of a line use that is down: they are bound to its interface."""


def wanted(settings: InterfaceSettings, metric: int, index: int, there: Iterable[Route], *, is_up: bool) -> set[Route]:
    """The routes that are to be there.

    Parameters
    ----------
    settings
        Of the line.
    metric
        Of the route of a line that is up.
    index
        Of the interface.
    there
        Its default routes.
    is_up
        Whether the line is up.
    """
    if not settings.route:
        return set()
    others = [one.gateway for one in there if one.protocol != PROTOCOL]
    gateway = settings.gateway or next(iter(others), "")
    found = {Route(index, gateway, metric, PROTOCOL)} if is_up else set()
    # Behind a gateway nobody is asked without a route, and the line would never come up.
    return found | ({Route(index, gateway, LAST_RESORT + metric, PROTOCOL)} if settings.gateway and not others else set())


def changes(wanted_routes: set[Route], there: Iterable[Route]) -> list[tuple[Route, bool]]:
    """What is to come (True) and to go (False), in this order."""
    ours = {one for one in there if one.protocol == PROTOCOL}
    key = lambda one: one.metric  # noqa: E731
    return [(one, True) for one in sorted(wanted_routes - ours, key=key)] + [
        (one, False) for one in sorted(ours - wanted_routes, key=key)
    ]
