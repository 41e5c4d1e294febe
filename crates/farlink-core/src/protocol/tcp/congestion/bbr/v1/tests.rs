//! The sequence of states in virtual time, over a path of 100 segments per round trip.

use super::super::bench::{Bench, MSS, min_rtt_window};
use super::{Aggregation, Bbr, CYCLE, Mode};
use crate::protocol::tcp::congestion::CongestionControl;
use crate::protocol::tcp::flight::Sample;
use crate::time::Time;

/// 1 MB/s and 100 ms: 100 segments fill the pipe.
const RATE: f64 = 1e6;
const RTT_MS: u64 = 100;
const SEGMENT: f64 = MSS as f64;

fn bench() -> Bench {
    let mut bench = Bench::new(CongestionControl::Bbr, RATE, RTT_MS, None);
    bench.write(1 << 30);
    bench
}

fn in_probe_bw() -> Bench {
    let mut bench = bench();
    assert!(bench.until(5.0, |bench| bench.v1().mode == Mode::ProbeBw));
    bench
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_when_the_queue_is_gone() {
    let mut bench = bench();
    let mut full_rounds = Vec::new();
    assert!(bench.until(5.0, |bench| {
        let bbr = bench.v1();
        full_rounds.push(bbr.full_rounds);
        bbr.mode == Mode::Drain
    }));
    full_rounds.dedup();
    assert!(full_rounds.ends_with(&[0, 1, 2, 3]), "{full_rounds:?}");
    let bandwidth = bench.v1().bandwidth.get();
    assert!((bandwidth / RATE - 1.0).abs() < 0.02, "{bandwidth}");
    assert!((bench.v1().pacing_gain - 1.0 / 2.885).abs() < 1e-12);

    let drained = bench.now;
    let bdp = bench.bdp();
    assert!(bench.window().records.in_flight() as f64 > 1.5 * bdp, "startup leaves a queue");
    assert!(bench.until(5.0, |bench| bench.v1().mode == Mode::ProbeBw));
    let in_flight = bench.window().records.in_flight() as f64;
    assert!(in_flight <= bdp + 10.0 * SEGMENT && in_flight >= 0.8 * bdp, "{in_flight}");
    assert!(bench.now - drained < Time::from_millis(3 * RTT_MS));
}

#[test]
fn the_gain_cycle_probes_drains_and_cruises_and_never_starts_draining() {
    let mut bench = in_probe_bw();
    assert!(bench.v1().pacing_gain >= 1.0);
    let mut phases: Vec<(f64, Time)> = Vec::new();
    let end = bench.now + Time::from_secs(5);
    while bench.now < end {
        bench.step();
        let (index, gain) = (bench.v1().cycle_index, bench.v1().pacing_gain);
        if bench.v1().mode == Mode::ProbeBw && phases.last().is_none_or(|last| last.0 != index as f64) {
            assert_eq!(gain, CYCLE[index]);
            phases.push((index as f64, bench.now));
        }
    }
    assert!(phases.len() > 30, "{phases:?}");
    for pair in phases.windows(2).skip(1) {
        assert_eq!(pair[1].0, (pair[0].0 + 1.0) % 8.0);
        let length = (pair[1].1 - pair[0].1).as_secs_f64();
        // Down ends early once the queue is gone; the others last a round trip.
        assert!((if pair[0].0 == 1.0 { 0.01..0.13 } else { 0.09..0.16 }).contains(&length), "{length} {pair:?}");
    }
    let goodput = bench.goodput(3.0);
    assert!(goodput > 0.97 * RATE, "{goodput}");
}

#[test]
fn the_first_phase_is_drawn_from_the_seed() {
    let first = |seed| {
        let mut bbr = Bbr::new(&crate::protocol::tcp::TcpConfig::default());
        bbr.random = crate::rng::Rng::for_component(seed, 0, "test");
        bbr.begin_probe_bw(Time::ZERO);
        bbr.cycle_index
    };
    let drawn: std::collections::BTreeSet<_> = (0..200).map(first).collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 7]);
    assert_eq!(first(3), first(3));
}

#[test]
fn probe_rtt_comes_after_ten_seconds_and_lasts_a_round_trip_at_four_segments() {
    let mut bench = in_probe_bw();
    // A standing queue: no round trip is as short as the first.
    bench.one_way = Time::from_millis(RTT_MS / 2 + 10);
    let since = bench.v1().model.min_rtt_at;
    assert!(bench.until(15.0, |bench| bench.v1().mode == Mode::ProbeRtt));
    let waited = (bench.now - since).as_secs_f64();
    assert!((10.0..10.2).contains(&waited), "{waited}");
    let prior = bench.v1().prior_cwnd;
    assert!(bench.until(5.0, |bench| bench.v1().probe_rtt_until.is_some()));
    assert!(bench.window().records.in_flight() <= 4 * u64::from(MSS));
    let drained = bench.now;
    while bench.v1().mode == Mode::ProbeRtt {
        assert_eq!(bench.window().cwnd, 4.0 * SEGMENT);
        bench.step();
    }
    let lasted = (bench.now - drained).as_secs_f64();
    assert!((0.2..0.35).contains(&lasted), "{lasted}");
    assert!(bench.v1().mode == Mode::ProbeBw && bench.window().cwnd >= 0.9 * prior, "the window is put back");
    let min_rtt = bench.v1().model.min_rtt.as_secs_f64();
    assert!((0.12..0.123).contains(&min_rtt), "{min_rtt}: the longer path is known");
    // The path grows shorter again: that is seen at once, and nothing is measured for its sake.
    bench.one_way = Time::from_millis(RTT_MS / 2);
    assert!(bench.until(1.0, |bench| bench.v1().model.min_rtt < Time::from_millis(105)));
}

#[test]
fn the_window_has_four_segments_at_least() {
    let mut bench = Bench::new(CongestionControl::Bbr, 1e4, 20, None);
    bench.write(1 << 30);
    assert!(bench.until(100.0, |bench| bench.v1().mode == Mode::ProbeBw));
    let mut least = f64::INFINITY;
    bench.until(100.0, |bench| {
        least = least.min(bench.window().cwnd);
        false
    });
    assert!(least >= 4.0 * SEGMENT, "{least}");
    assert!(bench.goodput(60.0) > 0.95 * 1e4);
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_then_restores_the_window() {
    let mut bench = in_probe_bw();
    bench.run(1.0);
    let before = bench.window().cwnd;
    bench.loss = 0.2;
    bench.run(0.02);
    bench.loss = 0.0;
    assert!(bench.until(1.0, |bench| bench.v1().conserves_packets));
    assert!(bench.window().cwnd < before);
    assert!(bench.until(2.0, |bench| bench.window().phase == crate::protocol::tcp::window::Phase::Open));
    bench.run(0.5);
    assert!(bench.window().cwnd >= 0.95 * before, "{} {before}", bench.window().cwnd);
    assert!(
        (bench.v1().bandwidth.get() / RATE - 1.0).abs() < 0.02,
        "a loss does not change the estimate of the bandwidth"
    );
}

#[test]
fn an_application_that_sends_little_keeps_startup_and_the_estimate() {
    let mut bench = Bench::new(CongestionControl::Bbr, RATE, RTT_MS, None);
    for _ in 0..200 {
        bench.write(2 * MSS);
        bench.run(0.05);
    }
    assert_eq!(bench.v1().mode, Mode::Startup, "rates that the application set do not fill the pipe");
    let mut bench = in_probe_bw();
    bench.run(1.0);
    assert!((bench.v1().bandwidth.get() / RATE - 1.0).abs() < 0.02);
}

/// All data is delivered, the connection is idle for minutes, and the next data is sent at the known rate.
#[test]
fn after_an_idle_period_it_sends_at_the_known_rate() {
    let mut bench = Bench::new(CongestionControl::Bbr, RATE, RTT_MS, None);
    bench.write(5_000_000);
    bench.run(60.0);
    assert_eq!(bench.received, 5_000_000);
    bench.now += Time::from_secs(300);
    bench.write(5_000_000);
    let start = bench.now;
    assert_ne!(bench.v1().mode, Mode::ProbeRtt, "a silence is as good as a drained pipe");
    assert!(bench.until(60.0, |bench| bench.received == 10_000_000));
    let took = (bench.now - start).as_secs_f64();
    assert!((5.0..6.0).contains(&took), "{took}");
}

/// Nothing arrives for five minutes; then the path is as it was.
#[test]
fn it_recovers_from_an_outage_of_minutes() {
    let mut bench = in_probe_bw();
    bench.loss = 1.0;
    bench.run(300.0);
    bench.loss = 0.0;
    bench.run(70.0); // the timer has backed off to a minute
    let goodput = bench.goodput(20.0);
    assert!(goodput > 0.9 * RATE, "{goodput}");
}

/// A geostationary link, and one to a planet: with a window of the round trip to match.
#[test]
fn long_paths_are_filled() {
    let mut bench = Bench::new(CongestionControl::Bbr, RATE, 500, None);
    bench.write(1 << 30);
    bench.run(20.0);
    let goodput = bench.goodput(100.0);
    assert!(goodput > 0.85 * RATE, "{goodput}: ProbeRTT costs a tenth at this round trip");

    let mut bench = Bench::new(CongestionControl::Bbr, 1e4, 600_000, min_rtt_window(1e5));
    bench.ends[0].timer = long_timer();
    bench.ends[1].timer = long_timer();
    bench.write(1 << 30);
    bench.run(20.0 * 600.0);
    let goodput = bench.goodput(20.0 * 600.0);
    assert!(goodput > 0.9 * 1e4, "{goodput}");
}

fn long_timer() -> crate::protocol::parts::rto::RetransmissionTimer {
    use crate::protocol::parts::rto::{RetransmissionTimer, RtoConfig};
    use crate::units::PositiveSeconds;
    let initial_s = PositiveSeconds::new(2000.0).unwrap();
    RetransmissionTimer::new(&RtoConfig {
        initial_s,
        maximum_s: Some(PositiveSeconds::new(1e5).unwrap()),
        ..RtoConfig::default()
    })
}

/// A receiver may delay the acknowledgement of a lone segment; that delay is not part of the path's round trip.
#[test]
fn an_expired_minimum_is_not_replaced_by_the_round_trip_of_a_lone_segment() {
    let mut bench = in_probe_bw();
    let known = bench.v1().model.min_rtt;
    let late = bench.v1().model.min_rtt_at + Time::from_secs(11);
    let learns = |bench: &mut Bench, segments: u64| {
        let mut bbr = bench.v1().clone();
        let sent_in_flight = segments * u64::from(MSS);
        let sample =
            Sample { now: late, rtt: Some(known + Time::from_millis(40)), sent_in_flight, ..Sample::default() };
        bbr.update_min_rtt(bench.window_mut(), &sample);
        bbr.model.min_rtt
    };
    assert_eq!(learns(&mut bench, 1), known);
    assert_eq!(learns(&mut bench, 2), known + Time::from_millis(40));
}

/// However much was acknowledged at once, the window makes up for a tenth of a second of it.
#[test]
fn the_window_makes_up_for_a_tenth_of_a_second_of_acknowledgements() {
    let mut bench = in_probe_bw();
    let grown_to = |bench: &mut Bench, extra: f64| {
        let mut bbr = bench.v1().clone();
        bbr.extra = Aggregation::of(extra);
        let window = bench.window_mut();
        window.cwnd = 1e9;
        let sample = Sample { newly_delivered: 1, delivered: 1 << 30, ..Sample::default() };
        bbr.set_cwnd(window, &sample);
        window.cwnd
    };
    let plain = grown_to(&mut bench, 0.0);
    let tenth = 0.1 * bench.v1().rate();
    assert!((grown_to(&mut bench, 0.5 * tenth) - plain - 0.5 * tenth).abs() <= 2.0 * SEGMENT);
    assert!((grown_to(&mut bench, tenth) - plain - tenth).abs() <= 2.0 * SEGMENT);
    assert_eq!(grown_to(&mut bench, 10.0 * tenth), grown_to(&mut bench, tenth));
}
