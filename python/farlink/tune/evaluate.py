"""Goodput of operating points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farlink.tune.goodput import goodput
from farlink.tune.offered import DEFAULT_PRECISION, Offered, Path, Precision, Progress
from farlink.tune.points import Point


@dataclass(frozen=True)
class Rated:
    """A point and its goodput.

    Attributes
    ----------
    point
        The setting at a condition.
    goodput_bps
        Data that all connections together deliver.
    half_width_bps
        Of its interval; 0 for closed forms.
    """

    point: Point
    goodput_bps: float
    half_width_bps: float


def rated(
    points: Sequence[Point],
    *,
    name: str,
    flows: int,
    path: Path,
    precision: Precision = DEFAULT_PRECISION,
    progress: Progress | None = None,
) -> list[Rated]:
    """Goodput of each point; none where every segment is lost.

    Parameters
    ----------
    points
        Settings at conditions.
    name
        Model of goodput; see `farlink.tune.goodput`.
    flows
        Connections that share the link.
    path
        Their path other than the link.
    precision
        How exactly goodput is simulated, and the level of its interval.
    progress
        Called with the points done and planned, by engines.
    """
    alive = [point for point in points if point.loss < 1]
    if not alive:
        return [Rated(point, 0.0, 0.0) for point in points]
    rate = np.array([point.rate_segments_per_s for point in alive])
    loss = np.array([point.loss for point in alive])
    share, half_width = goodput(name, Offered(rate, loss, flows, path, precision), progress)
    found = {
        id(point): Rated(point, float(one) * point.payload_bps, float(half) * point.payload_bps)
        for point, one, half in zip(alive, share, half_width, strict=True)
    }
    return [found.get(id(point)) or Rated(point, 0.0, 0.0) for point in points]


def best(found: Sequence[Rated]) -> Rated | None:
    """The highest goodput, of equals that with the fewest losses; None of none."""
    return max(found, key=lambda one: (one.goodput_bps, -one.point.loss), default=None)
