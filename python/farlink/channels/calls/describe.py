"""A study in words and tables, for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from farlink.channels.calls.availability import Availability
from farlink.channels.calls.causes import Cause
from farlink.channels.calls.clusters import Clustering, wilson
from farlink.channels.calls.fits import Fit
from farlink.channels.calls.goodness import Verdict
from farlink.channels.calls.links import Link
from farlink.channels.calls.study import BUNDLE, Judged, Part, Study, Times
from farlink.channels.calls.words import duration, durations
from farlink.text_table import table

FIT_HEAD = ("distribution", "mean", "95 %", "AIC", "chi-square, 15 bins", "equally probable", "Anderson-Darling")
"""Columns of `fit_rows`."""

_TIMES = {
    "up": "Up time of a call (calls that end on purpose are censored)",
    "airtime": "Time connected from drop to drop of a link",
    "inter-drop": "Time from drop to drop by the clock on the wall",
    "redial": "Time from a drop until the link is up again",
    "handover": "Time from handover to handover while the link is up",
}
_QUESTIONS = {
    "dispersion": "variance over mean of drops per window (1 without clusters)",
    "serial correlation": "rank correlation of successive times between drops",
    "runs of times": "runs of long and short times between drops",
    "runs of calls": "runs of calls that drop and calls that do not",
    "links alike": "one drop rate for all links: likelihood ratio",
    "links together": "pairs of drops of different links",
}


def report(study: Study) -> str:
    """Everything, as text."""
    blocks = [_links(study.parts)]
    # Of a link that only ever drops, the time from drop to drop is the up time.
    is_twice = all(call.outcome != "ended" for link in study.links for call in link.calls)
    for part in study.parts:
        if part is study.whole or part.name == BUNDLE:
            shown = {name: times for name, times in part.times.items() if times.sample.times_s.size}
            blocks += [_times(part, name, times) for name, times in shown.items() if not (name == "airtime" and is_twice)]
            blocks.append(_clusterings(part))
    if study.availability:
        blocks.append(_availability(study.availability, len(study.links)))
    if study.causes:
        blocks.append(_causes(study.causes))
    return "\n\n".join(blocks) + "\n"


def fit_rows(times: Times) -> list[tuple[str, ...]]:
    """A row for each fit, with the columns of `FIT_HEAD`; the best has a star."""
    return [_fit_row(one, times) for one in times.judged]


def _links(parts: Sequence[Part]) -> str:
    rows = []
    for part in parts:
        if part.name == BUNDLE:
            continue
        airtime, redial = part.times["airtime"], part.times["redial"]
        exponential = airtime.of("exponential")
        asked = [one for one in part.clusterings if one.is_clustered is not None and one.question != "links alike"]
        rows.append(
            (
                part.name,
                f"{part.calls}",
                f"{part.drops}",
                f"{part.connected_s / 3600:.1f} h" if part.connected_s else "–",
                duration(exponential.fit.mean_s),
                durations(exponential.fit.mean_ci_s),
                verdict(exponential.anderson_darling) if part.connected_s else "–",
                f"{sum(bool(one.is_clustered) for one in asked)} of {len(asked)} tests" if asked else "–",
                duration(redial.of("exponential").fit.mean_s),
            )
        )
    head = ("link", "calls", "drops", "connected", "mean to drop", "95 %", "exponential?", "clusters?", "mean redial")
    foot = (
        "mean to drop: time connected over drops, with its interval if exponential; exponential? by Anderson and Darling's test"
    )
    return table(head, rows) + "\n" + foot + _dials(parts[-1].links)


def _dials(links: Sequence[Link]) -> str:
    """Outcomes of dials and number of handovers, if the logs have them."""
    dials, failed, blocked = (sum(getattr(link, key) for link in links) for key in ("dials", "failed", "blocked"))
    dialled = f"\n{dials} dials, {failed} of them failed; blocked {blocked} times" if dials + failed + blocked else ""
    handovers = sum(len(link.handovers_s) for link in links)
    return f"{dialled}\n{handovers} handovers" if handovers else dialled


def _availability(found: Availability, links: int) -> str:
    return (
        f"Over {duration(found.span_s)}, {found.mean_up:.3g} of {links} links are up on average. All are up "
        f"{100 * found.all_up:.3g} % of the time ({100 * found.all_up_independent:.3g} % if independent), at least one "
        f"{100 * found.any_up:.4g} % ({100 * found.any_up_independent:.4g} %)."
    )


def _times(part: Part, name: str, times: Times) -> str:
    sample = times.sample
    censored = sample.times_s.size - sample.events
    lines = [f"{_TIMES[name]}: {part.name}, {sample.events} observed, {censored} censored"]
    if sample.note:
        lines.append(f"({sample.note})")
    lines.append(table(FIT_HEAD, fit_rows(times)))
    event = "a handover" if name == "handover" else "drops"
    lines += [text for one in times.judged if (text := _parameters(one.fit, event))]
    if times.accepted_means_s:
        own = times.of("exponential").fit.mean_s
        low, high = times.accepted_means_s
        outside = "" if low <= own <= high else f", which leaves out the likeliest, {duration(own)}"
        lines.append(f"The chi-square test accepts exponentials of mean {durations(times.accepted_means_s)}{outside}.")
    return "\n".join(lines)


def _fit_row(one: Judged, times: Times) -> tuple[str, ...]:
    found = one.fit
    if not found.is_fitted:
        return (found.distribution, f"not fitted: {found.reason}", "", "", "", "", "")
    name = f"{found.distribution} *" if found is times.best else found.distribution
    interval = "no interval" if found.reason else durations(found.mean_ci_s)
    tests = (one.equal_bins, one.probable_bins, one.anderson_darling)
    return (name, duration(found.mean_s), interval, f"{found.aic:.1f}", *(verdict(test) for test in tests))


def _parameters(found: Fit, event: str) -> str:
    """Parameters of a fit other than its mean."""
    if not found.is_fitted or found.distribution == "exponential":
        return ""
    if found.distribution == "weibull":
        low, high = found.intervals.get("shape", (math.nan, math.nan))
        interval = "" if math.isnan(low) else f" ({low:.3g} to {high:.3g})"
        return f"weibull: shape {found.parameters['shape']:.3g}{interval}, scale {duration(found.parameters['scale_s'])}"
    if found.reason:
        return "two-state-markov: no better than an exponential"
    states = found.states
    return (
        f"two-state-markov: {event} every {duration(states['bad_drop_interval_s'])} in a bad state of mean length "
        f"{duration(states['bad_s'])}, none in a good one of {duration(states['good_s'])}"
    )


def verdict(test: Verdict) -> str:
    """Result of a test with its probability, or the number of drops that it needs."""
    if test.is_accepted is None:
        return test.reason.removesuffix(" of the bins only").partition(", there are")[0]
    return f"{'accepted' if test.is_accepted else 'rejected'}, p {test.p:.2g}"


def _clusterings(part: Part) -> str:
    rows = []
    for one in part.clusterings:
        if one.reason:
            rows.append((_QUESTIONS[one.question], one.reason, "", "", ""))
            continue
        yes = "links differ" if one.question == "links alike" else "drops cluster"
        no = "no difference seen" if one.question == "links alike" else "no clusters seen"
        rows.append(
            (
                _QUESTIONS[one.question],
                f"{one.value:.3g}",
                f"{one.expected:.3g}",
                f"{one.p:.2g}",
                yes if one.is_clustered else no,
            )
        )
    text = f"Clusters: {part.name}\n" + table(("question", "found", "expected", "p", "says"), rows)
    return text + "".join(f"\n{line}" for line in map(_chain, part.clusterings) if line)


def _chain(one: Clustering) -> str:
    if "p_drop_after_drop" not in one.details:
        return ""
    said = []
    for name, words in (("drop", "a call that dropped"), ("end", "one that did not")):
        share, low, high = (100 * one.details[f"p_drop_after_{name}{end}"] for end in ("", "_low", "_high"))
        said.append(f"{share:.3g} % ({low:.3g} to {high:.3g}) after {words}")
    return f"A call drops in {', '.join(said)}; at most {one.details['longest_run']:.0f} drops in a row."


def _causes(causes: Iterable[Cause]) -> str:
    rows = []
    for one in causes:
        low, high = wilson(one.drops, one.of)
        chance = "" if math.isnan(one.by_chance) else f"{one.by_chance:.3g}"
        p = "" if math.isnan(one.p) else f"{one.p:.2g}"
        rows.append((one.name, f"{one.drops} of {one.of}", f"{100 * low:.3g} to {100 * high:.3g} %", chance, p))
    return "Causes\n" + table(("cause", "drops", "share, 95 %", "by chance", "p"), rows)
