//! Slow start and congestion avoidance (RFC 5681).

use super::Control;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::window::{Window, least};

/// Doubles the window every round trip up to the threshold, then adds a segment; halves it on a loss.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Reno;

impl Reno {
    pub(super) fn new(_config: &TcpConfig) -> Self {
        Reno
    }
}

impl Control for Reno {
    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        if !window.may_grow() {
            return;
        }
        let mss = window.mss_f64();
        let increase = if window.cwnd < window.ssthresh {
            slow_start(window, acked)
        } else {
            //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
            //# cwnd += SMSS*SMSS/cwnd
            mss * mss / window.cwnd
        };
        window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# ssthresh = max (FlightSize / 2, 2*SMSS)
        (flight as f64 / 2.0).max(2.0 * window.mss_f64())
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
