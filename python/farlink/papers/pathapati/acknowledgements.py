"""How many acknowledgements the receiver puts into one packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.papers.check import Check, claimed
from farlink.papers.estimate import as_points, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.measures import GOODPUT, Measure, measured, value
from farlink.papers.pathapati.path import WORST_BER, reliable, scenario
from farlink.plot.curves import Line
from farlink.plot.lines import lines

if TYPE_CHECKING:
    from farlink.papers.pathapati.measures import Curves

ITEM = "acknowledgements"
PER_MACK = (1, 2, 4, 8, 16, 32, 64)
_BERS = (0.0, 1e-5, WORST_BER)
# The time of a file depends on its worst packet: an interval of 3 % needs many runs.
_RUNS = 600
# Long enough that an acknowledgement waits for its number where packets follow each other: 64 of them take 0.15 s.
_TIMEOUT_S = 0.2
# "Negligible", as a number.
_NEGLIGIBLE = 0.05

BACK = Measure("back_channel_fraction", "load of the way back (share of its rate)", is_log=True)


def acknowledgement_curves(bench: Workbench, bers: tuple[float, ...] = _BERS) -> Curves:
    """Goodput and load of the way back, by acknowledgements in a packet."""
    transports = {f"macks-{count}": reliable(acks_per_mack=count, mack_timeout_s=_TIMEOUT_S) for count in PER_MACK}
    data = scenario("acknowledgements in a packet", transports, bers=bers) | {"runs": _RUNS}
    result = bench.run(ITEM, data)
    return measured(result, transports, GOODPUT, BACK)


def acknowledgements(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """From 1 to 64."""
    curves = acknowledgement_curves(bench)
    checks = []
    for ber in _BERS:
        single = value(curves, "macks-1", GOODPUT, ber)
        for count in PER_MACK[1:]:
            checks.append(
                claimed(
                    ITEM,
                    f"goodput with {count} acknowledgements in a packet over that with 1, BER {ber:g}",
                    "adjusting the number of ACKs aggregated into a single packet: a negligible effect on performance",
                    ratio(value(curves, f"macks-{count}", GOODPUT, ber), single),
                    at_least=1 - _NEGLIGIBLE,
                    at_most=1 + _NEGLIGIBLE,
                    rule=f"negligible: agrees within {_NEGLIGIBLE:.0%}; a round trip of 20 s hides 0.2 s of waiting",
                )
            )
        checks.append(
            claimed(
                ITEM,
                f"load of the way back with 64 acknowledgements in a packet over that with 1, BER {ber:g}",
                "to reduce the overhead incurred, AeroTP aggregates multiple ACKs at the receiver",
                ratio(value(curves, "macks-64", BACK, ber), value(curves, "macks-1", BACK, ber)),
                at_most=0.5,
                rule="reduced: agrees up to half",
            )
        )
    return checks, [
        _drawing("acknowledgements-goodput", "goodput", curves, GOODPUT),
        _drawing("acknowledgements-back", "load of the way back", curves, BACK),
    ]


def _drawing(name: str, words: str, curves: Curves, measure: Measure) -> Drawing:
    drawn = []
    for ber in _BERS:
        single = value(curves, "macks-1", measure, ber)
        points = [(float(count), ratio(value(curves, f"macks-{count}", measure, ber), single)) for count in PER_MACK]
        drawn.append(Line(f"BER {ber:g}", as_points(points)))
    y_label = f"{words} over that with 1 in a packet"

    caption = (
        f"1 MB at 4.416 Mb/s over the paper's path, reliable mode; a packet waits {_TIMEOUT_S:g} s at most. 95 % intervals."
    )
    return Drawing(
        name,
        f"Acknowledgements in a packet: {words}",
        caption,
        lambda: lines(drawn, x_label="acknowledgements in a packet, at most", y_label=y_label, x_ticks=PER_MACK),
    )
