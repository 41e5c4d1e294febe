"""The section of `docs/validation/bundles.md` on cellular modems, called by `docs/bundles.py`.

Alone, `python docs/cellular_bundle.py`, it writes that section anew and leaves the rest of the page; it takes three minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cellular
import cellular_lines as lines
import cellular_studies
import page
from cellular_studies import Found
from cellular_values import LEO_RATE, MAHIMAHI, of_availability, of_setting, of_starlink, of_streams, of_tcp

from farlink.papers.estimate import Estimate
from farlink.plot.style import COLOURS, MARKERS, name_places, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = "bundles-cellular"

# What is read.
NEEDED = (cellular.MODEMS, cellular.DISH, MAHIMAHI, LEO_RATE)


def main() -> None:
    """Write what the section says, and the picture."""
    page.start(__doc__, *NEEDED)
    with page.steps("bundles", cellular_studies.SCENARIOS, "scenarios") as told:
        found = cellular_studies.study(told)
    page.write("bundles.md", {PICTURE: picture(found)}, only=True, **page_values(found))


def page_values(found: Found) -> page.Values:
    """What the section says."""
    return of_setting(found) | of_availability(found) | of_tcp(found) | of_streams(found) | of_starlink(found)


def picture(found: Found) -> Figure:
    """Goodput by TCP over the modems, and by scheduler beside Starlink."""
    figure, (upper, lower) = new_figure(height_in=6.8, rows=2, is_y_shared=False, is_x_shared=False)
    kinds = {"alone": "four modems, a connection each", "lose": "bundle, lost", "requeue": "bundle, requeued"}
    for place, (key, name) in enumerate(kinds.items()):
        factor = (4 if key == "alone" else 1) / 1e6
        points(upper, [found.transports[tcp, key].mean("goodput_bps", factor) for tcp in lines.TRANSPORTS], place, name)
    name_places(upper, list(lines.TRANSPORTS))
    upper.set_ylabel(f"four modems, {lines.LENGTH_S:g} s a handover:\ngoodput (Mb/s)")
    for place, tcp in enumerate(("SACK", "CUBIC"), start=len(kinds)):
        points(lower, [runs[tcp].mean("goodput_bps", 1e-6) for runs in found.beside.values()], place, tcp)
    short = {"Starlink alone": "Starlink", "the modems alone": "two\nmodems"}
    broken = {name: name.replace("-", "-\n") for name in lines.SCHEDULERS}
    names = [short.get(which, f"{broken[scheduler]}\n{packets}") for which, scheduler, packets in found.beside]
    name_places(lower, names)
    lower.set_ylabel("Starlink and two modems (synthetic):\ngoodput (Mb/s)")
    lower.set_xlabel("scheduler, line_packets")
    lower.set_ylim(bottom=0)
    for ax in (upper, lower):
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False)
    return figure


def points(ax: Axes, found: list[Estimate], place: int, name: str) -> None:
    """Points with their intervals, a little beside those of other names."""
    ax.errorbar(
        [at + 0.12 * (place % 3 - 1) for at in range(len(found))],
        [one.mean for one in found],
        yerr=[one.half_width for one in found],
        color=COLOURS[place],
        marker=MARKERS[place],
        linestyle="none",
        markersize=6.0,
        capsize=3,
        label=name,
    )


if __name__ == "__main__":
    main()
