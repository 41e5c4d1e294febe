"""The minimum bit error rate that a modem reaches at each information rate, and the settings that are worth a look."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farlink.tune.points import Point


def staircase(points: Sequence[Point]) -> list[Point]:
    """The points of minimum bit error rate against information rate: from the slowest to the fastest, errors never fewer.

    Parameters
    ----------
    points
        Settings at one C/N0.

    Returns
    -------
    list of Point
        Every point that no other one beats in both; of equals the first.

    References
    ----------
    Celandroni, section II and figure 1: "each member of such a family of graphs is a non-decreasing function of the BER versus
    IBR".
    """
    return _undominated(points, lambda point: point.ber)


def candidates(points: Sequence[Point]) -> list[Point]:
    """The points that can be the best for goodput: no other one carries as many data and loses as few segments.

    Codes over several segments are compared with those that wait as long, since a longer round trip costs goodput.

    Parameters
    ----------
    points
        Settings at one C/N0.
    """
    kept: list[Point] = []
    for wait in sorted({point.wait_segments for point in points}):
        alike = [point for point in points if point.wait_segments == wait]
        kept += _undominated(alike, lambda point: point.loss, lambda point: point.payload_bps)
    return sorted(kept, key=lambda point: point.payload_bps)


def _undominated(
    points: Sequence[Point],
    bad: Callable[[Point], float],
    good: Callable[[Point], float] = lambda point: point.information_bps,
) -> list[Point]:
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-good(point), bad(point))):
        if not kept or bad(point) < bad(kept[-1]):
            kept.append(point)
    return kept[::-1]
