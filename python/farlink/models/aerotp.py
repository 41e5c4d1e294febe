r"""Retransmissions over long round trips: how often, how long, and with which packets.

A file of `packets` goes out at once; a round trip later the sender knows which packets are missing and sends those again, each
in `copies`. Losses are independent with probability :math:`p`. On links where the round trip is long beside the file, the worst
of the packets decides when the file is complete. `farlink.models.arq.packet_loss` has :math:`p` from a bit error rate.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.meanings import Meaning
from farlink.models.arq import packet_loss
from farlink.models.bounds import least_bytes, payload_share
from farlink.models.parameters import Headers, LinkRate, OneWayDelay, PacketLossRate, Payload, Probabilities, Seconds
from farlink.models.ranges import Floats, at_least, floats, from_on, positive, within_0_and_1

Copies = Annotated[ArrayLike, Meaning("Copies :math:`m` of each packet in a round", from_on(1))]
FilePackets = Annotated[ArrayLike, Meaning("Packets of the file :math:`N`", from_on(1))]

# Below this decay per round the sum over rounds is an integral to 1e-13, and would have thousands of terms.
_SLOW_DECAY = 0.05
_EULER_GAMMA = 0.5772156649015329


@checked_arguments
def completed_within(
    rounds: ArrayLike, *, loss_rate: PacketLossRate, packets: FilePackets, copies: Copies = 1
) -> Probabilities:
    r"""Probability that every packet has arrived within so many rounds.

    .. math:: P(K \le k) = (1 - p^{m k})^N

    Parameters
    ----------
    rounds
        Transmissions :math:`k` of whatever is missing, from 0. Any shape.

    Examples
    --------
    >>> completed_within([10, 20, 40], loss_rate=0.7, packets=680).round(4)
    array([0.    , 0.5811, 0.9996])
    """
    rounds = at_least(0, rounds=rounds)
    decay, packets = _decay(loss_rate, copies), floats(packets)
    with np.errstate(invalid="ignore"):
        # Without loss nothing is missing from the first round on; before it, everything is.
        missing = np.where(rounds > 0, np.exp(-np.where(rounds > 0, decay * rounds, 0.0)), 1.0)
    return np.asarray(np.exp(packets * _log1m(missing)))


@checked_arguments
def rounds_of_the_worst(loss_rate: PacketLossRate, *, packets: FilePackets, copies: Copies = 1) -> Floats:
    r"""Mean number of rounds until the last of N packets has arrived.

    .. math:: E[K] = \sum_{k=0}^\infty \left( 1 - (1 - p^{m k})^N \right)

    Returns
    -------
    ndarray
        Rounds, not rounded, of the broadcast shape; infinite where nothing ever arrives.

    Notes
    -----
    No scheme that repeats whole packets, `copies` of each, after it has heard that they are missing, needs fewer. For
    :math:`N > 1` about :math:`(\ln N + 0.577) / (m \ln \frac{1}{p}) + \frac{1}{2}`.

    Examples
    --------
    1 MB in 680 packets of 1500 bytes, at a bit error rate of 1e-4:

    >>> rounds_of_the_worst(packet_loss(1e-4, packet_bytes=1500), packets=680, copies=[1, 2, 4]).round(1)
    array([20.3, 10.4,  5.5])
    """
    return np.asarray(np.vectorize(_mean_rounds, otypes=[np.float64])(_decay(loss_rate, copies), floats(packets)))


@checked_arguments
def rounds_quantile(probability: ArrayLike, *, loss_rate: ArrayLike, packets: FilePackets, copies: Copies = 1) -> Floats:
    r"""Fewest rounds within which every packet has arrived with a given probability.

    .. math:: k = \left\lceil \frac{\ln (1 - P^{1/N})}{m \ln p} \right\rceil

    Parameters
    ----------
    probability
        :math:`P`, in [0, 1). Any shape.
    loss_rate
        Packet loss probability :math:`p`, in [0, 1); all parameters are broadcast against each other.

    Returns
    -------
    ndarray
        Whole rounds, at least 1, of the broadcast shape.

    Examples
    --------
    >>> rounds_quantile([0.5, 0.99], loss_rate=0.7, packets=680)
    array([20., 32.])
    """
    wanted = within_0_and_1(probability=probability)
    decay, packets = _decay(loss_rate, copies), floats(packets)
    if np.any(wanted == 1) or np.any(decay == 0):
        raise ArgumentError(
            "probability and loss_rate must be below 1: no number of rounds is certain", "give both below 1, for example 0.99"
        )
    with np.errstate(divide="ignore"):
        # 1 - P^(1/N) keeps its digits for many packets.
        missing = -np.expm1(np.log(wanted) / packets)
        rounds = -np.log(missing) / decay
    # Rounding must not push a whole number over the next.
    return np.asarray(np.maximum(1.0, np.ceil(rounds - 1e-9)))


@checked_arguments
def arrival_delay_s(loss_rate: PacketLossRate, *, delay_s: ArrayLike, rtt_s: ArrayLike, copies: Copies = 1) -> Floats:
    r"""Mean time from a packet's first transmission to its arrival, in or out of order.

    .. math:: d + RTT \frac{p^m}{1 - p^m}

    Parameters
    ----------
    delay_s
        One-way delay :math:`d`, the packet's transmission included, in s; all parameters are broadcast against each other.
    rtt_s
        Time between two transmissions of a packet, in s: a round trip and what the answer waits for.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape; infinite where nothing ever arrives.

    Examples
    --------
    >>> round(float(arrival_delay_s(0.7, delay_s=10, rtt_s=20)), 1)
    56.7
    """
    delay_s, rtt_s = at_least(0, delay_s=delay_s), at_least(0, rtt_s=rtt_s)
    decay = _decay(loss_rate, copies)
    with np.errstate(divide="ignore", invalid="ignore"):
        # p^m / (1 - p^m), without cancellation.
        repeats = np.where(np.isinf(decay), 0.0, 1 / np.expm1(decay))
    return np.asarray(delay_s + rtt_s * repeats)


@checked_arguments
def in_order_delay_s(
    loss_rate: PacketLossRate, *, packets: FilePackets, delay_s: ArrayLike, rtt_s: ArrayLike, copies: Copies = 1
) -> Floats:
    r"""Mean time from a packet's first transmission to its delivery behind all packets before it.

    .. math:: d + RTT \left( \sum_{k=0}^\infty \left[ 1 - \frac{1}{N} \sum_{i=1}^N (1 - p^{m k})^i \right] - 1 \right)

    Parameters
    ----------
    delay_s
        One-way delay :math:`d`, the packet's transmission included, in s.
    rtt_s
        Time between two transmissions of a packet, in s.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape; infinite where nothing ever arrives.

    Notes
    -----
    Holds where all packets go out within a small part of the round trip, so that each waits for whole rounds of those before
    it: packet i for the worst of i.

    Examples
    --------
    >>> round(float(in_order_delay_s(0.7, packets=680, delay_s=10, rtt_s=20)))
    343
    """
    delay_s, rtt_s = at_least(0, delay_s=delay_s), at_least(0, rtt_s=rtt_s)
    means = np.vectorize(_mean_rounds_in_order, otypes=[np.float64])(_decay(loss_rate, copies), floats(packets))
    with np.errstate(invalid="ignore"):
        waits = np.where(means == 1, 0.0, rtt_s * (means - 1))
    return np.asarray(delay_s + waits)


@checked_arguments
def selective_repeat_completion_s(
    file_bytes: ArrayLike,
    *,
    ber: ArrayLike,
    rate_bps: LinkRate,
    delay_s: OneWayDelay,
    payload_bytes: Payload,
    header_bytes: Headers,
    copies: Copies = 1,
) -> Seconds:
    r"""Mean time in which selective repeat completes a file, rounds after each other.

    .. math:: T = d + \frac{8 m F}{(1 - p^m) R} \frac{l + l'}{l} + 2 d (E[K] - 1)

    Parameters
    ----------
    file_bytes
        Length of the file :math:`F`, in bytes, positive. Any shape.
    ber
        Bit error rate of the way forward; every bit of a packet counts. All parameters are broadcast against each other.

    Notes
    -----
    An upper estimate of ideal selective repeat: rounds may overlap, which hides their transmission. With the second term
    alone it is `completion_bound_s`, with the third alone what the delay allows; it is at most twice the larger of them.

    Examples
    --------
    >>> link = {"ber": 1e-4, "rate_bps": 5e6, "delay_s": 10, "header_bytes": 40}
    >>> selective_repeat_completion_s(1e6, payload_bytes=[1460, 200, 20], **link).round(1)
    array([402.1, 106.5,  79.4])
    """
    payload, header = floats(payload_bytes), floats(header_bytes)
    file_bytes, delay_s, copies = positive(file_bytes=file_bytes), floats(delay_s), floats(copies)
    lost = packet_loss(ber, packet_bytes=payload + header)
    packets = np.ceil(file_bytes / payload)
    sent = copies * least_bytes(file_bytes, loss_rate=lost**copies) / payload_share(payload, header_bytes=header)
    rounds = rounds_of_the_worst(lost, packets=packets, copies=copies)
    return np.asarray(delay_s + 8 * sent / floats(rate_bps) + 2 * delay_s * (rounds - 1))


@checked_arguments
def quickest_payload_bytes(
    file_bytes: float,
    *,
    ber: float,
    rate_bps: float,
    delay_s: float,
    header_bytes: float,
    copies: int = 1,
    most_bytes: int = 1460,
) -> int:
    """Payload with which selective repeat completes a file soonest.

    Shorter packets are lost less often and need fewer rounds, but there are more of them, with more headers. For the payload
    of the largest goodput see `farlink.models.arq.best_payload_bytes`.

    Parameters
    ----------
    file_bytes, ber, rate_bps, delay_s, header_bytes, copies
        As in `selective_repeat_completion_s`.
    most_bytes
        Longest payload, in bytes.

    Returns
    -------
    int
        Payload in bytes, from 1 to `most_bytes`.

    Examples
    --------
    >>> quickest_payload_bytes(1e6, ber=1e-4, rate_bps=5e6, delay_s=10, header_bytes=40)
    26
    """
    if most_bytes < 1:
        raise refused("most_bytes", "be at least 1", most_bytes)
    lengths = np.arange(1, most_bytes + 1)
    times = selective_repeat_completion_s(
        file_bytes,
        ber=ber,
        rate_bps=rate_bps,
        delay_s=delay_s,
        payload_bytes=lengths,
        header_bytes=header_bytes,
        copies=copies,
    )
    return int(lengths[np.argmin(times)])


def _mean_rounds(decay: float, packets: float) -> float:
    """Sum over k of 1 - (1 - exp(-decay k))^N."""
    if math.isinf(decay):
        return 1.0
    if decay == 0:
        return math.inf
    if packets == 1:
        return -1 / math.expm1(-decay)
    if decay < _SLOW_DECAY:
        # Euler and Maclaurin: the integral is H_N / decay, the first term stands for half; derivatives at 0 vanish.
        return _harmonic(packets) / decay + 0.5
    missing = np.exp(-decay * np.arange(1, _terms(decay, packets)))
    return float(1 + np.sum(-np.expm1(packets * _log1m(missing))))


def _mean_rounds_in_order(decay: float, packets: float) -> float:
    """Mean over i from 1 to N of the rounds of the worst of i."""
    if math.isinf(decay):
        return 1.0
    if decay == 0:
        return math.inf
    missing = np.exp(-decay * np.arange(1, _terms(decay, packets)))
    # The mean of q^i over i from 1 to N is q (1 - q^N) / (N (1 - q)), where 1 - q is what is missing.
    arrived = (1 - missing) * -np.expm1(packets * _log1m(missing)) / (packets * missing)
    return float(1 + np.sum(1 - arrived))


def _terms(decay: float, packets: float) -> int:
    """Rounds after which what is missing no longer counts."""
    return 2 + math.ceil((math.log(packets) + 37) / decay)


def _harmonic(packets: float) -> float:
    if packets <= 100:
        return math.fsum(1 / i for i in range(1, round(packets) + 1))
    return math.log(packets) + _EULER_GAMMA + 1 / (2 * packets) - 1 / (12 * packets**2)


def _log1m(missing: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-missing))


def _decay(loss_rate: ArrayLike, copies: ArrayLike) -> Floats:
    """How fast a packet's chance to be missing falls per round, -m ln p."""
    with np.errstate(divide="ignore"):
        return np.asarray(-floats(copies) * np.log(floats(loss_rate)) + 0.0)
