//! BBR version 1 as in Linux (net/ipv4/tcp_bbr.c; N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM
//! Queue 14(5), 2016). The model sets the sending rate regardless of losses, except behind a policer.

#[cfg(test)]
mod tests;

use super::filter::WindowedMax;
use super::policer::{Policer, Verdict};
use super::{Aggregation, Model, Rounds};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::Control;
use crate::protocol::tcp::flight::{Lost, Sample};
use crate::protocol::tcp::window::{Phase, Window};
use crate::rng::Rng;
use crate::time::Time;

/// `bbr_high_gain`: 2/ln 2, the smallest gain that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// `bbr_cwnd_gain`: room for delayed and stretched acknowledgements.
const CWND_GAIN: f64 = 2.0;
/// `bbr_pacing_gain`: probe for more bandwidth, drain the resulting queue, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `bbr_bw_rtts`: rounds of the bandwidth filter.
const BANDWIDTH_ROUNDS: u64 = 10;
/// `bbr_full_bw_thresh`, `bbr_full_bw_cnt`: the pipe is full after this many rounds without such growth.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// `bbr_cwnd_min_target`, segments.
const LEAST_CWND: f64 = 4.0;
/// `bbr_extra_acked_max_us`: limit of the compensation for aggregated acknowledgements, in seconds at the bandwidth.
const MOST_EXTRA_S: f64 = 0.1;

/// The state of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubles the rate each round until it stops growing.
    Startup,
    /// Drains the queue that startup has filled.
    Drain,
    /// Cycles the pacing gain around 1.
    ProbeBw,
    /// Almost stops sending, to measure the round-trip time.
    ProbeRtt,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Bbr {
    pub(super) mode: Mode,
    model: Model,
    bandwidth: WindowedMax,
    rounds: Rounds,
    policer: Policer,
    extra: Aggregation,
    /// The bandwidth with which growth is compared, and the number of rounds without growth.
    full_bandwidth: f64,
    full_rounds: u32,
    pub(super) is_pipe_full: bool,
    pub(super) cycle_index: usize,
    cycle_at: Time,
    pub(super) pacing_gain: f64,
    cwnd_gain: f64,
    has_rtt: bool,
    /// The window before a loss or ProbeRTT reduced it.
    prior_cwnd: f64,
    /// The phase at the previous sample.
    last_phase: Phase,
    conserves_packets: bool,
    is_restarting: bool,
    /// When ProbeRTT may end; `None` until the pipe is drained.
    probe_rtt_until: Option<Time>,
    has_probe_rtt_round: bool,
    random: Rng,
}

impl Bbr {
    pub(in crate::protocol::tcp::congestion) fn new(config: &TcpConfig) -> Self {
        Bbr {
            mode: Mode::Startup,
            model: Model::new(config),
            bandwidth: WindowedMax::default(),
            rounds: Rounds::default(),
            policer: Policer::default(),
            extra: Aggregation::default(),
            full_bandwidth: 0.0,
            full_rounds: 0,
            is_pipe_full: false,
            cycle_index: 0,
            cycle_at: Time::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            has_rtt: false,
            prior_cwnd: 0.0,
            last_phase: Phase::Open,
            conserves_packets: false,
            is_restarting: false,
            probe_rtt_until: None,
            has_probe_rtt_round: false,
            random: Rng::for_component(0, 0, "bbr"),
        }
    }

    /// `bbr_bw`: the bandwidth of the path, bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    /// `bbr_bdp`: the bandwidth-delay product at a rate, times a gain, in whole segments.
    fn pipe(&self, window: &Window, rate: f64, gain: f64) -> f64 {
        if self.model.min_rtt == Time::NEVER {
            return window.initial_cwnd;
        }
        let mss = window.mss_f64();
        libm::ceil(gain * rate * self.model.min_rtt.as_secs_f64() / mss) * mss
    }

    /// `bbr_quantization_budget`: adds room for segments that the hosts handle in bursts.
    fn with_budget(&self, window: &Window, bytes: f64) -> f64 {
        let mss = window.mss_f64();
        // An even number of segments, because the receiver acknowledges every second one.
        let even = 2.0 * libm::ceil((bytes + 3.0 * self.model.quantum(window)) / mss / 2.0) * mss;
        if self.mode == Mode::ProbeBw && self.cycle_index == 0 { even + 2.0 * mss } else { even }
    }

    /// `bbr_inflight`: the bytes in flight for a gain.
    fn target(&self, window: &Window, gain: f64) -> f64 {
        self.with_budget(window, self.pipe(window, self.bandwidth.get(), gain))
    }

    /// `bbr_packets_in_net_at_edt`: the bytes in flight when the next segments leave. Data that arrives until then is less than a
    /// quantum and neglected.
    fn in_flight_at_departure(&self, window: &Window, in_flight: u64) -> f64 {
        let departing = if self.pacing_gain > 1.0 { self.model.quantum(window) } else { 0.0 };
        in_flight as f64 + departing
    }

    /// `bbr_update_bw`.
    fn update_bandwidth(&mut self, sample: &Sample) {
        self.rounds.is_start = false;
        let Some(rate) = sample.rate else { return };
        self.rounds.update(sample);
        if self.rounds.is_start {
            self.conserves_packets = false;
        }
        self.look_for_policer(sample);
        // A rate that is limited by the application is only a lower bound of the bandwidth.
        if !sample.is_app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, rate);
        }
    }

    fn look_for_policer(&mut self, sample: &Sample) {
        match self.policer.update(sample, self.rounds.is_start, self.mode == Mode::ProbeBw) {
            Verdict::GoOn => {}
            Verdict::Policed => self.pacing_gain = 1.0,
            Verdict::Expired => self.begin_probe_bw(sample.now),
        }
    }

    /// `bbr_update_cycle_phase`.
    fn update_cycle(&mut self, window: &Window, sample: &Sample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let is_full_length = sample.now.since(self.cycle_at) > self.model.min_rtt;
        let in_flight = self.in_flight_at_departure(window, sample.prior_in_flight);
        let is_over = if self.pacing_gain > 1.0 {
            // Until the pipe holds the target, or until losses show that it cannot.
            is_full_length && (sample.newly_lost > 0 || in_flight >= self.target(window, self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            is_full_length || in_flight <= self.target(window, 1.0)
        } else {
            is_full_length
        };
        if is_over {
            self.advance_cycle(sample.now);
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    /// `bbr_reset_probe_bw_mode`: the cycle begins at a random phase other than the draining one.
    fn begin_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cycle_index = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.advance_cycle(now);
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full(&mut self, sample: &Sample) {
        if self.is_pipe_full || !self.rounds.is_start || sample.is_app_limited {
            return;
        }
        if self.bandwidth.get() >= FULL_GROWTH * self.full_bandwidth {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_pipe_full = self.full_rounds >= FULL_ROUNDS;
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, window: &mut Window, sample: &Sample) {
        if self.mode == Mode::Startup && self.is_pipe_full {
            self.mode = Mode::Drain;
            window.ssthresh = self.target(window, 1.0);
        }
        let in_flight = self.in_flight_at_departure(window, sample.in_flight);
        if self.mode == Mode::Drain && in_flight <= self.target(window, 1.0) {
            self.begin_probe_bw(sample.now);
        }
    }

    /// `bbr_update_min_rtt`.
    fn update_min_rtt(&mut self, window: &mut Window, sample: &Sample) {
        let is_expired = self.model.is_min_rtt_old(sample.now);
        // A single segment in flight may be acknowledged late, because the receiver waits for a second one.
        let is_delayed = sample.sent_in_flight <= u64::from(window.mss);
        if let Some(rtt) = sample.rtt
            && (rtt < self.model.min_rtt || is_expired && !is_delayed)
        {
            (self.model.min_rtt, self.model.min_rtt_at) = (rtt, sample.now);
        }
        if is_expired && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            window.records.mark_app_limited(); // low rates say nothing here
            if self.probe_rtt_until.is_some() {
                self.has_probe_rtt_round |= self.rounds.is_start;
                if self.has_probe_rtt_round {
                    self.check_probe_rtt_done(window, sample.now);
                }
            } else if sample.in_flight as f64 <= LEAST_CWND * window.mss_f64() {
                self.probe_rtt_until = Some(sample.now + self.model.probe_rtt);
                self.has_probe_rtt_round = false;
                self.rounds.restart(sample.delivered);
            }
        }
        if sample.delivered_since > 0 {
            self.is_restarting = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Time) {
        if self.probe_rtt_until.is_some_and(|until| now > until) {
            self.model.min_rtt_at = now; // the next measurement is due a whole window later
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            if self.is_pipe_full {
                self.begin_probe_bw(now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_index], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    /// `bbr_set_pacing_rate`.
    fn set_pacing_rate(&mut self, window: &Window, gain: f64) {
        if !self.has_rtt && window.rtt.smoothed > Time::ZERO {
            self.has_rtt = true;
            self.model.begin_pacing(window, HIGH_GAIN);
        }
        self.model.pace(gain * self.rate(), self.is_pipe_full);
    }

    /// `bbr_save_cwnd`: remembers the window if it was not reduced.
    fn save_cwnd(&mut self, window: &Window) {
        let is_good = self.last_phase == Phase::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_good { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: in the first round of a recovery one segment is sent for each that arrived; then the
    /// window is restored. Returns whether the window is set.
    fn recover_or_restore(&mut self, window: &mut Window, sample: &Sample) -> bool {
        let mss = window.mss_f64();
        if sample.newly_lost > 0 {
            window.cwnd = (window.cwnd - sample.newly_lost as f64).max(mss);
        }
        let conserved = (sample.in_flight + sample.newly_delivered) as f64;
        let last = std::mem::replace(&mut self.last_phase, window.phase);
        if window.phase == Phase::Recovery && last != Phase::Recovery {
            self.conserves_packets = true;
            self.rounds.restart(sample.delivered);
            window.cwnd = conserved;
        } else if window.phase == Phase::Open && last != Phase::Open {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.conserves_packets = false;
        }
        if self.conserves_packets {
            window.cwnd = window.cwnd.max(conserved);
        }
        self.conserves_packets
    }

    /// `bbr_set_cwnd`.
    fn set_cwnd(&mut self, window: &mut Window, sample: &Sample) {
        let least = LEAST_CWND * window.mss_f64();
        if sample.newly_delivered > 0 && !self.recover_or_restore(window, sample) {
            let acked = sample.newly_delivered as f64;
            let mut target = self.pipe(window, self.rate(), self.cwnd_gain);
            if self.is_pipe_full {
                target += self.extra.get().min(self.rate() * MOST_EXTRA_S);
            }
            let target = self.with_budget(window, target);
            if self.is_pipe_full {
                window.cwnd = (window.cwnd + acked).min(target);
            } else if window.cwnd < target || (sample.delivered as f64) < window.initial_cwnd {
                window.cwnd += acked;
            }
            window.cwnd = window.cwnd.max(least);
        }
        window.cwnd = window.cwnd.min(window.cwnd_cap);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(least);
        }
    }
}

impl Control for Bbr {
    fn on_acknowledged(&mut self, _window: &mut Window, _acked: u64) {}

    fn on_loss(&mut self, window: &Window, _flight: u64) -> f64 {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn on_mark(&mut self, window: &Window, flight: u64) -> f64 {
        // Linux responds to the mark (`tcp_enter_cwr`), but its BBR sets the window itself in every state and ignores marks.
        self.on_loss(window, flight).max(window.cwnd)
    }

    fn on_timeout(&mut self, window: &Window, _flight: u64) -> f64 {
        self.save_cwnd(window);
        // `bbr_set_state`: the pipe may carry more than was measured during the interruption.
        self.last_phase = Phase::Loss;
        self.full_bandwidth = 0.0;
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
        self.model.begin_pacing(window, HIGH_GAIN);
        self.rounds.restart(window.records.delivered());
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.update_bandwidth(sample);
        self.extra.update(&self.rounds, sample, self.policer.rate().unwrap_or(self.bandwidth.get()), window.cwnd);
        self.update_cycle(window, sample);
        self.check_full(sample);
        self.check_drain(window, sample);
        self.update_min_rtt(window, sample);
        self.update_gains();
        self.set_pacing_rate(window, self.pacing_gain);
        self.set_cwnd(window, sample);
    }

    fn on_lost(&mut self, _window: &mut Window, lost: &Lost) {
        self.policer.note_lost(lost.len);
    }

    /// `bbr_cwnd_event`: after an idle period the sender does not need to probe.
    fn on_restart(&mut self, window: &mut Window) {
        self.is_restarting = true;
        self.extra.restart(window.now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(window, 1.0),
            Mode::ProbeRtt => self.check_probe_rtt_done(window, window.now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// `bbr_undo_cwnd`: the pipe was not as full as the spurious loss suggested.
    fn on_spurious_loss(&mut self, _window: &Window) {
        (self.full_bandwidth, self.full_rounds) = (0.0, 0);
        self.policer = Policer::default();
    }

    fn restarts_after_idle(&self) -> bool {
        false
    }

    fn pacing_rate(&self, _window: &Window) -> Option<f64> {
        Some(self.model.pacing_rate)
    }

    fn bandwidth(&self) -> Option<f64> {
        (self.rate() > 0.0).then(|| self.rate())
    }
}
