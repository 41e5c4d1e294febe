"""Tables of `docs/bundles.py`."""

from __future__ import annotations

from collections.abc import Iterable

import bundle_studies as studies
import page
from bundle_studies import Cell, Runs, gain

from farlink.models.multilink import call_drops
from farlink.models.multilink.windowed_bundle import WindowedBundle, goodput_bps, rtt_s
from farlink.papers.estimate import Estimate

IRIDIUM = WindowedBundle(studies.LINES, studies.RATE_BPS, 1500, studies.WINDOW, delay_s=studies.DELAY_S, arq=studies.REPETITION)


def table_of_drops(drops: studies.Drops) -> str:
    """A row per variant and mean up time."""
    head = ["TCP", "a line drops every", "lost", "requeued", "gain", "timeouts"]
    head += ["patience: lost", "requeued", "gain", "timeouts", "eq. (36)"]
    rows = []
    for variant in studies.VARIANTS:
        for up_s in studies.UP_TIMES_S:
            row = [variant, f"{up_s / 60:g} min"]
            for patience_s in (None, studies.PATIENCE_S):
                lose, requeue = (drops[variant, up_s, on_drop, patience_s] for on_drop in ("lose", "requeue"))
                row += [
                    rate(lose.mean("goodput_bps")),
                    rate(requeue.mean("goodput_bps")),
                    percents(gain(requeue, lose), signed=True),
                ]
                row += [f"{per_drop(lose):.2f}, {per_drop(requeue):.2f}"]
            rows.append([*row, equation_36(up_s)])
    return table(head, rows)


def table_of_slow_timers(slow: dict[tuple[str, float | None], Runs]) -> str:
    """Rows with and without a receiver timeout."""
    rows = []
    for patience_s in (None, studies.PATIENCE_S):
        lose, requeue = (slow[on_drop, patience_s] for on_drop in ("lose", "requeue"))
        row = [
            "none" if patience_s is None else f"{patience_s} s",
            rate(lose.mean("goodput_bps")),
            rate(requeue.mean("goodput_bps")),
        ]
        rows.append([*row, f"{per_drop(lose):.2f}, {per_drop(requeue):.2f}"])
    return table(["patience", "lost", "requeued", "timeouts per drop"], rows)


def table_of_patience(drops: studies.Drops) -> str:
    """A row per time that the receiver waits."""
    head = ["patience"]
    for up_s in studies.SWEPT_UP_TIMES_S:
        head += [f"{up_s / 60:g} min: lost", "timeouts per drop", "requeued", "timeouts per drop"]
    rows = []
    for patience_s in (*studies.PATIENCES_S, None):
        row = ["none" if patience_s is None else f"{patience_s} s"]
        for up_s in studies.SWEPT_UP_TIMES_S:
            for on_drop in ("lose", "requeue"):
                runs = drops["sack", up_s, on_drop, patience_s]
                row += [rate(runs.mean("goodput_bps")), f"{per_drop(runs):.2f}"]
        rows.append(row)
    return table(head, rows)


def table_of_settings(found: dict[tuple[str, float], Runs]) -> str:
    """A row per rate of drops, in kb/s."""
    rows = []
    for up_s in studies.DEFAULT_UP_TIMES_S:
        means = [found[name, up_s].mean("goodput_bps", 1e-3) for name in studies.SETTINGS]
        every = f"{up_s} s" if up_s < 300 else f"{up_s / 60:g} min" if up_s < 3600 else f"{up_s / 3600:g} h"
        rows.append([every, *(f"{one.mean:.2f} ± {one.half_width:.2f}" for one in means)])
    return table(["a line drops every", *studies.SETTINGS], rows)


def table_of_errors(errors: dict[Cell, float]) -> str:
    """Mean and largest error by lines and kind of window."""
    kinds = {"N / 2": lambda cell: max(1, cell.lines // 2), "N": lambda cell: cell.lines, "2 N": lambda cell: 2 * cell.lines}
    kinds |= {"N `line_packets`": lambda cell: cell.lines * cell.line_packets, f"{studies.WINDOW}": lambda _: studies.WINDOW}
    head = ["ARQ", "lines", *(f"window {name}" for name in kinds)]
    rows = []
    for repeats in (False, True):
        for lines in studies.LINE_COUNTS:
            row = ["yes" if repeats else "no", f"{lines}"]
            for window in kinds.values():
                chosen = [
                    value
                    for cell, value in errors.items()
                    if cell.repeats == repeats and cell.lines == lines and cell.window == window(cell)
                ]
                row.append(f"{percent(min(chosen))} to {percent(max(chosen))}")
            rows.append(row)
    return table(head, rows)


def table_of_line_packets(windows: dict[Cell, Estimate]) -> str:
    """Engine and model by `line_packets`."""
    rows = []
    for packets in studies.LINE_PACKETS:
        cell = Cell(max(studies.LINE_COUNTS), packets, min(studies.PACKETS_BYTES), studies.WINDOW, True)
        rows.append([f"{packets}", rate(windows[cell]), f"{float(goodput_bps(cell.model)):.0f}"])
    return table(["`line_packets`", "engine", "model"], rows)


def table_of_mrrus(mrrus: dict[int, studies.Mrru]) -> str:
    """A row per largest packet."""
    head = ["MRRU, bytes", "window, packets", "goodput, engine", "model", "round trip, engine", "model"]
    head += ["a single packet, one way", f"goodput, drops every 50 min, patience {studies.PATIENCE_S} s"]
    rows = []
    for length, one in mrrus.items():
        row = [f"{length}", f"{one.model.window_packets}", rate(one.steady.mean("goodput_bps"))]
        row += [f"{float(goodput_bps(one.model)):.0f}", seconds(one.rtt), f"{float(rtt_s(one.model)):.2f} s"]
        rows.append([*row, seconds(one.single.mean("delay_mean_s")), rate(one.dropping.mean("goodput_bps"))])
    return table(head, rows)


def table_of_cuts(cuts: dict[studies.CutKey, tuple[Runs, Runs]]) -> str:
    """A row per number of lines and frame error rate."""
    head = ["lines", "frame errors", "TCP, bit/s: whole", "fragments", "its delay: whole", "fragments"]
    head += ["single packets, mean (99 %): whole", "fragments"]
    rows = []
    for lines, loss in dict.fromkeys(key[:2] for key in cuts):
        pair = [cuts[lines, loss, packets] for packets in ("whole", "fragmented")]
        row = [f"{lines}", f"{100 * loss:g} %", *(rate(bulk.mean("goodput_bps")) for bulk, _ in pair)]
        row += [seconds(bulk.mean("delay_mean_s")) for bulk, _ in pair]
        rows.append([*row, *(f"{seconds(one.mean('delay_mean_s'))} ({one['delay_p99_s'].mean():.1f} s)" for _, one in pair)])
    return table(head, rows)


def table_of_given_up(found: dict[tuple[float, str, float | None], tuple[Runs, Runs]]) -> str:
    """A row per frame error rate and patience."""
    head = ["frame errors", "patience", "TCP, bit/s: whole", "fragments", "single packets lost: whole", "fragments"]
    head += ["their mean delay: whole", "fragments"]
    rows = []
    for loss, patience_s in dict.fromkeys((loss, patience_s) for loss, _, patience_s in found):
        pair = [found[loss, packets, patience_s] for packets in ("whole", "fragmented")]
        row = [f"{100 * loss:g} %", "none" if patience_s is None else f"{patience_s} s"]
        row += [rate(bulk.mean("goodput_bps")) for bulk, _ in pair]
        row += [percents(one.mean("loss_fraction")) for _, one in pair]
        rows.append([*row, *(seconds(one.mean("delay_mean_s")) for _, one in pair)])
    return table(head, rows)


def table_of_schedulers(scheduled: dict[tuple[str, str], studies.Scheduled]) -> str:
    """A row per bundle and scheduler."""
    head = ["lines", "scheduler", "TCP, bit/s", "round trip", "its deviation", "out of order both ways, per packet"]
    head += ["datagrams at 10 %: mean (99 %)", "at 50 %: mean (99 %)"]
    rows = []
    for (name, scheduler), one in scheduled.items():
        overtaken = one.bulk["out_of_order_fragments"].sum() / one.bulk["delivered_packets"].sum()
        row = [name, f"`{scheduler}`", rate(one.bulk.mean("goodput_bps")), seconds(one.rtt_s), seconds(one.rtt_deviation_s)]
        row += [f"{overtaken:.2f}"]
        row += [f"{seconds(load.mean('delay_mean_s'))} ({load['delay_p99_s'].mean():.1f} s)" for load in (one.light, one.half)]
        rows.append(row)
    return table(head, rows)


def table_of_short_lines(short: dict[tuple[str, bool, int], Runs]) -> str:
    """A row per scheduler, a column per `line_packets`."""
    counts = sorted({packets for _, _, packets in short})
    rows = []
    for scheduler, repeats in dict.fromkeys(key[:2] for key in short):
        values = [rate(short[scheduler, repeats, packets].mean("goodput_bps")) for packets in counts]
        rows.append([f"`{scheduler}`", "yes" if repeats else "no", *values])
    return table(["scheduler", "ARQ", *(f"`line_packets` {packets}" for packets in counts)], rows)


def table_of_restless(restless: dict[str, Runs]) -> str:
    """A row per scheduler."""
    rows = []
    for scheduler, runs in restless.items():
        against = percents(gain(runs, restless["round-robin"]), signed=True) if scheduler != "round-robin" else "–"
        also = percents(gain(runs, restless["earliest-delivery"]), signed=True) if scheduler == "drop-aware" else "–"
        rows.append([f"`{scheduler}`", rate(runs.mean("goodput_bps")), against, also, f"{per_drop(runs):.3f}"])
    return table(["scheduler", "TCP, bit/s", "to `round-robin`", "to `earliest-delivery`", "timeouts per drop"], rows)


def table_of_unnumbered(found: dict[tuple[str, str, str, str], Runs]) -> str:
    """A row per bundle, scheduler and variant."""
    rows = []
    for name, scheduler, variant in dict.fromkeys((name, scheduler, variant) for name, scheduler, _, variant in found):
        numbered, bare = (found[name, scheduler, header, variant] for header in ("long", "none"))
        overtaken = bare["out_of_order_fragments"].sum() / bare["delivered_packets"].sum()
        row = [name, f"`{scheduler}`", variant, rate(numbered.mean("goodput_bps")), rate(bare.mean("goodput_bps"))]
        rows.append([*row, percents(gain(bare, numbered), signed=True), f"{overtaken:.2f}"])
    return table(["lines", "scheduler", "TCP", "with numbers", "without", "change", "out of order both ways, per packet"], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table; numbers to the right."""
    return page.table(head, rows, "".join("r" if cell[:1].isdigit() or cell[:1] in "+-" else "l" for cell in rows[0]))


def listed(values: Iterable[object]) -> str:
    """Several in words."""
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def rate(estimate: Estimate) -> str:
    """Bit/s and their interval."""
    return f"{estimate.mean:.0f} ± {estimate.half_width:.0f}"


def seconds(estimate: Estimate) -> str:
    """A time and its interval."""
    return f"{estimate.mean:.2f} ± {estimate.half_width:.2f} s"


def percents(estimate: Estimate, *, signed: bool = False) -> str:
    """A share and its interval."""
    sign = "+" if signed else ""
    return f"{100 * estimate.mean:{sign}.1f} ± {100 * estimate.half_width:.1f} %"


def percent(change: float) -> str:
    """A change with its sign; none is -0.0."""
    return f"{100 * change + 0.0:+.1f} %".replace("-0.0", "+0.0")


def per_drop(runs: Runs) -> float:
    """Timeouts for each call that drops."""
    return float(runs["timeouts"].sum() / runs["call_drops"].sum())


def equation_36(up_s: float) -> str:
    """Goodput by the thesis, with the round trip of the loaded bundle."""
    bps = predicted_bps(up_s)
    return "–" if bps is None else f"{bps:.0f}"


def predicted_bps(up_s: float) -> float | None:
    """The same as a number; none where the equation does not hold."""
    dropped_hz = studies.LINES / up_s
    if dropped_hz > float(call_drops.highest_drop_rate_hz(0.0, timeout_s=60)):
        return None
    segments_hz = call_drops.throughput(
        dropped_hz, loss_rate=0.0, rtt_s=rtt_s(IRIDIUM), timeout_s=60, window_segments=studies.WINDOW
    )
    return 8 * studies.SEGMENT_BYTES * float(segments_hz)
