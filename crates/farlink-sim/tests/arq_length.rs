//! ARQ over a fading optical link: frames whose length follows the bit error rate carry more than frames of any fixed
//! length.

use crate::common::expanded;
use farlink_core::optics::ReceiverSetting;
use farlink_core::trace::{MemoryTraces, Trace};
use farlink_sim::engine::{FlowResult, NoTrace, simulate};
use farlink_sim::resolve;
use serde_json::{Value, json};

const RATE_BPS: f64 = 622e6;

/// This many samples of 10 ms each at a bit error rate of 1e-8, and as many at 3e-4.
fn fades() -> Trace {
    let receiver = ReceiverSetting::default().receiver();
    let power_w = (0..20).map(|n| receiver.power_w(if n % 2 == 0 { 1e-8 } else { 3e-4 })).collect();
    Trace::Power { power_w, blocked: Vec::new(), is_relative: false, duration_s: 0.2 }
}

/// A quarter of a second over 300 m, with error-free acknowledgements.
fn flow(mode: &str, segment_bytes: u32, length: &Value) -> FlowResult {
    let mut scenario = json!({
        "duration_s": 0.25,
        "link": {
            "rate_bps": RATE_BPS, "delay_s": 1e-6,
            "channel": { "kind": "fading", "file": "fades" }, "return": { "channel": { "kind": "none" } },
        },
        "transport": { "arq": {
            "kind": "arq", "mode": mode, "segment_bytes": segment_bytes, "window_frames": 20_000, "rate_bps": 621e6,
            "nak": true, "rto": { "algorithm": "fixed", "initial_s": 2e-4 },
        } },
        "flow": { "bulk": { "transport": "arq", "traffic": { "kind": "bulk" } } },
    });
    if !length.is_null() {
        scenario["transport"]["arq"]["adaptive_length"] = length.clone();
    }
    let traces = MemoryTraces::default().with("fades", fades());
    let setup = resolve(&expanded(&scenario).points[0].scenario, &traces).unwrap();
    simulate(&setup, 1, 0, &mut NoTrace, &|| false).expect("the run is not stopped").flows.remove(0)
}

#[test]
fn adaptive_lengths_beat_every_fixed_length() {
    let selective = |bytes, length| flow("selective-repeat", bytes, &length).delivered_bytes as f64;
    let fixed = [100, 200, 400, 800, 1600, 3200, 6400].map(|bytes| selective(bytes, Value::Null));
    let best = fixed.into_iter().fold(0.0, f64::max);
    let genie = selective(6400, json!({ "estimate": "genie", "rule": "optimal" }));
    assert!(genie > 1.03 * best, "{genie} with a genie, {best} with the best of {fixed:?}");
    let estimated = selective(6400, json!({ "rule": "optimal", "memory_s": 1e-3, "prior_losses": 1e-3 }));
    assert!(estimated > 1.01 * best, "{estimated} with an estimate, {best} with the best of {fixed:?}");
    assert!(genie > estimated, "better knowledge gives more goodput");
}

/// Nothing gets past a frame that is too long for the present fading; otherwise the two differ by their headers.
#[test]
fn a_long_frame_does_not_block_go_back_n() {
    let genie = flow("go-back-n", 6400, &json!({ "estimate": "genie", "rule": "optimal" }));
    let kept = json!({ "estimate": "genie", "rule": "optimal", "min_bytes": 6400 });
    assert!(genie.delivered_bytes > flow("go-back-n", 6400, &kept).delivered_bytes);
}
