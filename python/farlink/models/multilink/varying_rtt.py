r"""TCP's timer over round trips that vary: over a loaded bundle, over a link with ARQ, and while the speed changes.

The timer settles at :math:`T_0 = E[RTT] + 4 D` (RFC 6298), with :math:`D` the mean of its smoothed deviation. In a bundle under
load a packet waits for the :math:`Q` packets of its line, itself included, that a round trip has room for:

.. math:: Q = \max \left( 1, \frac{RTT - Y}{S} \right), \qquad \sigma_{RTT} = \sigma_S \sqrt{Q}

The packet after it waits for the same ones but one. Round trips of a line are thus correlated, by :math:`1 - k / Q` over k
packets, and the smoothed mean :math:`\hat{R}`, with a gain of 1/8 for every acknowledgement, follows them. What is left,
:math:`R - \hat{R}`, is what the deviation sees:

.. math::

    D = \sqrt{2 / \pi}\; \sigma_{RTT} \sqrt{g}, \qquad
    g = 1 - 2 \sum_m w_m \rho_m + \sum_m \sum_l w_m w_l\, \rho_{m - l}, \qquad w_m = \alpha (1 - \alpha)^{m - 1}

With :math:`N` lines one in N acknowledgements is of the same line; those of the others count as independent, although packets
that wait for lower numbers couple them. The chain of this argument is ours: the thesis names the variance of the round trip as
future work and prints no equation.

References
----------
Zaghloul, sections 4.1.5, 6.4.1, 6.4.2 and future work; RFC 6298, section 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.models.multilink import call_drops, go_back_n
from farlink.models.multilink.go_back_n import GoBackN
from farlink.models.multilink.windowed_bundle import (
    WindowedBundle,
    packet_time_deviation_s,
    packet_time_s,
    rtt_s,
    unloaded_rtt_s,
)
from farlink.models.parameters import FirstLossRate, Seconds, SegmentsPerAck
from farlink.models.ranges import Floats, at_least, whole

# RFC 6298, section 2.3.
_GAIN = 1 / 8
# Weights of acknowledgements this far back are below 1e-10.
_BACK = 180


class MixedRtt(NamedTuple):
    """Round trips while the setting changes.

    Attributes
    ----------
    mean_s
        Mean over all settings, in s.
    deviation_s
        Standard deviation over all of them, in s: what a timer has to cover that does not follow.
    within_s
        Root of the mean variance within a setting, in s: what is left for a timer that follows every change.
    """

    mean_s: Floats
    deviation_s: Floats
    within_s: Floats


@checked_arguments
def packets_per_round_trip(bundle: WindowedBundle) -> Floats:
    r"""Packets of a line in a round trip, :math:`Q`, at least 1.

    Parameters
    ----------
    bundle
        The bundle.

    Returns
    -------
    ndarray
        Packets, of the broadcast shape.

    Examples
    --------
    >>> packets_per_round_trip(WindowedBundle(8, 2400, 1500, [8, 24, 33], delay_s=0.5)).round(2)
    array([1.  , 2.76, 3.89])
    """
    time = packet_time_s(bundle)
    return np.asarray(np.maximum(1.0, (rtt_s(bundle) - (unloaded_rtt_s(bundle) - time)) / time))


@checked_arguments
def rtt_deviation_s(bundle: WindowedBundle) -> Seconds:
    r"""Standard deviation of the round trip of a packet under load.

    .. math:: \sigma_{RTT} = \sigma_S \sqrt{Q}

    Parameters
    ----------
    bundle
        The bundle; 0 without repetition.

    Notes
    -----
    Beside the packet engine within 8 % for repetitions that seldom fail; 16 % too low where half of them fail again, and 27 %
    too high with ten packets a line of which it holds three.

    Examples
    --------
    >>> from farlink.models.multilink.windowed_bundle import Repetition
    >>> arq = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
    >>> rtt_deviation_s(WindowedBundle(8, 2400, 1500, [8, 33], delay_s=0.5, arq=arq)).round(2)
    array([0.78, 1.51])
    """
    return np.asarray(packet_time_deviation_s(bundle) * np.sqrt(packets_per_round_trip(bundle)))


@checked_arguments
def smoothed_deviation_s(bundle: WindowedBundle) -> Seconds:
    r"""What TCP's smoothed deviation settles at under load, :math:`D`.

    Parameters
    ----------
    bundle
        The bundle.

    Notes
    -----
    For round trips that are normal, one sample per acknowledgement and an acknowledgement per packet.

    Examples
    --------
    >>> from farlink.models.multilink.windowed_bundle import Repetition
    >>> arq = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
    >>> smoothed_deviation_s(WindowedBundle([1, 8], 2400, 1500, [8, 33], delay_s=0.5, arq=arq)).round(2)
    array([1.46, 1.22])
    """
    lines = whole(1, lines=bundle.lines)
    packets = packets_per_round_trip(bundle)
    left = np.vectorize(_left_by_smoothing, otypes=[np.float64])(lines, packets)
    return np.asarray(math.sqrt(2 / math.pi) * rtt_deviation_s(bundle) * np.sqrt(left))


@checked_arguments
def timeout_s(bundle: WindowedBundle, *, minimum_s: ArrayLike = 1.0, deviations: ArrayLike = 4.0) -> Seconds:
    r"""What TCP's timer settles at under load.

    .. math:: T_0 = \max(T_{min},\; E[RTT] + 4 D)

    Parameters
    ----------
    bundle
        The bundle.
    minimum_s
        Least value of the timer :math:`T_{min}`, in s, not negative: 1 s in RFC 6298. Broadcast against the parameters of the
        bundle, as `deviations`.
    deviations
        How many deviations are added, not negative.

    Notes
    -----
    Beside the packet engine within 4 % with up to four packets a line, 9 % too high with ten: `tests/unit/test_varying_rtt.py`.
    Needs :math:`\sigma_S` well below :math:`S`. Rare spells in which a frame fails many times in a row have a deviation that a
    timer does not see between them.

    References
    ----------
    RFC 6298, section 2; Zaghloul, section 6.4.1: "Timeout = Estimated_RTT + 4 Deviation".

    Examples
    --------
    >>> from farlink.models.multilink.windowed_bundle import Repetition
    >>> arq = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
    >>> timeout_s(WindowedBundle([1, 8], 2400, 1500, [8, 33], delay_s=0.5, arq=arq)).round(1)
    array([54.6, 30. ])
    """
    least, extra = at_least(0, minimum_s=minimum_s), at_least(0, deviations=deviations)
    return np.asarray(np.maximum(least, rtt_s(bundle) + extra * smoothed_deviation_s(bundle)))


@checked_arguments
def throughput(
    bundle: WindowedBundle,
    *,
    drop_rate_hz: ArrayLike,
    loss_rate: FirstLossRate,
    minimum_s: ArrayLike = 1.0,
    segments_per_ack: SegmentsPerAck = 2.0,
) -> Floats:
    r"""Rate of a long TCP connection over a bundle that drops links, from its queues: eq. (36) with this round trip and timer.

    .. math:: B = \left( 1 - \lambda T_0 \frac{f(p)}{1 - p} \right) B_{NT}(RTT, W) + \frac{\lambda}{1 - p}

    Parameters
    ----------
    bundle
        The bundle.
    drop_rate_hz
        Drops of the bundle per second :math:`\lambda`, not negative, at most `call_drops.highest_drop_rate_hz`. Broadcast
        against the parameters of the bundle, as all others.
    minimum_s
        Least value of the timer, in s, not negative.

    Returns
    -------
    ndarray
        Segments per second, of the broadcast shape.

    Raises
    ------
    ValueError
        If a value lies outside its range, or there are more drops than the model holds for.

    Notes
    -----
    As `call_drops.throughput`, which says how far eq. (36) holds. Mean and deviation of the round trip are those of the bundle
    without drops, and the line that is gone counts nothing.

    References
    ----------
    Zaghloul, eq. (36) and future work: "The effect of the MLPPP queuing on the average and the variance of the RTT can be
    studied and incorporated to the developed model (eq. 36)".

    Examples
    --------
    What the variance costs, by the timer alone:

    >>> from farlink.models.multilink.windowed_bundle import Repetition
    >>> drops = {"drop_rate_hz": 8 / 900, "loss_rate": 5e-4}
    >>> for loss in (0.0, 0.01, 0.03):
    ...     arq = Repetition(frame_bytes=25, window_frames=6, loss=loss, loss_again=0.5)
    ...     bundle = WindowedBundle(8, 2400, 1500, 33, delay_s=0.5, arq=arq)
    ...     print(round(float(timeout_s(bundle)), 1), round(float(throughput(bundle, **drops)), 3))
    21.0 1.122
    29.4 0.911
    38.7 0.669
    """
    return call_drops.throughput(
        drop_rate_hz,
        loss_rate=loss_rate,
        rtt_s=rtt_s(bundle),
        timeout_s=timeout_s(bundle, minimum_s=minimum_s),
        window_segments=bundle.window_packets,
        segments_per_ack=segments_per_ack,
    )


@checked_arguments
def arq_deviation_s(arq: GoBackN) -> Seconds:
    r"""Mean deviation of the round trip over a link with ARQ, :math:`E|RTT - E[RTT]|`.

    .. math:: D = 2 N t\; E[(F - \mu)^+]

    with the failures of a segment's frames :math:`F` and their mean :math:`\mu`.

    Parameters
    ----------
    arq
        The link and its ARQ, over fading as in `faded_link.over_fading` or not.

    Notes
    -----
    Few failures are far from normal: the mean deviation is then well below the 0.8 of the standard deviation that it is of a
    normal distribution. A timer of mean deviations is the lower for it.

    Examples
    --------
    >>> from farlink.models.multilink.faded_link import over_fading
    >>> link = {"frame_bytes": 60, "rate_bps": 2400, "link_rtt_s": 1.0, "doppler_hz": 0.1}
    >>> arq = over_fading(1500, margin_db=[5, 10, 20], **link)
    >>> arq_deviation_s(arq).round(2), go_back_n.rtt_deviation_s(arq).round(2)
    (array([2.66, 1.06, 0.26]), array([3.65, 1.48, 0.43]))
    """
    unit_s = whole(1, window_frames=arq.window_frames) * np.asarray(arq.frame_s, dtype=np.float64)
    frames = whole(1, frames=arq.frames)
    means = frames * go_back_n.failures_mean(arq)
    base_s = np.asarray(arq.base_s, dtype=np.float64) + frames * np.asarray(arq.frame_s, dtype=np.float64)
    means, unit_s, base_s = np.broadcast_arrays(means, unit_s, base_s)
    most = int(np.max(means, initial=0.0))
    beyond = [go_back_n.outlasts(arq, limit_s=base_s + (count + 0.5) * unit_s) for count in range(most + 1)]
    tail = np.zeros(means.shape)
    for count, more in enumerate(beyond):
        part = np.clip(count + 1 - means, 0.0, 1.0)
        # Up to the mean nothing, from it on P(F > k) for every step of k: the rest is the mean less the steps before.
        tail += np.where(np.floor(means) == count, part * more, 0.0) - np.where(count <= np.floor(means), more, 0.0)
    return np.asarray(2 * unit_s * (tail + means))


@checked_arguments
def arq_timeout_s(arq: GoBackN, *, minimum_s: ArrayLike = 1.0, deviations: ArrayLike = 4.0) -> Seconds:
    r"""What TCP's timer settles at over a link with ARQ that is not loaded.

    .. math:: T_0 = \max \left( T_{min},\; E[RTT] + 4 D \sqrt{\tfrac{2}{2 - \alpha}} \right), \qquad \alpha = 1/8

    Parameters
    ----------
    arq
        The link and its ARQ.
    minimum_s
        Least value of the timer, in s, not negative; broadcast against the parameters of the link, as `deviations`.
    deviations
        How many deviations are added, not negative.

    Notes
    -----
    Round trips are independent, so that the smoothed mean adds its own variance to each. `go_back_n.outlasts` tells how often a
    round trip is longer still.

    References
    ----------
    RFC 6298, section 2.

    Examples
    --------
    A hundredth of the round trips outlast it, whatever the speed:

    >>> from farlink.models.multilink.faded_link import over_fading
    >>> link = {"frame_bytes": 60, "rate_bps": 2400, "link_rtt_s": 1.0, "margin_db": 15.0}
    >>> arq = over_fading(1500, doppler_hz=[0.1, 1.0, 10.0], **link)
    >>> arq_timeout_s(arq).round(2)
    array([ 8.4 , 10.54, 10.57])
    >>> go_back_n.outlasts(arq, limit_s=arq_timeout_s(arq)).round(3)
    array([0.012, 0.01 , 0.011])
    """
    least, extra = at_least(0, minimum_s=minimum_s), at_least(0, deviations=deviations)
    spread = extra * arq_deviation_s(arq) * math.sqrt(2 / (2 - _GAIN))
    return np.asarray(np.maximum(least, go_back_n.rtt_mean_s(arq) + spread))


@checked_arguments
def mixed_rtt_s(arq: GoBackN, *, shares: ArrayLike) -> MixedRtt:
    r"""Round trip while the speed of a mobile changes, slowly against a round trip.

    .. math:: E[R] = \sum_i q_i R_i, \qquad \sigma^2 = \sum_i q_i (\sigma_i^2 + R_i^2) - E[R]^2

    Parameters
    ----------
    arq
        The link and its ARQ; the last axis are its settings, such as speeds: `faded_link.over_fading` of an array of Doppler
        shifts.
    shares
        Share of the segments in each setting :math:`q_i`, not negative, with the sum 1.

    Returns
    -------
    MixedRtt
        Mean and deviations in s, without the last axis.

    Raises
    ------
    ValueError
        If the shares do not add up to 1 or are not as many as the settings.

    Notes
    -----
    The speed is constant during a segment. A rate or a margin that changes is a setting as well, so that rates that follow the
    channel, as in WiMAX, have the same form.

    Examples
    --------
    A mobile that stands for a third of the time, walks for a third and drives for the rest, at 1.6 GHz:

    >>> from farlink.models.multilink.faded_link import over_fading
    >>> from farlink.models.multilink.fading import doppler_hz
    >>> shifts = doppler_hz([0.1, 1.5, 15.0], carrier_hz=1.62e9)
    >>> link = {"frame_bytes": 60, "rate_bps": 2400, "link_rtt_s": 1.0, "margin_db": 10.0}
    >>> [
    ...     round(float(one), 2)
    ...     for one in mixed_rtt_s(over_fading(1500, doppler_hz=shifts, **link), shares=[1 / 3, 1 / 3, 1 / 3])
    ... ]
    [8.88, 2.0, 1.96]
    """
    means, deviations = np.broadcast_arrays(go_back_n.rtt_mean_s(arq), go_back_n.rtt_deviation_s(arq))
    parts = at_least(0, shares=shares)
    if not math.isclose(float(np.sum(parts)), 1.0, abs_tol=1e-9):
        raise refused("shares", "add up to 1", shares)
    if means.ndim == 0 or parts.shape != means.shape[-1:]:
        raise ArgumentError(
            f"shares must be as many as the settings of the last axis, {means.shape[-1:] or 'none'}, not {parts.shape}",
            "give arq an array of settings and a share of each",
        )
    mean = np.asarray(means @ parts)
    within = np.asarray(deviations**2 @ parts)
    between = np.asarray((means - mean[..., None]) ** 2 @ parts)
    return MixedRtt(mean, np.asarray(np.sqrt(within + between)), np.asarray(np.sqrt(within)))


def _left_by_smoothing(lines: float, packets: float) -> float:
    """Variance of a round trip less the smoothed mean before it, over that of the round trip."""
    back = np.arange(1, _BACK + 1, dtype=np.float64)
    weights = _GAIN * (1 - _GAIN) ** (back - 1)
    weights /= weights.sum()

    def correlation(lag: Floats) -> Floats:
        return np.asarray(np.where(lag % lines == 0, np.maximum(0.0, 1 - lag / lines / packets), 0.0))

    among = correlation(np.abs(back[:, None] - back[None, :]))
    return float(1 - 2 * weights @ correlation(back) + weights @ among @ weights)
