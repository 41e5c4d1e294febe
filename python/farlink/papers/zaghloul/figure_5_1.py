"""Figure 5.1: a time-sequence graph with drops drawn in, of a simulated transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farlink import engines
from farlink.capture import connections, files
from farlink.channels.calls.replay import down_times
from farlink.papers.check import Check, claim
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import GREENLAND, MINUTE_S
from farlink.papers.zaghloul.simulated_drops import drop_times_s, link_of
from farlink.plot.time_sequence import Drop, time_sequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A transfer of 33 minutes over eight links of 2.4 kb/s, each of which drops every 50 minutes.
_DURATION_S = 33 * MINUTE_S
_RATE_BPS = GREENLAND.links * 2400.0
_HEADER_BYTES = 52


def figure_5_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Drops and the timeouts behind them."""
    interval_s = GREENLAND.drop_interval_s / GREENLAND.links
    times_s = drop_times_s(bench, interval_s, series=1, drops=60)
    spells = [spell for spell in down_times([link_of(times_s)])[0].outages if spell[1] < _DURATION_S]
    with_drops = bench.run("figure-5-1", _scenario(spells), runs=1)
    without = bench.run("figure-5-1-without-drops", _scenario([]), runs=1)
    timeouts, others = (result.summary()[0]["timeouts"]["mean"] for result in (with_drops, without))
    value = Estimate(min(1.0, (timeouts - others) / len(spells)))
    check = Check(
        "figure-5.1",
        f"timeouts beyond those without drops, for each of {len(spells)} drops, at most 1",
        "all call drops for various number of modems in the MLPPP bundle (2 – 8) modems resulted in TCP timeouts",
        "packet",
        value,
        claim(value, at_least=1.0),
        f"agrees if there is one for each, {timeouts:.0f} and {others:.0f} in all; the whole bundle is down while a link is "
        "dialled again, one link of eight would lose an eighth of the segments",
    )
    return [check], [_drawing(bench, spells)]


def _scenario(spells: list[tuple[float, float]]) -> dict[str, Any]:
    channel = {"kind": "outage", "schedule": [list(spell) for spell in spells]}
    return {
        "title": "A transfer of 33 minutes over a bundle that drops",
        "duration_s": _DURATION_S,
        "runs": 1,
        "link": {
            "rate_bps": _RATE_BPS,
            "delay_s": 0.5,
            "queue_packets": 40,
            "channel": channel,
            "return": {"channel": channel},
        },
        "transport": {
            "sack": {
                "kind": "tcp",
                "variant": "sack",
                "segment_bytes": int(GREENLAND.segment_bytes),
                "header_bytes": _HEADER_BYTES,
                "max_window_segments": int(GREENLAND.window_bytes / GREENLAND.segment_bytes),
            }
        },
        "flow": {"iperf": {"transport": "sack", "traffic": {"kind": "bulk"}}},
    }


def _drawing(bench: Workbench, spells: list[tuple[float, float]]) -> Drawing:
    def draw() -> Figure:
        run = engines.trace_run({**_scenario(spells), "seed": bench.seed}, pcap=True, quantities=[])
        assert run.pcapng is not None
        capture = files.parse(run.pcapng, "figure-5.1.pcapng")
        connection = connections.chosen(connections.connections(capture), capture)
        return time_sequence(connection, [Drop("bundle", begin, end) for begin, end in spells])

    return Drawing(
        "figure-5-1",
        "Sequence numbers over time, and drops",
        "Simulated: eight links of 2.4 kb/s as one that is down from a drop until it is dialled again, 53 s. Drawn from the "
        "capture of the run, as farlink trace show --drops draws a measured one.",
        draw,
    )
