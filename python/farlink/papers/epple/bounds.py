"""Two conclusions on bit error rates: that independent errors bound the goodput, and that 1e-5 is the design goal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from farlink.papers.check import Check, Verdict, claimed
from farlink.papers.epple.fading import STAND_IN, Fading, mean_loss, over_fading, short_term_ber, trace
from farlink.papers.epple.intervals import interval
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.scenarios import transport
from farlink.papers.epple.setting import HEADER_BYTES, PAPER_SETTING, PROTOCOLS, Setting
from farlink.papers.epple.table_1_fading import TIMERS, fading_cells, fadings
from farlink.papers.epple.timers import SR_TIMER
from farlink.papers.estimate import Curve, Estimate, as_points, crossing, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.plot.points_on_curves import Panel, Traced, points_on_curves

_PAYLOAD_BYTES = 1000
_UPPER = "calculations for a comparable AWGN channel give the upper bound of the expectable protocol performance"
# Blockages and lost tracking are no part of the long-term bit error rate: without them it is the same channel.
_UNBLOCKED = {"ATENAA": {"clear_mean_s": 0}, "KIODO": {"tracking_loss_every_s": 0}}
_SECONDS = {"awgn-bound": 5.0, "design-goal": 3.0}
_LEAST_S = 1.0
_BERS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_GOAL = 1e-5

Outcome = tuple[list[Check], list[Drawing]]


def awgn_bound(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """Goodput over fading against the calculation for independent errors of the same long-term bit error rate."""
    checks = []
    for place in PLACES:
        light = Fading(place, duration_s=max(_LEAST_S, bench.share(_SECONDS["awgn-bound"])), changes=_UNBLOCKED.get(place, {}))
        for payload in setting.payloads_bytes.values():
            packet_bytes = payload + HEADER_BYTES["sr"]
            survive = [
                1 - mean_loss(short_term_ber(trace(text), setting.ber), packet_bytes)
                for text in light.texts(bench, setting, bench.repetitions(5))
            ]
            even = 1 - setting.loss(payload, "sr", counted="packet")
            checks.append(
                _check(
                    f"{place} ({STAND_IN}), {payload} bytes: share of packets that survive fading over that with independent "
                    "errors",
                    "model",
                    ratio(interval(survive), Estimate(even)),
                )
            )
        tables = {
            f"ideal-{payload}": transport(setting, place, payload, "sr", SR_TIMER, blocks=None)
            for payload in setting.payloads_bytes.values()
        }
        found = over_fading(bench, setting, light, tables, use="ideal selective repeat", is_return_clear=True)
        for payload in setting.payloads_bytes.values():
            theory = setting.goodput(place, payload, "sr", counted="packet")
            checks.append(
                _check(
                    f"{place} ({STAND_IN}), ideal selective repeat, {payload} bytes: goodput over equation (8)",
                    "packet",
                    ratio(found[f"ideal-{payload}"].mean, Estimate(theory)),
                )
            )
    cells = fading_cells(bench, setting, fadings(bench))
    for place in PLACES:
        for protocol, name in PROTOCOLS.items():
            for printed, payload in setting.payloads_bytes.items():
                theory = setting.goodput(place, payload, protocol)
                checks.append(
                    _check(
                        f"{place} ({STAND_IN}), {name} of table 1, {payload} bytes: goodput over the calculation in brackets",
                        "packet",
                        ratio(cells[place, protocol, printed].mean, Estimate(theory)),
                    )
                )
    return checks, []


def _check(cell: str, engine: str, share: Estimate) -> Check:
    made = claimed(
        "awgn-bound",
        cell,
        _UPPER,
        share,
        at_most=1.0,
        rule=f"agrees if the ratio lies below 1 with its interval; {STAND_IN}",
        cause="(1 - b)^n is convex in b, so by Jensen's inequality a bit error rate that varies lets more packets through "
        "than a "
        "constant one of the same mean; the bound holds only where a protocol loses time, or blockages count",
    )
    return Check(made.item, made.cell, made.printed, engine, made.value, made.verdict, made.note)


def design_goal(bench: Workbench, setting: Setting = PAPER_SETTING) -> Outcome:
    """Goodput against the long-term bit error rate, over fading and by the equations."""
    payload = setting.payloads_bytes[_PAYLOAD_BYTES]
    scale = setting.ber / PAPER_SETTING.ber
    curves: dict[tuple[str, str], Curve] = {}
    for place in PLACES:
        light = Fading(place, duration_s=max(_LEAST_S, bench.share(_SECONDS["design-goal"])), changes=_UNBLOCKED.get(place, {}))
        tables = {protocol: transport(setting, place, payload, protocol, TIMERS[protocol]) for protocol in PROTOCOLS}
        for ber in _BERS:
            found = over_fading(
                bench,
                setting,
                light,
                tables,
                use=f"long-term BER {ber * scale:g}",
                bers=ber * scale,
                count=bench.repetitions(4),
            )
            for protocol in PROTOCOLS:
                curves.setdefault((place, protocol), [])
                curves[place, protocol] = [*curves[place, protocol], (ber * scale, found[protocol].mean)]
    checks = []
    for (place, protocol), curve in curves.items():
        least = payload / (payload + HEADER_BYTES[protocol])
        drop = crossing(curve, 0.9 * least)
        checks.append(
            Check(
                "design-goal",
                f"{place} ({STAND_IN}), {PROTOCOLS[protocol]}, {payload} bytes: long-term bit error rate at which a tenth of "
                "the "
                "goodput is lost",
                "at bit error ratios larger than 1e-5 the goodput starts to drop significantly … a BER_LT less than 1e-5 "
                "should be "
                "the design goal",
                "packet",
                drop,
                _near_goal(drop),
                "agrees between a half and five times 1e-5 with its interval; unknown if the loss begins outside 1e-9 to 1e-3; "
                f"{STAND_IN}" + _cause(drop),
            )
        )
    return checks, [_drawing(setting, payload, curves)]


def _cause(drop: Estimate) -> str:
    if _near_goal(drop) is not Verdict.DIFFERS:
        return ""
    if drop.mean < _GOAL:
        return "; a loss costs a wait or a block for a long round trip: over such a distance the goal is lower"
    return "; over fading errors come together, so that the same long-term rate costs fewer packets"


def _near_goal(drop: Estimate) -> Verdict:
    from farlink.papers.check import claim

    return claim(drop, at_least=0.5 * _GOAL, at_most=5 * _GOAL)


def _drawing(setting: Setting, payload: int, curves: dict[tuple[str, str], Curve]) -> Drawing:
    bers = [float(ber) for ber in np.geomspace(1e-9, 1e-3, 60)]
    panels = []
    for protocol, name in PROTOCOLS.items():
        traced = [
            Traced(
                place,
                [(ber, replace(setting, ber=ber).goodput(place, payload, protocol, counted="packet")) for ber in bers],
                as_points(curves[place, protocol]),
            )
            for place in PLACES
        ]
        panels.append(Panel(name, traced))

    return Drawing(
        "design-goal",
        "Goodput against the long-term bit error rate: independent errors and fading",
        f"Lines: equations (10) and (8) for independent errors, the latter the same at every place. Points: the engine over "
        f"synthetic fading, a {STAND_IN} of the measurements, without blockages; packets of {payload} bytes, 95 % intervals.",
        lambda: points_on_curves(panels, x_label="long-term bit error rate", y_label="goodput", y_top=1.02),
    )
