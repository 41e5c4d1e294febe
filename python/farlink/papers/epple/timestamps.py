"""Section 4.1.1: timestamps, and an aggressive and a conservative timer, on the rising pass and on the reversed one.

ATENAA's vehicle drives: its delay changes as that of KIODO does, by less.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from farlink.papers.check import Check, claimed
from farlink.papers.epple.fading import STAND_IN, Fading, Outcomes, over_fading, seconds
from farlink.papers.epple.intervals import interval, paired
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.scenarios import transport
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.epple.timers import AGGRESSIVE, TCP_TIMER
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMERS = {"aggressive": AGGRESSIVE, "conservative": TCP_TIMER}
PASSES = {"rising": "rising pass", "falling": "reversed pass"}
_PAYLOAD_BYTES = 1000
_SECONDS = 8.0
# Where the delay changes, the longer the more: for as long as KIODO's measurement.
_MOVING = ("ATENAA", "KIODO")

Variant = tuple[str, bool]


def timestamps(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """TCP with and without timestamps, by timer, at every place."""
    found: dict[tuple[str, str], dict[Variant, Outcomes]] = {}
    for place in PLACES:
        for direction in PASSES if place == "KIODO" else ("rising",):
            duration_s = seconds(bench, place, _SECONDS, whole=_MOVING)
            light = Fading(place, direction, duration_s, is_moving=place == "ATENAA")
            found[place, direction] = _variants(bench, setting, light)
    checks = [check for direction in PASSES for check in _pass(direction, found["KIODO", direction])]
    rising, falling = (_over(found["KIODO", one], ("aggressive", True), ("aggressive", False)) for one in PASSES)
    checks += [
        claimed(
            "timestamps",
            f"KIODO, reversed pass ({STAND_IN}), aggressive timer: goodput with timestamps over that without",
            "an improvement if the timestamps are used could only be seen if also an aggressive calculation had been used",
            falling,
            at_least=1.0,
            rule=f"agrees if the ratio lies above 1 with its interval; {_words()}",
        ),
        claimed(
            "timestamps",
            f"KIODO ({STAND_IN}), aggressive timer: that ratio on the reversed pass over that on the rising one",
            "the biggest improvement had been expected on the descending edge of the satellite pass",
            ratio(falling, rising),
            at_least=1.0,
            rule=f"agrees if it lies above 1 with its interval; {_words()}",
        ),
    ]
    checks.append(
        claimed(
            "timestamps",
            f"ATENAA ({STAND_IN}), aggressive timer: goodput with timestamps over that without",
            "the motion of the aircraft simulator causes small jitter … also in this case the improvement caused by the "
            "timestamps could not recover the loss caused by the increased header",
            _over(found["ATENAA", "rising"], ("aggressive", True), ("aggressive", False)),
            at_most=1.0,
            rule=f"agrees if the ratio lies below 1 with its interval; {_MOTION}; {_words()}",
        )
    )
    for (place, direction), variants in found.items():
        cell = f"{place}{f', {PASSES[direction]}' if place == 'KIODO' else ''} ({STAND_IN}), conservative timer"
        checks.append(
            claimed(
                "timestamps",
                f"{cell}: goodput with timestamps over that without",
                "for all four simulated point to point links the timestamp feature could not give any improvement in goodput",
                _over(variants, ("conservative", True), ("conservative", False)),
                at_most=1.0,
                rule="no improvement: agrees if the ratio lies below 1 with its interval; "
                + (f"{_MOTION}; " if place == "ATENAA" else "")
                + _words(),
                cause=_NO_SAMPLES,
            )
        )
    return checks, [_drawing(found)]


_MOTION = (
    "the delay to a vehicle that drives straight away and back at 20 km/h, synthetic: in 50 s of driving the round trip "
    "changes by 1.9 us, a packet is on the transmitter for 13 us, and the 10 bytes of timestamps are 1 % of it"
)

_NO_SAMPLES = (
    "without timestamps go-back-N has no samples but those before its first loss, as all that follows is sent again (Karn's "
    "rule): with a timer that came too late or too early at first, timestamps set it right"
)


def _variants(bench: Workbench, setting: Setting, light: Fading) -> dict[Variant, Outcomes]:
    names = {
        f"{timer}{'-timestamps' if stamped else ''}": (timer, stamped) for timer, stamped in product(TIMERS, (False, True))
    }
    payload = setting.payloads_bytes[_PAYLOAD_BYTES]
    tables = {
        name: transport(setting, light.place, payload, "tcp", TIMERS[timer], timestamps=stamped)
        for name, (timer, stamped) in names.items()
    }
    outcomes = over_fading(bench, setting, light, tables, use=f"timestamps, {light.direction}")
    return {variant: outcomes[name] for name, variant in names.items()}


def _pass(direction: str, variants: dict[Variant, Outcomes]) -> Iterator[Check]:
    cell = f"KIODO, {PASSES[direction]} ({STAND_IN})"
    early = {timer: interval(variants[timer, False].timeouts) for timer in TIMERS}
    yield claimed(
        "timestamps",
        f"{cell}, without timestamps: timeouts with the conservative timer over those with the aggressive one",
        "by this change the number of too early timeouts could be heavily reduced",
        paired(variants["conservative", False].timeouts, variants["aggressive", False].timeouts),
        at_most=0.5,
        rule=f"heavily: agrees if at most half are left; {_words()}",
        cause=f"there are {early['conservative'].mean:.0f} and {early['aggressive'].mean:.0f} a run",
    )
    for timer, stamped in variants:
        if (timer, stamped) == ("conservative", False):
            continue
        yield claimed(
            "timestamps",
            f"{cell}: goodput with the conservative timer without timestamps over that with the {timer} one"
            f"{' and timestamps' if stamped else ''}",
            "the best results for the KIODO downlink could be reached with the timestamps disabled and the use of a "
            "conservative RTT calculation algorithm",
            _over(variants, ("conservative", False), (timer, stamped)),
            at_least=1.0,
            rule=f"best: agrees if the ratio lies above 1 with its interval; {_words()}",
            cause="a timer just above the round trip wastes least with go-back-N, as long as it knows the round trip: "
            "there is no jitter that it must allow for",
        )


def _over(variants: dict[Variant, Outcomes], above: Variant, below: Variant) -> Estimate:
    return paired(variants[above].goodput, variants[below].goodput)


def _words() -> str:
    timers = ", ".join(f"{name}: {timer.words}" for name, timer in TIMERS.items())
    return f"TCP, {_PAYLOAD_BYTES} bytes; {timers}; {STAND_IN}"


def _drawing(found: dict[tuple[str, str], dict[Variant, Outcomes]]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, legend_above, name_places, new_figure

        figure, (axes,) = new_figure()
        for look, variant in enumerate(product(TIMERS, (False, True))):
            there = [place for place, variants in enumerate(found.values()) if variant in variants]
            ours = [interval(variants[variant].goodput) for variants in found.values() if variant in variants]
            timer, stamped = variant
            axes.errorbar(
                [place + 0.12 * (look - 1.5) for place in there],
                [one.mean for one in ours],
                yerr=[one.half_width for one in ours],
                linestyle="none", marker=MARKERS[look], color=COLOURS[look], capsize=3,
                label=f"{timer}{', timestamps' if stamped else ''}",
            )  # fmt: skip
        names = [f"{place}\n{PASSES[direction]}" if place == "KIODO" else place for place, direction in found]
        name_places(axes, names)
        axes.set(ylabel="goodput (share of the link)")
        axes.set_ylim(bottom=0)
        legend_above(figure, axes)
        return figure

    return Drawing(
        "timestamps",
        "TCP with and without timestamps, by timer and place",
        f"Packets of {_PAYLOAD_BYTES} bytes over synthetic fading, a {STAND_IN} of the measurements; 95 % intervals.",
        draw,
    )
