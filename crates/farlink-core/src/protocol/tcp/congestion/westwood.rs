//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi and Wang 2001; Grieco and Mascolo, "Performance evaluation and comparison
//! of Westwood+, New Reno, and Vegas TCP congestion control", Computer Communication Review 34, 2004): after a loss the window is
//! the measured bandwidth-delay product. The filter is Linux's (net/ipv4/tcp_westwood.c).

use super::{Control, standard};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Window, least};
use crate::time::Time;

/// Shortest interval over which a bandwidth is measured.
const SHORTEST_INTERVAL: Time = Time::from_millis(50);

/// Reno's growth; after a loss, the bandwidth estimate times the least round trip.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Westwood {
    /// When the present measurement began; `None` before the first acknowledgement.
    began: Option<Time>,
    /// Bytes delivered since.
    delivered: u64,
    /// The estimate after one and after two filters, bytes per second; `None` before the first measurement.
    estimates: Option<(f64, f64)>,
    /// Least round trip since the start or the latest timeout.
    least_round_trip: Time,
    cwnd_before_loss: f64,
}

impl Westwood {
    pub(super) fn new(_config: &TcpConfig) -> Self {
        Westwood {
            began: None,
            delivered: 0,
            estimates: None,
            least_round_trip: Time::NEVER,
            cwnd_before_loss: f64::INFINITY,
        }
    }

    /// Ends a measurement: two low-pass filters in a row, each of which keeps 7/8.
    fn measure(&mut self, interval: Time) {
        let rate = self.delivered as f64 / interval.as_secs_f64();
        let keep = |old: f64, new: f64| (7.0 * old + new) / 8.0;
        self.estimates = Some(match self.estimates {
            None => (rate, rate),
            Some((once, twice)) => {
                let once = keep(once, rate);
                (once, keep(twice, once))
            }
        });
    }

    /// The bandwidth-delay product in bytes; Reno's threshold while it is not known.
    fn threshold(&self, window: &Window, flight: u64) -> f64 {
        match self.estimates {
            Some((_, bandwidth)) if self.least_round_trip != Time::NEVER => {
                (bandwidth * self.least_round_trip.as_secs_f64()).max(2.0 * window.mss_f64())
            }
            _ => standard::half(window, flight),
        }
    }
}

impl Control for Westwood {
    #[inline(never)]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        standard::grow(window, acked);
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        self.cwnd_before_loss = window.cwnd;
        self.threshold(window, flight)
    }

    fn on_timeout(&mut self, window: &Window, flight: u64) -> f64 {
        let threshold = self.on_loss(window, flight);
        // As in Linux: the path may have changed.
        self.least_round_trip = Time::NEVER;
        threshold
    }

    fn begin_recovery(&mut self, window: &mut Window) {
        // "if (cwin > ssthresh) cwin = ssthresh": a loss never enlarges the window.
        window.cwnd = least(window.cwnd, window.ssthresh);
    }

    fn end_recovery(&mut self, window: &mut Window) {
        // If proportional rate reduction was limiting the window when the loss was found, the window may have been below one
        // segment. With such a window nothing would ever be sent.
        let before = self.cwnd_before_loss.max(window.mss_f64());
        window.cwnd = least(least(window.ssthresh, before), window.cwnd_cap);
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        let began = *self.began.get_or_insert(sample.now);
        let interval = sample.now.since(began);
        if window.rtt.latest.is_some_and(|rtt| interval > rtt.max(SHORTEST_INTERVAL)) {
            self.measure(interval);
            self.delivered = 0;
            self.began = Some(sample.now);
        }
        self.delivered += sample.newly_delivered;
        if let Some(rtt) = sample.rtt {
            self.least_round_trip = self.least_round_trip.min(rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Path;
    use super::*;

    const MSS: f64 = 1460.0;

    /// 100 segments per round trip of 100 ms, regardless of the window: a loss leaves 100 segments.
    #[test]
    fn a_loss_leaves_bandwidth_times_least_round_trip() {
        let config = TcpConfig::default();
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut westwood = Westwood::new(&config);
        path.set_cwnd(100.0);
        for _ in 0..50 {
            path.round(&mut westwood);
            path.set_cwnd(100.0);
        }
        // A queue doubles the round trip; the rate stays.
        path.round_trip = Time::from_millis(200);
        path.set_cwnd(200.0);
        for _ in 0..50 {
            path.round(&mut westwood);
            path.set_cwnd(200.0);
        }
        let threshold = westwood.on_loss(&path.window, 200 * 1460) / MSS;
        assert!((threshold - 100.0).abs() < 1.5, "{threshold}");
    }

    /// The rate is halved at one moment: after n measurements, the filter of two stages has the fraction
    /// 1/2 + (7/8)^n (1 + n/8) / 2 of the old rate.
    #[test]
    fn the_filter_has_two_stages() {
        let mut westwood = Westwood::new(&TcpConfig::default());
        let interval = Time::from_millis(100);
        let mut measure = |bytes| {
            westwood.delivered = bytes;
            westwood.measure(interval);
            westwood.estimates.unwrap().1
        };
        assert!((measure(100_000) - 1e6).abs() < 1e-6);
        for n in 1..30 {
            let expected = 1e6 * (0.5 + 0.5 * 0.875_f64.powi(n) * (1.0 + f64::from(n) / 8.0));
            let estimate = measure(50_000);
            assert!((estimate - expected).abs() < 1e-3, "{n}: {estimate} {expected}");
        }
    }

    #[test]
    fn a_loss_never_enlarges_the_window_and_a_timeout_discards_the_minimum_round_trip() {
        let config = TcpConfig::default();
        let mut path = Path::new(&config, Time::from_millis(100));
        let mut westwood = Westwood::new(&config);
        path.set_cwnd(100.0);
        for _ in 0..20 {
            path.round(&mut westwood);
            path.set_cwnd(100.0);
        }
        path.set_cwnd(10.0);
        path.window.ssthresh = westwood.on_loss(&path.window, 10 * 1460);
        assert!(path.window.ssthresh > 90.0 * MSS);
        westwood.begin_recovery(&mut path.window);
        assert!((path.cwnd() - 10.0).abs() < 1e-9);
        path.window.cwnd += 30.0 * MSS; // duplicate acknowledgements inflate it
        westwood.end_recovery(&mut path.window);
        assert!((path.cwnd() - 10.0).abs() < 1e-9);
        westwood.on_timeout(&path.window, 10 * 1460);
        assert!((westwood.on_loss(&path.window, 10 * 1460) - 5.0 * MSS).abs() < 1e-6);
    }
}
