"""Time-sequence graph of a captured connection, with its losses and the drops of its links: Zaghloul's figure 5.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farlink import units
from farlink.capture.connections import Connection
from farlink.channels.calls.journal import time_text
from farlink.channels.calls.links import Link
from farlink.errors import CaptureError
from farlink.plot.style import COLOURS, INK, MUTED, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From here on points are drawn as a picture, not one by one.
_MOST_POINTS = 1500
# A clock that shows less than this was never set: a simulated capture counts from the beginning of the run.
_SIMULATED_S = 10 * 365 * 86_400.0
# More links than this are drawn in one colour, and not named.
_MOST_NAMED = 8
_DROP_COLOURS = (COLOURS[3], COLOURS[5], COLOURS[4], COLOURS[7], COLOURS[6], COLOURS[0], COLOURS[2], COLOURS[1])


@dataclass(frozen=True)
class Drop:
    """A drop to draw.

    Attributes
    ----------
    link
        Which link.
    begin_s, end_s
        When it dropped and when it was back, in s on the clock of the capture; the end is NaN if it is unknown.
    """

    link: str
    begin_s: float
    end_s: float


def drops_on(links: Sequence[Link], span_s: tuple[float, float], *, offset_s: float | None = None) -> tuple[list[Drop], float]:
    """Drops of a log on the clock of a capture.

    Parameters
    ----------
    links
        Links of the log.
    span_s
        First and last time of the capture, on its clock, in s.
    offset_s
        What to add to the times of the log, in s. None takes both clocks as one; the first event of the log is put at the
        beginning of a run that was simulated, whose clock begins at 0.

    Returns
    -------
    list of Drop
        Those while the capture ran, and those before it that were not over.
    float
        What was added, in s.

    Raises
    ------
    CaptureError
        If log and capture have no time in common.
    """
    first_s, last_s = min(link.first_s for link in links), max(link.last_s for link in links)
    if offset_s is None:
        offset_s = -first_s if span_s[0] < _SIMULATED_S else 0.0
    if first_s + offset_s > span_s[1] or last_s + offset_s < span_s[0]:
        message = (
            f"the log, {_when(first_s + offset_s)} to {_when(last_s + offset_s)}, and the capture, {_when(span_s[0])} to "
            f"{_when(span_s[1])}, have no time in common"
        )
        remedy = f"--offset-s {span_s[0] - first_s:.0f} makes them begin together"
        raise CaptureError(message, f"{remedy}; times of a log without a zone are taken as UTC")
    found = []
    for link in links:
        for index, call in enumerate(link.calls):
            if call.outcome != "dropped":
                continue
            is_last = index + 1 == len(link.calls)
            back_s = link.last_s if is_last else link.calls[index + 1].start_s
            end_s = back_s + offset_s if back_s > call.drop_s and not np.isnan(call.end_s) else np.nan
            begin_s = call.drop_s + offset_s
            if begin_s <= span_s[1] and (begin_s if np.isnan(end_s) else end_s) >= span_s[0]:
                found.append(Drop(link.name, begin_s, end_s))
    return sorted(found, key=lambda drop: drop.begin_s), offset_s


def followed_by_repetition(connection: Connection, drops: Sequence[Drop], within_s: float = 60.0) -> int:
    """How many drops are followed by a repetition, at most so long after they began or, if that is later, ended."""
    flow = connection.forward
    again_s = flow.time_s[flow.is_again]
    count = 0
    for drop in drops:
        last_s = within_s + (drop.begin_s if np.isnan(drop.end_s) else drop.end_s)
        count += bool(np.any((again_s >= drop.begin_s) & (again_s <= last_s)))
    return count


def time_sequence(
    connection: Connection, drops: Sequence[Drop] = (), *, title: str = "", span_s: tuple[float, float] | None = None
) -> Figure:
    """Draw data sent, retransmitted, acknowledged and (AeroTP) lost, and the drops of links.

    Parameters
    ----------
    connection
        The connection; its direction with more data is drawn.
    drops
        Drops, on the clock of the capture.
    title
        Title.
    span_s
        Part to show, in s from the connection's first packet; all of it by default.

    Returns
    -------
    Figure
        A Matplotlib figure.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    figure, (ax,) = new_figure(height_in=4.9)
    origin_s, end_s = connection.span_s
    flow = connection.forward
    low, high = span_s or (0.0, end_s - origin_s)
    scale = units.scale_for("bytes_bytes", [float(flow.stream_bytes)])
    names = list(dict.fromkeys(drop.link for drop in drops))
    _draw_drops(ax, [drop for drop in drops if _is_shown(drop, origin_s, low, high)], names, origin_s, high)

    time = flow.time_s - origin_s
    inside = (time >= low) & (time <= high)
    fresh, again = inside & ~flow.is_again, inside & flow.is_again
    ax.plot(
        time[fresh], flow.last[fresh] * scale.factor, linestyle="none", marker="o", markersize=2.4, color=COLOURS[0],
        label="sent", rasterized=int(fresh.sum()) > _MOST_POINTS,
    )  # fmt: skip
    acknowledged = flow.acknowledged_time_s - origin_s
    within = (acknowledged >= low) & (acknowledged <= high)
    ax.step(
        acknowledged[within], flow.acknowledged[within] * scale.factor, where="post", color=COLOURS[2], linewidth=1.2,
        label="acknowledged", rasterized=int(within.sum()) > _MOST_POINTS,
    )  # fmt: skip
    ax.plot(
        time[again], flow.last[again] * scale.factor, linestyle="none", marker="D", markersize=4.2, color=COLOURS[1],
        markeredgecolor=INK, markeredgewidth=0.5, label="sent again", rasterized=int(again.sum()) > _MOST_POINTS,
    )  # fmt: skip
    if flow.is_lost is not None:
        lost = inside & flow.is_lost
        ax.plot(
            time[lost], flow.last[lost] * scale.factor, linestyle="none", marker="x", markersize=5.0, color=INK,
            label="lost", rasterized=int(lost.sum()) > _MOST_POINTS,
        )  # fmt: skip
    ax.set_xlabel("time since the first packet (s)")
    ax.set_ylabel(f"sequence number ({scale.unit})")
    margin = 0.01 * (high - low) or 0.5
    ax.set_xlim(low - margin, high + margin)
    shown = np.concatenate((flow.last[inside], flow.acknowledged[within])) * scale.factor
    if shown.size:
        slack = 0.03 * float(np.ptp(shown)) or 1.0
        ax.set_ylim(max(float(shown.min()) - slack, -slack), float(shown.max()) + slack)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    legend_above(figure, ax, columns=4 if flow.is_lost is None else 5)
    return figure


def _is_shown(drop: Drop, origin_s: float, low: float, high: float) -> bool:
    begin = drop.begin_s - origin_s
    end = begin if np.isnan(drop.end_s) else drop.end_s - origin_s
    return end >= low and begin <= high


def _draw_drops(ax: Axes, drops: Sequence[Drop], names: Sequence[str], origin_s: float, high: float) -> None:
    """A line at each drop of a link, and a band until it is back."""
    is_named = len(names) <= _MOST_NAMED
    labelled: set[str] = set()
    for drop in drops:
        colour = _DROP_COLOURS[names.index(drop.link)] if is_named else MUTED
        label = f"{drop.link} down" if is_named else "a link down"
        begin = drop.begin_s - origin_s
        if not np.isnan(drop.end_s):
            ax.axvspan(begin, min(drop.end_s - origin_s, high), color=colour, alpha=0.16, linewidth=0)
        line = ax.axvline(begin, color=colour, linewidth=1.1, linestyle="--")
        if label not in labelled:
            line.set_label(label)
            labelled.add(label)


def _when(seconds: float) -> str:
    return time_text(seconds) if -6e10 < seconds < 2e11 else f"{seconds:g} s"
