r"""Goodput of automatic repeat request on a channel with independent bit errors.

The equations of B. Epple, "Performance optimization of free-space optical communication protocols based on results from
FSO demonstrations", section 3.3, by their numbers there. They assume a saturated channel (there is always something to
send), no time for acknowledgements and processing, and a window that never holds anything back. Lengths are in bytes here;
the paper's exponents count bits.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.meanings import Meaning
from farlink.models.parameters import Headers, Payload, Probabilities, Seconds
from farlink.models.ranges import IN_0_TO_1, Floats, at_least, floats, from_on, positive, within_0_and_1

SPEED_OF_LIGHT_MPS = 299_792_458.0

LossRate = Annotated[ArrayLike, Meaning("Packet loss probability, :math:`p_{PL}`", IN_0_TO_1)]
Capacity = Annotated[ArrayLike, Meaning("Packets that a round trip holds, :math:`C_{RTT}`", from_on(0))]
RoundTrip = Annotated[ArrayLike, Meaning("Round-trip time, in s", from_on(0))]


@checked_arguments
def round_trip_s(distance_m: ArrayLike, *, processing_s: ArrayLike = 0.0, speed_mps: float = SPEED_OF_LIGHT_MPS) -> Seconds:
    r"""Round-trip time over a distance.

    .. math:: RTT = 2 d / c + t_{proc}

    Parameters
    ----------
    distance_m
        Link distance :math:`d`, in m, not negative. Any shape.
    processing_s
        Processing time at the partner :math:`t_{proc}`, in s; broadcast against `distance_m`.
    speed_mps
        Speed of light :math:`c`, in m/s. The paper's table is computed with 3e8.

    References
    ----------
    Epple, eq. (4).

    Examples
    --------
    >>> round(float(round_trip_s(2500e3)), 6)
    0.016678
    """
    distance_m, processing_s = at_least(0, distance_m=distance_m), at_least(0, processing_s=processing_s)
    return 2 * distance_m / speed_mps + processing_s


@checked_arguments
def window_bytes(rtt_s: RoundTrip, *, rate_bps: ArrayLike) -> Floats:
    r"""Smallest window that does not hold the sender back.

    .. math:: WND_{min} = RTT \cdot D

    Parameters
    ----------
    rate_bps
        Link rate :math:`D`, in bit/s; broadcast against `rtt_s`.

    Returns
    -------
    ndarray
        Window in bytes, of the broadcast shape.

    References
    ----------
    Epple, eq. (3); for 2500 km and 1 Gbit/s the paper prints 2,084,775 bytes.

    Examples
    --------
    >>> int(window_bytes(round_trip_s(2500e3), rate_bps=1e9))
    2084775
    """
    return floats(rtt_s) * at_least(0, rate_bps=rate_bps) / 8


@checked_arguments
def packet_loss(ber: ArrayLike, *, packet_bytes: ArrayLike) -> Probabilities:
    r"""Probability that at least one bit of a packet is wrong.

    .. math:: p_{PL} = 1 - (1 - BEP)^{8 L}

    Parameters
    ----------
    ber
        Bit error probability :math:`BEP`, in [0, 1]. Any shape.
    packet_bytes
        Length :math:`L` whose bits count, in bytes; broadcast against `ber`. The equation has payload and header,
        :math:`l + l'`; the paper's table is computed with the payload :math:`l` alone.

    References
    ----------
    Epple, eq. (5).

    Examples
    --------
    >>> round(float(packet_loss(1e-6, packet_bytes=1020)), 6)
    0.008127
    """
    ber, packet_bytes = within_0_and_1(ber=ber), at_least(0, packet_bytes=packet_bytes)
    # Neither 1 - ber nor 1 - (1 - ber)^n keeps its digits where errors are rare. An empty packet is never lost.
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.where(packet_bytes > 0, 8 * packet_bytes * np.log1p(-ber), 0.0)
    return np.asarray(-np.expm1(exponent) + 0.0)


@checked_arguments
def packet_or_ack_loss(
    ber: ArrayLike, *, packet_bytes: ArrayLike, return_ber: ArrayLike, ack_bytes: ArrayLike, as_printed: bool = False
) -> Probabilities:
    r"""Probability that a packet or its acknowledgement is lost, as each costs a retransmission.

    .. math:: p_{PL} = 1 - (1 - BEP)^{8 L} (1 - BEP_{Back})^{8 l_{ACK}}

    Parameters
    ----------
    ber
        Bit error probability of the forward channel, in [0, 1]. Any shape.
    packet_bytes
        Length of a packet, in bytes; all parameters are broadcast against each other.
    return_ber
        Bit error probability of the way back, :math:`BEP_{Back}`, in [0, 1].
    ack_bytes
        Length of an acknowledgement, :math:`l_{ACK}`, in bytes.
    as_printed
        Take the sum of both probabilities, as the paper does, which can exceed 1.

    Notes
    -----
    Every packet has an acknowledgement of its own here, and nothing else makes up for one that is lost.

    References
    ----------
    Epple, eq. (6).

    Examples
    --------
    >>> float(packet_or_ack_loss(0.5, packet_bytes=1, return_ber=0.5, ack_bytes=1, as_printed=True))
    1.9921875
    >>> round(float(packet_or_ack_loss(0.5, packet_bytes=1, return_ber=0.5, ack_bytes=1)), 6)
    0.999985
    """
    forward = packet_loss(ber, packet_bytes=packet_bytes)
    back = packet_loss(return_ber, packet_bytes=ack_bytes)
    return forward + back if as_printed else 1 - (1 - forward) * (1 - back)


@checked_arguments
def round_trip_capacity(rtt_s: RoundTrip, *, rate_bps: ArrayLike, payload_bytes: Payload, header_bytes: Headers) -> Floats:
    r"""Packets that a round trip holds.

    .. math:: C_{RTT} = \frac{RTT \cdot D}{8 (l + l')}

    Parameters
    ----------
    rate_bps
        Link rate :math:`D`, in bit/s; all parameters are broadcast against each other.

    Returns
    -------
    ndarray
        Number of packets, not rounded, of the broadcast shape.

    Raises
    ------
    ValueError
        If a value is negative, or a packet has no length.

    References
    ----------
    Epple, eq. (7).

    Examples
    --------
    >>> round(float(round_trip_capacity(0.016678, rate_bps=622e6, payload_bytes=1000, header_bytes=20)), 1)
    1271.3
    """
    payload, header = floats(payload_bytes), floats(header_bytes)
    return window_bytes(rtt_s, rate_bps=rate_bps) / (payload + header)


@checked_arguments
def goodput_selective_repeat(loss_rate: LossRate, *, payload_bytes: Payload, header_bytes: Headers) -> Floats:
    r"""Normalised goodput of ideal selective-repeat ARQ.

    .. math:: G_{SR} = (1 - p_{PL}) \frac{l}{l + l'}

    Returns
    -------
    ndarray
        Fraction of the link rate, in [0, 1], of the broadcast shape.

    Notes
    -----
    Assumes a saturated channel, an unlimited window and unlimited selective-acknowledgement blocks.

    References
    ----------
    Epple, eq. (8).

    Examples
    --------
    >>> round(float(goodput_selective_repeat(0.01, payload_bytes=1000, header_bytes=20)), 4)
    0.9706
    """
    payload, header = floats(payload_bytes), floats(header_bytes)
    return (1 - floats(loss_rate)) * payload / (payload + header)


@checked_arguments
def goodput_stop_and_wait(loss_rate: LossRate, *, capacity: Capacity, payload_bytes: Payload, header_bytes: Headers) -> Floats:
    r"""Normalised goodput of stop-and-wait ARQ.

    .. math:: G_{SaW} = \frac{1}{1 + C_{RTT}} G_{SR}

    Returns
    -------
    ndarray
        Fraction of the link rate, in [0, 1], of the broadcast shape.

    Notes
    -----
    Assumes that a packet is repeated a round trip and one packet time after it was sent.

    References
    ----------
    Epple, eq. (9).

    Examples
    --------
    >>> round(float(goodput_stop_and_wait(0.01, capacity=1.0, payload_bytes=1000, header_bytes=20)), 4)
    0.4853
    """
    ideal = goodput_selective_repeat(loss_rate, payload_bytes=payload_bytes, header_bytes=header_bytes)
    return ideal / (1 + floats(capacity))


@checked_arguments
def goodput_go_back_n(loss_rate: LossRate, *, capacity: Capacity, payload_bytes: Payload, header_bytes: Headers) -> Floats:
    r"""Normalised goodput of go-back-N ARQ.

    .. math:: G_{GbN} = \frac{1}{1 + C_{RTT}\, p_{PL}} G_{SR}

    Returns
    -------
    ndarray
        Fraction of the link rate, in [0, 1], of the broadcast shape.

    Notes
    -----
    Assumes a window of :math:`1 + C_{RTT}` packets, of which all go out again a round trip and one packet time after one of
    them was lost.

    References
    ----------
    Epple, eq. (10).

    Examples
    --------
    >>> round(float(goodput_go_back_n(0.01, capacity=100.0, payload_bytes=1000, header_bytes=20)), 4)
    0.4853
    """
    ideal = goodput_selective_repeat(loss_rate, payload_bytes=payload_bytes, header_bytes=header_bytes)
    return ideal / (1 + floats(capacity) * floats(loss_rate))


@checked_arguments
def best_payload_bytes(ber: ArrayLike, *, header_bytes: ArrayLike) -> Floats:
    r"""Payload with the largest goodput of selective-repeat ARQ.

    .. math:: l_{opt} = \frac{l'}{2} \left( \sqrt{1 - \frac{4}{8 l' \ln(1 - BEP)}} - 1 \right)

    Parameters
    ----------
    ber
        Bit error probability, above 0 and below 1. Any shape.
    header_bytes
        Header :math:`l'` per packet, in bytes, above 0; broadcast against `ber`.

    Returns
    -------
    ndarray
        Bytes, not rounded, of the broadcast shape.

    Raises
    ------
    ValueError
        If a probability is not between 0 and 1 or a length is not positive.

    References
    ----------
    Epple, eq. (11).

    Examples
    --------
    >>> round(float(best_payload_bytes(1e-6, header_bytes=20)))
    1571
    """
    ber = within_0_and_1(ber=ber)
    if np.any((ber == 0) | (ber == 1)):
        raise ArgumentError(
            "ber must be above 0 and below 1: without errors, the longest packet is best", "give a ber above 0 and below 1"
        )
    header = positive(header_bytes=header_bytes)
    best: Floats = header / 2 * (np.sqrt(1 - 4 / (8 * header * np.log1p(-ber))) - 1)
    return best


@checked_arguments
def blocks_needed(loss_rate: ArrayLike, *, capacity: Capacity, confidence: float | None = None) -> Floats:
    r"""Blocks that selective acknowledgements need, on average or with a confidence.

    .. math::

        N_\mu = C_{RTT} \frac{p_{PL}}{1 - p_{PL}}, \qquad
        N_{max} = N_\mu + \sqrt{2}\, \sigma\, \mathrm{erf}^{-1}(2 p_C - 1)

    Parameters
    ----------
    loss_rate
        Packet loss probability, :math:`p_{PL}`, in [0, 1). Any shape.
    confidence
        Probability :math:`p_C` that so many are enough, between 0 and 1; the mean if none.

    Returns
    -------
    ndarray
        Number of blocks, not rounded, of the broadcast shape.

    Notes
    -----
    The paper does not say what :math:`\sigma` is. Repetitions of one packet are geometric, so that of
    :math:`C_{RTT}` packets is taken: :math:`\sigma^2 = C_{RTT}\, p_{PL} / (1 - p_{PL})^2`. Adjacent losses share a block,
    which the equation does not count.

    References
    ----------
    Epple, eqs. (12) and (13).

    Examples
    --------
    >>> round(float(blocks_needed(0.01, capacity=1000.0)), 2)
    10.1
    >>> round(float(blocks_needed(0.01, capacity=1000.0, confidence=0.99)), 2)
    17.53
    """
    loss_rate, capacity = within_0_and_1(loss_rate=loss_rate), floats(capacity)
    if np.any(loss_rate == 1):
        raise ArgumentError("loss_rate must be below 1: nothing ever arrives", "give a loss_rate below 1")
    mean = capacity * loss_rate / (1 - loss_rate)
    if confidence is None:
        return mean
    if not 0 < confidence < 1:
        raise refused("confidence", "be between 0 and 1", confidence)
    # sqrt(2) erf^-1(2 p - 1) is the quantile of the normal distribution.
    return mean + np.sqrt(capacity * loss_rate) / (1 - loss_rate) * NormalDist().inv_cdf(confidence)
