"""The style of all figures: colours that colour-blind readers can distinguish, dark text on white, units on the axes.

A figure is as wide as its text can be read on a telephone: `WIDTH_IN`, with no text smaller than `TEXT_PT`.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farlink import units
from farlink.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from numpy import float64
    from numpy.typing import NDArray

INK = "#1b2733"
MUTED = "#5b6b7b"
RULE = "#dfe5ea"

# Okabe and Ito (2008), without its yellow, which is too pale on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#1b2733", "#7f6bb0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

WIDTH_IN = 5.5
"""Width of a figure."""
TEXT_PT = 9.5
"""Size of the smallest text of a figure that is `WIDTH_IN` wide."""
NARROW_PX = 400
"""Width of a telephone, at which no text of a figure is smaller than `LEAST_TEXT_PX`."""
LEAST_TEXT_PX = 9.0
MOST_SERIES = 6
"""More lines than this in one axes are not told apart: they get panels of their own."""

# Pixels per point of a figure on a desktop.
_PX_PER_PT = 1.75
_WORDS_IN_LEGEND = 52

LOOK = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": TEXT_PT,
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
    "legend.fontsize": TEXT_PT,
    "legend.labelcolor": INK,
    "text.color": INK,
    "lines.linewidth": 1.6,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
}


def new_figure(
    height_in: float = 3.9, width_in: float = WIDTH_IN, rows: int = 1, is_y_shared: bool = True, is_x_shared: bool = True
) -> tuple[Figure, list[Axes]]:
    """An empty figure with `rows` axes above each other."""
    matplotlib = require("matplotlib", "a figure")
    require("matplotlib.figure", "a figure")
    with matplotlib.rc_context(LOOK):
        figure = figure_class()(figsize=(width_in, height_in), layout="constrained")
        axes = figure.subplots(rows, 1, sharex=is_x_shared, sharey=is_y_shared, squeeze=False)[:, 0]
        for ax in axes:
            ax.grid(True, which="major")
    return figure, list(axes)


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an inline SVG element whose identifiers start with `name`; the same bytes every time."""
    matplotlib = require("matplotlib", "a figure")
    text = io.StringIO()
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": name}):
        vars(figure)["is_first_for_layout"] = True
        try:
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        finally:
            del vars(figure)["is_first_for_layout"]
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    width, height = (round(_PX_PER_PT * 72 * inches) for inches in figure.get_size_inches())
    svg = re.sub(r'^(<svg [^>]*?)width="[^"]*pt" height="[^"]*pt"', rf'\1width="{width}" height="{height}"', svg, count=1)
    return svg.replace("<svg ", '<svg role="img" ', 1)


def picture_svg(figure: Figure, name: str) -> str:
    """The figure as an SVG file for a page of the documentation, with a white background on any page."""
    return to_svg(figure, name).replace("<svg ", '<svg style="background: white" ', 1)


def smallest_text_pt(figure: Figure) -> float:
    """Size of the smallest text of a figure."""
    from matplotlib.text import Text

    sizes = [
        float(text.get_fontsize())
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip()
    ]
    return min((size for size in sizes if size > 0), default=TEXT_PT)


def least_width_px(figure: Figure, svg: str | None = None) -> int:
    """Width below which a text of the figure would be smaller than `LEAST_TEXT_PX`.

    In an element of `to_svg` each text has its size; to ask the figure for it makes matplotlib place every tick anew.
    """
    sizes = [float(size) for size in re.findall(r"font-size: ([0-9.]+)px", svg or "")]
    smallest = min(sizes, default=0.0) or smallest_text_pt(figure)
    return math.ceil(LEAST_TEXT_PX * 72 * float(figure.get_size_inches()[0]) / smallest)


def error_bars(half_widths: Iterable[float]) -> list[float] | None:
    """Half-widths to draw, with 0 for missing ones. None, for no bars and none in the legend, if all are missing."""
    known = [half if math.isfinite(half) else 0.0 for half in half_widths]
    return known if any(known) else None


def needs_log(values: Iterable[float]) -> bool:
    """Whether values are drawn on a logarithmic axis: those above 0 span a factor of a hundred, and there are at least four."""
    positive = sorted(value for value in values if math.isfinite(value) and value > 0)
    return len(positive) >= 4 and positive[-1] >= 100 * positive[0]


def name_places(ax: Axes, names: Sequence[str]) -> None:
    """Name the places 0, 1, ... of the horizontal axis; upright where the names would run into each other."""
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    # A letter is about six tenths as wide as high; four fifths of the figure are axes.
    is_upright = longest * 0.62 * TEXT_PT * len(names) > 0.8 * 72 * WIDTH_IN
    shown = [name.replace("-\n", "-").replace("\n", " ") for name in names] if is_upright else names
    ax.set_xticks(range(len(names)), shown, rotation=90 if is_upright else 0)


def name_rows(ax: Axes, names: Sequence[str], x_label: str) -> None:
    """Name the rows 0, 1, ... from the top, on a horizontal axis from 0."""
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.grid(False, axis="y")
    # Half a row above the first and below the last, however many they are.
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel(x_label)


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


def legend_above(figure: Figure, ax: Axes, columns: int = 4) -> float:
    """A legend above the axes, left-aligned, outside the data, with as many columns as fit. Set the figure's title before.

    Returns
    -------
    float
        Its height, inches; 0 without names.
    """
    handles, names = ax.get_legend_handles_labels()
    if not names:
        return 0.0
    wrapped = [textwrap.fill(name, _WORDS_IN_LEGEND) for name in names]
    look: dict[str, Any] = {"fontsize": TEXT_PT, "frameon": False, "columnspacing": 1.4, "handlelength": 1.8}
    # The layout would set a legend of the figure and its title, or the legends of two panels, on top of each other.
    is_titled = bool(figure.get_suptitle()) or bool(figure.legends) or (len(figure.axes) > 1 and ax is not figure.axes[0])
    room_px = (figure.get_size_inches()[0] - (0.85 if is_titled else 0.1)) * figure.dpi
    for count in range(min(columns, len(names)), 0, -1):
        if is_titled:
            legend = ax.legend(handles, wrapped, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=count, **look)
        else:
            legend = figure.legend(handles, wrapped, loc="outside upper left", ncols=count, **look)
        width_px, height_px = _size_px(figure, legend)
        if count == 1 or width_px <= room_px:
            break
        legend.remove()
    return height_px / figure.dpi


def _size_px(figure: Figure, legend: Legend) -> tuple[float, float]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    extent = legend.get_window_extent(FigureCanvasAgg(figure).get_renderer())  # type: ignore[no-untyped-call]
    return float(extent.width), float(extent.height)


@cache
def figure_class() -> type[Figure]:
    """The class of every figure."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    class PlainFigure(Figure):
        """A figure that notebooks show without pyplot, and whose logarithmic axes have no raised figures."""

        # matplotlib draws a figure twice to save it: without output, for its layout, and as laid out.
        is_first_for_layout = False

        def draw(self, renderer: Any) -> None:
            for ax in (part for panel in self.axes for part in (panel, *panel.child_axes)):
                for axis in (ax.xaxis, ax.yaxis):
                    _name_plainly(axis)
            engine = self.get_layout_engine()
            if isinstance(engine, ConstrainedLayoutEngine):  # a placeholder where the layout is done
                engine.execute(self)
                is_folded = _fold_labels(self, renderer)
                if self.is_first_for_layout:
                    if is_folded:
                        engine.execute(self)
                    return
            super().draw(renderer)

        def _repr_svg_(self) -> Any:
            return to_svg(self, "figure")

    return PlainFigure


def _fold_labels(figure: Figure, renderer: Any) -> bool:
    """Fold the names of axes that are longer than there is room. Returns whether one was."""
    is_folded = False
    for ax in figure.axes:
        for label, side, start in ((ax.xaxis.label, "width", "x0"), (ax.yaxis.label, "height", "y0")):
            middle, whole = getattr(ax.bbox, start) + getattr(ax.bbox, side) / 2, getattr(figure.bbox, side)
            room = 2 * min(middle, whole - middle)
            if side == "height" and len(figure.axes) > 1:
                # Not into the axes above and below.
                room = min(room, 1.1 * ax.bbox.height)
            length = getattr(label.get_window_extent(renderer), side)
            if length > room and "\n" not in label.get_text():
                letters = len(label.get_text())
                label.set_text(textwrap.fill(label.get_text(), math.ceil(letters / math.ceil(length / room)) + 4))
                is_folded = True
    return is_folded


def _name_plainly(axis: Axis) -> None:
    """Ticks as 1e-7, not as a power of ten whose raised exponent is a third smaller than the text."""
    from matplotlib.ticker import LogFormatterMathtext

    for get, put in (
        (axis.get_major_formatter, axis.set_major_formatter),
        (axis.get_minor_formatter, axis.set_minor_formatter),
    ):
        formatter = get()
        if isinstance(formatter, LogFormatterMathtext) and not isinstance(formatter, _plain_formatter()):
            put(_plain_formatter()(labelOnlyBase=formatter.labelOnlyBase, minor_thresholds=formatter.minor_thresholds))


@cache
def _plain_formatter() -> type[Any]:
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return units.show(float(x)) if super().__call__(x, pos) else ""

    return Plain
