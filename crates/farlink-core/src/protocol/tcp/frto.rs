//! F-RTO (RFC 5682): detects a retransmission timeout that came too early, for example after a jump of the path's delay, and
//! restores the window.

use super::congestion::{Congestion, Control};
use super::variant::{Reaction, Running};
use super::window::{Acked, Phase, Window};

/// State of the test; the numbers are those of the RFC's steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Off,
    /// 1 and 2: the first segment is sent again, and nothing else until it is acknowledged.
    First,
    /// 3: two new segments are in flight; the next acknowledgement decides.
    Second,
}

/// The test of a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FRto {
    is_on: bool,
    /// Whether the first acknowledgement decides already if it reports data sent once before the timeout, as in Linux.
    is_quick: bool,
    step: Step,
    /// End of the segment that is sent again.
    resent_end: u64,
    /// The window's "recover" before the timeout.
    recover_before: u64,
}

impl FRto {
    pub(super) fn new(is_on: bool, is_quick: bool) -> Self {
        FRto { is_on, is_quick, ..FRto::default() }
    }

    /// Whether an acknowledgement is awaited.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        self.step != Step::Off
    }

    /// Handles a retransmission timeout, before the window is changed.
    pub(super) fn on_timeout(&mut self, window: &mut Window) {
        // If the timer expires again before anything was received, the same test continues.
        let is_same = self.step == Step::First && window.phase == Phase::Loss;
        self.step = Step::Off;
        window.sends_new_only = false;
        if window.phase == Phase::Open && window.una > 0 {
            window.before_timeout = (window.cwnd, window.ssthresh);
            self.recover_before = window.recover;
        } else if !is_same {
            //= https://www.rfc-editor.org/rfc/rfc5682#section-2.1
            //# If the TCP sender is already in RTO recovery AND "recover" is larger than or equal to SND.UNA, do not enter
            //# step 2 of this algorithm.
            return;
        }
        if self.is_on {
            self.step = Step::First;
            self.resent_end = window.first_end();
        }
    }

    /// Whether nothing may be sent, because the retransmission has to be acknowledged first.
    pub(super) fn holds(&self, window: &Window) -> bool {
        self.step == Step::First && !window.retransmit_first && window.nxt != window.una
    }

    /// Handles an acknowledgement after all other processing of it.
    #[cold]
    pub(super) fn on_acknowledged(
        &mut self,
        window: &mut Window,
        running: &mut Running,
        control: &mut Congestion,
        acked: Acked,
    ) {
        let is_original = window.records.recent.original_end.is_some_and(|end| end <= window.recover);
        match self.step {
            // Linux (tcp_process_loss, FLAG_ORIG_SACK_ACKED). What it delivered was sent after most of what the timeout found
            // lost, so that RACK finds the losses among it, and a fast recovery repairs them.
            Step::First if self.is_quick && is_original && window.phase == Phase::Loss => {
                self.undo(window, running, control);
            }
            Step::First if acked.is_new => {
                //= https://www.rfc-editor.org/rfc/rfc5682#section-2.1
                //# a) If the acknowledgment [...] covers "recover" or does not acknowledge all of the data that was
                //# retransmitted in step 1, revert to the conventional RTO recovery
                //# b) Else, if the acknowledgment advances the window, but the Acknowledgment field does not cover
                //# "recover", transmit up to two new (previously unsent) segments and enter step 3
                let len = u64::from(window.segment_len(window.max));
                let has_new_data = len > 0 && window.max + len <= window.peer_end;
                if window.phase != Phase::Loss || window.una < self.resent_end || !has_new_data {
                    self.step = Step::Off;
                    return;
                }
                self.step = Step::Second;
                window.nxt = window.max;
                window.sends_new_only = true;
                let allowed = window.max - window.una + 2 * u64::from(window.mss);
                window.extra = allowed.saturating_sub(window.cwnd as u64);
            }
            // With SACK, duplicates that arrive first only update the scoreboard (section 3.1, step 2).
            Step::First if acked.is_duplicate && !running.keeps_scoreboard() => self.step = Step::Off,
            Step::Second => {
                //= https://www.rfc-editor.org/rfc/rfc5682#section-2.1
                //# a) If the acknowledgment does not advance the window [...] revert to the conventional RTO recovery
                //# b) If the acknowledgment advances the window [...] declare the timeout spurious
                // Section 3.1 treats the report of an original segment alike.
                if acked.is_new || is_original {
                    self.undo(window, running, control);
                } else if acked.is_duplicate {
                    self.step = Step::Off;
                    window.sends_new_only = false;
                    running.on_loss_confirmed(window);
                }
            }
            Step::First | Step::Off => {}
        }
    }

    /// The timeout was spurious.
    fn undo(&mut self, window: &mut Window, running: &mut Running, control: &mut Congestion) {
        self.step = Step::Off;
        window.sends_new_only = false;
        window.phase = Phase::Open;
        window.recover = self.recover_before;
        window.dup_acks = 0;
        window.extra = 0;
        let (cwnd, ssthresh) = window.before_timeout;
        window.cwnd = window.cwnd.max(cwnd);
        window.ssthresh = window.ssthresh.max(ssthresh);
        control.on_spurious_loss(window);
        running.on_spurious(window, control, self.is_quick);
    }
}
