//! Bundles in whole runs: the effect on flows.

use crate::common::{once, real, run, scenario, setup};
use farlink_sim::engine::RunResult;
use serde_json::{Value, json};

/// Lines of 100 kb/s and 0.1 s under one TCP connection.
fn over(bundle: &Value) -> Value {
    let mut scenario = scenario(&[("duration_s", json!(400)), ("transport.tcp.timestamps", json!(true))]);
    let table = json!({ "rate_bps": 1e5, "delay_s": 0.1, "bundle": bundle, "queue_packets": 20 });
    scenario["link"] = table;
    scenario
}

fn goodput_bps(run: &RunResult) -> f64 {
    let flow = &run.flows[0];
    flow.delivered_bytes as f64 * 8.0 / flow.measured.as_secs_f64()
}

#[test]
fn four_lines_give_nearly_four_times_as_much() {
    let of = |lines: u64| goodput_bps(&once(&setup(&over(&json!({ "lines": lines }))), 1));
    let (one, four) = (of(1), of(4));
    assert!(one > 0.9e5 && one < 1e5, "{one}");
    assert!(four > 3.7 * one && four < 4.0 * one + 1e3, "{one} {four}");
}

/// The way back is slower: TCP gets what its acknowledgements allow, and a stream of datagrams is not affected. A member's own
/// return rate has the same effect as the hop's.
#[test]
fn a_slow_way_back_holds_up_acknowledgements_only() {
    let of = |bundle: Value, back: Value| {
        let mut scenario = over(&bundle);
        scenario["link"]["return"] = back;
        goodput_bps(&once(&setup(&scenario), 1))
    };
    let even = of(json!({ "lines": 4 }), json!({}));
    let by_hop = of(json!({ "lines": 4 }), json!({ "rate_bps": 500 }));
    let by_member = of(json!({ "members": [{ "count": 4, "return_rate_bps": 500 }] }), json!({}));
    assert_eq!(by_hop, by_member);
    // About four acknowledgements a second pass; those that the queue drops are covered by later ones.
    assert!(by_hop < 0.5 * even && by_hop > 0.1 * even, "{by_hop} {even}");
    let stream = |back: Value| {
        let mut scenario = over(&json!({ "lines": 4 }));
        scenario["link"]["return"] = back;
        scenario["transport"] = json!({ "udp": { "kind": "udp" } });
        let traffic = json!({ "kind": "cbr", "rate_bps": 2e5, "payload_bytes": 1000 });
        scenario["flow"] = json!({ "bulk": { "transport": "udp", "traffic": traffic } });
        goodput_bps(&once(&setup(&scenario), 1))
    };
    assert_eq!(stream(json!({})), stream(json!({ "rate_bps": 500 })));
}

/// Both directions have the same calls: in an outage of all lines no packet passes.
/// A line that has two qualities, each for half of the run, carries half of what it carries with each of them.
#[test]
fn a_line_that_changes_carries_what_its_qualities_carry() {
    let quality = |loss: f64, again: f64, factor: f64, changes: Value| {
        let arq =
            json!({ "frame_bytes": 60, "window_frames": 6, "loss": loss, "loss_again": again, "changes": changes });
        let traffic = json!({ "kind": "cbr", "rate_bps": 2e5, "payload_bytes": 900 });
        let mut scenario = over(&json!({ "lines": 1, "arq": arq }));
        scenario["duration_s"] = json!(4000);
        scenario["link"]["rate_bps"] = json!(1e5 * factor);
        scenario["transport"] = json!({ "udp": { "kind": "udp" } });
        scenario["flow"]["bulk"] = json!({ "transport": "udp", "traffic": traffic });
        goodput_bps(&once(&setup(&scenario), 1))
    };
    let none = || json!([]);
    let (good, bad) = (quality(0.01, 0.2, 1.0, none()), quality(0.05, 0.5, 1.0, none()));
    // The model of go-back-N: 1 / (1 + N a / (1 - c)).
    assert!((good / bad - (1.0 + 6.0 * 0.1) / (1.0 + 6.0 * 0.0125)).abs() < 0.03, "{good} {bad}");
    let changing = quality(0.01, 0.2, 1.0, json!([{ "at_s": 2000, "loss": 0.05, "loss_again": 0.5 }]));
    assert!((changing / ((good + bad) / 2.0) - 1.0).abs() < 0.01, "{changing}, of {good} and {bad}");

    let slow = quality(0.05, 0.5, 0.5, none());
    let slower = json!([{ "at_s": 2000, "loss": 0.05, "loss_again": 0.5, "rate_factor": 0.5 }]);
    let changing = quality(0.01, 0.2, 1.0, slower);
    assert!((changing / ((good + slow) / 2.0) - 1.0).abs() < 0.01, "{changing}, of {good} and {slow}");
}

#[test]
fn both_ways_drop_together() {
    let calls = json!({ "schedule": [[[100, 200]], [[100, 200]]] });
    let setup = setup(&over(&json!({ "lines": 2, "calls": calls })));
    let run = once(&setup, 1);
    let bundles = run.bundles.expect("there is a bundle");
    assert_eq!((bundles.availability.all_s, bundles.availability.any_s, bundles.availability.drops), (300.0, 300.0, 2));
    assert!(goodput_bps(&run) < 0.76 * 2e5, "{}", goodput_bps(&run));
    assert!(goodput_bps(&run) > 0.5 * 2e5, "{}", goodput_bps(&run));
}

/// Packets of a dropped line are sent again over other lines. With acknowledgements no packet is lost; without, those in flight are.
/// Goodput is higher, most of all with kept numbers. The window fits into lines and queue, so nothing overflows.
#[test]
fn requeued_packets_save_timeouts() {
    let duration = |mean_s: f64| json!({ "distribution": "exponential", "mean_s": mean_s });
    let of = |on_drop: &str, peer: &str| {
        let calls = json!({ "up": duration(20.0), "redial": duration(2.0) });
        let mut bundle = json!({ "lines": 4, "calls": calls, "on_drop": on_drop, "peer": peer });
        if on_drop == "lose" {
            bundle["reorder_timeout_s"] = 2.into();
        }
        let mut scenario = over(&bundle);
        scenario["transport"]["tcp"]["max_window_segments"] = 20.into();
        once(&setup(&scenario), 1)
    };
    let (lost, requeued, plain) = (of("lose", "farlink"), of("requeue", "farlink"), of("requeue", "rfc1990"));
    assert_eq!(lost.bundles.map(|bundles| bundles.availability), requeued.bundles.map(|bundles| bundles.availability));
    assert!(requeued.bundles.expect("there is a bundle").requeued > 50);
    assert!(lost.flows[0].lost_packets > 50);
    assert_eq!(requeued.flows[0].lost_packets, 0);
    let kept = plain.flows[0].lost_packets as f64 / lost.flows[0].lost_packets as f64;
    assert!((0.02..0.6).contains(&kept), "{kept}");
    assert!(goodput_bps(&requeued) > goodput_bps(&plain), "{} {}", goodput_bps(&requeued), goodput_bps(&plain));
    assert!(goodput_bps(&requeued) > 1.1 * goodput_bps(&lost), "{} {}", goodput_bps(&requeued), goodput_bps(&lost));
}

/// Duplicate acknowledgements make a sender retransmit the losses of a drop earlier: Reno gains little, but
/// significantly, over the same drops (1.4 +- 0.6 % here). With selective acknowledgements, duplicates that report
/// nothing new have no effect.
#[test]
fn duplicate_acknowledgements_speed_recovery_up() {
    let duration = |mean_s: f64| json!({ "distribution": "exponential", "mean_s": mean_s });
    let goodputs_bps = |variant: &str, on_drop: &str, runs: u64| -> Vec<f64> {
        let calls = json!({ "up": duration(60.0), "redial": duration(2.0) });
        let bundle = json!({ "lines": 4, "calls": calls, "on_drop": on_drop, "reorder_timeout_s": 2 });
        let mut scenario = over(&bundle);
        scenario["transport"]["tcp"]["variant"] = variant.into();
        (1..=runs).map(|seed| goodput_bps(&once(&setup(&scenario), seed))).collect()
    };
    const RUNS: u64 = 32;
    let (lost, told) = (goodputs_bps("reno", "lose", RUNS), goodputs_bps("reno", "duplicate-acks", RUNS));
    let gains: Vec<f64> = lost.iter().zip(&told).map(|(lost, told)| told / lost - 1.0).collect();
    let mean = gains.iter().sum::<f64>() / RUNS as f64;
    let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
    // Student's t at 97.5 % with 31 degrees of freedom.
    let half_width = 2.04 * (variance / RUNS as f64).sqrt();
    assert!(mean > half_width, "{mean} +- {half_width}");
    assert_eq!(goodputs_bps("sack", "duplicate-acks", 4), goodputs_bps("sack", "lose", 4));
}

/// Losses of ARQ on a line that stays up cause no duplicate acknowledgements.
#[test]
fn only_a_dropped_call_makes_duplicate_acknowledgements() {
    let of = |on_drop: &str| {
        let arq = json!({ "frame_bytes": 100, "window_frames": 2, "loss": 2e-2, "attempts": 2 });
        // The only drop is after the end.
        let calls = json!({ "schedule": [[[1000, 1100]], [], [], []] });
        let bundle = json!({ "lines": 4, "calls": calls, "arq": arq, "on_drop": on_drop, "reorder_timeout_s": 2 });
        let mut scenario = over(&bundle);
        scenario["transport"]["tcp"]["variant"] = "reno".into();
        once(&setup(&scenario), 1)
    };
    let (told, untold) = (of("duplicate-acks"), of("lose"));
    assert!(untold.flows[0].lost_packets > 20, "{}", untold.flows[0].lost_packets);
    let outcome = |run: &RunResult| {
        let flow = &run.flows[0];
        (flow.sent_bytes, flow.delivered_bytes, flow.timeouts, flow.last_arrival, run.return_bytes)
    };
    assert_eq!(outcome(&told), outcome(&untold));
}

/// Only rows over all flows report the lines, and only for paths with a bundle.
#[test]
fn rows_report_the_availability_of_lines() {
    let calls = json!({ "schedule": [[[100, 200]], []] });
    let rows = run(&over(&json!({ "lines": 2, "calls": calls })), 1).rows;
    for (name, expected) in [
        ("all_lines_up_fraction", 0.75),
        ("any_line_up_fraction", 1.0),
        ("lines_up_fraction", 0.875),
        ("call_drops", 1.0),
    ] {
        let values = real(&rows, name);
        let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        assert_eq!(known.len() * 2, values.len(), "{name}");
        assert!(known.iter().all(|value| (value - expected).abs() < 1e-9), "{name}: {known:?}");
    }
    let single = run(&scenario(&[]), 1).rows;
    assert!(real(&single, "call_drops").iter().all(|value| value.is_nan()));
}

#[test]
fn availability_excludes_the_warm_up() {
    let mut scenario = over(&json!({ "lines": 1, "calls": { "schedule": [[[50, 150]]] } }));
    scenario["measure"] = json!({ "warmup_s": 100 });
    let rows = run(&scenario, 1).rows;
    let known = real(&rows, "any_line_up_fraction").iter().copied().find(|value| !value.is_nan());
    assert!((known.expect("there is a bundle") - 250.0 / 300.0).abs() < 1e-9, "{known:?}");
}

/// TCP of Linux over a bundle of Linux, compared with the kernel's own (6.1.192 and pppd 2.4.9 under QEMU): eight lines
/// of 2400 bit/s, a call that drops every 36 s. Measured: 5.91 +- 0.07 kb/s in three runs, silences of 25.8 to 26.6,
/// 41.3 to 44.5 and 27.5 to 29.9 s. The simulated TCP has 6.36 to 7.38, 16 % more, since it probes as Linux does; it was within
/// 5 % before, with faults that made up for each other here and not elsewhere: over 28 other schedules the sums now agree within 2 %
/// (docs/validation/bundle-tcp.md). Why this schedule is apart is not known.
#[test]
fn tcp_over_a_linux_bundle_matches_the_kernel() {
    let mut schedule = vec![json!([]); 8];
    for (line, down_s) in [24, 60, 96, 132, 168].into_iter().enumerate() {
        schedule[line] = json!([[down_s, down_s + 9]]);
    }
    let bundle = json!({ "lines": 8, "scheduler": "linux", "tty_bytes": 12288, "calls": { "schedule": schedule } });
    let mut scenario = scenario(&[("duration_s", json!(204))]);
    scenario["link"] = json!({ "rate_bps": 2400, "delay_s": 0.5, "bundle": bundle });
    scenario["transport"]["tcp"] = json!({
        "kind": "tcp", "variant": "rack", "congestion_control": "cubic", "segment_bytes": 1448, "timestamps": true,
        "rto": { "algorithm": "linux", "initial_s": 1, "minimum_s": 0.2 },
    });
    let run = once(&setup(&scenario), 1);
    let goodput_bps = goodput_bps(&run);
    assert!((goodput_bps / 5910.0 - 1.0).abs() < 0.2, "{goodput_bps}");
}
