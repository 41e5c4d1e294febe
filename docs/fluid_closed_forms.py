"""The section of `docs/validation/fluid.md` on closed forms, and its picture: called by `docs/fluid.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, new_figure
from farlink.tune.goodput import goodput
from farlink.tune.offered import Offered, Path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Protocol):
    """An operating point: see `docs/fluid.py`."""

    rate: float
    round_trip_s: float
    beta: float
    loss: float
    flows: int


class Compared(Protocol):
    """What the packet engine found there, as a fraction of the rate."""

    @property
    def point(self) -> Point:
        """Where."""

    @property
    def packet(self) -> float:
        """How much."""


MODELS = {
    "mathis": "Mathis",
    "padhye": "Padhye",
    "padhye-approximate": "Padhye, approximate",
    "relation": "relation (1)",
    "selection": "Celandroni's rule",
    "fluid": "fluid, Reno",
}
# What relation (1) says of all connections together, over the rate of the link: up to the first, and so on.
EDGES = (0.25, 0.5, 1.0, float("inf"))
NEAR, FAR = 0.1, 0.25

TEXT = """\
## Where closed forms may be trusted

The same points with Reno, for which the closed forms were made: the goodput of all connections together by each, at most what
arrives, over that of the packet engine. By what relation (1) makes of them: where that is far below the rate of the link losses
limit the connections, above it the link does. In each field the points within {near:.0%} and within {far:.0%}, and the one that
is farthest off.

{table}

![Closed forms over the packet engine](../pictures/fluid-closed-forms.svg)

- Up to half of the rate every closed form but Mathis's law is within {near:.0%} at {half_share} points; Mathis's, which knows
  no timeouts, is up to {mathis:+.0%}. The rule of the paper takes relation (1) there, which is up to {relation:+.0%}.
- From half of the rate up a form that knows no bottleneck is up to {closed:+.0%}: it says that the link is full, and where the
  buffer is short it is not, as overflows halve windows, too. The paper's rule, the fluid engine without timeouts there, is
  within {rule:.0%} of the packet engine, with them as Reno has it within {fluid:.0%}.
"""


def section(found: list[Compared]) -> str:
    """The text with its table."""
    shares = {name: np.array([share(name, one.point) for one in found]) for name in MODELS}
    off = {name: values / np.array([one.packet for one in found]) - 1 for name, values in shares.items()}
    offered = np.array([offered_share(one.point) for one in found])
    low, high = offered <= EDGES[1], offered > EDGES[1]
    closed = [off[name] for name in MODELS if name not in ("mathis", "selection", "fluid")]
    fewest = min(int((np.abs(values[low]) <= NEAR).sum()) for values in closed)
    return TEXT.format(
        near=NEAR,
        far=FAR,
        table="\n".join(table(off, offered)),
        half_share=f"{fewest} of {int(low.sum())}",
        mathis=off["mathis"][low].max(),
        relation=farthest(off["relation"][low]),
        closed=max(values[high].max() for values in (*closed, off["mathis"])),
        rule=abs(farthest(off["selection"][high])),
        fluid=abs(farthest(off["fluid"][high])),
    )


def farthest(values: np.ndarray) -> float:
    """The one that is farthest from 0."""
    return float(values[np.argmax(np.abs(values))])


def share(name: str, point: Point) -> float:
    """Goodput by a model, as a fraction of the rate."""
    path = Path(point.round_trip_s - 1 / point.rate, point.beta, 1)
    found, _ = goodput(name, Offered(np.array([point.rate]), np.array([point.loss]), point.flows, path))
    return float(found[0])


def offered_share(point: Point) -> float:
    """Relation (1) of all connections over the rate, whatever the link carries."""
    from farlink.models.tcp_goodput import celandroni, timeout

    wait_s = timeout.timeout_s(point.round_trip_s)
    each = celandroni.relation_1(
        point.loss, rtt_s=point.round_trip_s, rate_segments_per_s=point.rate, timeout_s=wait_s, segments_per_ack=1
    )
    return point.flows * float(each)


def table(off: dict[str, np.ndarray], offered: np.ndarray) -> Iterator[str]:
    """A row for each model."""
    below = 0.0
    fields = []
    for edge in EDGES:
        fields.append((below, edge, (offered > below) & (offered <= edge)))
        below = edge
    names = [f"{low:g} to {high:g}" if np.isfinite(high) else f"above {low:g}" for low, high, _ in fields]
    yield (
        "| model | "
        + " | ".join(f"{name}: {int(of.sum())} points" for name, (_, _, of) in zip(names, fields, strict=True))
        + " |"
    )
    yield "|---|" + "--:|" * len(fields)
    for name, title in MODELS.items():
        row = []
        for _, _, of in fields:
            values = off[name][of]
            near, far = (int((np.abs(values) <= bound).sum()) for bound in (NEAR, FAR))
            row.append(f"{near}, {far}; {farthest(values):+.0%}" if values.size else "–")
        yield f"| {title} | " + " | ".join(row) + " |"


def picture(found: list[Compared]) -> Figure:
    """Each model over the packet engine, against what relation (1) makes of the connections."""
    figure, (axes,) = new_figure(4.4)
    offered = [offered_share(one.point) for one in found]
    for (name, title), colour, marker in zip(MODELS.items(), COLOURS, MARKERS, strict=False):
        if name == "padhye-approximate":
            continue
        over = [share(name, one.point) / one.packet for one in found]
        axes.plot(offered, over, marker, color=colour, markersize=5, label=title)
    axes.axhline(1, color=MUTED, linewidth=0.8)
    axes.axvline(0.5, color=MUTED, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("relation (1) of all connections, over the rate of the link")
    axes.set_ylabel("goodput over that of packets")
    legend_above(figure, axes, columns=3)
    return figure
