"""The cells compared with ns-2: the link, and the settings for ns-2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tests.peers.ns2 import Setting

VARIANTS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "Newreno", "sack": "Sack1"}
BERS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)

# Long enough for hundreds of losses or timeouts in a run, short enough that a seed costs a fraction of a second.
GEO_DURATION_S = {1e-8: 4000.0, 1e-7: 4000.0, 1e-6: 4000.0, 1e-5: 10_000.0, 1e-4: 100_000.0}
GEO_WARMUP_S = 100.0
# The minimum of RFC 6298 and an initial window of one segment, on both sides. Everything else is ns-2's default.
GEO_TCP = {"minrto_": 1, "windowInit_": 1}


@dataclass(frozen=True)
class GeoCell:
    """One TCP flow over the GEO link of `brodbekier`: 1 Mb/s, 250 ms one way, 1000 bytes on the wire, window 70."""

    variant: str
    ber: float
    delayed_ack: bool

    @property
    def name(self) -> str:
        return f"{self.variant}-{self.ber:.0e}-{'delayed' if self.delayed_ack else 'every'}"

    def ns2(self) -> dict[str, Setting]:
        """Settings of `dumbbell.tcl`."""
        return {
            "variant": VARIANTS[self.variant],
            "rate_bps": 1e6,
            "delay_s": 0.25,
            "wire_bytes": 1000,
            "window": 70,
            "ber": self.ber,
            "delayed_ack": int(self.delayed_ack),
            "duration_s": GEO_DURATION_S[self.ber],
            "warmup_s": GEO_WARMUP_S,
            "tcp": GEO_TCP,
        }


GEO_CELLS = tuple(GeoCell(variant, ber, delayed_ack) for variant in VARIANTS for ber in BERS for delayed_ack in (True, False))


@dataclass(frozen=True)
class DeepCell:
    """One TCP flow over the GEO link without errors, behind a queue of 1.6 bandwidth-delay products; from the first packet on.

    The window is open: only the queue loses packets, a third of a window at the end of the first slow start and one or two
    for each later filling of the queue.
    """

    variant: str
    delayed_ack: bool

    QUEUE_PACKETS = 100
    WINDOW = 10_000
    DURATION_S = 1000.0
    WARMUP_S = 0.0

    @property
    def name(self) -> str:
        return f"deep-{self.variant}-{'delayed' if self.delayed_ack else 'every'}"

    def ns2(self) -> dict[str, Setting]:
        """Settings of `dumbbell.tcl`."""
        return {
            "variant": VARIANTS[self.variant],
            "rate_bps": 1e6,
            "delay_s": 0.25,
            "wire_bytes": 1000,
            "queue_packets": self.QUEUE_PACKETS,
            "window": self.WINDOW,
            "delayed_ack": int(self.delayed_ack),
            "duration_s": self.DURATION_S,
            "warmup_s": self.WARMUP_S,
            "tcp": GEO_TCP,
        }


DEEP_CELLS = tuple(DeepCell(variant, delayed_ack) for variant in VARIANTS for delayed_ack in (True, False))


@dataclass(frozen=True)
class SharedCell:
    """Five Reno flows share 455 segments/s (`celandroni`, Table I): 0.25 s one way, buffer 0.8 mu T, no delayed ACKs."""

    loss: float

    FLOWS = 5
    SEGMENTS_PER_S = 455
    QUEUE_PACKETS = 184  # 0.8 x 455/s x 0.5064 s
    WIRE_BYTES = 1000
    DURATION_S = 2000.0
    WARMUP_S = 200.0
    # The timers and the loss recovery of ns-2 when the paper was written.
    TCP_OF_ITS_TIME: ClassVar[dict[str, Setting]] = {
        "tcpTick_": 0.1,
        "minrto_": 1,
        "singledup_": 0,
        "windowInit_": 1,
        "rtxcur_init_": 6,
    }

    @property
    def name(self) -> str:
        return f"shared-{self.loss:.0e}"

    def ns2(self) -> dict[str, Setting]:
        """Settings of `dumbbell.tcl`."""
        return {
            "variant": "Reno",
            "rate_bps": self.SEGMENTS_PER_S * self.WIRE_BYTES * 8,
            "delay_s": 0.25,
            "wire_bytes": self.WIRE_BYTES,
            "queue_packets": self.QUEUE_PACKETS,
            "flows": self.FLOWS,
            "window": 10_000,
            "loss": self.loss,
            "delayed_ack": 0,
            "duration_s": self.DURATION_S,
            "warmup_s": self.WARMUP_S,
            "start_spread_s": 1,
            "tcp": self.TCP_OF_ITS_TIME,
        }


SHARED_CELLS = tuple(SharedCell(loss) for loss in (1e-4, 1e-3, 1e-2, 1e-1))

Cell: TypeAlias = GeoCell | DeepCell | SharedCell

NS2_CELLS: tuple[Cell, ...] = (*GEO_CELLS, *DEEP_CELLS, *SHARED_CELLS)
