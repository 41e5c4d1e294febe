//! Slow start and congestion avoidance (RFC 5681).

use super::Control;
use super::hystart::HyStart;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Window, least};

/// Doubles the window every round trip up to the threshold, then adds a segment; halves it on a loss.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Reno {
    hystart: HyStart,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Reno { hystart: HyStart::new(config, false) }
    }
}

impl Control for Reno {
    #[inline(always)]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        if !window.may_grow() {
            return;
        }
        let increase = if window.cwnd >= window.ssthresh {
            avoidance(window)
        } else if self.hystart.is_running() {
            self.hystart.increase(window, acked)
        } else {
            slow_start(window, acked)
        };
        window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
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

/// Slow start below the threshold, congestion avoidance above it, for others to fall back to.
pub(super) fn grow(window: &mut Window, acked: u64) {
    if window.may_grow() {
        let increase = if window.cwnd < window.ssthresh { slow_start(window, acked) } else { avoidance(window) };
        window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
    }
}

/// By how much the window grows in slow start, bytes.
#[inline]
pub(super) fn slow_start(window: &Window, acked: u64) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# cwnd += min (N, SMSS)
    // No further than the threshold: what lies beyond it belongs to congestion avoidance.
    least(least(window.mss_f64(), acked as f64), window.ssthresh - window.cwnd)
}

/// By how much it grows in congestion avoidance, bytes.
#[inline]
fn avoidance(window: &Window) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# cwnd += SMSS*SMSS/cwnd
    let mss = window.mss_f64();
    mss * mss / window.cwnd
}

/// The threshold after a loss, bytes.
pub(super) fn half(window: &Window, flight: u64) -> f64 {
    //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
    //# ssthresh = max (FlightSize / 2, 2*SMSS)
    (flight as f64 / 2.0).max(2.0 * window.mss_f64())
}
