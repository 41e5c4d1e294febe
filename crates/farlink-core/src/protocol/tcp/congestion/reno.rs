//! Slow start and congestion avoidance (RFC 5681).

use super::Control;
use super::hystart::HyStart;
use super::standard::{avoidance, half, slow_start};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Window, least};

/// Doubles the window every round trip up to the threshold, then adds a segment per round trip; halves the window on a loss.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Reno {
    hystart: HyStart,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Reno { hystart: HyStart::new(config, false) }
    }

    /// Growth in slow start, apart from the usual growth because it is rare.
    #[inline(never)]
    fn grow_below_threshold(&mut self, window: &mut Window, acked: u64) {
        let increase =
            if self.hystart.is_running() { self.hystart.increase(window, acked) } else { slow_start(window, acked) };
        window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
    }
}

impl Control for Reno {
    #[inline(always)]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        if !window.may_grow() {
            return;
        }
        if window.cwnd >= window.ssthresh {
            window.cwnd = least(window.cwnd + avoidance(window, acked), window.cwnd_cap);
        } else {
            self.grow_below_threshold(window, acked);
        }
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        self.hystart.stop();
        half(window, flight)
    }

    fn wants_samples(&self) -> bool {
        self.hystart.is_running()
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.hystart.on_sample(window, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::super::standard::grow;
    use super::*;
    use crate::protocol::tcp::Variant;
    use crate::protocol::tcp::window::Phase;
    use crate::units::Count;

    /// The window after a round of acknowledgements of `bytes_per_ack` bytes each; it starts with ten segments of 100 bytes.
    fn after_a_round(changes: &TcpConfig, ssthresh: f64, bytes_per_ack: u64, phase: Phase) -> f64 {
        let config = TcpConfig { segment_bytes: Count::new(100.0).unwrap(), ..changes.clone() };
        let mut window = Window::new(&config, 1, 1 << 20, false);
        (window.phase, window.ssthresh, window.is_cwnd_limited) = (phase, ssthresh, true);
        let mut reno = Reno::new(&config);
        for _ in 0..1000 / bytes_per_ack {
            reno.on_acknowledged(&mut window, bytes_per_ack);
        }
        window.cwnd
    }

    #[test]
    fn with_byte_counting_delayed_acknowledgements_do_not_slow_growth() {
        let acks = TcpConfig::default();
        let bytes = TcpConfig { variant: Variant::Rack, ..TcpConfig::default() };
        assert!(!acks.counts_bytes() && bytes.counts_bytes());
        // Congestion avoidance: one segment per round trip, or half a segment.
        let grown = |config: &TcpConfig, per_ack| after_a_round(config, 500.0, per_ack, Phase::Open);
        assert!((grown(&acks, 100) - 1096.0).abs() < 1.0 && (grown(&acks, 200) - 1049.0).abs() < 1.0);
        assert!((grown(&bytes, 100) - 1096.0).abs() < 1.0 && (grown(&bytes, 200) - 1096.0).abs() < 1.0);
        // Slow start: factor 2 or 1.5; of an acknowledgement of more data, two segments count.
        let doubled = |config: &TcpConfig, per_ack| after_a_round(config, 1e6, per_ack, Phase::Open);
        assert_eq!((doubled(&acks, 100), doubled(&acks, 200)), (2000.0, 1500.0));
        assert_eq!((doubled(&bytes, 100), doubled(&bytes, 200), doubled(&bytes, 500)), (2000.0, 2000.0, 1400.0));
        assert_eq!(
            after_a_round(&bytes, 1e6, 200, Phase::Loss),
            1500.0,
            "after a timeout, one segment per acknowledgement"
        );
    }

    #[test]
    fn an_acknowledgement_counts_for_at_most_the_window() {
        let bytes = TcpConfig { variant: Variant::Rack, ..TcpConfig::default() };
        assert_eq!(after_a_round(&bytes, 500.0, 1000, Phase::Open), 1100.0);
        let mut window =
            Window::new(&TcpConfig { segment_bytes: Count::new(100.0).unwrap(), ..bytes }, 1, 1 << 20, false);
        (window.ssthresh, window.is_cwnd_limited) = (500.0, true);
        grow(&mut window, 50_000);
        assert_eq!(window.cwnd, 1100.0);
    }
}
