//! The fluid engine on scenarios: its tables, its files, and a comparison with the packet engine.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use farlink_sim::{Options, Output, RunError, fluid};
use serde_json::{Value, json};

use crate::common;
use crate::common::{bits, expanded, integer, real, scenario, series, text};

fn bulk(changes: &[(&str, Value)]) -> Value {
    let mut all = vec![
        ("engines", json!(["fluid"])),
        ("link.delay_s", json!(0.25)),
        ("link.channel", json!({ "kind": "loss", "loss": 1e-3 })),
        ("flow.bulk.count", json!(3)),
    ];
    all.extend(changes.iter().cloned());
    scenario(&all)
}

fn try_fluid(scenario: &Value, threads: usize) -> Result<Output, RunError> {
    let options = Options { threads: Some(threads), ..Options::default() };
    fluid::run(&expanded(scenario), &options, &|_, _| ControlFlow::Continue(()))
}

fn run(scenario: &Value) -> Output {
    try_fluid(scenario, 1).unwrap_or_else(|error| panic!("{error}\n{scenario:#}"))
}

/// Goodput of all flows together at each point, bit/s.
fn goodputs(output: &Output) -> Vec<f64> {
    let flows = text(&output.summary, "flow");
    let of_all = real(&output.summary, "goodput_bps").iter().zip(flows).filter(|(_, flow)| *flow == "all");
    of_all.map(|(goodput, _)| *goodput).collect()
}

const LOSSES: [f64; 3] = [1e-4, 1e-3, 1e-2];

#[test]
fn goodput_of_every_repair_and_growth() {
    let mut lines = Vec::new();
    for variant in ["reno", "newreno", "sack", "rack"] {
        for growth in ["reno", "cubic"] {
            let study = bulk(&[
                ("transport.tcp.variant", json!(variant)),
                ("transport.tcp.congestion_control", json!(growth)),
                ("grid", json!({ "link.channel.loss": LOSSES })),
            ]);
            let found: Vec<String> = goodputs(&run(&study)).iter().map(|bps| format!("{bps:.0}")).collect();
            lines.push(format!("{variant:8} {growth:6} {}", found.join(" ")));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_tables_do_not_depend_on_threads() {
    let study = bulk(&[("grid", json!({ "link.channel.loss": LOSSES, "flow.bulk.count": [1, 4] }))]);
    let [one, three] = [1, 3].map(|threads| try_fluid(&study, threads).unwrap());
    assert_eq!(bits(&one.rows), bits(&three.rows));
    assert_eq!(bits(&one.summary), bits(&three.summary));
}

#[test]
fn many_flows_have_one_row() {
    let output = run(&bulk(&[("flow.bulk.count", json!(300)), ("link.rate_bps", json!(1e8))]));
    assert_eq!(text(&output.rows, "flow"), ["bulk", "all"]);
    let goodput = real(&output.rows, "goodput_bps");
    assert!((goodput[0] / goodput[1] - 1.0).abs() < 1e-9 && real(&output.summary, "goodput_bps_ci95")[0].is_nan());
}

#[test]
fn a_stopped_study_keeps_its_finished_points() {
    let study = bulk(&[("grid", json!({ "link.channel.loss": [1e-4, 1e-3, 2e-3, 1e-2] }))]);
    let most = AtomicU64::new(0);
    let stop_after_one = |done: u64, _: u64| {
        most.fetch_max(done, Ordering::Relaxed);
        if done >= 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = Options { threads: Some(1), ..Options::default() };
    let output = fluid::run(&expanded(&study), &options, &stop_after_one).unwrap();
    assert!(output.interrupted);
    let points = integer(&output.summary, "point");
    assert!(!points.is_empty() && points.iter().all(|point| point == &points[0]), "{points:?}");
    assert_eq!(most.into_inner(), 1);
}

#[test]
fn changing_rates_give_the_goodput_of_the_packet_engine() {
    let steps = [(0.0, 1e6), (60.0, 3e5), (120.0, 0.0), (130.0, 1e6)];
    let file = series("fluid-rates", "rate", "rate_bps", &steps, 200.0);
    let study = bulk(&[
        ("link.rate_bps", json!({ "kind": "rate-trace", "file": file })),
        ("link.return", json!({ "rate_bps": 1e6 })),
        ("transport.tcp.delayed_ack", json!(false)),
        ("duration_s", json!(4000)),
        ("runs", json!(8)),
    ]);
    let ours = goodputs(&run(&study))[0];
    let packet = goodputs(&common::run(&study_of_packets(&study), 2))[0];
    assert!((ours / packet - 1.0).abs() < 0.05, "{ours} {packet}");
}

/// The same for the packet engine.
fn study_of_packets(study: &Value) -> Value {
    let mut study = study.clone();
    common::set(&mut study, "engines", json!(["packet"]));
    study
}

#[test]
fn several_hops_act_as_their_bottleneck() {
    let wide = json!({ "rate_bps": 1e8, "delay_s": 0.1 });
    let narrow = json!({
        "rate_bps": 1e6, "delay_s": 0.15, "queue_packets": 50, "channel": { "kind": "loss", "loss": 1e-3 }
    });
    let path = bulk(&[
        ("link", json!(null)),
        ("path", json!(["lan", "space"])),
        ("hop", json!({ "lan": wide, "space": narrow })),
    ]);
    let (ours, one_hop) = (goodputs(&run(&path))[0], goodputs(&run(&bulk(&[])))[0]);
    assert!((ours / one_hop - 1.0).abs() < 0.02, "{ours} {one_hop}");
}

#[test]
fn unsupported_settings_are_refused_with_their_path() {
    let trace = series("fluid-delays", "delay", "delay_s", &[(0.0, 0.1)], 10.0);
    let kinds = json!({ "kind": "gilbert-elliott", "p_good_to_bad": 0.01, "p_bad_to_good": 0.5, "loss_bad": 0.5 });
    let other = json!({ "kind": "tcp", "variant": "reno" });
    let cases = [
        (vec![("transport.tcp.variant", json!("tahoe"))], "transport.tcp.variant"),
        (vec![("link.channel", kinds), ("unsupported", json!("approximate"))], "link.channel.kind"),
        (vec![("link.channel.loss", json!(1.0))], "link.channel"),
        (vec![("link.rate_bps", json!({ "kind": "rate-trace", "file": trace }))], "link.rate_bps.file"),
        (
            vec![("flow.bulk.traffic", json!({ "kind": "file", "bytes": 1e6 })), ("unsupported", json!("approximate"))],
            "flow.bulk.traffic.kind",
        ),
        (
            vec![
                ("transport.other", other),
                ("flow.second", json!({ "transport": "other", "traffic": { "kind": "bulk" } })),
            ],
            "flow.second.transport",
        ),
    ];
    for (changes, place) in cases {
        match try_fluid(&bulk(&changes), 1) {
            Err(RunError::Scenario(error)) => {
                assert_eq!(error.path, place, "{error}");
                assert!(!error.remedy.is_empty());
            }
            other => panic!("{place}: {other:?}"),
        }
    }
}

#[test]
fn the_confidence_level_is_that_of_the_scenario() {
    let said = |level: f64| {
        let precision = json!({ "quantity": "goodput_bps", "ci": 1e-4, "level": level });
        let changes = [("runs", Value::Null), ("precision", precision), ("fluid.max_time_s", json!(1000.0))];
        run(&bulk(&changes)).notes.concat()
    };
    assert!(said(0.8).contains("at a level of 80 %"), "{}", said(0.8));
    assert!(said(0.95).contains("at a level of 95 %"), "{}", said(0.95));
}
