"""Values of `docs/validation/call-drops.md` on calls that are drawn: fits to halves of the measured calls, and bundles."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import page
from matplotlib.figure import Figure
from page import paragraph

from farlink.channels.calls import clusters
from farlink.channels.calls.fits import fit as fit_distribution
from farlink.channels.calls.generator.causes import DropCauses, Handovers, LowSignal, SetUp, fitted
from farlink.channels.calls.generator.draw import draw
from farlink.channels.calls.generator.fit import CauseFit, expected_drops, fit, halves, log_likelihood, still_up
from farlink.channels.calls.generator.survival import log_survival
from farlink.channels.calls.links import Link, links_of
from farlink.channels.calls.replay import DownTimes, bundle_text
from farlink.channels.calls.samples import Sample, airtimes, up_times
from farlink.channels.calls.words import duration, durations
from farlink.engines import run
from farlink.plot import style
from farlink.scenario import from_data

START = DropCauses(other_mean_s=3000.0, set_up=SetUp(0.02, 3.0))
SET_UP = ("set_up.drops", "set_up.mean_s")
# Name -> where the fit begins, and what is free.
ALTERNATIVES: dict[str, tuple[DropCauses, tuple[str, ...]]] = {
    "constant rate": (DropCauses(other_mean_s=3000.0), ("other_mean_s",)),
    "constant rate, set-up": (START, ("other_mean_s", *SET_UP)),
    "handovers, set-up": (
        DropCauses(handovers=Handovers(failure=0.1), set_up=SetUp(0.02, 3.0)),
        ("handovers.failure", *SET_UP),
    ),
    "low signal, set-up": (
        DropCauses(low_signal=LowSignal(9.5), set_up=SetUp(0.02, 3.0)),
        ("low_signal.mean_db", *SET_UP),
    ),
}
AGES_S = (0, 10, 60, 180, 300, 900)
BUNDLE = ("sg124", "sg178", "sg179", "sg272", "sg677")
HOURS = 20.0
DRAWN = 12
GAP_S = 53.0


def page_values(links: Sequence[Link]) -> page.Values:
    """Values of the page."""
    first, second = halves(links)
    # The intervals of a low signal would take minutes.
    fits = {
        name: fit(first, start, free=free, with_intervals=start.low_signal is None)
        for name, (start, free) in ALTERNATIVES.items()
    }
    whole = fit(up_times(links), START, free=ALTERNATIVES["constant rate, set-up"][1])
    beside = replace(START, handovers=Handovers(failure=0.02))
    both = fit(up_times(links), beside, free=("other_mean_s", "handovers.failure", *SET_UP))
    measured = bundle_of(links)
    return {
        "halves": halves_text(first, second),
        "alternatives": alternatives(fits, first, second),
        "ages": ages(fits["constant rate, set-up"].causes, second),
        "survived": survived(fits["constant rate, set-up"].causes, second),
        "chosen": chosen(whole, both),
        "unexplained": unexplained(links),
        "driven": driven(measured, links),
    }


def figure(links: Sequence[Link]) -> Figure:
    """Survival of the calls held out beside what the other half fits, and of the default description with each cause."""
    first, second = halves(links)
    causes = fit(first, START, free=ALTERNATIVES["constant rate, set-up"][1], with_intervals=False).causes
    drawn, (axes, right) = style.new_figure(height_in=6.4, rows=2, is_y_shared=False, is_x_shared=False)
    ages = np.linspace(0.0, 600.0, 601)
    alive, errors = still_up(second, ages_s=ages.tolist())
    axes.fill_between(ages, alive - 1.96 * errors, alive + 1.96 * errors, color=style.COLOURS[0], alpha=0.2, linewidth=0)
    axes.step(ages, alive, where="post", color=style.COLOURS[0], label="held out, Kaplan-Meier")
    axes.plot(ages, np.exp(log_survival(causes, ages)), color=style.COLOURS[1], label="fitted to the other half")
    axes.set_title("Measured calls", fontsize=style.TEXT_PT)
    late = np.linspace(0.0, 3600.0, 1801)
    parts = {
        "default": fitted(),
        "no handover fails": replace(fitted(), handovers=None),
        "handovers fail, 14 %": DropCauses(handovers=Handovers(failure=0.143), set_up=fitted().set_up),
        "default, and SNR of 9 dB": replace(fitted(), low_signal=LowSignal(9.0)),
    }
    for (words, one), colour in zip(parts.items(), style.COLOURS, strict=False):
        right.plot(late / 60, np.exp(log_survival(one, late)), color=colour, label=words)
    right.set_title("Causes, in closed form", fontsize=style.TEXT_PT)
    for panel, unit in ((axes, "s"), (right, "min")):
        panel.set_xlabel(f"age of the call, {unit}")
        panel.legend(fontsize=style.TEXT_PT - 1, frameon=False)
    axes.set_ylabel("still up")
    return drawn


def halves_text(first: Sample, second: Sample) -> str:
    """What is fitted and what is held out."""
    return paragraph(
        f"Fitted: every other contact of each glider, {first.times_s.size:,} calls with {first.events} drops; held out: "
        f"{second.times_s.size:,} calls with {second.events}. A contact is what follows within an hour. The calls of the "
        "Slocum have no ends and count in neither."
    )


def alternatives(fits: dict[str, CauseFit], first: Sample, second: Sample) -> str:
    """A row per description: how likely both halves are by it."""
    rows = []
    for name, found in fits.items():
        values = "; ".join(f"{key} {value:.3g}{interval(found, key)}" for key, value in found.values.items())
        held_out = log_likelihood(second, found.causes)
        rows.append((name, values, f"{found.aic:.1f}", f"{held_out:.1f}"))
    weibull = fit_distribution(first, "weibull")
    held_out = density_of(weibull, second)
    shape = f"shape {weibull.parameters['shape']:.2f}, scale {duration(weibull.parameters['scale_s'])}"
    rows.append(("Weibull, for comparison", shape, f"{weibull.aic:.1f}", f"{held_out:.1f}"))
    return page.table(("causes", "fitted, 95 %", "AIC", "log likelihood of the calls held out"), rows, "llr")


def interval(found: CauseFit, key: str) -> str:
    """The 95 % interval of a parameter, if it was searched."""
    if key not in found.intervals:
        return ""
    low, high = found.intervals[key]
    return f" ({low:.3g} to {high:.3g})"


def density_of(found: Any, held_out: Sample) -> float:
    """Log likelihood by a distribution, to the second as that of causes."""
    before, after = np.maximum(held_out.times_s - 0.5, 0.0), held_out.times_s + 0.5
    dropped = np.log(np.maximum(found.survival(np.maximum(before, 1e-9)) - found.survival(after), 1e-300))
    return float(np.where(held_out.is_observed, dropped, np.log(found.survival(held_out.times_s))).sum())


def ages(causes: DropCauses, held_out: Sample) -> str:
    """Drops by age: found and expected."""
    expected = expected_drops(held_out, causes, ages_s=AGES_S)
    dropped = held_out.times_s[held_out.is_observed]
    found, _ = np.histogram(dropped, AGES_S)
    rows = [
        (f"{low:g} to {high:g} s", f"{count}", f"{mean:.1f}", f"{(count - mean) / math.sqrt(mean):+.1f}")
        for low, high, count, mean in zip(AGES_S, AGES_S[1:], found, expected, strict=False)
    ]
    every = float(expected.sum())
    rows.append(("all", f"{dropped.size}", f"{every:.1f}", f"{(dropped.size - every) / math.sqrt(every):+.1f}"))
    return page.table(("age of the call", "drops held out", "expected", "difference in standard deviations"), rows, "lr")


def survived(causes: DropCauses, held_out: Sample) -> str:
    """Survival beside Kaplan and Meier's estimate."""
    at_s = (10.0, 60.0, 180.0, 300.0, 500.0)
    alive, errors = still_up(held_out, ages_s=at_s)
    expected = np.exp(log_survival(causes, np.array(at_s)))
    rows = [
        (
            f"{age:g} s",
            f"{100 * a:.2f} ± {196 * e:.2f} %",
            f"{100 * model:.2f} %",
            f"{np.count_nonzero(held_out.times_s > age)}",
        )
        for age, a, e, model in zip(at_s, alive, errors, expected, strict=True)
    ]
    return page.table(("age", "still up, Kaplan-Meier", "fitted to the other half", "calls left"), rows, "lr")


def chosen(whole: CauseFit, both: CauseFit) -> str:
    """The default description."""
    causes = fitted()
    assert causes.handovers is not None
    high = both.intervals["handovers.failure"][1]
    early_low, early_high = whole.intervals["set_up.drops"]
    failure = 100 * causes.handovers.failure
    return paragraph(
        f"Fitted to all {whole.events} drops: {whole.values['set_up.drops']:.4f} drops at the beginning of a call "
        f"({early_low:.4f} to {early_high:.4f}), {whole.values['set_up.mean_s']:.1f} s old in the mean, and one in "
        f"{duration(whole.values['other_mean_s'])} of a call from then on ({durations(whole.intervals['other_mean_s'])}). With "
        f"handovers beside the constant rate the likelihood accepts that none fails, and that {100 * high:.2g} % do: "
        "calls of at most 14.7 min do not tell one from the other, as the time to the first handover is all but uniform and "
        f"its rate constant. The default takes the thesis's tenth of the drops, {failure:.2g} % of the handovers, and leaves "
        f"{duration(causes.other_mean_s)} between the others. A low signal is left out: no log of Iridium has the ratio, and "
        "the rule alone, without a constant rate, fits worse, as by the rule no call drops within its first 16 s."
    )


def unexplained(links: Sequence[Link]) -> str:
    """Clusters: measured, and of drawn calls of the same gliders."""
    closing = closing_times(links)
    drawn = [
        replace(link, name=f"{link.name} {number}")
        for number in range(4)
        for link in links_of(
            draw(
                replace(fitted(), redial=replace(fitted().redial, mean_s=600.0)),
                lines=7,
                duration_s=86_400.0 * 3,
                seed=number + 1,
                closed_after_s=closing,
            ).events
        )
    ]
    said = []
    for name, group in (("measured", links), ("drawn", drawn)):
        one = next(found for found in clusters.clusterings(group) if found.question == "runs of calls")
        alike = next(found for found in clusters.clusterings(group) if found.question == "links alike")
        after, other = (100 * one.details[f"p_drop_after_{key}"] for key in ("drop", "end"))
        said.append(
            f"{name}: {after:.0f} % of the calls after one that dropped drop too, {other:.0f} % of the others; one rate for "
            f"all links: likelihood ratio {alike.value:.0f} with {alike.expected:.0f} degrees of freedom"
        )
    return "\n".join(f"- {one}" for one in said)


def closing_times(links: Sequence[Link]) -> list[float]:
    """Ages at which calls would be closed if none dropped: Kaplan and Meier's estimate with drops as what censors."""
    up = up_times(links)
    reverse = Sample("closed", up.times_s, ~up.is_observed)
    order = np.unique(reverse.times_s[reverse.is_observed])
    alive, _ = still_up(reverse, ages_s=order.tolist())
    places = np.searchsorted(-alive, -(1 - (np.arange(400) + 0.5) / 400), side="left")
    return [float(value) for value in order[np.minimum(places, order.size - 1)]]


def bundle_of(links: Sequence[Link]) -> list[DownTimes]:
    """The drops of gliders in time connected, each followed by the same gap: lines that would be up all the time."""
    return [joined(link, number) for number, link in enumerate(link for link in links if link.name in BUNDLE)]


def joined(link: Link, number: int) -> DownTimes:
    """One line: its times between drops one after the other, redials of an exponential time in between."""
    generator = np.random.default_rng([7, number])
    span_s = HOURS * 3600
    up, now_s, outages = airtimes([link]), 0.0, []
    for time_s in up.times_s:
        now_s += float(time_s)
        gap_s = float(generator.exponential(GAP_S))
        if now_s + gap_s >= span_s:
            break
        outages.append((round(now_s, 3), round(now_s + gap_s, 3)))
        now_s += gap_s
    return DownTimes(link.name, 0.0, span_s, [one for one in outages if one[1] > one[0]])


def driven(measured: list[DownTimes], links: Sequence[Link]) -> str:
    """A row per bundle: goodput and time with n lines up."""
    closing = closing_times(links)
    gliders: list[list[DownTimes]] = []
    always: list[list[DownTimes]] = []
    for seed in range(DRAWN):
        quick = replace(fitted(), redial=replace(fitted().redial, mean_s=1.0))
        log = draw(quick, lines=len(BUNDLE), duration_s=90 * 3600.0, seed=seed, closed_after_s=closing)
        gliders.append([joined(link, 100 * seed + number) for number, link in enumerate(links_of(log.events))])
        always.append(draw(fitted(), lines=len(BUNDLE), duration_s=HOURS * 3600, seed=seed).down)
    rows = [("measured, joined", *cells([measured]))]
    with page.steps("bundles", 2 * DRAWN) as told:
        rows.append((f"drawn as gliders, joined ({DRAWN})", *cells(gliders, told)))
        rows.append((f"drawn, always up ({DRAWN})", *cells(always, told)))
    head = ("calls", "drops", "all five up", "four up", "three or fewer", "goodput in kbit/s")
    return page.table(head, rows, "lr")


def cells(bundles: Sequence[list[DownTimes]], told: Callable[[], None] = lambda: None) -> list[str]:
    """Mean and range over bundles."""
    values = []
    for bundle in bundles:
        up = shares(bundle)
        drops = sum(len(times.outages) for times in bundle)
        values.append((drops, 100 * up[-1], 100 * up[-2], 100 * sum(up[:-2]), goodput_bps(bundle) / 1000))
        told()
    table = np.array(values)
    digits = (0, 1, 2, 3, 2)
    units = ("", " %", " %", " %", "")
    said = []
    for column, digit, unit in zip(table.T, digits, units, strict=True):
        text = f"{column.mean():.{digit}f}{unit}"
        said.append(text if len(table) == 1 else f"{text} ({column.min():.{digit}f} to {column.max():.{digit}f})")
    return said


def shares(bundle: Sequence[DownTimes]) -> list[float]:
    """Share of the time with 0, 1, ... lines up."""
    steps = sorted(
        (edge, step) for times in bundle for outage in times.outages for edge, step in zip(outage, (-1, 1), strict=True)
    )
    found, up, last_s = np.zeros(len(bundle) + 1), len(bundle), 0.0
    for edge, step in steps:
        found[up] += edge - last_s
        up, last_s = up + step, edge
    found[up] += bundle[0].span_s - last_s
    return (found / bundle[0].span_s).tolist()


def goodput_bps(bundle: Sequence[DownTimes]) -> float:
    """What a long TCP transfer gets over it, as in `scenarios/iridium-bundle.toml`."""
    text = f"""
title = "Drawn calls"
duration_s = {HOURS * 3600:g}
[link]
rate_bps = 2400
delay_s = 0.5
{bundle_text(bundle)}
[transport.tcp]
kind = "tcp"
variant = "sack"
segment_bytes = 1448
timestamps = true
delayed_ack = true
max_window_segments = 33
rto = {{ minimum_s = 1, initial_s = 30 }}
[flow.data]
transport = "tcp"
traffic = {{ kind = "bulk" }}
"""
    data = tomllib.loads(text)
    arq = {"frame_bytes": 25, "window_frames": 6, "loss": 0.03, "loss_again": 0.1}
    data["link"]["bundle"] |= {"line_packets": 3, "on_drop": "lose", "arq": arq}
    found = run(from_data(data)).summary()
    return float(next(entry["goodput_bps"]["mean"] for entry in found if entry["flow"] == "data"))
