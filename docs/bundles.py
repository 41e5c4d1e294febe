"""Write `docs/validation/bundles.md` and its pictures: `make papers`. Takes some minutes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import bundle_late
import bundle_studies as studies
import cellular_bundle
import cellular_studies
import page
from bundle_pictures import picture_of_drops, picture_of_fragments, picture_of_windows
from bundle_studies import Cell, Runs, gain
from bundle_tables import (
    IRIDIUM,
    listed,
    per_drop,
    percent,
    percents,
    predicted_bps,
    rate,
    table_of_cuts,
    table_of_drops,
    table_of_errors,
    table_of_given_up,
    table_of_line_packets,
    table_of_mrrus,
    table_of_patience,
    table_of_restless,
    table_of_schedulers,
    table_of_settings,
    table_of_short_lines,
    table_of_slow_timers,
    table_of_unnumbered,
)

from farlink.models.multilink.windowed_bundle import packet_time_s, rtt_s
from farlink.papers.estimate import Estimate

# Name, and how many scenarios it takes.
STUDIES: dict[str, tuple[Callable[[studies.Told], Any], int]] = {
    "drops": (studies.drops, 56),
    "settings": (studies.settings, len(studies.SETTINGS) * len(studies.DEFAULT_UP_TIMES_S)),
    "slow_timers": (studies.slow_timers, 4),
    "windows": (studies.windows, len(list(studies.cells()))),
    "mrrus": (studies.mrrus, 5),
    "cuts": (studies.cuts, 24),
    "cuts_given_up": (studies.cuts_given_up, 12),
    "schedulers": (studies.schedulers, 12),
    "unnumbered": (studies.unnumbered, 22),
    "short_lines": (studies.short_lines, 20),
    "restless": (studies.restless, 12),
    **bundle_late.STUDIES,
    "cellular": (cellular_studies.study, cellular_studies.SCENARIOS),
}

Found = dict[str, Any]


def main() -> None:
    """Run everything and write the page."""
    page.start(__doc__, *cellular_bundle.NEEDED)
    found: Found = {}
    with page.steps("bundles", sum(count for _, count in STUDIES.values()), "scenarios") as told:
        for name, (study, _) in STUDIES.items():
            found[name] = study(told)
    drawn = {
        "bundles-drops": picture_of_drops(found["drops"]),
        "bundles-windows": picture_of_windows(found["windows"]),
        "bundles-fragments": picture_of_fragments(found["cuts"]),
        cellular_bundle.PICTURE: cellular_bundle.picture(found["cellular"]),
    }
    values = {**setting(), **of_drops(found), **bundle_late.page_values(found), **of_model(found), **of_cuts(found)}
    page.write("bundles.md", drawn, **values, **of_schedulers(found), **cellular_bundle.page_values(found["cellular"]))


def setting() -> page.Values:
    """What all scenarios have in common."""
    arq = studies.ARQ
    return {
        "lines": f"{studies.LINES}",
        "rate": f"{studies.RATE_BPS}",
        "delay": f"{studies.DELAY_S:g}",
        "window": f"{studies.WINDOW}",
        "frame": f"{arq['frame_bytes']}",
        "loss": f"{100 * arq['loss']:g} %",
        "again": f"{100 * arq['loss_again']:g} %",
        "arq_window": f"{arq['window_frames']}",
        "packet_s": f"{float(packet_time_s(IRIDIUM)):.1f}",
        "rtt": f"{float(rtt_s(IRIDIUM)):.1f}",
        "redial": f"{studies.REDIAL_S}",
        "patience": f"{studies.PATIENCE_S}",
        "best_ratio": f"{studies.PATIENCE_S / float(packet_time_s(IRIDIUM)):.1f}",
        "line_packets": "3",
    }


def of_drops(found: Found) -> page.Values:
    """What the first two sections say."""
    drops: studies.Drops = found["drops"]

    def requeued(variant: str, up_s: float, patience_s: float | None) -> str:
        return percents(
            gain(drops[variant, up_s, "requeue", patience_s], drops[variant, up_s, "lose", patience_s]), signed=True
        )

    def timeouts(variant: str, on_drop: str, patience_s: float | None) -> str:
        return f"{per_drop(drops[variant, 3000, on_drop, patience_s]):.2f}"

    def patience_costs(up_s: float) -> str:
        return percents(gain(drops["sack", up_s, "requeue", patience], drops["sack", up_s, "requeue", None]), signed=True)

    def share_of_best(up_s: float) -> float:
        means = [found["settings"][name, up_s]["goodput_bps"].mean() for name in studies.SETTINGS]
        return float(means[0] / max(means))

    patience = studies.PATIENCE_S
    whole = drops["sack", 3000, "requeue", None]
    steady = found["mrrus"][1500].steady.mean("goodput_bps")
    return {
        "drops": table_of_drops(drops),
        "slow": table_of_slow_timers(found["slow_timers"]),
        "settings": table_of_settings(found["settings"]),
        "least_share": f"{100 * min(share_of_best(up_s) for up_s in studies.DEFAULT_UP_TIMES_S):.0f} %",
        "patience_table": table_of_patience(drops),
        "eq_off": percent((predicted_bps(3000) or math.nan) / drops["sack", 3000, "lose", None]["goodput_bps"].mean() - 1),
        "gain_plain": requeued("sack", 3000, None),
        "steady_bps": rate(steady),
        "requeue_short": f"{100 * (1 - whole['goodput_bps'].mean() / (steady.mean * whole['lines_up_fraction'].mean())):.1f} %",
        "patience_cost": patience_costs(3000),
        "patience_cost_often": patience_costs(300),
        "gain_sack": requeued("sack", 3000, patience),
        "gain_reno": requeued("reno", 3000, patience),
        "gain_often_reno": requeued("reno", 300, patience),
        "gain_often_sack": requeued("sack", 300, patience),
        "timeouts_requeue": timeouts("sack", "requeue", None),
        "timeouts_sack": timeouts("sack", "lose", patience),
        "timeouts_reno": timeouts("reno", "lose", patience),
        "timeouts_reno_requeue": timeouts("reno", "requeue", patience),
    }


def of_model(found: Found) -> page.Values:
    """What the section on the closed form says."""
    windows: dict[Cell, Estimate] = found["windows"]
    errors = {cell: studies.error(cell, estimate) for cell, estimate in windows.items()}
    worst = sorted(errors, key=lambda cell: -abs(errors[cell]))
    named: dict[tuple[int, int, int, bool], Cell] = {}
    for cell in worst:  # what differs in `line_packets` alone is one case
        named.setdefault((cell.lines, cell.packet_bytes, cell.window, cell.repeats), cell)
    names = [
        f"{percent(errors[cell])} with {cell.lines} line{'s' * (cell.lines > 1)}, {cell.packet_bytes} bytes, a window of "
        f"{cell.window}, {'with' if cell.repeats else 'without'} ARQ"
        for cell in list(named.values())[:3]
    ]
    mrrus: dict[int, studies.Mrru] = found["mrrus"]
    costs = [
        f"{100 * (1 - mrru.dropping['goodput_bps'].mean() / mrru.steady['goodput_bps'].mean()):.1f} % at {length}"
        for length, mrru in mrrus.items()
    ]
    return {
        "cells": f"{len(windows)}",
        "line_counts": listed(studies.LINE_COUNTS),
        "line_packets_counts": listed(studies.LINE_PACKETS),
        "lengths": listed(studies.PACKETS_BYTES),
        "errors": table_of_errors(errors),
        "within": f"{sum(abs(one) <= 0.02 for one in errors.values())}",
        "within_5": f"{sum(abs(one) <= 0.05 for one in errors.values())}",
        "worst": "; ".join(names),
        "line_packets_table": table_of_line_packets(windows),
        "window_bytes": f"{studies.WINDOW_BYTES}",
        "mrru": table_of_mrrus(mrrus),
        "overhead": f"{studies.HEADER_BYTES + 9}",
        "drop_cost": ", ".join(costs),
        "down": f"{100 * (1 - mrrus[1500].dropping['lines_up_fraction'].mean()):.1f} %",
    }


def of_cuts(found: Found) -> page.Values:
    """What the section on fragments says."""
    cuts: dict[studies.CutKey, tuple[Runs, Runs]] = found["cuts"]
    pairs = [(cuts[lines, loss, "fragmented"], cuts[lines, loss, "whole"]) for lines, loss, cut in cuts if cut == "whole"]
    largest = {
        name: max(abs(gain(cut[0], whole[0], name).mean) for cut, whole in pairs) for name in ("goodput_bps", "delay_mean_s")
    }

    def share(loss: float) -> str:
        cut, whole = (cuts[8, loss, packets][1]["delay_mean_s"].mean() for packets in ("fragmented", "whole"))
        return f"{100 * cut / whole:.0f} %"

    return {
        "cuts": table_of_cuts(cuts),
        "cut_goodput": f"{100 * largest['goodput_bps']:.1f} %",
        "cut_delay": f"{100 * largest['delay_mean_s']:.1f} %",
        "single_gain": share(0.0),
        "single_gain_errors": share(max(studies.LOSSES)),
        "attempts": f"{studies.GIVEN_UP_AFTER}",
        "given_up": table_of_given_up(found["cuts_given_up"]),
    }


def of_schedulers(found: Found) -> page.Values:
    """What the last two sections say."""
    scheduled: dict[tuple[str, str], studies.Scheduled] = found["schedulers"]
    equal, rates, _ = studies.MEMBERS
    deviation = {key: one.rtt_deviation_s.mean for key, one in scheduled.items()}
    unnumbered: dict[tuple[str, str, str, str], Runs] = found["unnumbered"]

    def cost(variant: str) -> str:
        none, numbered = (unnumbered[equal, "round-robin", header, variant] for header in ("none", "long"))
        return percents(Estimate(-gain(none, numbered).mean, gain(none, numbered).half_width))

    bare = unnumbered[equal, "round-robin", "none", "sack"]
    again = (
        bare["retransmitted_bytes"].sum()
        / (bare["retransmitted_bytes"] + studies.SEGMENT_BYTES * bare["delivered_packets"]).sum()
    )
    return {
        "schedulers": table_of_schedulers(scheduled),
        "dev_ed": f"{deviation[equal, 'earliest-delivery']:.1f}",
        "dev_rr": f"{deviation[equal, 'round-robin']:.1f}",
        "dev_ed_rates": f"{deviation[rates, 'earliest-delivery']:.1f}",
        "dev_rr_rates": f"{deviation[rates, 'round-robin']:.1f}",
        "four": f"{4 * (deviation[equal, 'round-robin'] - deviation[equal, 'earliest-delivery']):.1f}",
        "ed_half": f"{scheduled[rates, 'earliest-delivery'].half['delay_mean_s'].mean():.1f}",
        "rr_half": f"{scheduled[rates, 'round-robin'].half['delay_mean_s'].mean():.1f}",
        "red_light": f"{scheduled[equal, 'redundant'].light['delay_mean_s'].mean():.1f}",
        "rr_light": f"{scheduled[equal, 'round-robin'].light['delay_mean_s'].mean():.1f}",
        "red_half": f"{scheduled[equal, 'redundant'].half['delay_mean_s'].mean():.1f}",
        "short": table_of_short_lines(found["short_lines"]),
        "restless": f"{studies.RESTLESS_S / 60:g}",
        "steady": f"{studies.STEADY_S / 60:g}",
        "small_window": f"{2 * studies.LINES}",
        "restless_table": table_of_restless(found["restless"]),
        "unnumbered": table_of_unnumbered(unnumbered),
        "retransmitted": f"{100 * again:.0f} %",
        "sack_cost": cost("sack"),
        "rack_cost": cost("rack"),
    }


if __name__ == "__main__":
    main()
