//! The states outside the cycle: startup, drain and the measurement of the round-trip time.

use super::bounds::is_too_much;
use super::{AckPhase, Bbr3, LEAST_CWND, PROBE_RTT_GAIN, STARTUP_GAIN, State};
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Phase, Window};
use crate::time::Time;

/// The pipe is full after this many rounds without such growth.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// BBRStartupFullLossCnt: number of lost ranges in a round that ends startup.
const STARTUP_LOST_RANGES: u32 = 6;
/// Largest number of rounds of draining.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr3 {
    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_rounds = 0;
        self.is_full_now = false;
    }

    /// CheckFullBWReached of the draft.
    pub(super) fn check_full(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate else { return };
        if self.is_full_now || !self.rounds.is_start || sample.is_app_limited {
            return;
        }
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.1.2
        //# if (RS.delivery_rate >= BBR.full_bw * 1.25)
        //#   ResetFullBW() /* bw is still growing, so reset */
        if rate >= FULL_GROWTH * self.full_bw {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_rounds += 1;
        self.is_full_now = self.full_rounds >= FULL_ROUNDS;
        self.is_pipe_full |= self.is_full_now;
    }

    /// CheckStartupDone of the draft.
    pub(super) fn check_startup_done(&mut self, window: &Window, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_high_loss(window, sample);
        if self.is_pipe_full {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    fn check_startup_high_loss(&mut self, window: &Window, sample: &Sample) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.1.3
        //# The connection has been in fast recovery for at least one full packet-timed round trip. [...] The loss rate
        //# over the time scale of a single full round trip exceeds BBR.LossThresh (2%). [...] There are at least
        //# BBRStartupFullLossCnt=6 discontiguous sequence ranges lost in that round trip.
        let is_high = !self.is_pipe_full
            && self.is_loss_round_start
            && window.phase == Phase::Recovery
            && self.lost_ranges >= STARTUP_LOST_RANGES
            && is_too_much(sample.lost_since as f64, sample.sent_in_flight as f64);
        if is_high {
            self.undo.state = Some(State::Startup);
            (self.is_pipe_full, self.is_full_now) = (true, true);
            //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.1.3
            //# it sets BBR.inflight_longterm to [...] max(BBR.bdp, BBR.inflight_latest)
            self.inflight_longterm = self.bdp(window, self.bw, 1.0).max(self.inflight_latest);
        }
        if self.is_loss_round_start {
            self.lost_ranges = 0;
        }
    }

    /// CheckDrainDone of the draft.
    pub(super) fn check_drain_done(&mut self, window: &Window, sample: &Sample) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.2
        //# (C.inflight <= Inflight(1.0) || BBR.round_count > BBR.drain_start_round + 3)
        let is_done = sample.in_flight as f64 <= self.target(window, self.bw)
            || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && is_done {
            self.enter_probe_bw(window);
        }
    }

    /// UpdateMinRTT and CheckProbeRTT of the draft.
    pub(super) fn probe_rtt_if_due(&mut self, window: &mut Window, sample: &Sample) {
        let is_expired = self.model.is_min_rtt_old(sample.now);
        if is_expired && self.state != State::ProbeRtt {
            //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.4.3
            //# Snapshot the ProbeRTT cwnd target from the pre-expiration BBR.min_rtt, before a possibly inflated sample
            //# replaces it
            let cwnd = self.bdp(window, self.bw, PROBE_RTT_GAIN);
            self.probe_rtt_cwnd = cwnd.max(LEAST_CWND * window.mss_f64());
        }
        if let Some(rtt) = sample.rtt
            && (rtt < self.model.min_rtt || is_expired)
        {
            (self.model.min_rtt, self.model.min_rtt_at) = (rtt, sample.now);
        }
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.4.2
        //# when restarting from idle and finding that the BBR.min_rtt estimate has expired, BBR does not enter ProbeRTT
        if self.state != State::ProbeRtt && is_expired && !self.is_restarting {
            self.save_cwnd(window);
            self.state = State::ProbeRtt;
            self.probe_rtt_until = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart(sample.delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(window, sample);
        }
        if sample.delivered_since > 0 {
            self.is_restarting = false;
        }
    }

    fn handle_probe_rtt(&mut self, window: &mut Window, sample: &Sample) {
        window.records.mark_app_limited(); // low rates say nothing here
        if self.probe_rtt_until.is_some() {
            self.has_probe_rtt_round |= self.rounds.is_start;
            if self.has_probe_rtt_round {
                self.check_probe_rtt_done(window, sample.now);
            }
        } else if sample.in_flight as f64 <= self.probe_rtt_cwnd {
            self.probe_rtt_until = Some(sample.now + self.model.probe_rtt);
            self.has_probe_rtt_round = false;
            self.rounds.restart(sample.delivered);
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT of the draft.
    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Time) {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        self.model.min_rtt_at = now; // the next measurement is due a whole window later
        self.restore_cwnd(window);
        self.reset_short_term_model();
        if self.is_pipe_full {
            // The next probe is postponed, but little enough is in flight to cruise.
            self.start_down(window);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// Sets the first pacing rate once a round-trip time is known.
    pub(super) fn begin_pacing(&mut self, window: &Window) {
        if !self.has_rtt && window.rtt.smoothed > Time::ZERO {
            self.has_rtt = true;
            self.model.begin_pacing(window, STARTUP_GAIN);
        }
    }
}
