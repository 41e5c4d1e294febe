r"""Latency with any number of losses, by a recursion over the segments that are left.

The state before a round is the window, how far slow start or the next step of congestion avoidance is, and the segments
:math:`r` that have not arrived. A round of :math:`s` segments takes a round trip; with :math:`(1 - p)^s` it loses none,
otherwise a `recovery` follows:

.. math::

    T(x, r) = (1 - p)^s \left( RTT + T(x', r - s) \right)
    + \sum_{j, L} P(j, L) \left( RTT + T_{rec}(s, j, L) + T(x'', r - \Delta) \right)

where :math:`j` is the place of the first loss and :math:`\Delta \ge 1` what has arrived by the end of the recovery. So
:math:`T` follows from fewer segments, exactly, for all numbers of losses at once. The recursion is ours; it needs no
distances between losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma

import numpy as np

from farlink.arguments import checked_arguments
from farlink.models.ranges import Floats
from farlink.models.tcp_latency.sikdar.packet_sums import rounds_to_window, window_in_round
from farlink.models.tcp_latency.sikdar.recovery import LossPattern, Recovery, Variant, Whole, recover

# Sizes up to which the recursion is run.
MOST_SEGMENTS = 20_000
MOST_WINDOW = 200
# Outcomes less likely are left out.
_RARE = 1e-13


@dataclass(frozen=True)
class _States:
    """Windows before a round, one element each, with the state after a round without loss."""

    window: Whole
    after: Whole
    # By window: state of congestion avoidance. By first round and threshold: state of slow start.
    avoiding: Whole
    starting: Whole


@dataclass(frozen=True)
class _Outcomes:
    """Ways in which a round loses segments, in the order of its segments; `first` is where each number of segments begins."""

    probability: Floats
    recovery: Recovery
    state: Whole
    first: Whole


@lru_cache(maxsize=16)
@checked_arguments
def times_s(
    most: int,
    *,
    loss_rate: float,
    rtt_s: float,
    wait_s: float,
    limit: int,
    variant: Variant,
    losses: LossPattern,
    segments_per_ack: int,
) -> Floats:
    """Mean times of transfers of 0 to `most` segments, in s; `wait_s` is the mean length of a sequence of timeouts."""
    states = _all_states(limit, segments_per_ack)
    # No recovery delivers more than this, and no lookup goes further back.
    depth = 3 * limit + 4
    recent = np.zeros((depth, len(states.window)))
    nothing_left = np.zeros(len(states.window))
    times = np.zeros(most + 1)
    start = states.starting[1, limit]
    outcomes = None
    for left in range(1, most + 1):
        if outcomes is None or left <= 2 * limit:
            outcomes = _outcomes(left, limit, loss_rate, variant, losses, states)
        sent = np.minimum(states.window, left)
        then = left - outcomes.recovery.delivered
        tail = np.where(then > 0, recent[then % depth, outcomes.state], 0.0)
        cost = (1 + outcomes.recovery.rounds) * rtt_s + outcomes.recovery.has_timeout * wait_s + tail
        with_loss = np.add.reduceat(outcomes.probability * cost, outcomes.first)
        rest = left - sent
        without = rtt_s + np.where(rest > 0, recent[rest % depth, states.after], nothing_left)
        recent[left % depth] = (1 - loss_rate) ** sent * without + with_loss[sent - 1]
        times[left] = recent[left % depth, start]
    return times


def _all_states(limit: int, per_ack: int) -> _States:
    windows = np.repeat(np.arange(1, limit + 1), per_ack)
    avoiding = np.arange(limit) * per_ack
    after = np.arange(len(windows)) + 1
    # At the largest window the next step leads back to its first round.
    after[-1] = avoiding[-1]

    most_rounds = int(rounds_to_window(limit)) + 2
    starting = np.zeros((most_rounds + 1, limit + 1), dtype=np.int64)
    slow = window_in_round(np.arange(1, most_rounds + 1), is_whole=True).astype(np.int64)
    slow_windows: list[int] = []
    slow_after: list[int] = []
    for threshold in range(1, limit + 1):
        # From the last round before the threshold back to the first.
        starting[:, threshold] = avoiding[threshold - 1]
        for number in range(most_rounds - 1, 0, -1):
            if slow[number - 1] < threshold:
                slow_windows.append(int(slow[number - 1]))
                slow_after.append(int(starting[number + 1, threshold]))
                starting[number, threshold] = len(windows) + len(slow_windows) - 1
    return _States(
        window=np.concatenate([windows, np.asarray(slow_windows, dtype=np.int64)]),
        after=np.concatenate([after, np.asarray(slow_after, dtype=np.int64)]),
        avoiding=avoiding,
        starting=starting,
    )


def _outcomes(left: int, limit: int, loss_rate: float, variant: Variant, losses: LossPattern, states: _States) -> _Outcomes:
    most = min(limit, left)
    sent, before, lost, probability = _losses(most, loss_rate, losses)
    fresh = np.minimum(before, left - sent)
    recovery = recover(variant, sent=sent, before=before, lost=lost, fresh=fresh)
    window = np.minimum(recovery.next_window, limit)
    state = np.where(recovery.is_slow_start, states.starting[recovery.first_round, window], states.avoiding[window - 1])
    return _Outcomes(probability, recovery, state, np.searchsorted(sent, np.arange(1, most + 1)))


@lru_cache(maxsize=4)
def _losses(most: int, loss_rate: float, losses: LossPattern) -> tuple[Whole, Whole, Whole, Floats]:
    """Segments of a round, those before the first loss, those lost, and the probability; one element an outcome."""
    count = np.arange(1, most + 1)
    sent = np.repeat(count, count)
    before = np.arange(len(sent)) - np.repeat(np.cumsum(count) - count, count)
    probability = (1 - loss_rate) ** before * loss_rate
    if losses == "correlated":
        return sent, before, sent - before, np.asarray(probability, dtype=np.float64)
    behind = sent - before - 1
    also = np.arange(len(behind) + int(behind.sum())) - np.repeat(np.cumsum(behind + 1) - behind - 1, behind + 1)
    sent, before, probability, behind = (np.repeat(array, behind + 1) for array in (sent, before, probability, behind))
    log_factorial = np.array([lgamma(k + 1) for k in range(most + 1)])
    ways = np.exp(log_factorial[behind] - log_factorial[also] - log_factorial[behind - also])
    probability = probability * ways * loss_rate**also * (1 - loss_rate) ** (behind - also)
    # The first outcome of every number of segments stays, for the sums to begin with.
    kept = (probability > _RARE) | ((before == 0) & (also == 0))
    return sent[kept], before[kept], (also[kept] + 1).astype(np.int64), probability[kept].astype(np.float64)
