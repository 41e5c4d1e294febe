"""Tests whether a fitted distribution agrees with the times: the chi-square test of the thesis, and a better one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from farlink.arguments import checked_arguments
from farlink.channels.calls.distributions import Exponential, Mask, Series
from farlink.channels.calls.fits import Fit
from farlink.channels.calls.samples import SHORTEST_S, Sample
from farlink.errors import JournalError
from farlink.extras import require

# Zaghloul, section 5.3.
BINS = 15
SIGNIFICANCE = 0.05
# Below this a bin's count is too coarse for the chi-square distribution (Cochran 1954).
EXPECTED = 5.0
# Anderson and Darling's statistic has some power from here on.
FEWEST = 8
REPLICATES = 499
# Limit of values in all replicates; a sample of more than 40,000 has fewer replicates, but at least 99.
_MOST_TIMES = 20_000_000


@dataclass(frozen=True)
class Verdict:
    """Result of a test of a fit.

    Attributes
    ----------
    test
        ``"chi-square"`` or ``"anderson-darling"``.
    statistic
        Its value; NaN if it was not done.
    p
        Probability of a value at least as large if the distribution were the fitted one; NaN if it was not done.
    is_accepted
        Whether `p` is at least the level of significance; None if it was not done.
    bins, degrees
        Bins after joining, and degrees of freedom, of a chi-square test; 0 of another.
    reason
        Why it was not done, and how many drops it needs; empty otherwise.
    """

    test: str
    statistic: float = math.nan
    p: float = math.nan
    is_accepted: bool | None = None
    bins: int = 0
    degrees: int = 0
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Replicates:
    """Samples drawn from a fit, censored like the original sample, and fitted again.

    Attributes
    ----------
    batches
        Times, whether they are observed, and parameters: a row per replicate.
    """

    batches: list[tuple[Series, Mask, Series]]

    def p(self, own: float, statistic: Callable[[Series, Mask, Series], Series]) -> float:
        """Share of the replicates whose statistic is at least as large, with the sample itself included."""
        found = np.concatenate([statistic(*batch) for batch in self.batches])
        return (1 + int(np.count_nonzero(found >= own))) / (1 + found.size)


def draw(sample: Sample, fit: Fit, *, count: int = REPLICATES, seed: int = 1) -> Replicates:
    """Draw samples from a fit: a parametric bootstrap.

    Parameters
    ----------
    sample
        The times that the distribution was fitted to. Times of censoring are drawn from their own Kaplan-Meier estimate.
    fit
        The fit.
    count, seed
        How many, and the seed of the random numbers.
    """
    generator = np.random.default_rng(seed)
    count = min(count, max(99, _MOST_TIMES // sample.times_s.size))
    batches = []
    # As many rows at once as fit into a cache.
    most = max(1, 200_000 // sample.times_s.size)
    for rows in (min(most, count - done) for done in range(0, count, most)):
        times = fit.family.draw(np.broadcast_to(fit.row, (rows, fit.row.size)), generator, sample.times_s.size)
        observed = np.ones(times.shape, dtype=bool)
        if not sample.is_complete:
            limits = _censoring_times(sample, generator, times.shape)
            observed = times <= limits
            times = np.minimum(times, limits)
        times = np.maximum(times, SHORTEST_S)
        batches.append((times, observed, fit.family.fit(times, observed, start=fit.row)))
    return Replicates(batches)


def chi_square(
    sample: Sample,
    fit: Fit,
    *,
    bins: int = BINS,
    significance: float = SIGNIFICANCE,
    widths: str = "equal",
    drawn: Replicates | None = None,
) -> Verdict:
    """Pearson's chi-square test of a fit.

    Parameters
    ----------
    sample
        The times that the distribution was fitted to.
    fit
        The fit.
    bins
        How many; neighbours are joined until 5 drops are expected in each.
    significance
        Level below which a fit is rejected.
    widths
        ``"equal"``: bins of equal width from 0 to the longest time, as in the thesis. ``"probable"``: bins in which equally
        many drops are expected, at most so many that it is 5 in each.
    drawn
        Replicates for the probability if times are censored; drawn here unless given.

    Returns
    -------
    Verdict
        Not done, with how many drops it needs, if fewer bins are left than parameters and two.

    Notes
    -----
    Where times are censored, the number expected in a bin is the hazard of the fit added up over the time that each of the
    sample spent in it (Akritas, JASA 83, 1988; Hjort, Annals of Statistics 18, 1990). With so few drops in a bin the chi-square
    distribution then rejects too often, 8 to 11 in a hundred right fits, so that the probability is from a bootstrap.

    References
    ----------
    Zaghloul, section 5.3: 15 bins, 5 %.
    """
    if widths not in ("equal", "probable"):
        raise JournalError(f"there are no bins of widths {widths!r}", "widths: equal, probable")
    if not fit.is_fitted:
        return Verdict("chi-square", reason=fit.reason)
    parameters = len(fit.parameters)
    needed = math.ceil(EXPECTED) * (parameters + 2)
    if sample.events < needed:
        return Verdict("chi-square", reason=f"needs {needed} drops, there are {sample.events}")
    edges = _equal_edges(sample, bins) if widths == "equal" else _probable_edges(sample, fit, bins)
    edges = _joined(edges, _expected(sample, fit, edges))
    degrees = edges.size - 2 - parameters
    if degrees < 1:
        reason = f"needs {parameters + 2} bins with 5 expected, there are {edges.size - 1}"
        return Verdict("chi-square", bins=edges.size - 1, reason=reason)

    def statistic_of(times: Series, observed: Mask, rows: Series) -> Series:
        return _pearson(fit, edges, times, observed, rows, is_complete=sample.is_complete)

    own = float(statistic_of(sample.times_s[None], sample.is_observed[None], fit.row[None])[0])
    if sample.is_complete:
        p = float(require("scipy.stats", "the statistics of call drops").chi2.sf(own, degrees))
    else:
        p = (drawn or draw(sample, fit)).p(own, statistic_of)
    return Verdict("chi-square", own, p, p >= significance, edges.size - 1, degrees)


def accepted_means_s(sample: Sample, *, bins: int = BINS, significance: float = SIGNIFICANCE) -> tuple[float, float] | None:
    """Range of exponential means that the chi-square test accepts, within which the thesis adjusts its rate.

    Parameters
    ----------
    sample
        Times, none of them censored.
    bins, significance
        As in `chi_square`, with bins of equal width.

    Returns
    -------
    tuple or None
        Least and greatest mean in s, to 1.4 % and within a factor of 2.5 of the likeliest; None if the test accepts none of
        these, or cannot be done.

    References
    ----------
    Zaghloul, section 5.3: "the rate of the exponential distribution is adjusted so that the goodness-of-fit is satisfied".
    """
    family = Exponential()
    if not sample.is_complete or sample.events < 3 * EXPECTED:
        return None
    best = float(family.fit(sample.times_s, sample.is_observed)[0])
    means = best * np.geomspace(0.4, 2.5, 131)
    accepted = [
        float(mean)
        for mean in means
        if chi_square(sample, Fit("exponential", {"mean_s": float(mean)}), bins=bins, significance=significance).is_accepted
    ]
    return (accepted[0], accepted[-1]) if accepted else None


def anderson_darling(
    sample: Sample, fit: Fit, *, significance: float = SIGNIFICANCE, drawn: Replicates | None = None
) -> Verdict:
    r"""Anderson and Darling's test of a fit, with the probability from a parametric bootstrap.

    .. math:: A^2 = n \int \frac{(F_n - F)^2}{F (1 - F)} \, dF

    Parameters
    ----------
    sample
        The times that the distribution was fitted to. With censored times :math:`F_n` is Kaplan and Meier's estimate, and the
        integral ends where a twentieth of the sample is left.
    fit
        The fit.
    significance
        Level below which a fit is rejected.
    drawn
        Replicates for the probability; drawn here unless given.

    Returns
    -------
    Verdict
        Not done, with how many drops it needs, if there are fewer than 8.

    Notes
    -----
    Parameters that were fitted to the same times make every statistic smaller; the bootstrap does the same to its replicates,
    which a table of critical values for known parameters does not. Needs no bins, and feels both tails.

    References
    ----------
    Stute, Gonzales Manteiga, Presedo Quindimil, "Bootstrap based goodness-of-fit tests", Metrika 40 (1993).
    """
    if not fit.is_fitted:
        return Verdict("anderson-darling", reason=fit.reason)
    if sample.events < FEWEST:
        return Verdict("anderson-darling", reason=f"needs {FEWEST} drops, there are {sample.events}")
    # Beyond that the estimate hangs on a few times, and replicates end earlier than the sample.
    end_s = math.inf if sample.is_complete else float(np.quantile(sample.times_s, 0.95))

    def statistic_of(times: Series, observed: Mask, rows: Series) -> Series:
        return statistic(fit, rows, np.minimum(times, end_s), observed & (times <= end_s))

    own = float(statistic_of(sample.times_s[None], sample.is_observed[None], fit.row[None])[0])
    p = (drawn or draw(sample, fit)).p(own, statistic_of)
    return Verdict("anderson-darling", own, p, p >= significance)


def statistic(fit: Fit, parameters: Series, times: Series, observed: Mask) -> Series:
    """Anderson-Darling statistic of samples, a row each, against the distribution of `fit` with other parameters."""
    order = np.argsort(times, axis=-1)
    times = np.take_along_axis(times, order, axis=-1)
    observed = np.take_along_axis(observed, order, axis=-1)
    count = times.shape[-1]
    alive = np.cumprod(1 - observed / (count - np.arange(count)), axis=-1)
    log_alive = -fit.family.cumulative_hazard(parameters, times)
    # Both tails to full precision: ln F and ln(1 - F).
    log_survival = np.maximum(log_alive, -700.0)
    share = np.clip(-np.expm1(log_survival), 1e-300, None)
    log_share = np.log(share)
    step = 1 - alive  # the estimate from this time to the next
    upper_share, upper_log_share, upper_log_survival = share[..., 1:], log_share[..., 1:], log_survival[..., 1:]
    inner = step[..., :-1]
    pieces = (
        inner**2 * (upper_log_share - log_share[..., :-1])
        - (1 - inner) ** 2 * (upper_log_survival - log_survival[..., :-1])
        - (upper_share - share[..., :-1])
    )
    first = -log_survival[..., 0] - share[..., 0]
    # Beyond the longest time the estimate is 1 if that was observed, and unknown otherwise.
    last = np.where(observed[..., -1], -log_share[..., -1] - (1 - share[..., -1]), 0.0)
    return np.asarray(count * (first + pieces.sum(axis=-1) + last))


@checked_arguments
def kaplan_meier(sample: Sample) -> tuple[Series, Series]:
    """Times at which something was observed, and the estimated probability of a longer time from there on.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> times, alive = kaplan_meier(sample("up", [1.0, 2.0, 3.0], [True, False, True]))
    >>> times.tolist(), [round(value, 3) for value in alive.tolist()]
    ([1.0, 3.0], [0.667, 0.0])
    """
    order = np.lexsort((~sample.is_observed, sample.times_s))
    times, observed = sample.times_s[order], sample.is_observed[order]
    alive = np.cumprod(1 - observed / (times.size - np.arange(times.size)))
    is_last = np.append(times[1:] != times[:-1], True) if times.size else np.empty(0, dtype=bool)
    ends = {float(time): float(value) for time, value in zip(times[is_last], alive[is_last], strict=True)}
    kept = np.unique(times[observed])
    return kept, np.array([ends[float(time)] for time in kept])


def _censoring_times(sample: Sample, generator: np.random.Generator, shape: tuple[int, ...]) -> Series:
    """Times at which observation would have ended; never, beyond the longest one."""
    times, alive = kaplan_meier(Sample("", sample.times_s, ~sample.is_observed))
    place = np.searchsorted(-alive, -generator.random(shape), side="left")
    return np.asarray(np.append(times, max(float(sample.times_s.max()), times[-1]))[place])


def _equal_edges(sample: Sample, bins: int) -> Series:
    return np.linspace(0.0, float(sample.times_s[sample.is_observed].max()), bins + 1)


def _probable_edges(sample: Sample, fit: Fit, bins: int) -> Series:
    """Borders between which equally many are expected, found on a fine grid of times."""
    count = min(bins, int(sample.events / EXPECTED))
    longest = float(sample.times_s.max())
    # A fit may expect times longer than any observed one; censoring ends with the longest.
    end = longest * (1000.0 if sample.is_complete else 1.0)
    grid = np.concatenate(([0.0], np.geomspace(min(longest * 1e-6, SHORTEST_S), end, 500)))
    reached = np.concatenate(([0.0], np.cumsum(_expected(sample, fit, grid))))
    inner = np.interp(np.arange(1, count) / count * reached[-1], reached, grid)
    return np.concatenate(([0.0], inner, [longest]))


def _expected(sample: Sample, fit: Fit, edges: Series) -> Series:
    """Drops expected between the borders; the last bin has all that is longer."""
    rows = _expected_rows(fit, edges, sample.times_s[None], fit.row[None], is_complete=sample.is_complete)
    return np.asarray(rows[0])


def _expected_rows(fit: Fit, edges: Series, times: Series, rows: Series, *, is_complete: bool) -> Series:
    """The same for samples, a row each, with parameters of their own."""
    borders = np.append(edges[1:-1], np.inf)
    if is_complete:
        inner = -np.expm1(-fit.family.cumulative_hazard(rows, np.broadcast_to(edges[1:-1], (rows.shape[0], edges.size - 2))))
        reached = np.concatenate((np.zeros((rows.shape[0], 1)), inner, np.ones((rows.shape[0], 1))), axis=-1)
        return np.asarray(np.diff(reached) * times.shape[-1])
    spent = [fit.family.cumulative_hazard(rows, np.minimum(times, border)).sum(axis=-1) for border in borders]
    return np.asarray(np.diff(np.stack(spent, axis=-1), axis=-1, prepend=0.0))


def _pearson(fit: Fit, edges: Series, times: Series, observed: Mask, rows: Series, *, is_complete: bool) -> Series:
    """Pearson's statistic of samples, a row each, in the same bins."""
    expected = np.maximum(_expected_rows(fit, edges, times, rows, is_complete=is_complete), 1e-9)
    place = np.where(observed, np.searchsorted(edges[1:-1], times, side="right"), -1)
    counts = np.stack([(place == index).sum(axis=-1) for index in range(edges.size - 1)], axis=-1)
    return np.asarray(((counts - expected) ** 2 / expected).sum(axis=-1))


def _joined(edges: Series, expected: Series) -> Series:
    """Borders that are left when bins are joined with their neighbours until enough are expected in each."""
    kept, within = [float(edges[0])], 0.0
    for end, here in zip(edges[1:].tolist(), expected.tolist(), strict=True):
        within += here
        if within >= EXPECTED - 1e-6:
            kept.append(end)
            within = 0.0
    # The remainder joins the last bin, or is the only bin.
    return np.array([*(kept[:-1] if len(kept) > 1 else kept), float(edges[-1])])
