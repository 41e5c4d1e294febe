//! Settings of AeroTP that contradict each other are refused, with the rule and a remedy.

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::aerotp::AerotpConfig;
use serde_json::{Value, json};

#[test]
fn contradictions_of_the_reliable_modes_are_refused_with_the_rule() {
    let cases: &[(Value, &str, &str)] = &[
        (json!({ "mode": "datagram", "coded": {} }), "coded", "reliable modes"),
        (json!({ "mode": "unreliable", "adaptive_length": {} }), "adaptive_length", "reliable modes"),
        (json!({ "coded": {}, "copies": 2 }), "copies", "any repair symbol"),
        (json!({ "coded": {}, "spare_copies": true }), "spare_copies", "any repair symbol"),
        (json!({ "copies": 2, "spare_copies": true }), "spare_copies", "go out anyhow"),
        (json!({ "coded": { "block_symbols": 8193 } }), "coded.block_symbols", "8193 packets"),
        (json!({ "coded": { "completion": 0.99995 } }), "coded.completion", "another round trip"),
        (json!({ "coded": { "expected_loss": 0.96 } }), "coded.expected_loss", "nothing is worth sending"),
        (json!({ "coded": {}, "packet_bytes": 64 }), "packet_bytes", "no room for a symbol"),
        (json!({ "adaptive_length": { "min_bytes": 1500 } }), "adaptive_length.min_bytes", "fit into no packet"),
    ];
    for (keys, path, rule) in cases {
        let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
        let error = config.check().expect_err("it contradicts itself");
        assert_eq!(error.path, *path, "{keys}");
        assert!(error.to_string().contains(rule), "{keys}: {error}");
        assert!(!error.remedy.is_empty(), "{keys}");
    }
    let good =
        json!({ "mode": "near-reliable", "coded": { "expected_loss": 0 }, "adaptive_length": { "min_bytes": 1452 } });
    let config: AerotpConfig = serde_json::from_value(good).unwrap();
    assert!(config.check().is_ok());
}
