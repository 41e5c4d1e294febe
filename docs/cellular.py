"""The section of `docs/validation/call-drops.md` on 5G modems and a Starlink dish: called by `docs/call_drops.py`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from page import DATA, Values, paragraph
from scipy import stats

from farlink.channels.calls.causes import LOW_SNR, low_snr_spells
from farlink.channels.calls.clusters import links_together, wilson
from farlink.channels.calls.describe import verdict
from farlink.channels.calls.fits import mean_at_least_s
from farlink.channels.calls.links import Call, Link
from farlink.channels.calls.samples import Sample, sample
from farlink.channels.calls.study import BUNDLE, Study, judged, load
from farlink.channels.calls.words import duration, durations
from farlink.plot.style import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODEMS = DATA / "starlink-5g-fjordlink" / "5g-router"
DISH = DATA / "starlink-5g-fjordlink" / "starlink"
LEO_DELAY = DATA / "starlink-leocc-example" / "delay_example.txt"

# A Starlink terminal is assigned a satellite anew at such intervals.
SLOT_S = 15
Series = NDArray[np.float64]


@dataclass(frozen=True)
class Dish:
    """Readings of the dish.

    Attributes
    ----------
    files
        Of each file: times in s since 1970, shares of lost pings, latencies in ms.
    connected_s
        How long it was connected, in s.
    drops
        How often it disconnected.
    """

    files: list[tuple[Series, Series, Series]]
    connected_s: float
    drops: int


def read_dish() -> Dish:
    """The readings, and the study of their log."""
    paths = sorted(DISH.glob("*.gzip"))
    _, (link,) = load(paths)
    files = []
    for path in paths:
        table = pq.read_table(io.BytesIO(path.read_bytes())).to_pydict()
        time_s = np.array([datetime.fromisoformat(text).timestamp() for text in table["@timestamp"]])
        files.append(
            (
                time_s,
                np.array(table["dish_status.pop_ping_drop_rate"]),
                np.array(table["dish_status.pop_ping_latency_ms"]),
            )
        )
    return Dish(files, link.connected_s, len(link.drops))


def page_values(modems: Study, dish: Dish) -> Values:
    """Values of the page."""
    return {
        "modems": "\n".join(table_of_modems(modems)),
        "handovers": paragraph(handovers(modems)),
        "together": paragraph(together(modems)),
        "signal": paragraph(signal(modems)),
        "drops": paragraph(drops(modems)),
        "dish": paragraph(
            f"{len(dish.files)} hours on six days, a reading a second: connected for {duration(dish.connected_s)}, "
            f"{dish.drops} "
            f"drops: it was never without its state CONNECTED, and in no second were all pings lost. `farlink bundle "
            f"fit` refuses "
            f"to fit that and says that the mean up time is above {duration(mean_at_least_s(dish.connected_s))} (95 %)."
        ),
        "fold": paragraph(fold_text(dish)),
        "spells": paragraph(spells_text(dish)),
        "leo": paragraph(leo_text()),
    }


def table_of_modems(modems: Study) -> list[str]:
    """A row per modem."""
    lines = [
        "| modem | connected | drops | mean redial | handovers | mean between them | 95 % | median | exponential? | "
        "least AIC |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|---|",
    ]
    for part in modems.parts:
        if part.name == BUNDLE:
            continue
        times = part.times["handover"]
        exponential = times.of("exponential")
        median = duration(float(np.median(times.sample.times_s[times.sample.is_observed])))
        redial = duration(part.times["redial"].of("exponential").fit.mean_s)
        lines.append(
            f"| {part.name} | {part.connected_s / 3600:.2f} h | {part.drops} | {redial} | "
            f"{sum(len(link.handovers_s) for link in part.links)} | {duration(exponential.fit.mean_s)} | "
            f"{durations(exponential.fit.mean_ci_s)} | {median} | {verdict(exponential.anderson_darling)} | "
            f"{times.best.distribution} |"
        )
    return lines


def handovers(modems: Study) -> str:
    """Distribution of the times between handovers."""
    times = modems.whole.times["handover"]
    states = times.of("two-state-markov").fit.states
    weibull = times.of("weibull").fit
    low, high = weibull.intervals["shape"]
    markov = times.of("two-state-markov")
    return (
        "Handovers are no Poisson process: an exponential is rejected of each modem. They come in bursts: the "
        "two-state chain has "
        f"one in {duration(states['bad_drop_interval_s'])} during {duration(states['bad_s'])} and none during "
        f"{duration(states['good_s'])}; the Weibull shape is {weibull.parameters['shape']:.2f} ({low:.2f} to "
        f"{high:.2f}). Of all "
        f"of them together the chain is the best of the three and passes the chi-square test with 15 equal bins "
        f"({verdict(markov.equal_bins)}); with bins of equal probability it is {verdict(markov.probable_bins)}, by "
        f"Anderson and Darling's "
        f"test {verdict(markov.anderson_darling)}: the shape is right, the seconds are not."
    )


def together(modems: Study) -> str:
    """Whether modems are handed over at the same times."""
    said = []
    operators = {"Telekom": ("CAU-0C", "5G-DTAG-WAVELAB"), "Vodafone": ("CAU-4329", "5G-D2-WAVELAB")}
    by_name = {link.name: handed_over(link) for link in modems.links}
    for name, links in (
        ("all four", list(by_name.values())),
        *((key, [by_name[one] for one in pair]) for key, pair in operators.items()),
    ):
        one = links_together(links)
        said.append(
            f"{name} {one.value:.0f} pairs within {one.details['within_s']:g} s, {one.expected:.0f} by chance (p {one.p:.2g})"
        )
    return (
        f"Modems are handed over together: {'; '.join(said)}. Chance is that of one modem's times turned against the "
        f"others'. A "
        "bundle of modems in one place is not as many independent links, of two operators no more than of one."
    )


def handed_over(link: Link) -> Link:
    """The handovers as ends of calls, so that the tests of drops apply to them."""
    starts = [link.first_s, *link.handovers_s[:-1]]
    calls = [Call(start, end, "dropped") for start, end in zip(starts, link.handovers_s, strict=True)]
    return Link(link.name, calls, first_s=link.first_s, last_s=link.last_s)


def signal(modems: Study) -> str:
    """The rule of the thesis on low signal."""
    said = []
    for below_db, for_s in LOW_SNR:
        spells = [(link, end) for link in modems.links for _, end in low_snr_spells(link, below_db, for_s)]
        ended = sum(any(call.drop_s == end for call in link.drops) for link, end in spells)
        _, high = wilson(ended, len(spells))
        said.append(
            f"{len(spells)} times below {below_db:g} dB for {for_s:g} s, {ended} of which ended in a drop (at most "
            f"{100 * high:.1f} %)"
        )
    return (
        "Zaghloul's section 5.1 says that a call drops after 16 s below 0 dB, and in general after 20 s below 2 dB. "
        "For these modems "
        f"that is no rule: {'; '.join(said)}. LTE and 5G are decoded at such ratios. It says nothing of Iridium."
    )


def drops(modems: Study) -> str:
    """The number of drops, their significance, and their relation to handovers."""
    near = next(one for one in modems.causes if "handover" in one.name)
    spells, receiving = without_cell()
    redial = modems.whole.times["redial"].sample.times_s
    return (
        f"{modems.whole.drops} drops are too few for a test (it needs 8) and for a distribution; they last "
        f"{redial.min():.0f} to "
        f"{redial.max():.0f} s. {near.drops} of {near.of} come within 30 s of a handover, {near.by_chance:.1f} would by "
        f"chance "
        f"(p {near.p:.2g}). And in {receiving} of the {spells} the router received more than 1 Mb/s in the last of "
        f"those seconds: "
        "the modem said nothing of its cell and was connected all the same. As links for a bundle they are up "
        f"{100 * availability(modems):.2f} % of the time, each."
    )


def availability(modems: Study) -> float:
    """Share of the time that a modem is up, on average."""
    assert modems.availability is not None
    return modems.availability.mean_up / len(modems.links)


def without_cell() -> tuple[int, int]:
    """Periods without a serving cell, and in how many of them data were received in the last second."""
    readings: dict[str, list[tuple[str, float]]] = {}
    for path in sorted(MODEMS.glob("*.gzip")):
        table = pq.read_table(io.BytesIO(path.read_bytes())).to_pydict()
        for name, cell, rate in zip(table["identity"], table["lte.lCurrentCellid"], table["lte.lrxbitspersecond"], strict=True):
            readings.setdefault(name, []).append((cell or "", float(rate or 0)))
    spells = receiving = 0
    for rows in readings.values():
        for has_cell, run in groupby(rows, key=lambda row: bool(row[0])):
            last = list(run)[-1]
            spells += not has_cell
            receiving += not has_cell and last[1] > 1e6
    return spells, receiving


def folded(dish: Dish, threshold: float = 0.0) -> tuple[NDArray[np.int64], Series]:
    """Seconds with loss by position in the slots of 15 s, and the number expected if the position did not matter."""
    time_s = np.concatenate([one[0] for one in dish.files])
    lost = np.concatenate([one[1] for one in dish.files]) > threshold
    places = (time_s % SLOT_S).astype(np.int64)
    found = np.bincount(places[lost], minlength=SLOT_S)
    return found, np.bincount(places, minlength=SLOT_S) * (found.sum() / time_s.size)


def fold_text(dish: Dish) -> str:
    """Whether losses depend on the slots."""
    found, expected = folded(dish)
    p = float(stats.chi2.sf(((found - expected) ** 2 / expected).sum(), SLOT_S - 1))
    first = [int(found[index]) for index in (14, 0, 1)]
    time_s = np.concatenate([one[0] for one in dish.files])
    lost = np.concatenate([one[1] for one in dish.files]) > 0
    controls = []
    for period in (13, 17):
        counts = np.bincount((time_s % period).astype(int)[lost], minlength=period)
        controls.append(f"{period} s p {float(stats.chisquare(counts).pvalue):.2g}")
    return (
        f"Losses know of the slots of {SLOT_S} s in which Starlink assigns satellites: {found.sum()} seconds have some loss, "
        f"{sum(first)} of them in the three seconds around a multiple of {SLOT_S} s (UTC), "
        f"{100 * sum(first) / found.sum():.0f} % "
        f"where a fifth would be chance (p {p:.1g} for all 15 places; other periods show nothing: "
        f"{', '.join(controls)}). The "
        "latency jumps a second or two before. The reading is late by as much as the dish averages over, so that the "
        "place within "
        "the slot is not that of the change itself."
    )


def spells_text(dish: Dish) -> str:
    """Times between periods of loss, as a process."""
    spells, gaps = loss_spells(dish)
    times = judged(gaps)
    best = times.best
    fitted = times.of("exponential")
    return (
        f"The seconds with loss form {spells.size} spells of {spells.mean():.1f} s in the mean, {spells.max():.0f} s at "
        f"most. From "
        f"one to the next it is {duration(fitted.fit.mean_s)} ({durations(fitted.fit.mean_ci_s)}); an exponential is "
        f"{verdict(fitted.anderson_darling)}, least AIC has {best.distribution} "
        f"({verdict(times.of(best.distribution).anderson_darling)}). In the mean of all seconds "
        f"{100 * np.concatenate([one[1] for one in dish.files]).mean():.2f} % of the pings are lost: a channel that "
        f"loses a little "
        "more every 15 s, and no link that drops."
    )


def loss_spells(dish: Dish) -> tuple[Series, Sample]:
    """Lengths of periods of consecutive seconds with loss, and times from one start to the next, within an hour."""
    lengths: list[float] = []
    gaps: list[float] = []
    for time_s, lost, _ in dish.files:
        edges = np.flatnonzero(np.diff(np.concatenate(([0], (lost > 0).astype(int), [0]))))
        begins, ends = edges[::2], edges[1::2]
        lengths += (ends - begins).tolist()
        gaps += np.diff(time_s[begins]).tolist()
    return np.array(lengths, dtype=np.float64), sample("loss", gaps)


def leo_text() -> str:
    """The slots in a trace of the delay every 10 ms."""
    delay_ms = np.loadtxt(LEO_DELAY)
    level = np.convolve(delay_ms, np.ones(50) / 50, "valid")
    step = np.abs(level[50:] - level[:-50])
    period = SLOT_S * 100
    mean = np.array([step[place::period].mean() for place in range(period)])
    place = int(mean.argmax())
    return (
        f"A trace of the delay every 10 ms (LeoCC, {delay_ms.size / 100:.0f} s) shows the change itself: half a second "
        f"before and "
        f"half a second behind {(place + 50) / 100:.1f} s into each {SLOT_S} s the delay differs by {mean[place]:.1f} "
        f"ms in the "
        f"mean, elsewhere by {np.median(mean):.1f} ms. It has no column of losses."
    )


def figure(dish: Dish) -> Figure:
    """Losses and latency by position in the slot."""
    drawn, (upper, lower) = new_figure(height_in=5.2, rows=2, is_y_shared=False)
    found, expected = folded(dish)
    places = np.arange(SLOT_S)
    upper.bar(places + 0.5, found, width=0.85, color=COLOURS[0], alpha=0.6, label="seconds with loss")
    upper.step(np.append(places, SLOT_S), np.append(expected, expected[-1]), where="post", color=COLOURS[6], label="by chance")
    upper.set_ylabel("number of seconds")
    upper.set_ylim(0, 1.3 * max(found))
    upper.legend(frameon=False, loc="upper right")
    jumps = [np.abs(np.diff(latency_ms)) for _, _, latency_ms in dish.files]
    where = np.concatenate([time_s[1:] for time_s, _, _ in dish.files]) % SLOT_S
    change = np.concatenate(jumps)
    lower.bar(
        places + 0.5,
        [change[where.astype(int) == place].mean() for place in places],
        width=0.85,
        color=COLOURS[2],
        alpha=0.6,
        label="mean change of the latency from second to second",
    )
    lower.set_ylabel("change (ms)")
    lower.set_ylim(0, 0.8)
    lower.legend(frameon=False, loc="upper right")
    lower.set_xlabel(f"place in the slot of {SLOT_S} s (s)")
    return drawn
