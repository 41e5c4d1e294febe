r"""What a dropped link takes along, and when even SACK then waits for its timer.

Until the drop is noticed the sender writes into the void; besides, what waits in its buffers and in the far modem is lost.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.meanings import Meaning
from farlink.models.parameters import LinkRate
from farlink.models.ranges import POSITIVE, Floats, at_least, floats, from_on

SerialBuffer = Annotated[ArrayLike, Meaning("Buffer of the sender's serial card :math:`B_S`, in bytes", from_on(0))]
SegmentLength = Annotated[ArrayLike, Meaning("Segment with its headers :math:`P`, in bytes", POSITIVE)]


@checked_arguments
def segments_lost(
    detection_s: ArrayLike,
    *,
    rate_bps: LinkRate,
    modem_buffer_bytes: ArrayLike,
    serial_buffer_bytes: SerialBuffer,
    segment_bytes: SegmentLength,
) -> Floats:
    r"""Segments lost by one drop.

    .. math:: L = \frac{T_L R / 8 + 2 B_M + B_S}{P}

    Parameters
    ----------
    detection_s
        Time until the drop is noticed :math:`T_L`, in s, not negative. Any shape.
    modem_buffer_bytes
        Buffer of a modem :math:`B_M`, in bytes, not negative; the sender's and the receiver's are lost.

    Returns
    -------
    ndarray
        Segments, not rounded, of the broadcast shape.

    Notes
    -----
    With full buffers, as under load, and segments that are not fragmented over the links. What waits for the whole bundle is
    not lost.

    References
    ----------
    Zaghloul, section 5.2.

    Examples
    --------
    >>> buffers = {"modem_buffer_bytes": 4500, "serial_buffer_bytes": 1500}
    >>> float(segments_lost(10, rate_bps=2400, segment_bytes=1500, **buffers))
    9.0
    """
    written = at_least(0, detection_s=detection_s) * floats(rate_bps) / 8
    modems = 2 * at_least(0, modem_buffer_bytes=modem_buffer_bytes)
    waiting = modems + floats(serial_buffer_bytes)
    return np.asarray((written + waiting) / floats(segment_bytes))


@checked_arguments
def sack_times_out(lost_segments: ArrayLike, *, window_segments: ArrayLike) -> NDArray[np.bool_]:
    r"""Whether a loss of so many segments in a window makes even SACK wait for its timer.

    .. math:: L > \frac{W}{2}

    Parameters
    ----------
    lost_segments
        Segments lost at once :math:`L`, not negative. Any shape.
    window_segments
        Segments in flight :math:`W`, at least 1; broadcast against `lost_segments`.

    Returns
    -------
    ndarray
        True or false, of the broadcast shape.

    Notes
    -----
    In congestion avoidance, and by the pipe of K. Fall and S. Floyd, in which lost segments still count; see
    `farlink.models.tcp_latency.sikdar.recovery`. A sender that takes them out of the pipe (RFC 6675) goes on.

    References
    ----------
    Zaghloul, section 5.2; Sikdar et al. (2003): "a loss of roughly more than half the packets in a round".

    Examples
    --------
    >>> sack_times_out([7, 9], window_segments=15)
    array([False,  True])
    """
    lost, window = at_least(0, lost_segments=lost_segments), at_least(1, window_segments=window_segments)
    return np.asarray(2 * lost > window)


@checked_arguments
def latest_detection_s(
    window_segments: ArrayLike,
    *,
    rate_bps: LinkRate,
    modem_buffer_bytes: ArrayLike,
    serial_buffer_bytes: SerialBuffer,
    segment_bytes: SegmentLength,
) -> Floats:
    r"""Time within which a drop has to be noticed so that SACK does not wait for its timer.

    .. math:: T_L = \frac{8}{R} \left( \frac{W P}{2} - 2 B_M - B_S \right)

    Parameters
    ----------
    window_segments
        Segments in flight :math:`W`, at least 1. Any shape.
    modem_buffer_bytes
        Buffer of a modem :math:`B_M`, in bytes, not negative.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape; negative where the buffers alone hold more than half the window.

    Notes
    -----
    `segments_lost` solved for the time.

    Examples
    --------
    >>> buffers = {"modem_buffer_bytes": 4500, "serial_buffer_bytes": 1500}
    >>> latest_detection_s([15, 40], rate_bps=2400, segment_bytes=1500, **buffers)
    array([ 2.5, 65. ])
    """
    half = at_least(1, window_segments=window_segments) / 2 * floats(segment_bytes)
    modems = 2 * at_least(0, modem_buffer_bytes=modem_buffer_bytes)
    waiting = modems + floats(serial_buffer_bytes)
    return np.asarray(8 * (half - waiting) / floats(rate_bps))
