"""Definition of agreement with a peer, and the cells excused from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.peers.estimate import Estimate
from tests.peers.ns2 import Setting

TOLERANCE = 0.03
EXCUSED_SHARE = 0.1


def agree(ours: Estimate, theirs: Estimate, tolerance: float = TOLERANCE) -> bool:
    """Whether the two 95 % intervals meet, or the means differ by at most `tolerance` (3 %) of the peer's."""
    difference = abs(ours.mean - theirs.mean)
    return difference <= ours.half_width + theirs.half_width or difference <= tolerance * theirs.mean


def surely_agree(ours: Estimate, theirs: Estimate, tolerance: float = TOLERANCE) -> bool:
    """Whether the means differ by at most `tolerance` of the peer's, wherever in their 95 % intervals they are."""
    return abs(ours.mean - theirs.mean) + ours.half_width + theirs.half_width <= tolerance * theirs.mean


@dataclass(frozen=True)
class Excuse:
    """The reason why a cell differs by design, and the peer's settings that remove the difference."""

    reason: str
    closing: Mapping[str, Setting]
    """Keys of the peer's script that replace or, for mappings, extend those of the cell."""

    def apply(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """The cell's settings with those that remove the difference."""
        merged = dict(settings)
        for key, value in self.closing.items():
            before = merged.get(key)
            merged[key] = {**before, **value} if isinstance(before, Mapping) and isinstance(value, Mapping) else value
        return merged


_WHOLE_SEGMENTS = Excuse(
    reason=(
        "farlink halves what is in flight (RFC 5681, equation 4), which is whole segments; ns-2 halves its congestion window, "
        "a real number up to one segment larger. With windows of 5 to 8 segments this decides whether a loss can still "
        "bring three duplicate acknowledgements; with 14, at 1e-6, it is a thirtieth of the window."
    ),
    closing={"tcp": {"precisionReduce_": "false"}},
)

EXCUSED: dict[str, Excuse] = {
    "reno-1e-06-delayed": _WHOLE_SEGMENTS,
    "reno-1e-05-delayed": _WHOLE_SEGMENTS,
    "newreno-1e-06-delayed": _WHOLE_SEGMENTS,
    "newreno-1e-05-delayed": _WHOLE_SEGMENTS,
    "newreno-1e-05-every": _WHOLE_SEGMENTS,
}
"""Cell name -> excuse. At most a tenth of the cells; each is shown to agree once the peer's setting is changed."""
