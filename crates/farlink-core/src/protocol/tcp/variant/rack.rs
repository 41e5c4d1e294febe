//! RACK-TLP: loss detection by time (RFC 8985).
//!
//! A segment is lost if a segment sent after it was delivered and it was not, within a round trip and the reordering window. This
//! also finds lost retransmissions, and the reordering window grows with the reordering seen.

use super::Reaction;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::flight::Late;
use crate::protocol::tcp::prr::Prr;
use crate::protocol::tcp::span::Span;
use crate::protocol::tcp::tail_loss_probe::TailLossProbe;
use crate::protocol::tcp::window::{Acked, Alarm, Phase, Window};
use crate::time::Time;

use super::scoreboard::Scoreboard;

/// Number of recoveries without reported duplicates after which the reordering window is small again (RACK.reo_wnd_persist).
const PERSISTENCE: u32 = 16;

/// Detects losses by time and repairs them as fast as the window allows.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Rack {
    board: Scoreboard,
    prr: Prr,
    probe: TailLossProbe,
    /// Length of the reordering window in quarters of the least round-trip time (RACK.reo_wnd_mult).
    quarters: u64,
    /// Number of recoveries until that returns to one.
    persists: u32,
    /// The window is not increased again before all data up to here is acknowledged (RACK.dsack_round).
    round_end: Option<u64>,
    /// Whether the present acknowledgement reports a duplicate, and whether it was a segment that a recovery sent too early.
    has_duplicate_report: bool,
    was_impatient: bool,
    /// End of the data in flight at the latest timeout.
    timeout_end: u64,
    /// When the window was last reduced.
    reduced_at: Time,
    /// Whether a timeout is being repaired.
    is_in_loss: bool,
    /// Timeouts of the SYN.
    syn_timeouts: u32,
}

impl Reaction for Rack {
    fn new(config: &TcpConfig) -> Self {
        Rack {
            board: Scoreboard::default(),
            prr: Prr::new(config.reduces_proportionally()),
            probe: TailLossProbe::new(config),
            quarters: 1,
            persists: 0,
            round_end: None,
            has_duplicate_report: false,
            was_impatient: false,
            timeout_end: 0,
            reduced_at: Time::ZERO,
            is_in_loss: false,
            syn_timeouts: 0,
        }
    }

    fn wants_order(&self) -> bool {
        true
    }

    fn keeps_scoreboard(&self) -> bool {
        true
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        if !self.board.is_empty() {
            self.board.advance(window.una);
        }
        if window.phase != Phase::Recovery {
            control.on_acknowledged(window, acked);
            if self.is_in_loss && window.phase == Phase::Open {
                self.end_recovery();
            }
        } else if window.una >= window.recover {
            window.phase = Phase::Open;
            control.end_recovery(window);
            self.end_recovery();
        }
    }

    fn on_duplicate(&mut self, _window: &mut Window, _control: &mut Congestion, _has_new_sack: bool) {}

    fn on_sack_block(&mut self, window: &mut Window, left: u64, right: u64) -> bool {
        let is_plausible = left >= window.una && right <= window.max;
        is_plausible && self.board.add(left, right, |left, right| window.on_reported(left, right))
    }

    fn on_duplicate_report(&mut self, right: u64) {
        self.has_duplicate_report = true;
        // Duplicates of a probe, and of retransmissions after a timeout, say nothing about reordering.
        self.was_impatient = !self.probe.on_duplicate_report(right) && right > self.timeout_end;
    }

    fn on_processed(&mut self, window: &mut Window, control: &mut Congestion, acked: Acked) {
        self.adapt(window);
        self.probe.is_due &= !acked.is_new;
        if self.probe.on_acknowledged(window, acked) && window.phase == Phase::Open {
            // As at the beginning and the end of a fast recovery.
            self.reduce(window, control);
            control.begin_recovery(window);
            control.end_recovery(window);
        }
        self.look(window, control, acked.is_new);
        if acked.is_new || window.alarm.is_probe {
            let is_running = window.alarm.is_probe && !acked.is_new;
            self.arm_probe(window, is_running);
        }
    }

    fn on_alarm(&mut self, window: &mut Window, control: &mut Congestion) -> bool {
        let is_probe = window.alarm.is_probe;
        window.alarm = Alarm::NONE;
        if is_probe {
            self.probe.is_due = true;
            window.retransmit_first = true;
        } else {
            self.look(window, control, false);
        }
        is_probe
    }

    fn on_timeout(&mut self, window: &mut Window, control: &mut Congestion) {
        if window.una == 0 {
            // RFC 6928, section 2, and Linux (tcp_init_transfer): with an initial timeout of one second, the SYN of a long path
            // is sent again without need. Only the second timeout counts as a loss, after which the initial window counts as too
            // large.
            self.syn_timeouts += 1;
            if self.syn_timeouts == 1 {
                window.cwnd = window.initial_cwnd;
            }
            return;
        }
        self.probe.cancel(window);
        window.alarm = Alarm::NONE;
        let patience = self.patience(window);
        let is_reported = window.records.sacked().0 > 0;
        while let Some(lost) = window.records.next_late_on_timeout(window.now, patience) {
            control.on_lost(window, &lost);
        }
        if is_reported && window.records.sacked().0 == 0 {
            self.board.clear();
        }
        // Only segments that were found lost are sent again.
        window.nxt = window.max;
        window.extra = window.records.gone_bytes();
        window.retransmit_first = true;
        self.reduced_at = window.now;
        self.is_in_loss = true;
        self.timeout_end = window.max;
    }

    fn next_segment(&mut self, window: &mut Window) -> Option<Span> {
        if window.una == 0 {
            return window.next_in_window();
        }
        let is_forced = std::mem::take(&mut window.retransmit_first);
        if self.probe.is_due {
            return self.probe.segment(window);
        }
        if !window.sends_new_only
            && let Some(span) = window.records.next_to_repeat(window.una)
        {
            let in_flight = window.records.in_flight();
            if !is_forced && in_flight + u64::from(span.len) > window.cwnd as u64 {
                return None;
            }
            window.restarts_timer = span.start == window.una;
            return Some(span);
        }
        window.next_in_window()
    }

    #[inline]
    fn on_sent(&mut self, window: &mut Window, span: Span) {
        let is_new = span.start >= window.max;
        window.on_sent(span);
        if window.phase == Phase::Recovery {
            self.prr.on_sent(span.len);
        }
        if !window.sends_new_only {
            window.extra = window.records.gone_bytes();
        }
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.2
        //# The sender schedules a PTO after transmitting new data (except for the case in which the new data are
        //# themselves a TLP probe)
        if is_new && (window.alarm.is_probe || window.alarm.at == Time::NEVER) {
            self.arm_probe(window, false);
            let head = window.records.first_at().zip(window.rtt.limit_of_probes).map(|(sent, rto)| sent + rto);
            if let Some(at) = head.filter(|&at| window.alarm.is_probe && at > window.now) {
                window.alarm.at = window.alarm.at.min(at);
            }
        }
    }

    fn on_spurious(&mut self, window: &mut Window, control: &mut Congestion, looks_again: bool) {
        self.is_in_loss = false;
        window.records.unmark_lost(looks_again);
        window.extra = window.records.gone_bytes();
        if looks_again {
            self.look(window, control, false);
        }
        self.arm_probe(window, false);
    }

    fn on_loss_confirmed(&mut self, window: &mut Window) {
        window.extra = window.records.gone_bytes();
    }
}

impl Rack {
    /// The data known to have arrived: acknowledged offset plus reported bytes.
    fn known(window: &Window) -> u64 {
        window.una + window.records.sacked().0
    }

    /// Looks for losses, reacts to them, and sets the timer for the next check.
    fn look(&mut self, window: &mut Window, control: &mut Congestion, is_new: bool) {
        let patience = self.patience(window);
        let (mut has_found, mut again_at) = (false, None);
        let next = loop {
            match window.records.next_late(window.now, patience) {
                Late::Lost(lost, at) => {
                    (has_found, again_at) = (true, again_at.max(at));
                    control.on_lost(window, &lost);
                }
                Late::Later(next) => break next,
            }
        };
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.3
        //# Loss in two successive windows of data, or the loss of a retransmission, should be taken as two indications
        //# of congestion and, therefore, cwnd (and ssthresh) MUST be lowered twice in this case.
        let is_lost_again = window.phase != Phase::Open && again_at >= Some(self.reduced_at);
        let is_first = window.phase == Phase::Open && window.records.lost_bytes() > 0;
        if is_first || is_lost_again {
            self.reduce(window, control);
            window.recover = window.max;
            window.fast_retransmits += u64::from(is_first);
            window.phase = Phase::Recovery;
            self.is_in_loss = false;
            control.begin_recovery(window);
            window.retransmit_first = true;
            self.probe.cancel(window);
            self.prr.begin(window, control);
        }
        let known = Self::known(window);
        if window.phase == Phase::Recovery {
            self.prr.on_acknowledged(window, known, window.records.in_flight(), is_new && !has_found);
        } else {
            self.prr.note(known);
        }
        window.extra = window.records.gone_bytes();
        if let Some(at) = next {
            window.alarm = Alarm { at, is_probe: false };
        } else if !window.alarm.is_probe || window.phase != Phase::Open {
            window.alarm = Alarm::NONE;
        }
    }

    /// Reduces the window after a loss.
    fn reduce(&mut self, window: &mut Window, control: &mut Congestion) {
        // The bytes in the network before the present acknowledgement. Reported data had left it and was replaced by new data.
        let flight = window.max.saturating_sub(self.prr.known());
        window.reduce(control, flight);
        self.reduced_at = window.now;
    }

    /// How long to wait for segments that may only be late (RACK.reo_wnd).
    fn patience(&self, window: &Window) -> Time {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# If RACK.reordering_seen is FALSE: If in Fast or RTO recovery: return 0.
        //# Else if RACK.segs_sacked >= DupThresh: return 0.
        //# Return min(RACK.reo_wnd_mult * RACK.min_RTT / 4, SRTT)
        let is_in_repair = window.phase != Phase::Open || window.records.sacked().1 >= window.dup_ack_threshold;
        if !window.records.recent.has_reordering && is_in_repair || window.rtt.latest.is_none() {
            return Time::ZERO;
        }
        let quarter = Time::from_ps(window.rtt.least.as_ps() / 4);
        Time::from_ps(quarter.as_ps().saturating_mul(self.quarters)).min(window.rtt.smoothed)
    }

    /// Adapts the reordering window to reported duplicates: a segment that arrived twice was sent again too early.
    fn adapt(&mut self, window: &mut Window) {
        // The RFC counts only segments that were never sent again as reordered. Where every late segment is sent again, as here,
        // reordering would never be seen and the adaptation by DSACK would have no effect. Linux also takes such a report as
        // reordering (tcp_sacktag_one).
        window.records.recent.has_reordering |= std::mem::take(&mut self.was_impatient);
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# If RACK.dsack_round is not None AND SND.UNA >= RACK.dsack_round: RACK.dsack_round = None
        //# If RACK.dsack_round is None AND any DSACK option is present on latest received ACK:
        //# RACK.dsack_round = SND.NXT. RACK.reo_wnd_mult += 1. RACK.reo_wnd_persist = 16
        if self.round_end.is_some_and(|end| window.una >= end) {
            self.round_end = None;
        }
        if std::mem::take(&mut self.has_duplicate_report) && self.round_end.is_none() {
            self.round_end = Some(window.max);
            self.quarters += 1;
            self.persists = PERSISTENCE;
        }
    }

    /// Ends fast recovery, or the recovery from a timeout.
    fn end_recovery(&mut self) {
        self.is_in_loss = false;
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# Else if exiting Fast or RTO recovery: RACK.reo_wnd_persist -= 1.
        //# If RACK.reo_wnd_persist <= 0: RACK.reo_wnd_mult = 1
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// Sets the timer of a probe, unless one for a loss is set. With `is_running`, the present timer is kept while a probe may
    /// be sent.
    fn arm_probe(&mut self, window: &mut Window, is_running: bool) {
        if window.alarm.at != Time::NEVER && !window.alarm.is_probe {
            return;
        }
        let at = self.probe.deadline(window);
        if at == Time::NEVER || !is_running {
            window.alarm = Alarm { at, is_probe: at != Time::NEVER };
        }
    }
}
