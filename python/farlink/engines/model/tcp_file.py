"""A file over TCP, alone on its path: set-up, slow start, and Cardwell's parts with the queue in each (`slow_link`)."""

from __future__ import annotations

import math

from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point, refused
from farlink.engines.model.tcp import Connection, connection
from farlink.models.tcp_latency import padhye, setup, slow_link, slow_start

# Most losses of segments.
_MOST_LOSS = 0.05
# First losses come later with this probability; by then slow start must not have overflowed the queue.
_LATE_LOSS = 0.05
# Longest file for which the mean over its first losses is summed.
_MOST_SEGMENTS = 1_000_000


def answer(flow: Flow, point: Point) -> Answer:
    """Mean time until the last byte of a file has arrived."""
    keys, tcp, file_bytes = flow.transport, connection(flow, point), float(flow.traffic["bytes"])
    segments = math.ceil(file_bytes / tcp.payload_bytes)
    initial = min(float(keys["initial_window_segments"]), tcp.window)
    _check(flow, point, tcp, segments, initial)
    time_s = float(
        slow_link.lossy_transfer_time_s(
            segments,
            loss_rate=tcp.loss,
            rtt_s=tcp.round_trip_s,
            segment_s=1 / tcp.rate,
            timeout_s=tcp.timeout_s,
            segments_per_ack=tcp.segments_per_ack,
            window_segments=tcp.window,
            initial_window_segments=initial,
            delayed_ack_s=_first_ack_delay_s(flow, initial, segments),
        )
    )
    # The last acknowledgement has still to come back, and the last segment may be short.
    short = segments * tcp.payload_bytes - file_bytes
    time_s -= point.path.way_back_s(tcp.ack_bytes) + sum(8 * short / hop.rate_bps for hop in point.path.hops)
    time_s += _setup_s(flow, point, tcp) if keys["handshake"] else 0.0
    if flow.start_s + time_s > point.duration_s:
        what = f"finds that the file takes {time_s:.4g} s, and the run ends before"
        raise refused("duration_s", what, f"give more than {flow.start_s + time_s:.4g}")
    goodput_bps = 8 * file_bytes / time_s
    values = {
        "goodput_bps": goodput_bps,
        "goodput_fraction": goodput_bps / point.path.bottleneck.rate_bps,
        "loss_fraction": tcp.loss,
        "delivered_bytes": file_bytes,
        "duration_s": time_s,
        "transfer_time_mean_s": time_s,
    }
    if tcp.loss == 0:
        form = "slow start over a link that its window fills (Heidemann et al. 1997; Kurose and Ross)"
        return Answer(
            values, form, "exact with an acknowledgement for each segment; up to a round trip too short with delayed ones"
        )
    form = "set-up, slow start, a recovery, and the rate of Padhye et al. (Cardwell et al. 2000, eqs. (4), (21) to (25))"
    words = "made for Reno and losses up to 0.05; other versions may take half as long where the timer is many round trips"
    return Answer(values, form, words)


def _first_ack_delay_s(flow: Flow, initial: float, segments: int) -> float:
    """How long the receiver waits for a second segment in the first round."""
    if not flow.transport["delayed_ack"] or min(initial, segments) >= 2 or segments == 1:
        return 0.0
    timeout = flow.transport["delayed_ack_timeout_s"]
    return sum(timeout) / 2 if isinstance(timeout, list) else float(timeout)


def _setup_s(flow: Flow, point: Point, tcp: Connection) -> float:
    """SYN and SYN-ACK, the former repeated if it is lost."""
    path, lost = point.path, point.path.loss(tcp.ack_bytes)
    if lost >= 0.5:
        what = f"has no mean time of a handshake that loses {lost:.2g} of its packets"
        raise refused(flow.transport_key("handshake"), what, "give handshake = false")
    trip_s = path.one_way_s(tcp.ack_bytes) + path.way_back_s(tcp.ack_bytes)
    first_s = float(flow.transport["rto"]["initial_s"])
    return float(setup.setup_time_s(lost, rtt_s=trip_s, timeout_s=first_s, return_loss_rate=0.0))


def _check(flow: Flow, point: Point, tcp: Connection, segments: int, initial: float) -> None:
    """Refuse what ends slow start besides losses: thresholds, and a queue that overflows."""
    keys, hop = flow.transport, point.path.bottleneck
    tcp.refuse_losses_above(_MOST_LOSS, point)
    if segments > _MOST_SEGMENTS:
        what = f"has transfers of up to {_MOST_SEGMENTS} segments, and these are {segments}"
        raise refused(flow.key("traffic.bytes"), what, 'give kind = "bulk"')
    if keys["variant"] == "rack" and tcp.loss > 0:
        what = 'has transfer times where duplicate acknowledgements and the timer show losses, and "rack" finds them by time'
        raise refused(flow.transport_key("variant"), what, 'give "reno", "newreno" or "sack"')
    if keys.get("hystart"):
        raise refused(flow.transport_key("hystart"), "has slow start end with a loss", "leave it out")
    law = {"segments_per_ack": tcp.segments_per_ack, "initial_window_segments": initial}
    latest = min(segments, math.log(_LATE_LOSS) / math.log1p(-tcp.loss)) if tcp.loss > 0 else float(segments)
    reached = min(float(slow_start.window_after_segments(max(latest, 1.0), **law)), tcp.window)
    threshold = float(keys.get("initial_ssthresh_segments", math.inf))
    if threshold < reached:
        what = f"has slow start end with a loss, and this ends it at {threshold:g} of {reached:.0f} segments"
        raise refused(flow.transport_key("initial_ssthresh_segments"), what, "leave it out")
    if tcp.loss > 0:
        settled = float(padhye.mean_window(tcp.loss, segments_per_ack=tcp.segments_per_ack))
        reached = max(reached, min(settled, tcp.window))
    # Acknowledgements let b + 1 segments go at once while the window grows.
    room = tcp.pipe + tcp.buffer - tcp.segments_per_ack
    if reached > room and segments > room:
        what = f"has no drops, and a window of {reached:.0f} segments overflows the path and its queue, {room:.0f}"
        remedy = f"give a longer queue, or {flow.transport_key('max_window_segments')} = {max(1, math.floor(room))}"
        raise refused(hop.queue_key, what, remedy)
