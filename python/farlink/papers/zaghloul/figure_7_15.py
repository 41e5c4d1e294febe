"""Figure 7.15: throughput by the number of modems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farlink.papers.check import Check, claimed, number
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.packets import LINE_BPS, WINDOWS, mean_of, of_runs, scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PRINTED = "18.6"
_RUNS, _DURATION_S = 8, 14_400.0
# Largest datagrams of iperf that fit a packet of 1500 bytes.
_DATAGRAM_BYTES = 1470
_KINDS = {
    "datagrams of 1470 bytes, no drops": "datagrams",
    "TCP, no drops": "tcp",
    "TCP with drops": "drops",
}


def figure_7_15(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """One to eight modems: datagrams faster than the lines, and TCP."""
    found = {}
    for words, kind in _KINDS.items():
        for links in WINDOWS:
            name = f"{words}, {links} modems"
            result = bench.run(name, _settings(name, links, kind, bench.share(_DURATION_S)))
            found[words, links] = mean_of(of_runs(result, "goodput_bps"), 1e-3)
    whole, one = found["TCP, no drops", 8], found["TCP, no drops", 1]
    rule = "agrees within 2 %; the thesis does not say what was sent"
    checks = [
        Check("figure-7.15", f"eight modems, {words}: kb/s", float(_PRINTED), "packet", found[words, 8],
              number(found[words, 8], _PRINTED, relative=0.02), rule)
        for words in _KINDS
    ]  # fmt: skip
    checks.append(
        claimed(
            "figure-7.15",
            "eight modems over one, TCP without drops",
            "able to support the desired throughput (the product of the number of modems and the single modem rate of 2.4 "
            "kbps)",
            ratio(whole, one),
            at_least=7.8,
            at_most=8.2,
            rule="agrees between 7.8 and 8.2",
        )
    )
    return checks, [_drawing(found)]


def _settings(name: str, links: int, kind: str, duration_s: float) -> dict[str, Any]:
    built = scenario(name, links=links, is_dropping=kind == "drops", duration_s=duration_s, runs=_RUNS)
    if kind == "datagrams":
        built["transport"] = {"udp": {"kind": "udp"}}
        rate_bps = 1.1 * links * LINE_BPS
        traffic = {"kind": "cbr", "rate_bps": rate_bps, "payload_bytes": _DATAGRAM_BYTES}
        built["flow"]["data"] = {"transport": "udp", "traffic": traffic}
        built["link"]["queue_packets"] = 20
    return built


def _drawing(found: dict[tuple[str, int], Estimate]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, new_figure

        figure, (axes,) = new_figure()
        modems = list(WINDOWS)
        axes.plot(modems, [links * LINE_BPS / 1e3 for links in modems], "--", color=MUTED, label="2.4 kb/s a modem")
        for words, colour, marker in zip(_KINDS, COLOURS, MARKERS, strict=False):
            values = [found[words, links] for links in modems]
            axes.errorbar(
                modems,
                [one.mean for one in values],
                yerr=[one.half_width for one in values],
                color=colour,
                marker=marker,
                markersize=4,
                capsize=3,
                label=words,
            )
        axes.plot([8], [float(_PRINTED)], "x", color=MUTED, markersize=9, markeredgewidth=2, label="printed, 18.6 kb/s")
        axes.set_ylim(0, 20)
        axes.set_xlabel("modems")
        axes.set_ylabel("goodput (kb/s)")
        legend_above(figure, axes)
        return figure

    return Drawing(
        "figure-7-15",
        "Throughput by the number of modems",
        "Four hours, 95 % intervals. Headers, the framing of PPP and its escapes are what keeps datagrams below 2.4 kb/s a "
        "modem.",
        draw,
    )
