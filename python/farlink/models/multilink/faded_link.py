r"""A link with go-back-N ARQ in Rayleigh fading, from what is known of it: packets, frames, rate, margin, Doppler."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.multilink.fading import frame_s, rayleigh_frames
from farlink.models.multilink.go_back_n import GoBackN
from farlink.models.parameters import LinkRate
from farlink.models.ranges import at_least, positive


@checked_arguments
def over_fading(
    packet_bytes: ArrayLike,
    *,
    frame_bytes: ArrayLike,
    rate_bps: LinkRate,
    link_rtt_s: ArrayLike,
    margin_db: ArrayLike,
    doppler_hz: ArrayLike,
    attempts: int | None = None,
) -> GoBackN:
    r"""Go-back-N that keeps a link full, over frames in Rayleigh fading.

    .. math::

        n = \left\lceil \frac{L}{l} \right\rceil, \qquad t = \frac{8 l}{R}, \qquad
        N = 1 + \left\lceil \frac{RTT_l}{t} \right\rceil

    Parameters
    ----------
    packet_bytes
        Length of a packet of TCP :math:`L`, in bytes, positive. Any shape.
    frame_bytes
        Length of a frame of the ARQ :math:`l`, in bytes, positive; all parameters are broadcast against each other.
    link_rtt_s
        Round trip of the link without frames :math:`RTT_l`, in s, not negative: both ways and processing.
    margin_db
        Mean signal-to-noise ratio over the one at which frames fail, in dB.
    doppler_hz
        Largest Doppler shift, in Hz, positive: `fading.doppler_hz` of a speed.
    attempts
        Attempts after which a frame is given up; never if none.

    Returns
    -------
    GoBackN
        For `go_back_n.rtt_mean_s` and the others.

    Notes
    -----
    The last frame of a packet is filled up. Headers of frames count as part of them. Acknowledgements of the ARQ are
    not lost.

    Examples
    --------
    A packet over an Iridium link. The margin decides on the round trip, and on whether TCP's timer goes off for nothing:

    >>> from farlink.models.multilink.go_back_n import outlasts, rtt_deviation_s, rtt_mean_s
    >>> link = {"frame_bytes": 60, "rate_bps": 2400, "link_rtt_s": 1.0, "doppler_hz": 0.1}
    >>> arq = over_fading(1500, margin_db=[5, 10, 20], **link)
    >>> rtt_mean_s(arq).round(2), rtt_deviation_s(arq).round(2)
    (array([8.4 , 6.79, 6.15]), array([3.65, 1.48, 0.43]))
    >>> outlasts(arq, limit_s=15.0).round(4)
    array([0.0642, 0.0022, 0.    ])
    """
    time = frame_s(frame_bytes, rate_bps=rate_bps)
    around = at_least(0, link_rtt_s=link_rtt_s)
    # Rounding must not add a frame to a whole number of them.
    frames = np.ceil(positive(packet_bytes=packet_bytes) / np.asarray(frame_bytes, dtype=np.float64) - 1e-9)
    return GoBackN(
        frames=frames,
        window_frames=1 + np.ceil(around / time - 1e-9),
        frame_s=time,
        errors=rayleigh_frames(margin_db, doppler_hz=positive(doppler_hz=doppler_hz), frame_s=time),
        base_s=around,
        attempts=attempts,
    )
