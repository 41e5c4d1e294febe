r"""TCP over a bundle of links that drop: a drop is a timeout, and between drops Reno runs in congestion avoidance.

Each link of a multilink PPP bundle loses its call after times that are exponential; whatever link it is, TCP waits for its
timer. Losses that the links' ARQ leaves, with probability :math:`p`, halve the window and cause no timeout. The period
between two drops has its timeouts, and periods of congestion avoidance for the rest.

References
----------
S. I. Zaghloul, "TCP performance over multilink long delay wireless networks", MSc thesis, University of Kansas, 2005, chapter
6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.models.parameters import (
    FirstLossRate,
    FirstTimeout,
    LargestWindow,
    RoundTripTime,
    Seconds,
    SegmentLossRate,
    SegmentsPerAck,
)
from farlink.models.ranges import Floats, at_least, floats, positive, whole
from farlink.models.tcp_latency.padhye import period_rounds, throughput_without_timeouts
from farlink.models.tcp_latency.timeout import sequence_mean_s, timeouts_in_sequence


@checked_arguments
def bundle_drop_rate_hz(drop_rate_hz: ArrayLike, *, links: ArrayLike) -> Floats:
    r"""Drops of a bundle per second.

    .. math:: \lambda = n \beta

    Parameters
    ----------
    drop_rate_hz
        Drops of a link per second :math:`\beta`, not negative. Any shape.
    links
        Links of the bundle :math:`n`, whole, at least 1; broadcast against `drop_rate_hz`.

    Returns
    -------
    ndarray
        Drops per second, of the broadcast shape.

    Notes
    -----
    Exact for links that drop independently of each other at exponential times. A bundle that loses all links with its primary
    one does not.

    References
    ----------
    Zaghloul, section 5.3.

    Examples
    --------
    >>> round(float(bundle_drop_rate_hz(1 / 3000, links=8)), 6)
    0.002667
    """
    return np.asarray(at_least(0, drop_rate_hz=drop_rate_hz) * whole(1, links=links))


@checked_arguments
def highest_drop_rate_hz(loss_rate: SegmentLossRate, *, timeout_s: FirstTimeout) -> Floats:
    r"""Drops per second up to which the model holds: as many as there are sequences of timeouts in a second.

    .. math:: \lambda_{max} = \frac{1 - p}{T_0 f(p)}

    Returns
    -------
    ndarray
        Drops of the bundle per second, of the broadcast shape.

    References
    ----------
    From Zaghloul, eq. (36), which is negative beyond.

    Examples
    --------
    >>> round(60 * float(highest_drop_rate_hz(5e-4, timeout_s=60)), 4)
    0.999
    """
    return np.asarray(1 / sequence_mean_s(loss_rate, timeout_s=timeout_s))


@checked_arguments
def periods_between_drops(
    drop_rate_hz: ArrayLike,
    *,
    loss_rate: ArrayLike,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: LargestWindow = np.inf,
    segments_per_ack: SegmentsPerAck = 2.0,
) -> Floats:
    r"""Mean number of periods of congestion avoidance between two drops.

    .. math:: E[n] = \frac{1 / \lambda - E[Z^{TO}]}{E[A]}

    Parameters
    ----------
    drop_rate_hz
        Drops of the bundle per second :math:`\lambda`, positive, at most `highest_drop_rate_hz`. Any shape.
    loss_rate
        Probability :math:`p` that a segment is the first of its round to be lost, in (0, 1); all parameters are broadcast
        against each other.

    Returns
    -------
    ndarray
        Periods, of the broadcast shape. Below 1 a drop comes before the window has grown: the model takes the mean rate of
        whole periods all the same.

    Raises
    ------
    ValueError
        If a value lies outside its range, or there are more drops than the model holds for.

    References
    ----------
    Zaghloul, eq. (33).

    Examples
    --------
    >>> setting = {"loss_rate": 5e-4, "rtt_s": 19, "timeout_s": 60, "window_segments": 33.1}
    >>> round(float(periods_between_drops(8 / 3000, **setting)), 2)
    0.23
    """
    drops = _held(positive(drop_rate_hz=drop_rate_hz), loss_rate, timeout_s)
    rounds = period_rounds(loss_rate, segments_per_ack=segments_per_ack, window_segments=window_segments)
    sending = 1 / drops - sequence_mean_s(loss_rate, timeout_s=timeout_s)
    return np.asarray(sending / (rounds * floats(rtt_s)))


@checked_arguments
def throughput(
    drop_rate_hz: ArrayLike,
    *,
    loss_rate: FirstLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: ArrayLike = np.inf,
    segments_per_ack: SegmentsPerAck = 2.0,
) -> Floats:
    r"""Rate of a long TCP connection over a bundle that drops links.

    .. math:: B = \left( 1 - \lambda T_0 \frac{f(p)}{1 - p} \right) B_{NT} + \frac{\lambda}{1 - p}

    Parameters
    ----------
    drop_rate_hz
        Drops of the bundle per second :math:`\lambda`, not negative, at most `highest_drop_rate_hz`. Any shape.
    window_segments
        Largest window :math:`W_{max}`, in segments, at least 1: what the links and their queues hold.

    Returns
    -------
    ndarray
        Segments per second, of the broadcast shape.

    Raises
    ------
    ValueError
        If a value lies outside its range, or there are more drops than the model holds for: the rate would turn negative.

    Notes
    -----
    Slow start after a drop and the link's absence count nothing, and the rate between drops is that of whole periods of
    congestion avoidance. `periods_between_drops` tells how far that holds: beside a simulation of rounds of a constant round
    trip, with slow start after drops, the rate is 2 to 4 % too high with 18 periods and more, 13 to 17 % with two, 70 % with
    one half, and three times too high with the 0.23 of table 6.1. The times measured there agree with the model all the same,
    presumably because those round trips are the bundle's own queue: half a window, 24 KB, still fills eight links of 2.4
    kbit/s over the 6 s of one without a queue. Losses have to be rare, so that they cause no timeouts: well below one per
    window.

    References
    ----------
    Zaghloul, eqs. (29) to (36).

    Examples
    --------
    >>> setting = {"loss_rate": 5e-4, "rtt_s": 19, "timeout_s": 60, "window_segments": 47.9e3 / 1448}
    >>> throughput([0, 8 / 3000], **setting).round(3)
    array([1.513, 1.273])
    """
    drops = _held(at_least(0, drop_rate_hz=drop_rate_hz), loss_rate, timeout_s)
    undisturbed = throughput_without_timeouts(
        loss_rate, rtt_s=rtt_s, segments_per_ack=segments_per_ack, window_segments=window_segments
    )
    waiting = drops * sequence_mean_s(loss_rate, timeout_s=timeout_s)
    return np.asarray((1 - waiting) * undisturbed + drops * timeouts_in_sequence(loss_rate))


@checked_arguments
def transfer_time_s(
    file_bytes: ArrayLike,
    *,
    segment_bytes: ArrayLike,
    drop_rate_hz: ArrayLike,
    loss_rate: FirstLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_bytes: ArrayLike,
    segments_per_ack: SegmentsPerAck = 2.0,
) -> Seconds:
    r"""Time of the transfer of a long file over a bundle that drops links.

    .. math:: T_d = \frac{\lceil f_s / MSS \rceil}{B}

    Parameters
    ----------
    file_bytes
        Length of the file :math:`f_s`, in bytes, positive. Any shape.
    segment_bytes
        Payload of a segment :math:`MSS`, in bytes, positive; all parameters are broadcast against each other.
    drop_rate_hz
        Drops of the bundle per second, not negative, at most `highest_drop_rate_hz`.
    window_bytes
        Largest window, in bytes, at least `segment_bytes`.

    Raises
    ------
    ValueError
        If a value lies outside its range, or there are more drops than the model holds for.

    Notes
    -----
    The thesis prints a product for the quotient. See `throughput` for what is left out.

    References
    ----------
    Zaghloul, eq. (24) and tables 6.1 and 6.2.

    Examples
    --------
    Table 6.1, 1.38 MB, in minutes:

    >>> setting = {"segment_bytes": 1448, "drop_rate_hz": 8 / 3000, "loss_rate": 5e-4, "rtt_s": 19, "timeout_s": 60}
    >>> round(float(transfer_time_s(1.38e6, window_bytes=47.9e3, **setting)) / 60, 1)
    12.5
    """
    file, segment = positive(file_bytes=file_bytes), positive(segment_bytes=segment_bytes)
    rate = throughput(
        drop_rate_hz,
        loss_rate=loss_rate,
        rtt_s=rtt_s,
        timeout_s=timeout_s,
        window_segments=positive(window_bytes=window_bytes) / segment,
        segments_per_ack=segments_per_ack,
    )
    return np.asarray(np.ceil(file / segment) / rate)


def _held(drops: Floats, loss_rate: ArrayLike, timeout_s: ArrayLike) -> Floats:
    """The drops per second, refused where the model would have more timeouts than time."""
    drops, highest = np.broadcast_arrays(drops, highest_drop_rate_hz(loss_rate, timeout_s=timeout_s))
    too_many = drops > highest
    if np.any(too_many):
        worst = np.argmax(drops / highest)
        raise ArgumentError(
            f"drop_rate_hz must be at most {highest.flat[worst]:.6g} with this loss_rate and timeout_s, "
            f"not {drops.flat[worst]:.6g}: the timeouts would take longer than the time between drops",
            "give a lower drop_rate_hz, loss_rate or timeout_s",
        )
    return drops
