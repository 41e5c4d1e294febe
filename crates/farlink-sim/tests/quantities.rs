//! Columns of a result whose meaning is easily got wrong.

use crate::common::{real, run, scenario};
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

/// A figure of the flow, and of all together.
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

/// Data at 1 Mb/s whose acknowledgements of 40 bytes find a way back of 10 kb/s, which carries all of them in the end.
#[test]
fn a_way_back_that_carries_everything_is_never_more_than_full() {
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
    // A thousand acknowledgements of 32 ms, the last of which arrive long after the last byte.
    let on_the_way_s = 1001.0 * 0.032;
    assert!(duration[0] < 10.0 && on_the_way_s > 32.0, "{duration:?}");
    for share in share {
        assert!((0.9..=1.0).contains(&share), "busy nearly all the time: {share}");
    }
}

/// The shares of flows that start together add up to that of all.
#[test]
fn shares_of_the_way_back_add_up() {
    let two = json!({
        "short": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 2e4 } },
        "long": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 5e5 } },
    });
    let share = figures(&file(1, &[("flow", two)]), "back_channel_fraction");
    let [short, long, all] = share[..] else { panic!("{share:?}") };
    assert!(short > 0.0 && long > 5.0 * short, "{share:?}");
    assert!((short + long - all).abs() < 1e-12, "{share:?}");
}
