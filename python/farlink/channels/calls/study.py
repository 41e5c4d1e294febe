"""All that logs of calls say: samples, fits, tests, clusters and causes, per link and for the bundle."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farlink.channels.calls import clusters, goodness, samples
from farlink.channels.calls.availability import Availability, availability
from farlink.channels.calls.causes import Cause, causes, handovers
from farlink.channels.calls.clusters import Clustering
from farlink.channels.calls.distributions import DISTRIBUTIONS
from farlink.channels.calls.fits import Fit, fit, mean_at_least_s
from farlink.channels.calls.goodness import Verdict
from farlink.channels.calls.journal import time_text
from farlink.channels.calls.links import Link, links_of, merged
from farlink.channels.calls.logs import Log, read
from farlink.channels.calls.samples import Sample
from farlink.channels.calls.words import duration
from farlink.errors import JournalError

ALL = "all links"
_DIGITS = re.compile(r"(\d+)")
BUNDLE = "bundle"


@dataclass(frozen=True)
class Judged:
    """A fit and the results of its tests.

    Attributes
    ----------
    fit
        The fit.
    equal_bins, probable_bins
        The chi-square test with bins of equal width, as in the thesis, and with bins that are equally probable.
    anderson_darling
        The better test.
    """

    fit: Fit
    equal_bins: Verdict
    probable_bins: Verdict
    anderson_darling: Verdict


@dataclass(frozen=True)
class Times:
    """A sample and its fits.

    Attributes
    ----------
    sample
        The times.
    judged
        A fit of each distribution.
    accepted_means_s
        Means of an exponential that the chi-square test of the thesis accepts; None if none, or if it cannot be done.
    """

    sample: Sample
    judged: list[Judged]
    accepted_means_s: tuple[float, float] | None

    @property
    def best(self) -> Fit:
        """The fit of least AIC, among those there are; the exponential if there is none."""
        fitted = [one.fit for one in self.judged if one.fit.is_fitted]
        return min(fitted, key=lambda one: one.aic) if fitted else self.judged[0].fit

    def of(self, distribution: str) -> Judged:
        """The fit of one distribution."""
        return next(one for one in self.judged if one.fit.distribution == distribution)


@dataclass(frozen=True)
class Part:
    """Results for one link, for all links taken as one, or for the bundle.

    Attributes
    ----------
    name
        Of the link, or `ALL`, or `BUNDLE`.
    links
        Those that it is about.
    times
        Its samples by name: ``up``, ``airtime``, ``inter-drop``, ``redial``, and ``handover`` where the log has handovers; of
        the bundle ``inter-drop`` only.
    clusterings
        Whether drops cluster.
    """

    name: str
    links: list[Link]
    times: dict[str, Times]
    clusterings: list[Clustering] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many."""
        return sum(len(link.calls) for link in self.links)

    @property
    def drops(self) -> int:
        """How many."""
        return sum(len(link.drops) for link in self.links)

    @property
    def connected_s(self) -> float:
        """How long its links were up in all, in s."""
        return math.fsum(link.connected_s for link in self.links)


@dataclass(frozen=True)
class Study:
    """The complete study.

    Attributes
    ----------
    logs
        What was read.
    links
        Its links.
    parts
        Each link; `ALL` if there are several; `BUNDLE` if their logs run at the same time.
    causes
        What is known of the causes.
    availability
        Share of the time that the links of a bundle are up; None if the logs do not cover the same time.
    """

    logs: list[Log]
    links: list[Link]
    parts: list[Part]
    causes: list[Cause]
    availability: Availability | None = None

    @property
    def whole(self) -> Part:
        """The link, if there is one only; else all links."""
        return next((part for part in self.parts if part.name == ALL), self.parts[0])

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what is unknown is null."""
        found: dict[str, Any] = {
            "logs": [{"name": log.name, "format": log.format, "lines": log.lines} for log in self.logs],
            "parts": [_part_dict(part) for part in self.parts],
            "causes": [cause.to_dict() for cause in self.causes],
            "handovers": {
                link.name: [{"time": time_text(one.time_s), "is_observed": one.is_observed} for one in handovers(link)]
                for link in self.links
                if link.snr or link.handovers_s
            },
            "availability": self.availability.to_dict() if self.availability else None,
        }
        return {key: _without_nan(value) for key, value in found.items()}


def load(
    paths: Sequence[str | Path], *, format: str | None = None, only: Sequence[str] = (), zone: str | None = None
) -> tuple[list[Log], list[Link]]:
    """Read logs and sort their events into links, in the order of their names.

    Parameters
    ----------
    paths
        The logs.
    format
        Format of all logs; None to recognise it.
    only
        Names of the links to keep; none keeps all.
    zone
        Where times without a zone were written, such as ``Europe/Berlin``; without it they are refused.

    Raises
    ------
    JournalError
        If a log cannot be read or contradicts itself, or has no such link.
    """
    logs = [read(path, format, zone) for path in paths]
    links = merged([links_of(log.events) for log in logs])
    unknown = [name for name in only if name not in {link.name for link in links}]
    if unknown:
        raise JournalError(f"there is no link {unknown[0]!r}", f"links: {', '.join(link.name for link in links)}")
    chosen = [link for link in links if not only or link.name in only]
    return logs, sorted(chosen, key=lambda link: [int(part) if part.isdigit() else part for part in _DIGITS.split(link.name)])


def study(
    paths: Sequence[str | Path],
    *,
    format: str | None = None,
    only: Sequence[str] = (),
    zone: str | None = None,
    pause_s: float = samples.PAUSE_S,
    replicates: int = goodness.REPLICATES,
    seed: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Study:
    """Read logs of calls and fit distributions to their times.

    Parameters
    ----------
    paths
        The logs.
    format
        Format of all logs; None to recognise it.
    only
        Names of the links to keep; none keeps all.
    zone
        Where times without a zone were written, such as ``Europe/Berlin``; without it they are refused.
    pause_s
        Times from a drop to the next call above it are pauses, not redials, in s.
    replicates, seed
        Of the bootstrap of Anderson and Darling's test.
    progress
        Called with the parts done and all parts.

    Raises
    ------
    JournalError
        If a log cannot be read or contradicts itself, or nothing dropped in any of them and no link was handed over twice.
    """
    logs, links = load(paths, format=format, only=only, zone=zone)
    _check_drops(logs, links)
    groups = [(link.name, [link]) for link in links]
    if len(links) > 1:
        groups.append((ALL, links))
        if samples.bundle_span_s(links) is not None:
            groups.append((BUNDLE, links))
    parts = []
    for index, (name, group) in enumerate(groups):
        parts.append(_part(name, group, pause_s, replicates, seed))
        progress(index + 1, len(groups))
    return Study(logs, links, parts, causes(links), availability(links))


def judged(sample: Sample, *, replicates: int = goodness.REPLICATES, seed: int = 1) -> Times:
    """Fit every distribution to a sample and test each fit.

    Parameters
    ----------
    sample
        The times.
    replicates, seed
        Of the bootstrap of Anderson and Darling's test.
    """
    found = []
    for name in DISTRIBUTIONS:
        one = fit(sample, name)
        drawn = None
        if one.is_fitted and sample.events >= goodness.FEWEST:
            drawn = goodness.draw(sample, one, count=replicates, seed=seed)
        found.append(
            Judged(
                one,
                goodness.chi_square(sample, one, drawn=drawn),
                goodness.chi_square(sample, one, widths="probable", drawn=drawn),
                goodness.anderson_darling(sample, one, drawn=drawn),
            )
        )
    return Times(sample, found, goodness.accepted_means_s(sample))


def _part(name: str, links: list[Link], pause_s: float, replicates: int, seed: int) -> Part:
    if name == BUNDLE:
        chosen = [samples.bundle_inter_drop_times(links)]
    else:
        chosen = [samples.up_times(links), samples.airtimes(links), samples.inter_drop_times(links)]
        chosen.append(samples.redial_times(links, pause_s))
        if any(link.handovers_s for link in links):
            chosen.append(samples.handover_times(links))
    times = {one.name: judged(one, replicates=replicates, seed=seed) for one in chosen}
    if name == BUNDLE:
        return Part(name, links, times, [clusters.links_together(links, seed=seed)])
    return Part(name, links, times, clusters.clusterings(links))


def _check_drops(logs: list[Log], links: list[Link]) -> None:
    if any(link.drops for link in links) or any(len(link.handovers_s) > 1 for link in links):
        return
    names = ", ".join(log.name for log in logs)
    calls, lines = sum(len(link.calls) for link in links), sum(log.lines for log in logs)
    connected_s = math.fsum(link.connected_s for link in links)
    counted = f"{calls} call{'' if calls == 1 else 's'}, {duration(connected_s)} connected"
    message = f"{names}: no drop in lines 1 to {lines}: {counted}"
    if connected_s == 0:
        raise JournalError(message, "give a log with calls in it")
    least = duration(mean_at_least_s(connected_s))
    raise JournalError(message, f"a fit needs 2 drops; all that is known: the mean up time is above {least} (95 %)")


def _part_dict(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "calls": part.calls,
        "drops": part.drops,
        "connected_s": part.connected_s,
        "dials": sum(link.dials for link in part.links),
        "failed": sum(link.failed for link in part.links),
        "blocked": sum(link.blocked for link in part.links),
        "handovers": sum(len(link.handovers_s) for link in part.links),
        "times": {name: _times_dict(times) for name, times in part.times.items()},
        "clusters": [one.to_dict() for one in part.clusterings],
    }


def _times_dict(times: Times) -> dict[str, Any]:
    return {
        "count": int(times.sample.times_s.size),
        "observed": times.sample.events,
        "sum_s": times.sample.exposure_s,
        "note": times.sample.note,
        "accepted_means_s": list(times.accepted_means_s) if times.accepted_means_s else None,
        "fits": [
            {
                **one.fit.to_dict(),
                "tests": {
                    "chi_square_equal": one.equal_bins.to_dict(),
                    "chi_square_probable": one.probable_bins.to_dict(),
                    "anderson_darling": one.anderson_darling.to_dict(),
                },
            }
            for one in times.judged
        ],
    }


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
