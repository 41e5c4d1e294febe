//! AeroTP's reliable modes on a link of 10 s one way: the round trips and the overhead of a file.

use crate::common::{expanded, set};
use farlink_core::trace::MemoryTraces;
use farlink_sim::engine::{FlowResult, NoTrace, simulate};
use farlink_sim::resolve;
use serde_json::{Value, json};

const ROUND_TRIP_S: f64 = 20.0;
const FILE_BYTES: f64 = 1e6;

/// A file over 5 Mb/s with bit errors both ways; `changes` at dotted paths.
fn scenario(ber: f64, transport: &Value, changes: &[(&str, Value)]) -> Value {
    let mut scenario = json!({
        "duration_s": 20_000,
        "link": {
            "rate_bps": 5e6, "delay_s": ROUND_TRIP_S / 2.0, "queue_bytes": 1e7,
            "channel": { "kind": "ber", "ber": ber }, "return": { "channel": { "kind": "ber", "ber": ber } },
        },
        "transport": { "aero": { "kind": "aerotp", "rate_bps": 5e6, "packet_bytes": 1500 } },
        "flow": { "file": { "transport": "aero", "traffic": { "kind": "file", "bytes": FILE_BYTES } } },
    });
    for (key, value) in transport.as_object().expect("keys of the transport") {
        scenario["transport"]["aero"][key] = value.clone();
    }
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn flows(scenario: &Value, runs: u64) -> Vec<FlowResult> {
    let setup = resolve(&expanded(scenario).points[0].scenario, &MemoryTraces::default()).unwrap();
    (0..runs)
        .map(|run| simulate(&setup, 1, run, &mut NoTrace, &|| false).expect("the run is not stopped").flows.remove(0))
        .collect()
}

/// All flows of one run.
fn flows_together(scenario: &Value) -> Vec<FlowResult> {
    let setup = resolve(&expanded(scenario).points[0].scenario, &MemoryTraces::default()).unwrap();
    simulate(&setup, 1, 0, &mut NoTrace, &|| false).expect("the run is not stopped").flows
}

/// Mean number of round trips until the file has arrived, and of bytes sent.
fn cost(scenario: &Value, runs: u64) -> (f64, f64) {
    let flows = flows(scenario, runs);
    let mean = |value: fn(&FlowResult) -> f64| flows.iter().map(value).sum::<f64>() / runs as f64;
    assert!(flows.iter().all(|flow| flow.finished.is_some()), "a reliable mode delivers the file");
    let duration_s = mean(|flow| flow.finished.map_or(f64::NAN, |at| at.since(flow.start).as_secs_f64()));
    (duration_s / ROUND_TRIP_S, mean(|flow| flow.sent_bytes as f64))
}

/// With 70 % loss, the worst of 680 packets needs 20.3 transmissions on average.
#[test]
fn single_copies_take_twenty_round_trips() {
    let (round_trips, _) = cost(&scenario(1e-4, &json!({}), &[]), 20);
    assert!((round_trips - 20.0).abs() < 2.0, "{round_trips}");
}

/// `[F6]`: parity corrects most damaged segments before they are requested again: 16 words a packet bring 680 packets over at
/// BER 1e-4 in two round trips instead of twenty. Means of `docs/aerotp.md`, section 7.
#[test]
fn parity_in_reliable_segments_saves_round_trips() {
    let mut table = Vec::new();
    for ber in [1e-6, 1e-5, 1e-4] {
        for keys in [json!({}), json!({ "fec_words": 16 }), json!({ "fec_share": 0.05 }), json!({ "fec_share": 0.02 })]
        {
            let (round_trips, sent_bytes) = cost(&scenario(ber, &keys, &[]), 20);
            println!(
                "BER {ber:e}, {keys}: {round_trips:.2} round trips, {:.3} bytes sent a byte",
                sent_bytes / FILE_BYTES
            );
            table.push((round_trips, sent_bytes / FILE_BYTES));
        }
    }
    let [(plain, plain_bytes), (words, words_bytes), ..] = table[8..] else { panic!("four of each") };
    assert!(plain > 17.0 && words < 3.0, "{plain} and {words} round trips");
    assert!(words_bytes < 0.4 * plain_bytes, "{words_bytes} and {plain_bytes} bytes");
}

/// `[F8]`: with more errors on the way back, parity of MACKs saves bytes that were sent again although they had arrived. Means of
/// `docs/aerotp.md`, section 7.
#[test]
fn parity_of_macks_saves_repetitions() {
    let [without, with] = [false, true].map(|mack_parity| {
        let keys = json!({ "fec_share": 0.05, "mack_parity": mack_parity });
        let changes = [
            ("flow.file.traffic.bytes", json!(1e7)),
            ("link.return.channel.ber", json!(5e-4)),
            ("transport.aero.receive_buffer_bytes", json!(1e8)),
        ];
        let (round_trips, sent_bytes) = cost(&scenario(1e-4, &keys, &changes), 20);
        println!("{keys}: {round_trips:.3} round trips, {:.4} bytes a byte", sent_bytes / 1e7);
        (round_trips, sent_bytes / 1e7)
    });
    assert!(with.1 < without.1 - 0.003, "{with:?} {without:?}");
    assert!((with.0 - without.0).abs() < 0.5, "each arrival is told three times: {with:?} {without:?}");
}

#[test]
fn copies_or_shorter_packets_take_eight_round_trips() {
    for transport in [json!({ "copies": 3 }), json!({ "adaptive_length": {} })] {
        let (round_trips, _) = cost(&scenario(1e-4, &transport, &[]), 20);
        assert!(round_trips <= 8.0, "{transport}: {round_trips}");
    }
}

/// With `spare_copies`, segments near the end that are likely to be lost are copied before their loss is detected.
#[test]
fn copies_at_the_end_take_three_round_trips() {
    let file = [("flow.file.traffic.bytes", json!(1e7))];
    for (changes, most_bytes) in [(&[][..], 20.0), (&file[..], 70.0)] {
        let (round_trips, sent_bytes) = cost(&scenario(1e-4, &json!({ "spare_copies": true }), changes), 4);
        assert!((1.5..6.0).contains(&round_trips), "{round_trips}");
        assert!(sent_bytes < most_bytes * FILE_BYTES, "{sent_bytes}");
    }
    let (_, with) = cost(&scenario(0.0, &json!({ "spare_copies": true }), &[]), 1);
    let (_, without) = cost(&scenario(0.0, &json!({}), &[]), 1);
    assert_eq!(with, without, "where nothing is lost, nothing is likely to be missing");
}

/// Time for a file with packet losses and 10 s one way, relative to the capacity left by the losses.
fn share_of_bound(transport: &Value, bytes: f64, loss: f64) -> f64 {
    let changes = [
        ("link.channel", json!({ "kind": "loss", "loss": loss })),
        ("link.return.channel", json!({ "kind": "none" })),
        ("flow.file.traffic.bytes", json!(bytes)),
        ("transport.aero.receive_buffer_bytes", json!(125e6)),
    ];
    let (round_trips, _) = cost(&scenario(0.0, transport, &changes), 1);
    let bound_s = ROUND_TRIP_S / 2.0 + bytes * 8.0 / (5e6 * (1.0 - loss) * 1456.0 / 1500.0);
    bound_s / (round_trips * ROUND_TRIP_S)
}

/// Half of the blocks are complete before the first report, the last ones almost surely.
#[test]
fn blocks_without_reports_get_repair_symbols_for_the_expected_loss() {
    let share = share_of_bound(&json!({ "coded": { "expected_loss": 0.3 } }), 2e7, 0.3);
    assert!((0.9..1.0).contains(&share), "{share} of the bound: another round trip makes 0.84");
}

/// On a path of one's own: elsewhere the circuit breaker of `[P17]` costs 0.015 of the bound at a loss of 0.3.
#[test]
#[ignore = "minutes; make soak runs it"]
fn long_files_take_hardly_longer_than_the_bound() {
    let modes = [(json!({ "spare_copies": true, "alone": true }), 0.97), (json!({ "coded": {}, "alone": true }), 0.98)];
    for loss in [0.001, 0.01, 0.03, 0.1, 0.2, 0.3] {
        for (transport, least) in modes.clone() {
            let share = share_of_bound(&transport, 5e8, loss);
            assert!((least..1.0).contains(&share), "{transport} at a loss of {loss}: {share} of the bound");
        }
    }
}

/// `make soak` checks the means over 20 runs and more lengths.
#[test]
fn repair_symbols_take_two_round_trips() {
    let (round_trips, sent_bytes) = cost(&scenario(1e-4, &json!({ "coded": {} }), &[]), 4);
    assert!(
        round_trips < 4.0 && sent_bytes < 1.25 * FILE_BYTES / 0.9999_f64.powi(12_000),
        "{round_trips} {sent_bytes}"
    );
}

/// Headers count as sent bytes, and a file with any loss takes at least one and a half round trips.
#[test]
#[ignore = "minutes; make soak runs it"]
fn repair_symbols_take_two_round_trips_with_little_overhead() {
    for packet_bytes in [400.0, 500.0, 700.0, 1000.0, 1500.0] {
        let transport = json!({ "coded": {}, "packet_bytes": packet_bytes });
        let (round_trips, sent_bytes) = cost(&scenario(1e-4, &transport, &[]), 20);
        let intact = (1.0 - 1e-4_f64).powf(packet_bytes * 8.0);
        let ratio = sent_bytes / (FILE_BYTES / intact);
        assert!((1.5..2.5).contains(&round_trips), "{packet_bytes}: {round_trips} round trips");
        assert!((1.0..1.25).contains(&ratio), "{packet_bytes}: {ratio} of what must be sent");
    }
}

/// Repair symbols for the expected loss are sent without a request, so one one-way delay is mostly enough.
#[test]
#[ignore = "minutes; make soak runs it"]
fn a_known_loss_rate_saves_the_wait_for_reports() {
    let told = json!({ "coded": { "expected_loss": 0.35, "completion": 0.99 }, "packet_bytes": 500 });
    let untold = json!({ "coded": {}, "packet_bytes": 500 });
    let told = cost(&scenario(1e-4, &told, &[]), 20).0;
    assert!(told < 0.75, "{told} round trips");
    assert!(cost(&scenario(1e-4, &untold, &[]), 20).0 > 1.5);
}

/// From clear links to links that lose two thirds, and from one packet to many blocks.
#[test]
#[ignore = "minutes; make soak runs it"]
fn repair_symbols_are_never_much_worse_than_repetition() {
    for ber in [0.0, 1e-6, 1e-5, 1e-4] {
        for bytes in [1e3, 1e4, 1e5, 4e6] {
            let file = [("flow.file.traffic.bytes", json!(bytes))];
            let (coded, coded_bytes) = cost(&scenario(ber, &json!({ "coded": {} }), &file), 5);
            let (plain, plain_bytes) = cost(&scenario(ber, &json!({}), &file), 5);
            assert!(coded <= plain + 0.1, "{bytes} bytes at {ber}: {coded} round trips against {plain}");
            // With one or two packets there is little to code, and only some copies of them save round trips.
            let more = coded_bytes - 1.1 * plain_bytes;
            assert!(more < 25_000.0, "{bytes} bytes at {ber}: {coded_bytes} sent against {plain_bytes}");
        }
    }
}

/// Efficiency of endless data: in-order data compared with the capacity left by losses and headers.
#[test]
#[ignore = "minutes; make soak runs it"]
fn bulk_data_wastes_little_on_needless_symbols() {
    for (delay_s, loss) in [(0.05, 0.3), (0.5, 0.3), (0.5, 0.01), (0.5, 0.0)] {
        let changes = [
            ("link.delay_s", json!(delay_s)),
            ("link.channel", json!({ "kind": "loss", "loss": loss })),
            ("link.return.channel", json!({ "kind": "none" })),
            ("duration_s", json!(200)),
            ("measure", json!({ "warmup_s": 20 })),
            ("flow.file.traffic", json!({ "kind": "bulk" })),
        ];
        let flow = flows(&scenario(0.0, &json!({ "coded": {} }), &changes), 1).remove(0);
        let goodput = flow.delivered_bytes as f64 * 8.0 / flow.measured.as_secs_f64();
        let share = goodput / ((1.0 - loss) * 5e6 * 1456.0 / 1500.0);
        // Ordered data arrives in blocks: one block more or less is 0.013.
        assert!((0.97..1.02).contains(&share), "{share} at {delay_s} s and a loss of {loss}");
    }
}

/// Nothing is known about the path: the first packets measure its rate, and the following ones are sent at a quarter of
/// it or more. Doubling alone takes 130 s for 1 MB and 349 s for 100 MB.
#[test]
fn a_rate_is_learnt_from_the_first_burst() {
    for (control, bytes, seconds) in [
        ("learnt", 1e6, 35.0..38.0),
        ("learnt", 1e8, 220.0..240.0),
        // A sender that must not outdo TCP doubles its rate.
        ("friendly", 1e6, 120.0..140.0),
    ] {
        let transport = json!({ "rate_bps": null, "rate_control": control, "initial_rto_s": 25 });
        let file = [("flow.file.traffic.bytes", json!(bytes)), ("link.queue_bytes", json!(12.5e6))];
        let (round_trips, _) = cost(&scenario(0.0, &transport, &file), 1);
        assert!(seconds.contains(&(round_trips * ROUND_TRIP_S)), "{control}, {bytes} bytes: {round_trips} round trips");
    }
}

/// Among others a learnt rate is CUBIC's, or more. Until `[P15]`, learnt rates left the queue empty, and Reno took all of it from
/// them.
#[test]
fn several_learnt_rates_lose_at_most_three_times_what_cubic_does() {
    let changes = [
        ("duration_s", json!(100)),
        ("link.delay_s", json!(0.5)),
        ("link.queue_bytes", json!(625e3)),
        ("flow.file.count", json!(4)),
        ("flow.file.traffic", json!({ "kind": "bulk" })),
    ];
    let lost = |keys: &[(&str, Value)]| {
        let flows = flows_together(&scenario(0.0, &json!({ "rate_bps": null }), &[&changes[..], keys].concat()));
        let sent: u64 = flows.iter().map(|flow| flow.sent_packets).sum();
        let lost: u64 = flows.iter().map(|flow| flow.lost_packets).sum();
        let bytes: u64 = flows.iter().map(|flow| flow.delivered_bytes).sum();
        assert!(bytes as f64 * 8.0 > 0.85 * 5e6 * 100.0, "{bytes} bytes");
        lost as f64 / sent as f64
    };
    let cubic = json!({ "kind": "tcp", "variant": "sack", "congestion_control": "cubic", "timestamps": true });
    let (learnt, cubic) = (lost(&[]), lost(&[("transport.aero", cubic)]));
    // 0.068 beside 0.028: paced packets overflow a full queue until the loss is known, a round trip and the queue later.
    assert!(learnt < 3.0 * cubic, "{learnt} beside {cubic}");
}

/// A bulk source writes 2^31 bytes at once; this run sends more.
#[test]
fn bulk_data_continues_after_the_first_write() {
    for transport in [json!({}), json!({ "coded": {} })] {
        let changes = [
            ("link.delay_s", json!(0.01)),
            ("link.rate_bps", json!(1e9)),
            ("transport.aero.rate_bps", json!(1e9)),
            ("transport.aero.packet_bytes", json!(60_000)),
            ("duration_s", json!(25)),
            ("flow.file.traffic", json!({ "kind": "bulk" })),
        ];
        let flow = flows(&scenario(0.0, &transport, &changes), 1).remove(0);
        assert!(flow.delivered_bytes > 3_000_000_000, "{transport}: {}", flow.delivered_bytes);
    }
}

/// Data in flight at the start of an outage is retransmitted when the link returns, and nothing is sent needlessly
/// before.
#[test]
fn an_outage_costs_its_time_and_a_round_trip() {
    let transport = json!({ "coded": {}, "rate_bps": 1e6 });
    let slow = [("flow.file.traffic.bytes", json!(4e6)), ("link.delay_s", json!(0.5)), ("link.rate_bps", json!(1e6))];
    let (clear, _) = cost(&scenario(1e-6, &transport, &slow), 1);
    let mut interrupted = slow.to_vec();
    interrupted.push(("link.channel", json!({ "kind": "outage", "schedule": [[5.0, 65.0]] })));
    let (late, _) = cost(&scenario(1e-6, &transport, &interrupted), 1);
    let lost_s = (late - clear) * ROUND_TRIP_S - 60.0;
    assert!(lost_s.abs() < 5.0, "{lost_s} s more than the outage");
}

/// Expired data is given up on both sides, and arrived and skipped bytes add up to the written ones, for files as well.
/// No data is older than the deadline and the one-way delay; without a deadline, data waits for the end of the outage
/// and longer.
#[test]
fn a_deadline_limits_the_delay_over_a_lossy_link_with_outages() {
    let outages = [
        ("duration_s", json!(200)),
        ("link.rate_bps", json!(1e6)),
        ("link.delay_s", json!(0.1)),
        ("link.channel", json!({ "kind": "outage", "period_s": 20, "down_s": 4 })),
        ("link.return.channel", json!({ "kind": "loss", "loss": 0.02 })),
    ];
    let telemetry = ("flow.file.traffic", json!({ "kind": "cbr", "rate_bps": 280e3, "payload_bytes": 350 }));
    let run = |keys: &Value, changes: &[(&str, Value)]| {
        let changes = [&outages[..], changes].concat();
        let mut keys = keys.clone();
        (keys["packet_bytes"], keys["rate_bps"]) = (json!(800), json!(350e3));
        flows(&scenario(0.0, &keys, &changes), 1).remove(0)
    };
    let slowest_s = |flow: &FlowResult| flow.histogram.as_ref().unwrap().quantile(1.0).unwrap();
    let patient = run(&json!({}), std::slice::from_ref(&telemetry));
    assert!(slowest_s(&patient) > 4.0 && patient.skipped_bytes == 0, "{}", slowest_s(&patient));
    for keys in [json!({ "deadline_s": 1 }), json!({ "deadline_s": 1, "coded": {} })] {
        let timely = run(&keys, std::slice::from_ref(&telemetry));
        // A segment of 756 bytes, 22 ms of data, is lost as a whole; a block is open for a quarter of a round trip.
        let most_s = 1.0 + 0.1 + if keys["coded"].is_null() { 0.05 } else { 0.15 };
        assert!(slowest_s(&timely) < most_s, "{keys}: {}", slowest_s(&timely));
        // The link is down for 4 of 20 s, and data written up to a second before the end of the outage arrives in time.
        let lost = timely.skipped_bytes as f64 / (timely.skipped_bytes + timely.delivered_bytes) as f64;
        assert!((0.10..0.20).contains(&lost), "{keys}: {lost}");
        let file = run(&keys, &[]);
        assert_eq!(file.delivered_bytes + file.skipped_bytes, FILE_BYTES as u64, "{keys}");
        assert!(file.skipped_bytes > 0 && file.finished.is_some(), "{keys}: at 350 kb/s a second does not suffice");
    }
}

/// A path needs a receive window of its rate times its round trip, times the transmissions of the unluckiest packet.
#[test]
fn the_default_window_is_as_good_as_the_longest() {
    for (loss, coded) in [(0.01, Value::Null), (0.1, Value::Null), (0.2, json!({ "block_symbols": 100 }))] {
        let delivered = |window: Value| {
            let bulk = [
                ("duration_s", json!(700)),
                ("link.channel", json!({ "kind": "loss", "loss": loss })),
                ("link.return.channel", json!({ "kind": "none" })),
                (
                    "transport.aero",
                    json!({ "kind": "aerotp", "packet_bytes": 3000, "receive_buffer_bytes": window, "coded": coded.clone() }),
                ),
                ("flow.file.traffic", json!({ "kind": "bulk" })),
            ];
            let flow = flows(&scenario(0.0, &json!({}), &bulk), 1).remove(0);
            (flow.delivered_bytes as f64, flow.peak_reorder_bytes)
        };
        let (own, longest) = (delivered(Value::Null), delivered(json!(1e9)));
        assert!(own.0 > 0.95 * longest.0, "{loss}: {own:?} of {longest:?}");
        assert!(own.1 as f64 <= 1.5 * longest.1 as f64 + 1e6, "{loss}: {own:?}, {longest:?}");
    }
}

/// A reader that does not read limits the sender, so a larger window would not help. The gateway's next hop is slow.
#[test]
fn a_window_does_not_grow_without_a_reader() {
    let hop = |rate_bps: f64, delay_s: f64| json!({ "rate_bps": rate_bps, "delay_s": delay_s });
    let mut fast = hop(1e8, 0.25);
    fast["gateway"] = json!({ "buffer_bytes": 1e6, "edge_transport": "edge" });
    let scenario = json!({
        "duration_s": 30,
        "path": ["lan", "space", "ground"],
        "hop": { "lan": hop(1e10, 0.0), "space": fast, "ground": hop(1e6, 0.01) },
        "transport": {
            "aero": { "kind": "aerotp", "packet_bytes": 30_000 },
            "edge": { "kind": "tcp", "segment_bytes": 30_000, "receive_window_segments": 1000 },
        },
        "flow": { "file": { "transport": "aero", "traffic": { "kind": "bulk" } } },
    });
    let flow = flows(&scenario, 1).remove(0);
    let sent_bytes = flow.sent_bytes - flow.overhead_bytes;
    // Data that was read at once while there was room, and data that waits.
    assert!(sent_bytes < (2 << 26) + 10_000_000, "{sent_bytes} bytes for {} that went on", flow.delivered_bytes);
}
