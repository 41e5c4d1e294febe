"""Sections 4.1.6 and 5.2: the round trip under load, and what one drop loses."""

from __future__ import annotations

from farlink.models.multilink import drop_losses, loaded_bundle
from farlink.models.tcp_latency import timeout
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

QUEUE_PACKETS, PACKET_BYTES, LINK_BPS = 3, 1500, 2400.0
# Section 5.2.
DETECTION_S, MODEM_BYTES, SERIAL_BYTES, WINDOW_BYTES = 10.0, 4500.0, 1500.0, 22_500.0


def round_trip(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Three packets in the queue of a modem, with repetitions and without."""
    loaded = loaded_bundle.rtt_mean_s(QUEUE_PACKETS, modem_time_s=6.5)
    clean = loaded_bundle.rtt_mean_s(QUEUE_PACKETS, modem_time_s=loaded_bundle.modem_time_s(PACKET_BYTES, rate_bps=LINK_BPS))
    timer = timeout.retransmission_timeout_s(21.0, deviation_s=8.7)
    exact = "agrees within the printed digits"
    return [
        _check("section-4.1.6", "round trip, T_MP = 6.5 s, s", "19.5", float(loaded), exact),
        _check("section-4.1.6", "round trip, T_MP = 6.5 s, beside the measured 21 s of figure 4.6", "21", float(loaded),
               "agrees within 10 % of one measured mean", 0.1),
        _check("section-4.1.6", "round trip without repetitions, s", "15", float(clean), exact),
        _check("section-4.1.6", "timer of figure 4.6's mean and deviation, beside the T_0 of table 6.1, s", "60", float(timer),
               "mean and four standard deviations: agrees within 10 %", 0.1),
    ], []  # fmt: skip


def drop(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The packets that a drop takes along, and whether SACK can do without its timer."""
    link = {
        "rate_bps": LINK_BPS,
        "modem_buffer_bytes": MODEM_BYTES,
        "serial_buffer_bytes": SERIAL_BYTES,
        "segment_bytes": PACKET_BYTES,
    }
    lost = float(drop_losses.segments_lost(DETECTION_S, **link))
    window = WINDOW_BYTES / PACKET_BYTES
    verdict = Verdict.AGREES if drop_losses.sack_times_out(lost, window_segments=window) else Verdict.DIFFERS
    latest = float(drop_losses.latest_detection_s(window, **link))
    return [
        _check("section-5.2", "packets lost", "9", lost, "agrees within the printed digits"),
        Check("section-5.2", "packets lost, of a window of 15", "it is obvious that even TCP SACK will timeout", "model",
              Estimate(lost), verdict,
              f"agrees if more than half the window is lost; it would not be if the modem noticed within {latest:.1f} s"),
    ], []  # fmt: skip


def _check(item: str, cell: str, printed: str, ours: float, rule: str, relative: float = 0.0) -> Check:
    value = Estimate(ours)
    return Check(item, cell, float(printed), "model", value, number(value, printed, relative=relative), rule)
