"""Long TCP flows over one bottleneck: what losses allow, or what the queue's overflow leaves of the rate if that is less."""

from __future__ import annotations

from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point, refused
from farlink.engines.model.tcp import Connection, connection
from farlink.models.tcp_goodput import selective, short_buffer
from farlink.models.tcp_latency import padhye

# Most losses for the equation of Reno, which is a fifth too high there.
_MOST_LOSS = 0.1
# Shortest window at a loss, segments, in which duplicate acknowledgements show most losses.
_LEAST_WINDOW = 10.0
# Shortest queue, segments, that a window's growth overflows one by one.
_LEAST_BUFFER = 3.0


def answer(flow: Flow, point: Point) -> Answer:
    """Share of one of the equal flows of a point."""
    tcp = connection(flow, point)
    free, form, validity = _free(flow, point, tcp)
    demand = point.count * free / tcp.rate
    overflows = point.count * tcp.window > tcp.pipe + tcp.buffer
    room = _utilisation(point, tcp) if overflows else 1.0
    arriving = 1 - tcp.loss
    hop = point.path.bottleneck
    if demand < room * arriving:
        share, values = demand, {"loss_fraction": tcp.loss}
    elif overflows:
        share, values = room * arriving, {}
        form = "utilisation by the queue's length, equal shares (Lakshman and Madhow 1997, section III)"
        validity = "windows fall together: up to 11 % too low where they fall in turn; drops are not known"
    else:
        share, values = arriving, {"loss_fraction": tcp.loss}
        form, validity = "what arrives at the full rate, equal shares", "exact: the windows fill the link and never its queue"
    goodput_bps = share * tcp.rate * 8 * tcp.payload_bytes / point.count
    return Answer({"goodput_bps": goodput_bps, "goodput_fraction": goodput_bps / hop.rate_bps, **values}, form, validity)


def _free(flow: Flow, point: Point, tcp: Connection) -> tuple[float, str, str]:
    """Rate of a flow over a link without limit, in segments per second, with its form and where that holds."""
    sizes = {"rtt_s": tcp.round_trip_s, "timeout_s": tcp.timeout_s, "segments_per_ack": tcp.segments_per_ack}
    if flow.transport["variant"] == "reno":
        tcp.refuse_losses_above(_MOST_LOSS, point)
        rate = float(padhye.throughput(tcp.loss, window_segments=tcp.window, **sizes))
        words = "losses up to 0.1; two fifths low if the timer is fifty round trips, a fifth high if the queue limits, too"
        return rate, "Padhye et al. (2000), eq. (32) with what arrives", words
    window = min(float(padhye.mean_window(tcp.loss, segments_per_ack=tcp.segments_per_ack)), tcp.window)
    if tcp.loss > 0 and window < _LEAST_WINDOW:
        what = f"has no closed form where windows of {window:.1f} segments leave most losses of {tcp.loss:.2g} to the timer"
        raise refused(flow.transport_key("variant"), what, 'give a smaller loss, or variant = "reno"')
    by_time = flow.transport["variant"] == "rack"
    found = selective.throughput(
        tcp.loss, window_segments=tcp.window, timeouts_per_lost_repair=0.0 if by_time else 1.0, **sizes
    )
    words = "windows above ten segments; up to a fifth high near ten, two fifths with NewReno over short round trips"
    return float(found), "periods of Padhye et al. (2000), timeouts for lost repairs (models.tcp_goodput.selective)", words


def _utilisation(point: Point, tcp: Connection) -> float:
    if tcp.buffer < _LEAST_BUFFER:
        what = f"has no closed form for a queue of {tcp.buffer:.1f} segments that overflows"
        raise refused(point.path.bottleneck.queue_key, what, f"give {_LEAST_BUFFER:g} segments or more")
    return float(short_buffer.utilisation(tcp.buffer / tcp.pipe))
