use farlink_core::Rng;
use proptest::prelude::*;

use super::*;

fn run(point: &Point, rule: &Rule) -> Outcome {
    simulate(point, rule, Rng::for_component(1, 0, "test"), &|| false)
}

/// Goodput of all flows over the rate, and the half-width of its interval.
fn fraction(point: &Point) -> (f64, f64) {
    let outcome = run(point, &Rule::default());
    assert!(outcome.is_precise, "{point:?} {outcome:?}");
    (outcome.goodput.mean / point.rate, outcome.goodput.half_width / point.rate)
}

fn are_close(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() <= 1.5 * (one.1 + other.1) + 1e-9
}

/// The point with all options that bring it near the packet engine.
fn with_everything(point: Point) -> Point {
    let timeouts = Some(Timeouts { least_s: 1.0, round_trips: 1.5, most_s: 60.0 });
    Point { duplicate_acks: 3.0, multiple_losses: true, timeouts, ..point }
}

/// Lakshman and Madhow 1997, section III: from half of `pipe + buffer` on, a segment per round trip below the pipe, and at the
/// link's rate above it.
fn sawtooth(beta: f64) -> f64 {
    let (top, bottom) = (1.0 + beta, (1.0 + beta) / 2.0);
    if bottom >= 1.0 {
        return 1.0;
    }
    let below = (1.0 - bottom) * (1.0 + bottom) / 2.0;
    let above = (top * top - 1.0) / 2.0;
    (below + above) / (1.0 - bottom + above)
}

#[test]
fn a_single_flow_without_losses_follows_the_sawtooth() {
    for beta in [0.1, 0.2, 0.5, 0.8, 1.0, 1.5] {
        // The pipe is so long that the round trips of detection and repair are negligible.
        let (found, _) = fraction(&Point::new(10_000.0, 1.0, beta * 1e4, 0.0, 1));
        assert!((found - sawtooth(beta)).abs() < 1e-3, "beta {beta}: {found}, not {}", sawtooth(beta));
    }
}

#[test]
fn a_window_too_small_for_the_path_sets_the_rate() {
    let point = Point { max_window: 40.0, ..Point::new(1000.0, 0.5, 10.0, 0.0, 3) };
    let (found, half_width) = fraction(&point);
    assert!((found - 3.0 * 40.0 / 500.0).abs() < 1e-9 && half_width < 1e-9, "{found} {half_width}");
}

#[test]
fn a_run_that_is_too_short_says_so() {
    let rule = Rule { max_time_s: 100.0, ..Rule::default() };
    let outcome = run(&Point::new(1000.0, 0.5, 500.0, 1e-3, 1), &rule);
    assert!(!outcome.is_precise && (outcome.time_s - 100.0).abs() < 1e-6, "{outcome:?}");
}

#[test]
fn nearly_equal_round_trips_give_nearly_equal_goodput() {
    for (loss, buffer) in [(1e-4, 100.0), (1e-3, 400.0), (1e-2, 100.0)] {
        let even = with_everything(Point::new(1000.0, 0.5, buffer, loss, 3));
        let uneven = Point { round_trips_s: vec![0.5, 0.5 + 1e-9, 0.5 + 2e-9], ..even.clone() };
        assert!(are_close(fraction(&even), fraction(&uneven)), "{:?} {:?}", fraction(&even), fraction(&uneven));
    }
}

#[test]
fn a_longer_round_trip_gets_less() {
    let point = Point { round_trips_s: vec![0.1, 0.2], ..Point::new(1000.0, 0.1, 30.0, 1e-3, 2) };
    let outcome = run(&with_everything(point), &Rule::default());
    let shares: Vec<f64> = outcome.flows.iter().map(|flow| flow.goodput).collect();
    assert!(shares[0] > 1.5 * shares[1] && shares[0] + shares[1] <= 1000.0, "{shares:?}");
}

#[test]
fn equal_consecutive_spans_change_nothing() {
    let whole = with_everything(Point::new(500.0, 0.2, 50.0, 1e-3, 2));
    let spans = vec![Span { seconds: 7.0, rate: 500.0, loss: 1e-3 }, Span { seconds: 13.0, rate: 500.0, loss: 1e-3 }];
    let cut = Point { spans, ..whole.clone() };
    assert!(are_close(fraction(&whole), fraction(&cut)), "{:?} {:?}", fraction(&whole), fraction(&cut));
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let spans = vec![Span { seconds: 30.0, rate: 1000.0, loss: 0.0 }, Span { seconds: 10.0, rate: 0.0, loss: 0.0 }];
    let point = Point { spans, ..with_everything(Point::new(750.0, 0.1, 200.0, 0.0, 2)) };
    let (found, _) = fraction(&point);
    // Slow start after each timeout costs little of 30 s.
    assert!(found > 0.95 && found <= 1.0, "{found}");
}

/// Each of several long spans has the goodput of an endless one.
#[test]
fn slowly_changing_losses_give_the_mean_of_both() {
    let at = |loss: f64| with_everything(Point::new(500.0, 0.2, 50.0, loss, 2));
    let (clear, bad) = (fraction(&at(1e-4)).0, fraction(&at(1e-2)).0);
    let spans = [1e-4, 1e-2].map(|loss| Span { seconds: 2000.0, rate: 500.0, loss }).to_vec();
    let (both, _) = fraction(&Point { spans, ..at(5e-3) });
    assert!(clear > 1.5 * bad && (both / (0.5 * (clear + bad)) - 1.0).abs() < 0.02, "{clear} {bad} {both}");
}

#[test]
fn cubic_fills_a_long_path_better_than_reno() {
    let reno = with_everything(Point::new(10_000.0, 0.2, 500.0, 1e-5, 1));
    let cubic = Point { growth: Growth::Cubic(Constants::default()), ..reno.clone() };
    let (of_reno, of_cubic) = (fraction(&reno).0, fraction(&cubic).0);
    assert!(of_cubic > 1.5 * of_reno, "{of_cubic} {of_reno}");
}

#[test]
fn cubic_equals_reno_on_short_round_trips() {
    let reno = with_everything(Point::new(1000.0, 0.01, 5.0, 1e-3, 1));
    let cubic = Point { growth: Growth::Cubic(Constants::default()), ..reno.clone() };
    let (of_reno, of_cubic) = (fraction(&reno).0, fraction(&cubic).0);
    assert!((of_cubic / of_reno - 1.0).abs() < 0.05, "{of_cubic} {of_reno}");
}

#[test]
fn more_losses_mean_less_goodput() {
    let goodput = |loss| fraction(&with_everything(Point::new(1000.0, 0.3, 100.0, loss, 4)));
    let found: Vec<_> = [1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2].map(goodput).to_vec();
    assert!(found.windows(2).all(|two| two[1].0 < two[0].0 + two[0].1 + two[1].1), "{found:?}");
}

#[test]
fn the_interval_covers_the_long_run_goodput() {
    let point = with_everything(Point::new(1000.0, 0.3, 100.0, 3e-3, 2));
    let exact = run(&point, &Rule { bound: 0.002, ..Rule::default() }).goodput.mean;
    let misses = (0..200)
        .filter(|&run| {
            let rule = Rule { bound: 0.03, level: 0.95, ..Rule::default() };
            let outcome = simulate(&point, &rule, Rng::for_component(7, run, "test"), &|| false);
            (outcome.goodput.mean - exact).abs() > outcome.goodput.half_width
        })
        .count();
    // 10 of 200 are expected; 25 or more have a probability of 1e-5.
    assert!(misses < 25, "{misses} of 200 intervals at 95 % miss");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn goodput_is_a_fraction(
        rate in 50.0..5000.0, round_trip_s in 0.05..1.0, beta in 0.2..2.0, exponent in -5.0..-2.0, flows in 1_usize..20
    ) {
        let loss = 10_f64.powf(exponent);
        let point = with_everything(Point::new(rate, round_trip_s, beta * rate * round_trip_s, loss, flows));
        let rule = Rule { bound: 0.1, ..Rule::default() };
        let outcome = run(&point, &rule);
        let found = outcome.goodput.mean / rate;
        prop_assert!(found > 0.0 && found <= 1.0 - loss + 1e-9, "{found}");
        let sum: f64 = outcome.flows.iter().map(|flow| flow.goodput).sum();
        prop_assert!((sum / outcome.goodput.mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn scaling_rate_and_round_trip_leaves_the_result_unchanged(
        rate in 50.0..5000.0, round_trip_s in 0.05..1.0, beta in 0.2..2.0, exponent in -4.0..-2.0, flows in 1_usize..6
    ) {
        let at = |scale: f64| {
            let buffer = beta * rate * round_trip_s;
            let point = Point::new(rate * scale, round_trip_s / scale, buffer, 10_f64.powf(exponent), flows);
            let outcome = run(&point, &Rule { bound: 0.1, max_time_s: 1e9 / scale, ..Rule::default() });
            outcome.goodput.mean / point.rate
        };
        // By powers of two, so that every rounding is the same too.
        prop_assert_eq!(at(1.0), at(4.0));
    }
}
