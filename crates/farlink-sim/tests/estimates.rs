//! The cost of a study is estimated before it begins: excessive ones are refused, long ones announced.

// The time of a refusal is tested here.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use farlink_sim::{Announce, Options, estimate};
use serde_json::{Value, json};

use crate::common::{expanded, scenario, set, try_run};

fn refusal(scenario: &Value) -> (String, String) {
    let begin = Instant::now();
    let refused = try_run(scenario, 1).expect_err("it is hopeless");
    assert!(begin.elapsed().as_secs() < 5, "before it begins");
    let farlink_sim::RunError::Scenario(refusal) = refused else { panic!("{refused}") };
    (refusal.path.clone(), refusal.message())
}

fn datagrams(traffic: Value) -> Value {
    scenario(&[
        ("transport", json!({ "udp": { "kind": "udp" } })),
        ("flow", json!({ "data": { "transport": "udp", "traffic": traffic } })),
        ("runs", json!(1000)),
    ])
}

#[test]
fn studies_that_would_take_too_long_are_refused_with_the_responsible_key() {
    let cbr = json!({ "kind": "cbr", "rate_bps": 1e13, "payload_bytes": 16 });
    let (path, message) = refusal(&datagrams(cbr));
    assert_eq!(path, "flow.data.traffic.rate_bps");
    assert!(message.contains("CPU time") && message.contains("limits.cpu_s = 86400"), "{message}");
    let file = json!({ "kind": "file", "bytes": 1e15 });
    assert_eq!(refusal(&datagrams(file)).0, "flow.data.traffic.bytes");
    let (path, message) =
        refusal(&scenario(&[("flow.bulk.count", json!(1e6)), ("limits", json!({ "memory_bytes": 1e9 }))]));
    assert_eq!(path, "flow.bulk.count");
    assert!(message.contains("3.") && message.contains("GB"), "{message}");
}

/// The same limits, above and below the need of the study.
#[test]
fn the_limits_can_be_changed() {
    let long = |cpu_s: f64| scenario(&[("limits", json!({ "cpu_s": cpu_s }))]);
    let expected = estimate(&expanded(&long(1.0)), &Options::default()).unwrap();
    assert!(try_run(&long(expected.cpu_s * 1.01), 1).is_ok());
    assert_eq!(refusal(&long(expected.cpu_s * 0.99)).0, "duration_s");
}

#[test]
fn long_studies_are_announced_and_short_ones_are_not() {
    let told = |duration_s: f64| {
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&all);
        let tell = Announce(Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned())));
        let options = Options { threads: Some(2), announce: Some(tell), ..Options::default() };
        let mut long = scenario(&[("duration_s", json!(duration_s))]);
        set(&mut long, "runs", json!(1000));
        // It is stopped at once.
        let _ = farlink_sim::run(&expanded(&long), &options, &|_, _| std::ops::ControlFlow::Break(()));
        all.lock().unwrap().clone()
    };
    assert!(told(10.0).is_empty());
    let [text] = &told(1e6)[..] else { panic!("one sentence") };
    assert!(text.contains("of CPU time") && text.contains("on 2 threads") && text.contains("duration_s"), "{text}");
}

/// The cost of a large grid is estimated quickly.
#[test]
fn ten_thousand_points_are_estimated_at_once() {
    let losses: Vec<f64> = (1..=10_000).map(|i| f64::from(i) * 1e-6).collect();
    let mut grid = scenario(&[("link.channel", json!({ "kind": "loss", "loss": 0 }))]);
    set(&mut grid, "grid", json!({ "link.channel.loss": losses }));
    let points = expanded(&grid);
    let one = estimate(&expanded(&scenario(&[])), &Options::default()).unwrap();
    let begin = Instant::now();
    let all = estimate(&points, &Options::default()).unwrap();
    assert!(begin.elapsed().as_secs_f64() < 5.0, "{:?}", begin.elapsed());
    assert!((all.cpu_s / one.cpu_s / 1e4 - 1.0).abs() < 1e-6);
}

/// A window that grows in an unlimited queue waits there, and one of Hybla is sent at once.
#[test]
fn windows_that_wait_in_queues_are_counted() {
    let memory = |changes: &[(&str, Value)]| {
        let all: Vec<(&str, Value)> = [("duration_s", json!(30_000)), ("link.delay_s", json!(80))]
            .into_iter()
            .chain(changes.iter().cloned())
            .collect();
        estimate(&expanded(&scenario(&all)), &Options::default()).unwrap().memory_bytes
    };
    let (short, endless) =
        (memory(&[("link.queue_packets", json!(50))]), memory(&[("link.queue_packets", Value::Null)]));
    assert!(endless > 10.0 * short, "{short} {endless}");
    let hybla = ("transport.tcp.congestion_control", json!("hybla"));
    let burst = memory(&[("link.queue_packets", json!(50)), hybla.clone()]);
    let bound = ("transport.tcp.initial_ssthresh_segments", json!(50));
    let calm = memory(&[("link.queue_packets", json!(50)), hybla, bound]);
    assert!(burst > 1e7 && calm < 2.0 * short, "{short} {burst} {calm}");
}
