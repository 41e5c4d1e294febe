//! The effect of losses, timeouts and marks on the window, also where losses count as bit errors.

use super::congestion::{Congestion, Control};
use super::window::{Phase, Window, least};

impl Window {
    /// Enters fast recovery or a similar phase: remembers where the loss was found.
    pub(super) fn begin_reaction(&mut self, control: &mut Congestion) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.2
        //# As specified in [RFC3042], the additional data sent in limited transmit MUST NOT be included in this
        //# calculation.
        let flight = self.flight().min(self.flight_before_dup_acks);
        self.reduce(control, flight);
        self.records.note_lost_below(self.una + 1);
        self.recover = self.max;
        self.extra = 0;
        self.fast_retransmits += 1;
    }

    /// A loss was found while `flight` bytes were in flight: sets the threshold, at which recovery begins and ends.
    pub(super) fn reduce(&mut self, control: &mut Congestion, flight: u64) {
        self.note_cause();
        if self.is_corruption {
            // A repair in progress keeps its threshold.
            if self.phase != Phase::Recovery {
                let ssthresh = std::mem::replace(&mut self.ssthresh, self.cwnd);
                self.kept_ssthresh.get_or_insert(ssthresh);
            }
            return;
        }
        if !self.is_reduced_already() {
            let ssthresh = control.on_loss(self, flight);
            self.lower_threshold(ssthresh);
        }
        self.has_reduced = true;
    }

    /// Notes whether the window reacts to the present loss.
    fn note_cause(&mut self) {
        let was_spared = self.phase == Phase::Open || self.is_spared;
        self.is_spared = self.is_corruption && was_spared;
        if !self.is_corruption {
            self.kept_ssthresh = None; // the new threshold replaces the old one
        }
    }

    /// Whether a mark has already reduced the congestion window for this window of data.
    fn is_reduced_already(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.2
        //# the TCP source should not decrease the slow-start threshold, ssthresh, if it has been decreased within the last
        //# round trip time.
        self.marked > 0 && self.una <= self.marked
    }

    /// Whether the oldest segment in flight was sent before the latest loss was found.
    fn is_of_reduced_window(&self) -> bool {
        self.phase == Phase::Recovery || self.una < self.recover
    }

    /// The bytes in flight that a timeout halves. Until the reduced window is acknowledged, this is at most the window after that
    /// reduction: the duplicates of a recovery, and reports, have released more than that.
    fn flight_that_counts(&self) -> u64 {
        let most = match self.phase {
            Phase::Recovery => self.ssthresh,
            Phase::Loss => self.cwnd,
            Phase::Open if self.una < self.recover => self.cwnd,
            Phase::Open => return self.flight(),
        };
        self.flight().min(most as u64)
    }

    /// Sets the threshold after a loss. A further loss in the same window of data never raises it, regardless of the data in
    /// flight by then, even if the first acknowledgement of new data has ended the recovery, as in Reno.
    fn lower_threshold(&mut self, ssthresh: f64) {
        self.ssthresh = if self.is_of_reduced_window() { least(self.ssthresh, ssthresh) } else { ssthresh };
    }

    /// The reaction of every variant to a retransmission timeout.
    pub(super) fn on_timeout(&mut self, control: &mut Congestion, is_first_of_segment: bool) {
        if self.una == 0 {
            //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
            //# the initial window used by a sender after a correctly transmitted SYN MUST be one segment
            self.cwnd = self.mss_f64();
            self.nxt = 0;
            return;
        }
        self.note_cause();
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# when a TCP sender detects segment loss using the retransmission timer and the given segment has already
        //# been retransmitted [...] the value of ssthresh is held constant.
        if !self.is_corruption {
            if is_first_of_segment && !self.is_reduced_already() {
                let ssthresh = control.on_timeout(self, self.flight_that_counts());
                //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
                //# the value of ssthresh MUST be set to no more than the value given in equation (4)
                //= https://www.rfc-editor.org/rfc/rfc5681#section-4.3
                //# Loss in two successive windows of data, or the loss of a retransmission, should be taken as two indications
                //# of congestion and, therefore, cwnd (and ssthresh) MUST be lowered twice in this case.
                // A timeout during a recovery is the second loss: the retransmissions of the recovery are lost, too. Linux
                // (tcp_enter_loss) reduces once per window, however its losses are found.
                if !(self.is_one_loss && self.phase == Phase::Recovery) {
                    self.lower_threshold(ssthresh);
                }
            }
            self.has_reduced = true;
            self.cwnd = control.loss_window(self);
        }
        self.phase = Phase::Loss;
        self.recover = self.max;
        self.dup_acks = 0;
        self.extra = 0;
        self.retransmit_first = false;
        self.nxt = self.una;
    }

    /// Whether an echo of a mark, with an acknowledgement of all data below `ack`, reports congestion for which the window has
    /// not been reduced.
    pub(super) fn reacts_to_mark(&self, ack: u64) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc3168#section-6.1.2
        //# TCP should not react to congestion indications more than once every window of data (or more loosely, more than
        //# once every round-trip time).
        // The first data sent after a reduction informs the receiver of it (CWR), so that echoes are old until it is
        // acknowledged. A loss that reduced nothing sends no CWR.
        ack > self.marked && (self.is_spared || self.phase == Phase::Open && ack > self.recover)
    }

    /// Reduces the window for a mark, whatever `loss` is set to, because only a full queue marks.
    pub(super) fn on_mark(&mut self, control: &mut Congestion) {
        // While a loss by bit errors is repaired, data sent beyond the window or again is not part of the window.
        let (before, flight) = match self.phase {
            Phase::Open => (self.cwnd, self.flight()),
            Phase::Recovery => (self.ssthresh, (self.max - self.una).min(self.ssthresh as u64)),
            Phase::Loss => (self.cwnd, (self.max - self.una).min(self.cwnd as u64)),
        };
        let inflation = self.cwnd - before;
        self.cwnd = before;
        self.ssthresh = control.on_mark(self, flight);
        self.cwnd = (least(before, self.ssthresh) + inflation).max(self.mss_f64());
        self.kept_ssthresh = None;
        // If a spurious timeout is undone later, this reduction remains.
        self.before_timeout = (self.cwnd, self.ssthresh);
        self.marked = self.max;
        self.has_reduced = true;
    }
}

#[cfg(test)]
mod further_losses;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tcp::{CongestionControl, TcpConfig};
    use crate::time::Time;
    use crate::units::Count;

    /// Twenty segments of 100 bytes are in flight, which is a full window.
    fn under_way(congestion_control: CongestionControl) -> (Window, Congestion) {
        let config = TcpConfig {
            congestion_control,
            segment_bytes: Count::new(100.0).unwrap(),
            initial_window_segments: Count::new(20.0).unwrap(),
            ..TcpConfig::default()
        };
        let mut window = Window::new(&config, 1, 1 << 20, false);
        (window.nxt, window.max, window.end) = (2001, 2001, 100_001);
        window.ssthresh = 5000.0;
        window.flight_before_dup_acks = 2000;
        window.rtt.smoothed = Time::from_millis(100);
        (window, Congestion::new(&config))
    }

    /// A recovery as SACK's; at its end the kept threshold is restored.
    fn lose(window: &mut Window, control: &mut Congestion) {
        window.begin_reaction(control);
        window.phase = Phase::Recovery;
        window.cwnd = window.ssthresh;
    }

    #[test]
    fn a_congestion_mark_during_recovery_from_bit_errors_reduces_the_window() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        window.is_corruption = true;
        lose(&mut window, &mut control);
        assert_eq!((window.cwnd, window.ssthresh, window.kept_ssthresh), (2000.0, 2000.0, Some(5000.0)));
        // Half a window has left the network, and as much new data was sent; duplicates have enlarged the window.
        (window.nxt, window.max) = (3001, 3001);
        window.cwnd += 300.0;
        assert!(window.reacts_to_mark(1501), "it is of this window, and the loss reduced nothing");
        window.on_mark(&mut control);
        assert_eq!((window.cwnd, window.ssthresh, window.kept_ssthresh), (1300.0, 1000.0, None));
        assert!(window.has_reduced, "the receiver is informed");
        assert!(!window.reacts_to_mark(3001) && window.reacts_to_mark(3101), "once per window");
    }

    #[test]
    fn a_congestion_mark_after_a_timeout_by_bit_errors_reduces_the_window() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        window.is_corruption = true;
        window.on_timeout(&mut control, true);
        assert_eq!((window.cwnd, window.ssthresh, window.phase, window.nxt), (2000.0, 5000.0, Phase::Loss, 1));
        assert!(window.reacts_to_mark(101));
        window.on_mark(&mut control);
        assert_eq!(
            (window.cwnd, window.ssthresh),
            (1000.0, 1000.0),
            "based on the data in flight, without retransmissions"
        );
        assert_eq!(window.before_timeout, (1000.0, 1000.0), "a spurious timeout does not take it back");
    }

    #[test]
    fn a_congestion_mark_during_recovery_from_congestion_is_ignored() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        lose(&mut window, &mut control);
        assert_eq!((window.cwnd, window.kept_ssthresh), (1000.0, None));
        (window.nxt, window.max) = (3001, 3001);
        window.is_corruption = true; // applies to losses from here on
        assert!(!window.reacts_to_mark(2001));
        window.on_timeout(&mut control, true);
        assert!(!window.reacts_to_mark(2101), "it is of the window that was halved");
        window.phase = Phase::Open;
        assert!(!window.reacts_to_mark(3001) && window.reacts_to_mark(3101));
    }

    /// Congestion in addition to bit errors: its threshold is not replaced by the old one.
    #[test]
    fn a_timeout_by_congestion_after_bit_errors_reduces_the_window() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        window.is_corruption = true;
        lose(&mut window, &mut control);
        window.is_corruption = false;
        window.on_timeout(&mut control, true);
        assert_eq!((window.cwnd, window.ssthresh, window.kept_ssthresh), (100.0, 1000.0, None));
        assert!(!window.reacts_to_mark(101), "reduced already");
    }

    /// A timeout that ends a recovery is a further loss, whatever the duplicates of the recovery released.
    #[test]
    fn a_timeout_during_recovery_lowers_the_threshold_again() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        lose(&mut window, &mut control);
        assert_eq!(window.ssthresh, 1000.0);
        // Sixty duplicates, each of which released a segment, as in the recovery of Reno and NewReno.
        (window.nxt, window.max) = (6001, 6001);
        window.cwnd += 6000.0;
        window.on_timeout(&mut control, true);
        assert_eq!(
            (window.cwnd, window.ssthresh, window.phase),
            (100.0, 500.0, Phase::Loss),
            "half of the window that the recovery left, not of 6000"
        );
        // The data in flight counts again once all of that window is acknowledged, and where it is little, before that as well.
        (window.phase, window.una, window.nxt, window.max) = (Phase::Open, 6001, 9001, 9001);
        window.on_timeout(&mut control, true);
        assert_eq!(window.ssthresh, 1500.0);
        (window.phase, window.nxt) = (Phase::Recovery, 6801);
        window.on_timeout(&mut control, true);
        assert_eq!(window.ssthresh, 400.0);
    }

    /// As in the kernel: the recovery reduced the window once, and the timeout that ends it does not reduce it again.
    #[test]
    fn a_timeout_during_the_recovery_of_rack_leaves_the_threshold() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        window.is_one_loss = true;
        lose(&mut window, &mut control);
        (window.nxt, window.max) = (2401, 2401);
        window.on_timeout(&mut control, true);
        assert_eq!((window.cwnd, window.ssthresh, window.phase), (100.0, 1000.0, Phase::Loss));
        // The next window is reduced again.
        (window.phase, window.una, window.nxt, window.max) = (Phase::Open, 2401, 3001, 3001);
        window.on_timeout(&mut control, true);
        assert_eq!((window.cwnd, window.ssthresh), (100.0, 300.0));
    }

    /// Reno ends its recovery with the first acknowledgement of new data, although more losses of that window may
    /// follow.
    #[test]
    fn a_timeout_after_the_recovery_of_reno_belongs_to_the_same_window() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        lose(&mut window, &mut control);
        // Thirty duplicates have released as many segments; one segment is acknowledged, and the next was lost, too.
        (window.nxt, window.max) = (5001, 5001);
        control.end_recovery(&mut window);
        (window.phase, window.una) = (Phase::Open, 101);
        window.on_timeout(&mut control, true);
        assert_eq!(
            (window.ssthresh, window.cwnd),
            (500.0, 100.0),
            "half of the window that the recovery left, not of 4900"
        );
    }

    /// A segment that is lost again, as RACK finds it, is another loss by bit errors.
    #[test]
    fn further_bit_errors_do_not_reduce_the_window() {
        let (mut window, mut control) = under_way(CongestionControl::Reno);
        window.is_corruption = true;
        lose(&mut window, &mut control);
        window.cwnd = 1500.0;
        window.reduce(&mut control, 1500);
        assert_eq!((window.ssthresh, window.kept_ssthresh), (2000.0, Some(5000.0)));
    }

    /// Neither version of BBR reacts to marks.
    #[test]
    fn bbr_echoes_marks_and_keeps_its_window() {
        for congestion_control in [CongestionControl::Bbr, CongestionControl::Bbr3] {
            let (mut window, mut control) = under_way(congestion_control);
            window.ssthresh = 500.0; // as a scenario may set it
            assert!(window.reacts_to_mark(101));
            window.on_mark(&mut control);
            assert_eq!((window.cwnd, window.has_reduced), (2000.0, true), "{congestion_control:?}");
        }
    }
}
