//! Packets with a code survive exactly the errors that it corrects.

use crate::common::{bit_errors, once, real, run, scenario, setup, text};
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

/// Datagrams of 1,000 bytes in a row, and those that the channel leaves.
fn datagrams(channel: Value, correction: &Value) -> FlowResult {
    let traffic = json!({ "kind": "cbr", "rate_bps": 8e6, "payload_bytes": 980, "bytes": 980 * 20_000 });
    let setup = setup(&scenario(&[
        ("duration_s", Value::Null),
        ("link.rate_bps", json!(1e7)),
        ("link.queue_packets", Value::Null),
        ("link.channel", channel),
        ("transport.tcp", Value::Null),
        ("transport.udp", json!({ "kind": "udp", "header_bytes": 20, "segment_bytes": 980, "correction": correction })),
        ("flow.bulk", json!({ "transport": "udp", "traffic": traffic })),
    ]));
    let mut result = once(&setup, 1);
    result.flows.remove(0)
}

/// Fails if a count of independent events is more than 4.5 standard deviations from the expected one.
fn assert_share(count: u64, of: u64, p: f64) {
    let deviation = (count as f64 - of as f64 * p) / (of as f64 * p * (1.0 - p)).sqrt();
    assert!(deviation.abs() < 4.5, "{count} of {of} where {p:.4} is expected: {deviation:.1} standard deviations");
}

#[test]
fn correction_of_independent_errors_matches_the_binomial() {
    let ber: f64 = 1e-4;
    let channel = json!({ "kind": "ber", "ber": ber });
    let bits = 8000.0;
    let none = (1.0 - ber).powf(bits);
    let one = bits * ber * (1.0 - ber).powf(bits - 1.0);

    let flow = datagrams(channel.clone(), &json!({ "bits": 1, "parity_bytes": 0 }));
    assert_eq!(flow.sent_packets, 20_000);
    assert_share(flow.lost_packets, flow.sent_packets, 1.0 - none - one);
    assert_share(flow.mended_packets, flow.sent_packets, one);

    let plain = datagrams(channel, &Value::Null);
    assert_share(plain.lost_packets, plain.sent_packets, 1.0 - none);
    assert_eq!(plain.mended_packets, 0);
}

/// A packet of 8,000 bits and 6,000 bits of parity: 2,000 codewords of 7 bits, each with at most one wrong bit.
#[test]
fn hamming_codewords_correct_as_the_binomial_says() {
    let ber: f64 = 3e-3;
    let one_at_most = (1.0 - ber).powi(7) + 7.0 * ber * (1.0 - ber).powi(6);
    let whole = one_at_most.powi(2000);
    let none = (1.0 - ber).powi(14_000);

    let flow = datagrams(json!({ "kind": "ber", "ber": ber }), &json!({ "hamming": 3 }));
    assert_eq!(flow.sent_bytes, 20_000 * 1750);
    assert_share(flow.lost_packets, flow.sent_packets, 1.0 - whole);
    assert_share(flow.mended_packets, flow.sent_packets, whole - none);
}

#[test]
fn symbol_codes_correct_bursts_and_single_error_codes_do_not() {
    // Three adjacent bits of one byte, in every packet.
    let file = bit_errors("bursts-in-a-byte", &[801, 802, 803], 8000);
    let channel = json!({ "kind": "bit-trace", "file": file });

    let lost = |correction: Value| {
        let flow = datagrams(channel.clone(), &correction);
        assert_eq!(flow.lost_packets + flow.mended_packets, flow.sent_packets);
        flow.lost_packets
    };
    assert_eq!(lost(json!({ "bits": 1, "parity_bytes": 0 })), 20_000);
    assert_eq!(lost(json!({ "bits": 3, "parity_bytes": 0 })), 0);
    assert_eq!(lost(json!({ "symbols": 1, "parity_bytes": 0 })), 0);
}

#[test]
fn parity_adds_its_length_on_the_wire() {
    let sent = |correction: Value| datagrams(json!({ "kind": "none" }), &correction).sent_bytes / 20_000;
    assert_eq!(sent(Value::Null), 1000);
    assert_eq!(sent(json!({ "bits": 1 })), 1002);
    assert_eq!(sent(json!({ "symbols": 8 })), 1000 + 5 * 16);
    assert_eq!(sent(json!({ "symbols": 8, "parity_bytes": 7 })), 1007);
}

#[test]
fn flows_with_and_without_a_code_share_a_link() {
    let tcp = json!({ "kind": "tcp", "segment_bytes": 1000, "correction": { "bits": 1 } });
    let scps = json!({ "kind": "scps-tp", "segment_bytes": 1000, "correction": { "bits": 1 } });
    let bulk = |transport| json!({ "transport": transport, "traffic": { "kind": "bulk" } });
    let output = run(
        &scenario(&[
            ("duration_s", json!(100)),
            ("link.channel", json!({ "kind": "ber", "ber": 3e-5 })),
            ("transport.coded", tcp),
            ("transport.coded-scps", scps),
            (
                "flow",
                json!({
                    "plain": bulk("tcp"),
                    "coded": bulk("coded"),
                    "coded-scps": bulk("coded-scps"),
                    "plain-too": bulk("tcp")
                }),
            ),
        ]),
        1,
    );
    let rows = text(&output.rows, "flow").iter().zip(real(&output.rows, "mended_fraction"));
    for (flow, &mended) in rows.filter(|row| row.0 != "all") {
        assert_eq!(mended > 0.0, flow.starts_with("coded"), "{flow}: {mended}");
    }
}

/// Segments of 1000 bytes, 40 of headers and 2 of parity have 8336 bits. At a bit error rate of 3e-5, 19.5 % have one
/// wrong bit and 2.65 % have more.
#[test]
fn correction_of_scps_tp_matches_the_binomial() {
    let transport = json!({
        "kind": "scps-tp", "segment_bytes": 1000, "header_bytes": 40, "correction": { "bits": 1 },
        "congestion_control": "none", "rate_bps": 9e5, "loss_means": "corruption",
    });
    let setup = setup(&scenario(&[
        ("duration_s", json!(400)),
        ("link.channel", json!({ "kind": "ber", "ber": 3e-5 })),
        ("transport.scps", transport),
        ("flow", json!({ "data": { "transport": "scps", "traffic": { "kind": "bulk" } } })),
    ]));
    let flow = once(&setup, 1).flows.remove(0);
    let bits: f64 = 8336.0;
    let none = (1.0 - 3e-5_f64).powf(bits);
    let one = bits * 3e-5 * (1.0 - 3e-5_f64).powf(bits - 1.0);
    assert!(flow.sent_packets > 40_000, "{}", flow.sent_packets);
    assert_share(flow.mended_packets, flow.sent_packets, one);
    assert_share(flow.lost_packets, flow.sent_packets, 1.0 - none - one);
}

#[test]
fn a_code_around_compressed_headers_is_refused() {
    let transport = json!({ "kind": "scps-tp", "correction": { "bits": 1 }, "header_compression": true });
    let refused = farlink_core::scenario::expand(&scenario(&[("transport", json!({ "tcp": transport }))]));
    let error = refused.expect_err("a refusal");
    assert_eq!(error.path, "transport.tcp.correction", "{error}");
    assert!(error.remedy.contains("header_compression = false"), "{}", error.remedy);
}

/// Headers of segments without data count too: with parity and options they must fit into a packet.
#[test]
fn parity_of_long_acknowledgements_fits_into_a_packet() {
    for kind in ["tcp", "scps-tp"] {
        let of = |ack_bytes: u64| {
            let transport = json!({ "kind": kind, "ack_bytes": ack_bytes, "correction": { "hamming": 2 } });
            farlink_core::scenario::expand(&scenario(&[("transport", json!({ "tcp": transport }))]))
        };
        assert!(of(21_000).is_ok(), "{kind}");
        let error = of(30_000).expect_err("a refusal");
        assert_eq!(error.path, "transport.tcp.correction.hamming", "{error}");
        assert!(error.to_string().contains("with their parity"), "{error}");
    }
}

#[test]
fn codes_that_do_not_exist_are_refused() {
    let cases = [
        (json!({}), "transport.tcp.correction", "none of bits, hamming and symbols"),
        (json!({ "bits": 1, "symbols": 1 }), "transport.tcp.correction", "both given"),
        (json!({ "bits": 1, "hamming": 3 }), "transport.tcp.correction", "bits and hamming are both given"),
        (json!({ "hamming": 1 }), "transport.tcp.correction.hamming", "from 2 to 16"),
        (json!({ "hamming": 17 }), "transport.tcp.correction.hamming", "from 2 to 16"),
        (json!({ "bits": 0 }), "transport.tcp.correction.bits", "0 is not allowed"),
        (json!({ "bits": 1001 }), "transport.tcp.correction.bits", "1 to 1000"),
        (json!({ "symbols": 128 }), "transport.tcp.correction.symbols", "1 to 127"),
        (json!({ "bits": 1, "parity_bytes": 65000 }), "transport.tcp.correction.parity_bytes", "with their parity"),
        (json!({ "bit": 1 }), "transport.tcp.correction.bit", "not known"),
    ];
    for (correction, path, why) in cases {
        let refused = farlink_core::scenario::expand(&scenario(&[("transport.tcp.correction", correction.clone())]));
        let error = refused.err().unwrap_or_else(|| panic!("{correction} was taken"));
        assert_eq!(error.path, path, "{error}");
        assert!(error.to_string().contains(why) || error.remedy.contains(why), "{error}: {}", error.remedy);
    }
}
