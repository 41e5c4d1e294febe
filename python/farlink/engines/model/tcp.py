"""Common parts of the forms for TCP: the path as a connection sees it, and settings that no form covers."""

from __future__ import annotations

from dataclasses import dataclass

from farlink.engines.model.point import Flow, Point, refused

# The timer of RFC 6298 in round trips: one, and the variation over a sawtooth. As in the fluid engine.
_TIMER_ROUND_TRIPS = 1.5

VARIANTS = ("reno", "newreno", "sack", "rack")


@dataclass(frozen=True)
class Connection:
    """A TCP connection and its path, in segments and seconds."""

    payload_bytes: float
    packet_bytes: float
    ack_bytes: float
    loss: float
    round_trip_s: float
    """That of a lone segment, its own time on each hop included."""
    rate: float
    """Of the bottleneck, segments per second."""
    buffer: float
    """Room of its queue, segments."""
    window: float
    """Largest that sender and receiver allow."""
    segments_per_ack: float
    """As the window's growth counts."""
    timeout_s: float

    @property
    def pipe(self) -> float:
        """Segments that the path holds without its queue."""
        return self.rate * self.round_trip_s

    def refuse_losses_above(self, most: float, point: Point) -> None:
        """Refuse a path that loses more segments."""
        if self.loss > most:
            what = f"has equations for losses of up to {most:g} of the segments, and {self.loss:.3g} are lost"
            raise refused(f"{point.path.hops[0].table}.channel", what, "give a smaller loss or ber, or shorter segments")


def connection(flow: Flow, point: Point) -> Connection:
    """A flow of TCP on its path; a version or a path that no form covers is refused."""
    keys, sizes, path = flow.transport, flow.sizes, point.path
    if keys["variant"] not in VARIANTS:
        known = ", ".join(f'"{name}"' for name in VARIANTS)
        raise refused(flow.transport_key("variant"), f"has no closed form for {keys['variant']!r}", f"give {known}")
    if keys["congestion_control"] != "reno":
        what = f"has closed forms for Reno's window, not for {keys['congestion_control']!r}"
        raise refused(flow.transport_key("congestion_control"), what, 'give "reno"')
    if keys["duplicate_ack_threshold"] != 3:
        what = f"counts 3 duplicate acknowledgements, not {keys['duplicate_ack_threshold']:g}"
        raise refused(flow.transport_key("duplicate_ack_threshold"), what, "give 3")
    path.refuse_losses_back("takes acknowledgements to arrive")
    loss = path.loss(sizes.packet_bytes)
    if loss >= 1:
        raise refused(f"{path.hops[0].table}.channel", "finds that every segment would be lost", "give a smaller loss or ber")
    hop = path.bottleneck
    slow = min(path.hops, key=lambda one: one.back_rate_bps)
    if sizes.ack_bytes / slow.back_rate_bps > sizes.packets_per_ack * sizes.packet_bytes / hop.rate_bps:
        what = "has acknowledgements that do not wait for each other, and the way back is too slow for them"
        raise refused(f"{slow.table}.return.rate_bps", what, "give a higher rate")
    round_trip_s = path.one_way_s(sizes.packet_bytes) + path.way_back_s(sizes.ack_bytes)
    least_s, most_s = sizes.timeouts_s
    return Connection(
        payload_bytes=sizes.payload_bytes,
        packet_bytes=sizes.packet_bytes,
        ack_bytes=sizes.ack_bytes,
        loss=loss,
        round_trip_s=round_trip_s,
        rate=hop.rate_bps / (8 * sizes.packet_bytes),
        buffer=hop.holds_packets(sizes.packet_bytes),
        window=sizes.window_packets,
        segments_per_ack=1.0 if sizes.counts_bytes else sizes.packets_per_ack,
        timeout_s=min(max(least_s, _TIMER_ROUND_TRIPS * round_trip_s), most_s),
    )
