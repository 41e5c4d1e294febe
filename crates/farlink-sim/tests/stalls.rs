//! Flows that never finish: the run ends nevertheless and reports when the last data arrived.

use crate::common::{integer, once, run, scenario, set, setup, text};
use farlink_core::Time;
use farlink_core::event::Abort;
use serde_json::{Value, json};

/// A file of 500 segments over a link that fails after 2 s; without a duration.
fn dying(changes: &[(&str, Value)]) -> Value {
    let mut scenario = scenario(&[
        ("duration_s", Value::Null),
        ("runs", 1.into()),
        ("link.queue_packets", Value::Null),
        ("link.channel", json!({ "kind": "outage", "schedule": [[2, 1e7]] })),
        ("flow", json!({ "file": { "transport": "tcp", "traffic": { "kind": "file", "bytes": 5e5 } } })),
    ]);
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

/// Status and reason of the first row.
fn verdict(scenario: &Value) -> (String, String) {
    let output = run(scenario, 1);
    (text(&output.rows, "status")[0].clone(), text(&output.rows, "reason")[0].clone())
}

#[test]
fn a_run_ends_when_nothing_was_delivered_for_long() {
    for (given, patience) in [(Value::Null, 1e5), (json!(700), 700.0)] {
        let scenario = dying(&[("give_up_after_s", given)]);
        let result = once(&setup(&scenario), 1);
        let flow = &result.flows[0];
        // The last frame is sent before the outage and arrives after its delay.
        let last = flow.last_progress.as_secs_f64();
        assert!((2.0..2.06).contains(&last), "{last}");
        assert!(result.was_given_up);
        assert_eq!(result.end, flow.last_progress + Time::from_secs_f64(patience));
        let (status, reason) = verdict(&scenario);
        let since = (last * 1e3).round() / 1e3;
        let left = flow.undelivered_bytes;
        assert!(left > 0 && flow.delivered_bytes + left == 500_000);
        let end = ((last + patience) * 1e3).round() / 1e3;
        let expected = format!(
            "stalled since {since} s: {left} bytes of 1 transfers were not delivered when the run was given up at {end} s"
        );
        assert_eq!((status.as_str(), reason), ("stalled", expected));
    }
}

#[test]
fn a_run_with_a_duration_lasts_that_long() {
    let scenario = dying(&[("duration_s", 50.into())]);
    let result = once(&setup(&scenario), 1);
    assert_eq!((result.end, result.was_given_up), (Time::from_secs(50), false));
    assert!(verdict(&scenario).1.ends_with("when the run ended at 50 s"));
}

#[test]
fn a_run_waits_out_a_short_outage() {
    for (outage_end_s, is_waited_for) in [(600.0, true), (900.0, false)] {
        let outage = json!({ "kind": "outage", "schedule": [[2, outage_end_s]] });
        let scenario = dying(&[("give_up_after_s", 700.into()), ("link.channel", outage)]);
        let result = once(&setup(&scenario), 1);
        assert_eq!((result.flows[0].undelivered_bytes == 0, result.was_given_up), (is_waited_for, !is_waited_for));
    }
}

/// A run waits for traffic that is still to come; a dead flow beside it does not end it.
#[test]
fn a_run_waits_for_late_traffic() {
    let late = json!({ "transport": "tcp", "start_s": 5000, "traffic": { "kind": "file", "bytes": 1000 } });
    let outage = json!({ "kind": "outage", "schedule": [[2, 4000]] });
    let scenario = dying(&[("give_up_after_s", 10.into()), ("link.channel", outage), ("flow.late", late)]);
    let result = once(&setup(&scenario), 1);
    assert_eq!(result.flows[1].undelivered_bytes, 0);
    // Datagrams at a rate of one each 100 s over a link that loses all: the last is sent at 900 s.
    let cbr = json!({ "kind": "cbr", "rate_bps": 80, "payload_bytes": 1000, "bytes": 10_000 });
    let mut slow = dying(&[("give_up_after_s", 50.into()), ("transport.udp", json!({ "kind": "udp" }))]);
    set(&mut slow, "link.channel", json!({ "kind": "none" }));
    set(&mut slow, "flow", json!({ "slow": { "transport": "udp", "traffic": cbr } }));
    let result = once(&setup(&slow), 1);
    assert_eq!((result.flows[0].delivered_packets, result.was_given_up), (10, false));
}

/// If data still arrives at the end of the run, the flow has not stalled.
#[test]
fn a_file_still_arriving_is_unfinished() {
    let clear = json!({ "kind": "none" });
    let long = json!({ "transport": "tcp", "traffic": { "kind": "file", "bytes": 1e9 } });
    let arriving = [("duration_s", json!(50)), ("link.channel", clear.clone()), ("flow.file", long)];
    let result = once(&setup(&dying(&arriving)), 1);
    let (status, reason) = verdict(&dying(&arriving));
    let left = result.flows[0].undelivered_bytes;
    let expected =
        format!("{left} bytes of 1 transfers were not delivered when the run ended at 50 s; the last that came");
    assert!(status == "unfinished" && reason.starts_with(&expected), "{status}: {reason}");
    let all = run(&dying(&arriving), 1);
    assert_eq!(text(&all.rows, "status"), ["unfinished"; 2]);
    assert_eq!(text(&all.rows, "reason")[1], format!("file: {reason}"));
    assert_eq!(integer(&all.summary, "unfinished_runs"), [1, 1]);
    assert_eq!(
        (integer(&all.summary, "stalled_runs"), &text(&all.summary, "stalled_reason")[0]),
        (&[0, 0][..], &"".into())
    );
    // The link fails half a second before the end, or early enough to be noticed: with a short queue a round trip of
    // 0.1 s and a timeout of 1 s, backed off once; with the queue that slow start fills, much more.
    for (end_s, queue, status) in [
        (2.5, 5, "unfinished"),
        (2.9, 5, "unfinished"),
        (5.0, 5, "stalled"),
        (4.0, 1000, "unfinished"),
        (20.0, 1000, "stalled"),
    ] {
        let (found, reason) = verdict(&dying(&[("duration_s", json!(end_s)), ("link.queue_packets", json!(queue))]));
        assert_eq!(found, status, "{end_s}: {reason}");
    }
    // No data can arrive before a round trip of 200 s is over, and the limit is six of them.
    for (end_s, status) in [(250.0, "unfinished"), (1390.0, "unfinished"), (1410.0, "stalled")] {
        let dead = json!({ "kind": "loss", "loss": 1 });
        let changes = [("link.delay_s", json!(100)), ("duration_s", json!(end_s)), ("link.channel", dead)];
        assert_eq!(verdict(&dying(&changes)).0, status, "{end_s}");
    }
}

#[test]
fn the_timeout_of_a_flow_counts_if_it_is_longer() {
    for (initial_s, status) in [(1.0, "stalled"), (30.0, "unfinished")] {
        let rto = json!({ "algorithm": "fixed", "initial_s": initial_s });
        let changes = [("duration_s", json!(20)), ("transport.tcp.rto", rto)];
        assert_eq!(verdict(&dying(&changes)).0, status, "{initial_s}");
    }
}

/// Endless traffic ends with the run, but can stall like any other.
#[test]
fn endless_traffic_stalls_as_well() {
    let endless = |traffic: Value, transport: Value, channel: Value| {
        let mut endless = dying(&[("duration_s", json!(50)), ("transport.tcp", transport), ("link.channel", channel)]);
        set(&mut endless, "flow", json!({ "endless": { "transport": "tcp", "traffic": traffic } }));
        verdict(&endless)
    };
    let (tcp, udp) = (json!({ "kind": "tcp" }), json!({ "kind": "udp" }));
    let (bulk, dead) = (json!({ "kind": "bulk" }), json!({ "kind": "outage", "schedule": [[2, 1e7]] }));
    let (status, reason) = endless(bulk.clone(), tcp.clone(), dead.clone());
    assert_eq!(status, "stalled");
    assert!(
        reason.starts_with("stalled since 2.0")
            && reason.ends_with("nothing more was delivered when the run ended at 50 s")
    );
    let back = json!({ "kind": "outage", "schedule": [[2, 30]] });
    assert_eq!(endless(bulk, tcp.clone(), back).0, "ok", "it came back");
    // A packet every 20 s is progress; a lost packet every 20 s is not.
    let slow = json!({ "kind": "cbr", "rate_bps": 400, "payload_bytes": 1000 });
    assert_eq!(endless(slow.clone(), udp.clone(), json!({ "kind": "none" })).0, "ok");
    assert_eq!(endless(slow, udp, dead.clone()).0, "stalled");
    // Some pages are always in flight at the end.
    let pages = json!({ "kind": "transfers", "rate_per_s": 4, "bytes": 20_000 });
    assert_eq!(endless(pages.clone(), tcp.clone(), json!({ "kind": "none" })), ("ok".into(), String::new()));
    assert_eq!(endless(pages, tcp, dead).0, "stalled");
}

/// A run does not wait for data that can no longer arrive, such as lost datagrams.
#[test]
fn lost_datagrams_of_a_file_stall_it() {
    let cbr = json!({ "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 1000, "bytes": 1e5 });
    let mut lossy = dying(&[("transport.udp", json!({ "kind": "udp" }))]);
    set(&mut lossy, "link.channel", json!({ "kind": "loss", "loss": 0.2 }));
    set(&mut lossy, "flow", json!({ "data": { "transport": "udp", "traffic": cbr } }));
    assert_eq!(verdict(&lossy).0, "stalled");
}

#[test]
fn the_stall_limit_does_not_affect_flows_that_finish() {
    let clear = json!({ "kind": "ber", "ber": 1e-6 });
    let plenty = once(&setup(&dying(&[("link.channel", clear.clone())])), 1);
    let little = once(&setup(&dying(&[("link.channel", clear), ("give_up_after_s", 3.into())])), 1);
    assert_eq!((plenty.end, plenty.was_given_up), (little.end, little.was_given_up));
    assert_eq!(format!("{:?}", plenty.flows), format!("{:?}", little.flows));
}

#[test]
fn a_connection_that_gives_up_is_reported() {
    let scenario = dying(&[("transport.tcp.max_retransmissions", 3.into())]);
    let result = once(&setup(&scenario), 1);
    let (at, why) = result.flows[0].aborted.expect("it gave up");
    assert_eq!((why, result.flows[0].timeouts, result.was_given_up), (Abort::TooManyRetries, 3, false));
    assert_eq!(result.end, at, "nothing is left to do");
    let (status, reason) = verdict(&scenario);
    assert_eq!(status, "stalled");
    let said =
        format!("given up at {} s: too many retransmissions went unanswered", (at.as_secs_f64() * 1e3).round() / 1e3);
    assert!(reason.contains(&said) && reason.starts_with("stalled since 2.0"), "{reason}");
    // Endless traffic has no end to reach, but it stopped before the run's end.
    let mut endless = dying(&[("transport.tcp.max_retransmissions", 3.into()), ("duration_s", 100.into())]);
    set(&mut endless, "flow", json!({ "bulk": { "transport": "tcp", "traffic": { "kind": "bulk" } } }));
    let (status, reason) = verdict(&endless);
    assert!(status == "stalled" && reason.starts_with("given up at "), "{reason}");
}

/// The SYN never arrives.
#[test]
fn a_connection_that_never_opens_is_stalled_since_its_start() {
    let dead = [("link.channel", json!({ "kind": "loss", "loss": 1 })), ("flow.file.start_s", json!(3))];
    assert!(verdict(&dying(&dead)).1.starts_with("stalled since 3 s: 500000 bytes of 1 transfers"));
    let mut mortal = dying(&dead);
    set(&mut mortal, "transport.tcp.max_retransmissions", 2.into());
    let reason = verdict(&mortal).1;
    assert!(reason.starts_with("stalled since 3 s, given up at 10 s: too many retransmissions"), "{reason}");
}

#[test]
fn a_timer_shorter_than_the_round_trip_is_remarked_on() {
    let note = |changes: &[(&str, Value)]| run(&scenario(changes), 1).notes;
    let far = ("link.delay_s", json!(1.5));
    let rto = |key: &str, value: f64| (format!("transport.tcp.rto.{key}"), json!(value));
    let (table, quick) = (("transport.tcp.rto", json!({ "initial_s": 1, "minimum_s": 1 })), rto("maximum_s", 2.0));
    let notes = note(&[far.clone(), table.clone(), (quick.0.as_str(), quick.1.clone())]);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with("transport.tcp.rto.maximum_s = 2 s is below the path's round trip of 3 s"),
        "{notes:?}"
    );
    let fixed = note(&[far.clone(), ("transport.tcp.rto", json!({ "algorithm": "fixed", "initial_s": 2.5 }))]);
    assert!(fixed[0].starts_with("transport.tcp.rto.initial_s = 2.5 s"), "{fixed:?}");
    // Fixed, and growing.
    let growing = json!({ "algorithm": "fixed", "initial_s": 0.5, "backoff_limit": 4 });
    let growing = note(&[far.clone(), ("transport.tcp.rto", growing)]);
    assert!(growing[0].starts_with("transport.tcp.rto.initial_s = 0.5 s (2 s with back-off) is below"), "{growing:?}");
    // Enough packets, or those of no flow.
    let slow = rto("maximum_s", 3.5);
    // The answer to a retransmitted SYN gives a sample.
    let measured = ("transport.tcp.timestamps", json!(true));
    assert_eq!(note(&[far.clone(), measured.clone(), table.clone(), (slow.0.as_str(), slow.1)]), [] as [String; 0]);
    let unused = json!({ "kind": "tcp", "rto": { "initial_s": 1, "maximum_s": 2 } });
    assert_eq!(note(&[far, measured, ("transport.unused", unused)]), [] as [String; 0]);
}

/// Every transport with a timer reports it; those that take no samples of retransmissions also report the first
/// timeout.
#[test]
fn timers_of_all_transports_are_remarked_on() {
    let notes =
        |transport: Value| run(&scenario(&[("link.delay_s", json!(1.5)), ("transport.tcp", transport)]), 1).notes;
    let (short, never) = (json!({ "initial_s": 1, "maximum_s": 2 }), [] as [String; 0]);
    for (kind, outcome) in [
        ("tcp", "everything is sent again"),
        ("scps-tp", "everything is sent again"),
        ("arq", "everything is sent again"),
        ("stp", "the window shrinks"),
    ] {
        let mut transport = json!({ "kind": kind });
        if kind == "arq" {
            // As much as the path holds; a smaller window would cause another remark.
            transport["window_frames"] = 400.into();
        }
        if kind == "tcp" || kind == "scps-tp" {
            // The answer to a retransmitted SYN gives a sample.
            transport["timestamps"] = true.into();
        }
        let enough = notes(transport.clone());
        transport["rto"] = short.clone();
        let found = notes(transport);
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
        assert!(found[0].starts_with("transport.tcp.rto.maximum_s = 2 s is below the path's round trip of 3 s"));
        assert!(found[0].contains(outcome), "{found:?}");
        assert_eq!(enough, never, "{kind}");
    }
    let receiver = notes(json!({ "kind": "arq", "nak": true, "timer": "receiver", "rto": short }));
    assert!(receiver[0].contains("asks what is there"), "{receiver:?}");
    let by_rate = notes(json!({ "kind": "stp", "congestion": "rate", "rate_bps": 1e5, "rto": short }));
    assert!(by_rate[0].contains("POLLs are sent again"), "{by_rate:?}");

    // Karn's algorithm takes no sample of retransmitted segments, so back-off alone must reach the round trip.
    let early = json!({ "initial_s": 0.02 });
    let never = Some("(1.28 s with back-off) is below");
    for (words, transport) in [
        (never, json!({ "kind": "arq", "rto": early })),
        (None, json!({ "kind": "arq", "rto": early, "timestamps": true })),
        (never, json!({ "kind": "tcp", "rto": early, "handshake": false })),
        // Once open, they take samples, but the timer of the first data is too short.
        (Some("and what follows, 3 s, too"), json!({ "kind": "tcp", "rto": early })),
        (Some("and what follows, 2.56 s, too"), json!({ "kind": "stp", "rto": early })),
        (None, json!({ "kind": "tcp", "rto": early, "timestamps": true })),
        (None, json!({ "kind": "udp" })),
    ] {
        let cbr = json!({ "transport": "tcp", "traffic": { "kind": "cbr", "rate_bps": 1e4, "payload_bytes": 1000 } });
        let changes =
            [("link.delay_s", json!(1.5)), ("transport.tcp", transport.clone()), ("flow", json!({ "one": cbr }))];
        let found = run(&scenario(&changes), 1).notes;
        assert_eq!(found.len(), usize::from(words.is_some()), "{transport}: {found:?}");
        let is_said = |words: &str| found[0].contains("rto.initial_s = 0.02 s") && found[0].contains(words);
        assert!(words.is_none_or(is_said), "{transport}: {found:?}");
    }
}

#[test]
fn a_fixed_rate_above_the_bottleneck_is_remarked_on() {
    let notes = |transport: Value, count: u64| {
        let traffic = if transport["kind"] == "udp" {
            json!({ "kind": "cbr", "rate_bps": 2e6, "payload_bytes": 1000 })
        } else {
            json!({ "kind": "bulk" })
        };
        let flow = json!({ "one": { "transport": "fixed", "count": count, "traffic": traffic } });
        run(&scenario(&[("transport", json!({ "fixed": transport })), ("flow", flow)]), 1).notes
    };
    let stp = |rate: f64| json!({ "kind": "stp", "congestion": "rate", "rate_bps": rate });
    let scps = |control: &str| json!({ "kind": "scps-tp", "congestion_control": control, "rate_bps": 2e6 });
    let words = "= 2000000 bit/s is above the 1000000 bit/s that the path carries";
    for (transport, key) in [
        (stp(2e6), "transport.fixed.rate_bps"),
        (scps("none"), "transport.fixed.rate_bps"),
        (json!({ "kind": "udp" }), "flow.one.traffic.rate_bps"),
    ] {
        let notes = notes(transport, 1);
        assert!(matches!(&notes[..], [note] if note.starts_with(&format!("{key} {words}"))), "{notes:?}");
    }
    assert!(notes(stp(6e5), 2)[0].starts_with("transport.fixed.rate_bps = 600000 bit/s, 2 times, is above"));
    for quiet in [notes(stp(1e6), 1), notes(stp(5e5), 2), notes(scps("reno"), 1)] {
        assert_eq!(quiet, [] as [String; 0]);
    }
}
