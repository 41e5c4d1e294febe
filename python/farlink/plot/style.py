"""The look of every figure: colours that colour-blind readers tell apart, dark text on white, units on the axes."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farlink.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy import float64
    from numpy.typing import NDArray

INK = "#1b2733"
MUTED = "#5b6b7b"
RULE = "#dfe5ea"

# Okabe and Ito (2008), without its yellow, which is too pale on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#1b2733", "#7f6bb0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

LOOK = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "text.color": INK,
    "lines.linewidth": 1.6,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
}


def new_figure(
    height_in: float = 3.9, width_in: float = 7.6, rows: int = 1, is_y_shared: bool = True, is_x_shared: bool = True
) -> tuple[Figure, list[Axes]]:
    """An empty figure with `rows` axes above each other."""
    matplotlib = require("matplotlib", "a figure")
    require("matplotlib.figure", "a figure")
    with matplotlib.rc_context(LOOK):
        figure = _notebook_figure()(figsize=(width_in, height_in), layout="constrained")
        axes = figure.subplots(rows, 1, sharex=is_x_shared, sharey=is_y_shared, squeeze=False)[:, 0]
        for ax in axes:
            ax.grid(True, which="major")
    return figure, list(axes)


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an inline SVG element whose identifiers start with `name`; the same bytes every time."""
    matplotlib = require("matplotlib", "a figure")
    text = io.StringIO()
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(
        r'^<svg ([^>]*?)width="[^"]*"', r'<svg role="img" \1', re.sub(r'height="[^"]*pt" ', "", svg, count=1), count=1
    )


def thin(time: NDArray[float64], value: NDArray[float64], buckets: int = 1500) -> tuple[NDArray[float64], NDArray[float64]]:
    """At most four points for each of `buckets` spans of time: first, lowest, highest, last; peaks survive."""
    import numpy as np

    if len(time) <= 4 * buckets:
        return time, value
    edges = np.searchsorted(time, np.linspace(time[0], time[-1], buckets + 1))
    kept: set[int] = set()
    for start, end in pairwise(edges):
        if end > start:
            inside = value[start:end]
            kept.update((int(start), int(start + inside.argmin()), int(start + inside.argmax()), int(end - 1)))
    index = np.array(sorted(kept))
    return time[index], value[index]


def legend_above(figure: Figure, ax: Axes, columns: int = 4) -> None:
    """A legend above the axes, left-aligned, outside the data. Set the figure's title before."""
    handles, names = ax.get_legend_handles_labels()
    if names:
        look: dict[str, Any] = {"ncols": columns, "fontsize": 9.5, "frameon": False}
        if figure.get_suptitle():
            # The layout would set a legend of the figure and its title on top of each other.
            ax.legend(handles, names, loc="lower left", bbox_to_anchor=(-0.02, 1.0), **look)
        else:
            figure.legend(handles, names, loc="outside upper left", **look)


def _notebook_figure() -> type[Figure]:
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that notebooks show without pyplot."""

        def _repr_svg_(self) -> Any:
            return to_svg(self, "figure")

    return NotebookFigure
