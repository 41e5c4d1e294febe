"""Share of the time that links are up: each, all of them, at least one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from farlink.channels.calls.links import Link
from farlink.channels.calls.samples import bundle_span_s


@dataclass(frozen=True)
class Availability:
    """Shares of the time that the logs of all links have in common.

    Attributes
    ----------
    span_s
        That time, in s.
    mean_up
        Links that are up, on average.
    all_up, any_up
        Share of the time that all are up, and that at least one is.
    all_up_independent, any_up_independent
        The same of links that are each up as much of the time as these, independently of each other.
    """

    span_s: float
    mean_up: float
    all_up: float
    any_up: float
    all_up_independent: float
    any_up_independent: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def availability(links: Sequence[Link]) -> Availability | None:
    """How much of the time links are up.

    Parameters
    ----------
    links
        Links whose logs run at the same time.

    Returns
    -------
    Availability or None
        None if they do not, or if the time of an end is unknown.

    References
    ----------
    Zaghloul, section 7.6: of eight modems all up 87 % of the time, at least one 97 %.
    """
    span = bundle_span_s(links)
    if span is None or any(math.isnan(call.up_s) for link in links for call in link.calls):
        return None
    length_s = span[1] - span[0]
    times: list[float] = []
    steps: list[int] = []
    shares = []
    for link in links:
        bounds = np.clip([(call.start_s, call.end_s) for call in link.calls] or np.empty((0, 2)), *span)
        shares.append(float((bounds[:, 1] - bounds[:, 0]).sum()) / length_s)
        times += bounds.ravel().tolist()
        steps += [1, -1] * len(bounds)
    order = np.argsort(times, kind="stable")
    edges = np.concatenate(([span[0]], np.array(times)[order], [span[1]]))
    up = np.concatenate(([0], np.cumsum(np.array(steps, dtype=np.int64)[order])))
    lengths = np.diff(edges) / length_s
    return Availability(
        length_s,
        math.fsum(shares),
        float(lengths[up == len(links)].sum()),
        float(lengths[up > 0].sum()),
        math.prod(shares),
        1 - math.prod(1 - share for share in shares),
    )
