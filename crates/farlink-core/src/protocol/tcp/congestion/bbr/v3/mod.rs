//! BBR version 3 (draft-ietf-ccwg-bbr): as version 1, but losses of more than two percent bound the data in flight.
//!
//! Names follow the draft. The ECN extension of its predecessors is not part of it.

mod bounds;
mod cycle;
mod states;
#[cfg(test)]
mod tests;

use super::filter::WindowedMax;
use super::{Model, Rounds};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::Control;
use crate::protocol::tcp::flight::{Lost, Sample};
use crate::protocol::tcp::window::{Phase, Window};
use crate::rng::Rng;
use crate::time::Time;

/// BBR.StartupPacingGain: 4 ln 2, the smallest gain that doubles the rate each round.
const STARTUP_GAIN: f64 = 2.77;
/// BBR.DrainPacingGain.
const DRAIN_GAIN: f64 = 0.5;
/// BBR.DefaultCwndGain.
const CWND_GAIN: f64 = 2.0;
/// BBR.LossThresh: the largest share of data that may be lost in a round trip.
const LOSS_THRESHOLD: f64 = 0.02;
/// BBR.Beta: the share of a bound that remains at least after a round with losses.
const BETA: f64 = 0.7;
/// BBR.Headroom: share of the data in flight that is left to other flows.
const HEADROOM: f64 = 0.15;
/// BBR.MinPipeCwnd, segments.
const LEAST_CWND: f64 = 4.0;
/// BBR.ExtraAckedFilterLen, rounds.
const EXTRA_ROUNDS: u64 = 10;
/// BBR.ProbeRTTCwndGain.
const PROBE_RTT_GAIN: f64 = 0.5;

/// BBR.state: the state of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Doubles the rate each round until it stops growing or too much data is lost.
    Startup,
    /// Drains the queue that startup has filled.
    Drain,
    /// Sends slightly less than is delivered, until the queue is empty and there is headroom.
    Down,
    /// Sends at the delivery rate.
    Cruise,
    /// Sends at the known bandwidth for a round, to fill the pipe.
    Refill,
    /// Sends more, to probe for bandwidth.
    Up,
    /// Halves the data in flight to measure the round-trip time.
    ProbeRtt,
}

impl State {
    fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// IsProbingBW of the draft: in these states losses have an effect at once or not at all.
    fn is_accelerating(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.6.1
    //# BBR uses the values in the table below to compute BBR.bw in BoundBWForModel(), and C.cwnd in BoundCwndForModel()
    fn pacing_gain(self) -> f64 {
        match self {
            State::Startup => STARTUP_GAIN,
            State::Drain => DRAIN_GAIN,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
            State::Up => 1.25,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            State::Up => 2.25,
            State::ProbeRtt => PROBE_RTT_GAIN,
            _ => CWND_GAIN,
        }
    }
}

/// BBR.ack_phase: the part of the probe for bandwidth to which present acknowledgements belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// Nothing.
    Init,
    /// They will soon show the effect of the full pipe.
    Refilling,
    /// They will soon show the effect of the probe.
    ProbeStarting,
    /// They show the effect of the probe.
    ProbeFeedback,
    /// They show the last effects of the probe.
    ProbeStopping,
}

/// State that is restored after a spurious loss.
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// BBR version 3.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Bbr3 {
    pub(super) state: State,
    model: Model,
    random: Rng,
    rounds: Rounds,
    /// BBR.max_bw_filter: the largest rate of the last cycle and of this one, bytes per second.
    max_bw: [f64; 2],
    /// BBR.bw: the sending rate before gains.
    bw: f64,
    bw_shortterm: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    extra_acked: WindowedMax,
    extra_since: Time,
    extra_delivered: f64,
    is_pipe_full: bool,
    is_full_now: bool,
    full_bw: f64,
    full_rounds: u32,
    drain_start_round: u64,
    /// Losses in this round.
    is_loss_in_round: bool,
    loss_round_ends_with: u64,
    is_loss_round_start: bool,
    lost_ranges: u32,
    last_lost_end: u64,
    /// State of the probe for bandwidth.
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_wait: Time,
    cycle_at: Time,
    rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    was_probe_too_high: bool,
    was_probe_precautionary: bool,
    /// C.is_cwnd_limited: whether the window was full in this round or in the last.
    is_cwnd_full: [bool; 2],
    probe_rtt_cwnd: f64,
    probe_rtt_until: Option<Time>,
    has_probe_rtt_round: bool,
    is_restarting: bool,
    has_rtt: bool,
    prior_cwnd: f64,
    last_phase: Phase,
    undo: Undo,
}

impl Bbr3 {
    pub(in crate::protocol::tcp::congestion) fn new(config: &TcpConfig) -> Self {
        let initial_cwnd = (config.initial_window_segments.whole() * config.segment_bytes.whole()) as f64;
        Bbr3 {
            state: State::Startup,
            model: Model::new(config),
            random: Rng::for_component(0, 0, "bbr3"),
            rounds: Rounds::default(),
            max_bw: [0.0; 2],
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            extra_acked: WindowedMax::default(),
            extra_since: Time::ZERO,
            extra_delivered: 0.0,
            is_pipe_full: false,
            is_full_now: false,
            full_bw: 0.0,
            full_rounds: 0,
            drain_start_round: 0,
            is_loss_in_round: false,
            loss_round_ends_with: 0,
            is_loss_round_start: false,
            lost_ranges: 0,
            last_lost_end: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_wait: Time::ZERO,
            cycle_at: Time::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            was_probe_too_high: false,
            was_probe_precautionary: false,
            is_cwnd_full: [false; 2],
            probe_rtt_cwnd: initial_cwnd,
            probe_rtt_until: None,
            has_probe_rtt_round: false,
            is_restarting: false,
            has_rtt: false,
            prior_cwnd: 0.0,
            last_phase: Phase::Open,
            undo: Undo { state: None, bw_shortterm: 0.0, inflight_shortterm: 0.0, inflight_longterm: 0.0 },
        }
    }

    /// BBR.max_bw, bytes per second.
    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BDPMultiple of the draft: the bandwidth-delay product at a rate, times a gain.
    fn bdp(&self, window: &Window, rate: f64, gain: f64) -> f64 {
        if self.model.min_rtt == Time::NEVER {
            return window.initial_cwnd;
        }
        gain * rate * self.model.min_rtt.as_secs_f64()
    }

    /// QuantizationBudget of the draft.
    fn with_budget(&self, window: &Window, bytes: f64) -> f64 {
        let mss = window.mss_f64();
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.8.1
        //# BBR.offload_budget = 3 * C.send_quantum
        let bytes = bytes.max(3.0 * self.model.quantum(window)).max(LEAST_CWND * mss);
        if self.state == State::Up { bytes + 2.0 * mss } else { bytes }
    }

    /// Inflight of the draft, at a rate.
    fn target(&self, window: &Window, rate: f64) -> f64 {
        self.with_budget(window, self.bdp(window, rate, 1.0))
    }

    /// SaveCwnd of the draft: remembers the window if it was not reduced.
    fn save_cwnd(&mut self, window: &Window) {
        let is_good = window.phase == Phase::Open && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn restore_cwnd(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
    }

    fn set_pacing_rate(&mut self, gain: f64) {
        self.model.pace(gain * self.bw, self.is_pipe_full);
    }

    /// SetCwnd of the draft.
    fn set_cwnd(&mut self, window: &mut Window, sample: &Sample) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.6.4.4
        //# When BBR exits loss recovery it restores C.cwnd to the "last known good" value that C.cwnd held before
        //# entering recovery.
        let last = std::mem::replace(&mut self.last_phase, window.phase);
        if last != Phase::Open && window.phase == Phase::Open {
            self.restore_cwnd(window);
        }
        let acked = sample.newly_delivered as f64;
        let mss = window.mss_f64();
        let most = self.bdp(window, self.bw, self.state.cwnd_gain()) + self.extra_acked.get();
        let most = self.with_budget(window, most);
        if self.is_pipe_full {
            window.cwnd = (window.cwnd + acked).min(most);
        } else if window.cwnd < most || (sample.delivered as f64) < window.initial_cwnd {
            window.cwnd += acked;
        }
        window.cwnd = window.cwnd.max(LEAST_CWND * mss);
        if self.state == State::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd);
        }
        self.bound_cwnd(window);
        window.cwnd = window.cwnd.min(window.cwnd_cap);
    }

    /// BoundCwndForModel of the draft.
    fn bound_cwnd(&self, window: &mut Window) {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(window),
            State::Startup | State::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(LEAST_CWND * window.mss_f64());
        window.cwnd = window.cwnd.min(cap);
    }

    /// Whether the window was full at any time in the last round.
    fn note_cwnd_full(&mut self, window: &Window, sample: &Sample) {
        let is_full = (sample.prior_in_flight + u64::from(window.mss)) as f64 > window.cwnd;
        if self.rounds.is_start {
            self.is_cwnd_full = [false, self.is_cwnd_full[0]];
        }
        self.is_cwnd_full[0] |= is_full;
    }

    fn is_cwnd_limited(&self) -> bool {
        self.is_cwnd_full[0] || self.is_cwnd_full[1]
    }
}

impl Control for Bbr3 {
    fn on_acknowledged(&mut self, _window: &mut Window, _acked: u64) {}

    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.6.4.4
    //# OnEnterFastRecovery(): SaveCwnd() SaveStateUponLoss()
    fn on_loss(&mut self, window: &Window, _flight: u64) -> f64 {
        self.save_state_upon_loss(window);
        window.ssthresh
    }

    fn on_mark(&mut self, window: &Window, _flight: u64) -> f64 {
        window.ssthresh.max(window.cwnd) // the draft does not use marks
    }

    fn on_timeout(&mut self, window: &Window, _flight: u64) -> f64 {
        self.save_state_upon_loss(window);
        self.last_phase = Phase::Loss;
        window.ssthresh
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn begin_recovery(&mut self, _window: &mut Window) {}

    fn end_recovery(&mut self, _window: &mut Window) {}

    fn wants_samples(&self) -> bool {
        true
    }

    fn seed(&mut self, random: Rng) {
        self.random = random;
    }

    fn on_established(&mut self, window: &mut Window) {
        self.model.begin(window);
        self.has_rtt = window.rtt.smoothed > Time::ZERO;
        self.model.begin_pacing(window, STARTUP_GAIN);
        self.extra_since = window.now;
        self.rounds.restart(window.records.delivered());
    }

    fn on_lost(&mut self, window: &mut Window, lost: &Lost) {
        self.handle_lost(window, lost);
    }

    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.2.3
    //# On every ACK, the BBR algorithm executes the following UpdateOnACK() steps in order to update its network path
    //# model, update its state machine, and adjust its control parameters to adapt to the updated model
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(window, sample);
        self.note_cwnd_full(window, sample);
        self.update_ack_aggregation(window, sample);
        self.check_full(sample);
        self.check_startup_done(window, sample);
        self.check_drain_done(window, sample);
        self.update_cycle(window, sample);
        self.probe_rtt_if_due(window, sample);
        self.advance_latest_delivery_signals(sample);
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.begin_pacing(window);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(window, sample);
    }

    //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.4.1
    //# when restarting from idle in ProbeBW states, BBR leaves C.cwnd as-is and paces packets at exactly BBR.bw
    fn on_restart(&mut self, window: &mut Window) {
        self.is_restarting = true;
        self.extra_since = window.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(window, window.now);
        }
    }

    fn on_spurious_loss(&mut self, window: &Window) {
        self.undo_loss(window);
    }

    fn restarts_after_idle(&self) -> bool {
        false
    }

    fn pacing_rate(&self, _window: &Window) -> Option<f64> {
        Some(self.model.pacing_rate)
    }

    fn bandwidth(&self) -> Option<f64> {
        (self.bw > 0.0).then_some(self.bw)
    }
}
