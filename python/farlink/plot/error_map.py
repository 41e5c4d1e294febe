"""How far predictions are off, over two keys: a panel per model and setting, a cell per point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from farlink.extras import require
from farlink.plot.style import INK, LOOK, MUTED, TEXT_PT, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

# Bounds of the classes: how many times too long or too short a prediction is.
FACTORS = (1.1, 1.25, 2.0)
# From far too short, blue, to far too long, orange: colour-blind readers can distinguish these colours.
_COLOURS = ("#1a5a96", "#6ba3d0", "#c6dcee", "#f6f6f4", "#fbdcb8", "#f0a050", "#b8530a")
_LIGHT_TEXT = {0, 6}
_ROW_IN, _PANEL_FRAME_IN = 0.185, 0.36


def error_maps(
    ratios: Mapping[str, Mapping[str, ArrayLike]],
    *,
    x_values: Sequence[str],
    y_values: Sequence[str],
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw the ratio of predictions to true values.

    Parameters
    ----------
    ratios
        By row of panels and by column: prediction over truth, one row for each of `y_values` from below, one column for each of
        `x_values`; NaN where there is no prediction. A panel of NaN only is drawn empty.
    x_values, y_values
        Names of the points.
    x_label, y_label
        Quantities with their units.
    """
    matplotlib = require("matplotlib", "a figure")
    names = list(ratios)
    columns = list(next(iter(ratios.values())))
    panel_in = _ROW_IN * len(y_values) + _PANEL_FRAME_IN
    figure, _ = new_figure(height_in=panel_in * len(names) * len(columns) + 1.5)
    figure.clear()
    with matplotlib.rc_context(LOOK):
        # One below the other, because side by side their numbers would be too small to read.
        grid = figure.subplots(len(names) * len(columns), 1, sharex=True, sharey=True).reshape(len(names), len(columns))
        for row, name in enumerate(names):
            for column, setting in enumerate(columns):
                ax = grid[row, column]
                _panel(ax, np.asarray(ratios[name][setting], dtype=np.float64))
                ax.set_title(name, loc="left", pad=3)
                ax.set_title(setting, loc="right", fontweight="normal", fontsize=TEXT_PT, color=MUTED, pad=3)
                ax.set_yticks(range(len(y_values)), y_values)
                ax.set_xticks(range(len(x_values)), x_values, rotation=90)
        figure.supxlabel(x_label, color=INK)
        figure.supylabel(y_label, color=INK)
        _key(figure)
    return figure


def classes(ratios: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Class of each ratio, from 0, far too short, to 6, far too long; 3 is within the least factor.

    Examples
    --------
    >>> classes([0.4, 0.85, 1.0, 1.2, 3.0])
    array([0, 2, 3, 4, 6])
    """
    edges = [-math.log(factor) for factor in reversed(FACTORS)] + [math.log(factor) for factor in FACTORS]
    return np.digitize(np.log(np.asarray(ratios, dtype=np.float64)), edges)


def _panel(ax: Axes, ratios: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    from matplotlib.colors import ListedColormap

    ax.grid(False)
    ax.tick_params(length=0, pad=2)
    known = np.isfinite(ratios)
    found = classes(np.where(known, ratios, 1.0))
    shown = np.ma.masked_where(~known, found)
    ax.pcolormesh(
        shown, cmap=ListedColormap(_COLOURS), vmin=-0.5, vmax=len(_COLOURS) - 0.5, edgecolors="white", linewidth=0.6
    ).set_transform(_shift(ax))
    ax.set(xlim=(-0.5, ratios.shape[1] - 0.5), ylim=(-0.5, ratios.shape[0] - 0.5))
    for (y, x), ratio in np.ndenumerate(ratios):
        if math.isfinite(ratio):
            colour = "white" if found[y, x] in _LIGHT_TEXT else INK
            ax.text(x, y, _change(ratio), ha="center", va="center", fontsize=TEXT_PT, color=colour)
    if not known.any():
        middle = ((ratios.shape[1] - 1) / 2, (ratios.shape[0] - 1) / 2)
        ax.text(*middle, "not made for this", ha="center", va="center", color=MUTED)
    for side in ax.spines.values():
        side.set_visible(False)


def _shift(ax: Axes) -> Transform:
    """Cells around whole numbers."""
    from matplotlib.transforms import Affine2D

    return Affine2D().translate(-0.5, -0.5) + ax.transData


def _change(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    return f"{percent:+.0f}".replace("-", "\N{MINUS SIGN}") if abs(percent) >= 0.5 else "0"


def _key(figure: Figure) -> None:
    from matplotlib.patches import Patch

    near, some, far = (f"{factor:g}" for factor in FACTORS)
    words = (
        f"too short by {far} and more",
        f"by {some} to {far}",
        f"by {near} to {some}",
        f"within a factor of {near}",
        f"too long by {near} to {some}",
        f"by {some} to {far}",
        f"by {far} and more",
    )
    patches = [
        Patch(facecolor=colour, edgecolor=MUTED, linewidth=0.4, label=word)
        for colour, word in zip(_COLOURS, words, strict=True)
    ]
    figure.legend(handles=patches, loc="outside upper left", ncols=2, frameon=False, handlelength=1.2)
