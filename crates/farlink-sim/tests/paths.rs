//! Bundles of IP paths in whole runs: what flows get, what paths carry, and that no packet is in two places.

use crate::common;
use crate::common::{bits, once, real, run, scenario, set, setup, text};
use farlink_core::scenario::expand;
use farlink_sim::engine::RunResult;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One TCP connection with CUBIC over these paths.
fn over(members: Value, duration_s: u32) -> Value {
    scenario(&[
        ("runs", json!(1)),
        ("duration_s", json!(duration_s)),
        ("link", json!({ "rate_bps": 1e7, "delay_s": 0.014, "queue_bytes": 100_000, "paths": { "members": members } })),
        (
            "transport.tcp",
            json!({ "kind": "tcp", "variant": "sack", "segment_bytes": 1348, "congestion_control": "cubic",
            "receive_window_segments": 4000 }),
        ),
    ])
}

fn voice(scenario: &mut Value) {
    set(scenario, "transport.udp", json!({ "kind": "udp" }));
    let traffic = json!({ "kind": "cbr", "rate_bps": 64e3, "payload_bytes": 160 });
    set(scenario, "flow.call", json!({ "transport": "udp", "class": 0, "traffic": traffic }));
    set(scenario, "flow.bulk.class", json!(4));
    set(scenario, "link.paths.classes", json!([{ "number": 0, "policy": "redundant" }]));
}

fn goodput_bps(run: &RunResult) -> f64 {
    run.flows[0].delivered_bytes as f64 * 8.0 / run.flows[0].measured.as_secs_f64()
}

#[test]
fn two_paths_carry_more_than_the_best_one() {
    let both = json!([{ "name": "a" }, { "name": "b", "rate_bps": 4e6, "delay_s": 0.02 }]);
    let of = |members| {
        let mut scenario = over(members, 20);
        set(&mut scenario, "measure", json!({ "warmup_s": 5 }));
        goodput_bps(&once(&setup(&scenario), 1))
    };
    let (one, two) = (of(json!([{ "name": "a" }])), of(both));
    assert!(one > 0.85e7 && one < 0.96e7, "{one}");
    // Headers of TCP, bundle, seal, UDP and IP take a tenth.
    assert!(two > 0.86 * 1.4e7 && two < 0.91 * 1.4e7, "{two}");
}

#[test]
fn an_unplugged_path_costs_no_packet_of_a_redundant_stream() {
    for noticed_by in ["near", "far", "both", "nobody"] {
        let unplugged = json!([{ "from_s": 5, "to_s": 7, "noticed_by": noticed_by }]);
        let members =
            json!([{ "name": "a", "unplugged": unplugged }, { "name": "b", "rate_bps": 4e6, "delay_s": 0.02 }]);
        let mut scenario = over(members, 12);
        voice(&mut scenario);
        let table = run(&scenario, 1).rows;
        let value = |flow: &str, column: &str| {
            real(&table, column)[text(&table, "flow").iter().position(|name| name == flow).unwrap()]
        };
        // Those under way at the end are not there yet: 50 a second, and a delay of 20 ms.
        assert!(
            value("call", "delivered_packets") >= 600.0 - 3.0,
            "{noticed_by}: {}",
            value("call", "delivered_packets")
        );
        assert_eq!(value("call", "loss_fraction"), 0.0, "{noticed_by}");
        // Down for 2 s of 12, less up to a second of silence before anybody notices, and probed again within 3 s.
        let (least, most) = if noticed_by == "nobody" { (7.0, 11.0) } else { (7.0, 10.0) };
        let up_s = 12.0 * value("link.paths.a", "lines_up_fraction");
        assert!((least..=most).contains(&up_s), "{noticed_by}: {up_s}");
        assert_eq!(value("link.paths.b", "call_drops"), 0.0);
        assert!(value("link.paths.a", "call_drops") >= 1.0);
    }
}

#[test]
fn a_path_that_stands_by_carries_nothing_until_it_must() {
    let carried = |unplugged: Value| {
        let standby = json!({ "name": "b", "rate_bps": 1e5, "delay_s": 0.3, "standby": true });
        let table = run(&over(json!([{ "name": "a", "unplugged": unplugged }, standby]), 20), 1).rows;
        real(&table, "delivered_bytes")[text(&table, "flow").iter().position(|name| name == "link.paths.b").unwrap()]
    };
    assert_eq!(carried(json!([])), 0.0);
    assert!(carried(json!([{ "from_s": 8, "to_s": 12 }])) > 1e4);
}

#[test]
fn senseless_bundles_are_refused_by_name() {
    let refused = |changes: &[(&str, Value)]| {
        let mut scenario = over(json!([{ "name": "a" }]), 1);
        changes.iter().for_each(|(key, value)| set(&mut scenario, key, value.clone()));
        expand(&scenario).unwrap_err().to_string()
    };
    let member = |member: Value| ("link.paths.members", json!([member]));
    for (changes, part) in [
        (vec![("link.paths.members", json!([]))], "link.paths.members: there are 0 paths"),
        (
            vec![("link.paths.members", json!([{ "name": "a" }, { "name": "a" }]))],
            "members[1].name: \"a\" is there twice",
        ),
        (vec![("link.bundle", json!({ "lines": 2 }))], "link.paths: bundle and paths are both given"),
        (vec![("link.channel", json!({ "kind": "loss", "loss": 0.1 }))], "give it to a path"),
        (vec![member(json!({ "name": "a b" }))], "members[0].name: \"a b\" cannot be a name"),
        (vec![member(json!({ "name": "a", "unplugged": [{ "from_s": 3, "to_s": 3 }] }))], "unplugged[0]: from_s = 3"),
        (vec![member(json!({ "name": "a", "mtu_bytes": 200 }))], "mtu_bytes: 200 is not within 576 and 9000"),
        (vec![member(json!({ "name": "a", "classes": [] }))], "the path may carry no class"),
        (vec![member(json!({ "name": "a", "queue_bytes": 1, "queue_packets": 1 }))], "members[0]: queue_bytes and"),
        (vec![("link.paths.limits", json!({ "latency_s": 1000 }))], "limits.latency_s: 1000 is not within"),
        (vec![("link.paths.classes", json!([{ "number": 0 }, { "number": 0 }]))], "class 0 is there twice"),
    ] {
        let error = refused(&changes);
        assert!(error.contains(part), "{part} in {error}");
    }
}

/// A hop with gateways may be a bundle of paths, behind and in front of others.
#[test]
fn a_bundle_of_paths_is_a_hop_among_others() {
    let mut scenario = over(json!([{ "name": "a" }, { "name": "b", "rate_bps": 4e6 }]), 10);
    let space = scenario["link"].clone();
    let lan = json!({ "rate_bps": 1e9, "delay_s": 0.001 });
    scenario.as_object_mut().unwrap().remove("link");
    // With the slow start, which takes a second of ten.
    for gateway in [false, true] {
        set(&mut scenario, "path", json!(["lan", "space", "ground"]));
        scenario["hop"] = json!({ "lan": lan, "space": space, "ground": lan });
        scenario["hop"]["space"]["gateway"] = json!(gateway);
        let table = run(&scenario, 1).rows;
        assert_eq!(text(&table, "flow"), ["bulk", "all", "space.paths.a", "space.paths.b"]);
        assert!(real(&table, "goodput_fraction")[0] > 0.75, "{gateway}: {:?}", real(&table, "goodput_fraction"));
    }
}

#[test]
fn the_emulator_plays_paths_one_by_one() {
    let scenario = expand(&over(json!([{ "name": "a" }]), 1)).unwrap().points[0].scenario.clone();
    assert_eq!(farlink_core::emulator::check_playable(&scenario).unwrap_err().path, "link.paths");
}

/// Rates, delays, losses and outages at random, in both directions; bulk of TCP, a redundant stream, datagrams back and forth.
fn bundles() -> impl Strategy<Value = Value> {
    let rate = prop_oneof![2.4e3..2e4, 2e4..1e6, 1e6..2e7];
    let delay = prop_oneof![0.001..0.05, 0.05..0.7, 0.7..5.0];
    let channel = prop_oneof![
        3 => Just(json!({ "kind": "none" })),
        1 => (0.0..0.3).prop_map(|loss| json!({ "kind": "loss", "loss": loss })),
        1 => (1.0..8.0, 0.05..3.0).prop_map(|(period, down): (f64, f64)| {
            json!({ "kind": "outage", "period_s": period + down, "down_s": down })
        }),
        1 => Just(json!({ "kind": "ber", "ber": 1e-5 })),
    ];
    let ends = proptest::sample::select(vec!["near", "far", "both", "nobody"]);
    let unplugged = prop_oneof![
        Just(json!([])),
        (1.0..10.0, 0.05..6.0, ends).prop_map(|(from, down, by): (f64, f64, &str)| {
            json!([{ "from_s": from, "to_s": from + down, "noticed_by": by }])
        }),
    ];
    let member = (rate.clone(), delay, 3000..200_000_u32, channel.clone(), channel, unplugged, any::<bool>(), rate);
    let members = proptest::collection::vec(member, 1..5).prop_map(|members| {
        let mut all = Vec::new();
        for (at, (rate, delay, queue, channel, back, unplugged, standby, back_rate)) in members.into_iter().enumerate()
        {
            all.push(json!({ "name": format!("p{at}"), "rate_bps": rate, "delay_s": delay, "queue_bytes": queue,
                "channel": channel, "unplugged": unplugged, "standby": standby, "cost": at,
                "return": { "channel": back, "rate_bps": back_rate } }));
        }
        Value::Array(all)
    });
    let policy = proptest::sample::select(vec!["redundant", "redundant-on-all", "earliest-delivery", "cheapest"]);
    (members, policy, any::<bool>()).prop_map(|(members, policy, ordered)| {
        let mut scenario = over(members, 15);
        voice(&mut scenario);
        set(&mut scenario, "link.paths.classes", json!([{ "number": 0, "policy": policy, "ordered": ordered }]));
        set(&mut scenario, "runs", json!(2));
        set(&mut scenario, "grid", json!({ "flow.bulk.class": [4, 0] }));
        scenario
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(8)))]
    #[test]
    fn any_bundle_gives_the_same_table_on_any_number_of_threads(scenario in bundles()) {
        let (first, second) = (run(&scenario, 1), run(&scenario, 3));
        prop_assert_eq!(bits(&first.rows), bits(&second.rows));
    }

    /// Streams that end: each packet came out once (a second time would be a panic of the bundle) or was lost or dropped, and the run
    /// ends by itself when the last of them has.
    #[test]
    fn any_bundle_delivers_each_packet_once_or_counts_it(scenario in bundles()) {
        let mut scenario = scenario;
        set(&mut scenario, "duration_s", json!(400));
        for (flow, class, payload) in [("bulk", 4, 1300), ("call", 0, 160)] {
            let traffic = json!({ "kind": "cbr", "rate_bps": 2e5, "payload_bytes": payload, "bytes": 1e5 });
            set(&mut scenario, &format!("flow.{flow}"), json!({ "transport": "udp", "class": class, "traffic": traffic }));
        }
        set(&mut scenario, "grid", Value::Null);
        let run = once(&setup(&scenario), 3);
        prop_assert!(run.ran_dry && run.end.as_secs_f64() < 400.0, "it lasts until {}", run.end);
        for flow in &run.flows {
            let settled = flow.delivered_packets + flow.lost_packets;
            prop_assert_eq!(settled, flow.sent_packets, "{} delivered, {} lost", flow.delivered_packets, flow.lost_packets);
        }
        for way in run.over_paths.iter().flatten() {
            prop_assert!(way.arrived + way.lost + way.dropped <= way.sent, "{:?}", way);
            prop_assert!(way.arrived_bytes <= way.sent_bytes && way.data_bytes <= way.sent_data_bytes, "{:?}", way);
        }
    }
}
