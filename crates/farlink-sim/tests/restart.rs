//! One end of a connection goes down and restarts: the other end notices by the packets, and both start again.

use crate::common::random::{channels, scenarios, tcp};
use crate::common::{cases, once, scenario, set, setup};
use farlink_core::Time;
use farlink_sim::engine::{FlowResult, RunResult};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const FILE_BYTES: u64 = 1_000_000;

fn restart(side: &str, at_s: f64) -> Value {
    json!({ "side": side, "at_s": at_s, "down_for_s": 1 })
}

/// A file that takes 8.5 s over an undisturbed link.
fn run(changes: &[(&str, Value)]) -> (FlowResult, RunResult) {
    let mut scenario = scenario(&[
        ("duration_s", Value::Null),
        ("transport.tcp.max_window_segments", json!(20)),
        ("flow.bulk.traffic", json!({ "kind": "file", "bytes": FILE_BYTES })),
    ]);
    changes.iter().for_each(|(path, value)| set(&mut scenario, path, value.clone()));
    let mut run = once(&setup(&scenario), 1);
    (run.flows.remove(0), run)
}

#[test]
fn a_file_is_sent_again_from_its_beginning() {
    for side in ["sender", "receiver"] {
        let (flow, run) = run(&[("flow.bulk.restart", restart(side, 4.0))]);
        assert_eq!((flow.delivered_bytes, flow.undelivered_bytes), (FILE_BYTES, 0), "{side}");
        // Nearly half of it had been delivered before and is discarded.
        assert!((400_000..500_000).contains(&flow.discarded_bytes), "{side}: {}", flow.discarded_bytes);
        let finished = flow.finished.expect("it arrives").as_secs_f64();
        assert!((13.4..18.0).contains(&finished), "{side}: {finished} s");
        assert!(!run.was_given_up && run.end < Time::from_secs(30), "{side}: {:?}", run.end);
    }
}

#[test]
fn a_finished_flow_is_not_restarted() {
    let figures = |changes: &[(&str, Value)]| format!("{:?}", run(changes).0);
    for side in ["sender", "receiver"] {
        assert_eq!(figures(&[("flow.bulk.restart", restart(side, 20.0))]), figures(&[]), "{side}");
    }
}

#[test]
fn constant_rate_traffic_starts_again() {
    let cbr = json!({ "kind": "cbr", "rate_bps": 8e4, "payload_bytes": 1000, "bytes": 100_000 });
    for side in ["sender", "receiver"] {
        let (flow, _) = run(&[("flow.bulk.traffic", cbr.clone()), ("flow.bulk.restart", restart(side, 4.0))]);
        assert_eq!(flow.delivered_bytes, 100_000, "{side}");
        assert!((38_000..=41_000).contains(&flow.discarded_bytes), "{side}: {}", flow.discarded_bytes);
        // Ten seconds of it, from the restart at 5 s on or a little later.
        let finished = flow.finished.expect("it arrives").as_secs_f64();
        assert!((14.5..19.0).contains(&finished), "{side}: {finished} s");
    }
}

/// Without a handshake an old connection cannot be told from a new one.
#[test]
fn a_transport_without_a_handshake_stalls() {
    for side in ["sender", "receiver"] {
        let (flow, _) = run(&[
            ("transport.tcp", json!({ "kind": "arq", "segment_bytes": 1000 })),
            ("flow.bulk.restart", restart(side, 4.0)),
            ("duration_s", json!(60)),
        ]);
        assert_eq!(flow.finished, None, "{side}");
        assert_eq!(flow.delivered_bytes + flow.undelivered_bytes, FILE_BYTES, "{side}: {flow:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    /// Whatever the link does, a file arrives completely in the end, and nothing counts twice.
    #[test]
    fn a_file_arrives_once(
        mut config in tcp(), there in channels(), back in channels(), side in select(&["sender", "receiver"][..]),
        at_s in 0.0..5.0_f64, bytes in 1_u64..60_000, queue in 2_u64..50,
    ) {
        config["handshake"] = true.into();
        config["fin"] = true.into();
        config.as_object_mut().unwrap().remove("max_retransmissions");
        let hop = json!({
            "rate_bps": 1e6, "delay_s": 0.05, "queue_packets": queue, "channel": there, "return": { "channel": back },
        });
        let (flow, run) = run(&[
            ("transport.tcp", config),
            ("link", hop),
            ("flow.bulk.traffic.bytes", bytes.into()),
            ("flow.bulk.restart", restart(side, at_s)),
        ]);
        prop_assert!(!run.was_given_up);
        prop_assert_eq!(flow.delivered_bytes + flow.undelivered_bytes, bytes);
        // If a receiver restarts after it acknowledged the last byte, the sender does not notice.
        prop_assert!(flow.undelivered_bytes == 0 || (side == "receiver" && flow.discarded_bytes >= bytes), "{:?}", flow);
        let payload = flow.sent_bytes - flow.overhead_bytes;
        prop_assert!(flow.delivered_bytes + flow.discarded_bytes + flow.retransmitted_bytes <= payload);
    }

    /// Any transport and traffic: nothing panics, and the counts add up.
    #[test]
    fn any_flow_may_restart(mut scenario in scenarios(), side in select(&["sender", "receiver"][..]), seed in 0_u64..100) {
        let duration_s = scenario["duration_s"].as_f64().unwrap_or(f64::INFINITY);
        // Best effort without a handshake is refused.
        for transport in scenario["transport"].as_object_mut().unwrap().values_mut() {
            if transport["kind"] == "scps-tp" && transport.get("hold_time_s").is_some() {
                transport["handshake"] = true.into();
            }
        }
        for flow in scenario["flow"].as_object_mut().unwrap().values_mut() {
            let latest_start_s = ["start_s", "start_spread_s"].iter().filter_map(|key| flow[key].as_f64()).sum::<f64>();
            let at_s = latest_start_s + 0.1;
            if flow["traffic"]["kind"] != "transfers" && at_s < duration_s {
                flow["restart"] = restart(side, at_s);
            }
        }
        let setup = setup(&scenario);
        for flow in once(&setup, seed).flows {
            let of_flow = &setup.flows[flow.spec];
            if let (true, Some(_), true) = (of_flow.is_finite(), of_flow.restart, setup.warmup == Time::ZERO) {
                prop_assert_eq!(flow.finished.is_some(), flow.undelivered_bytes == 0);
            }
        }
    }
}
