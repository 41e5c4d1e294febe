//! Paths with round trips of minutes to a day: AeroTP works over them, and unsuitable settings are refused or named.

use crate::common::{cases, once, set, setup, try_run};
use farlink_sim::RunError;
use farlink_sim::engine::FlowResult;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// A file over 2 Mb/s with losses in both directions.
fn scenario(delay_s: f64, loss: f64, transport: Value, changes: &[(&str, Value)]) -> Value {
    let channel = json!({ "kind": "loss", "loss": loss });
    let mut scenario = json!({
        "duration_s": 1e7,
        "runs": 1,
        "link": { "rate_bps": 2e6, "delay_s": delay_s, "channel": channel, "return": { "channel": channel } },
        "transport": { "own": transport },
        "flow": { "file": { "transport": "own", "traffic": { "kind": "file", "bytes": 1e6 } } },
    });
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn run(scenario: &Value) -> FlowResult {
    once(&setup(scenario), 1).flows.remove(0)
}

fn message(scenario: &Value) -> String {
    match try_run(scenario, 1) {
        Err(RunError::Scenario(error)) => format!("{error}; {}", error.remedy),
        other => panic!("{other:?}"),
    }
}

#[test]
fn round_trips_beyond_half_the_timestamp_range_work() {
    let round_trips = |delay_s: f64| {
        let transport =
            json!({ "kind": "aerotp", "rate_bps": 2e6, "give_up_after_s": 3e5, "initial_rto_s": 2.5 * delay_s });
        let flow = run(&scenario(delay_s, 1e-3, transport, &[("flow.file.traffic.bytes", json!(1e7))]));
        assert_eq!((flow.aborted, flow.finished.is_some()), (None, true), "{delay_s} s: {flow:?}");
        flow.finished.unwrap().as_secs_f64() / (2.0 * delay_s)
    };
    for delay_s in [1070.0, 1080.0, 1340.0, 2200.0, 10_000.0, 43_000.0] {
        // One round trip for the lost segments and another for some of them, after half a round trip.
        assert!((1.4..2.8).contains(&round_trips(delay_s)), "{delay_s} s: {}", round_trips(delay_s));
    }
}

#[test]
fn timers_shorter_than_the_round_trip_are_refused() {
    let aerotp = |delay_s: f64, give_up_after_s: f64| {
        let transport = json!({ "kind": "aerotp", "give_up_after_s": give_up_after_s });
        message(&scenario(delay_s, 0.0, transport, &[]))
    };
    let early = aerotp(1800.0, 3600.0);
    assert!(
        early.starts_with("transport.own.give_up_after_s: 3600 s are over") && early.contains("give 10800"),
        "{early}"
    );
    let far = aerotp(68_452.0, 1e6);
    assert!(far.contains("longer than timestamps of AeroTP can tell") && far.contains("136902"), "{far}");
    let datagrams = json!({ "kind": "aerotp", "mode": "datagram" });
    assert!(run(&scenario(70_000.0, 0.0, datagrams, &[])).finished.is_some(), "nobody answers them");
}

#[test]
fn windows_too_small_for_the_path_are_named() {
    let notes = |delay_s: f64, window: Value| {
        let transport = json!({ "kind": "aerotp", "receive_buffer_bytes": window, "give_up_after_s": 1e5 });
        try_run(&scenario(delay_s, 0.1, transport, &[]), 1).unwrap().notes
    };
    assert_eq!([notes(10.0, Value::Null), notes(10.0, json!(1e8))], [[""; 0], [""; 0]]);
    let short = notes(10.0, json!(5e6));
    assert!(short[0].starts_with("transport.own.receive_buffer_bytes = 5000000 holds up the path"), "{short:?}");
    let far = notes(20_000.0, Value::Null);
    assert!(far.iter().any(|note| note.contains("sequence numbers tell no more apart")), "{far:?}");
}

/// Any transport of AeroTP with connections, with the retransmission interval that the path needs or a shorter one.
fn transports() -> impl Strategy<Value = Value> {
    let keys = select(vec![
        json!({ "rate_bps": 2e6 }),
        json!({}),
        json!({ "rate_control": "friendly" }),
        json!({ "coded": {} }),
        json!({ "coded": {}, "rate_bps": 2e6 }),
        json!({ "spare_copies": true }),
        json!({ "mode": "near-reliable", "rate_bps": 1e6, "copies": 2 }),
        json!({ "mode": "quasi-reliable", "rate_bps": 2e6 }),
        json!({ "mode": "quasi-reliable", "rate_bps": 2e6, "erasure": { "source": 10, "repair": 4 } }),
        json!({ "mode": "unreliable", "rate_bps": 2e6, "hold_time_s": 1 }),
    ]);
    (keys, any::<bool>(), select(vec![0.05, 0.4, 1.2])).prop_map(|(mut keys, both, share)| {
        keys["kind"] = "aerotp".into();
        keys["opens"] = if both { "both" } else { "sender" }.into();
        keys["initial_rto_s"] = share.into(); // of the round trip
        keys
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    #[test]
    fn every_mode_works_over_round_trips_of_up_to_a_day(
        mut transport in transports(), exponent in -3.0..4.63_f64, loss in prop_oneof![Just(0.0), 0.0..0.3_f64], bytes in 1_u64..300_000,
    ) {
        let delay_s = 10_f64.powf(exponent);
        let round_trip_s = 2.0 * delay_s;
        let initial = transport["initial_rto_s"].as_f64().unwrap() * round_trip_s;
        transport["initial_rto_s"] = initial.max(0.2).into();
        // Half of all probes and answers may be lost, twenty in a row.
        transport["give_up_after_s"] = (40.0 * round_trip_s).max(3600.0).into();
        let is_reliable = !["quasi-reliable", "unreliable"].contains(&transport["mode"].as_str().unwrap_or_default());
        let flow = run(&scenario(delay_s, loss, transport, &[("flow.file.traffic.bytes", bytes.into())]));
        prop_assert_eq!(flow.aborted, None, "{:?}", flow);
        prop_assert!(flow.finished.is_some(), "{:?}", flow);
        prop_assert_eq!(flow.delivered_bytes + flow.skipped_bytes, bytes);
        prop_assert!(!is_reliable || flow.skipped_bytes == 0, "{:?}", flow);
    }
}
