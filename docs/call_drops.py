"""Write `docs/validation/call-drops.md` and its pictures: `make papers`. Takes some minutes."""

from __future__ import annotations

import call_generator
import cellular
import numpy as np
import page
from page import DATA, paragraph

from farlink.channels.calls.clusters import Clustering, wilson
from farlink.channels.calls.describe import verdict
from farlink.channels.calls.fits import Fit
from farlink.channels.calls.study import ALL, Part, Study, Times, study
from farlink.channels.calls.words import duration, durations
from farlink.cli.progress import progress_bar
from farlink.plot import call_drops

SEAGLIDERS = DATA / "iridium-seaglider-commlog"
SLOCUM = DATA / "iridium-slocum-disconnects" / "1012-3.csv"

# Zaghloul, table 5.3.
THESIS = {"Kansas-Greenland": 50 * 60.0, "Kansas-Kansas": 52 * 60.0}


def main() -> None:
    """Fit everything and write the page."""
    page.start(__doc__, SEAGLIDERS, SLOCUM, cellular.MODEMS)
    paths = sorted(SEAGLIDERS.glob("*.gz"))
    with progress_bar("fits", "parts") as progress:
        seagliders, slocum = study(paths, progress=progress), study([SLOCUM])
        modems = study(sorted(cellular.MODEMS.glob("*.gzip")), progress=progress)
    dish = cellular.read_dish()
    figures = {
        "call-drops-seaglider": call_drops.figure(seagliders),
        "call-drops-slocum": call_drops.figure(slocum),
        "call-drops-drawn": call_generator.figure(seagliders.links),
        "call-drops-5g": call_drops.figure(modems),
        "call-drops-starlink": cellular.figure(dish),
    }
    page.write(
        "call-drops.md",
        figures,
        **page_values(seagliders, slocum),
        **call_generator.page_values(seagliders.links),
        **cellular.page_values(modems, dish),
    )


def page_values(seagliders: Study, slocum: Study) -> page.Values:
    """Values of the page on Iridium."""
    singles = [part for part in seagliders.parts if part.name != ALL]
    whole = seagliders.whole
    means_s = [exponential(part.times["airtime"]).mean_s for part in singles]
    worst = next(part for part in singles if part.name == "sg677")
    return {
        "links": "\n".join(table_of_links([*seagliders.parts, *slocum.parts])),
        "beside": paragraph(beside(whole, singles)),
        "distributions": "\n".join(table_of_fits(seagliders, slocum)),
        "clusters": "\n".join(table_of_clusters([*seagliders.parts, *slocum.parts])),
        "chain": chain([whole, worst, slocum.whole]),
        "bars": paragraph(bars(seagliders)),
        "transfers": paragraph(transfers(seagliders, slocum)),
        "redials": redials([whole, slocum.whole]),
        "shapes": paragraph(shapes(whole, worst)),
        "longest_call": duration(max(call.up_s for part in singles for call in part.links[0].calls if call.outcome == "ended")),
        "naive": duration(whole.connected_s / whole.calls),
        "mean": duration(exponential(whole.times["airtime"]).mean_s),
        "dropped_only": duration(float(np.mean(whole.times["up"].sample.times_s[whole.times["up"].sample.is_observed]))),
        "unknown": sum(1 for link in worst.links for call in link.drops if call.up_s != call.up_s),
        "shortest": duration(min(means_s)),
        "longest": duration(max(means_s)),
    }


def shapes(whole: Part, worst: Part) -> str:
    """Conclusions from the fitted distributions."""
    sample = worst.times["up"].sample
    early = int(np.count_nonzero(sample.times_s[sample.is_observed] <= 10.0))
    low, high = worst.times["up"].of("weibull").fit.intervals["shape"]
    pooled = whole.times["airtime"].of("weibull").fit.parameters["shape"]
    return (
        f"`{worst.name}` drops like a chain of two states whose bad one is the beginning of a call: {early} of {sample.events} "
        f"drops come in its first 10 s. One Weibull distribution has to bend for both (shape {low:.2f} to {high:.2f}) and is "
        f"rejected. The shape of {pooled:.2f} over all links may come of the links alone: where they differ, the hazard of all "
        "of them together falls, even if that of none does."
    )


def exponential(times: Times) -> Fit:
    """The exponential fit to some times."""
    return times.of("exponential").fit


def table_of_links(parts: list[Part]) -> list[str]:
    """A row per link, and those of the thesis."""
    lines = [
        "| link | calls | drops | connected | connected per drop | 95 % | exponential? | clusters? |",
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for part in parts:
        asked = [one for one in part.clusterings if one.is_clustered is not None and one.question != "links alike"]
        clustered = f"{sum(bool(one.is_clustered) for one in asked)} of {len(asked)}" if asked else "–"
        times = part.times["airtime"]
        fitted = exponential(times)
        if fitted.is_fitted:
            cells = (f"{part.connected_s / 3600:.1f} h", duration(fitted.mean_s), durations(fitted.mean_ci_s))
            tested = verdict(times.of("exponential").anderson_darling)
        else:
            cells, tested = ("–", "–", "–"), "–"
        lines.append(f"| {part.name} | {part.calls:,} | {part.drops} | {' | '.join(cells)} | {tested} | {clustered} |")
    for name, mean_s in THESIS.items():
        drops = "394" if "Greenland" in name else "not said"
        lines.append(f"| thesis, {name} | – | {drops} | – | {duration(mean_s)} | not said | accepted, chi-square | – |")
    return lines


def beside(whole: Part, singles: list[Part]) -> str:
    """The thesis's rates beside the measured ones."""
    fitted = exponential(whole.times["airtime"])
    low, high = fitted.mean_ci_s
    both = all(low <= mean_s <= high for mean_s in THESIS.values())
    within = []
    for part in singles:
        first, last = exponential(part.times["airtime"]).mean_ci_s
        if all(first <= mean_s <= last for mean_s in THESIS.values()):
            within.append(f"`{part.name}`")
    alike = next(one for one in whole.clusterings if one.question == "links alike")
    return (
        f"All Seagliders together: a drop in {duration(fitted.mean_s)} of connection ({durations((low, high))}); "
        f"1/50 and 1/52 min lie {'both inside' if both else 'not both inside'}. Of each alone, the interval of "
        f"{', '.join(within)} has both. But the gliders are not alike (likelihood ratio {alike.value:.0f} with "
        f"{alike.expected:.0f} degrees of freedom, p {alike.p:.0e}), from {duration(alike.details['shortest_mean_s'])} to "
        f"{duration(alike.details['longest_mean_s'])}: the interval of all is that of a constant rate which they do not have. "
        "The thesis takes its modems as identical and says no interval; 394 exponential times give ±10 %."
    )


def table_of_fits(seagliders: Study, slocum: Study) -> list[str]:
    """A row per sample and distribution."""
    lines = [
        "| times | link | observed, censored | distribution | mean | 95 % | shape or chain | chi-square | equally probable | "
        "Anderson-Darling |",
        "|---|---|--:|---|--:|--:|---|---|---|---|",
    ]
    chosen = {part.name: part for part in seagliders.parts}
    rows = [
        ("up", chosen["sg677"]),
        ("up", chosen["sg272"]),
        ("airtime", chosen["sg677"]),
        ("airtime", chosen["sg272"]),
        ("airtime", chosen[ALL]),
    ]
    for name, part in [*rows, ("inter-drop", slocum.whole)]:
        times = part.times[name]
        sample = times.sample
        for one in times.judged:
            fitted = one.fit
            words = {"up": "up", "airtime": "connected between drops", "inter-drop": "clock between drops"}[name]
            head = f"| {words} | {part.name} | {sample.events}, {sample.times_s.size - sample.events} |"
            if not fitted.is_fitted:
                lines.append(f"{head} {fitted.distribution} | {fitted.reason} | | | | | |")
                continue
            star = " *" if fitted is times.best else ""
            interval = "–" if fitted.reason else durations(fitted.mean_ci_s)
            tests = " | ".join(verdict(test) for test in (one.equal_bins, one.probable_bins, one.anderson_darling))
            lines.append(
                f"{head} {fitted.distribution}{star} | {duration(fitted.mean_s)} | {interval} | {shape(one.fit)} | {tests} |"
            )
    return lines


def shape(fitted: Fit) -> str:
    """Parameters of a distribution other than its mean."""
    if fitted.distribution == "weibull":
        low, high = fitted.intervals.get("shape", (float("nan"), float("nan")))
        return f"shape {fitted.parameters['shape']:.2f} ({low:.2f} to {high:.2f})"
    if fitted.distribution == "two-state-markov":
        if fitted.reason:
            return "no better than an exponential"
        states = fitted.states
        return (
            f"bad state of {duration(states['bad_s'])}, a drop in {duration(states['bad_drop_interval_s'])} of it; good one of "
            f"{duration(states['good_s'])}"
        )
    return "–"


def table_of_clusters(parts: list[Part]) -> list[str]:
    """A row per link with enough drops for one of the questions."""
    questions = ("dispersion", "serial correlation", "runs of times", "runs of calls")
    lines = ["| link | dispersion (1) | rank correlation (0) | runs of times | runs of calls |", "|---|---|---|---|---|"]
    for part in parts:
        found = {one.question: one for one in part.clusterings}
        lines.append(f"| {part.name} | " + " | ".join(cluster_cell(found[name]) for name in questions) + " |")
    return [*lines, "", "Bold: clusters at 5 %. Runs: found, and expected without clusters. –: too few drops."]


def cluster_cell(one: Clustering) -> str:
    """Result of one question."""
    if one.reason:
        return "–"
    text = f"{one.value:.2f}" if "runs" not in one.question else f"{one.value:.0f} of {one.expected:.0f}"
    text = f"{text}, p {one.p:.1g}"
    return f"**{text}**" if one.is_clustered else text


def chain(parts: list[Part]) -> str:
    """How a drop follows a drop."""
    said = []
    for part in parts:
        details = next(one for one in part.clusterings if one.question == "runs of calls").details
        after, otherwise = (
            f"{100 * details[f'p_drop_after_{name}']:.0f} % ({100 * details[f'p_drop_after_{name}_low']:.0f} to "
            f"{100 * details[f'p_drop_after_{name}_high']:.0f})"
            for name in ("drop", "end")
        )
        said.append(f"- {part.name}: {after} of the calls after one that dropped drop too, {otherwise} of the others; at most "
                    f"{details['longest_run']:.0f} in a row")  # fmt: skip
    return "\n".join(said)


def bars(found: Study) -> str:
    """Whether the signal bars before a call predict its drop."""
    rows = [cause for cause in found.causes if "bars at the beginning" in cause.name]
    best = rows[-1]
    smallest = min(cause.p for cause in rows)
    return (
        f"The signal bars that a Seaglider reports at the beginning of a call do not tell whether it drops: {best.drops} of "
        f"{best.of} drops began with {best.name[0]} bars, {best.by_chance:.0f} would by chance; no number of bars stands out "
        f"(least p {smallest:.2f})."
    )


def transfers(seagliders: Study, slocum: Study) -> str:
    """In which part of a call drops fall."""
    said = []
    for name, found in (("Seagliders", seagliders), ("the Slocum", slocum)):
        parts = []
        for cause in found.causes:
            if cause.name in ("during a transfer", "before login"):
                low, high = wilson(cause.drops, cause.of)
                share = 100 * cause.drops / cause.of
                parts.append(f"{share:.0f} % {cause.name} ({100 * low:.0f} to {100 * high:.0f})")
        said.append(f"of the drops of {name}, {' and '.join(parts)}")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def redials(parts: list[Part]) -> str:
    """How soon links are up again."""
    said = []
    for part in parts:
        times = part.times["redial"]
        fitted = exponential(times)
        accepted = [one.fit.distribution for one in times.judged if one.anderson_darling.is_accepted]
        outcome = f"accepted: {', '.join(accepted)}" if accepted else "no distribution is accepted"
        said.append(
            f"- {part.name}: {duration(fitted.mean_s)} ({durations(fitted.mean_ci_s)}) in the mean of {times.sample.events}; "
            f"{outcome}. {times.sample.note[0].upper()}{times.sample.note[1:]}."
        )
    return "\n".join(said)


if __name__ == "__main__":
    main()
