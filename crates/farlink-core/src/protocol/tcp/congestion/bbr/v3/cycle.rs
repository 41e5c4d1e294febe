//! The cycle that probes for bandwidth: down, cruise, refill, up (ProbeBW of the draft, section 5.3.3).

use super::bounds::is_too_much;
use super::{AckPhase, Bbr3, State};
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::Window;
use crate::time::Time;

/// Largest number of rounds between probes, for coexistence with Reno and CUBIC.
const MOST_ROUNDS: f64 = 63.0;
/// Shortest time between probes, and largest random addition to it, seconds.
const LEAST_WAIT_S: f64 = 2.0;
const CHANCE_WAIT_S: f64 = 1.0;

impl Bbr3 {
    pub(super) fn enter_probe_bw(&mut self, window: &Window) {
        self.start_down(window);
    }

    pub(super) fn start_down(&mut self, window: &Window) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.3.5.4
        //# BBR.rounds_since_probe_up = random_int_between(0, 1)
        //# BBR.bw_probe_wait = 2 + random_float_between(0.0, 1.0)
        self.rounds_since_probe_up = self.random.below(2);
        self.bw_probe_wait = Time::from_secs_f64(LEAST_WAIT_S + CHANCE_WAIT_S * self.random.uniform());
        self.cycle_at = window.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart(window.records.delivered());
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, window: &Window) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.was_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.restart(window.records.delivered());
        self.state = State::Refill;
    }

    fn start_up(&mut self, window: &Window, sample: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(window.records.delivered());
        self.reset_full_bw();
        self.full_bw = sample.rate.unwrap_or(0.0);
        self.state = State::Up;
        self.raise_longterm_slope(window);
    }

    /// UpdateProbeBWCyclePhase of the draft.
    pub(super) fn update_cycle(&mut self, window: &Window, sample: &Sample) {
        if !self.is_pipe_full || sample.delivered_since == 0 || self.adapt_long_term_model(window, sample) {
            return;
        }
        match self.state {
            State::Down => {
                if !self.probe_if_due(window) && self.is_time_to_cruise(window, sample) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                self.probe_if_due(window);
            }
            State::Refill => {
                if self.rounds.is_start {
                    self.is_bw_probe_sample = true;
                    self.start_up(window, sample);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(window, sample) {
                    self.was_probe_too_high = false; // not known yet
                    self.start_down(window);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// IsTimeToProbeBW of the draft, and the transition that follows.
    fn probe_if_due(&mut self, window: &Window) -> bool {
        let has_waited = window.now > self.cycle_at + self.bw_probe_wait;
        let reno_rounds = (self.target_inflight(window) / window.mss_f64()).min(MOST_ROUNDS);
        let is_due = has_waited || self.rounds_since_probe_up as f64 >= reno_rounds;
        if is_due {
            self.start_refill(window);
        }
        is_due
    }

    fn is_time_to_cruise(&self, window: &Window, sample: &Sample) -> bool {
        let in_flight = sample.in_flight as f64;
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.3.6
        //# if (C.inflight > InflightWithHeadroom()) return false [...]
        //# if (C.inflight > Inflight(BBR.max_bw, 1.0)) return false
        in_flight <= self.inflight_with_headroom(window) && in_flight <= self.target(window, self.max_bw())
    }

    fn is_time_to_go_down(&mut self, window: &Window, sample: &Sample) -> bool {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.3.6
        //# if (BBR.prev_probe_too_high && C.inflight >= BBR.inflight_longterm)
        //#   BBR.prev_probe_precautionary = true
        //#   return true
        // The bound is reached when there is no room for another segment, before this acknowledgement reduces the data in flight.
        let most = (sample.prior_in_flight + u64::from(window.mss)) as f64;
        if self.was_probe_too_high && most > self.inflight_longterm {
            self.was_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && window.cwnd >= self.inflight_longterm {
            self.reset_full_bw(); // the bound limits the bandwidth
            self.full_bw = sample.rate.unwrap_or(0.0);
            return false;
        }
        self.is_full_now
    }

    /// RaiseInflightLongtermSlope of the draft: doubles the growth each round.
    fn raise_longterm_slope(&mut self, window: &Window) {
        let growth = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (window.cwnd / growth).max(window.mss_f64());
    }

    /// ProbeInflightLongtermUpward of the draft.
    fn probe_longterm_upward(&mut self, window: &Window, sample: &Sample) {
        if !self.is_cwnd_limited() || window.cwnd < self.inflight_longterm {
            return; // the bound is not what limits the sender
        }
        self.bw_probe_up_acked += sample.newly_delivered as f64;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let steps = libm::floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
            self.bw_probe_up_acked -= steps * self.probe_up_acked_per_inc;
            self.inflight_longterm += steps * window.mss_f64();
        }
        if self.rounds.is_start {
            self.raise_longterm_slope(window);
        }
    }

    /// AdaptLongTermModel of the draft; returns `true` if it changed the state.
    fn adapt_long_term_model(&mut self, window: &Window, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.rounds.is_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.rounds.is_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.is_app_limited {
                self.advance_max_bw_filter();
            }
            //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.3.3.4.2
            //# the flow immediately returns to ProbeBW_REFILL to probe for bandwidth again (bypassing the usual cruise
            //# phase)
            if self.state.is_probe_bw() && self.was_probe_precautionary && !self.was_probe_too_high {
                self.start_refill(window);
                return true;
            }
        }
        if is_too_much(sample.lost_since as f64, sample.sent_in_flight as f64)
            || self.inflight_longterm == f64::INFINITY
        {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(sample.sent_in_flight as f64);
        if self.state == State::Up {
            self.probe_longterm_upward(window, sample);
        }
        false
    }
}
