"""Figure 6: packets that carry a code which mends one bit."""

from __future__ import annotations

from typing import Any

from farlink.papers.brodbekier.bursts import BERS, CHECKED, Curves, coded_curves
from farlink.papers.brodbekier.figure_5 import MENDED, STP_BERS, stp_curves
from farlink.papers.brodbekier.link import STP_VERSIONS, TRANSPORT, VERSIONS, base, power
from farlink.papers.check import Check, claimed
from farlink.papers.curves import at
from farlink.papers.estimate import as_points, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.plot.curves import Line, curves

_TCP = ("tahoe", "sack")
_STP = ("stp", "stp-window")
_NAMES = VERSIONS | STP_VERSIONS

# Where errors hurt: STP by rate has lost nothing yet where TCP has lost most.
_STP_CHECKED = (1e-5, 1e-4)

# "Significantly improved" and "a marginal improvement", as numbers.
_SIGNIFICANT = 1.5
_MARGINAL = 1.2


def figure_6(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput with and without one-bit correction; the BER is that before the correction."""
    lines = figure_6_curves(bench)
    checks = []
    for version in (*_TCP, *_STP):
        name = _NAMES[version]
        for ber in CHECKED if version in _TCP else _STP_CHECKED:
            mended = {errors: at(lines[version + MENDED, errors], ber) for errors in ("bursts", "independent")}
            plain = {errors: at(lines[version, errors], ber) for errors in ("bursts", "independent")}
            checks += [
                claimed(
                    "figure-6",
                    f"{name}, independent errors: throughput with correction over that without at BER {power(ber)}",
                    "significantly improved in the presence of statistically independent errors",
                    ratio(mended["independent"], plain["independent"]),
                    at_least=_SIGNIFICANT,
                    rule=f"significantly: agrees above {_SIGNIFICANT}",
                    cause=_NOTHING_TO_GAIN if version in _STP else "",
                ),
                claimed(
                    "figure-6",
                    f"{name}, bursts: throughput with correction over that without at BER {power(ber)}",
                    "only a marginal improvement is observed in the presence of burst errors",
                    ratio(mended["bursts"], plain["bursts"]),
                    at_least=1 / _MARGINAL,
                    at_most=_MARGINAL,
                    rule=f"marginal: agrees within a factor of {_MARGINAL} of 1",
                ),
                claimed(
                    "figure-6",
                    f"{name}, correction: throughput with bursts over that with independent errors at BER {power(ber)}",
                    "the opposite occurs when the packets are protected by an error correcting code",
                    ratio(mended["bursts"], mended["independent"]),
                    at_most=1.0,
                    rule="bursts hurt: agrees if the ratio lies below 1 with its interval",
                    cause=_TWO_OF_THEM if ber == max(_STP_CHECKED) else "",
                ),
            ]
    return checks, [_drawing(lines)]


_NOTHING_TO_GAIN = "STP by rate loses only what is lost: without correction it still has most of its 0.96"
_TWO_OF_THEM = (
    "at 1e-4 a packet of 8000 bits has 0.8 wrong ones on average, and two or more independent ones in 19 % of the packets: "
    "more packets than bursts spoil"
)


def figure_6_curves(bench: Workbench, bers: tuple[float, ...] = BERS) -> Curves:
    """Curves of each version, plain and mending one bit in each packet."""
    scenario = base("figure 6: one-bit correction, rate 1/2", _TCP)
    mending: dict[str, Any] = {
        f"{version}{MENDED}": {**scenario["transport"][version], "correction": {"bits": 1}} for version in _TCP
    }
    scenario["transport"] |= mending
    scenario["grid"][TRANSPORT] = [*_TCP, *mending]
    return coded_curves(bench, "1/2", scenario, bers) | stp_curves(bench, STP_BERS if bers == BERS else bers)


def _drawing(lines: Curves) -> Drawing:
    drawn = [
        Line(f"{_NAMES[version]}, {errors}", as_points(lines[version + MENDED, errors]), look, errors == "independent")
        for errors in ("bursts", "independent")
        for look, version in enumerate((*_TCP, *_STP))
    ]

    return Drawing(
        "figure-6",
        "Throughput with one-bit correction in each packet, bursts of the rate 1/2 code",
        "Solid: the decoder's error bursts; dashed: independent errors. All of them mend one bit in each packet; figure 5 has "
        "the same without. The horizontal axis is the bit error rate before the correction. Headers counted, parity not; 95 % "
        "intervals.",
        lambda: curves(drawn, x_label="bit error rate before correction", y_label="throughput (share of the link)", y_top=1.05),
    )
