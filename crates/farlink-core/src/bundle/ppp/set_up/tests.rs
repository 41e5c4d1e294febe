use super::super::Echo;
use super::super::config::EchoConfig;
use super::*;
use crate::units::Seconds;

/// A line of 2400 bit/s and 0.5 s each way, with a link-layer ARQ if given. A frame of 40 bytes takes [`AIR_S`], and arrives after
/// [`WAY_S`].
fn line(arq: &str) -> LineConfig {
    let line = LineConfig::new(BitRate::new(2400.0).unwrap(), Seconds::new(0.5).unwrap());
    LineConfig { arq: serde_json::from_str(arq).unwrap(), ..line }
}

const AIR_S: f64 = 40.0 * 8.0 / 2400.0;
const WAY_S: f64 = 0.5 + AIR_S;

fn config(json: &str) -> PppConfig {
    serde_json::from_str(json).unwrap()
}

fn set_up(json: &str, line: &LineConfig, seed: u64) -> Outcome {
    Ppp::new(&config(json), line).set_up(Time::ZERO, &mut Rng::for_component(seed, 0, "set-up"))
}

/// Zaghloul's table 3.2 on lines without loss, counted by hand. The near end sends its request of LCP after 5 s. The far end answers
/// with its own request and, behind it, the acknowledgement (2 W + A after 5 s), the near end with its acknowledgement, and a request
/// of PAP behind that. Then the answer to PAP, a refused request of IPCP and one with the address that it was given.
#[test]
fn a_set_up_without_loss_takes_its_round_trips() {
    for (json, established_s, end_s) in [
        ("{}", 5.0 + 4.0 * WAY_S + AIR_S, 5.0 + 8.0 * WAY_S + AIR_S),
        (r#"{"ipcp_requests": 1}"#, 5.0 + 4.0 * WAY_S + AIR_S, 5.0 + 6.0 * WAY_S + AIR_S),
        (r#"{"lcp_requests": 2}"#, 5.0 + 6.0 * WAY_S + AIR_S, 5.0 + 10.0 * WAY_S + AIR_S),
        // Without authentication the far end is the last to have LCP open.
        (r#"{"authentication": "none", "ipcp_requests": 1}"#, 5.0 + 3.0 * WAY_S, 5.0 + 5.0 * WAY_S),
        // The far end's request, sent at once, ends the wait of 5 s.
        (r#"{"far_is_silent": false, "ipcp_requests": 1}"#, 5.0 * WAY_S, 7.0 * WAY_S),
        (r#"{"connect_delay_s": 0}"#, 4.0 * WAY_S + AIR_S, 8.0 * WAY_S + AIR_S),
    ] {
        let outcome = set_up(json, &line("null"), 1);
        let found = [outcome.established, outcome.end].map(Time::as_secs_f64);
        assert!(outcome.has_network, "{json}");
        assert!((found[0] - established_s).abs() < 1e-9, "{json}: {found:?}, {established_s}");
        assert!((found[1] - end_s).abs() < 1e-9, "{json}: {found:?}, {end_s}");
    }
}

/// Each direction has its own rate: the far end's frames take four times as long here.
#[test]
fn frames_take_the_rate_of_their_direction() {
    let line = LineConfig { return_rate: BitRate::new(600.0).unwrap(), ..line("null") };
    let back_s = 4.0 * AIR_S;
    // The far end's acknowledgement of LCP leaves behind its request.
    let by_hand_s = 5.0 + WAY_S + (0.5 + 2.0 * back_s) + WAY_S + (0.5 + back_s);
    for line in [line.reversed(), line] {
        let found_s = set_up("{}", &line, 1).established.as_secs_f64();
        assert!((found_s - by_hand_s).abs() < 1e-9, "{found_s} {by_hand_s}");
    }
}

/// If nothing arrives, the near end sends ten requests of LCP, 10 s apart, and gives up 10 s after the last; with 15 s, the upper value
/// of table 3.2, likewise.
#[test]
fn a_dead_line_fails_after_ten_restarts() {
    let dead = line(r#"{"frame_bytes": 40, "window_frames": 1, "loss": 1, "attempts": 1}"#);
    for (json, end_s) in [("{}", 105), (r#"{"lcp_restart_s": 15}"#, 155), (r#"{"lcp_max_configure": 1}"#, 15)] {
        let outcome = set_up(json, &dead, 1);
        assert_eq!(
            (outcome.end, outcome.has_network, outcome.established),
            (Time::from_secs(end_s), false, Time::NEVER)
        );
    }
}

/// Of the twelve frames of a set-up, each is lost with probability 0.05: the shortest time is that without loss, and as frequent as
/// no loss is. A loss costs a restart timer and little more: the mean of a set-up with losses lies above one of them.
#[test]
fn losses_cost_restarts() {
    let lossy = line(r#"{"frame_bytes": 40, "window_frames": 1, "loss": 0.05, "attempts": 1}"#);
    let least = Time::from_secs_f64(5.0 + 8.0 * WAY_S + AIR_S);
    let all: Vec<Outcome> = (0..4000).map(|seed| set_up("{}", &lossy, seed)).collect();
    let complete: Vec<Time> = all.iter().filter(|outcome| outcome.has_network).map(|outcome| outcome.end).collect();
    assert!(complete.len() > 3980, "{}", complete.len());
    let near = |end: &Time| end.since(least) + least.since(*end) < Time::from_millis(1);
    let undisturbed = complete.iter().filter(|&end| near(end)).count() as f64 / all.len() as f64;
    // The standard error of this share is 0.008.
    assert!((undisturbed - 0.95_f64.powi(12)).abs() < 0.032, "{undisturbed}");
    assert!(complete.iter().all(|end| *end + Time::from_millis(1) >= least));
    let late: Vec<f64> = complete.iter().filter(|&end| !near(end)).map(|end| end.since(least).as_secs_f64()).collect();
    let mean_s = late.iter().sum::<f64>() / late.len() as f64;
    assert!((8.0..20.0).contains(&mean_s), "{mean_s}");
}

/// A restart timer below the round trip sends requests that are not lost again. Its duplicates take the open negotiation down.
#[test]
fn restart_timers_below_the_round_trip_delay_the_set_up() {
    let quick = set_up(r#"{"lcp_restart_s": 1, "connect_delay_s": 0}"#, &line("null"), 1);
    let patient = set_up(r#"{"lcp_restart_s": 3, "connect_delay_s": 0}"#, &line("null"), 1);
    assert!(patient.has_network);
    assert!(!quick.has_network || quick.end > patient.end, "{quick:?} {patient:?}");
}

/// The far end waits 30 s for a request of PAP (pppd: `pap-timeout`), which with a restart of 40 s is a single one.
#[test]
fn the_far_end_does_not_wait_for_ever_for_pap() {
    let lossy = line(r#"{"frame_bytes": 40, "window_frames": 1, "loss": 0.3, "attempts": 1}"#);
    let failed = |json: &str| (0..500).filter(|&seed| !set_up(json, &lossy, seed).has_network).count();
    let (limited, unlimited) =
        (failed(r#"{"pap_restart_s": 40}"#), failed(r#"{"pap_restart_s": 40, "pap_timeout_s": "never"}"#));
    // The request, or PAP's acknowledgement after which the far end is content, is lost.
    assert!(limited > unlimited + 100, "{limited} {unlimited}");
}

fn noticed_s(json: &str, open_for_s: f64) -> f64 {
    let config: EchoConfig = serde_json::from_str(json).unwrap();
    config.check(&line("null")).unwrap();
    let echo = Echo::new(&config, config.terminate(None), &line("null"));
    echo.noticed_after(Time::from_secs_f64(open_for_s)).as_secs_f64()
}

/// Table 3.2: an echo every 30 s, two failures. An answer comes after 1.107 s (16 bytes each way). The line is taken down when the third
/// echo after the last answer is due, and hung up 20 s later: between 60 s and 90 s after the drop, less the round trip, and 20 s.
#[test]
fn echoes_notice_a_drop_by_where_it_falls() {
    let round_trip_s = 2.0 * (0.5 + 16.0 * 8.0 / 2400.0);
    for (open_for_s, by_hand_s) in [
        (0.5, 59.5),                                         // no answer ever: sent at 0 and 30, down at 60
        (round_trip_s + 0.001, 90.0 - round_trip_s - 0.001), // just after the answer to the echo of 0
        (31.0, 59.0),                                        // before the answer to the echo of 30: down at 90
        (32.0, 88.0),                                        // after it: down at 120
        (59.9, 60.1),
        (3000.0, 60.0), // an echo that is sent at this instant is the first without an answer: down at 3060
    ] {
        let found_s = noticed_s("{}", open_for_s);
        assert!((found_s - by_hand_s - 20.0).abs() < 1e-6, "{open_for_s}: {found_s} {by_hand_s}");
    }
    let all: Vec<f64> = (0..30_000).map(|step| noticed_s("{}", 3000.0005 + f64::from(step) * 1e-3)).collect();
    let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &s| (least.min(s), most.max(s)));
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!((least - (80.0 - round_trip_s)).abs() < 2e-3, "{least}");
    assert!((most - (110.0 - round_trip_s)).abs() < 2e-3, "{most}");
    assert!((mean - (95.0 - round_trip_s)).abs() < 2e-3, "{mean}");
    assert!((noticed_s(r#"{"terminate_s": 0}"#, 32.0) - 88.0).abs() < 1e-6);
}

/// Answers that come after later echoes were sent: they still reset the count.
#[test]
fn an_answer_later_than_the_next_echo_counts() {
    // Echoes at 0, 0.5, 1, ...; answers at 1.107, 1.607, ... A drop at 10 s: the last answer came at 9.607 to the echo of 8.5; echoes
    // without an answer since then: 10, 10.5, 11; down at 11.5.
    let found_s = noticed_s(r#"{"interval_s": 0.5, "failures": 3, "terminate_s": 0}"#, 10.0);
    assert!((found_s - 1.5).abs() < 1e-6, "{found_s}");
}

/// Any configuration comes to an end, at the latest by the limit of frames, and in order.
#[test]
fn every_set_up_ends() {
    let mut rng = Rng::for_component(1, 0, "attack");
    for seed in 0..3000 {
        let mut power = |least: f64, most: f64| 10_f64.powf(least + (most - least) * rng.uniform());
        let json = format!(
            r#"{{"connect_delay_s": {}, "far_is_silent": {}, "lcp_restart_s": {}, "lcp_max_configure": {}, "lcp_requests": {},
            "authentication": "{}", "pap_restart_s": {}, "pap_max_authreq": {}, "pap_timeout_s": {}, "ipcp_restart_s": {},
            "ipcp_max_configure": {}, "ipcp_requests": {}, "frame_bytes": {}}}"#,
            power(-3.0, 7.0),
            seed % 2 == 0,
            power(-3.0, 7.0),
            power(0.0, 6.0).floor(),
            power(0.0, 1.5).floor(),
            if seed % 3 == 0 { "none" } else { "pap" },
            power(-3.0, 7.0),
            power(0.0, 6.0).floor(),
            power(-3.0, 7.0),
            power(-3.0, 7.0),
            power(0.0, 6.0).floor(),
            power(0.0, 1.5).floor(),
            power(0.0, 3.17).floor(),
        );
        let rates = [power(0.0, 13.0), power(0.0, 13.0)].map(|rate| BitRate::new(rate).unwrap());
        let delay_s = power(-6.0, 7.0);
        let loss = 1.0 - power(-3.0, 0.0);
        let arq = format!(r#"{{"frame_bytes": 30, "window_frames": 4, "loss": {loss}, "attempts": {}}}"#, 1 + seed % 3);
        let line = LineConfig {
            rate: rates[0],
            return_rate: rates[1],
            delay: Seconds::new(delay_s.min(1e7)).unwrap(),
            ..line(if seed % 4 == 0 { "null" } else { &arq })
        };
        let outcome = set_up(&json, &line, seed);
        let reversed = set_up(&json, &line.reversed(), seed);
        assert_eq!(outcome, reversed, "{json}");
        assert!(!outcome.has_network || outcome.established <= outcome.end, "{outcome:?} {json}");
        assert!(
            !outcome.has_network || outcome.opened.iter().all(|opened| *opened <= outcome.established),
            "{outcome:?} {json}"
        );
        assert!(
            !outcome.has_network || outcome.end >= Ppp::new(&config(&json), &line).round_trip(),
            "{outcome:?} {json}"
        );
    }
}
