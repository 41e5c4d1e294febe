"""The section of `docs/validation/fluid.md` on closed forms, and its picture: called by `docs/fluid.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from page import Values

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
    """Result of the packet engine, as a fraction of the rate."""

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
# Classes of relation (1) for all connections together over the rate of the link: upper limits.
EDGES = (0.25, 0.5, 1.0, float("inf"))
NEAR, FAR = 0.1, 0.25


def page_values(found: list[Compared]) -> Values:
    """Values of the page on closed forms."""
    shares = {name: np.array([share(name, one.point) for one in found]) for name in MODELS}
    off = {name: values / np.array([one.packet for one in found]) - 1 for name, values in shares.items()}
    offered = np.array([offered_share(one.point) for one in found])
    low, high = offered <= EDGES[1], offered > EDGES[1]
    closed = [off[name] for name in MODELS if name not in ("mathis", "selection", "fluid")]
    fewest = min(int((np.abs(values[low]) <= NEAR).sum()) for values in closed)
    return {
        "closed_near": NEAR,
        "closed_far": FAR,
        "closed_table": "\n".join(table(off, offered)),
        "closed_half_share": f"{fewest} of {int(low.sum())}",
        "closed_mathis": off["mathis"][low].max(),
        "closed_relation": farthest(off["relation"][low]),
        "closed_closed": max(values[high].max() for values in (*closed, off["mathis"])),
        "closed_rule": abs(farthest(off["selection"][high])),
        "closed_fluid": abs(farthest(off["fluid"][high])),
    }


def farthest(values: np.ndarray) -> float:
    """The value farthest from 0."""
    return float(values[np.argmax(np.abs(values))])


def share(name: str, point: Point) -> float:
    """Goodput by a model, as a fraction of the rate."""
    path = Path(point.round_trip_s - 1 / point.rate, point.beta, 1)
    found, _ = goodput(name, Offered(np.array([point.rate]), np.array([point.loss]), point.flows, path))
    return float(found[0])


def offered_share(point: Point) -> float:
    """Relation (1) of all connections over the rate, not limited by the link."""
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
    """Each model over the packet engine, against relation (1) for all connections."""
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
