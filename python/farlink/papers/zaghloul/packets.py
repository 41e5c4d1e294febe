"""The bundle of section 6.3 for the packet engine: what the thesis prints, and what had to be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farlink.papers.epple.intervals import interval
from farlink.papers.estimate import Estimate
from farlink.papers.zaghloul.setting import GREENLAND, KILOBYTE
from farlink.result import Result

LINE_BPS, PROPAGATION_S = 2400, 0.5
# Of eight modems that are all up 87 % of the time (section 7.6).
REDIAL_S = 53.0
# W_max of tables 6.1 and 6.2, in KB, by links; for one and two the share of eight.
WINDOWS = {1: 6.0, 2: 12.0, 3: 16.1, 4: 22.0, 5: 28.3, 6: 34.7, 7: 41.0, 8: 47.9}

# Ways to read what is not printed. The timer is that of RFC 6298 up to 120 s, as Linux has it, unless it is put to T_0.
SACK: dict[str, Any] = {"variant": "sack"}
RENO: dict[str, Any] = {"variant": "reno", "least_timeout_s": GREENLAND.timeout_s}
SLOW: dict[str, Any] = {"variant": "sack", "repeats": True}
READINGS = {
    "SACK": SACK,
    "Reno, first timeout 60 s": RENO,
    "SACK, a packet in 6.5 s": SLOW,
}

# Go-back-N on each line: 25 bytes in 83 ms, a bad frame costs half a second. 1500 bytes and their framing take 5.1 s,
# repetitions 0.9 s, propagation 0.5 s: T_MP = 6.5 s, put together as in `loaded_bundle.modem_time_s`.
ARQ: dict[str, Any] = {"frame_bytes": 25, "window_frames": 6, "loss": 0.027, "loss_again": 0.1}


# Of today's ways to run a bundle, the thesis's: whole packets in turn, and a receiver that waits until every line has delivered
# something later.
_RULES: dict[str, Any] = {"scheduler": "round-robin", "packets": "whole", "line_packets": 3}


def calls(**changes: Any) -> dict[str, Any]:
    """Calls that drop once in 50 minutes and are there again after 53 s, whatever the others do."""
    return {
        "up": {"distribution": "exponential", "mean_s": GREENLAND.drop_interval_s},
        "redial": {"distribution": "constant", "value_s": REDIAL_S},
        **changes,
    }


def scenario(
    title: str,
    *,
    links: int = 8,
    window_segments: int | None = None,
    variant: str = "sack",
    least_timeout_s: float = 1.0,
    repeats: bool = False,
    drops: Mapping[str, Any] | None = None,
    is_dropping: bool = True,
    traffic: Mapping[str, Any] | None = None,
    duration_s: float | None = None,
    runs: int = 20,
    **bundle: Any,
) -> dict[str, Any]:
    """Scenario of one transfer.

    Parameters
    ----------
    title
        Its title.
    links
        Lines of the bundle.
    window_segments
        Largest window; that of tables 6.1 and 6.2 unless given.
    variant, least_timeout_s
        How TCP reacts to loss, and its least RTO in s.
    repeats
        Whether repetitions on the lines take time of their 2400 bit/s: `ARQ`.
    drops
        The calls; `calls` unless given.
    is_dropping
        Whether there are drops at all.
    traffic, duration_s, runs
        What is sent, how long, and how often; without end unless given.
    **bundle
        Other keys of ``[link.bundle]``.
    """
    lines: dict[str, Any] = {"lines": links, **_RULES, **bundle}
    if lines.get("header") != "none":
        lines.setdefault("reorder_timeout_s", "never")
    if repeats:
        lines["arq"] = ARQ
    if is_dropping:
        lines["calls"] = dict(drops or calls())
        lines.setdefault("on_drop", "lose")
    window = window_segments or round(WINDOWS[links] * KILOBYTE / GREENLAND.segment_bytes)
    built: dict[str, Any] = {
        "title": title,
        "runs": runs,
        "link": {"rate_bps": LINE_BPS, "delay_s": PROPAGATION_S, "bundle": lines},
        "transport": {
            "tcp": {
                "kind": "tcp",
                "variant": variant,
                "segment_bytes": round(GREENLAND.segment_bytes),
                "timestamps": True,
                "delayed_ack": True,
                "max_window_segments": window,
                "rto": {"minimum_s": least_timeout_s, "initial_s": max(3.0, least_timeout_s), "maximum_s": 120},
            }
        },
        "flow": {"data": {"transport": "tcp", "traffic": dict(traffic or {"kind": "bulk"})}},
    }
    if duration_s is not None:
        built["duration_s"] = duration_s
    return built


def of_runs(result: Result, quantity: str, *, flow: str = "data", point: int = 0) -> list[float]:
    """A quantity of each run at a point of the grid."""
    columns = result.columns
    rows = zip(columns["flow"], columns["point"], columns[quantity], strict=True)
    return [float(value) for name, at, value in rows if name == flow and at == point]


def mean_of(values: Sequence[float], factor: float = 1.0) -> Estimate:
    """Mean over runs, with its interval, in another unit."""
    return interval([value * factor for value in values])
