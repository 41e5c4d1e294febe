//! A summary is the mean of the rows, which are matched here by point and flow, independent of the engine.

use std::collections::BTreeMap;

use farlink_core::scenario::quantity;
use farlink_sim::{Options, Output, Table, fluid};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::common::{bits, cases, expanded, integer, real, run, scenario, text};

/// The runs and the row numbers of each point and flow.
type Rows<'a> = BTreeMap<(u64, &'a str), Vec<(u64, usize)>>;

fn rows(output: &Output) -> Rows<'_> {
    let mut found = Rows::new();
    let keys = integer(&output.rows, "point").iter().zip(text(&output.rows, "flow"));
    for (row, ((&point, flow), &run)) in keys.zip(integer(&output.rows, "run")).enumerate() {
        found.entry((point, flow)).or_default().push((run, row));
    }
    found
}

/// Checks that every entry of the summary agrees with its rows.
fn check(output: &Output) {
    let rows = rows(output);
    let summary = &output.summary;
    let keys: Vec<(u64, &str)> =
        integer(summary, "point").iter().copied().zip(text(summary, "flow").iter().map(String::as_str)).collect();
    assert_eq!(keys.len(), rows.len(), "an entry for each point and flow that has rows");
    for (entry, key) in keys.iter().enumerate() {
        let of_entry = &rows[key];
        let mut runs: Vec<u64> = of_entry.iter().map(|(run, _)| *run).collect();
        runs.dedup();
        assert_eq!(runs.len(), of_entry.len(), "a row per run: {key:?}");
        assert_eq!(integer(summary, "runs")[entry], runs.len() as u64, "{key:?}");
        for name in quantity::names() {
            let values = real(&output.rows, name);
            let known: Vec<f64> =
                of_entry.iter().map(|&(_, row)| values[row]).filter(|value| !value.is_nan()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let found = real(summary, name)[entry];
            let is_same = mean.is_nan() && found.is_nan() || (found - mean).abs() <= 1e-12 * mean.abs();
            assert!(is_same, "{name} of {key:?}: {found}, its rows say {mean}");
        }
    }
}

/// The same flows, in the same order, in every run of a point.
fn check_layout(output: &Output) {
    let mut runs: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    let keys = integer(&output.rows, "point").iter().zip(integer(&output.rows, "run"));
    for ((&point, &run), flow) in keys.zip(text(&output.rows, "flow")) {
        runs.entry((point, run)).or_default().push(flow);
    }
    for ((point, run), flows) in &runs {
        let first = runs.iter().find(|((other, _), _)| other == point).expect("it is there").1;
        assert_eq!(flows, first, "point {point}, run {run}");
        assert_eq!(flows.last(), Some(&"all"));
    }
}

/// Web pages whose number exceeds 256 in some runs, beside two bulk flows.
fn pages(seed: u64) -> Value {
    let pages = json!({ "kind": "transfers", "rate_per_s": 4.2, "bytes": 20_000 });
    let flows = json!({
        "pages": { "transport": "tcp", "traffic": pages },
        "bulk": { "transport": "tcp", "count": 2, "traffic": { "kind": "bulk" } },
    });
    let link = json!({ "rate_bps": 10e6, "delay_s": 0.05, "queue_packets": 100 });
    scenario(&[("duration_s", 60.into()), ("runs", 4.into()), ("seed", seed.into()), ("link", link), ("flow", flows)])
}

#[test]
fn pages_beside_bulk_flows_have_a_row_of_their_own() {
    for seed in 2..=5 {
        let output = run(&pages(seed), 2);
        check(&output);
        check_layout(&output);
        let goodput = real(&output.summary, "goodput_bps")[3];
        assert!((9.4e6..9.8e6).contains(&goodput), "seed {seed}: all flows together get {goodput} b/s");
        let mut flows = text(&output.summary, "flow").to_vec();
        flows.sort();
        assert_eq!(flows, ["all", "bulk.1", "bulk.2", "pages"]);
        assert!(real(&output.summary, "delay_p50_s").iter().all(|delay| *delay > 0.05), "each row has its delays");
    }
}

/// A flow is measured in the same way whether or not random flows are present.
#[test]
fn a_row_means_the_same_in_every_run() {
    let pages = json!({ "kind": "transfers", "rate_per_s": 0.05, "bytes": 20_000 });
    let output =
        run(&scenario(&[("runs", 40.into()), ("flow.pages", json!({ "transport": "tcp", "traffic": pages }))]), 2);
    check(&output);
    let of_pages = |table: &Table, name| -> Vec<f64> {
        let flows = text(table, "flow").iter().zip(real(table, name));
        flows.filter(|(flow, _)| *flow == "pages").map(|(_, value)| *value).collect()
    };
    let done = of_pages(&output.rows, "transfers_done");
    assert!([0.0, 1.0, 2.0].iter().all(|count| done.contains(count)), "none, one and two: {done:?}");
    assert_eq!(of_pages(&output.rows, "duration_s"), [20.0; 40]);
    let mean = of_pages(&output.summary, "transfers_done")[0];
    assert!((0.5..2.0).contains(&mean), "runs without a transfer count: {mean}");
}

#[test]
fn the_precision_rule_looks_at_all_flows() {
    let mut pages = pages(3);
    pages.as_object_mut().unwrap().remove("runs");
    pages["precision"] = json!({ "quantity": "goodput_bps", "ci": 0.005, "min_runs": 3, "max_runs": 30 });
    let output = run(&pages, 2);
    check(&output);
    let (mean, half_width) = (real(&output.summary, "goodput_bps")[3], real(&output.summary, "goodput_bps_ci95")[3]);
    assert!(half_width <= 0.005 * mean, "{half_width} of {mean}");
    assert!((3..30).contains(&integer(&output.summary, "runs")[3]));
}

/// The summary is the same to the bit, and treats runs that missed their end as the rows would.
#[test]
fn a_summary_needs_no_rows() {
    let mut data = pages(2);
    data["duration_s"] = 3.into();
    data["runs"] = 200.into();
    data["flow"]["file"] = json!({ "transport": "tcp", "traffic": { "kind": "file", "bytes": 3e6 } });
    data["grid"] = json!({ "flow.bulk.count": [2, 400] });
    let with = run(&data, 1);
    let options = |threads| Options { threads: Some(threads), without_rows: true, ..Options::default() };
    for threads in [1, 2, 3] {
        let go_on = |_, _| std::ops::ControlFlow::Continue(());
        let without = farlink_sim::run(&expanded(&data), &options(threads), &go_on).unwrap();
        assert!(without.rows.columns.is_empty());
        assert_eq!(bits(&with.summary), bits(&without.summary));
    }
    let status = text(&with.rows, "status");
    for (entry, (key, rows)) in rows(&with).into_iter().enumerate() {
        let keys = integer(&with.summary, "point").iter().zip(text(&with.summary, "flow"));
        let entry =
            keys.enumerate().find(|(_, (point, flow))| (**point, flow.as_str()) == key).map_or(entry, |found| found.0);
        for (name, runs) in [("unfinished", "unfinished_runs"), ("stalled", "stalled_runs")] {
            let missed = rows.iter().filter(|(_, row)| status[*row] == name).count() as u64;
            assert_eq!(integer(&with.summary, runs)[entry], missed, "{key:?}");
        }
    }
    assert!(status.iter().any(|status| status == "unfinished"), "a file of 3 MB takes longer beside 400 others");
}

#[test]
fn both_engines_have_the_same_rows() {
    for count in [1, 3, 256, 257] {
        let bulk = json!({ "transport": "tcp", "count": count, "traffic": { "kind": "bulk" } });
        let one = json!({ "transport": "tcp", "traffic": { "kind": "bulk" } });
        let mut data = scenario(&[("duration_s", 1.into()), ("flow", json!({ "bulk": bulk, "one": one }))]);
        let packet = run(&data, 2);
        data["engines"] = json!(["fluid"]);
        data.as_object_mut().unwrap().remove("runs");
        data["fluid"] = json!({ "max_time_s": 20 });
        let fluid = fluid::run(&expanded(&data), &Default::default(), &|_, _| std::ops::ControlFlow::Continue(()));
        let fluid = fluid.unwrap();
        for name in ["flow", "transport"] {
            assert_eq!(text(&packet.summary, name), text(&fluid.summary, name), "{count}");
        }
        check(&packet);
        check(&fluid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    /// Flows of several names, some with random transfers, around and beyond 256 of them, and points that differ.
    #[test]
    fn a_summary_is_the_mean_of_its_rows(populations in populations(), seed in 1_u64..1000, threads in 1_usize..4) {
        let names: Map<String, Value> =
            populations.into_iter().enumerate().map(|(at, flow)| (format!("f{at}"), flow)).collect();
        let data = scenario(&[
            ("duration_s", 2.into()),
            ("runs", 3.into()),
            ("seed", seed.into()),
            ("link.rate_bps", 5e5.into()),
            ("transport.udp", json!({ "kind": "udp" })),
            ("flow", names.into()),
            ("grid", json!({ "flow.f0.count": [1, 2, 255] })),
        ]);
        let output = run(&data, threads);
        check(&output);
        check_layout(&output);
        prop_assert_eq!(bits(&output.summary), bits(&run(&data, 4 - threads).summary));
    }
}

fn populations() -> impl Strategy<Value = Vec<Value>> {
    let few = |rate: f64| json!({ "kind": "transfers", "rate_per_s": rate, "bytes": 300 });
    let traffic = prop_oneof![
        3 => select(&[0.3, 1.0, 60.0, 128.0, 140.0][..]).prop_map(few),
        2 => Just(json!({ "kind": "bulk" })),
        1 => Just(json!({ "kind": "file", "bytes": 2000 })),
        1 => Just(json!({ "kind": "cbr", "rate_bps": 1e4, "payload_bytes": 200, "bytes": 600 })),
        1 => Just(json!({ "kind": "transfers", "list": [{ "at_s": 0.1, "bytes": 900 }, { "at_s": 1, "bytes": 500 }] })),
    ];
    let count = prop_oneof![3 => 1_u64..4, 1 => 120_u64..140, 1 => 250_u64..260];
    let flow = (traffic, count, 0.0..2.0_f64).prop_map(|(traffic, count, start_s)| {
        let is_many = traffic["rate_per_s"].as_f64().is_some_and(|rate| rate > 10.0);
        let transport = if traffic["kind"] == "cbr" { "udp" } else { "tcp" };
        json!({ "transport": transport, "count": if is_many { 1 } else { count }, "start_s": start_s, "traffic": traffic })
    });
    vec(flow, 1..4)
}
