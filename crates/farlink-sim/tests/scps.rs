//! SCPS-TP in the packet engine: the benefit of each capability on the links it was designed for.

use crate::common::{once, set, setup};
use farlink_core::endpoint::Probe;
use farlink_core::wire::Codec;
use farlink_core::{Ecn, Time};
use farlink_sim::engine::{FlowResult, Tracer, simulate};
use serde_json::{Value, json};

/// A geostationary link: 2 Mb/s forward, 20 kb/s back, bit errors in both directions.
fn geo(ber: f64, back_bps: f64, transport: Value) -> Value {
    let errors = json!({ "kind": "ber", "ber": ber });
    json!({
        "duration_s": 200,
        "measure": { "warmup_s": 20 },
        "link": {
            "rate_bps": 2e6, "delay_s": 0.25, "queue_bytes": 200_000, "channel": errors.clone(),
            "return": { "rate_bps": back_bps, "channel": errors },
        },
        "transport": { "t": transport },
        "flow": { "bulk": { "transport": "t", "traffic": { "kind": "bulk" } } },
    })
}

fn flow(scenario: &Value, seed: u64) -> FlowResult {
    once(&setup(scenario), seed).flows.remove(0)
}

/// Mean goodput of three runs, b/s.
fn goodput(scenario: &Value) -> f64 {
    let runs = (1..=3).map(|seed| flow(scenario, seed));
    runs.map(|flow| flow.delivered_bytes as f64 * 8.0 / flow.measured.as_secs_f64()).sum::<f64>() / 3.0
}

fn scps(changes: Value) -> Value {
    let mut transport = json!({ "kind": "scps-tp", "segment_bytes": 1000, "max_window_segments": 400 });
    for (key, value) in changes.as_object().expect("a table") {
        transport[key] = value.clone();
    }
    transport
}

/// With the same congestion control, and acknowledgements that fit the narrow return path: SNACK repairs a hole sooner
/// than three duplicates do, and its few acknowledgements report more holes.
#[test]
fn snack_beats_sack_over_an_asymmetric_link_with_bit_errors() {
    let of = |variant: &str| {
        let transport = scps(json!({ "variant": variant, "loss_means": "corruption", "ack_every_segments": 8 }));
        goodput(&geo(3e-6, 1e4, transport))
    };
    let (snack, sack) = (of("snack"), of("sack"));
    println!("snack {snack:.0}, sack {sack:.0}");
    assert!(snack > 1.2 * sack, "{snack} and {sack}");
}

/// The table of goodputs, b/s: without congestion control, errors cost only the damaged packets.
#[test]
fn a_fixed_rate_loses_only_damaged_packets() {
    for ber in [0.0, 1e-7, 1e-6, 3e-6, 1e-5] {
        let rate = json!({ "congestion_control": "none", "rate_bps": 1.9e6, "ack_every_segments": 10, "max_window_segments": 2000 });
        let fixed = goodput(&geo(ber, 1e5, scps(rate)));
        let cubic = goodput(&geo(
            ber,
            1e5,
            json!({ "kind": "tcp", "variant": "sack", "congestion_control": "cubic", "segment_bytes": 1000, "max_window_segments": 400 }),
        ));
        let spare = goodput(&geo(ber, 1e5, scps(json!({ "loss_means": "corruption", "ack_every_segments": 10 }))));
        println!(
            "ber {ber:e}: fixed rate {fixed:.0}, cubic {cubic:.0}, reno with losses taken for corruption {spare:.0}"
        );
        // The share that arrives intact at that rate: 1000 of 1040 bytes.
        let most = 1.9e6 * (1000.0 / 1040.0) * (1.0 - ber).powi(8 * 1040);
        assert!(fixed > 0.97 * most && fixed <= most * 1.005, "ber {ber}: {fixed} of {most}");
        if ber >= 1e-6 {
            assert!(fixed > 2.0 * cubic && spare > 1.5 * cubic, "ber {ber}: {fixed}, {spare} and {cubic}");
        }
    }
}

/// The receiver's link reports damaged frames, the receiver signals corruption, and the window stays; losses in the
/// queue still reduce it.
#[test]
fn signalled_corruption_does_not_reduce_the_window() {
    let of =
        |means: &str, ber: f64| goodput(&geo(ber, 1e5, scps(json!({ "loss_means": means, "ack_every_segments": 4 }))));
    let [congestion, signalled, corruption] = ["congestion", "signalled", "corruption"].map(|means| of(means, 3e-6));
    println!("congestion {congestion:.0}, signalled {signalled:.0}, corruption {corruption:.0}");
    assert!(signalled > 3.0 * congestion && signalled > 0.9 * corruption, "{congestion}, {signalled}, {corruption}");

    // Without errors there is nothing to signal: the result equals that with all losses treated as congestion, and
    // there are losses.
    let clear = |means: &str| {
        let mut scenario = geo(0.0, 1e5, scps(json!({ "loss_means": means, "ack_every_segments": 4 })));
        set(&mut scenario, "link.queue_bytes", json!(20_000));
        flow(&scenario, 1)
    };
    let (congestion, signalled) = (clear("congestion"), clear("signalled"));
    assert!(congestion.lost_packets > 0);
    assert_eq!(congestion.delivered_bytes, signalled.delivered_bytes);
}

/// The last congestion window, the number of reductions, and the smallest and the largest window from 60 s on, bytes.
struct Windows {
    latest: f64,
    shrunk: u32,
    least: f64,
    largest: f64,
}

impl Tracer for Windows {
    fn packet<P: Codec + 'static>(&mut self, _now: Time, _direction: usize, _flow: u32, _packet: &P, _ecn: Ecn) {}

    fn probe(&mut self, now: Time, _flow: u32, probe: impl FnOnce() -> Probe) {
        let cwnd = probe().cwnd_bytes.expect("there is only SCPS-TP");
        self.shrunk += u32::from(cwnd < self.latest);
        self.latest = cwnd;
        if now > Time::from_secs(60) {
            (self.least, self.largest) = (self.least.min(cwnd), self.largest.max(cwnd));
        }
    }
}

/// The bottleneck marks packets behind 50 kB, and 2.5 % of the packets are damaged: the window is halved for marks, and
/// never for losses.
#[test]
fn marks_shrink_the_window_and_bit_errors_do_not() {
    let of = |means: &str, ecn: bool, threshold: Value| {
        let transport = json!({
            "loss_means": means, "ecn": ecn, "ack_every_segments": 1, "max_window_segments": 250,
        });
        let mut scenario = geo(3e-6, 1e6, scps(transport));
        set(&mut scenario, "duration_s", json!(400));
        set(&mut scenario, "link.ecn_threshold_bytes", threshold);
        let mut windows = Windows { latest: 0.0, shrunk: 0, least: f64::INFINITY, largest: 0.0 };
        let run = simulate(&setup(&scenario), 1, 0, &mut windows, &|| false).unwrap();
        let flow = run.flows.into_iter().next().unwrap();
        let goodput = flow.delivered_bytes as f64 * 8.0 / flow.measured.as_secs_f64();
        let delay_s = flow.delay.mean().expect("packets were delivered");
        println!(
            "{means}, ecn {ecn}: window {:.0} to {:.0}, shrunk {} times, {} lost, {} marked, {goodput:.0} b/s, {delay_s:.3} s",
            windows.least, windows.largest, windows.shrunk, flow.lost_packets, flow.marked_packets
        );
        (windows, flow, goodput, delay_s)
    };
    for means in ["corruption", "signalled"] {
        let (unmarked, flow, most, long_s) = of(means, true, Value::Null);
        assert!(flow.marked_packets == 0 && flow.retransmitted_bytes > 500_000, "there are losses");
        if means == "corruption" {
            assert_eq!((unmarked.shrunk, unmarked.least), (0, 250_000.0), "losses alone");
        } else {
            assert!(unmarked.shrunk <= 2, "but for a queue that overflows: {} times", unmarked.shrunk);
        }
        let (marked, flow, goodput, short_s) = of(means, true, json!(50_000));
        assert!(flow.marked_packets > 20 && flow.retransmitted_bytes > 500_000);
        // Never more than where marking begins: the path's 125 kB and 50 kB before it.
        assert!(marked.shrunk > 2 && marked.largest < 200_000.0, "{means}: marks, {} times", marked.shrunk);
        assert!(marked.least < 0.6 * marked.largest, "{means}: halved");
        assert!(goodput > 0.6 * most && short_s < long_s - 0.2, "{means}: {goodput} of {most}, {short_s} and {long_s}");
    }
    let (_, flow, goodput, _) = of("congestion", true, json!(50_000));
    assert!(flow.marked_packets == 0 && goodput < 5e5, "losses leave nothing to mark: {goodput}");
}

/// At 10 % loss, sending every segment twice leaves one in a hundred to retransmit.
#[test]
fn two_copies_speed_up_a_lossy_path() {
    let of = |copies: u32| {
        let transport = json!({
            "copies": copies, "congestion_control": "none", "rate_bps": 1.9e6, "ack_every_segments": 10,
            "segment_bytes": 1000, "max_window_segments": 1000,
        });
        let mut scenario = geo(0.0, 1e5, scps(transport));
        set(&mut scenario, "link.channel", json!({ "kind": "loss", "loss": 0.1 }));
        set(&mut scenario, "flow.bulk.traffic", json!({ "kind": "cbr", "rate_bps": 8e5, "payload_bytes": 1000 }));
        flow(&scenario, 1)
    };
    let (one, two) = (of(1), of(2));
    let mean = |flow: &FlowResult| flow.delay.mean().expect("packets were delivered");
    println!(
        "one copy: mean delay {:.3} s, again {}; two: {:.3} s, again {} of {}",
        mean(&one),
        one.retransmitted_bytes,
        mean(&two),
        two.retransmitted_bytes,
        two.delivered_bytes
    );
    assert!(mean(&two) < 0.6 * mean(&one), "{} and {}", mean(&two), mean(&one));
    // A copy counts as retransmitted payload.
    let again = two.retransmitted_bytes as f64 / two.delivered_bytes as f64;
    assert!((1.0..1.1).contains(&again), "{again}");
}

/// Compressed headers: the same data in fewer bytes.
#[test]
fn compressed_headers_leave_more_of_a_link_for_data() {
    let of = |is_compressed: bool| {
        let transport = json!({
            "header_compression": is_compressed, "segment_bytes": 100, "congestion_control": "none", "rate_bps": 9e4,
            "max_window_segments": 1000, "handshake": false,
        });
        let mut scenario = geo(0.0, 1e5, scps(transport));
        set(&mut scenario, "link.channel", json!({ "kind": "loss", "loss": 0.01 }));
        flow(&scenario, 1)
    };
    let (plain, compressed) = (of(false), of(true));
    let per_packet = |flow: &FlowResult| flow.overhead_bytes as f64 / flow.sent_packets as f64;
    println!("{:.2} and {:.2} bytes of header", per_packet(&plain), per_packet(&compressed));
    assert_eq!((per_packet(&plain), per_packet(&compressed)), (40.0, 28.0));
    let gain = compressed.delivered_bytes as f64 / plain.delivered_bytes as f64;
    assert!((gain / (140.0 / 128.0) - 1.0).abs() < 0.01, "{gain}: in the proportion of the packets' lengths");
    assert!(compressed.return_bytes < plain.return_bytes, "acknowledgements are smaller, too");
}

/// Nothing waits longer than the hold time, and bytes given up are accounted for.
#[test]
fn best_effort_limits_the_delay_and_reports_gaps() {
    let of = |changes: Value| {
        let mut transport = scps(json!({
            "congestion_control": "none", "rate_bps": 1.9e6, "ack_every_segments": 10, "max_window_segments": 2000,
        }));
        for (key, value) in changes.as_object().expect("a table") {
            transport[key] = value.clone();
        }
        let mut scenario = geo(0.0, 1e5, transport);
        set(&mut scenario, "link.channel", json!({ "kind": "loss", "loss": 0.2 }));
        set(&mut scenario, "measure.warmup_s", json!(0));
        let traffic = json!({ "kind": "cbr", "rate_bps": 8e5, "payload_bytes": 1000, "bytes": 1_000_000 });
        set(&mut scenario, "flow.bulk.traffic", traffic);
        flow(&scenario, 1)
    };
    let reliable = of(json!({}));
    let held = of(json!({ "hold_time_s": 0.7 }));
    let once = of(json!({ "hold_time_s": 0.7, "max_transmissions": 1 }));
    let longest = |flow: &FlowResult| {
        flow.histogram.as_ref().and_then(|delays| delays.quantile(1.0)).expect("packets were delivered")
    };
    for flow in [&reliable, &held, &once] {
        println!("{} skipped, {} again, longest {:.3} s", flow.skipped_bytes, flow.retransmitted_bytes, longest(flow));
        assert_eq!(flow.delivered_bytes + flow.skipped_bytes, 1_000_000);
        assert!(flow.finished.is_some());
    }
    assert_eq!(reliable.skipped_bytes, 0);
    assert!(held.skipped_bytes > 0 && held.skipped_bytes < 100_000, "only data lost twice");
    assert_eq!(once.retransmitted_bytes, 0);
    assert!((0.15..0.25).contains(&(once.skipped_bytes as f64 / 1e6)), "all data lost once");
    // A hole is detected when the segment after it arrives, and held from then on.
    assert!(longest(&held) < 0.25 + 0.7 + 0.1 && longest(&once) < 0.25 + 0.7 + 0.1);
    assert!(longest(&reliable) > 1.2);
}

/// The return path has a hundredth of the forward rate.
#[test]
fn rare_acknowledgements_fit_a_narrow_return_path() {
    let of = |every: u32| {
        let transport = scps(json!({ "congestion_control": "none", "rate_bps": 1.9e6, "ack_every_segments": every }));
        flow(&geo(1e-7, 1e4, transport), 1)
    };
    let (each, rare) = (of(1), of(20));
    println!(
        "each: {} there, {} back; rare: {} and {}",
        each.delivered_bytes, each.return_bytes, rare.delivered_bytes, rare.return_bytes
    );
    assert!(rare.delivered_bytes > 5 * each.delivered_bytes && 2 * rare.return_bytes < each.return_bytes);
}
