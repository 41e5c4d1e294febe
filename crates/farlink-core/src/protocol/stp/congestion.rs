//! Congestion control: how much data may be in flight.

use super::config::{RateControl, StpConfig};

/// Congestion window and slow-start threshold, in bytes. With rate control there are none.
///
/// Henderson and Katz give STP the congestion window of TCP. A STAT acknowledges all data since the one before, so
/// acknowledgements are rare and large, and the window grows by acknowledged bytes instead of by acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    pub(super) is_on: bool,
    /// A float, because in congestion avoidance it grows by fractions of a byte.
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    cap: f64,
    mss: f64,
    /// Number of the latest POLL when the window was last reduced.
    reduced_at: Option<u32>,
    /// Whether the window, and nothing else, has limited the sender since the last acknowledgement.
    pub(super) is_limiting: bool,
}

impl Congestion {
    pub(super) fn new(config: &StpConfig) -> Self {
        let mss = config.segment_bytes.get();
        let cap = config.window_bytes() as f64;
        Congestion {
            is_on: config.congestion == RateControl::Tcp,
            cwnd: (config.initial_window_segments.get() * mss).min(cap),
            ssthresh: config.initial_ssthresh_segments.map_or(f64::INFINITY, |segments| segments.get() * mss),
            cap,
            mss,
            reduced_at: None,
            is_limiting: false,
        }
    }

    /// Whether the window allows `in_flight` bytes.
    #[inline(always)]
    pub(super) fn allows(&self, in_flight: u64) -> bool {
        !self.is_on || in_flight <= self.cwnd as u64
    }

    /// Handles a report of arrived bytes without new losses.
    #[inline]
    pub(super) fn on_arrived(&mut self, bytes: u64) {
        if !self.is_on || !std::mem::take(&mut self.is_limiting) {
            return;
        }
        let mut left = bytes as f64;
        if self.cwnd < self.ssthresh {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.1
            //# While a sender is in slow start, the congestion window increases by the number of bytes acknowledged when
            //# each acknowledgment is processed.
            let step = left.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            left -= step;
        }
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# cwnd is incremented by roughly 1 full-sized segment per round-trip time (RTT).
        self.cwnd = (self.cwnd + self.mss * left / self.cwnd).min(self.cap);
    }

    /// Whether the loss of a packet that was sent after the POLL `mark` calls for another reduction, because it was sent after
    /// the last one.
    #[inline]
    pub(super) fn calls_for_reduction(&self, mark: u32) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.3
        //# Loss in two successive windows of data, or the loss of a retransmission, should be taken as two
        //# indications of congestion and, therefore, cwnd (and ssthresh) MUST be lowered twice in this case.
        self.is_on && self.reduced_at.is_none_or(|poll| (mark.wrapping_sub(poll) as i32) > 0)
    }

    /// Reduces the window after a loss; `poll` is the number of the latest POLL.
    pub(super) fn on_loss(&mut self, in_flight: u64, poll: u32) {
        self.ssthresh = self.half(in_flight);
        self.cwnd = self.ssthresh.min(self.cap);
        self.reduced_at = Some(poll);
    }

    /// Handles an RTO without an answer to a POLL; `is_first` marks the first of several in a row.
    pub(super) fn on_silence(&mut self, is_first: bool, in_flight: u64, poll: u32) {
        if !self.is_on {
            return;
        }
        if is_first {
            self.ssthresh = self.half(in_flight);
        }
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# upon a timeout [...] cwnd MUST be set to no more than the loss window, LW, which equals 1 full-sized segment
        self.cwnd = self.mss;
        self.reduced_at = Some(poll);
    }

    fn half(&self, in_flight: u64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# ssthresh = max (FlightSize / 2, 2*SMSS)
        (in_flight as f64 / 2.0).max(2.0 * self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Count;

    fn congestion(initial: f64, ssthresh: f64) -> Congestion {
        let count = |n| Count::new(n).unwrap();
        Congestion::new(&StpConfig {
            segment_bytes: count(100.0),
            initial_window_segments: count(initial),
            initial_ssthresh_segments: Some(count(ssthresh)),
            max_window_segments: Some(count(20.0)),
            ..StpConfig::default()
        })
    }

    fn arrived(congestion: &mut Congestion, bytes: u64) -> f64 {
        congestion.is_limiting = true;
        congestion.on_arrived(bytes);
        congestion.cwnd
    }

    #[test]
    fn grows_by_arrivals_in_slow_start_and_then_by_a_packet_per_window() {
        let mut window = congestion(2.0, 6.0);
        assert_eq!(arrived(&mut window, 200), 400.0);
        assert_eq!(arrived(&mut window, 400), 600.0 + 100.0 * 200.0 / 600.0, "past the threshold");
        let before = window.cwnd;
        assert!((arrived(&mut window, before as u64) - before - 100.0).abs() < 1.0);
        for _ in 0..100 {
            arrived(&mut window, 2000);
        }
        assert_eq!(window.cwnd, 2000.0);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = congestion(2.0, 6.0);
        window.on_arrived(100);
        assert_eq!(window.cwnd, 200.0);
    }

    #[test]
    fn losses_of_one_window_count_once() {
        let mut window = congestion(10.0, 10.0);
        assert!(window.calls_for_reduction(0));
        window.on_loss(1000, 5);
        assert_eq!((window.cwnd, window.ssthresh), (500.0, 500.0));
        assert!(!window.calls_for_reduction(5), "sent before the reduction, or hardly after");
        assert!(window.calls_for_reduction(6), "new data or a retransmission, sent after the reduction");
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_halves_the_threshold_once() {
        let mut window = congestion(10.0, 10.0);
        window.on_silence(true, 1000, 3);
        window.on_silence(false, 100, 4);
        assert_eq!((window.cwnd, window.ssthresh), (100.0, 500.0));
        assert!(!window.calls_for_reduction(4));
    }

    #[test]
    fn rate_control_has_no_window() {
        let mut window = Congestion { is_on: false, ..congestion(1.0, 1.0) };
        assert!(window.allows(1 << 40));
        window.on_silence(true, 1000, 1);
        assert!(!window.calls_for_reduction(9));
        assert_eq!(window.cwnd, 100.0);
    }
}
