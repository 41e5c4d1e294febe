"""Figure 5: STP with rate congestion control against Tahoe and SACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.papers.brodbekier.bursts import CHECKED, Curves, coded_curves
from farlink.papers.brodbekier.link import STP_VERSIONS, TRANSPORT, VERSIONS, as_points, base, power, stp
from farlink.papers.check import Check, claimed, number
from farlink.papers.curves import at
from farlink.papers.estimate import ratio
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RIVALS = ("tahoe", "sack")
_DRAWN = ("stp", "stp-window")

# "Largely outperforms", and where the printed 14 % stands.
_LARGELY = 2.0
_PRINTED_BER = 1e-4
_PRINTED_SHARE = "0.14"


def figure_5(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Throughput of STP with independent errors and with the bursts of the rate 1/2 code."""
    lines = figure_5_curves(bench)
    checks = []
    for errors in ("independent", "bursts"):
        for version in _RIVALS:
            for ber in CHECKED:
                checks.append(
                    claimed(
                        "figure-5",
                        f"STP over {VERSIONS[version]}, {_WORDS[errors]}: throughput at BER {power(ber)}",
                        "STP largely outperforms the other protocols, due to the rate congestion control",
                        ratio(at(lines["stp", errors], ber), at(lines[version, errors], ber)),
                        at_least=_LARGELY if ber > CHECKED[0] else 1.0,
                        rule=f"largely: agrees above {_LARGELY:g}, and at 1e-7, where the others lose half, above 1",
                    )
                )
    return checks + _at_the_printed_rate(lines), [_drawing(lines)]


def figure_5_curves(bench: Workbench) -> Curves:
    """Curves of STP, of STP with a window, and of the TCP versions as figure 3 has them."""
    scenario = base("figure 5: STP by rate, rate 1/2", _RIVALS)
    scenario["transport"] = {version: stp(version) for version in _DRAWN}
    scenario["flow"]["bulk"]["transport"] = _DRAWN[0]
    scenario["grid"][TRANSPORT] = list(_DRAWN)
    others = coded_curves(bench, "1/2", base("rate 1/2: bursts against independent errors"))
    return {key: points for key, points in others.items() if key[0] in _RIVALS} | coded_curves(bench, "1/2", scenario)


_WORDS = {"independent": "independent errors", "bursts": "bursts"}
