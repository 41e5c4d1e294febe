use super::super::path::Path;
use super::*;
use crate::units::{Count, Factor, Fraction};

const MSS: f64 = 1460.0;

fn config() -> TcpConfig {
    TcpConfig { hystart: Some(false), ..TcpConfig::default() }
}

fn with(cubic: CubicConfig) -> TcpConfig {
    TcpConfig { cubic: Some(cubic), ..config() }
}

/// W(t) of RFC 9438, section 4.2, in segments, after a loss at `w_max` segments.
fn curve(w_max: f64, t: f64) -> f64 {
    let k = (w_max * 0.3 / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

/// A path in congestion avoidance after a loss at this window, in segments.
fn after_loss(config: &TcpConfig, round_trip: Time, w_max: f64) -> (Path, Cubic) {
    let mut path = Path::new(config, round_trip);
    let mut cubic = Cubic::new(config);
    path.set_cwnd(w_max);
    path.lose(&mut cubic);
    (path, cubic)
}

/// K = cbrt(1000 x 0.3 / 0.4) = 9.09 s; the window stays within a segment of the curve in its concave and convex parts.
#[test]
fn the_window_follows_the_curve() {
    for per_ack in [1, 2] {
        let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(100), 1000.0);
        path.per_ack = per_ack;
        assert!((path.cwnd() - 700.0).abs() < 1e-9);
        path.acknowledge(&mut cubic);
        let began = path.window.now;
        assert!((cubic.curve.k / PS_PER_S - 750.0_f64.cbrt()).abs() < 1e-9, "{}", cubic.curve.k);
        for _ in 0..40 {
            path.run(&mut cubic, Time::from_millis(400));
            let t = path.window.now.since(began).as_secs_f64();
            let expected = curve(1000.0, t);
            // Its slope in a round trip is between the window and its target.
            let slope = 0.1 * 1.2 * (t - 750.0_f64.cbrt()).powi(2);
            assert!((path.cwnd() - expected).abs() < 1.0 + slope, "{t}: {} {expected}", path.cwnd());
        }
        let t = path.window.now.since(began).as_secs_f64();
        assert!(t > 15.0 && path.cwnd() > 1080.0, "{t}: {}", path.cwnd());
    }
}

/// A short path: W_est grows by alpha = 0.53 segments a round trip up to the window before the loss, then by one.
#[test]
fn on_a_short_path_it_is_as_fast_as_reno() {
    let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(1), 100.0);
    path.acknowledge(&mut cubic);
    for round in 1..=110 {
        path.round(&mut cubic);
        let alpha = 3.0 * 0.3 / 1.7;
        let to_prior = 30.0 / alpha; // rounds, 56.7
        let n = f64::from(round);
        let expected = if n < to_prior { 70.0 + alpha * n } else { 100.0 + (n - to_prior) };
        assert!((path.cwnd() - expected).abs() < 1.0, "{round}: {} {expected}", path.cwnd());
    }
    // Without the Reno-friendly region, the curve alone hardly grows in 0.11 s.
    let strict = with(CubicConfig { reno_friendly: false, ..CubicConfig::default() });
    let (mut path, mut cubic) = after_loss(&strict, Time::from_millis(1), 100.0);
    path.run(&mut cubic, Time::from_millis(110));
    assert!((path.cwnd() - curve(100.0, 0.11)).abs() < 0.1, "{}", path.cwnd());
}

/// A loss leaves 0.7; one below the last maximum aims at 0.85 of the window.
#[test]
fn a_loss_leaves_beta_and_fast_convergence_aims_lower() {
    let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(100), 1000.0);
    assert!((path.cwnd() - 700.0).abs() < 1e-9 && (cubic.curve.w_max - 1000.0 * MSS).abs() < 1e-6);
    path.lose(&mut cubic);
    assert!((path.cwnd() - 490.0).abs() < 1e-3);
    assert!((cubic.curve.w_max - 700.0 * 0.85 * MSS).abs() < 1e-6);
    // Above it, no lower aim.
    path.set_cwnd(800.0);
    path.lose(&mut cubic);
    assert!((cubic.curve.w_max - 800.0 * MSS).abs() < 1e-6);
    let slow = with(CubicConfig { fast_convergence: false, ..CubicConfig::default() });
    let (mut path, mut cubic) = after_loss(&slow, Time::from_millis(100), 1000.0);
    path.lose(&mut cubic);
    assert!((cubic.curve.w_max - 700.0 * MSS).abs() < 1e-6);
}

#[test]
fn the_constants_are_configurable() {
    let gentle = CubicConfig { beta: Fraction::new(0.5).unwrap(), c: Factor::new(3.2).unwrap(), ..Default::default() };
    let (mut path, mut cubic) = after_loss(&with(gentle), Time::from_millis(100), 1000.0);
    assert!((path.cwnd() - 500.0).abs() < 1e-9);
    path.acknowledge(&mut cubic);
    assert!((cubic.curve.k / PS_PER_S - (500.0_f64 / 3.2).cbrt()).abs() < 1e-9);
}

/// No loss is smaller than what leaves two segments.
#[test]
fn the_window_never_falls_below_two_segments() {
    let (path, _) = after_loss(&config(), Time::from_millis(100), 2.0);
    assert!((path.cwnd() - 2.0).abs() < 1e-9);
}

/// After a timeout K = 0: convex from where slow start ends.
#[test]
fn after_a_timeout_the_curve_starts_flat() {
    let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(100), 1000.0);
    path.run(&mut cubic, Time::from_secs(3));
    let flight = path.window.cwnd as u64;
    let threshold = cubic.on_timeout(&path.window, flight);
    assert!((threshold - 0.7 * flight as f64).abs() < 1e-6);
    (path.window.ssthresh, path.window.cwnd) = (threshold, MSS);
    while path.window.cwnd < path.window.ssthresh {
        path.round(&mut cubic);
    }
    path.acknowledge(&mut cubic);
    assert!(cubic.curve.k == 0.0 && (cubic.curve.w_max - path.window.cwnd).abs() < MSS);
    let (began, from) = (path.window.now, path.cwnd());
    path.run(&mut cubic, Time::from_secs(5));
    let t = path.window.now.since(began).as_secs_f64();
    let expected = from + 0.4 * t.powi(3);
    assert!((path.cwnd() - expected).abs() < 4.0, "{} {expected}", path.cwnd());
}

/// The window grows by at most half in a round trip, whatever the curve gives.
#[test]
fn growth_is_bounded() {
    let fast = with(CubicConfig { c: Factor::new(1000.0).unwrap(), ..CubicConfig::default() });
    let (mut path, mut cubic) = after_loss(&fast, Time::from_millis(100), 10.0);
    path.run(&mut cubic, Time::from_secs(1));
    for _ in 0..20 {
        let before = path.cwnd();
        path.round(&mut cubic);
        assert!(path.cwnd() < before * (0.5_f64.exp() + 0.01), "{before} {}", path.cwnd());
        assert!(path.cwnd() >= before);
    }
}

/// Time in which the window was not used does not count, with or without acknowledgements.
#[test]
fn idle_time_does_not_count_towards_growth() {
    let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(100), 1000.0);
    let (mut twin, mut busy) = (Path { window: path.window.clone(), ..path }, cubic.clone());
    path.run(&mut cubic, Time::from_secs(2));
    twin.run(&mut busy, Time::from_secs(2));
    path.window.is_cwnd_limited = false;
    let before = path.cwnd();
    path.run(&mut cubic, Time::from_secs(100));
    assert!((path.cwnd() - before).abs() < 1e-9);
    path.window.now += Time::from_secs(3000);
    cubic.on_idle(path.window.now);
    path.window.is_cwnd_limited = true;
    path.run(&mut cubic, Time::from_secs(2));
    twin.run(&mut busy, Time::from_secs(2));
    assert!((path.cwnd() - twin.cwnd()).abs() < 1.0, "{} {}", path.cwnd(), twin.cwnd());
}

#[test]
fn a_spurious_loss_is_undone() {
    for is_timeout in [false, true] {
        let (mut path, mut cubic) = after_loss(&config(), Time::from_millis(100), 1000.0);
        path.run(&mut cubic, Time::from_secs(2));
        let (mut twin, mut calm) = (Path { window: path.window.clone(), ..path }, cubic.clone());
        let before = (path.window.cwnd, path.window.ssthresh);
        let flight = path.window.cwnd as u64;
        if is_timeout {
            cubic.on_timeout(&path.window, flight);
        } else {
            cubic.on_loss(&path.window, flight);
        }
        path.window.now += Time::from_secs(1);
        cubic.on_spurious_loss(&path.window);
        (path.window.cwnd, path.window.ssthresh) = before;
        path.run(&mut cubic, Time::from_secs(3));
        twin.run(&mut calm, Time::from_secs(3));
        assert!((path.cwnd() - twin.cwnd()).abs() < 1.0, "{} {}", path.cwnd(), twin.cwnd());
    }
}

/// The first slow start may end without a loss: K = 0, W_max the window (RFC 9438, section 4.10).
#[test]
fn without_a_loss_the_curve_begins_where_slow_start_ends() {
    let ssthresh = Some(Count::new(100.0).unwrap());
    let config = TcpConfig { initial_ssthresh_segments: ssthresh, ..TcpConfig::default() };
    let mut path = Path::new(&config, Time::from_millis(500));
    let mut cubic = Cubic::new(&config);
    assert!(!cubic.wants_samples());
    while path.cwnd() < 100.0 {
        path.acknowledge(&mut cubic);
    }
    path.acknowledge(&mut cubic);
    assert!(cubic.curve.k == 0.0 && (cubic.curve.w_max - 100.0 * MSS).abs() < MSS);
    assert!(cubic.curve.cwnd_prior == cubic.curve.w_max);
}
