"""Does a packet length that follows the short-term BER pay: the open question of section 3.3.3 and of the conclusions.

A length is fixed, or follows the bit error rate: by equation (11) or by a rule that was found by search, from the true error
rate or from what was acknowledged. All of them meet the same fades, so a gain is a mean of paired ratios.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farlink import units
from farlink.papers.check import Check, claimed
from farlink.papers.epple.fading import STAND_IN, Fading, over_fading
from farlink.papers.epple.intervals import paired
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.setting import PAPER_SETTING, PROTOCOLS, Setting
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADER_BYTES = 20
"""Of every packet and acknowledgement, with go-back-N and with selective repeat: the l' of the paper's example."""
SHORTEST_BYTES, LONGEST_BYTES = 100, 8000
LENGTHS_BYTES = (100, 190, 350, 650, 1200, 2300, 4300, 8000)
BERS = (1e-6, 1e-5, 1e-4)
TRACES = 10
SECONDS = 2.0
_MODES = {"tcp": "go-back-n", "sr": "selective-repeat"}
# Later than an acknowledgement can come: what is lost is asked for.
_TIMEOUT_ROUND_TRIPS = 1.3
# A window for any timeout of so many round trips.
_WINDOW_ROUND_TRIPS = 10.0
# With selective repeat, a frame that is too long for a fade holds the window until the fade is over.
_FADE_S = 0.05
# Times are whole picoseconds: at the same rate, rounding would let a queue grow that timers feel.
_SLOWER = 1e-6

_MEMORY: dict[str, Any] = {"memory_s": 1e-3, "prior_losses": 1e-3}

RULES: dict[str, dict[str, Any]] = {
    "genie, equation (11)": {"estimate": "genie", "rule": "optimal"},
    "genie, power": {"estimate": "genie", "rule": "power", "exponent": 0.5, "scale": 4.47},
    "estimate, equation (11)": {"estimate": "acknowledged", "rule": "optimal", **_MEMORY},
    "estimate, power": {"estimate": "acknowledged", "rule": "power", "exponent": 0.5, "scale": 4.47, **_MEMORY},
    "estimate, two lengths": {"rule": "two-lengths", "memory_s": 1e-3, "min_bytes": 350, "segment_bytes": 1200},
}
"""Keys of ``adaptive_length`` (and a longest length of its own); what they are set to, a search found: `adaptive_search`."""


@dataclass(frozen=True)
class Gains:
    """Gain of following the error rate over the best fixed length, in one case.

    Attributes
    ----------
    best_bytes
        The fixed length with the highest mean goodput over the traces.
    best
        Its goodput on each trace.
    adaptive
        Goodput of each rule on each trace.
    fixed
        Goodput of each fixed length on each trace.
    """

    best_bytes: int
    best: list[float]
    adaptive: Mapping[str, list[float]]
    fixed: Mapping[int, list[float]]

    def of(self, rule: str) -> Estimate:
        """Mean over the traces of the ratio of a rule's goodput to that of the best length, less one, with its interval."""
        found = paired(self.adaptive[rule], self.best)
        return Estimate(found.mean - 1, found.half_width)


def adaptive_length(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Lengths that follow the error rate against the best fixed one, over every channel."""
    bers = BERS if not bench.quick else (1e-5,)
    cases = {
        (place, protocol, ber): gains(bench, setting, place, protocol, ber)
        for place in PLACES
        for protocol in _MODES
        for ber in bers
    }
    checks = [check for case, found in cases.items() for check in _checks(*case, found)]
    return checks, [_drawing(cases)]


def gains(
    bench: Workbench,
    setting: Setting,
    place: str,
    protocol: str,
    ber: float,
    *,
    kinds: Mapping[str, Mapping[str, Any]] | None = None,
    use: str = "adaptive length",
) -> Gains:
    """Run all lengths and rules over the same traces.

    Parameters
    ----------
    bench
        Where to run.
    setting
        The link.
    place
        Whose channel.
    protocol
        ``"tcp"`` for go-back-N or ``"sr"`` for selective repeat.
    ber
        Long-term bit error rate.
    kinds
        Keys of ``adaptive_length`` by the name of a rule; `RULES` by default.
    use
        What the runs are for.
    """
    kinds = RULES if kinds is None else kinds
    light = Fading(place, duration_s=max(0.5, bench.share(SECONDS)))
    fixed = {f"{length} bytes": transport(setting, place, protocol, length) for length in LENGTHS_BYTES}
    rules = {name: transport(setting, place, protocol, LONGEST_BYTES, keys) for name, keys in kinds.items()}
    tables = {_table_name(name): table for name, table in (fixed | rules).items()}
    outcomes = over_fading(
        bench, setting, light, tables, use=f"{use}, {protocol}, {ber:g}", bers=ber, count=bench.repetitions(TRACES)
    )
    goodput = {length: outcomes[_table_name(f"{length} bytes")].goodput for length in LENGTHS_BYTES}
    best = max(goodput, key=lambda length: math.fsum(goodput[length]))
    return Gains(best, goodput[best], {name: outcomes[_table_name(name)].goodput for name in kinds}, goodput)


def transport(
    setting: Setting, place: str, protocol: str, longest_bytes: int, adaptive: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A protocol with a fixed length, or with one that follows the error rate.

    Parameters
    ----------
    setting
        The link.
    place
        How far away.
    protocol
        ``"tcp"`` or ``"sr"``.
    longest_bytes
        User data in a packet, or in the longest one.
    adaptive
        Keys of ``adaptive_length``, if the length varies; a ``segment_bytes`` among them is the longest length instead.

    Returns
    -------
    dict
        Table of the transport. What is missing is asked for at once, so that the timer, which must wait for the longest
        packet, decides little; each packet is acknowledged by itself with selective repeat: "unlimited blocks".
    """
    adaptive = None if adaptive is None else dict(adaptive)
    longest_bytes = int((adaptive or {}).pop("segment_bytes", longest_bytes))
    shortest_bytes = longest_bytes if adaptive is None else SHORTEST_BYTES
    packet_s, shortest_s = (8 * (data + HEADER_BYTES) / setting.rate_bps for data in (longest_bytes, shortest_bytes))
    round_trip_s = setting.rtt_s(place) + packet_s + 8 * HEADER_BYTES / setting.rate_bps
    window_s = _WINDOW_ROUND_TRIPS * round_trip_s + (_FADE_S if protocol == "sr" else 0.0)
    table: dict[str, Any] = {
        "kind": "arq",
        "mode": _MODES[protocol],
        "segment_bytes": longest_bytes,
        "header_bytes": HEADER_BYTES,
        "ack": "per-packet" if protocol == "sr" else "cumulative",
        "nak": True,
        "rate_bps": setting.rate_bps * (1 - _SLOWER),
        "window_frames": math.ceil(window_s / shortest_s) + 1,
        "rto": {"algorithm": "fixed", "initial_s": _TIMEOUT_ROUND_TRIPS * round_trip_s},
    }
    return table if adaptive is None else table | {"adaptive_length": {"min_bytes": SHORTEST_BYTES, **adaptive}}


def _table_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")


def _checks(place: str, protocol: str, ber: float, found: Gains) -> list[Check]:
    cell = f"{place} ({STAND_IN}), {PROTOCOLS[protocol]}, long-term BER {ber:g}"
    rule = (
        f"agrees if the gain lies above 0 with its interval; the best fixed length is {found.best_bytes} of "
        f"{', '.join(map(str, LENGTHS_BYTES))} bytes; ratios on {len(found.best)} traces; {STAND_IN}"
    )
    return [
        claimed(
            "adaptive-length",
            f"{cell}: goodput with a length by {name} over that with the best fixed one, less 1",
            "it is assumed that such dynamic packet lengths would increase the goodput",
            found.of(name),
            at_least=0.0,
            rule=rule,
            cause=_CAUSES["go-back-n" if protocol == "tcp" else "genie" if name.startswith("genie") else "estimate"],
        )
        for name in RULES
    ]


ACKNOWLEDGED_LATE = "what is acknowledged tells of the error rate a round trip ago, and of rare errors only once they are over"
"""Why an estimate from acknowledgements gains nothing."""

_CAUSES = {
    "go-back-n": "a loss costs a round trip whatever the length, and over short links the timer, which must allow for the "
    "longest packet, costs more than the length gains",
    "genie": "the error rate hardly varies where it matters, or one length is nearly best for all of it",
    "estimate": ACKNOWLEDGED_LATE,
}

Case = tuple[str, str, float]


def draw_gains(axes: Axes, cases: Mapping[tuple[str, float], Gains], names: Collection[str]) -> None:
    """Draw the gains of rules side by side, a column for each channel and error rate.

    Parameters
    ----------
    axes
        Where to.
    cases
        Gains by place and long-term BER.
    names
        The rules.
    """
    from farlink.plot.style import COLOURS, MARKERS, name_places

    for look, name in enumerate(names):
        ours = [found.of(name) for found in cases.values()]
        axes.errorbar(
            [column + 0.13 * (look - (len(names) - 1) / 2) for column in range(len(cases))],
            [100 * one.mean for one in ours],
            yerr=[100 * one.half_width for one in ours],
            linestyle="none", marker=MARKERS[look], color=COLOURS[look], capsize=2, label=name,
        )  # fmt: skip
    axes.axhline(0, color="0.5", linewidth=0.8)
    name_places(axes, [f"{place}\n{units.show(ber)}" for place, ber in cases])


def _drawing(cases: Mapping[Case, Gains]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import legend_above, new_figure

        bers: Sequence[float] = sorted({ber for _, _, ber in cases})
        figure, axes = new_figure(height_in=6.5, rows=len(_MODES))
        for plot, protocol in zip(axes, _MODES, strict=True):
            draw_gains(plot, {(place, ber): cases[place, protocol, ber] for place in PLACES for ber in bers}, RULES)
            plot.set_ylabel(f"{_MODES[protocol]}: gain (%)")
        legend_above(figure, axes[0], columns=3)
        return figure

    return Drawing(
        "adaptive-length",
        f"Packet lengths that follow the short-term BER against the best fixed length, {STAND_IN}",
        "By channel and long-term BER, mean and 95 % interval of paired ratios over the same traces. The genie knows the bit "
        "error rate as it sends, an estimate is a round trip old.",
        draw,
    )
