//! Stores of gateways under a constant load that every hop can carry: they stay bounded, however long the run, and
//! everything offered arrives. Every protocol in each of its modes, between the gateways and on the edges.

use crate::common::random::without_idle_keys;
use crate::common::{once, setup};
#[allow(unused_imports, unused_macros)] // what only the core's own tests need of it
#[path = "../../farlink-core/tests/pair/examples.rs"]
mod examples;

use examples::{Example, Guarantee, examples};
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

/// Below the capacity of the slowest example, with small packets: one in 160 ms.
const OFFERED_BPS: f64 = 5e3;
const PAYLOAD_BYTES: u64 = 100;
/// Less than is offered within the shortest run, so a store that is never released fills up.
const STORE_BYTES: u64 = 20_000;

fn chain(own: &Value, edge: &Value, loss: f64, duration_s: f64) -> Value {
    json!({
        "duration_s": duration_s,
        "runs": 1,
        "path": ["a", "radio", "c"],
        "hop": {
            "a": { "rate_bps": 1e7, "delay_s": 0.001 },
            "radio": {
                "rate_bps": 2e6, "delay_s": 0.01, "channel": { "kind": "loss", "loss": loss },
                "gateway": { "edge_transport": "edge", "buffer_bytes": STORE_BYTES },
            },
            "c": { "rate_bps": 1e7, "delay_s": 0.001 },
        },
        "transport": { "own": own, "edge": edge },
        "flow": {
            "steady": {
                "transport": "own",
                "traffic": { "kind": "cbr", "rate_bps": OFFERED_BPS, "payload_bytes": PAYLOAD_BYTES },
            },
        },
    })
}

fn run(own: &Value, edge: &Value, loss: f64, duration_s: f64) -> FlowResult {
    once(&setup(&chain(own, edge, loss, duration_s)), 1).flows.remove(0)
}

/// The scenario's configuration of each example with a stream. Datagrams pass gateways as they pass routers.
fn streams() -> impl Iterator<Item = (Example, Value)> {
    let streams = examples().into_iter().filter(|example| example.guarantee != Guarantee::Datagrams);
    streams.map(|example| {
        let keys = without_idle_keys(serde_json::to_value(&example.transport).unwrap());
        (example, keys)
    })
}

/// Bytes offered in a run, except for those that may be in flight at the end.
fn offered(duration_s: f64, late_s: f64) -> std::ops::RangeInclusive<u64> {
    let bytes = |seconds: f64| (seconds * OFFERED_BPS / 8.0) as u64;
    bytes(duration_s - late_s) - PAYLOAD_BYTES..=bytes(duration_s) + PAYLOAD_BYTES
}

/// Runs each example for two lengths and returns those for which `is_well` does not hold.
fn failures(
    play: impl Fn(&Value, f64) -> FlowResult,
    is_well: impl Fn(&Example, f64, &FlowResult) -> bool,
) -> Vec<String> {
    let mut failures = Vec::new();
    for (example, keys) in streams() {
        for duration_s in [120.0, 240.0] {
            let flow = play(&keys, duration_s);
            if !is_well(&example, duration_s, &flow) {
                let FlowResult { delivered_bytes, skipped_bytes, peak_custody_bytes, .. } = flow;
                failures.push(format!(
                    "{}: in {duration_s} s {delivered_bytes} bytes, {skipped_bytes} skipped, {peak_custody_bytes} in custody\n",
                    example.name
                ));
            }
        }
    }
    failures
}

/// The longest pause is a retransmission timer of a second.
fn arrives_as_offered(_: &Example, duration_s: f64, flow: &FlowResult) -> bool {
    offered(duration_s, 2.0).contains(&flow.delivered_bytes) && flow.peak_custody_bytes <= 2_500
}

#[test]
fn no_store_grows_with_time_for_any_transport_between_the_gateways() {
    let failed = failures(|keys, duration_s| run(keys, &json!({ "kind": "tcp" }), 0.0, duration_s), arrives_as_offered);
    assert!(failed.is_empty(), "{}", failed.concat());
}

#[test]
fn no_store_grows_with_time_for_any_transport_at_the_edges() {
    let failed = failures(|keys, duration_s| run(&json!({ "kind": "tcp" }), keys, 0.0, duration_s), arrives_as_offered);
    assert!(failed.is_empty(), "{}", failed.concat());
}

/// Data given up for its age, or after too many transmissions, leaves the store as well and counts as skipped.
#[test]
fn no_store_grows_with_time_where_packets_are_lost() {
    let play = |keys: &Value, duration_s| run(keys, &json!({ "kind": "tcp" }), 0.01, duration_s);
    let failed = failures(play, |example, duration_s, flow| {
        let known = flow.delivered_bytes + flow.skipped_bytes;
        let is_kept = example.guarantee != Guarantee::All || flow.skipped_bytes == 0;
        is_kept && offered(duration_s, 10.0).contains(&known) && flow.peak_custody_bytes < STORE_BYTES / 2
    });
    assert!(failed.is_empty(), "{}", failed.concat());
}
