//! ARQ in the packet engine: bytes are conserved, and each hybrid has its purpose.

use crate::common::random::{arq, channels};
use crate::common::{cases, once, setup};
use farlink_sim::engine::FlowResult;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A link of a megabit per second; a file of this many bytes, or endless data for 20 s.
fn flow(transport: Value, channel: &Value, back: &Value, bytes: Option<u64>) -> FlowResult {
    let traffic = bytes.map_or(json!({ "kind": "bulk" }), |bytes| json!({ "kind": "file", "bytes": bytes }));
    let mut scenario = json!({
        "link": { "rate_bps": 1e6, "delay_s": 0.05, "channel": channel, "return": { "channel": back } },
        "transport": { "arq": transport },
        "flow": { "one": { "transport": "arq", "traffic": traffic } },
    });
    scenario["transport"]["arq"]["kind"] = "arq".into(); // also of those that are written here
    if bytes.is_none() {
        scenario["duration_s"] = 20.into();
    }
    let mut run = once(&setup(&scenario), 1);
    let flow = run.flows.remove(0);
    assert_eq!(flow.return_bytes, run.return_bytes);
    flow
}

/// Bounds that always hold.
fn check(transport: &Value, flow: &FlowResult) -> Result<(), TestCaseError> {
    let number = |key: &str| transport[key].as_u64();
    let window = if transport["mode"] == "stop-and-wait" { 1 } else { number("window_frames").unwrap() };
    let most = window * number("segment_bytes").unwrap();
    prop_assert!(flow.peak_send_buffer_bytes <= most, "{} of {}", flow.peak_send_buffer_bytes, most);
    prop_assert!(flow.peak_reorder_bytes <= most);
    let sent_payload = flow.sent_bytes - flow.overhead_bytes;
    prop_assert!(flow.delivered_bytes + flow.retransmitted_bytes <= sent_payload);
    prop_assert!(flow.lost_packets <= flow.sent_packets);
    prop_assert_eq!(flow.delay.count, flow.delivered_packets);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150)))]

    #[test]
    fn a_file_arrives_completely_over_any_channel_with_few_losses(
        transport in arq(), channel in channels(), back in channels(), bytes in 1_u64..40_000,
    ) {
        let flow = flow(transport.clone(), &channel, &back, Some(bytes));
        check(&transport, &flow)?;
        prop_assert_eq!((flow.delivered_bytes, flow.skipped_bytes), (bytes, 0));
        prop_assert!(flow.finished.is_some());
    }

    #[test]
    fn abandoned_frames_are_counted(
        mut transport in arq(), channel in channels(), back in channels(), bytes in 1_u64..40_000, most in 1_u64..3,
    ) {
        transport["max_transmissions"] = most.into();
        let flow = flow(transport.clone(), &channel, &back, Some(bytes));
        check(&transport, &flow)?;
        prop_assert_eq!(flow.delivered_bytes + flow.skipped_bytes, bytes);
        prop_assert!(flow.finished.is_some());
    }
}

/// With few errors, parity sent on request beats parity sent always, and both beat retransmission. With many errors,
/// plain ARQ starves, because e^-4 of its frames arrive intact; so does, to a lesser degree, a scheme that loses
/// headers.
#[test]
fn each_hybrid_has_its_range() {
    let clear = json!({ "kind": "none" });
    let goodput = |ber: f64, more: Value| {
        let mut transport = json!({ "window_frames": 30, "buffer_frames": 240, "nak": true, "timestamps": true });
        transport.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let noisy = json!({ "kind": "ber", "ber": ber });
        flow(transport, &noisy, &clear, None).delivered_bytes as f64 * 8.0 / 20.0 / 1e6
    };
    let all = |ber| {
        let first = json!({ "correction": { "symbols": 8 } });
        let second = json!({ "incremental": { "parity_bytes": 16, "increments": 6 } });
        (goodput(ber, json!({})), goodput(ber, first), goodput(ber, second))
    };
    let (plain, first, second) = all(1e-5);
    // 1000 bytes of 1110 with five blocks of 16 bytes of parity, at most 0.901; of 1030, at most 0.971.
    assert!(
        plain < first && (0.885..0.901).contains(&first) && (0.93..0.971).contains(&second),
        "{plain} {first} {second}"
    );
    let (plain, first, second) = all(5e-4);
    assert!(
        plain < 0.01 && (0.885..0.901).contains(&first) && (0.3..0.6).contains(&second),
        "{plain} {first} {second}"
    );
}

/// Without errors, the second kind costs nothing and the first its parity.
#[test]
fn incremental_redundancy_costs_nothing_without_errors() {
    let clear = json!({ "kind": "none" });
    let transport = |more: Value| {
        let mut transport = json!({ "segment_bytes": 1000, "window_frames": 30, "nak": true });
        transport.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        flow(transport, &clear, &clear, Some(100_000))
    };
    let plain = transport(json!({}));
    assert_eq!(transport(json!({ "incremental": {} })).sent_bytes, plain.sent_bytes);
    assert!(transport(json!({ "correction": { "symbols": 8 } })).sent_bytes > plain.sent_bytes + 100 * 5 * 16 - 1);
}

/// Stop-and-wait sends a frame per round trip; go-back-N retransmits a window per loss.
#[test]
fn goodput_matches_the_window_formula() {
    let clear = json!({ "kind": "none" });
    let one = flow(json!({ "mode": "stop-and-wait" }), &clear, &clear, Some(10_000));
    // 1020 bytes forward and an acknowledgement of 20 back, at 1 Mbit/s, and twice 50 ms.
    let cycle_s = 0.1 + 1040.0 * 8e-6;
    let last_s = 9.0 * cycle_s + 0.05 + 1020.0 * 8e-6;
    assert!((one.finished.unwrap().as_secs_f64() - last_s).abs() < 1e-9);
}
