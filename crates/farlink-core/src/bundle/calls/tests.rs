use super::super::calls_config::Primary;
use super::*;
use crate::units::BitRate;

fn config(json: &str) -> CallsConfig {
    serde_json::from_str(json).unwrap()
}

const FIELD: &str = r#"{"up": {"distribution": "exponential", "mean_s": 3000},
    "redial": {"distribution": "constant", "value_s": 53}"#;

/// `lines` equal lines with the durations of `calls`.
fn alike(calls: &CallsConfig, lines: usize) -> Vec<LineConfig> {
    let line = LineConfig::new(BitRate::new(2400.0).unwrap(), Seconds::new(0.5).unwrap());
    vec![LineConfig { up: calls.up, redial: calls.redial, ..line }; lines]
}

/// Shares of time with all and with any of the lines up, the mean share of lines, and the drops of all lines.
fn shares(json: &str, lines: usize, seconds: u64) -> (f64, f64, f64, u64) {
    let calls = config(json);
    let of = alike(&calls, lines);
    calls.check(&of).unwrap();
    let mut calls = calls.start(&of, &Rng::for_component(1, 0, "calls"));
    let (mut now, mut all, mut any, mut mean) = (Time::ZERO, 0.0, 0.0, 0.0);
    let end = Time::from_secs(seconds);
    let mut changes = Vec::new();
    while now < end {
        let next = calls.next_change().min(end);
        let span = next.since(now).as_secs_f64();
        all += if calls.lines_up() == lines { span } else { 0.0 };
        any += if calls.lines_up() > 0 { span } else { 0.0 };
        mean += span * calls.lines_up() as f64 / lines as f64;
        now = next;
        while calls.advance(now, &mut changes) {}
    }
    assert!(changes.windows(2).all(|two| two[0].at <= two[1].at));
    let total = end.as_secs_f64();
    (all / total, any / total, mean / total, calls.dialler.lines.iter().map(|line| line.drops).sum())
}

/// Each line is up for 3000 of 3053 s, so all eight independent lines are up for the eighth power of that share.
#[test]
fn availability_of_independent_lines_is_the_product() {
    let (all, any, _, drops) = shares(&format!("{FIELD}}}"), 8, 10_000_000);
    assert!((all - (3000.0_f64 / 3053.0).powi(8)).abs() < 0.004, "{all}");
    assert!(any > 0.999_999, "{any}");
    assert!((drops as f64 / (8.0 * 1e7 / 3053.0) - 1.0).abs() < 0.02, "{drops}");
}

/// A cycle takes 3000 + 20 + 53 s: the line is up for 3000 s, and its drop is not noticed for another 20 s.
#[test]
fn a_late_detection_delays_the_redial() {
    let json = format!(r#"{FIELD}, "detection": {{"distribution": "constant", "value_s": 20}}}}"#);
    let (_, _, share, _) = shares(&json, 8, 10_000_000);
    assert!((share - 3000.0 / 3073.0).abs() < 0.001, "{share}");
    let calls = config(&json);
    let mut calls = calls.start(&alike(&calls, 1), &Rng::for_component(1, 0, "calls"));
    let mut changes = Vec::new();
    while changes.len() < 4 {
        calls.advance(Time::NEVER, &mut changes);
        assert_eq!(calls.seems_up(0), calls.is_up(0) || calls.state(0) == CallState::Silent);
    }
    let states = [CallState::Silent, CallState::Dropped, CallState::Connecting, CallState::Connected];
    assert!(changes.iter().map(|change| change.state).eq(states), "{changes:?}");
    assert_eq!(changes[1].at.since(changes[0].at), Time::from_secs(20));
}

/// A cycle of the bundle: it is up until the primary drops (3000 s), then the primary is dialled for 53 s, then the
/// others as long.
#[test]
fn the_bundle_drops_with_its_primary_line() {
    let (_, any, ..) = shares(&format!(r#"{FIELD}, "primary": "ends-bundle"}}"#), 8, 10_000_000);
    assert!((any - 3000.0 / 3053.0).abs() < 0.002, "{any}");
}

/// A lost primary is not dialled while any other line is up. With seven others that reconnect soon it is never dialled;
/// without others it is dialled at once.
#[test]
fn a_lost_primary_waits_for_the_end_of_the_bundle() {
    let json = format!(r#"{FIELD}, "primary": "stays-lost"}}"#);
    let calls = config(&json);
    let mut calls = calls.start(&alike(&calls, 8), &Rng::for_component(1, 0, "calls"));
    let mut changes = Vec::new();
    while calls.is_up(0) {
        calls.advance(Time::NEVER, &mut changes);
    }
    assert_eq!(calls.state(0), CallState::Waiting);
    let at = changes.last().unwrap().at;
    while calls.next_change() < at + Time::from_secs(100_000) && calls.lines_up() > 0 {
        calls.advance(Time::NEVER, &mut changes);
    }
    assert_eq!(calls.state(0), CallState::Waiting);
    let (all, any, ..) = shares(&json, 1, 10_000_000);
    assert!((all - 3000.0 / 3053.0).abs() < 0.003 && all == any, "{all}");
}

/// Four of ten attempts fail; after two failures in a row a line is blocked for an hour.
#[test]
fn lines_fail_and_are_blocked() {
    let json = format!(r#"{FIELD}, "failure": 0.4, "retry_s": 10, "attempts": 2, "blocked_s": 3600, "idle_s": 5}}"#);
    let (_, _, share, _) = shares(&json, 32, 15_000_000);
    // A round has up to two attempts and ends with the first that connects: with probability 0.16 it ends blocked.
    let round_s = 53.0 + 0.4 * (10.0 + 53.0);
    let down_s = 5.0 + (round_s + 0.16 * 3600.0) / 0.84;
    assert!((share - 3000.0 / (3000.0 + down_s)).abs() < 0.004, "{share}");
}

/// Whichever attempts fail, a bundle with a primary line always dials a line or waits for the end of a block.
#[test]
fn a_bundle_never_stops_dialling() {
    let late = r#"{"distribution": "exponential", "mean_s": 20}"#;
    let cases = [("ends-bundle", "null"), ("stays-lost", "null"), ("ends-bundle", late), ("stays-lost", late)];
    for (primary, detection) in cases {
        let json = format!(
            r#"{FIELD}, "failure": 0.7, "attempts": 2, "blocked_s": 600, "primary": "{primary}",
            "starts_dialling": true, "detection": {detection}}}"#
        );
        for lines in [1, 2, 5] {
            let calls = config(&json);
            let mut calls = calls.start(&alike(&calls, lines), &Rng::for_component(lines as u64, 0, "calls"));
            let mut changes = Vec::new();
            for _ in 0..20_000 {
                assert!(calls.next_change() < Time::NEVER, "{primary}, {lines} lines");
                calls.advance(Time::NEVER, &mut changes);
                if let Some(primary) = calls.dialler.primary.filter(|_| primary == "ends-bundle") {
                    assert!(calls.seems_up(primary));
                }
            }
            assert!(changes.iter().any(|change| change.state == CallState::Blocked));
        }
    }
}

/// A line's history counts in proportion to its length: neither a short history nor none makes a line the best, and a
/// call that the bundle ended is not a drop.
#[test]
fn the_primary_is_the_line_with_the_longest_expected_call() {
    let calls = config(&format!(r#"{FIELD}, "primary": "ends-bundle"}}"#));
    let mut dialler = Dialler::new(&calls, 4);
    let mut chosen = |history: [(u64, u64); 4]| {
        for (line, (connected_s, drops)) in dialler.lines.iter_mut().zip(history) {
            (line.connected, line.drops, line.state) = (Time::from_secs(connected_s), drops, CallState::Waiting);
        }
        dialler.dial_primary(Time::ZERO, &mut Reaction::default());
        dialler.lines.iter().position(|line| line.state == CallState::Connecting).expect("one is dialled")
    };
    // Thirty calls of two hours on average win over a line that was never called, one that was up for a minute, and a
    // bad one.
    assert_eq!(chosen([(0, 0), (60, 0), (1_000, 20), (216_000, 30)]), 3);
    // A line that was never called counts as average: the best line wins over it, and it wins over a worse one.
    assert_eq!(chosen([(20_000, 20), (0, 0), (10_000, 20), (1_000, 20)]), 0);
    assert_eq!(chosen([(1_000, 20), (0, 0), (1_000, 20), (1_000, 20)]), 1);
    // The line that never dropped is the best.
    assert_eq!(chosen([(90_000, 30), (90_000, 0), (90_000, 1), (90_000, 2)]), 1);
}

/// Three lines have calls of 500, 5000 and 50,000 s. The best one is the primary most of the time, although the bundle
/// ends its calls whenever another primary drops.
#[test]
fn the_best_line_is_the_primary_most_of_the_time() {
    let calls = config(&format!(r#"{FIELD}, "primary": "ends-bundle"}}"#));
    let mut lines = alike(&calls, 3);
    for (line, mean_s) in lines.iter_mut().zip([500, 5_000, 50_000]) {
        let up = format!(r#"{{"distribution": "exponential", "mean_s": {mean_s}}}"#);
        line.up = serde_json::from_str(&up).unwrap();
    }
    let (mut of_best, mut all) = (0.0, 0.0);
    for seed in 0..40 {
        let mut calls = calls.start(&lines, &Rng::for_component(seed, 0, "calls"));
        let (end, mut changes) = (Time::from_secs(500_000), Vec::new());
        while calls.next_change() < end {
            let (primary, from) = (calls.dialler.primary, calls.next_change());
            calls.advance(from, &mut changes);
            if primary.is_some() {
                let span_s = calls.next_change().min(end).since(from).as_secs_f64();
                of_best += if calls.dialler.primary == Some(2) { span_s } else { 0.0 };
                all += span_s;
            }
        }
    }
    assert!(of_best > 0.9 * all, "{}", of_best / all);
}

#[test]
fn a_recording_is_replayed() {
    let json = r#"{"schedule": [[[1, 2], [2, 3.5]], [], [[0, 1]]]}"#;
    let calls = config(json);
    calls.check(&alike(&calls, 3)).unwrap();
    let mut calls = calls.start(&alike(&calls, 3), &Rng::for_component(1, 0, "calls"));
    let mut changes = Vec::new();
    while calls.advance(Time::from_secs(10), &mut changes) {}
    let seen: Vec<(f64, usize, bool)> = changes
        .iter()
        .map(|change| (change.at.as_secs_f64(), change.line, change.state == CallState::Connected))
        .collect();
    let expected = [(0.0, 2, false), (1.0, 0, false), (1.0, 2, true), (2.0, 0, true), (2.0, 0, false), (3.5, 0, true)];
    assert_eq!(seen, expected);
    assert_eq!(calls.next_change(), Time::NEVER);
}

/// The orders for an operator of three modems, without any network.
#[test]
fn a_dialler_is_driven_by_events() {
    let config = config(&format!(
        r#"{FIELD}, "primary": "ends-bundle", "failure": 0.1, "retry_s": 30, "attempts": 2, "blocked_s": 600, "idle_s": 3}}"#
    ));
    let mut dialler = Dialler::new(&config, 3);
    let at = Time::from_secs;
    let mut orders = |event: &dyn Fn(&mut Dialler, &mut Reaction)| {
        let mut reaction = Reaction::default();
        event(&mut dialler, &mut reaction);
        let due: Vec<Time> = (0..3).map(|line| dialler.next_timeout(line)).collect();
        (reaction.orders, due.into_iter().min().unwrap())
    };
    let none: Vec<Order> = Vec::new();
    // A drop of a line that is not the primary one is silent first, and the line is dialled after the pause.
    assert_eq!(orders(&|dialler, out| dialler.on_silence(1, at(100), out)), (none.clone(), Time::NEVER));
    assert_eq!(orders(&|dialler, out| dialler.on_drop(1, at(110), out)), (none.clone(), at(113)));
    assert_eq!(orders(&|dialler, out| dialler.handle_timeout(1, at(113), out)), (vec![Order::Dial(1)], Time::NEVER));
    // Two failures block it.
    assert_eq!(orders(&|dialler, out| dialler.on_failure(1, at(160), out)), (none.clone(), at(190)));
    assert_eq!(orders(&|dialler, out| dialler.handle_timeout(1, at(190), out)), (vec![Order::Dial(1)], Time::NEVER));
    assert_eq!(orders(&|dialler, out| dialler.on_failure(1, at(240), out)), (none.clone(), at(840)));
    // The primary line drops: the other call is ended, and one line is dialled after the pause. It becomes the primary
    // one, and the others follow.
    let (ended, due) = orders(&|dialler, out| dialler.on_drop(0, at(300), out));
    assert_eq!((ended, due), (vec![Order::HangUp(2)], at(303)));
    assert_eq!(orders(&|dialler, out| dialler.handle_timeout(2, at(303), out)), (vec![Order::Dial(2)], at(840)));
    assert_eq!(orders(&|dialler, out| dialler.on_connected(2, at(350), out)), (vec![Order::Dial(0)], at(840)));
    // A bundle that ends ends attempts to dial as well.
    let (ended, _) = orders(&|dialler, out| dialler.on_drop(2, at(360), out));
    assert_eq!(ended, [Order::HangUp(0)]);
    assert_eq!(config.primary, Primary::EndsBundle);
}
