"""Brodbekier, Mathias and Brandão: effect of channel errors on TCP throughput over satellite links.

The link of figure 1 and table II: 250 ms one way, packets of 1000 bytes, windows and slow-start threshold of 70 packets. The
rate of the link is not printed; see `PAPER.setting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farlink.papers.check import Check, Verdict, claimed, number, rounding
from farlink.papers.curves import curve, estimate, spread
from farlink.papers.estimate import Curve, Estimate, crossing, mean, ratio, scaled
from farlink.papers.item import Drawing, Item, Paper, Workbench
from farlink.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERSIONS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "NewReno", "sack": "SACK"}
PACKET_BYTES = 1000
HEADER_BYTES = 40
PACKET_BITS = 8 * PACKET_BYTES

_BER = "link.channel.ber"
_TRANSPORT = "flow.bulk.transport"


def base(title: str, versions: tuple[str, ...] = tuple(VERSIONS)) -> dict[str, Any]:
    """The paper's link and its TCP versions, without a channel."""
    return {
        "title": f"Brodbekier, {title}",
        "duration_s": 4000,
        "runs": 20,
        "link": {"rate_bps": 1e6, "delay_s": 0.25, "queue_packets": 100},
        "transport": {version: _tcp(version) for version in versions},
        "flow": {"bulk": {"transport": versions[0], "traffic": {"kind": "bulk"}}},
        "grid": {_TRANSPORT: list(versions)},
    }


def _tcp(version: str) -> dict[str, Any]:
    return {
        "kind": "tcp",
        "variant": version,
        "segment_bytes": PACKET_BYTES - HEADER_BYTES,
        "header_bytes": HEADER_BYTES,
        "initial_window_segments": 1,
        "initial_ssthresh_segments": 70,
        "max_window_segments": 70,
        "delayed_ack": True,
    }


def throughput(result: Result, x_path: str, where: dict[str, Any]) -> Curve:
    """What arrives in order with its headers, as a share of the link's rate, against a key of the grid."""
    return scaled(curve(result, x_path, where), PACKET_BYTES / (PACKET_BYTES - HEADER_BYTES))


# Figure 2 -----------------------------------------------------------------------------------------------------------------

_FIGURE_2_BER = [1e-9, 3e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5]


def figure_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput against BER with independent errors."""
    scenario = base("figure 2: independent bit errors")
    scenario["link"]["channel"] = {"kind": "ber", "ber": 0.0}
    scenario["grid"] = {_BER: [0.0, *_FIGURE_2_BER], **scenario["grid"]}
    result = bench.run("figure-2", scenario)
    curves = {version: throughput(result, _BER, {_TRANSPORT: version}) for version in VERSIONS}
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
    heading = "Throughput against bit error rate, independent errors"
    return checks, [Drawing("figure-2", heading, _CAPTION, lambda: _draw_2(lines))]


_DRASTICALLY = "error occurrences affect drastically the performance for BER values above 1e-8"
_CAPTION = (
    "Share of the link's rate, headers counted; means of the runs with 95 % intervals. Grey: what the paper prints in words; "
    "its curves are not published as numbers."
)


def _draw_2(lines: dict[str, Curve]) -> Figure:
    from farlink.plot.curves import Anchor, Line, curves

    drawn = [Line(VERSIONS[version], _as_points(points)) for version, points in lines.items()]
    anchors = [
        Anchor((1e-8, None), "“above 1e-8”"),
        Anchor((1e-7, 0.5), "“half … around 1e-7”"),
    ]
    return curves(drawn, x_label="bit error rate", y_label="throughput (share of the link)", anchors=anchors, y_top=1.0)


def _as_points(points: Curve) -> list[tuple[float, float, float]]:
    return [(x, at.mean, at.half_width) for x, at in points]


# What is said of several figures ------------------------------------------------------------------------------------------

# "Very close", "practically the same" and "lightly worse", as numbers.
_ALIKE = ("reno", "newreno", "sack")
_CLOSE = 0.1
_SLIGHTLY = 0.8


def closeness(item: str, lines: dict[str, Curve], bers: tuple[float, ...], among: tuple[str, ...] = _ALIKE) -> list[Check]:
    """How far the best version lies above the worst at each BER."""
    names = ", ".join(VERSIONS[version] for version in among)
    return [
        claimed(
            item,
            f"best of {names} over the worst, less 1, at BER {power(ber)}",
            "the performance of the different TCP implementations are practically the same",
            spread([dict(lines[version])[ber] for version in among]),
            at_most=_CLOSE,
            rule=f"practically the same: agrees if the best is at most {_CLOSE:.0%} above the worst",
            cause="with windows of a few packets, how several losses of one window are repaired decides",
        )
        for ber in bers
    ]


def _tahoe(item: str, lines: dict[str, Curve], bers: tuple[float, ...]) -> list[Check]:
    checks = []
    for ber in bers:
        at = {version: dict(points)[ber] for version, points in lines.items()}
        checks.append(
            claimed(
                item,
                f"Tahoe over the mean of the others at BER {power(ber)}",
                "except for TCP Tahoe which performs lightly worse",
                ratio(at["tahoe"], mean([at[version] for version in _ALIKE])),
                at_least=_SLIGHTLY,
                at_most=1.0,
                rule=f"lightly worse: agrees between {_SLIGHTLY} and 1",
            )
        )
    return checks


def power(ber: float) -> str:
    """A bit error rate as it is written in a sentence."""
    return f"{ber:.0e}".replace("e-0", "e-")


# Equation (1) -------------------------------------------------------------------------------------------------------------


def equation_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Packet loss at BER 1e-4: by equation (1), and of packets that cross the channel."""
    ber, printed = 1e-4, "0.45"
    lost = 1 - (1 - ber) ** PACKET_BITS
    is_survival = abs(1 - lost - float(printed)) <= rounding(printed)
    verdict = number(Estimate(lost), printed)
    if verdict is Verdict.DIFFERS and is_survival:
        verdict = Verdict.MISPRINT
    note = "equation (1) with n = 8000 bits; agrees within the printed digits"
    note += f"; 0.45 is the probability that a packet survives, 1 - p = {1 - lost:.3f}" if is_survival else ""
    checks = [Check("equation-1", "packet loss at BER 1e-4", float(printed), "formula", Estimate(lost), verdict, note)]

    scenario = base("equation (1): packet loss at BER 1e-4", ("sack",))
    scenario |= {
        "duration_s": 400,
        "transport": {"udp": {"kind": "udp", "header_bytes": 28}},
        "flow": {
            "bulk": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 0.9e6, "payload_bytes": PACKET_BYTES - 28}}
        },
    }
    scenario["link"]["channel"] = {"kind": "ber", "ber": ber}
    del scenario["grid"]
    result = bench.run("equation-1", scenario)
    measured = estimate(result.summary()[0]["loss_fraction"])
    is_equation = number(measured, f"{lost:.2f}") is Verdict.AGREES
    checks.append(
        Check(
            "equation-1",
            "packet loss at BER 1e-4, packets of 1000 bytes over the channel",
            float(printed),
            "packet",
            measured,
            Verdict.MISPRINT if is_equation and is_survival else number(measured, printed),
            f"equation (1) gives {lost:.4f}: a misprint if the channel agrees with the equation within two digits",
        )
    )
    return checks, []


PAPER = Paper(
    key="brodbekier",
    title="Effect of Channel Errors on TCP Throughput over Satellite Links",
    authors="Daniel Brodbekier, Felipe Mathias, João Célio Brandão",
    items=(
        Item("equation-1", "Packet loss by equation (1) at BER 1e-4", 2, equation_1),
        Item("figure-2", "Throughput of four TCP versions against BER, independent errors", 20, figure_2),
        Item("figure-5", "STP, Tahoe and SACK, independent errors and bursts", 0, None, "farlink has no STP"),
    ),
    setting=(
        "The rate of the link is not printed: 1 Mb/s, which a window of 70 packets of 1000 bytes fills (1.12 Mb/s).",
        "A packet is 1000 bytes on the wire: 960 of data and 40 of TCP and IP headers; any wrong bit of the 8000 loses it.",
        "Acknowledgements are delayed (one for two packets), which the printed “half … around 1e-7” asks for.",
        "Throughput counts what is delivered in order with its headers, as a share of the link's rate.",
    ),
)
