//! In any scenario, nothing panics, bytes are conserved, and nothing is faster than light or the link.

use crate::common;
use crate::common::random::{LEAST_DELAY_S, channels, scenarios, stp, tcp};
use crate::common::{cases, once, real, run, scenario, setup, text};
use farlink_core::Time;
use farlink_core::protocol::TransportConfig;
use farlink_sim::engine::{FlowResult, RunResult, Setup, TrafficSetup};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Bytes that a flow is to carry, if it has an end.
fn asked_bytes(setup: &Setup, flow: &FlowResult) -> Option<u64> {
    match &setup.flows[flow.spec].traffic {
        TrafficSetup::Bulk => None,
        TrafficSetup::File { bytes } | TrafficSetup::Poisson { bytes, .. } => Some(*bytes),
        TrafficSetup::Cbr { limit_bytes, .. } => *limit_bytes,
        TrafficSetup::List(list) => Some(list[flow.number as usize % list.len()].1),
    }
}

/// The minimum delay from end to end.
fn propagation_s(setup: &Setup) -> f64 {
    setup.forward.iter().map(|hop| hop.delay.constant().map_or(LEAST_DELAY_S, Time::as_secs_f64)).sum()
}

/// The rate of the slowest constant hop.
fn slowest_bps(setup: &Setup) -> f64 {
    let constant = |hop: &farlink_core::hop::HopSetup| hop.rate.constant().map_or(f64::INFINITY, |rate| rate.get());
    setup.forward.iter().map(constant).fold(f64::INFINITY, f64::min)
}

/// Checks the laws of every run.
fn check(setup: &Setup, run: &RunResult) -> Result<(), TestCaseError> {
    prop_assert!(run.end <= setup.duration);
    let has_warmup = setup.warmup > Time::ZERO;
    for flow in &run.flows {
        check_flow(setup, flow, has_warmup)?;
    }
    if !has_warmup {
        let delivered: u64 = run.flows.iter().map(|flow| flow.delivered_bytes).sum();
        // All arrived data passed the slowest hop before the end. A microsecond for rounding.
        let most = slowest_bps(setup) * (run.end.as_secs_f64() + 1e-6) / 8.0;
        prop_assert!(delivered as f64 <= most, "{} bytes, at most {}", delivered, most);
        for policer in setup.forward.iter().filter_map(|hop| hop.policer) {
            let most = policer.burst_bytes.get() + policer.rate_bps.get() * run.end.as_secs_f64() / 8.0;
            prop_assert!(delivered as f64 <= most, "{} bytes, a policer passes {}", delivered, most);
        }
        prop_assert_eq!(run.flows.iter().map(|flow| flow.return_bytes).sum::<u64>(), run.return_bytes);
    }
    Ok(())
}

fn check_flow(setup: &Setup, flow: &FlowResult, has_warmup: bool) -> Result<(), TestCaseError> {
    let asked = asked_bytes(setup, flow);
    prop_assert_eq!(flow.is_finite, asked.is_some());
    if let Some(asked) = asked {
        prop_assert!(flow.delivered_bytes <= asked);
        prop_assert_eq!(flow.finished.is_some(), flow.undelivered_bytes == 0);
        if !has_warmup {
            prop_assert_eq!(flow.delivered_bytes + flow.skipped_bytes + flow.undelivered_bytes, asked);
        }
    }
    if let Some(finished) = flow.finished {
        prop_assert!(finished >= flow.start);
    }
    for delay in [&flow.delay, &flow.arrival_delay] {
        if let Some(mean_s) = delay.mean() {
            prop_assert!(mean_s >= propagation_s(setup), "delay {} s", mean_s);
        }
    }
    prop_assert_eq!(flow.delay.count, flow.delivered_packets);
    if has_warmup {
        return Ok(()); // what was sent before the measurement may be delivered within
    }
    let sent_payload = flow.sent_bytes - flow.overhead_bytes;
    prop_assert!(flow.delivered_packets + flow.lost_packets.min(1) <= flow.sent_packets);
    prop_assert!(flow.delivered_bytes + flow.retransmitted_bytes <= sent_payload);
    prop_assert!(flow.lost_packets <= flow.sent_packets);
    // A queue does not drop a packet that it marks, but the packet may be lost later.
    prop_assert!(flow.marked_packets <= flow.sent_packets);
    match &setup.flows[flow.spec].transport {
        TransportConfig::Udp(config) => {
            prop_assert_eq!(flow.marked_packets, 0);
            let copies = config.copies.whole();
            prop_assert!(flow.retransmitted_bytes <= (copies - 1) * (sent_payload - flow.retransmitted_bytes));
            // Each datagram arrived, was lost, or is in flight.
            prop_assert!(flow.delivered_packets + flow.lost_packets <= flow.sent_packets);
        }
        TransportConfig::Aerotp(config) => {
            prop_assert!(config.mode.is_acknowledged() || flow.retransmitted_bytes == 0);
            prop_assert!(flow.peak_reorder_bytes <= config.most_buffer_bytes());
        }
        TransportConfig::Arq(_) => {}    // `tests/arq.rs` knows its bounds
        TransportConfig::ScpsTp(_) => {} // as TCP's, but for what it gives up and repeats
        TransportConfig::Stp(config) => {
            let bytes = |segments: farlink_core::units::Count| segments.whole() * config.segment_bytes.whole();
            let sent = config.max_window_segments.map_or(u64::MAX, bytes);
            let held = config.receive_window_segments.map_or(sent, bytes).min(sent);
            prop_assert!(flow.peak_send_buffer_bytes <= held, "{} of {}", flow.peak_send_buffer_bytes, held);
            prop_assert!(flow.peak_reorder_bytes <= held);
        }
        TransportConfig::Tcp(config) => {
            prop_assert!(config.ecn || flow.marked_packets == 0);
            prop_assert!(flow.aborted.is_none() || config.max_retransmissions.is_some());
            let window = config.receive_window_segments.or(config.max_window_segments);
            let offered = window.map_or(u64::MAX >> 34, |segments| segments.whole() * config.segment_bytes.whole());
            // The window field has 16 bits: the offer is rounded up to its unit. SYN and FIN take a number each.
            let unit = 1 << (0..14).find(|shift| offered >> shift <= 65_535).unwrap_or(14);
            let most = offered.div_ceil(unit) * unit + 2;
            prop_assert!(flow.peak_send_buffer_bytes <= most, "{} of {}", flow.peak_send_buffer_bytes, most);
            prop_assert!(flow.peak_reorder_bytes <= most);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200)))]

    #[test]
    fn bytes_are_conserved_in_any_scenario(scenario in scenarios(), seed in 0_u64..1000) {
        let setup = setup(&scenario);
        check(&setup, &once(&setup, seed))?;
    }

    /// The run has no duration: it ends when everything has arrived, which happens soon.
    #[test]
    fn a_file_arrives_completely_over_any_channel_with_few_losses(
        transport in prop_oneof![tcp(), stp()], channel in channels(), back in channels(), bytes in 1_u64..60_000, queue in 1_u64..50, count in 1_u64..4,
    ) {
        prop_assume!(transport["kind"] != "stp" || [&channel, &back].into_iter().all(is_up_for_a_question));
        let hop = json!({ "queue_packets": queue, "channel": channel, "return": { "channel": back } });
        let file = json!({ "count": count, "traffic": { "kind": "file", "bytes": bytes } });
        check_whole(&transport, hop, file)?;
    }
}

/// STP retransmits nothing before a poll: the poll, its answer and the retransmission need one and a half round trips
/// (0.15 s here, and the time in the queue) of a path that is up. On a path that is never up for so long, with outages
/// as regular as the retransmission timer, the phase decides whether any exchange succeeds.
fn is_up_for_a_question(channel: &Value) -> bool {
    if let Some(stages) = channel["stages"].as_array() {
        return stages.iter().all(is_up_for_a_question);
    }
    channel["period_s"].as_f64().is_none_or(|period_s| period_s - channel["down_s"].as_f64().unwrap() > 0.3)
}

/// Files over a link of 1 Mb/s and 0.1 s of round trip arrive completely, and their flows end.
fn check_whole(transport: &Value, mut hop: Value, mut file: Value) -> Result<RunResult, TestCaseError> {
    let bytes = file["traffic"]["bytes"].as_u64().unwrap();
    (hop["rate_bps"], hop["delay_s"], file["transport"]) = (json!(1e6), json!(0.05), "stream".into());
    let scenario = json!({ "link": hop, "transport": { "stream": transport }, "flow": { "file": file } });
    let setup = setup(&scenario);
    let run = once(&setup, 1);
    check(&setup, &run)?;
    prop_assert!(!run.was_given_up);
    for flow in &run.flows {
        prop_assert_eq!(flow.delivered_bytes, bytes);
        prop_assert!(flow.finished.is_some());
    }
    Ok(run)
}

/// STATs in parts of one range each overflow the queue of the return path, and the same parts are lost each time. The
/// packets that they would report stay in flight for the sender, more than its window allows.
#[test]
fn a_window_kept_full_by_lost_parts_of_stats_opens_again() {
    let stp = json!({
        "kind": "stp", "segment_bytes": 391, "stat_ranges": 1, "poll_interval_s": 0.81, "poll_every_segments": 2,
        "handshake": false, "initial_window_segments": 19, "max_window_segments": 38,
    });
    let file = json!({ "count": 3, "traffic": { "kind": "file", "bytes": 12_416 } });
    for queue in 1..4 {
        let run = check_whole(&stp, json!({ "queue_packets": queue }), file.clone()).unwrap();
        assert!(run.end < Time::from_secs(60), "{:?}", run.end);
    }
}

/// POLLs of 40 bytes every 11 to 29 ms exceed the rate. Data is still sent between them, and no POLL follows the end.
#[test]
fn polls_that_alone_fill_the_rate_end_with_the_file() {
    for (interval_s, rate_bps, handshake) in [(0.011, 18_298, true), (0.012, 23_654, false), (0.029, 10_748, false)] {
        let stp = json!({
            "kind": "stp", "segment_bytes": 699, "poll_interval_s": interval_s, "congestion": "rate",
            "rate_bps": rate_bps, "handshake": handshake,
        });
        let file = json!({ "traffic": { "kind": "file", "bytes": 35_462 } });
        let run = check_whole(&stp, json!({ "queue_packets": 1 }), file).unwrap();
        let least_s = 35_462.0 * 8.0 / f64::from(rate_bps);
        assert!(run.end.as_secs_f64() < 1.3 * least_s, "{:?}, at least {least_s} s", run.end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    /// The result table obeys the same laws.
    #[test]
    fn rows_obey_conservation_laws(mut scenario in scenarios(), seed in 0_u64..1000) {
        scenario["seed"] = seed.into();
        scenario["runs"] = 2.into();
        check_rows(&scenario)?;
    }
}

fn check_rows(scenario: &Value) -> Result<(), TestCaseError> {
    let setup = setup(scenario);
    let output = run(scenario, 2);
    prop_assert!(!output.interrupted);
    let rows = &output.rows;
    let column = |name| real(rows, name);
    let is_measured_whole = setup.warmup == Time::ZERO;
    for (row, flow) in text(rows, "flow").iter().enumerate() {
        let value = |name| column(name)[row];
        for quantity in farlink_core::scenario::quantity::names() {
            let value = value(quantity);
            prop_assert!(
                value.is_nan() || (value >= 0.0 && value.is_finite()),
                "{} of {} is {}",
                quantity,
                flow,
                value
            );
        }
        prop_assert!(value("overhead_bytes") <= value("sent_bytes"));
        prop_assert!(value("duration_s") <= setup.duration.as_secs_f64());
        if is_measured_whole {
            prop_assert!(value("delivered_bytes") + value("overhead_bytes") <= value("sent_bytes"));
            let loss = value("loss_fraction");
            prop_assert!(loss.is_nan() || loss <= 1.0);
            let goodput = value("goodput_bps");
            prop_assert!(goodput.is_nan() || goodput <= slowest_bps(&setup) * (1.0 + 1e-6), "goodput {}", goodput);
        }
        let (median, late) = (value("delay_p50_s"), value("delay_p99_s"));
        prop_assert!(median.is_nan() || (median <= late && median >= propagation_s(&setup) * 0.99));
        let is_ok = text(rows, "status")[row] == "ok";
        prop_assert_eq!(is_ok, text(rows, "reason")[row].is_empty());
    }
    // The aggregate is the sum of the flows.
    for quantity in ["delivered_bytes", "sent_bytes", "retransmitted_bytes", "timeouts", "delivered_packets"] {
        let (mut of_flows, mut of_all) = (0.0, 0.0);
        for (flow, value) in text(rows, "flow").iter().zip(column(quantity)) {
            *(if flow == "all" { &mut of_all } else { &mut of_flows }) += value;
        }
        prop_assert_eq!(of_flows, of_all, "{}", quantity);
    }
    Ok(())
}

/// A run in which neither packets nor alarms are left keeps its results and ends when the last packet has arrived.
#[test]
fn datagrams_of_a_file_count_when_the_run_ends_early() {
    let file = json!({ "transport": "udp", "traffic": { "kind": "file", "bytes": 5000 } });
    let mut scenario =
        common::scenario(&[("transport.udp", json!({ "kind": "udp" })), ("flow", json!({ "file": file }))]);
    for duration_s in [json!(20), Value::Null] {
        common::set(&mut scenario, "duration_s", duration_s);
        let run = once(&setup(&scenario), 1);
        assert_eq!((run.flows[0].delivered_bytes, run.flows[0].sent_packets), (5000, 4));
        assert_eq!(Some(run.end), run.flows[0].finished);
    }
}

/// Beyond 256 flows, the flows of one name share a histogram, so the distribution is still known.
#[test]
fn many_flows_have_a_distribution_of_delays_too() {
    for (count, warmup_s) in [(200_u64, 0.0), (200, 5.0), (300, 0.0), (300, 5.0)] {
        let scenario = scenario(&[
            ("link.rate_bps", json!(1e8)),
            ("flow.bulk.count", count.into()),
            ("flow.bulk.traffic", json!({ "kind": "file", "bytes": 20_000 })),
            ("flow.bulk.start_spread_s", json!(10.0)),
            ("measure", json!({ "warmup_s": warmup_s })),
            ("flow.few", json!({ "transport": "tcp", "traffic": { "kind": "bulk" } })),
            ("transport.tcp.max_window_segments", 10.into()),
        ]);
        let output = run(&scenario, 1);
        let flows = text(&output.rows, "flow");
        assert_eq!(flows.iter().any(|flow| flow == "bulk"), count > 256, "one row for all of them");
        let medians = real(&output.rows, "delay_p50_s");
        for (flow, median) in flows.iter().zip(medians).filter(|(flow, _)| !flow.starts_with("bulk.")) {
            assert!((median / 0.0501 - 1.0).abs() < 0.02, "{flow} of {count}: {median} s");
        }
    }
}

/// No other key has to be adapted to the size of a segment.
#[test]
fn segments_of_any_size_work_with_the_default_windows() {
    for segment_bytes in [1, 1460, 8960, 65_000] {
        let scenario = scenario(&[
            ("transport.tcp.segment_bytes", segment_bytes.into()),
            ("flow.bulk.traffic", json!({ "kind": "file", "bytes": 200_000 })),
            ("link.rate_bps", json!(1e8)),
            ("link.queue_packets", Value::Null),
        ]);
        let run = once(&setup(&scenario), 1);
        assert_eq!(run.flows[0].delivered_bytes, 200_000, "{segment_bytes}");
    }
}
