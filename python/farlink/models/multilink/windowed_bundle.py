r"""Goodput and round trip of a window of packets over a bundle of lines, whole packets, each over one line.

A packet of :math:`L` bytes takes a line the time :math:`S`, with its framing and its line's repetitions; :math:`N` lines carry
at most :math:`N / S` packets per second. Besides :math:`S`, a round trip has :math:`Y = 2 d + S_{ack} + D`: the way there and
back, the acknowledgement, and the wait for packets with lower numbers, which are on other lines. A window of :math:`W` packets
then goes round at a rate of

.. math:: X = \min \left( \frac{W}{S + Y}, \frac{N}{S}, X_q \right), \qquad RTT = \frac{W}{X}

Up to the first bound the window decides, from the second on the lines do. Between them a line may be idle while packets wait
for another one. With :math:`M = W - X Y` packets at the lines, it is not while more of them are there than the others can
take, :math:`M > (N - 1) K`. Otherwise

.. math:: X_q = \frac{N}{S} \cdot \frac{M}{M + c^2 (N - 1)}, \qquad c = \frac{\sigma_S}{S}

Without variation that is the bound :math:`N / S`; with exponential times it is the throughput of a balanced closed network of
queues (Zahorjan, Sevcik, Eager, Galler, "Balanced job bound analysis of queueing networks", CACM 25, 1982). The step between
the two, by the squared coefficient of variation, is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from farlink.arguments import checked_arguments, refused
from farlink.models.parameters import Seconds
from farlink.models.ranges import Floats, at_least, from_0_to_below_1, positive, whole

# PPP in HDLC-like framing as two Linux machines agree on it: flag, multilink's and the packet's protocol, the check of 16 bits.
_FLAG_BYTES = 1
_PROTOCOLS_AND_CHECK_BYTES = 4
_NUMBER_BYTES = {"long": 4, "short": 2}
# Of random bytes 2 in 256 look like a flag or an escape, and are sent as two.
_ESCAPED_SHARE = 2 / 256


@dataclass(frozen=True)
class Repetition:
    """Go-back-N on each line, as `link.bundle.arq` of a scenario has it.

    Attributes
    ----------
    frame_bytes
        Data in a frame, in bytes, whole, at least 1.
    window_frames
        Frames that a bad one costs, whole, at least 1.
    loss
        Share of frames that are bad when first sent, in [0, 1).
    loss_again
        Share of repetitions that are bad, in [0, 1); `loss` if none.
    """

    frame_bytes: ArrayLike
    window_frames: ArrayLike
    loss: ArrayLike
    loss_again: ArrayLike | None = None


@dataclass(frozen=True)
class WindowedBundle:
    """A bundle and what a transport keeps under way in it, one element for each combination of the parameters.

    Attributes
    ----------
    lines
        Lines :math:`N`, all alike, whole, at least 1.
    rate_bps
        Rate of a line, in bit/s, positive.
    packet_bytes
        Length of a packet with all headers above PPP, in bytes, whole, at least 1. The largest one is the MRRU, the longest
        packet that the far end puts together.
    window_packets
        Packets that the transport keeps under way :math:`W`, at least 1.
    line_packets
        Packets that a line takes :math:`K`, the one that it sends included, whole, at least 1.
    delay_s
        One-way delay of a line :math:`d`, in s, not negative.
    ack_bytes
        Length of an acknowledgement, in bytes, whole, at least 1.
    header
        Multilink's header: ``"long"`` or ``"short"``.
    arq
        Repetition on each line; none if none.
    """

    lines: ArrayLike
    rate_bps: ArrayLike
    packet_bytes: ArrayLike
    window_packets: ArrayLike
    line_packets: ArrayLike = 3
    delay_s: ArrayLike = 0.0
    ack_bytes: ArrayLike = 52
    header: str = "long"
    arq: Repetition | None = None


@checked_arguments
def line_bytes(packet_bytes: ArrayLike, *, header: str = "long") -> Floats:
    r"""Bytes on a line of a whole packet: PPP's framing, the multilink header, and escapes.

    .. math:: B = 1 + \left\lceil (L + H + 4) \left( 1 + \frac{2}{256} \right) \right\rceil

    Parameters
    ----------
    packet_bytes
        Length of the packet :math:`L`, in bytes, whole, at least 1. Any shape.
    header
        Multilink's header: ``"long"``, :math:`H = 4`, or ``"short"``, :math:`H = 2`.

    Returns
    -------
    ndarray
        Bytes, of the same shape.

    Notes
    -----
    Address and protocol fields compressed, a check of 16 bits, and random bytes over a line that carries all of them.

    References
    ----------
    RFC 1662, sections 3 and 4; RFC 1990, section 3.

    Examples
    --------
    >>> line_bytes([300, 1500]).astype(int).tolist()
    [312, 1521]
    """
    if header not in _NUMBER_BYTES:
        raise refused("header", "be 'long' or 'short'", header)
    between = whole(1, packet_bytes=packet_bytes) + _NUMBER_BYTES[header] + _PROTOCOLS_AND_CHECK_BYTES
    return np.asarray(_FLAG_BYTES + np.ceil(between * (1 + _ESCAPED_SHARE)))


@checked_arguments
def packet_time_s(bundle: WindowedBundle) -> Seconds:
    r"""Mean time of a line for a packet.

    .. math:: S = \frac{8 f n}{R} \left( 1 + \frac{N_w a}{1 - c} \right), \qquad n = \left\lceil B / f \right\rceil

    Parameters
    ----------
    bundle
        The bundle. With repetition, frames of :math:`f` bytes, a window of :math:`N_w`, bad with :math:`a` and again with
        :math:`c`; without, :math:`S = 8 B / R`.

    References
    ----------
    `go_back_n`, and `line_bytes` for :math:`B`. Zaghloul's :math:`T_{MP}` (section 4.1.6) has the propagation besides.

    Examples
    --------
    >>> arq = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
    >>> round(float(packet_time_s(WindowedBundle(8, 2400, 1500, 33, arq=arq))), 2)
    6.1
    """
    return _times(bundle, bundle.packet_bytes)[0]


@checked_arguments
def packet_time_deviation_s(bundle: WindowedBundle) -> Seconds:
    r"""Standard deviation of the time of a line for a packet.

    .. math:: \sigma_S = \frac{8 f}{R} N_w \sqrt{n \left( \frac{a (1 + c)}{(1 - c)^2} - \frac{a^2}{(1 - c)^2} \right)}

    Parameters
    ----------
    bundle
        The bundle; 0 without repetition.

    References
    ----------
    `go_back_n.rtt_deviation_s`.

    Examples
    --------
    >>> arq = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
    >>> round(float(packet_time_deviation_s(WindowedBundle(8, 2400, 1500, 33, arq=arq))), 2)
    0.78
    """
    return _times(bundle, bundle.packet_bytes)[1]


@checked_arguments
def unloaded_rtt_s(bundle: WindowedBundle) -> Seconds:
    r"""Round trip of a packet that waits for no other one on its line.

    .. math:: S + Y, \qquad Y = 2 d + S_{ack} + D, \qquad D = \frac{\sigma_S}{N} \sum_{i=1}^N m_i

    Parameters
    ----------
    bundle
        The bundle.

    Notes
    -----
    Of N packets on N lines the i-th waits for those before it, of :math:`W` where the window is smaller: :math:`m_i` is the
    expected largest of i standard normal values, here as Blom (1958) approximates it,
    :math:`\Phi^{-1}((i - 3/8) / (i + 1/4))`. A delayed acknowledgement adds up to its timer.

    Examples
    --------
    >>> round(float(unloaded_rtt_s(WindowedBundle(8, 2400, 1500, 33, delay_s=0.5))), 2)
    6.28
    """
    return np.asarray(packet_time_s(bundle) + _besides_s(bundle))


@checked_arguments
def packet_rate_hz(bundle: WindowedBundle) -> Floats:
    r"""Packets per second that go round.

    .. math:: X = \min \left( \frac{W}{S + Y}, \frac{N}{S}, X_q \right)

    Parameters
    ----------
    bundle
        The bundle.

    Returns
    -------
    ndarray
        Packets per second, of the broadcast shape.

    Notes
    -----
    :math:`X_q`, above, is the smaller root of
    :math:`Y X^2 - (W + c^2 (N - 1) + Y N / S) X + W N / S = 0`. For a saturated sender over lines that do not drop;
    `call_drops` takes drops into account. How near it comes to the packet engine: docs/validation/bundles.md.

    Examples
    --------
    >>> [round(float(packet_rate_hz(WindowedBundle(8, 2400, 1500, window, delay_s=0.5))), 3) for window in (4, 33)]
    [0.637, 1.578]
    """
    lines, taken = whole(1, lines=bundle.lines), whole(1, line_packets=bundle.line_packets)
    window = at_least(1, window_packets=bundle.window_packets)
    time, deviation = _times(bundle, bundle.packet_bytes)
    besides, most = _besides_s(bundle), lines / time
    spread = (deviation / time) ** 2 * (lines - 1)
    # The smaller root, written so that nothing is divided by `besides`, which may be 0. Without variation the root is one of a
    # square, which rounding may take below 0.
    middle = window + spread + most * besides
    root = 2 * most * window / (middle + np.sqrt(np.maximum(0.0, middle**2 - 4 * besides * most * window)))
    always_busy = window - most * besides > (lines - 1) * taken
    return np.asarray(np.minimum(window / (time + besides), np.where(always_busy, most, root)))


@checked_arguments
def rtt_s(bundle: WindowedBundle) -> Seconds:
    r"""Mean round trip of a packet under load.

    .. math:: RTT = \frac{W}{X}

    Parameters
    ----------
    bundle
        The bundle.

    Notes
    -----
    Where the window is what the lines take, :math:`W = N K`, it is Zaghloul's :math:`Q_P T_{MP}` whatever the number of lines
    is (`loaded_bundle.rtt_mean_s`); in general it is inverse to that number.

    Examples
    --------
    >>> rtt_s(WindowedBundle([2, 4, 8], 2400, 1500, [6, 12, 24], delay_s=0.5)).round(1)
    array([15.2, 15.2, 15.2])
    >>> rtt_s(WindowedBundle([2, 4, 8], 2400, 1500, 33, delay_s=0.5)).round(1)
    array([83.7, 41.8, 20.9])
    """
    return np.asarray(at_least(1, window_packets=bundle.window_packets) / packet_rate_hz(bundle))


@checked_arguments
def goodput_bps(bundle: WindowedBundle, *, header_bytes: ArrayLike = 52) -> Floats:
    r"""Application data per second.

    .. math:: G = 8 (L - h) X

    Parameters
    ----------
    bundle
        The bundle.
    header_bytes
        Headers of a packet above PPP :math:`h`, in bytes, not negative and below `packet_bytes`: 52 of TCP with timestamps
        over IPv4. Broadcast against the parameters of the bundle.

    Returns
    -------
    ndarray
        Rate in bit/s, of the broadcast shape.

    Examples
    --------
    What the MRRU decides, with one window in bytes:

    >>> packet_bytes = np.array([300, 576, 1500])
    >>> goodput_bps(WindowedBundle(8, 2400, packet_bytes, 50_000 / packet_bytes, delay_s=0.5)).round()
    array([15262., 17052., 18279.])
    """
    payload = whole(1, packet_bytes=bundle.packet_bytes) - at_least(0, header_bytes=header_bytes)
    if np.any(payload <= 0):
        raise refused("header_bytes", "be below packet_bytes", header_bytes)
    return np.asarray(8 * payload * packet_rate_hz(bundle))


def _times(bundle: WindowedBundle, packet_bytes: ArrayLike) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the time of a line for a packet of so many bytes."""
    rate, sent = positive(rate_bps=bundle.rate_bps), line_bytes(packet_bytes, header=bundle.header)
    if bundle.arq is None:
        time = np.asarray(8 * sent / rate)
        return time, np.zeros_like(time)
    arq = bundle.arq
    frame, window = whole(1, frame_bytes=arq.frame_bytes), whole(1, window_frames=arq.window_frames)
    first = from_0_to_below_1(loss=arq.loss)
    again = first if arq.loss_again is None else from_0_to_below_1(loss_again=arq.loss_again)
    frames, frame_s = np.ceil(sent / frame), 8 * frame / rate
    variance = first * (1 + again - first) / (1 - again) ** 2
    mean = np.asarray(frames * frame_s * (1 + window * first / (1 - again)))
    return mean, np.asarray(frame_s * window * np.sqrt(frames * variance))


def _besides_s(bundle: WindowedBundle) -> Floats:
    """The part of a round trip beside the line's time for the packet."""
    lines, delay = whole(1, lines=bundle.lines), at_least(0, delay_s=bundle.delay_s)
    ack, (_, deviation) = _times(bundle, bundle.ack_bytes)[0], _times(bundle, bundle.packet_bytes)
    window = at_least(1, window_packets=bundle.window_packets)
    return np.asarray(2 * delay + ack + deviation * _mean_largest(np.minimum(lines, window)))


def _mean_largest(count: Floats) -> Floats:
    """Mean of the expected largest of 1, 2, ... n standard normal values; straight between whole n."""
    places = np.arange(1, np.ceil(count.max(initial=1)) + 1)
    largest = ndtri((places - 0.375) / (places + 0.25))
    return np.asarray(np.interp(count, places, np.cumsum(largest) / places))
