"""Figures 3 and 4: throughput with the bursts of a Viterbi decoder, against independent errors of the same BER."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from farlink.channels import coding
from farlink.papers.brodbekier.link import TRANSPORT, VERSIONS, base, closeness, power, throughput
from farlink.papers.check import Check, claimed
from farlink.papers.curves import at
from farlink.papers.estimate import Curve, as_points, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.plot.curves import Line, curves

# "The Viterbi decoder data window length was set as five times the value of the code constraint length": neither less nor more.
RATE_1_2 = {"kind": "convolutional", "generators": "171,133", "decoder": "serial"}
RATE_3_4 = {**RATE_1_2, "rate": "3/4"}
CODES = {"1/2": RATE_1_2, "3/4": RATE_3_4}

# Bit error rates that are aimed at, and those of them that checks look at.
BERS = (1e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 1e-4)
CHECKED = (1e-7, 1e-6, 1e-5)

# Error events to play.
_EVENTS = 2000
# Bits to see them in by plain simulation; what is rarer is found by importance sampling.
_MOST_BITS = 2e7

_ERRORS = "link.coding.errors"
_EBN0 = "link.coding.ebn0_db"

# Curves by transport and kind of errors ("bursts", "independent").
Curves = dict[tuple[str, str], Curve]

# "Very similar", as a number.
_SIMILAR = 0.2


def figure_3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput with bursts of the rate 1/2 code."""
    lines = coded_curves(bench, "1/2", base("rate 1/2: bursts against independent errors"))
    return [*_checks("figure-3", lines)], [_drawing("figure-3", "1/2", lines)]


def figure_4(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput with bursts of the rate 3/4 code, also against that of figure 3."""
    lines = coded_curves(bench, "3/4", base("rate 3/4: bursts against independent errors"))
    others = coded_curves(bench, "1/2", base("rate 1/2: bursts against independent errors"))
    checks = [*_checks("figure-4", lines)]
    for version, name in VERSIONS.items():
        for ber in CHECKED:
            share = ratio(at(lines[version, "bursts"], ber), at(others[version, "bursts"], ber))
            checks.append(
                claimed(
                    "figure-4",
                    f"{name}: throughput with bursts of rate 3/4 over that of rate 1/2 at BER {power(ber)}",
                    "these two set of curves are very similar",
                    share,
                    at_least=1 - _SIMILAR,
                    at_most=1 / (1 - _SIMILAR),
                    cause="the likeliest error events of rate 3/4 have 42 / 8 = 5.25 wrong bits, those of rate 1/2 have "
                    "36 / 11 = 3.27 (distance spectra): at the same bit error rate, rate 3/4 makes fewer of "
                    "them, so it loses fewer packets",
                    rule=f"very similar: agrees if the lower is at least {1 - _SIMILAR:.0%} of the higher",
                )
            )
    return checks, [_drawing("figure-4", "3/4", lines)]


def coded_curves(bench: Workbench, rate: str, scenario: dict[str, Any], bers: Iterable[float] = BERS) -> Curves:
    """Run transports over a coded link, with bursts and with independent errors, against the BER measured at the decoder."""
    code = {"modulation": "bpsk", "decision": "soft", "code": CODES[rate]}
    at_db = [coding.ebn0_for_ber(code, ber) for ber in bers]
    table = {**code, "effort": {"events": int(bench.share(_EVENTS)), "max_bits": _MOST_BITS, "seed": bench.seed}}
    scenario["link"]["coding"] = {**table, "ebn0_db": at_db[0], "errors": "bursts"}
    scenario["grid"] = {_EBN0: at_db, _ERRORS: ["bursts", "independent"], **scenario["grid"]}
    result = bench.run(f"rate-{rate.replace('/', '-')}-{'-'.join(scenario['grid'][TRANSPORT])}", scenario)
    measured = {ebn0_db: coding.played_ber(table, ebn0_db) for ebn0_db in at_db}
    return {
        (transport, errors): [
            (measured[ebn0_db], at) for ebn0_db, at in throughput(result, _EBN0, {TRANSPORT: transport, _ERRORS: errors})
        ]
        for transport in scenario["grid"][TRANSPORT]
        for errors in ("bursts", "independent")
    }


def _checks(item: str, lines: Curves) -> Iterator[Check]:
    for version, name in VERSIONS.items():
        for ber in CHECKED:
            share = ratio(at(lines[version, "bursts"], ber), at(lines[version, "independent"], ber))
            yield claimed(
                item,
                f"{name}: throughput with bursts over that with independent errors at BER {power(ber)}",
                "TCP has a better performance in the presence of burst errors",
                share,
                at_least=1.0,
                rule="better: agrees if the ratio lies above 1 with its interval",
            )
    bursts = {version: lines[version, "bursts"] for version in VERSIONS}
    yield from closeness(
        item, bursts, CHECKED, tuple(VERSIONS), "the throughputs reached by all the TCP versions are very close"
    )


def _drawing(item: str, rate: str, lines: Curves) -> Drawing:
    drawn = [
        Line(f"{name}, {errors}", as_points(lines[version, errors]), look, errors == "independent")
        for errors in ("bursts", "independent")
        for look, (version, name) in enumerate(VERSIONS.items())
    ]

    return Drawing(
        item,
        f"Throughput against bit error rate, bursts of the (171, 133) code at rate {rate}",
        "Solid: the decoder's error bursts; dashed: independent errors of the same bit error rate. Headers counted, 95 % "
        "intervals. The paper's curves are not published as numbers.",
        lambda: curves(drawn, x_label="bit error rate after decoding", y_label="throughput (share of the link)", y_top=1.05),
    )
