//! The time that the far end takes before it answers.

use crate::common::{bits, once, run, scenario, series, set, setup};
use farlink_core::Time;
use farlink_core::scenario::expand;
use serde_json::{Value, json};

fn rows(back: Value) -> Vec<String> {
    let mut study = scenario(&[("duration_s", json!(60)), ("link.channel", json!({ "kind": "loss", "loss": 0.01 }))]);
    set(&mut study, "link.return", back);
    bits(&run(&study, 1).rows)
}

#[test]
fn processing_is_a_longer_way_back() {
    let both = json!({ "delay_s": 0.1, "processing_s": 0.05 });
    assert_eq!(rows(both), rows(json!({ "delay_s": 0.15 })));
    assert_ne!(rows(json!({ "processing_s": 0.05 })), rows(json!({})));

    let moving = |name: &str, more: f64| {
        let file = series(name, "delay", "delay_s", &[(0.0, 0.1 + more), (7.0, 0.02 + more)], 20.0);
        json!({ "kind": "delay-trace", "file": file })
    };
    let processed = json!({ "delay_s": moving("processing", 0.0), "processing_s": 0.05 });
    assert_eq!(rows(processed), rows(json!({ "delay_s": moving("processing-longer", 0.05) })));
}

#[test]
fn processing_adds_to_the_round_trip_of_a_pass() {
    let round_trip = |processing_s: f64| {
        let back = json!({ "processing_s": processing_s });
        let pass = json!({ "kind": "pass", "altitude_m": 600e3, "min_elevation_deg": 10 });
        // A window of two segments leaves no queue.
        let changes = [("link.delay_s", pass), ("link.return", back), ("transport.tcp.max_window_segments", json!(2))];
        once(&setup(&scenario(&changes)), 1).flows[0].round_trip.expect("a round trip")
    };
    let (with, without) = (round_trip(0.2), round_trip(0.0));
    // Another segment is the last one that is timed, while the satellite moves.
    let more = with - without;
    assert!(more > Time::from_millis(190) && more < Time::from_millis(210), "{more:?}");
}

#[test]
fn the_fluid_engine_knows_it() {
    let rows = |back: Value| {
        let mut study =
            scenario(&[("link.channel", json!({ "kind": "loss", "loss": 0.01 })), ("engines", json!(["fluid"]))]);
        set(&mut study, "link.return", back);
        bits(&run(&study, 1).rows)
    };
    let both = json!({ "delay_s": 0.1, "processing_s": 0.05 });
    assert_eq!(rows(both), rows(json!({ "delay_s": 0.15 })));
}

#[test]
fn lines_of_a_bundle_have_delays_of_their_own() {
    let refused =
        expand(&scenario(&[("link.bundle", json!({ "lines": 2 })), ("link.return", json!({ "processing_s": 0.1 }))]));
    let error = refused.expect_err("a refusal");
    assert_eq!(error.path, "link.return.processing_s", "{error}");
}
