//! A stopped study keeps its finished runs.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{expanded, integer, real, run, scenario, set, setup, text};
use farlink_sim::engine::{NoTrace, simulate};
use farlink_sim::{Options, Output, RunError, Table, trace_run};
use serde_json::{Value, json};

fn study(runs: u64) -> Value {
    let channel = json!({ "kind": "loss", "loss": 0.02 });
    let mut study = scenario(&[("runs", runs.into()), ("duration_s", 5.into()), ("link.channel", channel)]);
    set(&mut study, "grid", json!({ "transport.tcp.variant": ["reno", "sack"] }));
    study
}

/// Runs until this many runs are finished.
fn stopped_after(study: &Value, runs: u64, threads: usize) -> Output {
    let stop = |done: u64, _: u64| if done >= runs { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    farlink_sim::run(&expanded(study), &Options { threads: Some(threads), ..Options::default() }, &stop).unwrap()
}

/// (point, run, flow, goodput) of every row.
fn results(table: &Table) -> Vec<(u64, u64, String, u64)> {
    let goodput = real(table, "goodput_bps");
    (0..goodput.len())
        .map(|row| {
            let (point, run) = (integer(table, "point")[row], integer(table, "run")[row]);
            (point, run, text(table, "flow")[row].clone(), goodput[row].to_bits())
        })
        .collect()
}

#[test]
fn finished_runs_are_kept_and_equal_those_of_the_whole_study() {
    let whole = results(&run(&study(40), 2).rows);
    for threads in [1, 2, 4] {
        let output = stopped_after(&study(40), 15, threads);
        assert!(output.interrupted);
        let kept = results(&output.rows);
        let runs = kept.len() / 2; // a row of the flow, a row of the aggregate
        assert!((15..15 + threads).contains(&runs), "{runs} runs on {threads} threads");
        assert!(kept.iter().all(|row| whole.contains(row)), "a finished run is the run of that number");
        assert!(kept.is_sorted_by_key(|row| (row.0, row.1)));
        let counted: u64 = text(&output.summary, "flow")
            .iter()
            .zip(integer(&output.summary, "runs"))
            .filter(|(flow, _)| *flow == "all")
            .map(|(_, runs)| runs)
            .sum();
        assert_eq!(counted as usize, runs, "the summary is over the finished runs");
    }
}

#[test]
fn one_thread_finishes_runs_in_their_order() {
    let output = stopped_after(&study(40), 7, 1);
    let runs: Vec<u64> = results(&output.rows).iter().step_by(2).map(|row| row.1).collect();
    assert_eq!(runs.len(), 7);
    assert_eq!(runs[..], (0..7).collect::<Vec<_>>()[..], "from run 0 on, without a gap");
}

#[test]
fn a_study_stopped_at_once_has_an_empty_table() {
    let output = stopped_after(&study(10), 0, 2);
    assert!(output.interrupted);
    assert!(results(&output.rows).is_empty());
    assert!(text(&output.summary, "flow").is_empty());
    assert!(output.rows.columns.len() > 20, "with all its columns");
}

#[test]
fn a_long_run_is_given_up_halfway() {
    let mut study = scenario(&[("duration_s", 1e6.into()), ("runs", 1.into()), ("link.rate_bps", 1e9.into())]);
    set(&mut study, "transport.tcp.max_window_segments", 10_000.into());
    let asked = AtomicU64::new(0);
    let stop = |_: u64, _: u64| match asked.fetch_add(1, Ordering::Relaxed) {
        0..5 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let output =
        farlink_sim::run(&expanded(&study), &Options { threads: Some(1), ..Options::default() }, &stop).unwrap();
    assert!(output.interrupted && results(&output.rows).is_empty());
}

/// On a fast link an event is a train of thousands of packets, so checks are spaced by packets.
#[test]
fn a_run_with_long_trains_can_be_stopped() {
    let scenario = scenario(&[
        ("link.rate_bps", json!(1e9)),
        ("link.queue_packets", Value::Null),
        ("transport.tcp.max_window_segments", 10_000.into()),
    ]);
    let asked = AtomicU64::new(0);
    let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) == u64::MAX;
    let run = simulate(&setup(&scenario), 1, 0, &mut NoTrace, &is_stopped).expect("the run is not stopped");
    let (packets, asked) = (run.flows[0].sent_packets, asked.into_inner());
    assert!(packets > 1_000_000);
    assert!(asked >= packets / 100_000, "asked {asked} times in {packets} packets");
}

#[test]
fn a_file_that_goes_out_at_one_instant_is_given_up_halfway() {
    let scenario = scenario(&[
        ("transport", json!({ "udp": { "kind": "udp" } })),
        ("flow", json!({ "data": { "transport": "udp", "traffic": { "kind": "file", "bytes": 5e14 } } })),
    ]);
    let asked = AtomicU64::new(0);
    let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) >= 3;
    assert!(simulate(&setup(&scenario), 1, 0, &mut NoTrace, &is_stopped).is_none());
    assert_eq!(asked.into_inner(), 4);
}

#[test]
fn the_stopping_rule_is_interrupted_too() {
    let mut study = study(1);
    set(&mut study, "runs", Value::Null);
    set(&mut study, "precision", json!({ "quantity": "goodput_bps", "ci": 1e-6, "max_runs": 1e6 }));
    let output = stopped_after(&study, 60, 2);
    assert!(output.interrupted);
    let runs = results(&output.rows).len() / 2;
    assert!((60..63).contains(&runs), "{runs}");
}

#[test]
fn a_study_that_ends_was_not_interrupted() {
    let output = stopped_after(&study(3), u64::MAX, 2);
    assert!(!output.interrupted);
    assert_eq!(results(&output.rows).len(), 2 * 3 * 2);
}

#[test]
fn progress_is_reported_for_every_run() {
    let most = AtomicU64::new(0);
    let note = |done: u64, total: u64| {
        assert!(done <= total, "{done} of {total}");
        most.fetch_max(done, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    farlink_sim::run(&expanded(&study(20)), &Options { threads: Some(2), ..Options::default() }, &note).unwrap();
    // The last runs may end after the last check.
    assert!(most.load(Ordering::Relaxed) >= 38, "{most:?}");
}

#[test]
fn a_traced_run_stops_when_asked() {
    let long = scenario(&[("duration_s", 1e7.into())]);
    let asked = AtomicU64::new(0);
    let stopped = trace_run(&expanded(&long), 0, 0, true, true, &|| asked.fetch_add(1, Ordering::Relaxed) >= 3);
    assert!(matches!(stopped, Err(RunError::Stopped)));
}
