//! The draft's example test cases (its appendix), in virtual time over a path of 100 segments per round trip.

use super::super::bench::{Bench, MSS};
use super::{HEADROOM, State};
use crate::protocol::tcp::congestion::CongestionControl;
use crate::protocol::tcp::flight::Sample;
use crate::time::Time;

const RATE: f64 = 1e6;
const RTT_MS: u64 = 100;
const SEGMENT: f64 = MSS as f64;

fn bench() -> Bench {
    let mut bench = Bench::new(CongestionControl::Bbr3, RATE, RTT_MS, None);
    bench.write(1 << 30);
    bench
}

fn reaches(bench: &mut Bench, state: State) {
    assert!(bench.until(20.0, |bench| bench.v3().state == state), "{state:?} {:?}", bench.v3().state);
}

/// An empty pipe goes from draining by way of down to cruise at one acknowledgement.
fn leaves_drain(bench: &mut Bench) {
    assert!(bench.until(20.0, |bench| bench.v3().state != State::Drain));
    assert!(matches!(bench.v3().state, State::Down | State::Cruise));
}

fn in_state(state: State) -> Bench {
    let mut bench = bench();
    reaches(&mut bench, State::Cruise);
    reaches(&mut bench, state);
    bench
}

#[test]
fn startup_ends_on_a_plateau_and_drain_with_the_queue() {
    let mut bench = bench();
    reaches(&mut bench, State::Drain);
    let bbr = bench.v3();
    assert!(bbr.is_pipe_full && bbr.is_full_now && bbr.full_rounds == 3);
    assert!((bbr.max_bw() / RATE - 1.0).abs() < 0.02, "{}", bbr.max_bw());
    assert_eq!(bbr.inflight_longterm, f64::INFINITY);
    assert!((bbr.model.pacing_rate - 0.99 * 0.5 * bbr.bw).abs() < 1.0);
    leaves_drain(&mut bench);
    let (bdp, in_flight) = (bench.bdp(), bench.window().records.in_flight() as f64);
    assert!(in_flight <= bdp + 6.0 * SEGMENT && in_flight > 0.9 * bdp, "{in_flight}");
}

#[test]
fn drain_ends_after_three_rounds_at_the_latest() {
    let mut bench = bench();
    reaches(&mut bench, State::Drain);
    let window = bench.window().clone();
    let mut bbr = bench.v3().clone();
    let sample = Sample { in_flight: 1 << 30, ..Sample::default() };
    for round in 0..=4 {
        assert_eq!(bbr.state, State::Drain, "{round}");
        bbr.rounds.count = bbr.drain_start_round + round;
        bbr.check_drain_done(&window, &sample);
    }
    assert_eq!(bbr.state, State::Down);
}

#[test]
fn more_than_two_percent_lost_ends_startup() {
    let mut bench = Bench::new(CongestionControl::Bbr3, 10.0 * RATE, RTT_MS, None);
    bench.write(1 << 30);
    bench.until(0.65, |_| false);
    bench.loss = 0.1;
    reaches(&mut bench, State::Drain);
    let bbr = bench.v3();
    assert!(bbr.is_pipe_full && bbr.is_full_now && bbr.full_rounds < 3, "{}", bbr.full_rounds);
    assert!(bbr.inflight_longterm < f64::INFINITY && bbr.inflight_longterm >= bbr.inflight_latest);
}

#[test]
fn little_loss_does_not_end_startup() {
    let mut bench = Bench::new(CongestionControl::Bbr3, 10.0 * RATE, RTT_MS, None);
    bench.write(1 << 30);
    bench.loss = 0.005;
    reaches(&mut bench, State::Drain);
    assert!(bench.v3().full_rounds == 3 && bench.v3().inflight_longterm == f64::INFINITY);
}

#[test]
fn the_cycle_drains_cruises_refills_and_probes() {
    let mut bench = in_state(State::Cruise);
    assert!((bench.v3().model.pacing_rate - 0.99 * bench.v3().bw).abs() < 1.0);
    let waits_until = bench.v3().cycle_at + bench.v3().bw_probe_wait;
    let wait = bench.v3().bw_probe_wait.as_secs_f64();
    assert!((2.0..3.0).contains(&wait));
    reaches(&mut bench, State::Refill);
    assert!(bench.now > waits_until && bench.now - waits_until < Time::from_millis(20));
    let refill = bench.now;
    reaches(&mut bench, State::Up);
    assert!(((bench.now - refill).as_secs_f64() - 0.1).abs() < 0.03, "one round");
    assert!((bench.v3().model.pacing_rate - 0.99 * 1.25 * bench.v3().bw).abs() < 1.0);
    let full_rounds = bench.v3().full_rounds;
    assert_eq!(full_rounds, 0);
    reaches(&mut bench, State::Down);
    assert!(bench.v3().is_full_now, "three rounds without growth end the probe");
    assert!((bench.v3().model.pacing_rate - 0.99 * 0.9 * bench.v3().bw).abs() < 1.0);
    reaches(&mut bench, State::Cruise);
    assert!(bench.window().records.in_flight() as f64 <= bench.bdp() + 6.0 * SEGMENT);
}

#[test]
fn too_much_loss_ends_the_probe_and_bounds_the_data_in_flight() {
    let mut bench = in_state(State::Up);
    bench.loss = 0.1;
    let before = bench.now;
    reaches(&mut bench, State::Down);
    assert!(bench.now - before < Time::from_millis(250), "at once");
    let (bbr, window) = (bench.v3(), bench.window());
    assert!(bbr.was_probe_too_high && !bbr.is_bw_probe_sample);
    assert!(bbr.inflight_longterm < f64::INFINITY);
    let least = super::BETA * bbr.target_inflight(window);
    assert!(bbr.inflight_longterm >= 0.99 * least && bbr.inflight_longterm <= 2.3 * bench.bdp());
    // Cruising leaves 15 percent of it to others.
    bench.loss = 0.0;
    reaches(&mut bench, State::Cruise);
    bench.run(0.01);
    let bound = (1.0 - HEADROOM) * bench.v3().inflight_longterm;
    assert!(bench.window().cwnd <= bound + 1.0, "{} {bound}", bench.window().cwnd);
    // The next probe is over as soon as the bound is reached, and the one after it follows at once.
    reaches(&mut bench, State::Up);
    reaches(&mut bench, State::Down);
    assert!(bench.v3().was_probe_precautionary && !bench.v3().was_probe_too_high);
    let down = bench.now;
    reaches(&mut bench, State::Refill);
    assert!(bench.now - down < Time::from_millis(3 * RTT_MS), "no cruise between");
}

#[test]
fn the_bound_is_the_loss_or_seven_tenths_of_the_target() {
    let mut bench = in_state(State::Up);
    let lost = |sent_in_flight, lost_since| crate::protocol::tcp::flight::Lost {
        start: 0,
        len: 1000,
        sent_in_flight,
        lost_since,
        is_app_limited: false,
        delivered: 0,
    };
    let target = bench.v3().target_inflight(bench.window());
    let window = bench.window().clone();
    let crate::protocol::tcp::congestion::Congestion::Bbr3(bbr) = &mut bench.ends[0].control else { panic!() };
    let fresh = bbr.clone();
    // Two percent of 100 segments are not too much, three are.
    bbr.handle_lost(&window, &lost(100_000, 2000));
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Up, f64::INFINITY));
    bbr.handle_lost(&window, &lost(100_000, 3000));
    assert_eq!(bbr.state, State::Down);
    assert!((bbr.inflight_longterm - 99_000.0).abs() < 100.0, "{}", bbr.inflight_longterm);
    // Much less in flight: the cut is to 0.7 of the target.
    *bbr = fresh;
    bbr.handle_lost(&window, &lost(10_000, 3000));
    assert!((bbr.inflight_longterm - 0.7 * target).abs() < 1.0, "{} {target}", bbr.inflight_longterm);
}

#[test]
fn losses_while_cruising_lower_the_short_term_bounds_to_the_delivered_rate() {
    let mut bench = in_state(State::Cruise);
    let bw = bench.v3().bw;
    bench.loss = 0.05;
    assert!(bench.until(2.0, |bench| bench.v3().bw_shortterm < f64::INFINITY));
    bench.run(0.5);
    let bbr = bench.v3();
    assert!(bbr.state == State::Cruise && bbr.bw < bw && bbr.bw >= 0.7 * 0.7 * bw, "{} {bw}", bbr.bw);
    reaches(&mut bench, State::Refill);
    assert_eq!(bench.v3().bw_shortterm, f64::INFINITY);
    assert_eq!(bench.v3().inflight_shortterm, f64::INFINITY);
}

#[test]
fn probe_rtt_halves_the_data_in_flight_by_the_previous_minimum_round_trip() {
    let mut bench = in_state(State::Cruise);
    bench.one_way = Time::from_millis(RTT_MS); // twice the round trip
    let (old, since) = (bench.v3().model.min_rtt.as_secs_f64(), bench.v3().model.min_rtt_at);
    reaches(&mut bench, State::ProbeRtt);
    let waited = (bench.now - since).as_secs_f64();
    assert!((10.0..10.3).contains(&waited), "{waited}");
    let cwnd = bench.v3().probe_rtt_cwnd;
    let expected = 0.5 * bench.v3().bw * old;
    assert!((cwnd / expected - 1.0).abs() < 0.05, "{cwnd} {expected}");
    assert!(bench.until(5.0, |bench| bench.v3().probe_rtt_until.is_some()));
    assert!(bench.window().records.in_flight() as f64 <= cwnd);
    let drained = bench.now;
    while bench.v3().state == State::ProbeRtt {
        assert!(bench.window().cwnd <= cwnd && bench.v3().probe_rtt_cwnd == cwnd);
        bench.step();
    }
    let lasted = (bench.now - drained).as_secs_f64();
    assert!((0.2..0.5).contains(&lasted), "{lasted}");
    assert_eq!(bench.v3().state, State::Cruise);
    assert!(bench.v3().model.min_rtt >= Time::from_millis(2 * RTT_MS));
}

#[test]
fn a_silence_of_more_than_ten_seconds_needs_no_probe_rtt() {
    let mut bench = Bench::new(CongestionControl::Bbr3, RATE, RTT_MS, None);
    bench.write(5_000_000);
    bench.run(60.0);
    assert_eq!(bench.received, 5_000_000);
    bench.now += Time::from_secs(300);
    let start = bench.now;
    bench.write(5_000_000);
    assert!(bench.v3().is_restarting);
    bench.run(0.3);
    assert!(bench.v3().state != State::ProbeRtt && !bench.v3().is_restarting);
    assert!(bench.until(60.0, |bench| bench.received == 10_000_000));
    let took = (bench.now - start).as_secs_f64();
    assert!((5.0..6.5).contains(&took), "{took}");
}

#[test]
fn an_application_that_sends_little_keeps_startup() {
    let mut bench = Bench::new(CongestionControl::Bbr3, RATE, RTT_MS, None);
    for _ in 0..200 {
        bench.write(2 * MSS);
        bench.run(0.05);
    }
    assert_eq!(bench.v3().state, State::Startup);
}

#[test]
fn the_window_has_four_segments_at_least() {
    let mut bench = Bench::new(CongestionControl::Bbr3, 1e4, 20, None);
    bench.write(1 << 30);
    assert!(bench.until(100.0, |bench| bench.v3().state == State::Cruise));
    let mut least = f64::INFINITY;
    bench.until(60.0, |bench| {
        least = least.min(bench.window().cwnd);
        false
    });
    assert!(least >= 4.0 * SEGMENT, "{least}");
    assert!(bench.goodput(60.0) > 0.93 * 1e4);
}

#[test]
fn it_follows_tenfold_changes_of_bandwidth() {
    let mut bench = in_state(State::Cruise);
    bench.rate *= 10.0;
    bench.run(20.0);
    let goodput = bench.goodput(10.0);
    assert!(goodput > 0.9 * bench.rate, "{goodput}");
    bench.rate /= 10.0;
    bench.queue_bytes = bench.bdp();
    bench.run(15.0);
    assert!(bench.v3().max_bw() < 1.1 * RATE, "{}", bench.v3().max_bw());
    let goodput = bench.goodput(10.0);
    assert!(goodput > 0.85 * RATE, "{goodput}");
}

#[test]
fn a_spurious_loss_restores_the_probe() {
    let mut bench = in_state(State::Up);
    bench.loss = 0.1;
    reaches(&mut bench, State::Down);
    let window = bench.window().clone();
    let crate::protocol::tcp::congestion::Congestion::Bbr3(bbr) = &mut bench.ends[0].control else { panic!() };
    bbr.undo_loss(&window);
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Refill, f64::INFINITY));
}

#[test]
fn it_recovers_from_an_outage_of_minutes() {
    let mut bench = in_state(State::Cruise);
    bench.loss = 1.0;
    bench.run(300.0);
    bench.loss = 0.0;
    bench.run(70.0);
    let goodput = bench.goodput(20.0);
    assert!(goodput > 0.85 * RATE, "{goodput}");
}

/// Version 1 ignores losses; version 3 yields when more than two percent are lost. Both wait for the timer when a
/// retransmission is lost.
#[test]
fn version_3_yields_to_losses_that_version_1_ignores() {
    let goodput = |control, loss| {
        let mut bench = Bench::new(control, RATE, RTT_MS, None);
        bench.write(1 << 30);
        bench.loss = loss;
        bench.run(10.0);
        bench.goodput(60.0) / RATE
    };
    let kept = |loss| (goodput(CongestionControl::Bbr, loss), goodput(CongestionControl::Bbr3, loss));
    let (v1, v3) = kept(0.01);
    assert!(v1 > 0.9 && v3 > 0.6, "{v1} {v3}");
    let (v1, v3) = kept(0.05);
    assert!(v3 < 0.4 * v1, "{v1} {v3}");
}
