//! Columns of a result whose definition is easily implemented wrongly.

// A value that is not known fails, too.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use crate::common::{real, run, scenario, series};
use serde_json::{Value, json};

/// A file over a clean link.
fn file(bytes: u64, changes: &[(&str, Value)]) -> Value {
    let mut all = vec![
        ("runs", json!(1)),
        ("duration_s", json!(null)),
        ("link.channel", json!({ "kind": "none" })),
        ("flow", json!({ "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": bytes } } })),
    ];
    all.extend(changes.iter().cloned());
    scenario(&all)
}

/// A figure of the flow, and of all flows together.
fn figures(scenario: &Value, quantity: &str) -> Vec<f64> {
    real(&run(scenario, 1).rows, quantity).to_vec()
}

#[test]
fn a_send_buffer_holds_data_and_neither_syn_nor_fin() {
    for bytes in [1, 1000, 5000] {
        for kind in ["tcp", "scps-tp", "stp", "arq"] {
            let transport = json!({ "kind": kind, "segment_bytes": 1000 });
            let peak = figures(&file(bytes, &[("transport.tcp", transport)]), "peak_send_buffer_bytes");
            assert_eq!(peak, [bytes as f64; 2], "{kind}: all is sent at once, and kept for a round trip");
        }
    }
}

/// Data at 1 Mb/s causes acknowledgements of 40 bytes on a return path of 10 kb/s, which carries all of them in the
/// end.
#[test]
fn a_return_path_that_carries_everything_is_at_most_full() {
    let narrow = [
        ("link.return", json!({ "rate_bps": 1e4, "queue_bytes": 1e6 })),
        (
            "transport.tcp",
            json!({ "kind": "arq", "segment_bytes": 960, "header_bytes": 40, "window_frames": 2000, "rate_bps": 1e6, "rto": { "initial_s": 60 } }),
        ),
    ];
    let narrow = file(960_000, &narrow);
    let share = figures(&narrow, "back_channel_fraction");
    let duration = figures(&narrow, "duration_s");
    // A thousand acknowledgements of 32 ms each; the last ones arrive long after the last byte.
    let on_the_way_s = 1001.0 * 0.032;
    assert!(duration[0] < 10.0 && on_the_way_s > 32.0, "{duration:?}");
    for share in share {
        assert!((0.9..=1.0).contains(&share), "busy nearly all the time: {share}");
    }
}

#[test]
fn shares_of_the_return_path_add_up() {
    let two = json!({
        "short": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 2e4 } },
        "long": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 5e5 } },
    });
    let share = figures(&file(1, &[("flow", two)]), "back_channel_fraction");
    let [short, long, all] = share[..] else { panic!("{share:?}") };
    assert!(short > 0.0 && long > 5.0 * short, "{share:?}");
    assert!((short + long - all).abs() < 1e-12, "{share:?}");
}

/// Datagrams at a constant rate.
fn datagrams(rate_bps: f64, bytes: u64, start_s: f64) -> Value {
    let traffic = json!({ "kind": "cbr", "rate_bps": rate_bps, "payload_bytes": 1000, "bytes": bytes });
    json!({ "transport": "udp", "traffic": traffic, "start_s": start_s })
}

/// A hundred datagrams are still on the first hop when the warm-up ends, and the second hop loses all packets. Of the
/// ten datagrams sent afterwards, only those that reach it before the end count.
#[test]
fn packets_sent_during_the_warm_up_do_not_count_as_lost_after_it() {
    let path = [
        ("runs", json!(1)),
        ("duration_s", json!(2.55)),
        ("measure", json!({ "warmup_s": 1.0 })),
        ("link", json!(null)),
        ("path", json!(["far", "bad"])),
        (
            "hop",
            json!({
                "far": { "rate_bps": 1e7, "delay_s": 1.0 },
                "bad": { "rate_bps": 1e7, "delay_s": 0, "channel": { "kind": "loss", "loss": 1 } },
            }),
        ),
        ("transport", json!({ "udp": { "kind": "udp" } })),
        ("flow", json!({ "early": datagrams(1e6, 100_000, 0.0), "late": datagrams(8e4, 10_000, 1.05) })),
    ];
    let lost = figures(&scenario(&path), "loss_fraction");
    let [early, late, all] = lost[..] else { panic!("{lost:?}") };
    assert!(early.is_nan(), "nothing was sent since: {early}");
    assert!((late - 0.5).abs() < 0.11 && all == late, "{lost:?}");
}

/// Acknowledgements of 32 kb/s meet a return path of 10 kb/s with a short queue: it is full, not three times full.
#[test]
fn packets_dropped_before_the_return_path_do_not_load_it() {
    for (queue_packets, duration_s) in [(3, 20.0), (100_000, 20.0), (3, 3.0)] {
        let narrow = [
            ("duration_s", json!(duration_s)),
            ("link.return", json!({ "rate_bps": 1e4, "queue_packets": queue_packets })),
            (
                "transport",
                json!({ "arq": { "kind": "arq", "segment_bytes": 960, "header_bytes": 40, "rate_bps": 8e5, "rto": { "initial_s": 60 }, "window_frames": 4000 } }),
            ),
            ("flow", json!({ "file": { "transport": "arq", "traffic": { "kind": "file", "bytes": 1_920_000 } } })),
        ];
        for share in figures(&file(1, &narrow), "back_channel_fraction") {
            assert!((0.85..=1.0).contains(&share), "{queue_packets} packets, {duration_s} s: {share}");
        }
    }
}

/// A slower return path behind the gateways does not count.
#[test]
fn with_gateways_the_return_path_is_that_between_them() {
    let path = [
        ("runs", json!(1)),
        ("duration_s", json!(30)),
        ("link", json!(null)),
        ("path", json!(["near", "space", "far"])),
        (
            "hop",
            json!({
                "near": { "rate_bps": 1e6, "delay_s": 0.001 },
                "space": { "rate_bps": 1e6, "delay_s": 0.25, "return": { "rate_bps": 5e4 }, "gateway": true },
                "far": { "rate_bps": 1e6, "delay_s": 0.001, "return": { "rate_bps": 3e3 } },
            }),
        ),
    ];
    let share = figures(&scenario(&path), "back_channel_fraction");
    // At most one acknowledgement of 40 bytes for each packet of 1040.
    let most = 1e6 * 40.0 / 1040.0 / 5e4;
    assert!(share.iter().all(|&share| share > 0.3 * most && share <= most), "{share:?} of {most}");
}

/// The rate was above its mean while the flow was active.
#[test]
fn goodput_fraction_refers_to_the_recorded_rate_during_the_flow() {
    let fast_first = series("fast-first", "rate", "rate_bps", &[(0.0, 1e6), (10.0, 1e3)], 100.0);
    let changes = [
        ("duration_s", json!(9)),
        ("link.rate_bps", json!({ "kind": "rate-trace", "file": fast_first })),
        ("flow.file.traffic", json!({ "kind": "bulk" })),
    ];
    let share = figures(&file(1, &changes), "goodput_fraction");
    assert!(share.iter().all(|share| (0.8..1.0).contains(share)), "{share:?}");
}

/// Each of three hops damages nearly every packet, and each packet is corrected three times.
#[test]
fn a_packet_corrected_after_several_hops_counts_once() {
    let hop = || json!({ "rate_bps": 1e7, "delay_s": 0.01, "channel": { "kind": "ber", "ber": 4e-4 } });
    let path = [
        ("runs", json!(1)),
        ("duration_s", json!(10)),
        ("link", json!(null)),
        ("path", json!(["a", "b", "c"])),
        ("hop", json!({ "a": hop(), "b": hop(), "c": hop() })),
        ("transport", json!({ "udp": { "kind": "udp", "correction": { "bits": 40 } } })),
        ("flow", json!({ "data": datagrams(1e6, 1_000_000, 0.0) })),
    ];
    for share in figures(&scenario(&path), "mended_fraction") {
        assert!((0.99..=1.0).contains(&share), "{share}");
    }
}

/// Packets that a sender sent before it went down arrive after its restart; they are not part of the new transfer.
#[test]
fn data_from_before_a_restart_does_not_count_as_delivered_after_it() {
    for kind in ["tcp", "aerotp", "stp", "arq", "scps-tp"] {
        let changes = [
            ("duration_s", json!(20)),
            ("link", json!({ "rate_bps": 1e6, "delay_s": 1.0 })),
            ("transport", json!({ "tcp": { "kind": kind } })),
            ("flow.file.restart", json!({ "side": "sender", "at_s": 2.5, "down_for_s": 0.01 })),
        ];
        let scenario = file(200_000, &changes);
        for quantity in ["delay_mean_s", "delay_p50_s", "arrival_delay_mean_s"] {
            for delay in figures(&scenario, quantity) {
                assert!(!(delay < 0.992), "{kind}: {quantity} of {delay} s over a path of 1 s");
            }
        }
    }
}
