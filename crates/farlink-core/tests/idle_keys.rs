//! Keys without effect are refused, but only if they are given.

use farlink_core::scenario::expand;
use serde_json::{Map, Value, json};

fn scenario(transport: &Value) -> Value {
    json!({
        "duration_s": 100,
        "link": { "rate_bps": 1e6, "delay_s": 0.25 },
        "transport": { "one": transport },
        "flow": { "bulk": { "transport": "one", "traffic": { "kind": "bulk" } } },
    })
}

/// A transport, a key of it without effect, and the setting that would give it one.
fn idle_keys() -> Vec<(Value, &'static str, Value)> {
    let tcp = |keys: Value| merged(json!({ "kind": "tcp" }), &keys);
    let stp = |keys: Value| merged(json!({ "kind": "stp" }), &keys);
    let scps = |keys: Value| merged(json!({ "kind": "scps-tp" }), &keys);
    let arq = |keys: Value| merged(json!({ "kind": "arq" }), &keys);
    let aerotp = |keys: Value| merged(json!({ "kind": "aerotp" }), &keys);
    let fixed = |key: &str, value: Value| json!({ "rto": { "algorithm": "fixed", key: value } });
    let rfc793 = |key: &str, value: Value| json!({ "rto": { "algorithm": "rfc793", key: value } });
    let rfc6298 = json!({ "rto": { "algorithm": "rfc6298" } });
    vec![
        (tcp(json!({ "variant": "rack", "limited_transmit": true })), "limited_transmit", json!({ "variant": "sack" })),
        (tcp(json!({ "variant": "none", "limited_transmit": true })), "limited_transmit", json!({ "variant": "reno" })),
        (tcp(json!({ "variant": "rack", "recover_guard": true })), "recover_guard", json!({ "variant": "newreno" })),
        (
            tcp(json!({ "variant": "none", "duplicate_ack_threshold": 3 })),
            "duplicate_ack_threshold",
            json!({ "variant": "rack" }),
        ),
        (
            tcp(json!({ "delayed_ack": false, "delayed_ack_timeout_s": 0.1 })),
            "delayed_ack_timeout_s",
            json!({ "delayed_ack": true }),
        ),
        (
            tcp(json!({ "timestamps": false, "timestamp_echo": "latest" })),
            "timestamp_echo",
            json!({ "timestamps": true }),
        ),
        (
            tcp(json!({ "delayed_ack": false, "delayed_ack_timeout_s": [0, 0.2] })),
            "delayed_ack_timeout_s",
            json!({ "delayed_ack": true }),
        ),
        (
            tcp(json!({ "variant": "rack", "congestion_control": "bbr", "initial_ssthresh_segments": 70 })),
            "initial_ssthresh_segments",
            json!({ "congestion_control": "cubic" }),
        ),
        (
            tcp(json!({ "congestion_control": "bbr3", "restart_after_idle": true })),
            "restart_after_idle",
            json!({ "congestion_control": "reno" }),
        ),
        (
            tcp(json!({ "congestion_control": "none", "max_window_segments": 70, "prr": true })),
            "prr",
            json!({ "congestion_control": "reno" }),
        ),
        (
            tcp(json!({ "congestion_control": "cubic", "hystart": true, "initial_ssthresh_segments": 70 })),
            "hystart",
            json!({ "initial_ssthresh_segments": null }),
        ),
        (tcp(fixed("alpha", json!(0.1))), "rto.alpha", rfc6298.clone()),
        (tcp(fixed("beta", json!(0.1))), "rto.beta", rfc6298.clone()),
        (scps(fixed("k", json!(3))), "rto.k", rfc6298.clone()),
        (stp(fixed("factor", json!(3))), "rto.factor", rfc6298.clone()),
        (arq(fixed("minimum_s", json!(0.2))), "rto.minimum_s", rfc6298.clone()),
        (arq(fixed("maximum_s", json!(30))), "rto.maximum_s", json!({ "rto": { "backoff_limit": 2 } })),
        (tcp(rfc793("k", json!(4))), "rto.k", rfc6298.clone()),
        (arq(rfc793("beta", json!(0.25))), "rto.beta", rfc6298),
        (
            tcp(json!({ "rto": { "backoff_limit": 8, "forget_above_backoff": 8 } })),
            "rto.forget_above_backoff",
            json!({ "rto": { "backoff_limit": 9 } }),
        ),
        (
            stp(json!({ "congestion": "rate", "rate_bps": 1e5, "initial_window_segments": 10 })),
            "initial_window_segments",
            json!({ "congestion": "tcp", "rate_bps": null }),
        ),
        (
            stp(json!({ "congestion": "rate", "rate_bps": 1e5, "initial_ssthresh_segments": 10 })),
            "initial_ssthresh_segments",
            json!({ "congestion": "tcp", "rate_bps": null }),
        ),
        (
            scps(json!({ "variant": "rack", "congestion_control": "bbr", "initial_ssthresh_segments": 10 })),
            "initial_ssthresh_segments",
            json!({ "congestion_control": "vegas" }),
        ),
        (arq(json!({ "mode": "go-back-n", "compatible": true })), "compatible", json!({ "mode": "selective-repeat" })),
        (
            arq(json!({ "adaptive_length": { "estimate": "genie", "memory_s": 0.1 } })),
            "adaptive_length.memory_s",
            json!({ "adaptive_length": { "estimate": "acknowledged" } }),
        ),
        (
            arq(json!({ "adaptive_length": { "estimate": "genie", "prior_losses": 1 } })),
            "adaptive_length.prior_losses",
            json!({ "adaptive_length": { "estimate": "acknowledged" } }),
        ),
        (
            aerotp(json!({ "adaptive_length": { "estimate": "genie", "memory_s": 1 } })),
            "adaptive_length.memory_s",
            json!({ "adaptive_length": { "estimate": "acknowledged" } }),
        ),
        (
            aerotp(json!({ "adaptive_length": { "estimate": "genie", "prior_losses": 1 } })),
            "adaptive_length.prior_losses",
            json!({ "adaptive_length": { "estimate": "acknowledged" } }),
        ),
        (
            arq(json!({ "adaptive_length": { "rule": "two-lengths", "prior_losses": 1 } })),
            "adaptive_length.prior_losses",
            json!({ "adaptive_length": { "rule": "power" } }),
        ),
        (
            arq(json!({ "adaptive_length": { "rule": "optimal", "scale": 2 } })),
            "adaptive_length.scale",
            json!({ "adaptive_length": { "rule": "power" } }),
        ),
        (
            arq(json!({ "adaptive_length": { "rule": "two-lengths", "exponent": 2 } })),
            "adaptive_length.exponent",
            json!({ "adaptive_length": { "rule": "power" } }),
        ),
        (arq(json!({ "ack": "per-packet", "compatible": true })), "compatible", json!({ "ack": "cumulative" })),
        (aerotp(json!({ "mode": "unreliable", "fec_words": 8 })), "fec_words", json!({ "mode": "quasi-reliable" })),
        (aerotp(json!({ "mack_parity": true })), "mack_parity", json!({ "fec_share": 0.1 })),
        (
            aerotp(json!({ "mode": "unreliable", "mack_parity": true })),
            "mack_parity",
            json!({ "mode": "quasi-reliable" }),
        ),
        (aerotp(json!({ "mode": "datagram", "fec_share": 0.1 })), "fec_share", json!({ "mode": "reliable" })),
        (
            aerotp(json!({ "mode": "unreliable", "adaptive_fec": {} })),
            "adaptive_fec",
            json!({ "mode": "quasi-reliable" }),
        ),
        (
            aerotp(json!({ "mode": "unreliable", "erasure": { "source": 8, "repair": 2 } })),
            "erasure",
            json!({ "mode": "quasi-reliable" }),
        ),
        (aerotp(json!({ "hold_time_s": 1 })), "hold_time_s", json!({ "mode": "unreliable" })),
        (aerotp(json!({ "mode": "datagram", "hold_time_s": 1 })), "hold_time_s", json!({ "mode": "unreliable" })),
        (aerotp(json!({ "deliver_damaged": true })), "deliver_damaged", json!({ "mode": "datagram" })),
        (aerotp(json!({ "mode": "unreliable", "acks_per_mack": 4 })), "acks_per_mack", json!({ "mode": "reliable" })),
        (aerotp(json!({ "mode": "unreliable", "mack_timeout_s": 1 })), "mack_timeout_s", json!({ "mode": "reliable" })),
        (
            aerotp(json!({ "mode": "unreliable", "acks_per_mack": 4 })),
            "acks_per_mack",
            json!({ "rate_control": "learnt" }),
        ),
        (aerotp(json!({ "mode": "quasi-reliable", "ecn": true })), "ecn", json!({ "rate_control": "friendly" })),
        (aerotp(json!({ "mode": "datagram", "copies": 2 })), "copies", json!({ "mode": "reliable" })),
        (aerotp(json!({ "mode": "datagram", "spare_copies": true })), "spare_copies", json!({ "mode": "reliable" })),
        (
            aerotp(json!({ "mode": "unreliable", "rate_bps": 1e6, "alone": true })),
            "alone",
            json!({ "mode": "reliable" }),
        ),
        (aerotp(json!({ "mode": "datagram", "initial_rto_s": 2 })), "initial_rto_s", json!({ "mode": "unreliable" })),
        (
            aerotp(json!({ "mode": "datagram", "give_up_after_s": 9 })),
            "give_up_after_s",
            json!({ "mode": "unreliable" }),
        ),
        (aerotp(json!({ "mode": "datagram", "keep_alive_s": 9 })), "keep_alive_s", json!({ "mode": "unreliable" })),
        (aerotp(json!({ "mode": "datagram", "opens": "both" })), "opens", json!({ "mode": "unreliable" })),
    ]
}

fn merged(mut table: Value, changes: &Value) -> Value {
    let (Value::Object(into), Value::Object(changes)) = (&mut table, changes) else { return changes.clone() };
    for (key, value) in changes {
        let before = into.entry(key).or_insert_with(|| Value::Object(Map::new()));
        *before = if value.is_object() { merged(before.take(), value) } else { value.clone() };
    }
    table
}

#[test]
fn keys_without_effect_are_refused_with_a_remedy() {
    for (transport, key, help) in idle_keys() {
        let error = expand(&scenario(&transport)).err().unwrap_or_else(|| panic!("{transport} was taken"));
        assert_eq!(error.path, format!("transport.one.{key}"), "{transport}: {error}");
        assert!(error.message().contains("has no effect") && error.remedy.contains("leave it out"), "{error}");
        let helped = merged(transport.clone(), &help);
        assert!(expand(&scenario(&helped)).is_ok(), "{helped}: {}", expand(&scenario(&helped)).unwrap_err());
    }
}

#[test]
fn absent_and_disabled_keys_cause_no_contradiction() {
    for (transport, key, _) in idle_keys() {
        let mut without = scenario(&transport);
        let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
        let table = if table.is_empty() { "/transport/one".to_owned() } else { format!("/transport/one/{table}") };
        let Some(Value::Object(table)) = without.pointer_mut(&table) else { panic!("{transport} has no {key}") };
        let value = table.remove(last).unwrap();
        assert!(expand(&without).is_ok(), "{transport} without {key}");
        if value.is_boolean() {
            let mut off = without;
            off["transport"]["one"][last] = json!(false);
            assert!(expand(&off).is_ok(), "{transport} with {key} off");
        }
    }
}

/// A scenario written out with its defaults can be read again, at all points of its grid.
#[test]
fn defaults_without_effect_are_not_written_out() {
    let mut varied = scenario(&json!({ "kind": "tcp", "delayed_ack": false }));
    varied["grid"] = json!({ "transport.one.variant": ["sack", "rack", "none"] });
    let expanded = expand(&varied).unwrap();
    let normalised = expanded.normalised();
    let transport = &normalised["transport"]["one"];
    assert_eq!((transport.get("limited_transmit"), transport.get("delayed_ack_timeout_s")), (None, None));
    assert_eq!(transport["restart_after_idle"], json!(true), "this has an effect everywhere");
    let again = expand(&normalised).unwrap();
    assert_eq!(again.normalised(), normalised);
    assert_eq!(again.points.len(), 3);
}
