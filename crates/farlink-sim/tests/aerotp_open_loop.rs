//! AeroTP without acknowledgements in the engine: what is lost is what the closed forms say.

mod common;

use common::{once, set, setup};
use farlink_core::protocol::aerotp::Fec;
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

const BER: f64 = 1e-4;

/// Ten megabytes of full packets over a link of 5 Mb/s with independent bit errors.
fn scenario(transport: Value) -> Value {
    let mut scenario = json!({
        "link": { "rate_bps": 5e6, "delay_s": 0.01, "channel": { "kind": "ber", "ber": BER }, "return": { "channel": { "kind": "none" } } },
        "transport": { "aero": { "kind": "aerotp", "rate_bps": 5e6 } },
        "flow": { "file": { "transport": "aero", "traffic": { "kind": "file", "bytes": 1e7 } } },
    });
    for (key, value) in transport.as_object().expect("a table") {
        set(&mut scenario, &format!("transport.aero.{key}"), value.clone());
    }
    scenario
}

fn flow(scenario: &Value, seed: u64) -> FlowResult {
    once(&setup(scenario), seed).flows.remove(0)
}

/// Probability that a segment is lost with its header, of so many bytes.
fn header_loss(bytes: i32) -> f64 {
    1.0 - (1.0 - BER).powi(8 * bytes)
}

/// Loss of data among `packets` packets of equal length is as likely as `expected`, within four standard deviations.
fn assert_loss(flow: &FlowResult, expected: f64, packets: f64) {
    let lost = flow.skipped_bytes as f64 / (flow.skipped_bytes + flow.delivered_bytes) as f64;
    let sigma = (expected * (1.0 - expected) / packets).sqrt();
    assert!((lost - expected).abs() < 4.0 * sigma, "{lost}, expected {expected} +- {sigma}");
}

/// What gets lost is the header, or more wrong bytes in a codeword than it mends.
#[test]
fn parity_leaves_what_the_closed_form_says() {
    for words in [1_u16, 4, 8, 16] {
        let payload = 1500 - 44 - 4 - 4 * u32::from(words);
        let code = Fec::new(payload, words);
        let expected = 1.0 - (1.0 - header_loss(44)) * (1.0 - code.residual_loss(BER));
        let scenario = scenario(json!({ "mode": "quasi-reliable", "fec_words": words }));
        assert_loss(&flow(&scenario, 1), expected, 1e7 / f64::from(payload));
    }
}

#[test]
fn without_parity_any_wrong_bit_loses_a_packet() {
    let scenario = scenario(json!({ "mode": "unreliable" }));
    assert_loss(&flow(&scenario, 1), header_loss(1500), 1e7 / 1456.0);
}

/// Damaged payload may be worth more than none: only headers are lost then.
#[test]
fn damaged_payload_is_delivered_where_that_is_wanted() {
    let scenario = scenario(json!({ "mode": "unreliable", "deliver_damaged": true }));
    assert_loss(&flow(&scenario, 1), header_loss(40), 1e7 / 1456.0);
}

/// A datagram is on its own: what arrives is what no error hit.
#[test]
fn datagrams_arrive_as_often_as_no_bit_is_wrong() {
    let scenario = scenario(json!({ "mode": "datagram" }));
    let flow = flow(&scenario, 1);
    let (expected, packets) = (header_loss(1500), 1e7 / 1456.0);
    let lost = 1.0 - flow.delivered_bytes as f64 / 1e7;
    let sigma = (expected * (1.0 - expected) / packets).sqrt();
    assert!((lost - expected).abs() < 4.0 * sigma, "{lost}, expected {expected} +- {sigma}");
    assert_eq!((flow.sent_packets, flow.retransmitted_bytes, flow.skipped_bytes), (6869, 0, 0));
}

/// Nothing waits for anything: the file takes its transmission and one delay, and its end is known to both sides.
#[test]
fn a_file_takes_its_time_on_the_link_and_no_more() {
    let mut scenario = scenario(json!({ "mode": "unreliable" }));
    set(&mut scenario, "link.delay_s", json!(10.0));
    set(&mut scenario, "link.channel.ber", json!(0.0));
    let flow = flow(&scenario, 1);
    // While the first answer is under way, 20 s, every segment tells where the stream begins, in 4 bytes.
    let least_s = 10.0 + 1e7 * 1500.0 / 1456.0 * 8.0 / 5e6;
    let took_s = flow.finished.expect("nothing is lost").as_secs_f64();
    assert!(took_s >= least_s && took_s < 1.003 * least_s, "{took_s}, at least {least_s}");
    assert_eq!(flow.retransmitted_bytes, 0);
}
