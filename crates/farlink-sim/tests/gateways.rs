//! Flows that gateways split: nothing is lost unseen, nothing comes twice.

mod common;

use common::{once, setup};
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

fn chain(changes: &[(&str, Value)]) -> Value {
    let mut scenario = json!({
        "runs": 1,
        "path": ["lan", "space", "ground"],
        "hop": {
            "lan": { "rate_bps": 1e8, "delay_s": 0.001 },
            "space": { "rate_bps": 1e6, "delay_s": 0.25, "gateway": true },
            "ground": { "rate_bps": 1e8, "delay_s": 0.01 },
        },
        "transport": {
            "own": { "kind": "tcp", "segment_bytes": 1000, "initial_ssthresh_segments": 60, "max_window_segments": 60 },
            "edge": { "kind": "tcp", "segment_bytes": 1000, "receive_window_segments": 50 },
        },
        "flow": { "file": { "transport": "own", "traffic": { "kind": "file", "bytes": 1_000_000 } } },
    });
    for (path, value) in changes {
        common::set(&mut scenario, path, value.clone());
    }
    scenario
}

fn run(scenario: &Value) -> FlowResult {
    once(&setup(scenario), 1).flows.remove(0)
}

#[test]
fn look() {
    for changes in [
        vec![],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "buffer_bytes": 50_000}))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "custody": "disk"}))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "crash": {"side":"sender","at_s":3,"down_for_s":2}})), ("duration_s", json!(200))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "buffer_bytes": 100_000, "crash": {"side":"sender","at_s":3,"down_for_s":2}})), ("duration_s", json!(200))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "custody": "disk", "crash": {"side":"sender","at_s":3,"down_for_s":2}})), ("duration_s", json!(200))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "crash": {"side":"receiver","at_s":3,"down_for_s":2}})), ("duration_s", json!(200))],
        vec![("hop.space.gateway", json!({"edge_transport": "edge", "custody": "disk", "crash": {"side":"receiver","at_s":3,"down_for_s":2}})), ("duration_s", json!(200))],
    ] {
        let flow = run(&chain(&changes));
        println!("{changes:?}\n end {:?} delivered {} lost {} undelivered {} finished {:?} sent {} retr {} peak {} delay {:?} n {}", flow.measured, flow.delivered_bytes, flow.lost_in_custody_bytes, flow.undelivered_bytes, flow.finished, flow.sent_bytes, flow.retransmitted_bytes, flow.peak_custody_bytes, flow.delay.mean(), flow.delivered_packets);
    }
}
