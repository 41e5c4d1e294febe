//! TCP Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of
//! Satellite Communications and Networking 22, 2004): grows over a long path as fast as Reno over a short one.

mod config;

pub use config::HyblaConfig;

use super::{Control, standard};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::window::{Phase, Window, least};
use crate::time::Time;

/// Largest rho in slow start, as in Linux (net/ipv4/tcp_hybla.c).
const LARGEST_RHO: f64 = 16.0;

/// Reno's growth per unit of time instead of per round trip.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Hybla {
    rtt0: Time,
    /// The least round trip so far, from which the two increments below are computed.
    least: Time,
    /// Segments that an acknowledgement adds in slow start, 2^rho - 1.
    in_slow_start: f64,
    /// Segments that a round trip adds in congestion avoidance, rho^2.
    in_avoidance: f64,
}

impl Hybla {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let rtt0 = config.hybla.unwrap_or_default().rtt0_s.time();
        // rho = 1, as Reno.
        Hybla { rtt0, least: Time::NEVER, in_slow_start: 1.0, in_avoidance: 1.0 }
    }

    /// Takes a shorter round trip: rho = RTT / RTT0, at least 1. Linux uses the least one too, so that a queue does not speed up
    /// the growth.
    #[cold]
    fn measure(&mut self, least_round_trip: Time) {
        self.least = least_round_trip;
        let rho = (least_round_trip.as_secs_f64() / self.rtt0.as_secs_f64()).max(1.0);
        self.in_slow_start = libm::exp2(rho.min(LARGEST_RHO)) - 1.0;
        self.in_avoidance = rho * rho;
    }
}

impl Control for Hybla {
    #[inline(never)]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        if window.rtt.least != self.least {
            self.measure(window.rtt.least);
        }
        if window.phase != Phase::Open {
            // As in Linux: after a timeout there are no bursts of 2^rho segments until its losses are repaired.
            standard::grow(window, acked);
        } else if window.may_grow() {
            let mss = window.mss_f64();
            let increase = if window.cwnd < window.ssthresh {
                let grown = self.in_slow_start * least(mss, acked as f64);
                least(grown, window.ssthresh - window.cwnd)
            } else {
                self.in_avoidance * mss * mss / window.cwnd
            };
            window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
        }
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        standard::half(window, flight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::*;
    use crate::units::PositiveSeconds;

    fn hybla(rtt0_s: f64) -> TcpConfig {
        let rtt0_s = PositiveSeconds::new(rtt0_s).unwrap();
        TcpConfig { hybla: Some(HyblaConfig { rtt0_s }), ..TcpConfig::default() }
    }

    /// rho = 0.1 / 0.025 = 4: 2^4 - 1 = 15 segments per acknowledgement, up to the threshold.
    #[test]
    fn slow_start_adds_two_to_the_rho_minus_one() {
        let config = hybla(0.025);
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut hybla = Hybla::new(&config);
        path.window.ssthresh = 50.0 * 1460.0;
        path.acknowledge(&mut hybla);
        assert!((path.cwnd() - 25.0).abs() < 1e-9, "{}", path.cwnd());
        path.acknowledge(&mut hybla);
        path.acknowledge(&mut hybla);
        assert!((path.cwnd() - 50.0).abs() < 0.5, "{}", path.cwnd());
    }

    /// At rho = 20, an acknowledgement adds 2^16 - 1 segments, not 2^20 - 1.
    #[test]
    fn slow_start_is_bounded_as_in_linux() {
        let config = hybla(0.025);
        let mut path = Path::new(&config, Time::from_millis(500));
        path.window.ssthresh = 1e12;
        path.acknowledge(&mut Hybla::new(&config));
        assert!((path.cwnd() - 10.0 - 65_535.0).abs() < 1e-6, "{}", path.cwnd());
    }

    /// rho^2 = 16 segments per round trip: as many per second as Reno gets over 25 ms.
    #[test]
    fn avoidance_adds_rho_squared_a_round_trip() {
        let config = hybla(0.025);
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut hybla = Hybla::new(&config);
        path.set_cwnd(400.0);
        path.round(&mut hybla);
        // The sum of 16 / w over a round of 400 acknowledgements while w grows.
        assert!((path.cwnd() - 416.0).abs() < 0.5, "{}", path.cwnd());
        // A path shorter than RTT0 has Reno's growth: one segment.
        let mut path = Path::new(&config, Time::from_millis(10));
        let mut hybla = Hybla::new(&config);
        path.set_cwnd(400.0);
        path.round(&mut hybla);
        assert!((path.cwnd() - 401.0).abs() < 0.01, "{}", path.cwnd());
    }

    #[test]
    fn a_loss_halves_the_window_and_after_a_timeout_it_grows_like_reno() {
        let config = hybla(0.025);
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut hybla = Hybla::new(&config);
        path.set_cwnd(400.0);
        assert!((hybla.on_loss(&path.window, 400 * 1460) - 200.0 * 1460.0).abs() < 1e-6);
        path.acknowledge(&mut hybla);
        path.window.phase = Phase::Loss;
        path.window.cwnd = 1460.0;
        path.acknowledge(&mut hybla);
        assert!((path.cwnd() - 2.0).abs() < 1e-9, "{}", path.cwnd());
    }
}
