"""A packet length by the short-term BER that the receiver measures: sections 3.3.3 and 5.

The paper computes the short-term BER from measured power afterwards, and wishes for it in real time. A receiver that does so
can tell its sender, but a report takes the way back. So the sender knows the error rate without noise and late; between the
genie, who knows it in time, and the acknowledgements, which tell it late and by few losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farlink.papers.check import Check, claimed
from farlink.papers.epple.adaptive import ACKNOWLEDGED_LATE, RULES, Gains, draw_gains, gains
from farlink.papers.epple.fading import STAND_IN
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL_S = 2.5e-4
"""Between two measurements: 4 kHz, of the "several kHz" of section 2.2."""
BERS = (1e-5, 1e-4)


def rules(setting: Setting, place: str) -> Mapping[str, Mapping[str, Any]]:
    """The sources of the error rate that are compared.

    Parameters
    ----------
    setting
        The link.
    place
        How far away; a report takes the propagation delay.

    Returns
    -------
    Mapping
        Keys of ``adaptive_length`` by the name of the source.
    """
    measured = {
        "estimate": "measured",
        "measurement_delay_s": setting.delay_s(place),
        "measurement_interval_s": INTERVAL_S,
    }
    return {
        "genie": RULES["genie, equation (11)"],
        "measured, equation (11)": {**measured, "rule": "optimal"},
        "measured, power": {**measured, "rule": "power", "exponent": 0.5, "scale": 4.47},
        "acknowledgements, power": RULES["estimate, power"],
    }


def measured_ber(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Lengths by a measured error rate against the best fixed length, with selective repeat over every channel."""
    bers = (1e-5,) if bench.quick else BERS
    cases = {
        (place, ber): gains(bench, setting, place, "sr", ber, kinds=rules(setting, place), use="measured BER")
        for place in PLACES
        for ber in bers
    }
    checks = [check for (place, ber), found in cases.items() for check in _checks(place, ber, found)]
    return checks, [_drawing(cases)]


def _checks(place: str, ber: float, found: Gains) -> list[Check]:
    rule = (
        f"agrees if the gain lies above 0 with its interval; the best fixed length has {found.best_bytes} bytes; ratios on "
        f"{len(found.best)} traces; {STAND_IN}"
    )
    return [
        claimed(
            "measured-ber",
            f"{place} ({STAND_IN}), selective repeat, long-term BER {ber:g}: goodput with a length by {name} over that with "
            "the best fixed one, less 1",
            "calculating the short-term BER in real time would be desirable for adjusting the packet length",
            found.of(name),
            at_least=0.0,
            rule=rule,
            cause=_CAUSES["acknowledgements" if name.startswith("acknowledgements") else "measured"],
        )
        for name in found.adaptive
    ]


_CAUSES = {
    "measured": "a report is as old as the way back, and the fades are shorter",
    "acknowledgements": ACKNOWLEDGED_LATE,
}


def _drawing(cases: Mapping[tuple[str, float], Gains]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import legend_above, new_figure

        figure, (axes,) = new_figure()
        draw_gains(axes, cases, next(iter(cases.values())).adaptive)
        axes.set_ylabel("gain over the best fixed length (%)")
        legend_above(figure, axes, columns=2)
        return figure

    return Drawing(
        "measured-ber",
        f"Packet lengths by a measured short-term BER, {STAND_IN}",
        "Selective repeat, by channel and long-term BER; mean and 95 % interval of paired ratios over the same traces. A "
        "measurement is taken every 0.25 ms and arrives after the propagation delay.",
        draw,
    )
