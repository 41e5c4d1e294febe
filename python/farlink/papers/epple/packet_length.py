"""Figures 2 to 4: goodput against the packet length, for the three classes of ARQ; equations (8) to (11) and the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from farlink.models import arq
from farlink.papers.check import Check, Verdict, claimed
from farlink.papers.curves import estimate
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.estimate import Estimate, as_points, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.plot.points_on_curves import Panel, Traced, points_on_curves

HEADER_BYTES = 20
BERS = (1e-4, 1e-5, 1e-6, 1e-7)
# Packet lengths, user data and header.
_CURVE = tuple(float(length) for length in np.geomspace(40, 10_000, 60))
_SIMULATED = (100, 300, 1000, 3000)
_PLACES = ("Testbed", "FASOLT")
_TRANSPORT = "flow.bulk.transport"
# "Not significant", "degenerates heavily" and "significantly", as numbers.
_SIGNIFICANT = 0.05
_HEAVILY = 0.1
_DROP = 0.1
# 500 m in the text on figures 2 and 3.
_TEXT_DISTANCES_M = {"Testbed": 500.0, "FASOLT": 61e3}

Points = dict[tuple[str, str, float, int], Estimate]


def figure_2(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Stop-and-wait over both distances."""
    points = _simulated(bench, setting, "stop-and-wait", _PLACES)
    checks = list(_on_the_curve("figure-2", setting, points))
    for length in _SIMULATED:
        share = ratio(
            points["stop-and-wait", "FASOLT", setting.ber, length], points["stop-and-wait", "Testbed", setting.ber, length]
        )
        checks.append(
            claimed(
                "figure-2",
                f"stop-and-wait, packets of {length} bytes: goodput over 61 km over that over 500 m",
                "the goodput degenerates heavily for all packet lengths",
                share,
                at_most=_HEAVILY,
                rule="heavily: agrees if at most a tenth is left",
            )
        )
    return checks, [_over_length("figure-2", "Stop-and-wait", "stop-and-wait", setting, points, 1.02)]


def figure_3(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Go-back-N over both distances."""
    points = _simulated(bench, setting, "go-back-n", _PLACES)
    checks = list(_on_the_curve("figure-3", setting, points))
    for place in _PLACES:
        long, usual = (points["go-back-n", place, setting.ber, length] for length in (3000, 1000))
        checks.append(
            claimed(
                "figure-3",
                f"go-back-N, {place}: goodput with packets of 3000 bytes over that with 1000, less 1",
                "packet lengths >1000 byte do not seem to change the goodput",
                _less_one(ratio(long, usual)),
                at_least=-_SIGNIFICANT,
                at_most=_SIGNIFICANT,
                rule=f"no change: agrees within {_SIGNIFICANT:.0%}",
            )
        )
    checks.append(
        claimed(
            "figure-3",
            "go-back-N, packets of 1000 bytes: goodput over 61 km over that over 500 m",
            "RTT is still an influencing factor",
            ratio(points["go-back-n", "FASOLT", setting.ber, 1000], points["go-back-n", "Testbed", setting.ber, 1000]),
            at_most=0.9,
            rule="agrees if a tenth or more is lost",
        )
    )
    return checks, [_over_length("figure-3", "Go-back-N", "go-back-n", setting, points, 1.02)]


def figure_4(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Selective repeat, against the bit error rate and against the packet length, with the best lengths of equation (11)."""
    points = _simulated(bench, setting, "selective-repeat", ("Testbed",), bers=(*BERS, setting.ber))
    checks = list(_on_the_curve("figure-4", setting, points))
    at = {length: points["selective-repeat", "Testbed", setting.ber, length] for length in _SIMULATED}
    checks.append(
        claimed(
            "figure-4",
            "selective repeat: goodput with packets of 3000 bytes over that with 1000, less 1",
            "packet lengths >1000 byte do not significantly increase the goodput",
            _less_one(ratio(at[3000], at[1000])),
            at_most=_SIGNIFICANT,
            rule=f"not significantly: agrees up to {_SIGNIFICANT:.0%}",
        )
    )
    for length in (500, 1000, 1500):
        # Where a tenth of what the header leaves is gone.
        ber = _ber_of_a_drop(length)
        checks.append(
            Check(
                "figure-4",
                f"selective repeat, packets of {length} bytes: bit error rate at which a tenth of the goodput is lost",
                "at bit error ratios larger than 1e-5 the goodput starts to drop significantly for all packet lengths",
                "model",
                Estimate(ber),
                Verdict.AGREES if 0.5e-5 < ber < 5e-5 else Verdict.DIFFERS,
                "a tenth is significant: agrees between half of 1e-5 and five times that",
            )
        )
    return checks, [_against_ber(setting, points), _figure_4(setting, points)]


def goodput(setting: Setting, protocol: str, place: str, ber: float, length: float) -> float:
    """Equation (8), (9) or (10) for a packet of so many bytes, header included."""
    lengths = {"payload_bytes": length - HEADER_BYTES, "header_bytes": HEADER_BYTES}
    loss = arq.packet_loss(ber, packet_bytes=length)
    if protocol == "selective-repeat":
        return float(arq.goodput_selective_repeat(loss, **lengths))
    capacity = arq.round_trip_capacity(_rtt_s(setting, place), rate_bps=setting.rate_bps, **lengths)
    equation = arq.goodput_stop_and_wait if protocol == "stop-and-wait" else arq.goodput_go_back_n
    return float(equation(loss, capacity=capacity, **lengths))


def _rtt_s(setting: Setting, place: str) -> float:
    # A distance other than the paper's also replaces that of the text.
    scale = setting.distances_m[place] / PAPER_SETTING.distances_m[place]
    return float(arq.round_trip_s(scale * _TEXT_DISTANCES_M[place], speed_mps=setting.speed_mps))


def _simulated(bench: Workbench, setting: Setting, protocol: str, places: Sequence[str], bers: Sequence[float] = ()) -> Points:
    points: Points = {}
    rates = sorted({*bers, setting.ber})
    for place in places:
        data = _scenario(setting, protocol, place, rates, duration_s=bench.share(0.4 if place == "Testbed" else 2.0))
        result = bench.run(f"{protocol}-{place}".lower(), data)
        for entry in result.summary():
            length = int(entry[_TRANSPORT].rsplit("-", 1)[1])
            ber = entry["link.channel.ber"]
            points[protocol, place, ber, length] = estimate(entry["goodput_fraction"])
    return points


def _scenario(setting: Setting, protocol: str, place: str, bers: Sequence[float], *, duration_s: float) -> dict[str, Any]:
    """The equations' assumptions: a timer as short as can be, and acknowledgements that take no time and are never lost."""
    rtt_s = _rtt_s(setting, place)
    transports = {}
    for length in _SIMULATED:
        packet_s = 8 * length / setting.rate_bps
        window = math.ceil(1 + rtt_s / packet_s)
        transports[f"packet-{length}"] = {
            "kind": "arq",
            "mode": protocol,
            "segment_bytes": length - HEADER_BYTES,
            "header_bytes": HEADER_BYTES,
            "ack_bytes": HEADER_BYTES,
            "ack": "per-packet",
            "rate_bps": setting.rate_bps * (1 - 1e-6),
            "rto": {"algorithm": "fixed", "initial_s": rtt_s + packet_s + 1e-9},
        } | ({} if protocol == "stop-and-wait" else {"window_frames": window})
        if protocol == "selective-repeat":
            transports[f"packet-{length}"]["buffer_frames"] = 8 * window + 64
    return {
        "title": f"Epple, {protocol}, {place}, packet lengths",
        "duration_s": duration_s,
        "runs": 6,
        "measure": {"warmup_s": duration_s / 20},
        "link": {
            "rate_bps": setting.rate_bps,
            "delay_s": rtt_s / 2,
            "channel": {"kind": "ber", "ber": bers[0]},
            "return": {"rate_bps": 1e13, "channel": {"kind": "none"}},
        },
        "transport": transports,
        "flow": {"bulk": {"transport": next(iter(transports)), "traffic": {"kind": "bulk"}}},
        "grid": {"link.channel.ber": list(bers), _TRANSPORT: list(transports)},
    }


def _on_the_curve(item: str, setting: Setting, points: Points) -> Iterator[Check]:
    """The engine over the equation, at the setting's bit error rate."""
    for (protocol, place, ber, length), ours in points.items():
        if ber != setting.ber:
            continue
        theory = goodput(setting, protocol, place, ber, length)
        yield claimed(
            item,
            f"{protocol}, {place}, packets of {length} bytes: engine over equation",
            f"equation {_EQUATIONS[protocol]}: {theory:.4f}",
            ratio(ours, Estimate(theory)),
            at_least=0.97,
            at_most=1.03,
            rule="agrees within 3 % of the equation",
            cause="in go-back-N a loss costs whole packets, as none is broken off when a timer expires: felt where a round "
            "trip holds less than one or two",
        )


_EQUATIONS = {"selective-repeat": "(8)", "stop-and-wait": "(9)", "go-back-n": "(10)"}


def _less_one(share: Estimate) -> Estimate:
    return Estimate(share.mean - 1, share.half_width)


def _ber_of_a_drop(length: int) -> float:
    return float(-np.expm1(np.log1p(-_DROP) / (8 * length)))


def _over_length(item: str, name: str, protocol: str, setting: Setting, points: Points, y_top: float | None) -> Drawing:
    panels = [
        Panel(f"{place}, {_TEXT_DISTANCES_M[place] / 1000:g} km", _by_ber(setting, points, protocol, place))
        for place in _PLACES
    ]
    return Drawing(
        item,
        f"{name}: goodput against packet length",
        f"Lines: equation {_EQUATIONS[protocol]}; points: the engine at a bit error rate of {setting.ber:g}, 95 % intervals. "
        "The paper's curves are not published as numbers, nor are their bit error rates.",
        lambda: points_on_curves(panels, x_label=_LENGTH, y_label="goodput", y_top=y_top),
    )


def _figure_4(setting: Setting, points: Points) -> Drawing:
    panel = Panel("any distance", _by_ber(setting, points, "selective-repeat", "Testbed", has_stars=True))
    return Drawing(
        "figure-4-right",
        "Selective repeat: goodput against packet length for several bit error rates",
        "Lines: equation (8); stars: the best lengths by equation (11); points: the engine, 95 % intervals.",
        lambda: points_on_curves([panel], x_label=_LENGTH, y_label="goodput (share of the link)", y_top=1.02),
    )


_LENGTH = "packet length with a header of 20 bytes (bytes)"


def _by_ber(setting: Setting, points: Points, protocol: str, place: str, *, has_stars: bool = False) -> list[Traced]:
    traced = []
    for ber in sorted({*BERS, setting.ber}, reverse=True):
        curve = [(length, goodput(setting, protocol, place, ber, length)) for length in _CURVE]
        simulated = [(float(length), at) for (*where, length), at in points.items() if where == [protocol, place, ber]]
        best = float(arq.best_payload_bytes(ber, header_bytes=HEADER_BYTES)) + HEADER_BYTES
        is_seen = has_stars and best < _CURVE[-1]
        star = (best, goodput(setting, protocol, place, ber, best)) if is_seen else None
        traced.append(Traced(f"BER {ber:.0e}".replace("e-0", "e-"), curve, as_points(simulated), star))
    return traced


def _against_ber(setting: Setting, points: Points) -> Drawing:
    bers = [float(ber) for ber in np.geomspace(1e-8, 3e-4, 60)]
    traced = []
    for length in _SIMULATED:
        curve = [(ber, goodput(setting, "selective-repeat", "Testbed", ber, length)) for ber in bers]
        simulated = as_points([(ber, at) for (_, _, ber, its), at in points.items() if its == length])
        traced.append(Traced(f"{length} bytes", curve, sorted(simulated)))

    return Drawing(
        "figure-4-left",
        "Selective repeat: goodput against bit error rate for several packet lengths",
        "Lines: equation (8); points: the engine, 95 % intervals. Packets with a header of 20 bytes.",
        lambda: points_on_curves(
            [Panel("any distance", traced)], x_label="bit error rate", y_label="goodput (share of the link)", y_top=1.02
        ),
    )
