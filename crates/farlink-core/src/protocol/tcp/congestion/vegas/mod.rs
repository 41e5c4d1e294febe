//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE Journal on
//! Selected Areas in Communications 13, 1995): keeps a few segments in the queue, measured by the delay they cause. Details are
//! Linux's (net/ipv4/tcp_vegas.c): growth every round trip in slow start, the least round trip of each round, losses as Reno.

mod config;

pub use config::VegasConfig;

use super::{Control, standard};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Phase, Window, least};
use crate::time::Time;
use crate::units::Count;

/// With fewer samples in a round, all may be of delayed acknowledgements.
const FEWEST_SAMPLES: u32 = 3;
/// Smallest round trip, because none is zero.
const CLOCK_TICK: Time = Time::from_ps(1_000_000);

/// Adds or removes one segment every round trip, depending on the number of segments in the queue.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Vegas {
    /// Numbers of segments in the queue, in bytes.
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Least round trip so far (BaseRTT), and in this round.
    base: Time,
    round_least: Time,
    samples: u32,
    /// The round ends when data after this offset is acknowledged.
    round_end: u64,
    /// Whether the round has had no losses.
    is_measuring: bool,
}

impl Vegas {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let VegasConfig { alpha_segments, beta_segments, gamma_segments } = config.vegas.unwrap_or_default();
        let bytes = |n: Count| n.get() * config.segment_bytes.get();
        Vegas {
            alpha: bytes(alpha_segments),
            beta: bytes(beta_segments),
            gamma: bytes(gamma_segments),
            base: Time::NEVER,
            round_least: Time::NEVER,
            samples: 0,
            round_end: 0,
            is_measuring: false,
        }
    }

    fn begin_round(&mut self, window: &Window) {
        self.round_end = window.nxt;
        self.round_least = Time::NEVER;
        self.samples = 0;
    }

    fn end_round(&mut self, window: &mut Window, acked: u64) {
        let mss = window.mss_f64();
        let is_slow_start = window.cwnd < window.ssthresh;
        if self.samples < FEWEST_SAMPLES {
            // As Reno; in slow start the window has already grown.
            if !is_slow_start && window.may_grow() {
                window.cwnd = least(window.cwnd + mss * acked as f64 / window.cwnd, window.cwnd_cap);
            }
            return;
        }
        let (round, base) = (self.round_least.as_secs_f64(), self.base.as_secs_f64());
        // Diff = (Expected - Actual) BaseRTT: the bytes in the queue.
        let queued = window.cwnd * (round - base) / base;
        if is_slow_start && queued > self.gamma {
            // Actual x BaseRTT: the bytes that are not in the queue. Linux adds a segment because it computes with integers.
            window.cwnd = least(window.cwnd, window.cwnd * base / round + mss);
            window.ssthresh = least(window.ssthresh, window.cwnd);
        } else if !is_slow_start && queued > self.beta {
            window.cwnd -= mss;
            window.ssthresh = least(window.ssthresh, window.cwnd);
        } else if !is_slow_start && queued < self.alpha && window.may_grow() {
            window.cwnd += mss;
        }
        window.cwnd = least(window.cwnd.max(2.0 * mss), window.cwnd_cap);
        window.ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    }
}

impl Control for Vegas {
    #[inline(never)]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        if window.cwnd < window.ssthresh || !self.is_measuring {
            standard::grow(window, acked);
        }
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        self.is_measuring = false;
        standard::half(window, flight)
    }

    fn on_idle(&mut self, _now: Time) {
        // The path may have changed when sending resumes.
        self.base = Time::NEVER;
        self.is_measuring = false;
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        if window.phase != Phase::Open {
            self.is_measuring = false;
        } else if !self.is_measuring {
            self.is_measuring = true;
            self.begin_round(window);
        }
        if let Some(rtt) = sample.rtt {
            let rtt = rtt + CLOCK_TICK;
            self.base = self.base.min(rtt);
            self.round_least = self.round_least.min(rtt);
            self.samples += 1;
        }
        if self.is_measuring && window.una > self.round_end {
            self.end_round(window, sample.newly_delivered);
            self.begin_round(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::*;

    /// A path of 100 ms with a bottleneck of 50 segments per round trip; further segments are queued.
    fn settle(config: &TcpConfig, from: f64, rounds: usize) -> f64 {
        let mut path = Path::new(config, Time::from_millis(100));
        let mut vegas = Vegas::new(config);
        path.window.ssthresh = f64::INFINITY;
        path.round(&mut vegas); // measures the path without a queue
        path.set_cwnd(from);
        for _ in 0..rounds {
            let round_trip_s = 0.1 * (path.cwnd() / 50.0).max(1.0);
            path.round_trip = Time::from_secs_f64(round_trip_s);
            path.round(&mut vegas);
        }
        path.cwnd()
    }

    /// The queue holds between 2 and 4 segments, from below and from above: cwnd (cwnd / 50 - 1) of them. The result of a round
    /// is known during the next one, so the window may go one segment too far.
    #[test]
    fn the_queue_holds_alpha_to_beta_segments() {
        let config = TcpConfig::default();
        let (below, above) = (settle(&config, 30.0, 60), settle(&config, 80.0, 60));
        assert!((51.93..=53.0).contains(&below), "{below}");
        assert!((52.71..=53.71).contains(&above), "{above}");
        let count = |n| Count::new(n).unwrap();
        let vegas = Some(VegasConfig { alpha_segments: count(10.0), beta_segments: count(12.0), ..Default::default() });
        let below = settle(&TcpConfig { vegas, ..config }, 30.0, 60);
        assert!((58.54..=60.0).contains(&below), "{below}");
    }

    /// The window changes by at most one segment per round trip.
    #[test]
    fn the_window_moves_by_a_segment_a_round_trip() {
        let config = TcpConfig::default();
        assert!((settle(&config, 30.0, 11) - settle(&config, 30.0, 10) - 1.0).abs() < 1e-9);
        assert!((settle(&config, 80.0, 10) - settle(&config, 80.0, 11) - 1.0).abs() < 1e-9);
    }

    /// Slow start ends at the measured rate once more than gamma = 1 segment is in the queue.
    #[test]
    fn slow_start_ends_by_delay() {
        let config = TcpConfig::default();
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut vegas = Vegas::new(&config);
        for _ in 0..3 {
            path.round(&mut vegas);
        }
        assert!(path.window.ssthresh == f64::INFINITY && path.cwnd() > 75.0, "{}", path.cwnd());
        // The next 80 take 160 ms; when they are acknowledged, 160 are in flight, of which 160 x 100 / 160 are not queued.
        path.round_trip = Time::from_millis(160);
        path.round(&mut vegas);
        path.acknowledge(&mut vegas);
        assert!(path.window.ssthresh < f64::INFINITY);
        assert!((path.cwnd() - 101.0).abs() < 2.0, "{}", path.cwnd());
    }

    #[test]
    fn a_loss_halves_the_window_and_suspends_measurement_until_recovery() {
        let config = TcpConfig::default();
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut vegas = Vegas::new(&config);
        path.set_cwnd(40.0);
        path.round(&mut vegas);
        assert!((vegas.on_loss(&path.window, 40 * 1460) - 20.0 * 1460.0).abs() < 1e-6);
        path.window.phase = Phase::Recovery;
        let before = path.cwnd();
        for _ in 0..20 {
            let sample = Sample { rtt: Some(Time::from_millis(50)), ..Sample::default() };
            vegas.on_sample(&mut path.window, &sample);
        }
        assert!((path.cwnd() - before).abs() < 1e-9);
    }
}
