//! Recovery from selective acknowledgements (RFC 6675).

use super::Reaction;
use super::scoreboard::Scoreboard;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::prr::Prr;
use crate::protocol::tcp::span::Span;
use crate::protocol::tcp::window::{Phase, Window};

/// Repairs any number of losses in about one round trip.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct Sack {
    board: Scoreboard,
    /// Highest offset retransmitted in this recovery (HighRxt).
    high_rxt: u64,
    /// Whether the one retransmission of rule 4 per recovery was used.
    is_rescue_spent: bool,
    /// Whether the segment sent now is that one.
    is_rescue: bool,
    prr: Prr,
    /// Offset below which data counted as lost when the window was last set.
    lost_before: u64,
}

impl Reaction for Sack {
    fn new(config: &TcpConfig) -> Self {
        Sack { prr: Prr::new(config.reduces_proportionally()), ..Sack::default() }
    }

    #[inline]
    fn lost_below(&self, window: &Window) -> u64 {
        self.board.lost_below(window.dup_ack_threshold, window.mss)
    }

    #[cfg(feature = "trains")]
    fn only_grows(&self) -> bool {
        self.board.is_empty() && !self.prr.is_on
    }

    #[inline(always)]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        if self.board.is_empty() && window.phase != Phase::Recovery && !self.prr.is_on {
            window.dup_acks = 0;
            control.on_acknowledged(window, acked);
        } else {
            self.on_acknowledged_after_loss(window, control, acked);
        }
    }

    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, has_new_sack: bool) {
        //= https://www.rfc-editor.org/rfc/rfc6675#section-2
        //# a segment that arrives carrying a SACK option is considered a duplicate acknowledgment if it [...] identifies
        //# previously unacknowledged and un-SACKed octets
        if !has_new_sack {
            return;
        }
        if window.phase != Phase::Recovery {
            self.look_for_loss(window, control);
        }
        if self.prr.is_on {
            self.reduce_proportionally(window, false);
        }
    }

    fn on_sack_block(&mut self, window: &mut Window, left: u64, right: u64) -> bool {
        let is_plausible = left >= window.una && right <= window.max;
        is_plausible && self.board.add(left, right, |left, right| window.on_reported(left, right))
    }

    fn on_timeout(&mut self, _window: &mut Window, _control: &mut Congestion) {
        //= https://www.rfc-editor.org/rfc/rfc2018#section-8
        //# After a retransmit timeout the data sender SHOULD turn off all of the SACKed bits
        self.board.clear();
    }

    #[inline]
    fn next_segment(&mut self, window: &mut Window) -> Option<Span> {
        if window.retransmit_first || window.phase != Phase::Recovery {
            if !self.board.is_empty() && window.phase == Phase::Loss && !window.sends_new_only {
                self.board.skip_reported(window);
            }
            return window.next_in_window();
        }
        //= https://www.rfc-editor.org/rfc/rfc6675#section-5
        //# (C) If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one or more segments
        if (window.cwnd as u64) < self.pipe(window) + u64::from(window.mss) {
            return None;
        }
        self.next_seg(window)
    }

    #[inline]
    fn on_sent(&mut self, window: &mut Window, span: Span) {
        //= https://www.rfc-editor.org/rfc/rfc6675#section-4
        //# Note that HighRxt MUST NOT be updated. (rule 4)
        let is_rescue = std::mem::take(&mut self.is_rescue);
        if window.phase == Phase::Recovery {
            self.prr.on_sent(span.len);
        }
        if window.phase == Phase::Recovery && span.start < window.nxt && !is_rescue {
            self.high_rxt = self.high_rxt.max(span.start + u64::from(span.len));
        }
        window.on_sent(span);
    }
}

impl Sack {
    #[cold]
    fn on_acknowledged_after_loss(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        if !self.board.is_empty() {
            self.board.advance(window.una);
        }
        if window.phase != Phase::Recovery {
            control.on_acknowledged(window, acked);
        } else if window.una >= window.recover {
            //= https://www.rfc-editor.org/rfc/rfc6675#section-5
            //# An incoming cumulative ACK for a sequence number greater than RecoveryPoint signals the end of loss
            //# recovery
            window.phase = Phase::Open;
            control.end_recovery(window);
        }
        if self.prr.is_on {
            self.reduce_proportionally(window, true);
        }
    }

    /// Handles a duplicate outside recovery.
    fn look_for_loss(&mut self, window: &mut Window, control: &mut Congestion) {
        window.count_duplicate();
        let is_enough = window.dup_acks >= window.dup_ack_threshold;
        //= https://www.rfc-editor.org/rfc/rfc6675#section-5
        //# If DupAcks < DupThresh but IsLost (HighACK + 1) returns true [...] loss has been detected
        let is_lost = self.lost_below(window) > window.una;
        //= https://www.rfc-editor.org/rfc/rfc6675#section-5.1
        //# In addition, a new recovery phase (as described in Section 5) MUST NOT be initiated until HighACK is
        //# greater than or equal to the new value of RecoveryPoint.
        let is_guarded = window.has_recover_guard && window.una < window.recover;
        if (is_enough || is_lost) && !is_guarded && window.phase == Phase::Open {
            window.begin_reaction(control);
            window.phase = Phase::Recovery;
            control.begin_recovery(window);
            window.retransmit_first = true;
            self.high_rxt = window.una;
            self.is_rescue_spent = false;
            if self.prr.is_on {
                self.prr.begin(window, control);
            }
        }
    }

    /// Sets the window according to the delivered data.
    fn reduce_proportionally(&mut self, window: &mut Window, is_new: bool) {
        let known = window.una + self.board.bytes();
        if window.phase == Phase::Recovery {
            let lost = self.lost_below(window);
            let is_safe = is_new && lost <= self.lost_before.max(window.una);
            self.lost_before = lost;
            self.prr.on_acknowledged(window, known, self.pipe(window), is_safe);
        } else {
            self.prr.note(known);
        }
    }

    /// Bytes that count as in the network (SetPipe of RFC 6675, section 4).
    fn pipe(&self, window: &Window) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc6675#section-4
        //# If IsLost (S1) returns false: Pipe is incremented by 1.
        //# If S1 <= HighRxt: Pipe is incremented by 1.
        let not_lost_from = self.lost_below(window).max(window.una);
        let not_lost = window.nxt.saturating_sub(not_lost_from) - self.board.bytes_above(not_lost_from);
        let resent_to = self.high_rxt.max(window.una);
        let resent = resent_to - window.una - self.board.bytes_below(resent_to);
        not_lost + resent
    }

    /// The next segment to send (NextSeg of RFC 6675, section 4).
    fn next_seg(&mut self, window: &mut Window) -> Option<Span> {
        let from = self.high_rxt.max(window.una);
        let (hole, hole_end) = self.board.gap_from(from);
        let resend = |start: u64, end: u64| Span { start, len: window.segment_len(start).min((end - start) as u32) };

        // (1) A hole that counts as lost.
        if let Some(end) = hole_end
            && hole < self.lost_below(window)
        {
            return Some(resend(hole, end));
        }
        // (2) New data, if the peer's window has room.
        let len = window.segment_len(window.nxt);
        if len > 0 && window.nxt + u64::from(len) <= window.peer_end {
            return Some(Span { start: window.nxt, len });
        }
        // (3) A hole that may be lost.
        if let Some(end) = hole_end {
            return Some(resend(hole, end));
        }
        // (4) Once per recovery, the last segment sent, if it was not reported.
        let rescue = window.max.saturating_sub(u64::from(window.mss)).max(hole);
        if !self.is_rescue_spent && hole < window.recover && rescue < window.max {
            (self.is_rescue_spent, self.is_rescue) = (true, true);
            return Some(resend(rescue, window.max));
        }
        None
    }
}
