"""Figure 2: throughput with independent errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from farlink.papers.brodbekier.link import (
    ALIKE,
    BER,
    STP_VERSIONS,
    TRANSPORT,
    VERSIONS,
    base,
    closeness,
    power,
    stp,
    throughput,
)
from farlink.papers.check import Check, claimed
from farlink.papers.estimate import Curve, as_points, crossing, mean, ratio
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "Lightly worse", as a number.
_SLIGHTLY = 0.8

_FIGURE_2_BER = [1e-9, 3e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 1e-4]

# Of the versions of section III, the one without a line of its own in the text on figure 2.
_STP = "stp-tcp"
# "Very similar", as a factor.
_SIMILAR = 1.5


def figure_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput against BER with independent errors."""
    scenario = base("figure 2: independent bit errors")
    scenario["link"]["channel"] = {"kind": "ber", "ber": 0.0}
    scenario["transport"][_STP] = stp(_STP)
    scenario["grid"] = {BER: [0.0, *_FIGURE_2_BER], TRANSPORT: list(scenario["transport"])}
    result = bench.run("figure-2", scenario)
    curves = {version: throughput(result, BER, {TRANSPORT: version}) for version in scenario["transport"]}
    free = {version: points[0][1] for version, points in curves.items()}
    lines = {version: points[1:] for version, points in curves.items()}

    checks = []
    for version, name in VERSIONS.items():
        begins, half = (crossing(lines[version], share * free[version].mean) for share in (0.9, 0.5))
        left = ratio(dict(lines[version])[1e-6], free[version])
        checks += [
            claimed(
                "figure-2",
                f"{name}: BER at which a tenth of the error-free throughput is lost",
                _DRASTICALLY,
                begins,
                at_least=0.5e-8,
                at_most=2e-8,
                rule="the fall begins there: agrees within a factor of two of 1e-8",
            ),
            claimed(
                "figure-2",
                f"{name}: share of the error-free throughput at BER 1e-6",
                _DRASTICALLY,
                left,
                at_most=0.25,
                rule="drastically: agrees if at most a quarter is left two decades above 1e-8",
            ),
            claimed(
                "figure-2",
                f"{name}: BER at which the throughput is half of the error-free one",
                "throughput reducing to half when BER is around 1e-7",
                half,
                at_least=0.5e-7,
                at_most=2e-7,
                rule="around: agrees within a factor of two of 1e-7",
            ),
        ]
    checks += closeness("figure-2", lines, (1e-8, 1e-7, 1e-6, 1e-5))
    checks += _tahoe("figure-2", lines, (1e-7, 1e-6))
    checks += _stp("figure-2", lines, (1e-8, 1e-7, 1e-6))
    heading = "Throughput against bit error rate, independent errors"
    return checks, [Drawing("figure-2", heading, _CAPTION, lambda: _draw_2(lines))]


_DRASTICALLY = "error occurrences affect drastically the performance for BER values above 1e-8"
_CAPTION = (
    "Share of the link's rate, headers counted; means of the runs with 95 % intervals. Grey: what the paper prints in words; "
    "its curves are not published as numbers."
)


def _draw_2(lines: dict[str, Curve]) -> Figure:
    from farlink.plot.curves import Anchor, Line, curves

    names = VERSIONS | STP_VERSIONS
    drawn = [Line(names[version], as_points(points)) for version, points in lines.items()]
    anchors = [
        Anchor((1e-8, None), "“above 1e-8”"),
        Anchor((1e-7, 0.5), "“half … around 1e-7”"),
    ]
    return curves(drawn, x_label="bit error rate", y_label="throughput (share of the link)", anchors=anchors, y_top=1.05)


def _tahoe(item: str, lines: dict[str, Curve], bers: tuple[float, ...]) -> Iterator[Check]:
    for ber in bers:
        at = {version: dict(points)[ber] for version, points in lines.items()}
        yield claimed(
            item,
            f"Tahoe over the mean of the others at BER {power(ber)}",
            "except for TCP Tahoe which performs lightly worse",
            ratio(at["tahoe"], mean([at[version] for version in ALIKE])),
            at_least=_SLIGHTLY,
            at_most=1.0,
            rule=f"lightly worse: agrees between {_SLIGHTLY} and 1",
        )


def _stp(item: str, lines: dict[str, Curve], bers: tuple[float, ...]) -> Iterator[Check]:
    for ber in bers:
        at = {version: dict(points)[ber] for version, points in lines.items()}
        yield claimed(
            item,
            f"STP without rate control over the mean of Reno, NewReno and SACK at BER {power(ber)}",
            "congestion control is very similar to the TCP standard mechanism",
            ratio(at[_STP], mean([at[version] for version in ALIKE])),
            at_least=1 / _SIMILAR,
            at_most=_SIMILAR,
            rule=f"very similar: agrees within a factor of {_SIMILAR}",
        )
