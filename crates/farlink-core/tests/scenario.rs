//! The meaning of scenarios.

use farlink_core::channel::ChannelKind;
use farlink_core::link::QueueLimit;
use farlink_core::link::setting::Setting;
use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::traffic::Arrivals;
use farlink_core::scenario::{Expanded, Ordering, Points, TrafficKind, expand, expand_some, schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn fine() -> Value {
    json!({
        "duration_s": 100,
        "link": { "rate_bps": 1e6, "delay_s": 0.25, "queue_bytes": 100_000, "channel": { "loss": 1e-3, "kind": "loss" } },
        "transport": { "sack": { "variant": "sack", "kind": "tcp" } },
        "flow": { "bulk": { "transport": "sack", "traffic": { "kind": "bulk" } } },
    })
}

fn with(changes: Value) -> Value {
    let mut scenario = fine();
    merge(&mut scenario, changes);
    scenario
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, changes) => *into = changes,
    }
}

fn settings(expanded: &Expanded) -> Vec<String> {
    let line = |(path, value): &(String, Value)| format!("{path}={value}");
    expanded.points.iter().map(|point| point.settings.iter().map(line).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_return_path_inherits_absent_keys() {
    let expanded = expand(&with(json!({"link": {"return": {"rate_bps": 9600}}}))).unwrap();
    let hops = expanded.points[0].scenario.hops();
    let (name, link) = hops[0];
    assert_eq!((name, hops.len()), ("link", 1));
    let (forward, back) = (link.forward(), link.back());
    assert!(matches!(back.rate, Setting::Constant(rate) if rate.get() == 9600.0));
    assert!(matches!(back.delay, Setting::Constant(delay) if delay.get() == 0.25));
    assert_eq!((forward.queue, back.queue), (QueueLimit::Bytes(100_000), QueueLimit::Bytes(100_000)));
    assert!(matches!((forward.channel, back.channel), (ChannelKind::Loss(_), ChannelKind::None(_))));
    assert_eq!(back.ordering, Ordering::Fifo);
}

#[test]
fn hops_come_in_the_order_of_the_path() {
    let hop = json!({"rate_bps": 1e6, "delay_s": 0});
    let mut scenario = with(json!({"path": ["space", "access"], "hop": {"access": hop, "space": hop}}));
    scenario.as_object_mut().unwrap().remove("link");
    let expanded = expand(&scenario).unwrap();
    let names: Vec<_> = expanded.points[0].scenario.hops().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["space", "access"]);
}

#[test]
fn the_grid_is_the_cross_product_in_file_order() {
    let scenario = with(json!({
        "grid": {"transport.sack.variant": ["reno", "sack"], "link": {"channel": {"loss": [0, 0.1]}}},
        "grid_zip": [{"link.rate_bps": [1e6, 2e6], "link.delay_s": [0.1, 0.2]}],
    }));
    let expanded = expand(&scenario).unwrap();
    let points = settings(&expanded);
    assert_eq!(points.len(), 8);
    assert_eq!(
        points[1],
        "transport.sack.variant=\"reno\" link.channel.loss=0 link.rate_bps=2000000.0 link.delay_s=0.2"
    );
    assert_eq!(
        points[7],
        "transport.sack.variant=\"sack\" link.channel.loss=0.1 link.rate_bps=2000000.0 link.delay_s=0.2"
    );
    let TransportConfig::Tcp(tcp) = &expanded.points[7].scenario.transport["sack"] else { panic!("it is TCP") };
    assert_eq!(tcp.variant, farlink_core::protocol::tcp::variant::Variant::Sack);
}

#[test]
fn a_grid_may_vary_what_exists_only_by_default() {
    for (path, value) in [
        ("transport.sack.rto.minimum_s", json!([0.2])),
        ("link.return.rate_bps", json!([9600])),
        ("link.return.channel", json!([{"kind": "loss", "loss": 0.5}])),
        ("measure.warmup_s", json!([10])),
        ("flow.bulk.count", json!([1, 100])),
        ("flow.bulk.traffic", json!([{"kind": "file", "bytes": 1e6}, {"kind": "bulk"}])),
        ("seed", json!([1, 2])),
    ] {
        let expanded = expand(&with(json!({"grid": {path: value}})));
        assert!(expanded.is_ok(), "{path}: {}", expanded.unwrap_err());
    }
}

#[test]
fn without_a_grid_there_is_one_point() {
    let expanded = expand(&fine()).unwrap();
    assert_eq!((expanded.points.len(), expanded.points[0].settings.len()), (1, 0));
}

/// No point of a grid of ten million is made before it is asked for.
#[test]
fn points_are_made_one_by_one() {
    let grid = json!({"link.channel.loss": [0.1, 0.2], "link.delay_s": [1, 2, 3]});
    let scenario = with(json!({ "grid": grid, "grid_zip": [{"runs": [4, 5], "seed": [1, 2]}] }));
    let (whole, points) = (expand(&scenario).unwrap(), Points::new(&scenario).unwrap());
    assert_eq!((points.count(), whole.points.len()), (12, 12));
    for number in 0..12 {
        let (point, given) = points.point(number).unwrap();
        assert_eq!(point.settings, whole.points[number].settings);
        assert_eq!(points.settings(number).unwrap(), point.settings);
        assert_eq!(expand(&given).unwrap().normalised(), point.normalised(), "the point alone is the same scenario");
    }
    let some = expand_some(&scenario, &[7, 2]).unwrap();
    assert_eq!(settings(&some), [7, 2].map(|number| settings(&whole)[number].clone()));

    let seeds: Vec<i32> = (0..100_000).collect();
    let delays: Vec<i32> = (0..100).map(|at| if at == 2 { -3 } else { at }).collect();
    let large = with(json!({ "grid": { "seed": seeds, "link.delay_s": delays } }));
    assert_eq!(expand(&large).unwrap_err().what, "100000 x 100 points are more than 100000");
    assert_eq!(settings(&expand_some(&large, &[9_999_999]).unwrap()), ["seed=99999 link.delay_s=99"]);
    for (numbers, refusal) in [
        (vec![2], "grid.\"link.delay_s\": -3 is not allowed"),
        (vec![10_000_000], "points: there is no point 10000000"),
        (vec![], "points: no point is chosen"),
    ] {
        let error = expand_some(&large, &numbers).unwrap_err();
        assert!(error.message().starts_with(refusal), "{}", error.message());
    }
}

#[test]
fn the_normalised_scenario_is_complete_and_equivalent() {
    let scenario = with(json!({"grid": {"link.channel.loss": [0.1, 0.2]}}));
    let normalised = expand(&scenario).unwrap().normalised();
    assert_eq!(normalised["runs"], json!(10.0));
    assert_eq!(normalised["transport"]["sack"]["rto"]["initial_s"], json!(1.0));
    let again = expand(&normalised).unwrap();
    assert_eq!(again.points.len(), 2);
    assert_eq!(again.normalised(), normalised);
}

#[test]
fn an_estimate_that_is_never_forgotten_round_trips() {
    for value in [json!("never"), json!(4.0)] {
        let scenario = with(json!({ "transport": { "sack": { "rto": { "forget_above_backoff": value } } } }));
        let normalised = expand(&scenario).unwrap().normalised();
        assert_eq!(normalised["transport"]["sack"]["rto"]["forget_above_backoff"], value);
        assert_eq!(expand(&normalised).unwrap().normalised(), normalised);
    }
}

#[test]
fn every_kind_round_trips() {
    let traffic = [
        json!({"kind": "bulk"}),
        json!({"kind": "file", "bytes": 1e6}),
        json!({"kind": "cbr", "rate_bps": 1e6, "payload_bytes": 1472.0}),
        json!({"kind": "transfers", "list": [{"at_s": 0.5, "bytes": 1e5}]}),
        json!({"kind": "transfers", "rate_per_s": 2.0, "bytes": 1e5}),
    ];
    let kinds: Vec<_> = traffic.iter().map(|traffic| traffic["kind"].as_str().unwrap()).collect();
    assert!(TrafficKind::KINDS.iter().all(|kind| kinds.contains(kind)), "a kind has no example here");
    for traffic in traffic {
        let read: TrafficKind = serde_json::from_value(traffic.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), traffic);
        let expanded = expand(&with(json!({"flow": {"bulk": {"traffic": traffic}}}))).unwrap();
        assert_eq!(expanded.normalised()["flow"]["bulk"]["traffic"], traffic);
    }
    for kind in TransportConfig::KINDS {
        let read: TransportConfig = serde_json::from_value(json!({"kind": kind})).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!((written["kind"].as_str(), read.kind()), (Some(*kind), *kind));
        assert!(serde_json::from_value::<TransportConfig>(written).is_ok());
    }
}

#[test]
fn kind_may_be_anywhere_in_its_table() {
    let text = r#"{"rate_per_s": 2, "kind": "transfers", "bytes": 10}"#;
    let TrafficKind::Transfers(transfers) = serde_json::from_str(text).unwrap() else { panic!("these are transfers") };
    assert_eq!(transfers.arrivals(), Arrivals::Poisson { rate_per_s: 2.0, bytes: 10 });
}

#[test]
fn schema_of_the_scenario() {
    insta::assert_snapshot!(schema());
}

/// Any JSON that uses the words of scenarios.
fn json_of_known_words() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "kind",
        "link",
        "path",
        "hop",
        "transport",
        "flow",
        "grid",
        "grid_zip",
        "channel",
        "return",
        "loss",
        "rate_bps",
        "delay_s",
        "traffic",
        "bulk",
        "tcp",
        "list",
        "bytes",
        "engines",
        "measure",
        "link.channel.loss",
        "",
        "a.",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let entries = prop::collection::vec((words.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            entries.prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

/// Dotted paths of all values.
fn all_paths(value: &Value, path: &str, out: &mut Vec<String>) {
    let Value::Object(table) = value else { return };
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        all_paths(value, &path, out);
        out.push(path);
    }
}

proptest! {
    #[test]
    fn reading_never_panics(scenario in json_of_known_words()) {
        let _ = expand(&scenario);
    }

    /// A scenario with one changed value is accepted, or refused with a path and a remedy.
    #[test]
    fn one_wrong_value_is_refused_with_path_and_remedy(value in json_of_known_words(), at in any::<prop::sample::Index>(), in_grid: bool) {
        let mut paths = Vec::new();
        all_paths(&fine(), "", &mut paths);
        let path = at.get(&paths);
        let mut scenario = fine();
        if in_grid {
            merge(&mut scenario, json!({"grid": {path: [value]}}));
        } else {
            *scenario.pointer_mut(&format!("/{}", path.replace('.', "/"))).unwrap() = value;
        }
        if let Err(error) = expand(&scenario) {
            prop_assert!(!error.path.is_empty() && !error.remedy.is_empty(), "{error:?}");
            prop_assert!(!error.message().contains('\n') && !error.remedy.contains('\n'), "{error:?}");
        }
    }
}
