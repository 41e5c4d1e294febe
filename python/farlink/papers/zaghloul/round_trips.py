"""Section 4.1.6, figures 4.5 and 4.6 packet by packet: round trips over a bundle that is loaded, and one that is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.engines import packet
from farlink.models.ranges import Floats
from farlink.papers.check import Check, number
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.packets import ARQ, LINE_BPS, mean_of, scenario
from farlink.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUNS = 12
# Figure 4.6: six modems; as many segments as there are measurements.
_LINKS, _FILE_BYTES = 6, 4645 * 1448
# Figure 4.5: 2000 PINGs of 100 bytes, one in two seconds. With 52 bytes of headers.
_PING_S, _PINGS, _PING_BYTES, _HEADER_BYTES = 2.0, 2000, 100, 52
_PRINTED = {"ping": ("3.3", "4.8"), "tcp": ("21", "8.7")}
_NEAR = 0.1

_BAD_SPELLS = "rare bad spells"
_LOADED: Mapping[str, Mapping[str, Any]] = {
    "SACK": {},
    "SACK, a packet in 6.5 s": {"repeats": True},
    "SACK, a packet in 6.5 s, rare bad spells": {"arq": ARQ | {"loss": 0.0024, "loss_again": 0.92}},
}
_PINGED: Mapping[str, Mapping[str, Any]] = {
    "2400 bit/s net of repetitions": {},
    "repetitions as in 6.5 s a packet": {"repeats": True},
    "the same, rare bad spells": _LOADED["SACK, a packet in 6.5 s, rare bad spells"],
}


def round_trips(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """TCP under load and PINGs without, as measured at the sender."""
    loaded = {}
    for words, settings in _LOADED.items():
        traffic = {"kind": "file", "bytes": _FILE_BYTES}
        loaded[words] = _samples(bench, scenario(f"six lines: {words}", links=_LINKS, traffic=traffic, **settings))
    pings = {words: _samples(bench, _ping(words, settings)) for words, settings in _PINGED.items()}
    rule = (
        "agrees within 10 % of one measurement; samples as tcptrace takes them, of segments that were sent once and none "
        "sent again since"
    )
    longer = (
        "; a PING of 100 bytes is on the line for 0.4 s, its answer for 0.2 s, each half a second in the air. Repetitions that "
        "make 3.3 s of their 8 frames would make 18 s of the 61 frames of a full packet, which neither the round trips of TCP "
        "nor the transfers have: what delays PINGs so far does it by the second and not by the byte, as handovers would"
    )
    return [
        *_three_packets(bench),
        *(check for words, runs in loaded.items() for check in _moments("figure 4.6, " + words, "tcp", runs, rule)),
        *(check for words, runs in pings.items() for check in _moments("figure 4.5, " + words, "ping", runs, rule + longer)),
    ], [_drawing(loaded, pings)]


def tcptrace_samples(run: Series) -> Floats:
    """Round trips in s as tcptrace takes them.

    Of each segment that an acknowledgement ends with, if neither it nor any before it was sent again since.

    Examples
    --------
    >>> run = Series(
    ...     0,
    ...     0,
    ...     {},
    ...     ["f"] * 4,
    ...     ["sent_sequence"] * 2 + ["acknowledged"] * 2,
    ...     np.array([0.0, 1.0, 3.0, 4.5]),
    ...     np.array([0.0, 100.0, 100.0, 200.0]),
    ... )
    >>> tcptrace_samples(run)
    array([3. , 3.5])
    """
    (sent_s, first), (again_s, again), (at_s, acknowledged) = (
        run.select(name) for name in ("sent_sequence", "retransmitted_sequence", "acknowledged")
    )
    # The segment in front of the first byte that is not acknowledged.
    newest = np.searchsorted(first, acknowledged) - 1
    is_new = (np.diff(acknowledged, prepend=0.0) > 0) & (newest >= 0)
    newest, at_s = newest[is_new], at_s[is_new]
    since = np.searchsorted(again_s, sent_s[newest], side="right") < np.searchsorted(again_s, at_s, side="right")
    kept = ~since & ~np.isin(first[newest], again)
    return np.asarray(np.round(at_s[kept] - sent_s[newest][kept], 9))


def _samples(bench: Workbench, settings: Mapping[str, Any]) -> list[Floats]:
    """Samples of each run."""
    title = settings["title"]
    bench.run(title, settings, runs=1)
    count = bench.repetitions(_RUNS)
    # The bench has run the first one; the others are only observed.
    ran = bench.scenarios[title]
    repeated = replace(ran, data={**ran.data, "runs": count})
    quantities = ("sent_sequence", "retransmitted_sequence", "acknowledged")
    with bench.watch(f"{title}: round trips") as progress:
        found = []
        for run in range(count):
            found.append(tcptrace_samples(packet.trace(repeated, run=run, quantities=quantities)))
            progress(run + 1, count)
    return found


def _ping(words: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    length = _PING_BYTES - _HEADER_BYTES
    traffic = {"kind": "cbr", "rate_bps": 8 * length / _PING_S, "payload_bytes": length, "bytes": length * _PINGS}
    settings = scenario(f"PING: {words}", traffic=traffic, **changes)
    settings["transport"]["tcp"]["delayed_ack"] = False
    return settings


def _three_packets(bench: Workbench) -> Iterator[Check]:
    """Three packets in each modem and none elsewhere, without drops."""
    for printed, words, repeats in (("15", "channel without errors", False), ("19.5", "T_MP = 6.5 s", True)):
        # As many segments as the lines hold, so that nothing waits before them.
        window = 3 * _LINKS
        traffic = {"kind": "file", "bytes": _FILE_BYTES}
        settings = scenario(
            f"three packets a modem: {words}",
            links=_LINKS,
            window_segments=window,
            is_dropping=False,
            repeats=repeats,
            traffic=traffic,
        )
        value = mean_of([float(run.mean()) for run in _samples(bench, settings)])
        note = (
            f"agrees within 10 %: three packets of 1500 bytes and the framing are {3 * 8 * 1520 / LINE_BPS:.1f} s, which is "
            "all of the round trip as packets that wait for each other are in the air at the same time"
        )
        verdict = number(value, printed, relative=_NEAR)
        cell = f"section 4.1.6, window of 18 segments over six lines, {words}: round trip, s"
        yield Check("figures-4.5-4.6", cell, float(printed), "packet", value, verdict, note)


def _moments(words: str, kind: str, runs: list[Floats], note: str) -> list[Check]:
    values = {
        "mean": mean_of([float(run.mean()) for run in runs]),
        # Rounding of equal times is no deviation.
        "deviation": mean_of([round(float(run.std()), 6) for run in runs]),
    }
    checks = [
        Check("figures-4.5-4.6", f"{words}: {name} of the round trip, s", float(printed), "packet", value,
              number(value, printed, relative=_NEAR), note)
        for (name, value), printed in zip(values.items(), _PRINTED[kind], strict=True)
    ]  # fmt: skip
    return [
        check.fitted("that a repetition fails with 92 % was chosen on figure 4.6") if _BAD_SPELLS in words else check
        for check in checks
    ]


def _drawing(loaded: Mapping[str, list[Floats]], pings: Mapping[str, list[Floats]]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MUTED, TEXT_PT, new_figure

        figure, panels = new_figure(height_in=7.2, rows=2, is_y_shared=False)
        titles = ("PING of 100 bytes each 2 s, eight lines (figure 4.5)", "TCP, six lines (figure 4.6)")
        for axes, title, kind, drawn, bins in zip(
            panels, titles, ("ping", "tcp"), (pings, loaded), (np.arange(0, 61, 0.5), np.arange(0, 61, 1.0)), strict=True
        ):
            mean, deviation = map(float, _PRINTED[kind])
            axes.axvspan(max(0, mean - deviation), mean + deviation, color=MUTED, alpha=0.15, linewidth=0)
            axes.axvline(mean, color=MUTED, linewidth=1, label=f"measured, {mean:g} ± {deviation:g} s")
            for (words, runs), colour in zip(drawn.items(), COLOURS, strict=False):
                pooled = np.concatenate(runs)
                text = f"{words}: {pooled.mean():.1f} ± {pooled.std():.1f} s"
                weights = np.full(len(pooled), 100 / len(pooled))
                axes.hist(pooled, bins=bins.tolist(), weights=weights, histtype="step", color=colour, linewidth=1.5, label=text)
            axes.set_ylabel("samples (%)")
            # The lines cross the whole panel, so the names stand above it, below its title.
            legend = axes.legend(
                loc="lower left", bbox_to_anchor=(-0.02, 1.0), title=title, title_fontsize=TEXT_PT, frameon=False
            )
            legend.set_alignment("left")
        panels[0].set_yscale("log")
        panels[0].set_ylim(0.02, 150)
        panels[1].set_xlim(0, 50)
        panels[1].set_xlabel("round trip (s)")
        return figure

    return Drawing(
        "figures-4-5-4-6",
        "Round trips of PINGs and of TCP under load",
        "Mean ± standard deviation; grey: the measured ones. Above, the share of samples is on a logarithmic axis. Rare bad "
        "spells: a repetition fails with 92 %, the time of a packet is 6.5 s on average as before.",
        draw,
    )
