"""Do drops cluster? Their dispersion, memory of the times between them, runs of calls that drop, links that drop together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from farlink.arguments import check_range, checked_arguments
from farlink.channels.calls.distributions import Series
from farlink.channels.calls.goodness import SIGNIFICANCE
from farlink.channels.calls.links import Link
from farlink.channels.calls.samples import bundle_span_s
from farlink.extras import require

# Mean number of drops in a window of the index of dispersion.
_DROPS_PER_WINDOW = 4.0
_FEWEST_WINDOWS = 5
_FEWEST_TIMES = 10
_FEWEST_CALLS = 20


@dataclass(frozen=True)
class Clustering:
    """One test for clusters, and its result.

    Attributes
    ----------
    question
        ``"dispersion"``, ``"serial correlation"``, ``"runs of times"``, ``"runs of calls"``, ``"links alike"`` or ``"links
        together"``.
    value
        The measure; NaN if there are too few drops.
    expected
        Its value without clusters.
    p
        Probability of a value that far off, on either side, without clusters; NaN if there are too few drops.
    is_clustered
        Whether `p` is below the level of significance, and the value on the side of clusters (of unlike links); None if it is
        not known.
    details
        Further numbers.
    reason
        Why there is no value, and how many it needs; empty otherwise.
    """

    question: str
    value: float = math.nan
    expected: float = math.nan
    p: float = math.nan
    is_clustered: bool | None = None
    details: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def drop_clocks(links: Sequence[Link]) -> list[tuple[Series, float]]:
    """For each link the times of its drops in seconds of connected time, and the total connected time.

    Pauses between calls are not counted: a link that is not connected cannot drop, and calls that come in groups would make
    clusters of drops that are none. Where no end has a time, it is the clock on the wall.
    """
    clocks = []
    for link in links:
        if not link.calls:
            continue
        if all(math.isnan(call.up_s) for call in link.calls):
            clocks.append((np.array([call.drop_s - link.first_s for call in link.drops]), link.last_s - link.first_s))
            continue
        up_s = np.nan_to_num([call.up_s for call in link.calls])
        ends = np.cumsum(up_s)
        is_drop = np.array([call.outcome == "dropped" for call in link.calls])
        clocks.append((ends[is_drop], float(ends[-1])))
    return clocks


def dispersion(links: Sequence[Link]) -> Clustering:
    """Variance over mean of the drops in windows of equal length: 1 without clusters, more with them.

    The windows of a link hold four drops on average; over several links their chi-squares add up.
    """
    chi_square, degrees, windows_s = 0.0, 0, []
    for times_s, length_s in drop_clocks(links):
        count = int(times_s.size / _DROPS_PER_WINDOW)
        if count < _FEWEST_WINDOWS or length_s <= 0:
            continue
        counts = np.histogram(times_s, bins=count, range=(0.0, length_s))[0]
        chi_square += float(((counts - counts.mean()) ** 2).sum() / counts.mean())
        degrees += count - 1
        windows_s.append(length_s / count)
    if degrees == 0:
        needed = int(_DROPS_PER_WINDOW * _FEWEST_WINDOWS)
        return Clustering("dispersion", reason=f"needs {needed} drops of one link, there are {_most_drops(links)}")
    index = chi_square / degrees
    p = _both_sides(float(require("scipy.stats", "the statistics of call drops").chi2.sf(chi_square, degrees)))
    details = {"windows": float(degrees + len(windows_s)), "window_s": float(np.mean(windows_s))}
    return Clustering("dispersion", index, 1.0, p, p < SIGNIFICANCE and index > 1, details)


def serial_correlation(links: Sequence[Link], *, shuffles: int = 999, seed: int = 1) -> Clustering:
    """Rank correlation of each time between drops with the next: 0 without memory, more if short ones follow short ones.

    Tested by shuffling the times of each link.
    """
    stats = require("scipy.stats", "the statistics of call drops")
    ranks = [stats.rankdata(gaps) / (gaps.size + 1) - 0.5 for gaps in _gaps(links) if gaps.size >= 3]
    pairs = sum(rank.size - 1 for rank in ranks)
    if pairs < _FEWEST_TIMES:
        return Clustering("serial correlation", reason=f"needs {_FEWEST_TIMES + 2} drops, there are {_most_drops(links)}")
    if not any(rank.any() for rank in ranks):
        return Clustering("serial correlation", reason="all times between drops are the same")

    def correlation(rows: list[Series]) -> float:
        products = math.fsum(float((row[:-1] * row[1:]).sum()) for row in rows)
        return float(products / pairs) / (math.fsum(float((row * row).sum()) for row in rows) / sum(row.size for row in rows))

    own = correlation(ranks)
    generator = np.random.default_rng(seed)
    shuffled = np.array([correlation([generator.permutation(rank) for rank in ranks]) for _ in range(shuffles)])
    centre = float(shuffled.mean())
    p = (1 + int(np.count_nonzero(np.abs(shuffled - centre) >= abs(own - centre)))) / (1 + shuffles)
    return Clustering("serial correlation", own, centre, p, p < SIGNIFICANCE and own > centre, {"pairs": float(pairs)})


def runs_of_times(links: Sequence[Link]) -> Clustering:
    """Runs of times between drops above and below the median (Wald and Wolfowitz): fewer than expected with clusters."""
    sequences = []
    for gaps in _gaps(links):
        median = np.median(gaps) if gaps.size else 0.0
        sequences.append(gaps[gaps != median] > median)
    if sum(one.size for one in sequences) < _FEWEST_TIMES:
        return Clustering("runs of times", reason=f"needs {_FEWEST_TIMES + 1} drops, there are {_most_drops(links)}")
    return _runs("runs of times", sequences, {})


def runs_of_calls(links: Sequence[Link]) -> Clustering:
    """Runs of calls that drop and calls that do not (Wald and Wolfowitz): fewer than expected if drops follow drops.

    `details` has the two-state Markov chain over calls: ``p_drop_after_drop`` and ``p_drop_after_end``, each with its 95 %
    interval (Wilson), and ``longest_run``, the most drops in a row.
    """
    sequences = [np.array([call.outcome == "dropped" for call in link.calls if call.outcome != "open"]) for link in links]
    calls = sum(one.size for one in sequences)
    drops = sum(int(np.count_nonzero(one)) for one in sequences)
    if calls < _FEWEST_CALLS:
        return Clustering("runs of calls", reason=f"needs {_FEWEST_CALLS} calls, there are {calls}")
    if drops in (0, calls):
        return Clustering("runs of calls", reason="no call dropped" if drops == 0 else "every call dropped")
    before = np.concatenate([one[:-1] for one in sequences if one.size])
    after = np.concatenate([one[1:] for one in sequences if one.size])
    details: dict[str, float] = {}
    for name, chosen in (("drop", before), ("end", ~before)):
        count, hits = int(np.count_nonzero(chosen)), int(np.count_nonzero(after & chosen))
        low, high = wilson(hits, count)
        details[f"p_drop_after_{name}"] = hits / count if count else math.nan
        details[f"p_drop_after_{name}_low"], details[f"p_drop_after_{name}_high"] = low, high
    details["longest_run"] = float(max(_longest_run(one) for one in sequences))
    return _runs("runs of calls", sequences, details)


def links_together(links: Sequence[Link], *, within_s: float = 10.0, shifts: int = 499, seed: int = 1) -> Clustering:
    """Pairs of drops of different links within some seconds, over those expected of independent links.

    Parameters
    ----------
    links
        Links whose logs run at the same time.
    within_s
        How close two drops are together, in s.
    shifts, seed
        Independent links are made by turning the drops of each in time by a random amount; so often, with this seed.
    """
    span = bundle_span_s(links)
    if span is None:
        return Clustering("links together", reason="needs two links whose logs run at the same time")
    length_s = span[1] - span[0]
    times = [np.array([call.drop_s - span[0] for call in link.drops if span[0] <= call.drop_s <= span[1]]) for link in links]
    if sum(one.size for one in times) < _FEWEST_TIMES:
        return Clustering("links together", reason=f"needs {_FEWEST_TIMES} drops, there are {sum(one.size for one in times)}")
    generator = np.random.default_rng(seed)
    own = _pairs(times, within_s)
    turned = np.array(
        [_pairs([(one + generator.random() * length_s) % length_s for one in times], within_s) for _ in range(shifts)]
    )
    expected = float(turned.mean())
    above = (1 + int(np.count_nonzero(turned >= own))) / (1 + shifts)
    below = (1 + int(np.count_nonzero(turned <= own))) / (1 + shifts)
    p = min(1.0, 2 * min(above, below))
    return Clustering("links together", float(own), expected, p, p < SIGNIFICANCE and own > expected, {"within_s": within_s})


def links_alike(links: Sequence[Link]) -> Clustering:
    """Test whether links drop at one rate: likelihood ratio of separate rates against a common one, over connected time.

    Bundles are reckoned as so many times one link, and samples of several links pooled, as if they did. `details` has the
    shortest and the longest mean time between drops, in s.
    """
    known = [(len(times_s), length_s) for times_s, length_s in drop_clocks(links) if length_s > 0]
    drops, length_s = sum(count for count, _ in known), math.fsum(one for _, one in known)
    if len(known) < 2 or drops < 2 * len(known):
        reason = f"needs two links and {2 * max(len(known), 2)} drops, there are {len(known)} and {drops}"
        return Clustering("links alike", reason=reason)
    ratio = 2 * math.fsum(count * math.log((count / one) / (drops / length_s)) for count, one in known if count)
    p = float(require("scipy.stats", "the statistics of call drops").chi2.sf(ratio, len(known) - 1))
    means_s = [one / max(count, 1) for count, one in known]
    details = {"shortest_mean_s": min(means_s), "longest_mean_s": max(means_s)}
    return Clustering("links alike", ratio, float(len(known) - 1), p, p < SIGNIFICANCE, details)


def clusterings(links: Sequence[Link]) -> list[Clustering]:
    """Tests for one link or several, whether or not their logs cover the same time."""
    found = [dispersion(links), serial_correlation(links), runs_of_times(links), runs_of_calls(links)]
    return [*found, links_alike(links)] if len(links) > 1 else found


@checked_arguments
def wilson(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a probability from hits and trials (Wilson, JASA 22, 1927).

    Examples
    --------
    >>> [round(end, 3) for end in wilson(3, 10)]
    [0.108, 0.603]
    """
    check_range(0 <= hits <= count, "hits", f"be from 0 to count = {count}", hits)
    if count == 0:
        return 0.0, 1.0
    z = 1.959964
    share = hits / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    # At the ends the formula gives these values except for rounding.
    return 0.0 if hits == 0 else max(0.0, centre - half), 1.0 if hits == count else min(1.0, centre + half)


def _gaps(links: Sequence[Link]) -> list[Series]:
    return [np.diff(times_s) for times_s, _ in drop_clocks(links) if times_s.size > 1]


def _most_drops(links: Sequence[Link]) -> int:
    return max((len(link.drops) for link in links), default=0)


def _both_sides(upper: float) -> float:
    return min(1.0, 2 * min(upper, 1 - upper))


def _runs(question: str, sequences: Sequence[np.ndarray], details: dict[str, float]) -> Clustering:
    """Runs summed over sequences, with their mean and variance if each is shuffled."""
    found = mean = variance = 0.0
    for one in sequences:
        count, hits = one.size, int(np.count_nonzero(one))
        if count < 2 or hits in (0, count):
            continue
        twice = 2.0 * hits * (count - hits)
        found += 1 + int(np.count_nonzero(one[1:] != one[:-1]))
        mean += 1 + twice / count
        variance += twice * (twice - count) / (count**2 * (count - 1))
    if variance <= 0:
        return Clustering(question, reason="all of them are alike", details=details)
    stats = require("scipy.stats", "the statistics of call drops")
    # Corrected for continuity.
    z = max(0.0, abs(found - mean) - 0.5) / math.sqrt(variance)
    p = min(1.0, 2 * float(stats.norm.sf(z)))
    return Clustering(question, found, mean, p, p < SIGNIFICANCE and found < mean, details)


def _longest_run(sequence: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], sequence.astype(np.int8), [0]))))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _pairs(times: Sequence[Series], within_s: float) -> int:
    """Pairs of drops of different links that are this close."""
    everything = np.sort(np.concatenate(times))
    return _close(everything, within_s) - sum(_close(np.sort(one), within_s) for one in times)


def _close(times: Series, within_s: float) -> int:
    return int((np.searchsorted(times, times + within_s, side="right") - np.arange(times.size) - 1).sum())
