//! Gateways and restarts in scenarios: valid ones are read, others refused with path, fault and remedy.

use farlink_core::ConfigError;
use farlink_core::scenario::{Custody, Scenario, Side, expand};
use serde_json::{Value, json};

fn scenario(gateway: Value) -> Value {
    json!({
        "duration_s": 100,
        "path": ["lan", "space", "ground"],
        "hop": {
            "lan": { "rate_bps": 1e8, "delay_s": 0 },
            "space": { "rate_bps": 1e6, "delay_s": 0.25, "gateway": gateway },
            "ground": { "rate_bps": 1e8, "delay_s": 0 },
        },
        "transport": { "own": { "kind": "arq" }, "edge": { "kind": "tcp" }, "packets": { "kind": "udp" } },
        "flow": { "file": { "transport": "own", "traffic": { "kind": "file", "bytes": 1000 } } },
    })
}

fn read(scenario: &Value) -> Scenario {
    expand(scenario).unwrap_or_else(|error| panic!("{error}")).points.remove(0).scenario
}

fn refusal(scenario: &Value) -> ConfigError {
    let error = expand(scenario).expect_err("it is refused");
    assert!(!error.remedy.is_empty() && !error.to_string().contains('\n'), "{error}");
    error
}

/// A scenario with a key set at a JSON pointer; only its last part may be missing.
fn changed(gateway: Value, pointer: &str, value: Value) -> Value {
    let mut scenario = scenario(gateway);
    let (table, key) = pointer.rsplit_once('/').unwrap();
    scenario.pointer_mut(table).unwrap()[key] = value;
    scenario
}

#[test]
fn gateway_true_gives_the_defaults() {
    let on = read(&scenario(json!(true)));
    let (at, name, gateway) = on.gateway().unwrap();
    assert_eq!((at, name, gateway.custody), (1, "space", Custody::Memory));
    assert_eq!((gateway.buffer_bytes.whole(), gateway.write_time()), (10_000_000, None));
    assert_eq!(gateway.edge(&on).kind(), "tcp");
    assert!(read(&scenario(json!(false))).gateway().is_none());
    assert!(read(&scenario(Value::Null)).gateway().is_none());
}

#[test]
fn a_gateway_table_round_trips() {
    let crash = json!({ "side": "receiver", "at_s": 30, "down_for_s": 5 });
    let keys = json!({ "edge_transport": "edge", "custody": "disk", "buffer_bytes": 5000, "crash": crash });
    let expanded = expand(&scenario(keys)).unwrap();
    let given = &expanded.points[0].scenario;
    let gateway = given.gateway().unwrap().2;
    assert_eq!(gateway.write_time().unwrap().get(), 0.01);
    assert_eq!(gateway.crash.unwrap().side, Side::Receiver);
    assert_eq!(read(&expanded.normalised()).gateway().unwrap().2, gateway);
}

#[test]
fn a_grid_turns_gateways_on_and_off() {
    let mut study = scenario(json!(true));
    study["grid"] = json!({ "hop.space.gateway": [true, false], "flow.file.split": [true, false] });
    let points = expand(&study).unwrap().points;
    let split = |at: usize| points[at].scenario.gateway().is_some() && points[at].scenario.flow["file"].split;
    assert_eq!([0, 1, 2, 3].map(split), [true, false, false, false]);
}

#[test]
fn datagrams_are_not_split() {
    let scenario = read(&changed(json!(true), "/flow/file/transport", json!("packets")));
    assert!(!scenario.is_split(&scenario.flow["file"]));
}

#[test]
fn contradictory_gateways_are_refused() {
    let crash = |at_s: u32| json!({ "crash": { "side": "sender", "at_s": at_s, "down_for_s": 1 } });
    let cases = [
        (scenario(json!(1)), "hop.space.gateway", "1 is not allowed", "true, false, or a table"),
        (scenario(json!({ "custoddy": "disk" })), "hop.space.gateway.custoddy", "not known", "custody"),
        (scenario(json!({ "custody": "tape" })), "hop.space.gateway.custody", "\"tape\"", "disk"),
        (scenario(json!({ "buffer_bytes": 0 })), "hop.space.gateway.buffer_bytes", "0 is not allowed", "whole number"),
        (scenario(json!({ "write_s": 0.1 })), "hop.space.gateway.write_s", "no effect", "custody = \"disk\""),
        (scenario(json!({ "edge_transport": "ege" })), "hop.space.gateway.edge_transport", "ege", "\"edge\""),
        (scenario(json!({ "edge_transport": "packets" })), "hop.space.gateway.edge_transport", "udp", "tcp"),
        (scenario(crash(100)), "hop.space.gateway.crash.at_s", "after the end", "less than 100"),
        (
            changed(json!(true), "/path", json!(["space", "ground"])),
            "hop.space.gateway",
            "no hop before",
            "add one before",
        ),
        (changed(json!(true), "/path", json!(["lan", "space"])), "hop.space.gateway", "no hop behind", "behind"),
        (changed(json!(true), "/hop/lan/gateway", json!(true)), "hop.lan.gateway", "no hop before", "add one before"),
    ];
    for (scenario, path, what, remedy) in cases {
        let error = refusal(&scenario);
        assert_eq!(error.path, path, "{error}");
        assert!(error.message().contains(what) && error.remedy.contains(remedy), "{error}");
    }
}

#[test]
fn only_one_hop_of_a_path_may_have_gateways() {
    let mut two = changed(json!(true), "/path", json!(["lan", "space", "ground", "far", "end"]));
    for (hop, gateway) in [("far", json!(true)), ("end", json!(false))] {
        two["hop"][hop] = json!({ "rate_bps": 1e6, "delay_s": 0, "gateway": gateway });
    }
    let error = refusal(&two);
    assert!(error.path == "hop.far.gateway" && error.message().contains("hop.space has"), "{error}");

    let link = json!({
        "duration_s": 1,
        "link": { "rate_bps": 1e6, "delay_s": 0, "gateway": true },
        "transport": { "tcp": { "kind": "tcp" } },
        "flow": { "bulk": { "transport": "tcp", "traffic": { "kind": "bulk" } } },
    });
    assert_eq!(refusal(&link).path, "link.gateway");
}

#[test]
fn contradictory_restarts_are_refused() {
    let restart = |at_s: u32| json!({ "side": "receiver", "at_s": at_s, "down_for_s": 5 });
    let plain = |pointer, value| changed(Value::Null, pointer, value);
    assert!(read(&plain("/flow/file/restart", restart(10))).flow["file"].restart.is_some());
    let late_start = {
        let mut scenario = plain("/flow/file/restart", restart(10));
        scenario["flow"]["file"]["start_s"] = json!(11);
        scenario
    };
    let transfers = {
        let mut scenario = plain("/flow/file/restart", restart(10));
        scenario["flow"]["file"]["traffic"] = json!({ "kind": "transfers", "rate_per_s": 1, "bytes": 1 });
        scenario
    };
    let down_for_nothing = json!({ "side": "sender", "at_s": 1, "down_for_s": 0 });
    let cases = [
        (plain("/flow/file/restart", restart(100)), "flow.file.restart.at_s", "after the end"),
        (plain("/flow/file/restart", down_for_nothing), "flow.file.restart.down_for_s", "0 is not allowed"),
        (late_start, "flow.file.restart.at_s", "before the flow starts"),
        (transfers, "flow.file.restart", "connection of its own"),
        (changed(json!(true), "/flow/file/restart", restart(10)), "flow.file.restart", "gateways on the path"),
    ];
    for (scenario, path, what) in cases {
        let error = refusal(&scenario);
        assert_eq!(error.path, path, "{error}");
        assert!(error.message().contains(what), "{error}");
    }
}

#[test]
fn restarts_without_a_handshake_need_a_receiver_that_does_not_give_up() {
    let restart = json!({ "side": "sender", "at_s": 30, "down_for_s": 5 });
    let best_effort = json!({ "kind": "scps-tp", "hold_time_s": 1, "handshake": false });
    let mut with_restart = changed(json!(false), "/flow/file/restart", restart.clone());
    with_restart["transport"]["own"] = best_effort.clone();
    let mut of_gateway = scenario(json!({ "crash": restart }));
    of_gateway["transport"]["own"] = best_effort.clone();
    let mut of_edge = scenario(json!({ "crash": restart, "edge_transport": "edge" }));
    of_edge["transport"]["edge"] = best_effort;

    for (scenario, path, transport) in [
        (&mut with_restart, "flow.file.restart", "own"),
        (&mut of_gateway, "hop.space.gateway.crash", "own"),
        (&mut of_edge, "hop.space.gateway.crash", "edge"),
    ] {
        let error = refusal(scenario);
        assert_eq!(error.path, path);
        assert!(
            error.message().contains(&format!("transport.{transport} has hold_time_s and handshake = false")),
            "{error}"
        );
        scenario["transport"][transport]["handshake"] = json!(true);
        read(scenario);
        scenario["transport"][transport] = json!({ "kind": "scps-tp", "handshake": false });
        read(scenario);
    }
}
