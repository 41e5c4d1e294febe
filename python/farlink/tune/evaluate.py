"""Goodput of operating points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farlink.tune.goodput import check_impaired, goodput
from farlink.tune.impaired.goodput import Judged, judged
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.offered import DEFAULT_PRECISION, Offered, Path, Precision, Progress
from farlink.tune.points import Point
from farlink.tune.staircase import candidates


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
    is_left_out
        Whether it was not simulated, because it loses too much or cannot be the best: its goodput is then 0.
    """

    point: Point
    goodput_bps: float
    half_width_bps: float
    is_left_out: bool = False


def rated(
    points: Sequence[Point],
    *,
    name: str,
    flows: int,
    path: Path,
    precision: Precision = DEFAULT_PRECISION,
    progress: Progress | None = None,
    impairment: Impairment | None = None,
    tolerance: float | None = None,
    most_loss: float = 1.0,
) -> list[Rated]:
    """Goodput of each point, in their order; none where every segment is lost.

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
    impairment
        What impairs the link on top of the modem's noise. The points that are returned then have its losses.
    tolerance
        Over an impairment settings are left out that cannot reach so near to the best one of their C/N0; None for none.
    most_loss
        Over an impairment settings are left out that lose more.

    Raises
    ------
    TuneError
        If the model takes losses to be independent, and there is an impairment.
    """
    if impairment is not None:
        check_impaired(name, impairment.kind)
        found_over = judged(
            points,
            impairment,
            flows=flows,
            path=path,
            precision=precision,
            tolerance=tolerance,
            most_loss=most_loss,
            progress=progress,
        )
        return [_over(one) for one in found_over]
    alive = [point for point in points if point.loss < 1]
    if not alive:
        return [Rated(point, 0.0, 0.0) for point in points]
    rate = np.array([point.rate_segments_per_s for point in alive])
    loss = np.array([point.loss for point in alive])
    wait = np.array([float(point.wait_segments) for point in alive])
    share, half_width = goodput(name, Offered(rate, loss, flows, path, precision, wait), progress)
    found = {
        id(point): Rated(point, float(one) * point.payload_bps, float(half) * point.payload_bps)
        for point, one, half in zip(alive, share, half_width, strict=True)
    }
    return [found.get(id(point)) or Rated(point, 0.0, 0.0) for point in points]


def _over(one: Judged) -> Rated:
    payload_bps = one.point.payload_bps
    if one.share is None:
        return Rated(one.point, 0.0, 0.0, is_left_out=True)
    return Rated(one.point, one.share * payload_bps, one.half_width * payload_bps)


def worth_a_look(points: Sequence[Point], impairment: Impairment | None) -> list[Point]:
    """The points that can be the best, before their goodput is known.

    Over noise those that no other one beats in both rate and losses. Over an impairment all: losses over noise say little about
    those over bursts, and of two codes that lose as many segments one may lose them several at a time.
    """
    return candidates(points) if impairment is None else list(points)


def best(found: Sequence[Rated]) -> Rated | None:
    """The highest goodput, of equals that with the fewest losses; None of none."""
    return max(found, key=lambda one: (one.goodput_bps, -one.point.loss), default=None)
