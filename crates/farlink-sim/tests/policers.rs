//! Policers in front of queues, from end to end.

use crate::common::{expanded, once, real, run, scenario, set, setup};
use farlink_sim::Options;
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

/// Datagrams of 1000 bytes each 4 ms, 2 Mb/s, through a policer of 1 Mb/s and 5000 bytes: 500 tokens come between two of them.
fn datagrams(changes: &[(&str, Value)]) -> Value {
    let traffic = json!({ "kind": "cbr", "payload_bytes": 972, "rate_bps": 972.0 * 8.0 / 0.004, "bytes": 972_000 });
    let mut scenario = scenario(&[
        ("link", json!({ "rate_bps": 1e7, "delay_s": 0.05 })),
        ("link.policer", json!({ "rate_bps": 1e6, "burst_bytes": 5000 })),
        ("transport", json!({ "udp": { "kind": "udp" } })),
        ("flow", json!({ "data": { "transport": "udp", "traffic": traffic } })),
    ]);
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn first(scenario: &Value) -> FlowResult {
    once(&setup(scenario), 1).flows.remove(0)
}

/// The first nine pass, each of which finds 500 tokens less; then every second one, which finds 1000.
#[test]
fn a_policer_passes_the_burst_and_then_its_rate() {
    let flow = first(&datagrams(&[]));
    assert_eq!((flow.sent_packets, flow.delivered_packets, flow.lost_packets), (1000, 9 + 495, 496));
    // None waits.
    let delay_s = flow.arrival_delay.mean().unwrap();
    assert!((delay_s - 0.05 - 8000.0 / 1e7).abs() < 1e-12, "{delay_s}");
}

/// Whatever is behind it: the classes and the lines have their own queues.
#[test]
fn a_policer_stands_in_front_of_every_kind_of_queue() {
    let fifo = first(&datagrams(&[]));
    for changes in [
        vec![
            ("link.service", json!("strict")),
            (
                "flow.other",
                json!({ "transport": "udp", "class": 1, "start_s": 19, "traffic": { "kind": "file", "bytes": 1 } }),
            ),
        ],
        vec![("link.bundle", json!({ "lines": 2 }))],
    ] {
        let flow = first(&datagrams(&changes));
        assert_eq!(
            (flow.delivered_packets, flow.lost_packets),
            (fifo.delivered_packets, fifo.lost_packets),
            "{changes:?}"
        );
    }
}

/// What a policer drops takes no time on the link and no chance of its channel.
#[test]
fn a_dropped_packet_never_reaches_the_channel() {
    // Every second frame is lost: of the 504 that pass.
    let half = json!({ "kind": "gilbert-elliott", "p_good_to_bad": 1, "p_bad_to_good": 1, "loss_bad": 1 });
    let flow = first(&datagrams(&[("link.channel", half)]));
    assert_eq!((flow.delivered_packets, flow.lost_packets), (252, 748));
}

/// A rate above that of the link, with a burst as long as the flow, drops nothing and changes not a bit.
#[test]
fn an_ample_policer_changes_nothing() {
    let plain = scenario(&[("transport.tcp.delayed_ack", true.into())]);
    let mut policed = plain.clone();
    set(&mut policed, "link.policer", json!({ "rate_bps": 1e7, "burst_bytes": 1e8 }));
    assert_eq!(format!("{:?}", first(&plain)), format!("{:?}", first(&policed)));
}

/// A policer on the second hop, before a fast link: at the first one, a sender is told of the rate of the link.
fn behind(policer: Value, round_trip_s: f64, transport: &Value) -> Value {
    let wan = json!({ "rate_bps": 1e9, "delay_s": round_trip_s / 2.0 - 0.001, "policer": policer });
    scenario(&[
        ("link", Value::Null),
        ("path", json!(["lan", "wan"])),
        ("hop", json!({ "lan": { "rate_bps": 1e9, "delay_s": 0.001 }, "wan": wan })),
        ("transport.tcp", transport.clone()),
    ])
}

/// Windows of packets, paced rates and estimates of bandwidth find a policer without being told of it.
#[test]
fn senders_find_the_rate_of_a_policer() {
    for transport in [
        json!({ "kind": "tcp", "variant": "sack", "congestion_control": "cubic" }),
        json!({ "kind": "tcp", "variant": "sack", "congestion_control": "bbr3" }),
        json!({ "kind": "aerotp", "alone": true }),
    ] {
        let mut policed = behind(json!({ "rate_bps": 4e6, "burst_bytes": 30_000 }), 0.042, &transport);
        set(&mut policed, "duration_s", 60.into());
        set(&mut policed, "measure", json!({ "warmup_s": 20 }));
        let goodput_bps = real(&run(&policed, 1).rows, "goodput_bps")[0];
        assert!((0.4 * 4e6..=4e6 + 30_000.0 * 8.0 / 40.0).contains(&goodput_bps), "{goodput_bps} {transport}");
    }
}

/// A policer passes the beginning of a burst at the speed of a fast link. AeroTP took that for the rate of the bottleneck, sent 200 Mb/s
/// and more over 60 round trips, and lost 0.96 of it. `[P6]`
#[test]
fn a_learnt_rate_does_not_run_away_behind_a_policer() {
    for round_trip_s in [0.05, 0.5] {
        for control in [json!({ "alone": true }), json!({ "alone": false }), json!({ "rate_control": "friendly" })] {
            let mut transport = json!({ "kind": "aerotp", "rate_control": "learnt" });
            transport.as_object_mut().unwrap().extend(control.as_object().unwrap().clone());
            let mut policed = behind(json!({ "rate_bps": 1e7, "burst_bytes": 7500 }), round_trip_s, &transport);
            set(&mut policed, "duration_s", (60.0 * round_trip_s).into());
            let flow = first(&policed);
            let lost = flow.lost_packets as f64 / flow.sent_packets as f64;
            let goodput_bps = flow.delivered_bytes as f64 * 8.0 / (60.0 * round_trip_s);
            assert!(lost < 0.25 && goodput_bps > 4e6, "{lost} {goodput_bps} {round_trip_s} s {transport}");
        }
    }
}

/// A fast link behind a slow policer costs no more than the policer passes.
#[test]
fn the_estimate_of_the_cost_knows_the_policer() {
    let cpu_s = |scenario: &Value| farlink_sim::estimate(&expanded(scenario), &Options::default()).unwrap().cpu_s;
    let fast = scenario(&[
        ("link", json!({ "rate_bps": 1e9, "delay_s": 0.02 })),
        ("transport.tcp.max_window_segments", 10_000.into()),
    ]);
    let mut policed = fast.clone();
    set(&mut policed, "link.policer", json!({ "rate_bps": 1e6, "burst_bytes": 15_000 }));
    assert!(cpu_s(&policed) < 0.1 * cpu_s(&fast), "{} {}", cpu_s(&policed), cpu_s(&fast));
}
