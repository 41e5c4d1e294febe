//! Settings that contradict each other are refused, with the rule and a remedy.

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::arq::ArqConfig;
use serde_json::{Value, json};

#[test]
fn contradictions_are_refused_with_the_rule() {
    let cases: &[(Value, &str, &str)] = &[
        (json!({ "mode": "stop-and-wait", "window_frames": 2 }), "window_frames", "one frame under way"),
        (json!({ "mode": "go-back-n", "buffer_frames": 200 }), "buffer_frames", "selective repeat only"),
        (json!({ "window_frames": 100, "buffer_frames": 99 }), "buffer_frames", "less than the window"),
        (json!({ "window_frames": 1e9 }), "window_frames", "not kept"),
        (
            json!({ "mode": "go-back-n", "window_frames": 8, "sequence_bits": 3 }),
            "window_frames",
            "all numbers but one",
        ),
        (json!({ "window_frames": 5, "sequence_bits": 3 }), "window_frames", "half of the numbers"),
        (json!({ "window_frames": 4, "buffer_frames": 5, "sequence_bits": 3 }), "buffer_frames", "half of the numbers"),
        (
            json!({ "mode": "go-back-n", "ack": "per-packet", "window_frames": 5, "sequence_bits": 3 }),
            "window_frames",
            "half of the numbers",
        ),
        (
            json!({ "mode": "go-back-n", "nak": true, "window_frames": 5, "sequence_bits": 3 }),
            "window_frames",
            "half of the numbers",
        ),
        (json!({ "sequence_bits": 33 }), "sequence_bits", "1 to 32"),
        (json!({ "mode": "go-back-n", "sack_blocks": 4 }), "sack_blocks", "selective repeat"),
        (json!({ "ack": "per-packet", "sack_blocks": 4 }), "sack_blocks", "cumulative"),
        (json!({ "compatible": true, "sack_blocks": 5 }), "sack_blocks", "40 bytes"),
        (json!({ "compatible": true, "timestamps": true, "sack_blocks": 4 }), "sack_blocks", "beside timestamps"),
        (json!({ "timer": "receiver" }), "timer", "there are none"),
        (json!({ "timer": "receiver", "nak": true, "ack": "per-packet" }), "timer", "single frame"),
        (
            json!({ "piggyback_timeout_s": 2, "rto": { "algorithm": "fixed", "initial_s": 1 } }),
            "piggyback_timeout_s",
            "sent again before",
        ),
        (json!({ "incremental": {} }), "incremental", "damaged, not lost"),
        (json!({ "incremental": {}, "nak": true, "correction": { "bits": 1 } }), "incremental", "both given"),
        (json!({ "incremental": { "parity_bytes": 7 }, "nak": true }), "incremental.parity_bytes", "odd"),
        (json!({ "incremental": { "first_parity_bytes": 7 }, "nak": true }), "incremental.first_parity_bytes", "odd"),
        (json!({ "incremental": { "increments": 40 }, "nak": true }), "incremental.increments", "1 to 31"),
        (
            json!({ "incremental": { "parity_bytes": 30_000, "increments": 6 }, "nak": true }),
            "incremental.parity_bytes",
            "131,070",
        ),
        (json!({ "segment_bytes": 65_530 }), "segment_bytes", "make a packet of 65550 bytes"),
        (json!({ "segment_bytes": 65_510, "timestamps": true }), "segment_bytes", "make a packet of 65540 bytes"),
        (json!({ "ack_bytes": 70_000 }), "ack_bytes", "make a header of 70000 bytes"),
        (json!({ "sack_blocks": 8_191 }), "header_bytes", "make a header of"),
        (json!({ "correction": { "symbols": 200 } }), "correction.symbols", "1 to 127"),
        (json!({ "adaptive_length": { "min_bytes": 1001 } }), "adaptive_length.min_bytes", "above segment_bytes, 1000"),
        (
            json!({ "segment_bytes": 65_530, "adaptive_length": { "min_bytes": 10 } }),
            "segment_bytes",
            "make a packet of 65550 bytes",
        ),
        (
            json!({ "adaptive_length": { "rule": "two-lengths", "estimate": "genie" } }),
            "adaptive_length.rule",
            "waits for losses",
        ),
        (json!({ "adaptive_length": {}, "correction": { "bits": 1 } }), "adaptive_length", "correction mends some"),
        (json!({ "adaptive_length": {}, "incremental": {}, "nak": true }), "adaptive_length", "incremental mends some"),
        (json!({ "rto": { "minimum_s": 70 } }), "rto.minimum_s", "above maximum_s"),
    ];
    for (table, path, why) in cases {
        let config: ArqConfig = serde_json::from_value(table.clone()).unwrap();
        let error = config.check().err().unwrap_or_else(|| panic!("{table} was taken"));
        assert_eq!(&error.path, path, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.remedy.is_empty(), "{error}");
    }
}

#[test]
fn settings_at_their_limits_are_accepted() {
    let cases = [
        json!({ "mode": "stop-and-wait", "window_frames": 1, "sequence_bits": 1 }),
        json!({ "mode": "stop-and-wait", "ack": "per-packet", "sequence_bits": 1 }),
        json!({ "mode": "go-back-n", "window_frames": 7, "sequence_bits": 3 }),
        json!({ "window_frames": 4, "sequence_bits": 3 }),
        json!({ "compatible": true, "sack_blocks": 4 }),
        json!({ "compatible": true, "timestamps": true, "sack_blocks": 3 }),
        json!({ "nak": true, "timer": "receiver" }),
        json!({ "segment_bytes": 65_515 }),
        json!({ "adaptive_length": { "min_bytes": 1000 } }),
        json!({ "adaptive_length": { "estimate": "genie", "rule": "optimal" } }),
    ];
    for table in cases {
        let config: ArqConfig = serde_json::from_value(table.clone()).unwrap();
        assert!(config.check().is_ok(), "{table}: {}", config.check().unwrap_err());
    }
    assert!(serde_json::from_value::<ArqConfig>(json!({ "window_frames": 0 })).is_err(), "no window at all");
    for table in
        [json!({ "memory_s": 0 }), json!({ "prior_losses": 0 }), json!({ "scale": 0 }), json!({ "min_bytes": 0 })]
    {
        let config = json!({ "adaptive_length": table });
        assert!(serde_json::from_value::<ArqConfig>(config.clone()).is_err(), "{config}: nothing cannot be meant");
    }
}
