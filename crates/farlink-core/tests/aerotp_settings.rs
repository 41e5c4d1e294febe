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
        (json!({ "rate_control": "friendly", "alone": true }), "rate_control", "there are none"),
        (json!({ "mode": "datagram", "rate_control": "learnt" }), "rate_control", "never answered"),
    ];
    refused(cases);
    for good in [
        json!({ "mode": "near-reliable", "coded": { "expected_loss": 0 }, "adaptive_length": { "min_bytes": 1452 } }),
        json!({ "mode": "unreliable", "rate_control": "learnt", "alone": true, "acks_per_mack": 4 }),
        json!({ "mode": "quasi-reliable", "rate_control": "friendly", "rate_bps": 1e6, "erasure": { "source": 8, "repair": 2 } }),
    ] {
        let config: AerotpConfig = serde_json::from_value(good.clone()).unwrap();
        assert!(config.check().is_ok(), "{good}");
    }
}

#[test]
fn parity_is_one_amount_that_leaves_room_for_data() {
    let quasi = |keys: Value| {
        let mut all = json!({ "mode": "quasi-reliable" });
        all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        all
    };
    let erasure = json!({ "source": 8, "repair": 2 });
    refused(&[
        (json!({ "fec_words": 4, "fec_share": 0.1 }), "fec_share", "two amounts"),
        (quasi(json!({ "fec_share": 0.1, "adaptive_fec": {} })), "fec_share", "chooses words"),
        (json!({ "fec_share": 0.1, "coded": {} }), "fec_share", "no parity of their own"),
        (json!({ "fec_words": 1, "coded": {} }), "fec_words", "no parity of their own"),
        (json!({ "fec_words": 1, "adaptive_length": {} }), "adaptive_length", "takes every packet"),
        (json!({ "fec_words": 257 }), "fec_words", "257 words"),
        (json!({ "fec_words": 16, "packet_bytes": 116 }), "fec_words", "leave no room for data in 116"),
        (json!({ "fec_share": 0.5, "packet_bytes": 56 }), "packet_bytes", "no room for data and its parity"),
        (
            quasi(json!({ "fec_share": 0.5, "packet_bytes": 79, "erasure": erasure })),
            "packet_bytes",
            "no room for data",
        ),
    ]);
    for keys in [
        json!({ "fec_words": 0, "coded": {}, "adaptive_length": {} }),
        json!({ "fec_words": 16, "packet_bytes": 117 }),
        json!({ "fec_share": 0.5, "packet_bytes": 57 }),
        json!({ "mode": "near-reliable", "fec_share": 0.99 }),
        quasi(json!({ "fec_share": 0.5, "packet_bytes": 120, "erasure": { "source": 8, "repair": 2 } })),
    ] {
        let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
        assert!(config.check().is_ok(), "{keys}");
    }
}

#[test]
fn each_mode_of_a_class_fits_the_other_keys() {
    let by_class = |modes: &[&str], key: &str, value: Value| json!({ "mode_by_class": modes, key: value });
    refused(&[
        (by_class(&["reliable"; 9], "copies", json!(1)), "mode_by_class", "9 modes for 8 classes"),
        (by_class(&["reliable", "unreliable"], "coded", json!({})), "coded", "makes class 1 unreliable"),
        (by_class(&["quasi-reliable"], "packet_bytes", json!(100)), "fec_words", "makes class 0 quasi-reliable"),
        (by_class(&["datagram"], "rate_control", json!("learnt")), "rate_control", "makes class 0 datagram"),
    ]);
    let config: AerotpConfig =
        serde_json::from_value(json!({ "mode": "unreliable", "mode_by_class": ["near-reliable", "datagram"] }))
            .unwrap();
    config.check().unwrap();
    let modes: Vec<_> = (0..4).map(|class| config.for_class(class).mode.name()).collect();
    assert_eq!(modes, ["near-reliable", "datagram", "unreliable", "unreliable"]);
    // A key that one of the modes takes has an effect.
    let idle = |keys: Value| serde_json::from_value::<AerotpConfig>(keys).unwrap().idle();
    let is_idle = |keys: Value, key: &str| idle(keys).iter().any(|idle| idle.key == key);
    assert!(is_idle(json!({ "hold_time_s": 1 }), "hold_time_s"));
    assert!(!is_idle(json!({ "hold_time_s": 1, "mode_by_class": ["unreliable"] }), "hold_time_s"));
    assert!(is_idle(json!({ "hold_time_s": 1, "mode_by_class": ["datagram", "near-reliable"] }), "hold_time_s"));
}

#[test]
fn only_streams_without_acknowledgements_change_their_mode() {
    let change = |at_s: f64, mode: &str| json!({ "at_s": at_s, "mode": mode });
    let (plain, coded) = (change(1.0, "unreliable"), change(2.0, "quasi-reliable"));
    let quasi = |changes: Value| json!({ "mode": "quasi-reliable", "mode_changes": changes });
    refused(&[
        (json!({ "mode_changes": [plain] }), "mode_changes", "reliable keeps its mode"),
        (json!({ "mode": "datagram", "mode_changes": [plain] }), "mode_changes", "datagram keeps its mode"),
        (quasi(json!([change(3.0, "reliable")])), "mode_changes", "no connection becomes reliable under way, at 3 s"),
        (quasi(json!([change(3.0, "datagram")])), "mode_changes", "no connection becomes datagram"),
        (quasi(json!([coded])), "mode_changes", "at 2 s the mode is quasi-reliable already"),
        (quasi(json!([coded, plain])), "mode_changes", "already"),
        (quasi(json!([change(2.0, "unreliable"), change(2.0, "quasi-reliable")])), "mode_changes", "2 s is not after"),
        (
            json!({ "mode": "unreliable", "packet_bytes": 100, "mode_changes": [coded] }),
            "fec_words",
            "16 words of parity leave no room",
        ),
    ]);
    for keys in [quasi(json!([])), quasi(json!([plain, coded])), json!({ "mode_changes": [] })] {
        let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
        assert!(config.check().is_ok(), "{keys}");
    }
}

/// Each is refused at this path, with these words of the rule and a remedy.
fn refused(cases: &[(Value, &str, &str)]) {
    for (keys, path, rule) in cases {
        let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
        let error = config.check().expect_err("it contradicts itself");
        assert_eq!(error.path, *path, "{keys}");
        assert!(error.to_string().contains(rule), "{keys}: {error}");
        assert!(!error.remedy.is_empty(), "{keys}");
    }
}
