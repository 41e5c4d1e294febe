//! The same scenario and seed give the same bytes on any number of threads, and components have independent random
//! streams.

use crate::common;
use crate::common::random::scenarios;
use crate::common::{bits, integer, losses, once, real, run, scenario, set, setup, text};
use farlink_core::endpoint::Probe;
use farlink_core::{Ecn, Packet, Time};
use farlink_sim::engine::{Tracer, simulate};
use farlink_sim::{Table, trace_run};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Several points and runs of several flows: enough for threads to overtake each other.
fn study() -> Value {
    let mut study = scenario(&[
        ("runs", 6.into()),
        ("link.channel", json!({ "kind": "ber", "ber": 1e-6 })),
        ("flow.web", json!({ "transport": "tcp", "traffic": { "kind": "transfers", "rate_per_s": 1, "bytes": 2e4 } })),
        ("flow.late", json!({ "transport": "tcp", "count": 3, "start_spread_s": 5, "traffic": { "kind": "bulk" } })),
    ]);
    set(
        &mut study,
        "grid",
        json!({ "link.channel.ber": [1e-7, 1e-6, 1e-5], "transport.tcp.variant": ["tahoe", "sack"] }),
    );
    study
}

fn assert_same(study: &Value) {
    let first = run(study, 1);
    for threads in [2, 4, 7] {
        let other = run(study, threads);
        assert_eq!(bits(&first.rows), bits(&other.rows), "rows on {threads} threads");
        assert_eq!(bits(&first.summary), bits(&other.summary), "summary on {threads} threads");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_table() {
    assert_same(&study());
}

#[test]
fn the_stopping_rule_stops_at_the_same_run_on_any_number_of_threads() {
    let mut study = study();
    set(&mut study, "runs", Value::Null);
    set(&mut study, "precision", json!({ "quantity": "goodput_bps", "ci": 0.02, "min_runs": 3, "max_runs": 40 }));
    assert_same(&study);
    let runs = integer(&run(&study, 2).summary, "runs").to_vec();
    assert!(runs.iter().any(|&runs| runs > 3) && runs.iter().min() != runs.iter().max(), "the rule decides: {runs:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(20)))]
    #[test]
    fn any_scenario_gives_the_same_table_twice(scenario in scenarios()) {
        let mut scenario = scenario;
        scenario["runs"] = 3.into();
        let (first, second) = (run(&scenario, 1), run(&scenario, 3));
        prop_assert_eq!(bits(&first.rows), bits(&second.rows));
    }
}

/// The goodput of every run of one flow.
fn goodput(table: &Table, flow: &str) -> Vec<f64> {
    let flows = text(table, "flow");
    real(table, "goodput_bps").iter().zip(flows).filter(|(_, name)| *name == flow).map(|(value, _)| *value).collect()
}

#[test]
fn seeds_and_runs_differ() {
    let lossy = |seed: u64| {
        let channel = json!({ "kind": "loss", "loss": 0.02 });
        goodput(
            &run(&scenario(&[("seed", seed.into()), ("runs", 20.into()), ("link.channel", channel)]), 2).rows,
            "bulk",
        )
    };
    let mut all = [lossy(1), lossy(2)].concat();
    all.sort_by(f64::total_cmp);
    all.dedup();
    assert!(all.len() >= 38, "two seeds of twenty runs gave {} different results", all.len());
}

/// A point's results depend on its settings, not on its position among other points.
#[test]
fn another_value_in_the_grid_changes_no_other_point() {
    let mut few = study();
    set(&mut few, "grid", json!({ "link.channel.ber": [1e-5] }));
    let mut many = study();
    set(&mut many, "grid", json!({ "link.channel.ber": [1e-7, 1e-6, 1e-5, 1e-4] }));
    let (few, many) = (run(&few, 2).rows, run(&many, 2).rows);
    let of_point = |table: &Table, point: u64| -> Vec<u64> {
        let points = integer(table, "point");
        let values = real(table, "goodput_bps").iter().zip(points).filter(|(_, at)| **at == point);
        values.map(|(value, _)| value.to_bits()).collect()
    };
    assert_eq!(of_point(&few, 0), of_point(&many, 2));
}

/// Arrivals of datagrams cannot be observed from outside, so this compares the sender's packets.
#[derive(Default)]
struct Log(Vec<(Time, usize, u32, u32)>);

impl Tracer for Log {
    fn packet<P: Packet + 'static>(&mut self, now: Time, direction: usize, flow: u32, packet: &P, _ecn: Ecn) {
        self.0.push((now, direction, flow, packet.wire_bytes()));
    }
    fn probe(&mut self, _now: Time, _flow: u32, _probe: impl FnOnce() -> Probe) {}
}

/// A datagram stream whose frames have the same positions on the wire whatever else the scenario contains.
fn stream(changes: &[(&str, Value)]) -> Value {
    let mut scenario = scenario(&[
        ("duration_s", 49.99.into()),
        ("link.channel", json!({ "kind": "loss", "loss": 0.1 })),
        ("transport.udp", json!({ "kind": "udp" })),
        ("flow", json!({})),
        (
            "flow.stream",
            json!({ "transport": "udp", "traffic": { "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 1000 } }),
        ),
    ]);
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

/// The sum of the delays of all delivered datagrams identifies the fate of each one, because the delay ramp makes every
/// delay different.
#[test]
fn a_later_flow_does_not_change_the_channels_errors_before_it() {
    let ramp = [(0.0, 0.05)].into_iter().chain((1..50).map(|s| (f64::from(s), 0.05 + 0.001 * f64::from(s * s % 50))));
    let file = common::series("ramp", "delay", "delay_s", &ramp.collect::<Vec<_>>(), 50.0);
    let delay = json!({ "kind": "delay-trace", "file": file, "offset_s": 0 });
    let alone = once(&setup(&stream(&[("link.delay_s", delay.clone())])), 3);
    let late = json!({ "transport": "tcp", "start_s": 49.985, "traffic": { "kind": "bulk" } });
    let joined = once(&setup(&stream(&[("link.delay_s", delay), ("flow.late", late)])), 3);
    assert_eq!(alone.flows[0].delay, joined.flows[0].delay);
    assert_eq!(alone.flows[0].lost_packets, joined.flows[0].lost_packets);
    assert!(alone.flows[0].lost_packets > 30, "the channel was at work");
}

/// Equal traffic meets equal errors: the channel's random stream depends neither on the transport's name nor on other
/// channels.
#[test]
fn every_component_has_a_random_stream_of_its_own() {
    let lost = |changes: &[(&str, Value)]| {
        let run = once(&setup(&stream(changes)), 5);
        (run.flows[0].delivered_packets, run.flows[0].lost_packets, run.flows[0].delay)
    };
    let plain = lost(&[]);
    assert_eq!(plain, lost(&[("link.return", json!({ "channel": { "kind": "loss", "loss": 0.5 } }))]));
    assert_eq!(plain, lost(&[("transport.other", json!({ "kind": "tcp", "variant": "reno" }))]));
    assert_eq!(plain, lost(&[("seed", 77.into())]), "`simulate` is told its seed");
    // A flow's arrivals do not depend on the number of other flows.
    let arrivals = |before: bool| {
        let mut scenario = scenario(&[("flow", json!({}))]);
        if before {
            set(&mut scenario, "flow.a", json!({ "transport": "tcp", "traffic": { "kind": "file", "bytes": 10 } }));
        }
        let web = json!({ "transport": "tcp", "traffic": { "kind": "transfers", "rate_per_s": 2, "bytes": 100 } });
        set(&mut scenario, "flow.web", web);
        let run = once(&setup(&scenario), 9);
        run.flows.iter().filter(|flow| flow.spec == usize::from(before)).map(|flow| flow.start).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(false), arrivals(true));
}

#[test]
fn tracing_does_not_change_a_run() {
    let study = study();
    let expanded = common::expanded(&study);
    for point in [0, 5] {
        let setup = farlink_sim::resolve(&expanded.points[point].scenario, &farlink_sim::TraceFiles::new()).unwrap();
        let mut log = Log::default();
        let seen = simulate(&setup, 1, 2, &mut log, &|| false).unwrap();
        let unseen = simulate(&setup, 1, 2, &mut farlink_sim::engine::NoTrace, &|| false).unwrap();
        assert!(log.0.is_sorted_by_key(|packet| packet.0));
        let sent: u64 = log.0.iter().filter(|packet| packet.1 == 1).map(|packet| u64::from(packet.3)).sum();
        assert_eq!(sent, unseen.flows.iter().map(|flow| flow.sent_bytes).sum::<u64>());
        assert_eq!(seen.end, unseen.end);
        let first = trace_run(&expanded, point, 2, true, true, &|| false).unwrap();
        let second = trace_run(&expanded, point, 2, true, true, &|| false).unwrap();
        assert!(first.pcapng == second.pcapng && first.series == second.series);
    }
}

#[test]
fn a_replay_from_a_given_offset_is_the_same_in_every_run() {
    let file = losses("every-ninth", &(0..9).map(|i| i == 4).collect::<Vec<_>>());
    let fixed =
        scenario(&[("link.channel", json!({ "kind": "packet-trace", "file": file, "offset": 2 })), ("runs", 3.into())]);
    let found = goodput(&run(&fixed, 2).rows, "bulk");
    assert!(found.iter().all(|value| *value == found[0]), "{found:?}");
    let anywhere = scenario(&[("link.channel", json!({ "kind": "packet-trace", "file": file })), ("runs", 9.into())]);
    let found = goodput(&run(&anywhere, 2).rows, "bulk");
    assert!(found.iter().any(|value| *value != found[0]), "{found:?}");
}
