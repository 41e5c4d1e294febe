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

/// Connections of lines that are dialled at the start, in s and in order.
fn connections(json: &str, lines: usize, reversed: bool) -> Vec<(f64, usize)> {
    let calls = config(json);
    let mut of = alike(&calls, lines);
    if reversed {
        of.iter_mut().for_each(|line| *line = line.reversed());
    }
    calls.check(&of).unwrap();
    let mut calls = calls.start(&of, &Rng::for_component(1, 0, "calls"));
    let mut changes = Vec::new();
    while calls.advance(Time::from_secs(2000), &mut changes) {}
    let connected = changes.iter().filter(|change| change.state == CallState::Connected);
    connected.map(|change| (change.at.as_secs_f64(), change.line)).collect()
}

const LONG: &str = r#""up": {"distribution": "constant", "value_s": 1e6}, "starts_dialling": true"#;

/// Without redial the modem is connected at once. Of a line of 2400 bit/s and 0.5 s, LCP and PAP take 7.667 s and IPCP 2.533 s
/// (`ppp::set_up::tests`). Lines that come while IPCP is under way wait for it, and those that join a bundle need none.
#[test]
fn only_the_first_line_negotiates_a_network_protocol() {
    let [link_s, all_s] = [5.0 + 4.0 * (0.5 + 2.0 / 15.0) + 2.0 / 15.0, 5.0 + 8.0 * (0.5 + 2.0 / 15.0) + 2.0 / 15.0];
    for (keys, expected) in [
        ("", [all_s; 3]),
        (r#", "primary": "ends-bundle""#, [all_s, all_s + link_s, all_s + link_s]),
        (r#", "redial": {"distribution": "constant", "value_s": 20}"#, [20.0 + all_s; 3]),
    ] {
        let found = connections(&format!(r#"{{{LONG}, "ppp": {{}}{keys}}}"#), 3, false);
        assert_eq!(found.len(), 3, "{keys}");
        let is_near = |(found, expected): (&(f64, usize), &f64)| (found.0 - expected).abs() < 1e-9;
        assert!(found.iter().zip(&expected).all(is_near), "{keys}: {found:?} {expected:?}");
    }
    // Side by side, each has its own.
    let calls = config(&format!(r#"{{{LONG}, "ppp": {{}}, "primary": "ends-bundle"}}"#));
    let mut calls = calls.start(&alike(&calls, 2), &Rng::for_component(1, 0, "calls")).without_multilink();
    let mut changes = Vec::new();
    while calls.advance(Time::from_secs(2000), &mut changes) {}
    let last = changes.last().unwrap();
    assert_eq!(last.state, CallState::Connected);
    assert!((last.at.as_secs_f64() - 2.0 * all_s).abs() < 1e-9, "{last:?}");
}

/// The availability of a line is the mean call over the mean cycle: a call of 3000 s, the detection by echoes (95 s less the round trip of
/// 1.107 s), and a set-up of 10.2 s.
#[test]
fn set_up_and_detection_of_table_3_2_give_the_availability() {
    let up = r#""up": {"distribution": "exponential", "mean_s": 3000}"#;
    for starts_dialling in [false, true] {
        let json = format!(r#"{{{up}, "ppp": {{}}, "echo": {{}}, "starts_dialling": {starts_dialling}}}"#);
        let (all, any, ..) = shares(&json, 1, 15_000_000);
        let cycle_s =
            3000.0 + (95.0 - 2.0 * (0.5 + 16.0 * 8.0 / 2400.0)) + (5.0 + 8.0 * (0.5 + 2.0 / 15.0) + 2.0 / 15.0);
        // About 4800 calls, whose lengths differ by as much as their mean: a standard error of 0.0005.
        assert!((any - 3000.0 / cycle_s).abs() < 0.0015 && all == any, "{any} {}", 3000.0 / cycle_s);
    }
}

/// Each end notices by what comes first: its echoes, or what `detection` says. Lines that are connected at the start are at a random
/// place between two echoes.
#[test]
fn an_end_notices_a_drop_by_what_comes_first() {
    let up =
        r#""up": {"distribution": "constant", "value_s": 1000}, "redial": {"distribution": "constant", "value_s": 53}"#;
    let noticed_s = |keys: &str, seed: u64| {
        let calls = config(&format!("{{{up}{keys}}}"));
        let mut calls = calls.start(&alike(&calls, 1), &Rng::for_component(seed, 0, "calls"));
        while calls.is_up(0) {
            assert!(calls.advance(Time::NEVER, &mut Vec::new()));
        }
        calls.noticed(0).map(|at| at.as_secs_f64() - 1000.0)
    };
    let of = |value_s: f64| format!(r#"{{"distribution": "constant", "value_s": {value_s}}}"#);
    let [least, most] = [80.0 - 1.107, 110.0 - 1.106];
    let found: Vec<[f64; 2]> = (0..200).map(|seed| noticed_s(r#", "echo": {}"#, seed)).collect();
    assert!(found.iter().flatten().all(|s| (least..=most).contains(s)), "{found:?}");
    for end in [0, 1] {
        let mean = found.iter().map(|both| both[end]).sum::<f64>() / 200.0;
        assert!((mean - 93.9).abs() < 2.5, "{mean}"); // uniform over 30 s: standard error 0.6
    }
    assert_eq!(noticed_s(&format!(r#", "echo": {{}}, "detection": {}"#, of(20.0)), 1), [20.0; 2]);
    let [near, far] = noticed_s(&format!(r#", "echo": {{}}, "detection_near": {}"#, of(5.0)), 1);
    assert!(near == 5.0 && (least..=most).contains(&far), "{near} {far}");
    let [near, far] = noticed_s(&format!(r#", "echo": {{}}, "detection": {}"#, of(500.0)), 1);
    assert!((least..=most).contains(&near) && (least..=most).contains(&far), "{near} {far}");
}

/// Both directions of a hop have the same calls, whatever the rates and losses: random lines of random calls.
#[test]
fn calls_with_ppp_are_the_same_in_both_directions() {
    let mut rng = Rng::for_component(1, 0, "attack");
    for seed in 0..300 {
        let mut power = |least: f64, most: f64| 10_f64.powf(least + (most - least) * rng.uniform());
        let primary = ["none", "ends-bundle", "stays-lost"][seed as usize % 3];
        let echo = format!(r#"{{"interval_s": {}, "failures": {}}}"#, power(0.5, 3.0), power(0.0, 1.0).floor());
        let json = format!(
            r#"{{"up": {{"distribution": "exponential", "mean_s": {}}}, "failure": {}, "retry_s": {}, "attempts": 3,
            "primary": "{primary}", "starts_dialling": {}, "echo": {}, "detection_near": {},
            "ppp": {{"connect_delay_s": {}, "lcp_restart_s": {}, "lcp_max_configure": {}, "far_is_silent": {}}}}}"#,
            power(-2.0, 4.0),
            1.0 - power(-1.0, 0.0),
            power(-3.0, 2.0),
            seed % 2 == 0,
            if seed % 5 == 0 { "null" } else { &echo },
            if seed % 4 == 0 { r#"{"distribution": "exponential", "mean_s": 9}"# } else { "null" },
            power(-3.0, 2.0),
            power(-1.0, 2.0),
            power(0.0, 2.0).floor(),
            seed % 7 == 0,
        );
        let calls = config(&json);
        let arq = r#"{"frame_bytes": 30, "window_frames": 4, "loss": 0.2, "attempts": 2}"#;
        let mut of = alike(&calls, 1 + seed as usize % 5);
        for line in &mut of {
            line.rate = BitRate::new(power(3.0, 6.0)).unwrap();
            line.return_rate = BitRate::new(power(3.0, 6.0)).unwrap();
            line.arq = (seed % 3 > 0).then(|| serde_json::from_str(arq).unwrap());
        }
        if calls.check(&of).is_err() {
            continue; // echoes more frequent than their answers
        }
        let back: Vec<LineConfig> = of.iter().map(|line| line.reversed()).collect();
        let rng = Rng::for_component(seed, 0, "calls");
        let [there, back] = [of, back].map(|lines| {
            let (mut calls, mut changes) = (calls.start(&lines, &rng), Vec::new());
            for _ in 0..500 {
                if !calls.advance(Time::NEVER, &mut changes) {
                    break;
                }
                let silent = (0..lines.len()).filter(|&line| calls.state(line) == CallState::Silent);
                assert!(
                    silent
                        .into_iter()
                        .all(|line| calls.noticed(line).iter().max().unwrap() >= &changes.last().unwrap().at)
                );
            }
            changes
        });
        assert_eq!(there, back, "{json}");
        assert!(there.windows(2).all(|two| two[0].at <= two[1].at), "{json}");
        assert!(there.len() > 100 || primary != "none", "{} {json}", there.len());
    }
}
