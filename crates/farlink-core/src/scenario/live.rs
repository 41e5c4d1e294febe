//! Keys that the engine `live` supports. It plays the path in real time, and of transports what the kernel and `farlink-net` have;
//! their values are checked when the flows are laid out.

/// Keys that it supports, the kind of a transport in place of its name.
pub(super) const HONOURED: &[&str] = &[
    "title",
    "seed",
    "runs",
    "duration_s",
    "engines",
    "unsupported",
    "measure.warmup_s",
    "path",
    "link.**",
    "transport.tcp.kind",
    "transport.tcp.variant",
    "transport.tcp.congestion_control",
    "transport.tcp.segment_bytes",
    "transport.tcp.timestamps",
    "transport.tcp.delayed_ack",
    "transport.aerotp.**",
    "transport.udp.kind",
    "flow.*.transport",
    "flow.*.count",
    "flow.*.start_s",
    "flow.*.traffic.**",
    // Options of other engines.
    "fluid.**",
    "limits.*",
    "measure.series",
];
