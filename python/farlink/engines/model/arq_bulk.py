"""Saturated ARQ over a path with independent errors: Epple, equations (8) to (10)."""

from __future__ import annotations

import math

from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point, refused
from farlink.models import arq

# How much longer than a round trip and a frame the timer may be, as a share: the equations know no timer.
_TIMER_SLACK = 0.02
# Windows that the receiver's buffer of selective repeat holds at least: repetitions of repetitions stop the sender before.
_BUFFER_WINDOWS = 8
_EQUATIONS = {"stop-and-wait": 9, "go-back-n": 10, "selective-repeat": 8}


def answer(flow: Flow, point: Point) -> Answer:
    """Goodput of one ARQ connection that always has data."""
    keys, sizes, path = flow.transport, flow.sizes, point.path
    loss = _loss(flow, point)
    hop = path.bottleneck
    rate_bps = min(hop.rate_bps, float(keys.get("rate_bps", math.inf)))
    frame_s = 8 * sizes.packet_bytes / rate_bps
    # Between the end of a frame and its answer.
    round_trip_s = path.one_way_s(sizes.packet_bytes) + path.way_back_s(sizes.ack_bytes) - 8 * sizes.packet_bytes / hop.rate_bps
    lengths = {"payload_bytes": sizes.payload_bytes, "header_bytes": sizes.packet_bytes - sizes.payload_bytes}
    capacity = float(arq.round_trip_capacity(round_trip_s, rate_bps=rate_bps, **lengths))
    _check(flow, point, round_trip_s + frame_s, 1 + capacity)
    if keys["mode"] == "stop-and-wait":
        share = arq.goodput_stop_and_wait(loss, capacity=capacity, **lengths)
    elif keys["mode"] == "go-back-n":
        share = arq.goodput_go_back_n(loss, capacity=capacity, **lengths)
    else:
        share = arq.goodput_selective_repeat(loss, **lengths)
    goodput_bps = float(share) * rate_bps
    return Answer(
        {
            "goodput_bps": goodput_bps,
            "goodput_fraction": goodput_bps / hop.rate_bps,
            "loss_fraction": path.loss(sizes.packet_bytes),
        },
        f"Epple, eq. ({_EQUATIONS[keys['mode']]})",
        "lost frames go again a round trip and a frame later; a few percent off where a round trip holds few frames",
    )


def _loss(flow: Flow, point: Point) -> float:
    """Of a frame, or of its acknowledgement where each frame needs its own: equation (6)."""
    path, sizes = point.path, flow.sizes
    loss = path.loss(sizes.packet_bytes)
    if flow.transport["ack"] == "per-packet":
        return 1 - (1 - loss) * (1 - path.back_loss(sizes.ack_bytes))
    path.refuse_losses_back("knows what a lost acknowledgement costs if each frame has its own")
    return loss


def _check(flow: Flow, point: Point, repeat_s: float, window: float) -> None:
    """Refuse what the equations do not know: short windows and buffers, other timers."""
    keys, sizes, hop = flow.transport, flow.sizes, point.path.bottleneck
    way_back = min(hop.back_rate_bps for hop in point.path.hops)
    if 8 * sizes.ack_bytes / way_back > 8 * sizes.packet_bytes / min(hop.rate_bps, float(keys.get("rate_bps", math.inf))):
        what = "has acknowledgements that do not wait for each other, and the way back is too slow for one per frame"
        raise refused(f"{hop.table}.return.rate_bps", what, "give a higher rate")
    rto = keys["rto"]
    if rto["algorithm"] != "fixed":
        what = f"has ARQ repeat a lost frame a round trip and a frame later, and {rto['algorithm']!r} sets another timer"
        remedy = f'give rto = {{ algorithm = "fixed", initial_s = {1.001 * repeat_s:.6g} }}'
        raise refused(flow.transport_key("rto.algorithm"), what, remedy)
    if not repeat_s <= rto["initial_s"] <= (1 + _TIMER_SLACK) * repeat_s:
        what = f"has ARQ repeat a lost frame {repeat_s:.6g} s after it was sent, not {rto['initial_s']:g} s"
        remedy = f"give {repeat_s:.6g} to {(1 + _TIMER_SLACK) * repeat_s:.6g} s"
        raise refused(flow.transport_key("rto.initial_s"), what, remedy)
    if keys["mode"] != "stop-and-wait" and sizes.window_packets < math.ceil(window):
        what = (
            f"has closed forms for a window that holds a round trip, {math.ceil(window)} frames, not {sizes.window_packets:g}"
        )
        raise refused(flow.transport_key("window_frames"), what, f"give {math.ceil(window)} or more")
    buffer = float(keys.get("buffer_frames", sizes.window_packets))
    if keys["mode"] == "selective-repeat" and buffer < _BUFFER_WINDOWS * window:
        least = math.ceil(_BUFFER_WINDOWS * window)
        what = f"has a receiver keep everything that arrives, and {buffer:.0f} frames fill up"
        raise refused(flow.transport_key("buffer_frames"), what, f"give {least} or more")
    queue = hop.holds_packets(sizes.packet_bytes)
    if float(keys.get("rate_bps", math.inf)) > hop.rate_bps and queue < sizes.window_packets:
        what = f"has no drops, and a window of {sizes.window_packets:g} frames at once overflows a queue of {queue:.0f}"
        raise refused(hop.queue_key, what, f"give {flow.transport_key('rate_bps')} = {hop.rate_bps:g}, or a longer queue")
