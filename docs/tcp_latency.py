"""Write `docs/validation/tcp-latency.md` and its pictures: `make papers`. Takes ten minutes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import page

import farlink
from farlink.cli.progress import progress_bar
from farlink.models.tcp_latency import cardwell, padhye
from farlink.papers.estimate import Estimate
from farlink.papers.zaghloul import slow_bundle
from farlink.papers.zaghloul.transfers import (
    MODELS,
    RTT_S,
    SEGMENT_BYTES,
    TIMEOUT_S,
    WINDOW_SEGMENTS,
    Point,
    simulated,
)
from farlink.papers.zaghloul.transfers import Path as Route
from farlink.papers.zaghloul.trust import FAIR, GOOD, Compared, compare, share_within, worst_in
from farlink.plot.curves import Line
from farlink.plot.error_map import error_maps
from farlink.plot.lines import lines
from farlink.scenario import from_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEGMENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
LOSSES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.05, 0.1)
ROUTES = tuple(
    Route(losses, per_ack, window)
    for losses in ("independent", "correlated")
    for per_ack in (2, 1)
    for window in (WINDOW_SEGMENTS, None)
)
HALF_WIDTH, MAX_RUNS = 0.015, 6000
# Where a transfer seldom loses anything, an interval may be narrow because nothing was lost yet: so many runs at least, for
# transfers of up to so many segments and for longer ones.
LEAST_RUNS, LEAST_RUNS_LONG, LONG = 2000, 400, 100
# Blocks of the table: first and last length in segments, first and last loss.
BLOCKS = ((1, 1), (2, 10), (10, 100), (100, 1000), (1000, 10_000))
BANDS = ((1e-4, 1e-3), (1e-3, 0.01), (0.01, 0.03), (0.03, 0.1))
# Models that a cell of the table names at most.
SHOWN = 3
SHORT = {
    "padhye": "Padhye",
    "padhye-approximate": "Padhye (approx.)",
    "cardwell": "Cardwell",
    "whole-rounds": "Cardwell (whole)",
    "sikdar": "Sikdar (eq.)",
    "sikdar-recursion": "Sikdar (rec.)",
}


@dataclass(frozen=True)
class Gap:
    """A difference between model and engine, and the change of the engine that removes it."""

    model: str
    route: Route
    segments: int
    loss_rate: float
    changes: Mapping[str, Any]
    words: str


CORRELATED = Route("correlated", 2, WINDOW_SEGMENTS)
INDEPENDENT = Route("independent", 2, WINDOW_SEGMENTS)
FREE, FREE_CORRELATED = Route("independent", 2, None), Route("correlated", 2, None)
SACK = {"variant": "sack"}
STAMPED = {"timestamps": True}


def threshold(loss_rate: float) -> dict[str, int]:
    """Slow start that ends at the mean window between losses."""
    return {"initial_ssthresh_segments": round(float(padhye.mean_window(loss_rate)))}


GAPS = (
    Gap("padhye", FREE, 10_000, 3e-4, threshold(3e-4), "a threshold where losses will leave the window"),
    Gap("cardwell", FREE, 10_000, 3e-4, threshold(3e-4), "the same threshold"),
    Gap("padhye", FREE_CORRELATED, 10_000, 1e-4, threshold(1e-4), "a threshold where losses will leave the window"),
    Gap("padhye", CORRELATED, 1000, 0.01, SACK, "SACK: all losses of a round for one halving"),
    Gap("cardwell", CORRELATED, 50, 0.03, SACK | STAMPED, "SACK and timestamps"),
    Gap("padhye", CORRELATED, 1000, 0.1, SACK | STAMPED, "SACK and timestamps"),
    Gap("sikdar-recursion", CORRELATED, 1000, 0.1, STAMPED, "timestamps: back-off ends with a retransmission"),
    Gap("sikdar-recursion", INDEPENDENT, 1000, 0.1, STAMPED, "timestamps: back-off ends with a retransmission"),
    Gap("sikdar-recursion", CORRELATED, 1000, 1e-3, {"recover_guard": False}, "no `recover_guard`: halved for each loss"),
)

COSTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("timer of RFC 6298, 1 s at least", {"rto": {}}),
    ("timestamps", STAMPED),
    ("limited transmit (RFC 3042)", {"limited_transmit": True}),
    ("NewReno", {"variant": "newreno"}),
    ("SACK", SACK),
    ("Tahoe", {"variant": "tahoe"}),
    ("first window of 10 segments", {"initial_window_segments": 10}),
)
COST_SEGMENTS, COST_LOSSES = (10, 100, 1000), (1e-3, 0.01, 0.1)


def main() -> None:
    """Compute everything and write the page and its pictures."""
    page.start(__doc__)
    compared = []
    with progress_bar("maps", unit="paths") as tell:
        for index, route in enumerate(ROUTES):
            compared.append(compare(route, SEGMENTS, LOSSES, times_on(route, SEGMENTS, LOSSES)))
            tell(index + 1, len(ROUTES))
    with progress_bar("causes", unit="scenarios") as tell:
        gaps = [(gap, *before_and_after(gap, index, tell)) for index, gap in enumerate(GAPS)]
    with progress_bar("costs", unit="scenarios") as tell:
        costs = list(all_costs(tell))
    slow = slow_bundle.scenario(
        slow_bundle.SEGMENTS, slow_bundle.LOSSES, runs=(HALF_WIDTH / 2, 10 * LEAST_RUNS_LONG, 4 * MAX_RUNS)
    )
    result = farlink.run(from_data(slow))
    slow_times, slow_trips = slow_bundle.simulated(result)

    pictures = {picture_name(losses, per_ack): drawn_map(some) for (losses, per_ack), some in by_kind(compared).items()}
    pictures["tcp-latency-slow-link"] = drawn_times(slow_times)
    page.write("tcp-latency.md", pictures, change=lighter, **page_values(compared, gaps, costs, slow_times, slow_trips))


def times_on(
    route: Route, segments: Sequence[int], losses: Sequence[float], changes: Mapping[str, Any] | None = None
) -> dict[Point, Estimate]:
    """Mean simulated times on a path."""
    found: dict[Point, Estimate] = {}
    for some, least in (([n for n in segments if n <= LONG], LEAST_RUNS), ([n for n in segments if n > LONG], LEAST_RUNS_LONG)):
        if some:
            data = route.scenario(some, losses, runs=(HALF_WIDTH, least, MAX_RUNS), changes=changes)
            found |= simulated(route, farlink.run(from_data(data)))
    return found


def before_and_after(gap: Gap, index: int, tell: Any) -> tuple[Estimate, Estimate]:
    """Prediction over simulated time, as it is and with the change."""
    found = []
    for changes in (None, gap.changes):
        times = times_on(gap.route, [gap.segments], [gap.loss_rate], changes)
        one = compare(gap.route, [gap.segments], [gap.loss_rate], times, [gap.model])
        ratio = float(one.ratio[gap.model][0, 0])
        found.append(Estimate(ratio, ratio * float(one.half_width[0, 0])))
    tell(index + 1, len(GAPS))
    return found[0], found[1]


def all_costs(tell: Any) -> Iterator[tuple[str, str, list[float]]]:
    """Change, losses, and the changes of the time over the points of the table, as shares."""
    for route in (INDEPENDENT, CORRELATED):
        plain = times_on(route, COST_SEGMENTS, COST_LOSSES)
        for index, (words, changes) in enumerate(COSTS):
            times = times_on(route, COST_SEGMENTS, COST_LOSSES, changes)
            yield words, route.losses, [times[n, p].mean / plain[n, p].mean - 1 for n in COST_SEGMENTS for p in COST_LOSSES]
            tell(index + 1 + len(COSTS) * (route is CORRELATED), 2 * len(COSTS))


def page_values(
    compared: Sequence[Compared],
    gaps: Sequence[tuple[Gap, Estimate, Estimate]],
    costs: Sequence[tuple[str, str, list[float]]],
    slow_times: Mapping[Point, Estimate],
    slow_trips: Mapping[Point, Estimate],
) -> page.Values:
    """Values of the page."""
    widths = np.concatenate([one.half_width.ravel() for one in compared])
    rare_loss = LOSSES[1]
    rare = cardwell.slow_start_segments(SEGMENTS[-1], loss_rate=rare_loss)
    numbers = slow_bundle.SEGMENTS
    trips = slow_bundle.round_trips_s(numbers)["transient"]
    trip_errors = [abs(trip - slow_trips[n, 0.0].mean) for n, trip in zip(numbers, trips, strict=True)]
    lossless = slow_bundle.predictions_s(numbers, 0.0)["slow_link"]
    worst_exact = max(abs(ours - slow_times[n, 0.0].mean) for n, ours in zip(numbers, lossless, strict=True))
    own = list(slow_errors(slow_times, ["slow_link"]))
    return {
        "sizes": f"{size(SEGMENTS[0])} to {size(SEGMENTS[-1])}",
        "least_loss": percent(LOSSES[0]),
        "most_loss": percent(LOSSES[-1]),
        "cells": widths.size,
        "routes": len(compared),
        "least_runs": LEAST_RUNS_LONG,
        "max_runs": f"{MAX_RUNS:,}",
        "median_width": f"{100 * np.median(widths):.1f} %",
        "largest_width": f"{100 * widths.max():.1f} %",
        "rtt": RTT_S,
        "segment": SEGMENT_BYTES,
        "timeout": f"{TIMEOUT_S:g}",
        "good": GOOD,
        "fair": FAIR,
        "trust": "\n".join(trust_tables(compared)),
        "shares": "\n".join(share_table(compared)),
        "maps": "\n".join(
            f"![{losses} losses, b = {per_ack}](../pictures/{picture_name(losses, per_ack)}.svg)\n\n"
            f"*{losses.capitalize()} losses, b = {per_ack}.*\n"
            for losses, per_ack in by_kind(compared)
        ).rstrip(),
        "gaps": "\n".join(gap_table(gaps)),
        "rare_loss": percent(rare_loss),
        "rare_window": f"{float((rare + 2) / 3):.0f}",
        "settled_window": f"{float(padhye.mean_window(rare_loss)):.0f}",
        "two_rounds": float(cardwell.slow_start_s(2, rtt_s=1.0)),
        "ten_rounds": float(cardwell.slow_start_s(10, rtt_s=1.0, segments_per_ack=1)),
        "one": RTT_S,
        "limit": f"a window of {WINDOW_SEGMENTS} segments",
        "costs": "\n".join(cost_table(costs)),
        "rate": f"{slow_bundle.RATE_BPS / 1000:g}",
        "packet": slow_bundle.PACKET_BYTES,
        "empty": f"{slow_bundle.RTT_S:g}",
        "window": slow_bundle.WINDOW_SEGMENTS,
        "full": f"{slow_bundle.WINDOW_SEGMENTS * slow_bundle.SEGMENT_S:.1f}",
        "slow_timeout": f"{slow_bundle.TIMEOUT_S:g}",
        "trip_error": f"{max(trip_errors):.0e}",
        "trips": "\n".join(trip_table(slow_trips)),
        "slow": "\n".join(slow_table(slow_times)),
        "slow_error": f"{100 * max(abs(error) for _, _, errors in own for error in errors):.0f}",
        "exact": f"{worst_exact:.0e}",
    }


def by_kind(compared: Sequence[Compared]) -> dict[tuple[str, int], list[Compared]]:
    """Comparisons by losses and segments per acknowledgement."""
    found: dict[tuple[str, int], list[Compared]] = {}
    for one in compared:
        found.setdefault((one.path.losses, one.path.segments_per_ack), []).append(one)
    return found


def trust_tables(compared: Sequence[Compared]) -> Iterator[str]:
    """A table for each kind of losses and acknowledgements."""
    for (losses, per_ack), some in by_kind(compared).items():
        yield f"**{losses.capitalize()} losses, b = {per_ack}**"
        yield ""
        yield f"| window | size | {' | '.join(f'{percent(low)} to {percent(high)}' for low, high in BANDS)} |"
        yield "|---|---|" + "---|" * len(BANDS)
        for one in some:
            for low, high in BLOCKS:
                words = size(low) if low == high else f"{size(low)} to {size(high)}"
                cells = [trusted(worst_in(one, (low, high), band)) for band in BANDS]
                yield f"| {window_words(one.path)} | {words} | {' | '.join(cells)} |"
        yield ""


def trusted(worst: Mapping[str, float]) -> str:
    """The best class that is not empty."""
    good = [f"**{SHORT[model]}** {factor:.2f}" for model, factor in worst.items() if factor <= GOOD]
    fair = [f"{SHORT[model]} {factor:.2f}" for model, factor in worst.items() if factor <= FAIR]
    if good or fair:
        return ", ".join(good[:SHOWN]) or f"({', '.join(fair[:SHOWN])})"
    model, factor = next(iter(worst.items()))
    return f"~~{SHORT[model]} {factor:.2f}~~"


def share_table(compared: Sequence[Compared]) -> Iterator[str]:
    """A row per path, a column per model."""
    yield f"| path | {' | '.join(MODELS[key].name for key in MODELS)} |"
    yield "|---|" + "--:|" * len(MODELS)
    for one in compared:
        cells = [
            f"{100 * share_within(one, key, GOOD):.0f}, {100 * share_within(one, key, FAIR):.0f} %" if key in one.ratio else "–"
            for key in MODELS
        ]
        yield f"| {one.path.words} | {' | '.join(cells)} |"


def gap_table(gaps: Sequence[tuple[Gap, Estimate, Estimate]]) -> Iterator[str]:
    """A row per difference."""
    yield "| model | path | size | loss | off by | with this instead | off by |"
    yield "|---|---|--:|--:|--:|---|--:|"
    for gap, before, after in gaps:
        yield (
            f"| {MODELS[gap.model].name} | {gap.route.losses}, {window_words(gap.route)} | {size(gap.segments)} "
            f"| {percent(gap.loss_rate)} | {off(before)} | {gap.words} | {off(after)} |"
        )


def cost_table(costs: Sequence[tuple[str, str, list[float]]]) -> Iterator[str]:
    """A row per change, a column per point."""
    yield f"| instead | losses | {' | '.join(f'{size(n)}, {percent(p)}' for n in COST_SEGMENTS for p in COST_LOSSES)} |"
    yield "|---|---|" + "--:|" * (len(COST_SEGMENTS) * len(COST_LOSSES))
    for words, losses, changes in costs:
        yield f"| {words} | {losses} | {' | '.join(signed(change) for change in changes)} |"


def trip_table(trips: Mapping[Point, Estimate]) -> Iterator[str]:
    """Transient round trips by length."""
    numbers = slow_bundle.SEGMENTS
    yield f"| segments | {' | '.join(str(n) for n in numbers)} |"
    yield "|---|" + "--:|" * len(numbers)
    yield f"| engine, s | {' | '.join(f'{trips[n, 0.0].mean:.2f}' for n in numbers)} |"
    model = slow_bundle.round_trips_s(numbers)["transient"]
    yield f"| model, s | {' | '.join(f'{trip:.2f}' for trip in model)} |"


def slow_errors(times: Mapping[Point, Estimate], keys: Sequence[str] = ()) -> Iterator[tuple[float, str, list[float]]]:
    """Errors by loss and model, over the lengths."""
    numbers = slow_bundle.SEGMENTS
    for loss in slow_bundle.LOSSES:
        for name, predicted in slow_bundle.predictions_s(numbers, loss).items():
            if not keys or name in keys:
                yield loss, name, [time / times[n, loss].mean - 1 for n, time in zip(numbers, predicted, strict=True)]


def slow_table(times: Mapping[Point, Estimate]) -> Iterator[str]:
    """A row per loss and model, with the simulated time above."""
    numbers = slow_bundle.SEGMENTS
    yield f"| loss | model, round trip; segments: | {' | '.join(map(str, numbers))} |"
    yield "|--:|---|" + "--:|" * len(numbers)
    last = None
    for loss, name, errors in slow_errors(times):
        if loss != last:
            yield f"| {percent(loss)} | *engine, s* | {' | '.join(f'*{times[n, loss].mean:.0f}*' for n in numbers)} |"
            last = loss
        shown = [signed(error) for error in errors]
        yield f"| {percent(loss)} | {name} | {' | '.join(f'**{text}**' if name == 'slow_link' else text for text in shown)} |"


def drawn_map(some: Sequence[Compared]) -> Figure:
    """The maps of a kind of losses and acknowledgements."""
    first = some[0]
    nothing = np.full(first.half_width.shape, np.nan)
    ratios = {
        model.name: {window_words(one.path): one.ratio.get(key, nothing) for one in some}
        for key, model in MODELS.items()
        if any(key in one.ratio for one in some)
    }
    return error_maps(
        ratios,
        x_values=[size(number) for number in first.segments],
        y_values=[percent(loss) for loss in first.loss_rates],
        x_label="size of the transfer",
        y_label="packet loss",
    )


def drawn_times(times: Mapping[Point, Estimate]) -> Figure:
    """Predicted over simulated time against the length, for a loss in the middle."""
    loss = slow_bundle.LOSSES[2]
    drawn = []
    for name, predicted in slow_bundle.predictions_s(slow_bundle.SEGMENTS, loss).items():
        if not name.startswith("Padhye"):
            ratio = [
                (
                    float(n),
                    float(time / times[n, loss].mean),
                    float(time * times[n, loss].half_width / times[n, loss].mean ** 2),
                )
                for n, time in zip(slow_bundle.SEGMENTS, predicted, strict=True)
            ]
            drawn.append(Line(name, ratio))
    return lines(
        drawn,
        x_label=f"segments of the transfer, packet loss {percent(loss)}",
        y_label="predicted over simulated time",
        x_ticks=slow_bundle.SEGMENTS,
        is_y_log=False,
        marked=[(1.0, "")],
    )


def lighter(svg: str) -> str:
    """The same picture with the style of its many texts defined once."""
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    looks = dict.fromkeys(re.findall(r'<text (style="[^"]*")', svg))
    rules = []
    for number, look in enumerate(looks):
        if svg.count(f"<text {look}") > 5:
            svg = svg.replace(f"<text {look}", f'<text class="t{number}"')
            rules.append(f".t{number} {{ {look[7:-1]} }}")
    svg = re.sub(r'<g id="[^"]*text_\d+">\s*(<text [^>]*>[^<]*</text>)\s*</g>', r"\1", svg)
    start = svg.index(">") + 1
    return f"{svg[:start]}\n <style>{' '.join(rules)}</style>{svg[start:]}" if rules else svg


def picture_name(losses: str, per_ack: int) -> str:
    """Stem of the picture of a kind of losses and acknowledgements."""
    return f"tcp-latency-{losses}-b{per_ack}"


def window_words(route: Route) -> str:
    """Whether the window is limited."""
    return "no window limit" if route.window_segments is None else f"window of {route.window_segments}"


def size(segments: int) -> str:
    """A length in bytes."""
    kilobytes = segments * SEGMENT_BYTES / 1000
    return f"{kilobytes / 1000:g} MB" if kilobytes >= 1000 else f"{kilobytes:g} kB"


def percent(share: float) -> str:
    """A loss."""
    return f"{100 * share:g} %"


def signed(change: float) -> str:
    """A change in whole per cent."""
    return f"{100 * change:+.0f}" if abs(change) >= 0.005 else "0"


def off(ratio: Estimate) -> str:
    """Error of a prediction, with the interval."""
    return f"{100 * (ratio.mean - 1):+.0f} ± {100 * ratio.half_width:.0f} %"


if __name__ == "__main__":
    main()
