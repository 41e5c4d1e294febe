//! The model of the path from deliveries and losses: the bandwidth, and the bounds of the data in flight.

use super::{BETA, Bbr3, EXTRA_ROUNDS, HEADROOM, LEAST_CWND, LOSS_THRESHOLD, State};
use crate::protocol::tcp::flight::{Lost, Sample};
use crate::protocol::tcp::window::Window;

impl Bbr3 {
    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.10.3
    //# Near start of ACK processing
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &Sample) {
        self.is_loss_round_start = false;
        if sample.delivered_since == 0 {
            return;
        }
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered_since as f64);
        if sample.prior_delivered >= self.loss_round_ends_with {
            self.loss_round_ends_with = sample.delivered;
            self.is_loss_round_start = true;
        }
    }

    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.is_loss_round_start {
            self.bw_latest = sample.rate.unwrap_or(0.0);
            self.inflight_latest = sample.delivered_since as f64;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn update_congestion_signals(&mut self, window: &Window, sample: &Sample) {
        self.update_max_bw(sample);
        if self.is_loss_round_start {
            self.adapt_lower_bounds(window);
            self.is_loss_in_round = false;
        }
    }

    fn update_max_bw(&mut self, sample: &Sample) {
        self.rounds.is_start = false;
        // An interval shorter than any round trip gives neither a rate nor a round, because it is unknown which transmission was
        // acknowledged.
        let Some(rate) = sample.rate else { return };
        self.rounds.update(sample);
        self.rounds_since_probe_up += u64::from(self.rounds.is_start);
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.5
        //# if (RS.delivery_rate > 0 && (RS.delivery_rate >= BBR.max_bw || !RS.is_app_limited))
        if rate > 0.0 && (rate >= self.max_bw() || !sample.is_app_limited) {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
    }

    /// AdvanceMaxBwFilter of the draft: forgets the rates of the cycle before the last, unless the present cycle has none.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// AdaptLowerBoundsFromCongestion of the draft, once per round.
    fn adapt_lower_bounds(&mut self, window: &Window) {
        if self.state.is_accelerating() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm == f64::INFINITY {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == f64::INFINITY {
            self.inflight_shortterm = window.cwnd;
        }
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.10.3
        //# BBR.bw_shortterm = max(BBR.bw_latest, BBR.Beta * BBR.bw_shortterm)
        //# BBR.inflight_shortterm = max(BBR.inflight_latest, BBR.Beta * BBR.inflight_shortterm)
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.9
    //# For each ACK, the algorithm computes a sample of the estimated extra ACKed data beyond the amount of data that the
    //# sender expected to be ACKed over the timescale of a round trip, given the BBR.bw.
    pub(super) fn update_ack_aggregation(&mut self, window: &Window, sample: &Sample) {
        let mut expected = self.bw * sample.now.since(self.extra_since).as_secs_f64();
        if self.extra_delivered <= expected {
            (self.extra_delivered, self.extra_since) = (0.0, sample.now);
            expected = 0.0;
        }
        self.extra_delivered += sample.newly_delivered as f64;
        let extra = (self.extra_delivered - expected).min(window.cwnd);
        let rounds = if self.is_pipe_full { EXTRA_ROUNDS } else { 1 };
        self.extra_acked.update(rounds, self.rounds.count, extra);
    }

    /// SaveStateUponLoss of the draft.
    pub(super) fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        self.undo = super::Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// HandleLostPacket of the draft.
    pub(super) fn handle_lost(&mut self, window: &Window, lost: &Lost) {
        if !self.is_loss_in_round {
            self.loss_round_ends_with = lost.delivered;
            self.save_state_upon_loss(window);
            self.lost_ranges = 0;
        }
        self.is_loss_in_round = true;
        self.lost_ranges += u32::from(lost.start != self.last_lost_end || self.lost_ranges == 0);
        self.last_lost_end = lost.start + lost.len;
        if self.is_bw_probe_sample && is_too_much(lost.lost_since as f64, lost.sent_in_flight as f64) {
            self.handle_inflight_too_high(window, in_flight_at_loss(lost), lost.is_app_limited);
        }
    }

    /// HandleInflightTooHigh of the draft.
    fn handle_inflight_too_high(&mut self, window: &Window, in_flight: f64, is_app_limited: bool) {
        self.was_probe_too_high = true;
        self.is_bw_probe_sample = false; // once per probe
        if !is_app_limited {
            //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.10.2
            //# BBR.inflight_longterm = max(RS.tx_in_flight, TargetInflight() * BBR.Beta)
            self.inflight_longterm = in_flight.max(BETA * self.target_inflight(window));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(window);
        }
    }

    /// TargetInflight of the draft: the bytes that should be in flight, unless congestion reduced the window.
    pub(super) fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp(window, self.bw, 1.0).min(window.cwnd)
    }

    /// InflightWithHeadroom of the draft.
    pub(super) fn inflight_with_headroom(&self, window: &Window) -> f64 {
        let mss = window.mss_f64();
        let headroom = (HEADROOM * self.inflight_longterm).max(mss);
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        (self.inflight_longterm - headroom).max(LEAST_CWND * mss)
    }

    /// HandleSpuriousLossDetection of the draft; the caller restores the window.
    pub(super) fn undo_loss(&mut self, window: &Window) {
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.is_pipe_full = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => self.start_refill(window),
            _ => {}
        }
    }
}

//= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.10.2
//# return ((RS.lost > RS.tx_in_flight * BBR.LossThresh) || (RS.lost > 0 && !C.has_selective_acks))
/// Whether more of the data in flight was lost than a path may lose.
pub(super) fn is_too_much(lost: f64, in_flight: f64) -> bool {
    lost > LOSS_THRESHOLD * in_flight
}

/// InflightAtLoss of the draft: the bytes in flight when the losses became too many.
fn in_flight_at_loss(lost: &Lost) -> f64 {
    let in_flight_before = lost.sent_in_flight.saturating_sub(lost.len) as f64;
    let lost_before = lost.lost_since.saturating_sub(lost.len) as f64;
    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.10.2
    //# lost_prefix = (BBR.LossThresh * inflight_prev - lost_prev) / (1 - BBR.LossThresh)
    let prefix = (LOSS_THRESHOLD * in_flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
    in_flight_before + prefix.max(0.0)
}
