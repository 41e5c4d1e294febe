// The time of remarks is tested here.
#![allow(clippy::disallowed_methods)]

use farlink_core::scenario::{Expanded, expand, from_toml};
use farlink_core::trace::MemoryTraces;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::{NoTrace, simulate};
use crate::resolve::resolve;

fn kept(remarks: &[(usize, &str, &str)]) -> Vec<String> {
    let mut all = Notes::default();
    for &(rule, key, text) in remarks {
        all.add(rule, Remark { key: key.to_owned(), text: text.to_owned() });
    }
    all.finish()
}

#[test]
fn similar_remarks_are_shown_a_few_times_and_then_counted() {
    let one = |n: &'static str| (0, "link", n);
    let all = kept(&[one("a"), (0, "flow", "x"), one("b"), one("a"), one("c"), one("d"), one("e"), one("b")]);
    assert_eq!(all, ["a", "x", "b", "c", "link: 2 more points say the same with other figures"]);
    // Remarks of another rule are counted separately.
    assert_eq!(kept(&[one("a"), one("b"), one("c"), (1, "link", "d")]), ["a", "b", "c", "d"]);
    assert_eq!(
        kept(&[one("a"), one("b"), one("c"), one("d")])[3],
        "link: 1 more point says the same with other figures"
    );
}

fn set(scenario: &mut Value, path: &str, value: Value) {
    let pointer = format!("/{}", path.replace('.', "/"));
    let (table, key) = pointer.rsplit_once('/').unwrap();
    let mut at = scenario;
    for name in table.split('/').filter(|name| !name.is_empty()) {
        at = at.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({}));
    }
    let at = at.as_object_mut().unwrap();
    if value.is_null() {
        at.remove(key);
    } else {
        at.insert(key.to_owned(), value);
    }
}

/// A bulk transfer over 10 Mb/s and 100 ms of round trip, with these changes.
fn bulk(changes: Value) -> Value {
    let mut scenario = json!({
        "duration_s": 60, "runs": 1,
        "link": { "rate_bps": 1e7, "delay_s": 0.05, "queue_packets": 100 },
        "transport": { "t": { "kind": "tcp" } },
        "flow": { "data": { "transport": "t", "traffic": { "kind": "bulk" } } },
    });
    for (path, value) in changes.as_object().unwrap() {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

fn of_points(points: &Expanded) -> Vec<String> {
    let setups: Vec<Setup> =
        points.points.iter().map(|point| resolve(&point.scenario, &MemoryTraces::default()).unwrap()).collect();
    let study: Vec<Point<'_>> =
        points.points.iter().zip(&setups).map(|(point, setup)| Point { scenario: &point.scenario, setup }).collect();
    notes(&study)
}

fn of(scenario: &Value) -> Vec<String> {
    of_points(&expand(scenario).unwrap_or_else(|error| panic!("{error}")))
}

/// Goodput of one run, bit/s.
fn goodput_bps(scenario: &Value) -> f64 {
    let points = expand(scenario).unwrap();
    let setup = resolve(&points.points[0].scenario, &MemoryTraces::default()).unwrap();
    let result = simulate(&setup, 1, 0, &mut NoTrace, &|| false).unwrap();
    let bytes: u64 = result.flows.iter().map(|flow| flow.delivered_bytes).sum();
    bytes as f64 * 8.0 / result.end.as_secs_f64()
}

/// Each remark appears with its text where it applies, and not with a nearly equal setting that needs none.
#[test]
fn each_remark_appears_only_where_it_applies() {
    let loss = json!({ "kind": "loss", "loss": 0.01 });
    let two = |more: Value| {
        json!({
            "data": { "transport": "t", "class": 1, "traffic": { "kind": "bulk" } },
            "more": more,
        })
    };
    let call = json!({ "transport": "u", "traffic": { "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 160 } });
    let web = |rate: f64| json!({ "web": { "transport": "t", "traffic": { "kind": "transfers", "rate_per_s": rate, "bytes": 1e5 } } });
    let calls = |each_bps: f64| {
        let one =
            json!({ "transport": "u", "traffic": { "kind": "cbr", "rate_bps": each_bps, "payload_bytes": 1000 } });
        json!({ "one": one, "other": one })
    };
    let pass = |more: Value| {
        let mut pass = json!({ "kind": "pass", "altitude_m": 780e3, "min_elevation_deg": 8.2 });
        pass.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pass
    };
    let mut wrong = Vec::new();
    for (words, due, not_due) in [
        (
            "transport.t.bbr.min_rtt_window_s = 10 s is below two of the path's round trips of 12 s",
            json!({ "link.delay_s": 6, "duration_s": 600, "transport.t.congestion_control": "bbr" }),
            json!({
                "link.delay_s": 6, "duration_s": 600, "transport.t.congestion_control": "bbr",
                "transport.t.bbr": { "min_rtt_window_s": 120 },
            }),
        ),
        (
            "transport.t.bbr.probe_rtt_s = 8 s is more than half of min_rtt_window_s = 10",
            json!({ "transport.t.congestion_control": "bbr", "transport.t.bbr": { "probe_rtt_s": 8 } }),
            json!({ "transport.t.congestion_control": "bbr", "transport.t.bbr": { "probe_rtt_s": 1 } }),
        ),
        (
            "transport.t.max_window_segments lets 20 packets be under way: in a round trip of 0.101 s that is 2.37 Mb/s at \
             most, and the path carries 10 Mb/s; give max_window_segments = 85 or more",
            json!({ "transport.t.max_window_segments": 20 }),
            json!({ "transport.t.max_window_segments": 80 }),
        ),
        (
            "transport.t.receive_window_segments lets 20",
            json!({ "transport.t.receive_window_segments": 20 }),
            json!({ "transport.t.receive_window_segments": 20, "flow.data.count": 5 }),
        ),
        (
            "transport.t.window_scaling lets 44",
            json!({ "transport.t.window_scaling": false }),
            json!({ "transport.t.window_scaling": false, "link.rate_bps": 5e6 }),
        ),
        (
            "transport.t.window_frames lets 10",
            json!({ "transport.t": { "kind": "arq", "window_frames": 10 } }),
            json!({ "transport.t": { "kind": "arq", "mode": "stop-and-wait" } }),
        ),
        (
            "transport.t.max_window_segments lets 20",
            json!({ "transport.t": { "kind": "stp", "max_window_segments": 20 } }),
            json!({ "transport.t": { "kind": "stp", "max_window_segments": 20 }, "flow.data.traffic": { "kind": "file", "bytes": 1e4 } }),
        ),
        (
            "link.queue_bytes is not given, nor queue_packets: what waits of class 1 has no limit, and the window of flow.data may \
             wait for 60 s",
            json!({ "link.queue_packets": null, "link.service": "strict", "transport.u": { "kind": "udp" }, "flow": two(call.clone()) }),
            json!({ "link.queue_packets": 100, "link.service": "strict", "transport.u": { "kind": "udp" }, "flow": two(call) }),
        ),
        (
            "transport.t.rto.minimum_s = 1 s is 44.6 round trips of 0.0224 s",
            json!({ "link.delay_s": 0.001, "link.channel": loss, "transport.t": { "kind": "arq", "window_frames": 25, "rto": { "granularity_s": 0 } } }),
            json!({ "link.delay_s": 0.001, "link.channel": loss, "transport.t": { "kind": "arq", "window_frames": 25, "rto": { "minimum_s": 0.05 } } }),
        ),
        (
            "transport.t.rto.minimum_s = 20 s",
            json!({ "link.channel": loss, "transport.t.rto": { "minimum_s": 20, "initial_s": 20 } }),
            json!({ "transport.t.rto": { "minimum_s": 20, "initial_s": 20 } }),
        ),
        (
            "link.return.rate_bps carries 20 kb/s back: the acknowledgements of flow.data take 133 kb/s",
            json!({ "link.return": { "rate_bps": 2e4 } }),
            json!({ "link.return": { "rate_bps": 1.4e5 } }),
        ),
        (
            "flow.web.traffic.rate_per_s offers 16 Mb/s, and the path carries 10 Mb/s",
            json!({ "flow": web(20.0) }),
            json!({ "flow": web(12.0) }),
        ),
        (
            "offers 12 Mb/s with the other flow, and the path carries 10 Mb/s",
            json!({ "transport": { "u": { "kind": "udp" } }, "flow": calls(6e6) }),
            json!({ "transport": { "u": { "kind": "udp" } }, "flow": calls(4.8e6) }),
        ),
        (
            "transport.t.segment_bytes = 10 leaves 20 % of each packet of 50 bytes to data",
            json!({ "transport.t.segment_bytes": 10, "link.queue_packets": 3000 }),
            json!({ "transport.t.segment_bytes": 100, "link.queue_packets": 3000 }),
        ),
        (
            "link.delay_s ends 667 s after the start of a run of 1200 s, when the satellite is below 8.2 degrees",
            json!({ "duration_s": 1200, "link.delay_s": pass(json!({})) }),
            json!({ "duration_s": 1200, "link.delay_s": pass(json!({ "handover_s": 1 })) }),
        ),
        (
            "link.delay_s ends",
            json!({ "duration_s": 1200, "link.delay_s": pass(json!({})) }),
            json!({ "duration_s": 660, "link.delay_s": pass(json!({})) }),
        ),
        (
            "transport.t.rto.initial_s = 1 s is below the path's round trip of 20 s, and what follows, 3 s, too: the timer of the first \
             data expires before an answer can be there",
            json!({ "link.delay_s": 10, "duration_s": 2000, "link.queue_packets": 20000 }),
            json!({ "link.delay_s": 10, "duration_s": 2000, "link.queue_packets": 20000, "transport.t.rto": { "initial_s": 30 } }),
        ),
        (
            "transport.t.rto.initial_s = 1 s is below the path's round trip of 4 s",
            json!({ "link.delay_s": 2, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "stp" } }),
            json!({ "link.delay_s": 0.9, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "stp" } }),
        ),
        (
            "transport.t.rto.initial_s = 2 s is below",
            json!({ "link.delay_s": 2, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "tcp", "handshake": false, "rto": { "initial_s": 2 } } }),
            json!({ "link.delay_s": 2, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "tcp", "timestamps": true } }),
        ),
        (
            "transport.t.rto.initial_s = 1 s is below",
            json!({ "link.delay_s": 2, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "scps-tp" } }),
            json!({ "link.delay_s": 2, "duration_s": 2000, "link.queue_packets": 5000, "transport.t": { "kind": "tcp", "variant": "rack" } }),
        ),
        (
            "transport.t.bbr.pacing_margin = 0.25 leaves less than the bandwidth measured even of the probe for more",
            json!({ "transport.t.congestion_control": "bbr", "transport.t.bbr": { "pacing_margin": 0.25 } }),
            json!({ "transport.t.congestion_control": "bbr", "transport.t.bbr": { "pacing_margin": 0.15 } }),
        ),
        (
            "transport.t.max_window_segments lets 10 packets be under way: in a round trip of 0.101 s that is 1.19 Mb/s at most, and the \
             flow offers 4.11 Mb/s; give max_window_segments = 35 or more",
            json!({ "transport.t.max_window_segments": 10, "flow.data.traffic": { "kind": "cbr", "rate_bps": 4e6, "payload_bytes": 1000 } }),
            json!({ "transport.t.max_window_segments": 10, "flow.data.traffic": { "kind": "cbr", "rate_bps": 1e6, "payload_bytes": 1000 } }),
        ),
        (
            "transport.t.piggyback_timeout_s = 2 s is what each acknowledgement waits, as no data goes back",
            json!({ "transport.t": { "kind": "arq", "window_frames": 130, "piggyback_timeout_s": 2 } }),
            json!({ "transport.t": { "kind": "arq", "window_frames": 130, "piggyback_timeout_s": 0.01 } }),
        ),
        (
            "transport.t.ack_interval_s = 0.5 s alone gives an acknowledgement for 417 packets of a full path",
            json!({ "transport.t": { "kind": "scps-tp", "ack_interval_s": 0.5 } }),
            json!({ "transport.t": { "kind": "scps-tp", "ack_interval_s": 0.5, "ack_every_segments": 2 } }),
        ),
        (
            "transport.t.ack_interval_s = 0.5 s",
            json!({ "transport.t": { "kind": "scps-tp", "ack_interval_s": 0.5 } }),
            json!({ "transport.t": { "kind": "scps-tp", "ack_interval_s": 0.5, "rate_bps": 9e6, "congestion_control": "none" } }),
        ),
        (
            "flow.data.traffic.rate_bps offers 8 Mb/s, 32 Mb/s with headers and copies, and the path carries 10 Mb/s",
            json!({ "transport.t": { "kind": "tcp", "header_bytes": 300, "segment_bytes": 100 }, "flow.data.traffic": { "kind": "cbr", "rate_bps": 8e6, "payload_bytes": 1000 } }),
            json!({ "transport.t": { "kind": "tcp", "header_bytes": 20, "segment_bytes": 100 }, "flow.data.traffic": { "kind": "cbr", "rate_bps": 8e6, "payload_bytes": 1000 } }),
        ),
        (
            "flow.data.traffic.rate_bps offers 6 Mb/s, 22.8 Mb/s with headers and copies",
            json!({ "transport.t": { "kind": "udp" }, "flow.data.traffic": { "kind": "cbr", "rate_bps": 6e6, "payload_bytes": 10 } }),
            json!({ "transport.t": { "kind": "udp" }, "flow.data.traffic": { "kind": "cbr", "rate_bps": 6e6, "payload_bytes": 1000 } }),
        ),
        (
            "link.queue_bytes = 1000 is less than a packet of flow.data, 1500 bytes: whatever does not find the link idle is dropped",
            json!({ "link.queue_packets": null, "link.queue_bytes": 1000, "duration_s": 1000 }),
            json!({ "link.queue_packets": null, "link.queue_bytes": 15000, "duration_s": 1000 }),
        ),
        (
            "link.queue_packets = 20 ends slow start at about 63 packets, and the path holds 8334: from there the window grows by a \
             packet in one or two round trips of 2 s, so that 120 s have about 468 kb/s on average",
            json!({ "link.delay_s": 1, "link.rate_bps": 5e7, "link.queue_packets": 20, "duration_s": 120 }),
            json!({ "link.delay_s": 1, "link.rate_bps": 5e7, "link.queue_packets": 8000, "duration_s": 120 }),
        ),
        (
            "link.queue_packets = 20 ends slow start",
            json!({ "link.delay_s": 1, "link.rate_bps": 5e7, "link.queue_packets": 20, "link.channel": { "kind": "loss", "loss": 1e-6 } }),
            json!({ "link.delay_s": 1, "link.rate_bps": 5e7, "link.queue_packets": 20, "link.channel": { "kind": "loss", "loss": 1e-3 } }),
        ),
        (
            "transport.t.initial_ssthresh_segments = 30 ends slow start at about 30 packets",
            json!({ "link.delay_s": 0.5, "transport.t.initial_ssthresh_segments": 30, "link.queue_packets": 1000 }),
            json!({ "link.delay_s": 0.5, "transport.t.initial_ssthresh_segments": 30, "link.queue_packets": 1000, "duration_s": 6000 }),
        ),
        (
            "transport.t.initial_ssthresh_segments = 30 ends",
            json!({ "link.delay_s": 0.5, "transport.t.initial_ssthresh_segments": 30, "link.queue_packets": 1000 }),
            json!({ "link.delay_s": 0.5, "transport.t": { "kind": "tcp", "congestion_control": "cubic", "initial_ssthresh_segments": 30 }, "link.queue_packets": 1000 }),
        ),
        (
            "link.bundle.serial_bps = 1200 is below the 2.4 kb/s of its line",
            json!({ "link.rate_bps": 2400, "link.bundle": { "lines": 4, "serial_bps": 1200 } }),
            json!({ "link.rate_bps": 2400, "link.bundle": { "lines": 4, "serial_bps": 9600 } }),
        ),
    ] {
        let found = of(&bulk(due));
        let others = of(&bulk(not_due));
        if !matches!(&found[..], [note] if note.contains(words)) || !others.is_empty() {
            wrong.push((words, found, others));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// No run exceeds the rate in the remark on windows, and BBR loses as much as its remark says.
#[test]
fn figures_in_remarks_match_runs() {
    let small = goodput_bps(&bulk(json!({ "transport.t.max_window_segments": 20 })));
    assert!((2.0e6..2.37e6).contains(&small), "{small}");
    let wide = goodput_bps(&bulk(json!({})));
    let narrow = goodput_bps(&bulk(json!({ "link.return": { "rate_bps": 1e4 } })));
    assert!(narrow < 0.5 * wide, "{narrow} {wide}");
    // A setting without a remark loses little.
    let enough = goodput_bps(&bulk(json!({ "link.return": { "rate_bps": 1.4e5 } })));
    assert!(enough > 0.95 * wide, "{enough} {wide}");
    let headers = goodput_bps(&bulk(json!({ "transport.t.segment_bytes": 10 })));
    assert!(headers < 2.1e6, "{headers}");
    let bbr = |window: f64| {
        json!({
            "link.delay_s": 6, "duration_s": 600, "transport.t.congestion_control": "bbr", "link.queue_packets": 20000,
            "transport.t.bbr": { "min_rtt_window_s": window },
        })
    };
    let (short, long) = (goodput_bps(&bulk(bbr(10.0))), goodput_bps(&bulk(bbr(120.0))));
    assert!(short < 0.1 * long, "{short} {long}");
    let arq = |minimum_s: f64| {
        json!({
            "link.delay_s": 0.001, "link.channel": { "kind": "loss", "loss": 0.01 },
            "transport.t": { "kind": "arq", "window_frames": 25, "rto": { "minimum_s": minimum_s } },
        })
    };
    let (second, prompt) = (goodput_bps(&bulk(arq(1.0))), goodput_bps(&bulk(arq(0.05))));
    let far = |initial_s: f64| {
        json!({
            "link.delay_s": 10, "duration_s": 1200, "link.queue_packets": 30_000, "transport.t.rto": { "initial_s": initial_s },
        })
    };
    let (early, late) = (goodput_bps(&bulk(far(1.0))), goodput_bps(&bulk(far(30.0))));
    assert!(early < 0.1 * late, "{early} {late}");
    let steep = |packets: f64| json!({ "link.delay_s": 1, "link.rate_bps": 5e7, "link.queue_packets": packets, "duration_s": 120 });
    let (shallow, deep) = (goodput_bps(&bulk(steep(20.0))), goodput_bps(&bulk(steep(8000.0))));
    assert!((0.5..1.5).contains(&(shallow / 468e3)) && shallow < 0.1 * deep, "{shallow} {deep}");
    let margin = |margin: f64| json!({ "transport.t.congestion_control": "bbr", "transport.t.bbr": { "pacing_margin": margin } });
    let (wide_margin, narrow_margin) = (goodput_bps(&bulk(margin(0.25))), goodput_bps(&bulk(margin(0.15))));
    assert!(wide_margin < 0.5 * narrow_margin, "{wide_margin} {narrow_margin}");
    let clock = |every: Value| json!({ "transport.t": { "kind": "scps-tp", "ack_interval_s": 0.5, "ack_every_segments": every } });
    let (rare, often) = (goodput_bps(&bulk(clock(Value::Null))), goodput_bps(&bulk(clock(json!(2)))));
    assert!(rare < 0.2 * often, "{rare} {often}");
    eprintln!(
        "far {early} {late}, queue {shallow} {deep}, margin {wide_margin} {narrow_margin}, acknowledgements {rare} {often}"
    );
    eprintln!("bbr {short} {long}, arq {second} {prompt}, narrow {narrow} {wide}, headers {headers}");
    assert!(second < 0.5 * prompt, "{second} {prompt}");
}

/// A satellite at 780 km that is lost below 8.2 degrees: nothing arrives after its pass, or the next one takes over.
#[test]
fn a_run_longer_than_the_pass_is_remarked_on() {
    let pass = |duration: f64, more: Value| {
        let mut delay = json!({ "kind": "pass", "altitude_m": 780e3, "min_elevation_deg": 8.2 });
        delay.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let udp = json!({ "t": { "kind": "udp" } });
        let cbr = json!({ "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 1000 });
        goodput_bps(&bulk(
            json!({ "duration_s": duration, "link.delay_s": delay, "transport": udp, "flow.data.traffic": cbr }),
        ))
    };
    let share = |duration: f64, more: Value| pass(duration, more) / 1e5;
    assert!((share(600.0, json!({})) - 1.0).abs() < 0.001);
    assert!((share(1200.0, json!({})) - 667.0 / 1200.0).abs() < 0.002);
    assert!((share(4000.0, json!({})) - 667.0 / 4000.0).abs() < 0.001);
    assert!((share(4000.0, json!({ "handover_s": 1 })) - 666.5 / 667.5).abs() < 0.002);
    let apart = share(4000.0, json!({ "revisit_s": 1000 }));
    assert!((apart - 4.0 * 667.0 / 4000.0).abs() < 0.002, "{apart}");
}

/// The files of the repository that need no trace.
#[test]
fn scenarios_of_the_repository_need_no_remarks() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let (mut read, mut found) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let points = expand(&from_toml(&std::fs::read_to_string(&path).unwrap()).unwrap()).unwrap();
        let usable = |point: &farlink_core::scenario::Point| resolve(&point.scenario, &MemoryTraces::default()).is_ok();
        if points.points.iter().all(usable) {
            read += 1;
            found.extend(of_points(&points).into_iter().map(|note| format!("{}: {note}", path.display())));
        }
    }
    assert!(read >= 8, "{read}");
    assert_eq!(found, [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Links, transports and traffic as people have them: no false alarm.
    #[test]
    fn sane_scenarios_need_no_remarks(
        log_rate in 5.0..8.5f64, delay in 0.002..0.3f64, loss in prop_oneof![Just(0.0), 1e-5..0.02f64],
        control in prop_oneof![Just("reno"), Just("cubic"), Just("bbr"), Just("hybla"), Just("vegas")],
        kind in 0..4u8, share in 0.1..0.8f64, back in 0.1..1.0f64,
    ) {
        let rate = 10f64.powf(log_rate);
        let product = (rate * 2.0 * delay / 8.0 / 1500.0).ceil();
        let transport = match kind {
            0 => json!({ "kind": "tcp", "congestion_control": control }),
            1 => json!({ "kind": "tcp", "max_window_segments": 2.0 * product + 20.0, "variant": "rack" }),
            2 => json!({
                "kind": "arq", "window_frames": (2.0 * product + 10.0).min(1e6), "rate_bps": 0.99 * rate, "segment_bytes": 1400,
                "rto": { "initial_s": 3.0 * delay + 0.2, "minimum_s": 3.0 * delay },
            }),
            _ => json!({ "kind": "stp", "max_window_segments": 2.0 * product + 20.0 }),
        };
        let mut flow = json!({ "data": { "transport": "t", "traffic": { "kind": "bulk" } } });
        if kind == 0 && share < 0.4 {
            flow["web"] = json!({
                "transport": "t",
                "traffic": { "kind": "transfers", "rate_per_s": share * rate / 8e5, "bytes": 1e5 },
            });
        }
        let scenario = bulk(json!({
            "link": {
                "rate_bps": rate, "delay_s": delay, "queue_packets": product + 20.0,
                "channel": { "kind": "loss", "loss": loss }, "return": { "rate_bps": rate * back },
            },
            "transport": { "t": transport },
            "flow": flow,
        }));
        prop_assert_eq!(of(&scenario), [""; 0]);
    }
}

/// A remark stands once for all points that it concerns, however many. What they cost is measured by `benches/grids.py`.
#[test]
fn ten_thousand_points_have_the_remarks_of_a_thousand() {
    let remarks = |count: usize| {
        let windows: Vec<f64> = (0..count).map(|n| 1.0 + n as f64 / 1e6).collect();
        let scenario = bulk(json!({
            "link.delay_s": 6, "transport.t": { "kind": "tcp", "congestion_control": "bbr" },
            "grid": { "transport.t.bbr.min_rtt_window_s": windows },
        }));
        let points = expand(&scenario).unwrap();
        let setups: Vec<Setup> =
            points.points.iter().map(|point| resolve(&point.scenario, &MemoryTraces::default()).unwrap()).collect();
        let study: Vec<Point<'_>> = points
            .points
            .iter()
            .zip(&setups)
            .map(|(point, setup)| Point { scenario: &point.scenario, setup })
            .collect();
        notes(&study).len()
    };
    assert_eq!((remarks(1000), remarks(10_000)), (4, 4));
}
