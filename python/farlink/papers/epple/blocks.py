"""Section 4.1.2: four blocks against unlimited ones, three beside timestamps, and how many equation (12) asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farlink.models import arq
from farlink.papers.check import Check, Verdict, claimed, number
from farlink.papers.epple.printed import rows
from farlink.papers.epple.setting import HEADER_BYTES, PAPER_SETTING, Setting
from farlink.papers.epple.table_1_awgn import Column, columns
from farlink.papers.epple.timers import SR_TIMER
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Blocks in an acknowledgement; None: as many as there are.
KINDS: dict[str, dict[str, Any]] = {
    "unlimited": {"blocks": None},
    "sixteen": {"blocks": 16},
    "eight": {"blocks": 8},
    "four": {"blocks": 4},
    "three": {"blocks": 3},
    "three, and timestamps": {"blocks": 3, "timestamps": True},
    "none": {"blocks": 0},
}
_SECONDS = 4.0
_RUNS = 6
# Near theory, as a share of it.
_REACHED = 0.05
_SIZES = (500, 1000, 1500)


def blocks(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Effect of the number of blocks over 2500 km and over 400 m."""
    duration_s = max(1.0, bench.share(_SECONDS))
    far = {
        kind: columns(
            bench, setting, "KIODO", "sr", [SR_TIMER], duration_s=duration_s, runs=_RUNS, use=f"{kind} blocks", **keys
        )[0]
        for kind, keys in KINDS.items()
    }
    near = {
        kind: columns(bench, setting, "Testbed", "sr", [SR_TIMER], duration_s=0.2, runs=4, use=f"{kind} blocks", **KINDS[kind])[
            0
        ]
        for kind in ("unlimited", "four", "three, and timestamps")
    }
    return [*_reached(setting, far), *_against_each_other({"KIODO": far, "Testbed": near}), *_needed(setting)], [
        _drawing(setting, far)
    ]


def _reached(setting: Setting, far: Mapping[str, Column]) -> Iterator[Check]:
    """With unlimited blocks, the theory; with four, what the table prints."""
    for row in rows("KIODO"):
        size = row.payload_bytes
        ours = far["unlimited"].goodput[size]
        yield Check(
            "blocks",
            f"AWGN KIODO, unlimited blocks and a header that stays, {setting.payloads_bytes[size]} bytes: goodput",
            float(row.sr_theory),
            "packet",
            ours,
            number(ours, row.sr_theory, relative=_REACHED),
            f"“in these runs the theoretical values could be reached”: agrees within {_REACHED:.0%} of the value in "
            "brackets; a repetition that waits for a round trip and more holds the window's end, and the start-up counts",
        )


# Of goodputs with two kinds of blocks: where, above, below, in words, as printed, from, to, and the rule.
_RATIOS = (
    (
        "KIODO", "four", "unlimited", "four blocks over that with unlimited ones",
        "the reason for this is the limitation to only four data blocks",
        -math.inf, 0.5, "agrees if four blocks leave less than half",
    ),
    (
        "KIODO", "three, and timestamps", "four", "timestamps and three blocks over that with four",
        "if the timestamp feature is added to TCP, only three addressable blocks are available",
        -math.inf, 1.0, "agrees if timestamps, which take the room of a block, cost goodput",
    ),
    (
        "Testbed", "four", "unlimited", "four blocks over that with unlimited ones",
        "the simulated goodput values differ slightly from the calculated goodput values",
        0.98, 1.02, "over 400 m four blocks are plenty: agrees within 2 % of 1",
    ),
)  # fmt: skip


def _against_each_other(columns_at: Mapping[str, Mapping[str, Column]]) -> Iterator[Check]:
    for place, above, below, words, printed, least, most, rule in _RATIOS:
        for size in _SIZES:
            share = ratio(*(columns_at[place][kind].goodput[size] for kind in (above, below)))
            cell = f"AWGN {place}, {size} bytes: goodput with {words}"
            yield claimed("blocks", cell, printed, share, at_least=least, at_most=most, rule=rule)


def _needed(setting: Setting) -> Iterator[Check]:
    for size, payload in setting.payloads_bytes.items():
        lengths = {"payload_bytes": payload, "header_bytes": HEADER_BYTES["sr"]}
        capacity = arq.round_trip_capacity(setting.rtt_s("KIODO"), rate_bps=setting.rate_bps, **lengths)
        loss = setting.loss(payload, "sr", counted="packet")
        mean = Estimate(float(arq.blocks_needed(loss, capacity=capacity)))
        most = float(arq.blocks_needed(loss, capacity=capacity, confidence=0.99))
        yield Check(
            "blocks",
            f"AWGN KIODO, {payload} bytes: blocks needed on average, equation (12)",
            "the reason for this is the limitation to only four data blocks",
            "model",
            mean,
            Verdict.AGREES if mean.mean > 4 else Verdict.DIFFERS,
            "agrees above four; sigma of equation (13) is not printed, and with that of geometric repetitions "
            f"{most:.0f} blocks are enough in 99 % of the time at {size} bytes",
        )


def _drawing(setting: Setting, far: Mapping[str, Column]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, legend_above, name_places, new_figure

        figure, (axes,) = new_figure()
        places = range(len(far))
        for size, colour, marker in zip(_SIZES, COLOURS, MARKERS, strict=False):
            axes.errorbar(
                [place + (size - 1000) / 8000 for place in places],
                [column.goodput[size].mean for column in far.values()],
                yerr=[column.goodput[size].half_width for column in far.values()],
                linestyle="none", marker=marker, color=colour, capsize=3,
                label=f"{setting.payloads_bytes[size]} bytes",
            )  # fmt: skip
            printed = float(next(row.sr for row in rows("AWGN KIODO") if row.payload_bytes == size))
            axes.plot(
                [list(far).index("four") + (size - 1000) / 8000], [printed], marker="_", markersize=16,
                markeredgewidth=2, color=colour, linestyle="none",
            )  # fmt: skip
            theory = setting.goodput("KIODO", setting.payloads_bytes[size], "sr")
            axes.axhline(theory, color=colour, linewidth=0.9, linestyle=(0, (1, 2)))
        name_places(axes, [kind.replace(", and", "\nand") for kind in far])
        axes.set(xlabel="blocks in an acknowledgement", ylabel="goodput (share of the link)", ylim=(0, 1.02))
        legend_above(figure, axes)
        return figure

    return Drawing(
        "blocks",
        "Selective repeat over 2500 km, independent errors: goodput against the number of blocks",
        "Points: the engine, with 95 % intervals. Dotted: equation (8). Bars at four: as printed.",
        draw,
    )
