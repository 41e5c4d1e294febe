"""Pictures of `docs/bundles.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bundle_studies as studies
import numpy as np
from bundle_studies import Cell, Runs
from bundle_tables import predicted_bps

from farlink.models.multilink.windowed_bundle import WindowedBundle, goodput_bps
from farlink.papers.estimate import Estimate
from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of_drops(drops: studies.Drops) -> Figure:
    """Goodput against the time between drops of a line."""
    figure, axes = new_figure(height_in=6.4, rows=2)
    minutes = [up_s / 60 for up_s in studies.UP_TIMES_S]
    lost = {None: "lost", studies.PATIENCE_S: f"lost, patience {studies.PATIENCE_S} s"}
    requeued = {None: "requeued", studies.PATIENCE_S: f"requeued, patience {studies.PATIENCE_S} s"}
    for ax, variant in zip(axes, studies.VARIANTS, strict=True):
        place = 0
        for on_drop, names in (("lose", lost), ("requeue", requeued)):
            for patience_s, name in names.items():
                found = [drops[variant, up_s, on_drop, patience_s].mean("goodput_bps") for up_s in studies.UP_TIMES_S]
                ax.errorbar(
                    minutes,
                    [one.mean / 1000 for one in found],
                    yerr=[one.half_width / 1000 for one in found],
                    color=COLOURS[place],
                    marker=MARKERS[place],
                    markersize=5.0,
                    capsize=3,
                    linestyle="-" if patience_s else "--",
                    label=name,
                )
                place += 1
        said = [(minute, bps) for minute, up_s in zip(minutes, studies.UP_TIMES_S, strict=True) if (bps := predicted_bps(up_s))]
        ax.plot([x for x, _ in said], [y / 1000 for _, y in said], color=COLOURS[6], linestyle=":", label="eq. (36), 60 s")
        ax.set(xscale="log", ylabel=f"{'Reno' if variant == 'reno' else 'SACK'}: goodput (kbit/s)")
        ax.set_ylim(bottom=0)
        ax.set_xticks(minutes, [f"{one:g}" for one in minutes])
        ax.xaxis.set_tick_params(which="minor", size=0)
    axes[-1].set_xlabel("mean time up of a line (min)")
    legend_above(figure, axes[0], columns=3)
    return figure


def picture_of_windows(windows: dict[Cell, Estimate]) -> Figure:
    """Goodput against the window, model and engine."""
    lengths = (300, 1500)
    figure, axes = new_figure(height_in=6.4, rows=2, is_y_shared=False)
    span = np.geomspace(1, 48, 200)
    for ax, length in zip(axes, lengths, strict=True):
        for place, lines in enumerate(lines for lines in studies.LINE_COUNTS if lines != 6):
            model = Cell(lines, 3, length, 1, True).model
            bundle = WindowedBundle(lines, model.rate_bps, length, span, line_packets=3, delay_s=model.delay_s, arq=model.arq)
            ax.plot(span, goodput_bps(bundle) / 1000, color=COLOURS[place], linewidth=1)
            chosen = {
                cell.window: estimate for cell, estimate in windows.items() if cell == Cell(lines, 3, length, cell.window, True)
            }
            ax.plot(
                list(chosen),
                [one.mean / 1000 for one in chosen.values()],
                MARKERS[place],
                color=COLOURS[place],
                label=f"{lines} line{'s' * (lines > 1)}",
            )
        ax.set(xscale="log", yscale="log", ylabel=f"{length} bytes: goodput (kbit/s)")
        ax.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        ax.yaxis.set_tick_params(which="minor", size=0, labelsize=0)
    ticks = (1, 2, 4, 8, 16, 33)
    axes[-1].set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes[-1].xaxis.set_tick_params(which="minor", size=0)
    axes[-1].set_xlabel("window (packets)")
    legend_above(figure, axes[0])
    return figure


def picture_of_fragments(cuts: dict[studies.CutKey, tuple[Runs, Runs]]) -> Figure:
    """Delay of single packets against frame errors."""
    figure, (ax,) = new_figure()
    for place, lines in enumerate(dict.fromkeys(lines for lines, _, _ in cuts)):
        for packets, name, style in (("whole", "whole", "--"), ("fragmented", "fragments", "-")):
            found = [cuts[lines, loss, packets][1].mean("delay_mean_s") for loss in studies.LOSSES]
            ax.errorbar(
                [100 * loss for loss in studies.LOSSES],
                [one.mean for one in found],
                yerr=[one.half_width for one in found],
                color=COLOURS[place],
                marker=MARKERS[place],
                markerfacecolor="white" if packets == "whole" else None,
                markersize=5.0,
                capsize=3,
                linestyle=style,
                label=f"{lines} lines, {name}",
            )
    ax.set(xlabel="frames that are bad at first (%)", ylabel="delay of a single packet (s)")
    ax.set_ylim(bottom=0)
    legend_above(figure, ax, columns=3)
    return figure
