"""Write `docs/validation/bundles.md` and its pictures: `make papers`. Takes some minutes."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bundle_late
import bundle_studies as studies
import cellular_bundle
import cellular_studies
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

from farlink.cli.progress import progress_bar
from farlink.models.multilink.windowed_bundle import packet_time_s, rtt_s
from farlink.papers.estimate import Estimate
from farlink.plot.style import picture_svg

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "bundles.md"
PICTURES = ROOT / "docs" / "pictures"

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

PAGE_TEXT = """\
<!-- Written by docs/bundles.py (`make papers`). -->
# Bundles: what Zaghloul left open

Questions of the last chapter of S. I. Zaghloul, "TCP performance over multilink long delay wireless networks", answered by
the packet engine's `[link.bundle]`: a drop that does not end in a timeout, queues and MRRU in the model, fragments,
schedulers.

The bundle is the thesis's, {lines} lines of {rate} bit/s and {delay} s each way, three packets a line, a window of {window}
packets of 1500 bytes with their headers. The ARQ's figures are ours: frames of {frame} bytes, {loss} bad, {again} of
repetitions, a bad frame costs {arq_window}; a packet takes {packet_s} s in the mean (6 s in the thesis, without the
propagation). TCP has RFC 6298's timer, at least 1 s; calls drop after exponential times and are up again after {redial} s
in the mean. A drop is noticed at once, on both sides, but where the page says otherwise. ± is the half-width of the 95 %
interval; gains are of the same calls and errors with and without what is compared.

## A drop that is not a loss

*Requeue*: what a line held when its call dropped is sent again over the others. Here the receiver is farlink's as well
(`peer = "farlink"`): a packet keeps its number, and the sender knows what has arrived, which is the best that any scheme can
do. *Patience*: `reorder_timeout_s` = {patience} s, see the next section. Goodput in bit/s, timeouts per drop:

{drops}

![Goodput against time between drops](../pictures/bundles-drops.svg)

- **Requeueing alone is enough**: at a drop every 50 min a line, SACK gains {gain_plain} by it and has {timeouts_requeue}
  timeouts a drop. Lines that are never down carry {steady_bps} bit/s, and these are down for {down} of the time: of what is
  left, {requeue_short} is missing. No number goes missing, so the receiver waits for nothing that does not come.
- Patience is then a cost: {patience_cost} at 50 min, {patience_cost_often} at 5 min. The packet that is sent again may come
  later than {patience} s, is given up, and TCP repeats it. Unless given, `reorder_timeout_s` is `"never"` with these settings.
- Without requeueing, patience is what helps. It leaves requeueing {gain_sack} to gain at 50 min with SACK, which has
  {timeouts_sack} timeouts a drop: a drop costs what {line_packets} packets in a line and the acknowledgements on their way back
  cost, far from the half window that makes SACK wait for its timer. Reno repairs one loss a round trip and leaves {gain_reno};
  {timeouts_reno} timeouts a drop become {timeouts_reno_requeue}.
- At a drop every 5 min a line patience leaves {gain_often_reno} with Reno and {gain_often_sack} with SACK.
- Equation (36) with the round trip of `windowed_bundle`, {rtt} s, no loss but by drops, and T_0 = 60 s is the last column.
  It counts a timeout for each drop, and is {eq_off} from SACK with the receiver of RFC 1990 at 50 min: what the thesis
  measured may have been that receiver as much as the loss of half a window, by which it explains the timeouts. What is held
  back for longer than a timer it does not know. Where it says –, there would be more timeouts than time.

With a timer of at least 60 s and back-off up to 64-fold, as in tables 6.1 and 6.2, at 50 min; there a timer that is doubled
again and again meets a receiver that waits:

{slow}

{late}

## A receiver that waits for numbers that never come

RFC 1990 (section 4.1) and Linux take a fragment for lost when *every* line that is up has delivered one with a higher
number. A line that was just connected has delivered none, so that a number that was lost with a call holds all packets back
until each line, that one too, has carried one. Under load that takes a round of the lines. After a timeout TCP has one
segment under way, which is held back in its turn: the timer goes off again, twice as late, until 128 fragments wait or the
lines have had their turn. `reorder_timeout_s` bounds it. SACK:

{patience_table}

A time below that of a packet ({packet_s} s) gives up what is only late, and SACK repeats it: at 2 s that costs more than
the drops do at 50 min. Where packets are lost, twice that time and more is too patient, and best of these is {patience} s,
{best_ratio} times a packet's. Where they are requeued, every limit costs something.

**Unless given**, packets are requeued and the receiver, farlink's as well, waits without end. Where they are lost it waits for
the delay of a line and twice the time of a packet of the MRRU, 12.8 s here with the mean repetitions. SACK, ten runs of 4 h,
kb/s:

{settings}

What is set unless given has at least {least_share} of the best of these at every rate of drops.

## Queues, framing, lines, MRRU and ARQ in closed form

`farlink.models.multilink.windowed_bundle` has the round trip and goodput of a window of W packets: window-limited W /
RTT_0, line-limited N / S with RTT = W S / N, and between them a term for lines that run empty while packets wait for
another one. S counts flags, multilink and PPP headers, escapes, whole ARQ frames and repetitions. {cells} cells: lines
{line_counts}; `line_packets` {line_packets_counts}; packets of {lengths} bytes; windows of N / 2, N, 2 N, N `line_packets` and
{window} packets. Model over engine, - 1:

{errors}

![Goodput against the window](../pictures/bundles-windows.svg)

Lines: the model. Points: the engine, 3 packets a line, with ARQ.

{within} of {cells} cells are within 2 %, {within_5} within 5 %. Farthest off: {worst}. There, two packets on one line come
to the knee between both regimes, where the delayed acknowledgement of the second one decides, or packets of several lines
wait for each other. The model takes acknowledgements as immediate.

**More `line_packets` gain nothing** where all packets are whole: what does not wait in front of all lines waits in one,
which may be the slow one. No line runs empty while W - X Y > (N - 1) K, with Y the part of the round trip off the lines. A
window of {window} and packets of 300 bytes over eight lines, bit/s:

{line_packets_table}

**Round trip.** Where the window is what the lines take, W = N K, RTT = Q_P T_MP as in section 4.1.6, whatever N is; in
general it is W S / N, and does not depend on `line_packets`.

**MRRU**, as the largest packet, with one window of {window_bytes} bytes:

{mrru}

A larger packet spreads its headers ({overhead} bytes on the line and off it) over more data, and a single one takes longer:
the MRRU buys goodput with the delay of single packets. Drops, with the same patience for all, cost {drop_cost}, of which
{down} are lines that are down. Nothing here asks for less than 1500 but the delay of a packet.

## Fragments or whole packets

TCP under load (SACK, a window of 4 packets a line) and single packets of 1500 bytes, one a minute, over `round-robin`:

{cuts}

![Delay of a packet against frame errors](../pictures/bundles-fragments.svg)

Under load fragments change nothing: goodput within {cut_goodput} and mean delay within {cut_delay} of whole packets, as no
line is free and each packet goes over one line anyway, which is what the thesis says of Linux. A single packet gains: over
eight lines it takes {single_gain} of the time without errors, {single_gain_errors} at 10 % frame errors, where the slowest
of the eight fragments decides.

The thesis's worst case, a fragment that the ARQ gives up costs the whole packet: frames given up after {attempts} attempts,
eight lines.

{given_up}

A packet has the same frames in fragments or not, so that fragments lose no more packets. Whole packets do far worse with
the receiver of RFC 1990: only fragments of one packet visit all lines at once and tell it what is lost. Patience bounds the
delays. TCP over fragments stays faster: losses keep its window small, and a small window goes round faster in fragments.

## A bundle of Linux, beside a real one

`scheduler = "linux"` beside pppd 2.4.9 on Linux 6.1.192 under QEMU: eight pseudo-terminals paced to 2400 bit/s, 0.5 s
each way, both ends seeing a hang-up at once but where it says otherwise. Datagrams, one run each there:

| case | | measured | farlink |
|---|---|--:|--:|
| 300 bytes 4 times a second, a call drops | lost, silence | 3, 1.0 s | 3, 1.02 s |
| 1500 bytes at 119 % load, a queue of 7.5 s | lost, silence | 13, 9.2 s | 13, 9.33 s |
| only the sender sees it; the line carried first pieces | silence | 5.1 s | 5.27 s |
| the same; it carried later ones, seen after 40 s | silence | 40.4 s | 40.27 s |
| only the receiver sees it, for 40 s | silence | 41 s | 41.0 s |

TCP (CUBIC, `variant = "rack"`, `rto.algorithm = "linux"`) from the start of the flow for 204 s; a call drops at 24, 60,
96, 132 and 168 s and is up again 9 s later. Measured: three runs of one rig, and one of a second rig built for this
table, 95 % intervals of the three. Silences by drop; the drop at 96 s falls into the silence of the one before it, the
last silence is cut off by the end at 204 s.

| quantity | measured, three runs | measured, second rig | farlink |
|---|--:|--:|--:|
| goodput, kb/s | 5.91 ± 0.07 | 5.96 | 5.96 |
| goodput from the first drop on, kb/s | 4.55 ± 0.10 | 4.70 | 4.70 |
| silence after 24 s | 25.8, 26.3, 26.6 s | 25.3 s | 24.7 s |
| after 60 s | 41.3, 44.5, 43.5 s | 42.1 s | 42.5 s |
| after 132 s | 29.9, 27.5, 29.3 s | 30.8 s | 28.3 s |
| after 168 s | at least 36, 36.6 s | at least 36 s | 31.8 s |

Two rules of Linux's TCP made the difference to the 10.1 kb/s that farlink had before. The round trip of the empty
bundle, 1.1 s, is longer than the first timeout of the SYN, 1 s: Linux keeps its initial window of ten segments after
one such timeout, so that 34 segments are queued at the first drop and not 20, and all of them are lost. And a timeout
during a recovery does not lower the threshold again. What is left: Linux's timers of more than 16 s expire up to 2 s
late (its timer wheel), and its tail loss probe goes out no later than the timeout counted from when the oldest segment
was sent; farlink counts from the latest acknowledgement.

## Schedulers

SACK in bulk, and datagrams of 1500 bytes every so often, at a tenth and at half of what the lines carry:

{schedulers}

- Under load goodput is the same but for `redundant`, as the lines are always busy; the round trip varies least with
  `earliest-delivery`: a standard deviation of {dev_ed} s against {dev_rr} s with `round-robin` over equal lines,
  {dev_ed_rates} against {dev_rr_rates} over unequal rates. The thesis hoped for a shorter timeout from it: 4 deviations are
  {four} s less of {rtt} s.
- `earliest-delivery` pays where lines differ in rate and are not all busy: {ed_half} s against {rr_half} s at half load.
- `redundant` is fastest for single packets ({red_light} s against {rr_light} s over equal lines), and at half load already
  too much: {red_half} s. In bulk with ARQ, with lines out of step, only one has room at a time, so that data are hardly
  copied; acknowledgements are, eight times, which is what arrives out of order.

**How much a line takes**: `earliest-delivery` waits for a fast line when a packet would arrive earlier over it even so, but
only while it would bring those that wait behind the packet, too, by then (as in ECF); with less than that, slow lines starve
wherever `line_packets` is below the ratio of the rates. `round-robin` suffers from the opposite, packets that wait in slow
lines. Four lines of 2400 and one of 9600 bit/s, goodput in bit/s:

{short}

**Lines that drop more often than others**: four drop every {restless} min, four every {steady} min in each of twelve runs,
window {small_window}, patience {patience} s:

{restless_table}

## Without sequence numbers

`header = "none"`: packets go to TCP in the order of their arrival, 6 bytes shorter. Goodput in bit/s:

{unnumbered}

Packets that overtake others look like losses after three duplicate acknowledgements; {retransmitted} of what SACK sends
over equal lines is sent again, and the window is halved each time. RACK, whose reordering window grows with what it sees,
loses {rack_cost} where SACK loses {sack_cost}. With ARQ, numbers are worth their 6 bytes unless the transport stands
reordering.
"""


def main() -> int:
    """Run everything and write the page."""
    if not cellular_bundle.is_there():
        return 2
    found: Found = {}
    with progress_bar("bundles") as tell:
        done, total = 0, sum(count for _, count in STUDIES.values())

        def told() -> None:
            nonlocal done
            done += 1
            tell(done, total)

        for name, (study, _) in STUDIES.items():
            found[name] = study(told)
    write(found)
    return 0


def write(found: Found) -> None:
    """The page and its pictures."""
    PAGE.write_text(page(found), encoding="utf-8")
    drawn = {
        "bundles-drops": picture_of_drops(found["drops"]),
        "bundles-windows": picture_of_windows(found["windows"]),
        "bundles-fragments": picture_of_fragments(found["cuts"]),
        cellular_bundle.PICTURE: cellular_bundle.picture(found["cellular"]),
    }
    for name, figure in drawn.items():
        svg = picture_svg(figure, name)
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(PAGE.relative_to(ROOT), *(f"docs/pictures/{name}.svg" for name in drawn), sep="\n")


def page(found: Found) -> str:
    """The whole page."""
    said = setting() | of_drops(found) | of_model(found) | of_cuts(found) | of_schedulers(found)
    return wrapped(PAGE_TEXT.format(**said)) + "\n" + wrapped(cellular_bundle.section(found["cellular"]))


def wrapped(text: str) -> str:
    """Paragraphs and lists wrapped again, as their numbers vary in length."""
    blocks = []
    for block in text.rstrip("\n").split("\n\n"):
        if block[0] in "|#<!":
            blocks.append(block)
            continue
        items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", block)]
        indents = ["  " if item.startswith("- ") else "" for item in items]
        filled = [
            textwrap.fill(item, 128, subsequent_indent=by, break_on_hyphens=False)
            for item, by in zip(items, indents, strict=True)
        ]
        blocks.append("\n".join(filled))
    return "\n\n".join(blocks) + "\n"


def setting() -> dict[str, str]:
    """Settings common to all scenarios."""
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


def of_drops(found: Found) -> dict[str, str]:
    """Values of the first two sections."""
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
        "late": bundle_late.section(found).rstrip(),
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


def of_model(found: Found) -> dict[str, str]:
    """Values of the section on the closed form."""
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


def of_cuts(found: Found) -> dict[str, str]:
    """Values of the section on fragments."""
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


def of_schedulers(found: Found) -> dict[str, str]:
    """Values of the last two sections."""
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
    sys.exit(main())
