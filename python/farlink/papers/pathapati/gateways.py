"""Gateways at both ends of the radio: TCP on the networks, AeroTP between."""

from __future__ import annotations

from farlink.papers.check import Check, claimed
from farlink.papers.estimate import ratio
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.measures import DELIVERED, GOODPUT, Curves, measured, value
from farlink.papers.pathapati.path import WORST_BER, reliable, scenario, tcp

ITEM = "gateways"
RELIABLE, TCP = "reliable", "tcp-reno"
_RUNS = 200
_BERS = (0.0, 1e-5, WORST_BER)
_SAME = 0.1


def gateway_curves(bench: Workbench, bers: tuple[float, ...] = _BERS) -> tuple[Curves, Curves]:
    """End to end, and with a connection of its own over the radio."""
    transports = {RELIABLE: reliable()}
    direct = scenario("without gateways", transports, bers=bers) | {"runs": _RUNS}
    split = scenario("gateways at both ends of the radio", transports, bers=bers) | {"runs": _RUNS}
    split["hop"]["radio"]["gateway"] = True
    return (
        measured(bench.run("gateways-none", direct), transports, GOODPUT, DELIVERED),
        measured(bench.run("gateways-both", split), transports, GOODPUT, DELIVERED),
    )


def gateways(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """TCP to the gateway, AeroTP over the radio, TCP behind it."""
    direct, split = gateway_curves(bench)
    end_to_end = measured(
        bench.run("gateways-tcp", scenario("TCP end to end", {TCP: tcp()}, bers=_BERS[1:])), [TCP], GOODPUT, DELIVERED
    )
    checks = [
        claimed(
            ITEM,
            f"TCP, AeroTP over the radio, TCP: goodput at BER {ber:g} over that of AeroTP end to end",
            "smooth interoperability with TCP and UDP at the gateways",
            ratio(value(split, RELIABLE, GOODPUT, ber), value(direct, RELIABLE, GOODPUT, ber)),
            at_least=1 - _SAME,
            at_most=1 + _SAME,
            rule=f"smooth: agrees within {_SAME:.0%}",
        )
        for ber in _BERS
    ]
    checks += [
        claimed(
            ITEM,
            f"the same: goodput at BER {ber:g} over that of TCP end to end",
            "AeroTP reliable-mode is able to achieve significantly better performance than TCP",
            ratio(value(split, RELIABLE, GOODPUT, ber), value(end_to_end, TCP, GOODPUT, ber)),
            at_least=2.0,
            rule="significantly: agrees from a factor of 2 up; source and destination have TCP alone",
        )
        for ber in _BERS[1:]
    ]
    return checks, []
