"""The bundles of the thesis: eight Iridium links to Greenland, six in the laboratory, four of Inmarsat."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from farlink.models.multilink import call_drops
from farlink.models.ranges import Floats

# Lengths are in decimal units: 1 MB is 1,000,000 bytes; tables 6.1 and 6.2 come out so.
MEGABYTE, KILOBYTE = 1e6, 1e3
MINUTE_S = 60.0


@dataclass(frozen=True)
class Bundle:
    """A bundle as section 6 states it.

    Attributes
    ----------
    links
        Links of the bundle.
    segment_bytes
        Payload of a segment.
    rtt_s
        Mean round trip, in s.
    window_bytes
        Largest window, in bytes.
    drop_interval_s
        Mean time between the drops of a link, in s.
    loss_rate
        Probability that a segment is lost.
    timeout_s
        First timeout, in s.
    """

    links: int
    segment_bytes: float
    rtt_s: float
    window_bytes: float
    drop_interval_s: float
    loss_rate: float = 5e-4
    timeout_s: float = 60.0

    def minutes(self, file_bytes: ArrayLike, **changes: ArrayLike) -> Floats:
        """Time of a transfer by eq. (36), in minutes; `changes` take the place of attributes, as arrays if need be."""
        stated = {
            "links": self.links,
            "segment_bytes": self.segment_bytes,
            "rtt_s": self.rtt_s,
            "window_bytes": self.window_bytes,
            "drop_rate_hz": 1 / self.drop_interval_s,
            "loss_rate": self.loss_rate,
            "timeout_s": self.timeout_s,
            **changes,
        }
        drops = call_drops.bundle_drop_rate_hz(stated.pop("drop_rate_hz"), links=stated.pop("links"))
        return call_drops.transfer_time_s(file_bytes, drop_rate_hz=drops, **stated) / MINUTE_S


GREENLAND = Bundle(links=8, segment_bytes=1448, rtt_s=19.0, window_bytes=47.9 * KILOBYTE, drop_interval_s=50 * MINUTE_S)
# Figure 6.4: six links; the window is that of table 6.2.
LABORATORY = Bundle(links=6, segment_bytes=1448, rtt_s=18.2, window_bytes=34.7 * KILOBYTE, drop_interval_s=52 * MINUTE_S)
# Figures 6.5 and 6.6. The drop rate is not printed: that of Greenland.
INMARSAT = Bundle(links=4, segment_bytes=1000, rtt_s=0.61, window_bytes=40 * KILOBYTE, drop_interval_s=50 * MINUTE_S)
