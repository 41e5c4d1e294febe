r"""Bounds of any scheme over a channel that loses packets: bytes, rounds and time.

A packet arrives whole or not at all, independently of the others: the erasure channel. Whatever is sent, repeats or repair
symbols, a file of N packets is complete when any N packets of an ideal code have arrived, and not before.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.models.parameters import FileLength, Headers, LinkRate, OneWayDelay, PacketLossRate, Payload, Probabilities
from farlink.models.ranges import Floats, at_least, floats

# Packets of a file up to which rounds are computed: a table of packets sent by packets arrived.
_MOST_PACKETS = 2000
# Steps of the search for the price of a failure.
_PRICES = 24


@checked_arguments
def least_bytes(file_bytes: FileLength, *, loss_rate: PacketLossRate) -> Floats:
    r"""Bytes of data that any scheme has to send on average for a file: the capacity of the erasure channel.

    .. math:: B \ge \frac{F}{1 - p}

    Returns
    -------
    ndarray
        Bytes without headers, of the broadcast shape; infinite where nothing ever arrives.

    References
    ----------
    P. Elias, "Coding for two noisy channels", Third London Symposium on Information Theory, 1955.

    Examples
    --------
    >>> round(float(least_bytes(1e6, loss_rate=0.7)))
    3333333
    """
    file_bytes, loss = floats(file_bytes), floats(loss_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(file_bytes > 0, file_bytes / (1 - loss), 0.0))


@checked_arguments
def completion_bound_s(
    file_bytes: FileLength,
    *,
    loss_rate: PacketLossRate,
    rate_bps: LinkRate,
    delay_s: OneWayDelay,
    payload_bytes: Payload,
    header_bytes: Headers,
) -> Floats:
    r"""Mean time in which no scheme completes a file, whatever it sends: what the rate and the delay allow.

    .. math:: T \ge d + \frac{8 F}{(1 - p) R} \frac{l + l'}{l}

    Returns
    -------
    ndarray
        Time in s from the first bit sent to the last of the file's received, of the broadcast shape.

    Examples
    --------
    >>> round(float(completion_bound_s(1e6, loss_rate=0.7, rate_bps=5e6, delay_s=10, payload_bytes=1460, header_bytes=40)), 2)
    15.48
    """
    delay_s, rate_bps = floats(delay_s), floats(rate_bps)
    share = payload_share(payload_bytes, header_bytes=header_bytes)
    return np.asarray(delay_s + 8 * least_bytes(file_bytes, loss_rate=loss_rate) / (rate_bps * share))


@checked_arguments
def bulk_bound_bytes(
    duration_s: ArrayLike,
    *,
    loss_rate: PacketLossRate,
    rate_bps: LinkRate,
    delay_s: OneWayDelay,
    payload_bytes: Payload,
    header_bytes: Headers,
) -> Floats:
    r"""Bytes that any scheme delivers on average in a time: what the rate and the delay allow.

    .. math:: B \le (1 - p) \frac{l}{l + l'} \frac{R (T - d)}{8}

    Parameters
    ----------
    duration_s
        Time :math:`T` from the first bit sent, in s. Any shape.

    Returns
    -------
    ndarray
        Bytes, of the broadcast shape.

    Examples
    --------
    >>> round(
    ...     float(bulk_bound_bytes(4000, loss_rate=0.3, rate_bps=5e6, delay_s=0.5, payload_bytes=1460, header_bytes=40)) / 1e6
    ... )
    1703
    """
    duration_s, delay_s = at_least(0, duration_s=duration_s), floats(delay_s)
    share = payload_share(payload_bytes, header_bytes=header_bytes)
    carried = np.maximum(0.0, duration_s - delay_s) * floats(rate_bps) / 8
    return np.asarray((1 - floats(loss_rate)) * share * carried)


@checked_arguments
def payload_share(payload_bytes: Payload, *, header_bytes: Headers) -> Floats:
    """Share of user data in a packet.

    Returns
    -------
    ndarray
        Share in (0, 1], of the broadcast shape.

    Examples
    --------
    >>> round(float(payload_share(1460, header_bytes=40)), 4)
    0.9733
    """
    payload = floats(payload_bytes)
    return np.asarray(payload / (payload + floats(header_bytes)))


@checked_arguments
def packets_arrive(sent: ArrayLike, *, needed: ArrayLike, loss_rate: PacketLossRate) -> Probabilities:
    r"""Probability that enough of the packets sent arrive.

    .. math:: P(X \ge N), \quad X \sim B(n, 1 - p)

    Parameters
    ----------
    sent
        Packets sent :math:`n`, whole, not negative. Any shape.
    needed
        Packets that must arrive :math:`N`, whole, not negative; all parameters are broadcast against each other.

    Examples
    --------
    >>> packets_arrive([2200, 2300, 2400], needed=680, loss_rate=0.7).round(3)
    array([0.182, 0.683, 0.965])
    """
    sent, needed = at_least(0, sent=sent), at_least(0, needed=needed)
    return np.asarray(np.vectorize(_tail, otypes=[np.float64])(sent, needed, floats(loss_rate)))


@checked_arguments
def least_sent(needed: int, *, loss_rate: float, probability: float) -> int:
    """Fewest packets to send in one round, so that enough of them arrive with a given probability.

    Parameters
    ----------
    needed
        Packets that must arrive, not negative.
    loss_rate
        Packet loss probability, in [0, 1).
    probability
        That enough arrive, in [0, 1).

    Returns
    -------
    int
        Packets.

    Examples
    --------
    >>> least_sent(680, loss_rate=0.7, probability=0.99)
    2440
    """
    at_least(0, needed=needed)
    if not (0 <= loss_rate < 1 and 0 <= probability < 1):
        raise ArgumentError(
            "loss_rate and probability must be from 0 to below 1: no number of packets is certain",
            "give both from 0 to below 1, for example 0.99",
        )
    enough = max(needed, 1)
    while _tail(enough, needed, loss_rate) < probability:
        enough *= 2
    low, high = needed, enough
    while low < high:
        middle = (low + high) // 2
        if _tail(middle, needed, loss_rate) >= probability:
            high = middle
        else:
            low = middle + 1
    return low


@checked_arguments
def least_mean_sent(rounds: int, *, packets: int, loss_rate: float, probability: float) -> float:
    """Packets that any scheme sends on average to complete a file within so many rounds with a given probability.

    After each round the sender knows how many packets have arrived, and chooses how many to send in the next.

    Parameters
    ----------
    rounds
        At least 1; a round trip lies between two of them.
    packets
        Packets of the file, from 1 to 2000.
    loss_rate
        Packet loss probability, in [0, 1).
    probability
        That the file is complete after the last round, in [0, 1).

    Returns
    -------
    float
        Packets.

    Notes
    -----
    Dynamic programming over what is still missing, a failure after the last round at a price; the price with the highest
    bound is taken (weak duality), so it bounds schemes that toss coins, too.

    Examples
    --------
    >>> [round(least_mean_sent(rounds, packets=40, loss_rate=0.5, probability=0.99), 1) for rounds in (1, 2, 3)]
    [102.5, 86.3, 82.7]
    """
    if not (rounds >= 1 and 1 <= packets <= _MOST_PACKETS):
        raise ArgumentError(
            f"rounds must be at least 1, packets from 1 to {_MOST_PACKETS}, not {rounds} and {packets}",
            "give at least one round, and fewer packets",
        )
    most = least_sent(packets, loss_rate=loss_rate, probability=1 - 1e-9)
    if not 0 <= probability < 1:
        raise refused("probability", "be from 0 to below 1", probability)
    arrives = _arrivals(most, packets, loss_rate)

    def bound(log_price: float) -> float:
        price = math.exp(log_price)
        missing = np.full(packets + 1, price)
        missing[0] = 0.0
        for _ in range(rounds):
            missing = _one_round_less(missing, arrives)
        return float(missing[packets] - price * (1 - probability))

    return max(0.0, _highest(bound, 0.0, math.log(most / (1 - probability)) + 3))


@checked_arguments
def least_rounds(budget: float, *, packets: int, loss_rate: float, probability: float = 0.99, most_rounds: int = 8) -> int:
    """Fewest rounds in which any scheme completes a file with a given probability, within a budget of packets on average.

    Parameters
    ----------
    budget
        Mean number of packets sent, over the least that any scheme sends, packets / (1 - loss_rate); at least 1.
    packets
        Packets of the file, from 1 to 2000.
    loss_rate
        Packet loss probability, in [0, 1).
    probability
        That the file is complete, in [0, 1).
    most_rounds
        Give up beyond.

    Returns
    -------
    int
        Rounds: one less of round trips, and a one-way delay.

    Raises
    ------
    ValueError
        If a value lies outside its range, or `most_rounds` are too few.

    Examples
    --------
    >>> [least_rounds(budget, packets=40, loss_rate=0.5) for budget in (1.3, 1.1, 1.05)]
    [1, 2, 3]

    A file of 680 packets of which 70 % are lost, with a quarter more than the least:

    >>> least_rounds(1.25, packets=680, loss_rate=0.7)
    1
    """
    if not budget >= 1:
        raise refused("budget", "be at least 1", budget)
    affordable = budget * float(least_bytes(packets, loss_rate=loss_rate))
    # One round needs no search.
    if least_sent(packets, loss_rate=loss_rate, probability=probability) <= affordable:
        return 1
    for rounds in range(1, most_rounds + 1):
        if least_mean_sent(rounds, packets=packets, loss_rate=loss_rate, probability=probability) <= affordable:
            return rounds
    raise ArgumentError(
        f"a budget of {budget:g} needs more than {most_rounds} rounds", "give more most_rounds, or a larger budget"
    )


def _one_round_less(missing: Floats, arrives: Floats) -> Floats:
    """Mean cost by packets missing, if a further round comes before a state of which the cost is known."""
    packets = len(missing) - 1
    # Column d: the cost of what is missing of d if x arrive.
    gap = np.arange(packets + 1)[None, :] - np.arange(packets + 1)[:, None]
    after = np.where(gap > 0, missing[np.maximum(gap, 0)], 0.0)
    sent = np.arange(len(arrives))[:, None]
    return np.asarray(np.min(sent + arrives @ after, axis=0))


def _arrivals(most_sent: int, packets: int, loss_rate: float) -> Floats:
    """Row n: probability that x of n packets arrive, for x up to `packets`; what is beyond completes the file, too."""
    sent, arrived = np.arange(most_sent + 1)[:, None], np.arange(packets + 1)[None, :]
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most_sent + 1)))])
    lost = np.maximum(sent - arrived, 0)
    log_ways = log_factorial[sent] - log_factorial[np.minimum(arrived, most_sent)] - log_factorial[lost]
    log_loss = math.log(loss_rate) if loss_rate > 0 else -1e300
    chance = np.exp(log_ways + arrived * math.log1p(-loss_rate) + np.where(lost > 0, lost * log_loss, 0.0))
    return np.asarray(np.where(arrived <= sent, chance, 0.0))


def _tail(trials: float, least: float, loss_rate: float) -> float:
    """Probability that at least so many of the trials are not lost."""
    if least <= 0:
        return 1.0
    if least > trials or loss_rate == 1:
        return 0.0
    if loss_rate == 0:
        return 1.0
    count, first = round(trials), round(least)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    arrived = np.arange(first, count + 1)
    log_ways = log_factorial[count] - log_factorial[arrived] - log_factorial[count - arrived]
    chances = np.exp(log_ways + arrived * math.log1p(-loss_rate) + (count - arrived) * math.log(loss_rate))
    return min(1.0, math.fsum(chances))


def _highest(function: Callable[[float], float], low: float, high: float) -> float:
    """Largest value of a concave function, by golden section."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_PRICES):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
    return max(at_left, at_right)
