//! Every protocol in each of its modes, with the guarantee of the mode.

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::{CongestionControl, Variant};
use serde_json::{Value, json};

/// The guarantee that a mode gives to its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
    /// Every byte, in order, once.
    All,
    /// Bytes in order, each at most once; data given up is reported in its place.
    InOrder,
    /// Only that every datagram that arrives was sent.
    Datagrams,
}

/// A transport in one of its modes.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) transport: TransportConfig,
    pub(crate) guarantee: Guarantee,
}

/// Payload bytes of a full packet in every example: a few kilobytes make many packets.
const SEGMENT_BYTES: u32 = 100;

/// Small packets and windows of every protocol.
///
/// # Panics
/// If a protocol has no example.
pub(crate) fn examples() -> Vec<Example> {
    TransportConfig::KINDS.iter().flat_map(|kind| of_kind(kind)).collect()
}

fn of_kind(kind: &str) -> Vec<Example> {
    let keep = |guarantee, modes: Vec<Value>| -> Vec<Example> {
        modes.into_iter().map(|mode| example(kind, mode, guarantee)).collect()
    };
    match kind {
        "tcp" => keep(Guarantee::All, tcp()),
        "stp" => keep(Guarantee::All, stp()),
        "scps-tp" => [keep(Guarantee::All, scps()), keep(Guarantee::InOrder, best_effort())].concat(),
        "udp" => keep(Guarantee::Datagrams, vec![json!({}), json!({ "copies": 3, "copy_spacing_s": 0.01 })]),
        "arq" => [keep(Guarantee::All, arq()), keep(Guarantee::InOrder, limited_arq())].concat(),
        "aerotp" => [
            keep(Guarantee::All, aerotp()),
            keep(Guarantee::InOrder, aerotp_streams()),
            keep(Guarantee::Datagrams, aerotp_datagrams()),
        ]
        .concat(),
        _ => panic!("{kind} has no example: add its modes here"),
    }
}

/// Each version, each congestion control, and the options.
fn tcp() -> Vec<Value> {
    let versions = Variant::ALL.iter().map(|variant| json!({ "variant": variant.name() }));
    let controls = CongestionControl::ALL.iter().map(|control| json!({ "congestion_control": control.name() }));
    let options =
        [json!({ "pacing": true }), json!({ "timestamps": true, "delayed_ack": false }), json!({ "fin": false })];
    let recovery = [
        json!({ "variant": "sack", "prr": true, "dsack": true, "f_rto": true }),
        json!({ "variant": "none", "f_rto": true, "congestion_control": "none" }),
        json!({ "variant": "rack", "prr": false, "dsack": false, "f_rto": false, "tail_loss_probe": false }),
        json!({ "variant": "rack", "timestamps": true, "pacing": true }),
    ];
    versions.chain(controls).chain(options).chain(recovery).collect()
}

/// Each mode with each kind of acknowledgement, timer, hybrid and length, but without short sequence numbers, because
/// this network may hold a frame until its number is reused.
fn arq() -> Vec<Value> {
    let modes = ["stop-and-wait", "go-back-n", "selective-repeat"];
    let options = [
        json!({}),
        json!({ "ack": "per-packet", "timestamps": true }),
        json!({ "nak": true, "piggyback_timeout_s": 0.1 }),
        json!({ "nak": true, "timer": "receiver" }),
        json!({ "correction": { "symbols": 2 }, "rate_bps": 1e5 }),
        json!({ "nak": true, "incremental": { "first_parity_bytes": 4, "parity_bytes": 8, "increments": 3 } }),
        json!({ "adaptive_length": { "min_bytes": 20, "memory_s": 0.2 } }),
    ];
    let with_mode = |mode: &str, options: &Value| {
        let mut keys = options.clone();
        keys["mode"] = json!(mode);
        keys
    };
    let every = modes.iter().flat_map(|mode| options.iter().map(move |options| with_mode(mode, options)));
    let blocks = [
        json!({ "sack_blocks": 2 }),
        json!({ "sack_blocks": 0, "nak": true, "timer": "receiver" }),
        json!({ "compatible": true, "timestamps": true }),
    ];
    let lengths = [
        json!({ "estimate": "genie", "rule": "optimal", "min_bytes": 7 }),
        json!({ "rule": "optimal", "min_bytes": 1, "memory_s": 3, "prior_losses": 1 }),
        json!({ "rule": "two-lengths", "min_bytes": 33, "memory_s": 0.5 }),
    ]
    .map(|table| json!({ "nak": true, "adaptive_length": table }));
    every.chain(blocks).chain(lengths).collect()
}

fn limited_arq() -> Vec<Value> {
    let modes = ["stop-and-wait", "go-back-n", "selective-repeat"];
    modes.map(|mode| json!({ "mode": mode, "max_transmissions": 2, "nak": true })).into()
}

/// Both kinds of congestion control, with and without unasked reports.
fn stp() -> Vec<Value> {
    vec![
        json!({ "max_window_segments": 20 }),
        json!({ "congestion": "rate", "rate_bps": 1e5 }),
        json!({ "congestion": "rate", "rate_bps": 1e6, "ustat": false, "handshake": false, "receive_window_segments": 8 }),
        json!({ "stat_ranges": 1, "poll_every_segments": 3, "max_window_segments": 12 }),
    ]
}

/// The reliable modes of AeroTP without a deadline, with each way to acknowledge and to send.
fn aerotp() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "mode": "near-reliable", "acks_per_mack": 1 }),
        json!({ "acks_per_mack": 12, "mack_timeout_s": 0.3 }),
        json!({ "rate_bps": 1e5, "copies": 3 }),
        json!({ "rate_bps": 1e6, "spare_copies": true, "opens": "both" }),
        json!({ "receive_buffer_bytes": 400 }),
        json!({ "opens": "both", "keep_alive_s": 5 }),
        json!({ "fec_words": 3, "rate_bps": 1e5, "copies": 2, "mack_parity": false }),
        json!({ "mode": "near-reliable", "fec_share": 0.2, "opens": "both" }),
        json!({ "coded": {} }),
        json!({ "coded": { "block_symbols": 5, "completion": 0.6, "expected_loss": 0.3 }, "mode": "near-reliable", "rate_bps": 1e5 }),
        json!({ "coded": { "expected_loss": 0 }, "opens": "both", "acks_per_mack": 3, "receive_buffer_bytes": 500 }),
        json!({ "coded": {}, "adaptive_length": { "min_bytes": 20, "memory_s": 3 }, "rate_bps": 1e5 }),
        json!({ "adaptive_length": { "min_bytes": 20, "memory_s": 0.2 } }),
        json!({ "adaptive_length": { "min_bytes": 1, "estimate": "genie" }, "copies": 2, "rate_bps": 1e5 }),
    ]
}

/// The modes of AeroTP whose stream may have gaps: those without acknowledgements, and those with a deadline.
fn aerotp_streams() -> Vec<Value> {
    vec![
        json!({ "deadline_s": 0.1 }),
        json!({ "deadline_s": 0.3, "rate_bps": 1e6, "spare_copies": true, "adaptive_length": { "min_bytes": 20 } }),
        json!({ "mode": "near-reliable", "deadline_s": 0.05, "rate_bps": 1e5, "copies": 2, "receive_buffer_bytes": 500 }),
        json!({ "deadline_s": 0.2, "coded": { "block_symbols": 5 }, "rate_bps": 1e5, "opens": "both" }),
        json!({ "mode": "unreliable" }),
        json!({ "mode": "unreliable", "hold_time_s": 0.1, "opens": "both" }),
        json!({
            "mode": "quasi-reliable", "fec_words": 4, "erasure": { "source": 4, "repair": 2 }, "rate_bps": 1e5, "mack_parity": true,
            "mode_changes": [{ "at_s": 0.05, "mode": "unreliable" }, { "at_s": 0.2, "mode": "quasi-reliable" }],
        }),
        json!({ "mode": "unreliable", "deliver_damaged": true, "rate_bps": 1e5 }),
        json!({ "mode": "quasi-reliable", "fec_words": 4 }),
        json!({ "mode": "quasi-reliable", "fec_words": 16, "hold_time_s": 0.3, "rate_bps": 1e5 }),
        json!({ "mode": "quasi-reliable", "fec_words": 0, "erasure": { "source": 6, "repair": 3 } }),
        json!({ "mode": "quasi-reliable", "fec_share": 0.1, "erasure": { "source": 6, "repair": 3 } }),
        json!({ "deadline_s": 0.3, "fec_share": 0.1, "rate_bps": 1e5 }),
        json!({
            "mode": "quasi-reliable", "fec_words": 2, "adaptive_fec": { "report_every_s": 0.05 }, "rate_bps": 1e5, "mack_parity": true,
            "erasure": { "source": 4, "repair": 1, "timeout_s": 0.02 }, "hold_time_s": 0.2,
        }),
        json!({ "mode": "unreliable", "deadline_s": 0.05, "rate_bps": 1e5 }),
        json!({ "mode": "unreliable", "rate_control": "learnt", "opens": "both", "initial_rto_s": 0.1 }),
        json!({
            "mode": "quasi-reliable", "fec_words": 2, "rate_control": "friendly", "initial_rto_s": 0.1, "acks_per_mack": 3, "hold_time_s": 0.2,
            "adaptive_fec": { "report_every_s": 0.05 }, "erasure": { "source": 4, "repair": 1, "timeout_s": 0.02 },
            "mode_changes": [{ "at_s": 0.05, "mode": "unreliable" }, { "at_s": 0.2, "mode": "quasi-reliable" }],
        }),
    ]
}

fn aerotp_datagrams() -> Vec<Value> {
    vec![
        json!({ "mode": "datagram" }),
        json!({ "mode": "datagram", "rate_bps": 1e5 }),
        json!({ "mode": "datagram", "rate_bps": 1e5, "deadline_s": 0.02 }),
    ]
}

/// Each extension of SCPS-TP.
fn scps() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "variant": "sack" }),
        json!({ "congestion_control": "vegas", "timestamps": true }),
        json!({ "congestion_control": "none", "rate_bps": 2e5 }),
        json!({ "loss_means": "corruption", "snack_vector_bytes": 1 }),
        json!({ "loss_means": "signalled" }),
        json!({ "header_compression": true, "handshake": false }),
        json!({ "copies": 3, "copy_spacing_s": 0.005 }),
        json!({ "ack_every_segments": 8, "ack_interval_s": 0.1 }),
    ]
}

/// Best-effort transport of SCPS-TP.
fn best_effort() -> Vec<Value> {
    vec![
        json!({ "hold_time_s": 0.2 }),
        json!({ "max_transmissions": 2, "hold_time_s": 0.5 }),
        json!({ "max_transmissions": 1, "hold_time_s": 0.1, "variant": "newreno" }),
    ]
}

fn example(kind: &str, mode: Value, guarantee: Guarantee) -> Example {
    let size = if kind == "aerotp" { ("packet_bytes", SEGMENT_BYTES + 48) } else { ("segment_bytes", SEGMENT_BYTES) };
    let mut keys = json!({ "kind": kind, size.0: size.1 });
    if kind == "tcp" || kind == "scps-tp" {
        keys["max_window_segments"] = json!(20);
    }
    if kind == "arq" && mode["mode"] != "stop-and-wait" {
        keys["window_frames"] = json!(20);
    }
    let Value::Object(mode) = mode else { panic!("a mode is a table") };
    let words: Vec<String> = mode.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    keys.as_object_mut().expect("it is a table").extend(mode);
    let transport: TransportConfig =
        serde_json::from_value(keys.clone()).unwrap_or_else(|error| panic!("{keys} is no transport: {error}"));
    transport.as_dyn().check().unwrap_or_else(|error| panic!("{keys} is refused: {error}"));
    Example { name: format!("{kind} {}", words.join(", ")), transport, guarantee }
}

/// Calls a function with the configuration of a transport, whatever its type: one arm per protocol.
macro_rules! with_config {
    ($transport:expr, |$config:ident| $body:expr) => {
        match $transport {
            farlink_core::protocol::TransportConfig::Tcp($config) => $body,
            farlink_core::protocol::TransportConfig::ScpsTp($config) => $body,
            farlink_core::protocol::TransportConfig::Udp($config) => $body,
            farlink_core::protocol::TransportConfig::Arq($config) => $body,
            farlink_core::protocol::TransportConfig::Stp($config) => $body,
            farlink_core::protocol::TransportConfig::Aerotp($config) => $body,
        }
    };
}
pub(crate) use with_config;
