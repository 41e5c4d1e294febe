//! UDP that sends every datagram several times over a path without a way back.

use crate::common::{once, scenario, setup};
use farlink_core::scenario::expand;
use farlink_sim::engine::FlowResult;
use serde_json::{Value, json};

const DATAGRAMS: u64 = 20_000;

/// Datagrams of 1,000 bytes at 0.4 of the link's rate, one in 10 ms.
fn datagrams(channel: Value, copies: Value) -> FlowResult {
    let mut transport = json!({ "kind": "udp", "header_bytes": 28, "segment_bytes": 972 });
    transport.as_object_mut().unwrap().extend(copies.as_object().unwrap().clone());
    let traffic = json!({ "kind": "cbr", "rate_bps": 972.0 * 800.0, "payload_bytes": 972, "bytes": 972 * DATAGRAMS });
    let setup = setup(&scenario(&[
        ("duration_s", Value::Null),
        ("link.rate_bps", json!(1e7)),
        ("link.queue_packets", Value::Null),
        ("link.channel", channel),
        ("link.return.channel", json!({ "kind": "loss", "loss": 1 })),
        ("transport.tcp", Value::Null),
        ("transport.udp", transport),
        ("flow.bulk", json!({ "transport": "udp", "traffic": traffic })),
    ]));
    once(&setup, 1).flows.remove(0)
}

#[test]
fn a_datagram_is_lost_if_all_its_copies_are() {
    for copies in 1..5_u64 {
        let flow = datagrams(json!({ "kind": "loss", "loss": 0.3 }), json!({ "copies": copies }));
        assert_eq!(flow.sent_packets, DATAGRAMS * copies);
        assert_eq!(flow.retransmitted_bytes, DATAGRAMS * (copies - 1) * 972);
        assert_eq!(flow.delivered_packets * 972, flow.delivered_bytes, "every datagram counts once");

        let lost = 0.3_f64.powi(copies as i32);
        let missing = (DATAGRAMS - flow.delivered_packets) as f64;
        let deviation = (missing - lost * DATAGRAMS as f64) / (DATAGRAMS as f64 * lost * (1.0 - lost)).sqrt();
        assert!(deviation.abs() < 4.5, "{copies} copies: {missing} are missing, {deviation:.1} standard deviations");
    }
}

#[test]
fn copies_survive_an_outage_that_is_shorter_than_their_spacing() {
    // 5 of 100 datagrams fall into each outage.
    let outage = json!({ "kind": "outage", "period_s": 1, "down_s": 0.05, "offset_s": 0.2 });
    let missing = |copies: Value| DATAGRAMS - datagrams(outage.clone(), copies).delivered_packets;
    assert_eq!(missing(json!({})), DATAGRAMS / 20);
    // The copy follows 0.8 ms later, so that only the last datagram of an outage could be saved by it.
    assert_eq!(missing(json!({ "copies": 2 })), DATAGRAMS / 20);
    assert_eq!(missing(json!({ "copies": 2, "copy_spacing_s": 0.06 })), 0);
    assert_eq!(missing(json!({ "copies": 2, "copy_spacing_s": 0.02 })), 3 * DATAGRAMS / 100);
}

#[test]
fn the_delay_counts_from_the_first_transmission() {
    let clean = datagrams(json!({ "kind": "none" }), json!({ "copies": 3, "copy_spacing_s": 0.5 }));
    // 4 bytes more for the number, and sometimes a copy in front: 0.8032 ms each.
    let mean = clean.delay.mean().unwrap();
    assert_eq!((clean.delay.count, clean.delivered_packets), (DATAGRAMS, DATAGRAMS));

    let outage = json!({ "kind": "outage", "period_s": 1, "down_s": 0.05, "offset_s": 0.2 });
    let saved = datagrams(outage, json!({ "copies": 2, "copy_spacing_s": 0.5 }));
    let later = saved.delay.mean().unwrap() - mean;
    assert_eq!(saved.delay.count, DATAGRAMS);
    assert!((later - 0.05 * 0.5).abs() < 1e-3, "one of 20 arrives 0.5 s later, not {later} s on average");
}

#[test]
fn settings_without_effect_or_sense_are_refused() {
    for (copies, path, why) in [
        (json!({ "copies": 0 }), "transport.udp.copies", "0"),
        (json!({ "copies": 101 }), "transport.udp.copies", "101 copies of each datagram"),
        (json!({ "copies": 2, "segment_bytes": 65_507 }), "transport.udp.segment_bytes", "numbers that copies need"),
        (json!({ "copies": 2, "copy_spacing_s": 20 }), "transport.udp.copy_spacing_s", "no shorter than the run"),
        (json!({ "copy_spacing_s": 1 }), "transport.udp.copy_spacing_s", "every datagram is sent once"),
    ] {
        let mut transport = json!({ "kind": "udp" });
        transport.as_object_mut().unwrap().extend(copies.as_object().unwrap().clone());
        let flow = json!({ "transport": "udp", "traffic": { "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 100 } });
        let scenario = scenario(&[("transport", json!({ "udp": transport })), ("flow.bulk", flow)]);
        let error = expand(&scenario).err().unwrap_or_else(|| panic!("{transport} was taken"));
        assert_eq!(error.path, path, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}
