"""Outages of the link behind the decoders of a modem: the segments that they lose, less those that a code repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farlink.errors import TuneError
from farlink.tune.ascending import Whole, merged
from farlink.tune.codes.code import Code
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.impaired.wrong_bits import within
from farlink.tune.points import Point

Interval = tuple[float, float]

_MOST = 50_000
_SCHEDULE, _RECEIVED = 4, 5


def played(
    point: Point, code: Code, impairment: Impairment, *, duration_s: float, runs: int
) -> tuple[float, tuple[dict[str, Any], ...]]:
    """Share of lost segments, and a channel for all runs, or for each run if outages are random.

    What is received during an outage is random: half of the bits are wrong, those behind the inner decoder. The modem's noise
    loses segments of its own; what it adds to a segment that an outage touches is left out.
    """
    is_random = impairment.table.get("rate_per_s") is not None
    channels, shares = [], []
    segments = duration_s * point.rate_segments_per_s
    for run in range(runs if is_random else 1):
        down = schedule(impairment, duration_s, run)
        lost = lost_segments(code, point.setting.packet_bytes, down, 1 / point.rate_segments_per_s, impairment.seed + run)
        shares.append(min(1.0, lost.size / segments))
        channels.append(_channel(point, lost))
    share = float(np.mean(shares))
    return 1 - (1 - point.loss) * (1 - share), tuple(channels)


def schedule(impairment: Impairment, duration_s: float, run: int) -> list[Interval]:
    """When the link is down within a run.

    Raises
    ------
    TuneError
        If that is too often.
    """
    table = impairment.table
    if table.get("schedule") is not None:
        found = [(float(begin), float(end)) for begin, end in table["schedule"]]
    else:
        every_s = float(table["period_s"]) if table.get("period_s") else 1 / float(table["rate_per_s"]) + float(table["down_s"])
        if duration_s / every_s > _MOST:
            raise TuneError(
                f"impairment: an outage every {every_s:g} s is {duration_s / every_s:,.0f} in a run, and at most {_MOST:,} are "
                "played",
                "give fewer, or bursts of a gilbert-elliott channel",
            )
        found = _drawn(table, duration_s, every_s, np.random.default_rng([impairment.seed, _SCHEDULE, run]))
    return [(begin, min(end, duration_s)) for begin, end in found if begin < duration_s]


def _drawn(table: dict[str, Any], duration_s: float, every_s: float, rng: np.random.Generator) -> list[Interval]:
    down_s = float(table["down_s"])
    if table.get("period_s"):
        first = float(table.get("offset_s") or 0.0)
        begins = first + every_s * np.arange(max(0, int((duration_s - first) / every_s) + 1))
    else:
        up = rng.exponential(1 / float(table["rate_per_s"]), int(2 * duration_s / every_s) + 50)
        begins = np.cumsum(up) + down_s * np.arange(up.size)
    return [(float(begin), float(begin + down_s)) for begin in begins]


def lost_segments(code: Code, packet_bytes: int, down: Sequence[Interval], segment_s: float, seed: int) -> Whole:
    """Numbers of the segments that outages lose, ascending.

    Parameters
    ----------
    code
        The codes that a segment passes.
    packet_bytes
        A segment with its headers.
    down
        When the link is down, ascending and apart.
    segment_s
        Time that a segment takes with its parity.
    seed
        Of what is received meanwhile.
    """
    group_bits = round(8 * code.sent_bytes(packet_bytes) * code.segments)
    bits_per_s = group_bits / (code.segments * segment_s)
    pieces: list[tuple[int, int]] = []
    whole: list[Whole] = []
    for begin_s, end_s in down:
        begin, end = int(begin_s * bits_per_s), int(np.ceil(end_s * bits_per_s))
        first, last = begin // group_bits, (end - 1) // group_bits
        if last <= first + 1:
            pieces.append((begin, end))
            continue
        # Groups that are wrong as a whole are lost as a whole.
        pieces += [(begin, (first + 1) * group_bits), (last * group_bits, end)]
        whole.append(np.arange((first + 1) * code.segments, last * code.segments, dtype=np.int64))
    apart = [(max(begin, pieces[at - 1][1]) if at else begin, end) for at, (begin, end) in enumerate(pieces)]
    rng = np.random.default_rng([seed, _RECEIVED])
    wrong = within([(begin, end) for begin, end in apart if begin < end], rng)
    middle = np.concatenate(whole) if whole else wrong[:0]
    return merged(code.lost(wrong, packet_bytes, rng), middle)


def _channel(point: Point, lost: Whole) -> dict[str, Any]:
    """A channel that loses these segments, and others by noise."""
    stages: list[dict[str, Any]] = [{"kind": "loss", "loss": point.loss}] if point.loss > 0 else []
    if lost.size:
        segment_s = 1 / point.rate_segments_per_s
        begins = np.flatnonzero(np.concatenate([[True], np.diff(lost) > 1]))
        ends = np.concatenate([begins[1:], [lost.size]]) - 1
        # Down in the middle of a segment is enough to lose it, and no other.
        down = np.stack([(lost[begins] + 0.45) * segment_s, (lost[ends] + 0.55) * segment_s], axis=1)
        stages.append({"kind": "outage", "schedule": down.tolist()})
    if len(stages) == 1:
        return stages[0]
    return {"kind": "chain", "stages": stages} if stages else {"kind": "none"}
