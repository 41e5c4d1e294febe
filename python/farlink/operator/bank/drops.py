"""How long a call lasts before it drops: drawn from a fitted process, or as a log has it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

from farlink.errors import OperatorError
from farlink.near_names import instead


class Drops:
    """Up times of calls, one after the other.

    Parameters
    ----------
    rng
        Its random numbers.
    mean_up_s
        Mean of exponential up times; infinite if calls do not drop.
    recorded_s
        Up times of recorded calls, which are repeated in their order; they take the place of the mean.

    Examples
    --------
    >>> drops = Drops(random.Random(1), recorded_s=(10.0, 20.0))
    >>> [drops.next_s() for _ in range(3)]
    [10.0, 20.0, 10.0]
    """

    def __init__(self, rng: random.Random, *, mean_up_s: float = math.inf, recorded_s: Sequence[float] = ()) -> None:
        self._rng = rng
        self._mean_up_s = mean_up_s
        self._recorded_s = recorded_s
        self._next = 0

    def next_s(self) -> float:
        """The up time of the next call, in s."""
        if self._recorded_s:
            up_s = self._recorded_s[self._next % len(self._recorded_s)]
            self._next += 1
            return up_s
        return math.inf if math.isinf(self._mean_up_s) else self._rng.expovariate(1 / self._mean_up_s)


def recorded(log: Path, link: str | None = None) -> dict[str, tuple[float, ...]]:
    """Up times of the dropped calls of a log, of each of its links; any log that `farlink bundle fit` reads.

    Parameters
    ----------
    log
        The file.
    link
        Only this link.

    Raises
    ------
    OperatorError
        If there is no such link, or no call dropped.
    JournalError
        If the log cannot be read.
    """
    from farlink.channels.calls.links import links_of
    from farlink.channels.calls.logs import read

    links = links_of(read(log).events)
    names = [one.name for one in links]
    if link is not None and link not in names:
        raise OperatorError(f"{log} has no link {link!r}", instead(link, names))
    found = {}
    for one in links:
        times = tuple(
            call.up_s for call in one.calls if call.outcome == "dropped" and math.isfinite(call.up_s) and call.up_s > 0
        )
        if times and link in (None, one.name):
            found[one.name] = times
    if not found:
        raise OperatorError(f"{log}: no call dropped", "give a log with calls that did, or mean_up_s")
    return found
