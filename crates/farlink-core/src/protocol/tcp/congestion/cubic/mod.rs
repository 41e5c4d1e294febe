//! CUBIC (RFC 9438): between two losses the window follows a cubic function of time.
//!
//! The curve is stored in bytes and picoseconds, so that an acknowledgement costs one division and no root.

mod config;

pub use config::CubicConfig;

use super::hystart::HyStart;
use super::{Control, standard};
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::flight::Sample;
use crate::protocol::tcp::window::{Window, least};
use crate::time::Time;

const PS_PER_S: f64 = 1e12;

/// A cubic function of time, and the window that Reno would have. Windows are in bytes.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// The window at which the curve is flat; 0 before the first loss.
    w_max: f64,
    /// Time from the start of the stage to that point, ps.
    k: f64,
    /// When this stage of congestion avoidance began, plus the time during which the window was not used; `Time::NEVER` outside
    /// of a stage.
    epoch: Time,
    /// Estimate of Reno's window (W_est).
    w_est: f64,
    /// The window when the slow-start threshold was last set; 0 before.
    cwnd_prior: f64,
}

/// The window as a cubic function of the time since the last loss.
#[derive(Clone, Debug)]
pub(in crate::protocol::tcp) struct Cubic {
    /// C in bytes per cubic picosecond.
    c: f64,
    beta: f64,
    /// Additive increase that gives Reno's average window in spite of beta.
    alpha: f64,
    is_fast_convergent: bool,
    is_reno_friendly: bool,
    curve: Curve,
    /// The curve before the latest loss, which is restored if the loss was spurious.
    before_loss: Curve,
    /// When the latest acknowledgement arrived, or when nothing was in flight last.
    latest: Time,
    hystart: HyStart,
}

impl Cubic {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let CubicConfig { beta, c, fast_convergence, reno_friendly } = config.cubic.unwrap_or_default();
        let beta = beta.get();
        let curve = Curve { w_max: 0.0, k: 0.0, epoch: Time::NEVER, w_est: 0.0, cwnd_prior: 0.0 };
        Cubic {
            c: c.get() * config.segment_bytes.get() / PS_PER_S / PS_PER_S / PS_PER_S,
            beta,
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.3
            //# alpha_cubic = 3 * (1 - beta_cubic) / (1 + beta_cubic)
            alpha: 3.0 * (1.0 - beta) / (1.0 + beta),
            is_fast_convergent: fast_convergence,
            is_reno_friendly: reno_friendly,
            curve,
            before_loss: curve,
            latest: Time::ZERO,
            hystart: HyStart::new(config, true),
        }
    }

    #[cfg(test)]
    pub(super) fn hystart(&self) -> &HyStart {
        &self.hystart
    }

    /// Congestion avoidance begins.
    #[cold]
    fn begin_stage(&mut self, window: &Window) {
        let (curve, cwnd) = (&mut self.curve, window.cwnd);
        curve.epoch = window.now;
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.3
        //# W_est is set equal to cwnd_epoch at the start of the congestion avoidance stage.
        curve.w_est = cwnd;
        if curve.cwnd_prior == 0.0 {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.10
            //# it may exit the first slow start without incurring any packet loss and thus W_max is undefined. In this
            //# special case, CUBIC sets cwnd_prior = cwnd and switches to congestion avoidance.
            curve.cwnd_prior = cwnd;
        }
        if curve.w_max <= cwnd {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.10
            //# K is set to 0, and W_max is set to the congestion window size at the beginning of the current congestion
            //# avoidance stage.
            curve.w_max = cwnd;
            curve.k = 0.0;
        } else {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.2
            //# K is the time period that the above function takes to increase the congestion window size at the
            //# beginning of the current congestion avoidance stage to W_max if there are no further congestion events.
            curve.k = libm::cbrt((curve.w_max - cwnd) / self.c);
        }
    }

    /// `W_cubic` in bytes, `since_flat` picoseconds after the point where the curve is flat.
    #[inline(always)]
    fn window_at(&self, since_flat: f64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.2
        //# W_cubic(t) = C * (t - K)^3 + W_max
        self.curve.w_max + self.c * since_flat * since_flat * since_flat
    }

    /// Grows the window in congestion avoidance.
    #[inline(always)]
    fn grow(&mut self, window: &mut Window, acked: u64) {
        if self.curve.epoch == Time::NEVER {
            self.begin_stage(window);
        }
        let cwnd = window.cwnd;
        // Counting acknowledged bytes instead of acknowledgements, as Linux does, keeps the curve the same with delayed
        // acknowledgements; section 4.4 has one increment for each.
        let share = least(acked as f64 / cwnd, 1.0);
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.3
        //# Once W_est has grown to reach the cwnd at the time of most recently setting ssthresh -- that is, W_est >=
        //# cwnd_prior -- the sender SHOULD set alpha_cubic to 1
        let alpha = if self.curve.w_est >= self.curve.cwnd_prior { 1.0 } else { self.alpha };
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.3
        //# W_est = W_est + alpha_cubic * segments_acked / cwnd
        self.curve.w_est += alpha * window.mss_f64() * share;
        let since_flat = window.now.since(self.curve.epoch).as_ps() as i64 as f64 - self.curve.k;
        let grown = if self.is_reno_friendly && self.window_at(since_flat) < self.curve.w_est {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.3
            //# If so, CUBIC is in the Reno-friendly region and cwnd SHOULD be set to W_est at each reception of a new
            //# ACK.
            if self.curve.w_est > cwnd { self.curve.w_est } else { cwnd }
        } else {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.2
            //# The lower and upper bounds below ensure that CUBIC's congestion window increase rate is non-decreasing
            //# and is less than the increase rate of slow start
            let target = self.window_at(since_flat + window.rtt.smoothed.as_ps() as i64 as f64);
            let gap = least(target - cwnd, 0.5 * cwnd);
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.4
            //# In this region, cwnd MUST be incremented by (target - cwnd) / cwnd
            if gap > 0.0 { cwnd + gap * share } else { cwnd }
        };
        window.cwnd = least(grown, window.cwnd_cap);
    }

    /// Ends the stage after a loss and remembers the window.
    fn end_stage(&mut self, cwnd: f64, w_max: f64) {
        self.before_loss = self.curve;
        self.hystart.stop();
        self.curve = Curve { w_max, cwnd_prior: cwnd, epoch: Time::NEVER, ..self.curve };
    }

    fn threshold(&self, window: &Window, flight: u64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.6
        //# ssthresh = flight_size * beta_cubic
        (flight as f64 * self.beta).max(2.0 * window.mss_f64())
    }
}

impl Control for Cubic {
    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, acked: u64) {
        let pause = window.now.since(self.latest);
        self.latest = window.now;
        if !window.may_grow() {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.2
            //# The elapsed time t in Figure 1 MUST NOT include periods during which cwnd has not been updated due to
            //# application-limited behavior
            self.curve.epoch += pause;
        } else if window.cwnd < window.ssthresh {
            self.curve.epoch = Time::NEVER;
            let is_first = self.hystart.is_running();
            let increase =
                if is_first { self.hystart.increase(window, acked) } else { standard::slow_start(window, acked) };
            window.cwnd = least(window.cwnd + increase, window.cwnd_cap);
        } else {
            self.grow(window, acked);
        }
    }

    fn on_loss(&mut self, window: &Window, flight: u64) -> f64 {
        let cwnd = window.cwnd;
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.7
        //# W_max = cwnd * (1 + beta_cubic) / 2 if cwnd < W_max and fast convergence enabled, further reduce W_max
        let is_below_last = self.is_fast_convergent && cwnd < self.curve.w_max;
        let w_max = if is_below_last { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.end_stage(cwnd, w_max);
        self.threshold(window, flight)
    }

    fn on_timeout(&mut self, window: &Window, flight: u64) -> f64 {
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.8
        //# During the first congestion avoidance stage after a timeout, CUBIC increases its congestion window size using
        //# Figure 1, where t is the elapsed time since the beginning of the current congestion avoidance stage, K is set
        //# to 0, and W_max is set to the congestion window size at the beginning of the current congestion avoidance
        //# stage.
        self.end_stage(window.cwnd, 0.0);
        self.threshold(window, flight)
    }

    /// Restores the variables of RFC 9438, section 4.9, other than the window; the time since the spurious loss counts as unused.
    fn on_spurious_loss(&mut self, window: &Window) {
        self.curve = self.before_loss;
        self.curve.epoch += window.now.since(self.latest);
        self.latest = window.now;
    }

    fn on_idle(&mut self, now: Time) {
        self.curve.epoch += now.since(self.latest);
        self.latest = now;
    }

    fn wants_samples(&self) -> bool {
        self.hystart.is_running()
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.hystart.on_sample(window, sample);
    }
}

#[cfg(test)]
mod tests;
