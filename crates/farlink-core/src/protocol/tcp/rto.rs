//! The retransmission timer (RFC 6298).

use crate::time::Time;
use crate::units::Count;

use super::config::RtoConfig;

/// Round-trip estimate, back-off and the timer itself.
#[derive(Clone, Debug)]
pub(super) struct RetransmissionTimer {
    /// When it expires; never if it is not running.
    pub(super) deadline: Time,
    /// Current RTO with back-off.
    rto: Time,
    backoff: u32,
    /// SRTT and RTTVAR in picoseconds; no sample yet while `srtt` is zero.
    srtt: f64,
    rttvar: f64,
    /// Latest sample, for the time series.
    pub(super) latest: Option<Time>,
    limits: Limits,
}

/// The configuration, converted once.
#[derive(Clone, Copy, Debug)]
struct Limits {
    initial: Time,
    minimum: Time,
    maximum: Time,
    granularity: Time,
    alpha: f64,
    beta: f64,
    k: f64,
    backoff_limit: u32,
    forget_above_backoff: u32,
}

impl RetransmissionTimer {
    pub(super) fn new(config: &RtoConfig) -> Self {
        let factor = |n: Option<Count>| n.and_then(|n| u32::try_from(n.whole()).ok()).unwrap_or(u32::MAX);
        RetransmissionTimer {
            deadline: Time::NEVER,
            rto: config.initial_s.time(),
            backoff: 1,
            srtt: 0.0,
            rttvar: 0.0,
            latest: None,
            limits: Limits {
                initial: config.initial_s.time(),
                minimum: config.minimum_s.time(),
                maximum: config.maximum_s.time(),
                granularity: config.granularity_s.time(),
                alpha: config.alpha.get(),
                beta: config.beta.get(),
                k: config.k.get(),
                backoff_limit: factor(Some(config.backoff_limit)),
                forget_above_backoff: factor(config.forget_above_backoff),
            },
        }
    }

    /// Current RTO, back-off included.
    #[inline]
    pub(super) fn rto(&self) -> Time {
        self.rto
    }

    /// A round-trip time of a segment that was sent once (Karn's algorithm is the caller's).
    pub(super) fn sample(&mut self, round_trip: Time) {
        self.latest = Some(round_trip);
        let r = self.to_ticks(round_trip).as_ps() as f64;
        if self.srtt == 0.0 {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-2
            //# SRTT <- R
            //# RTTVAR <- R/2
            self.srtt = r;
            self.rttvar = r / 2.0;
        } else {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-2
            //# RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|
            //# SRTT <- (1 - alpha) * SRTT + alpha * R'
            let Limits { alpha, beta, .. } = self.limits;
            self.rttvar = (1.0 - beta) * self.rttvar + beta * (self.srtt - r).abs();
            self.srtt = (1.0 - alpha) * self.srtt + alpha * r;
        }
        self.backoff = 1;
        self.update();
    }

    /// The clock has ticks: a sample is a whole number of them, at least one.
    fn to_ticks(&self, round_trip: Time) -> Time {
        let tick = self.limits.granularity.as_ps();
        if tick == 0 {
            return round_trip;
        }
        Time::from_ps(((round_trip.as_ps() + tick / 2) / tick).max(1) * tick)
    }

    fn update(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-2
        //# RTO <- SRTT + max (G, K*RTTVAR)
        let variation = (self.limits.k * self.rttvar).max(self.limits.granularity.as_ps() as f64);
        let computed = Time::from_ps((self.srtt + variation) as u64);
        //= https://www.rfc-editor.org/rfc/rfc6298#section-2
        //# Whenever RTO is computed, if it is less than 1 second, then the RTO SHOULD be rounded up to 1 second.
        self.rto = computed.max(self.limits.minimum).min(self.limits.maximum);
    }

    /// The timer expired.
    pub(super) fn back_off(&mut self) {
        if self.backoff < self.limits.backoff_limit {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-5
            //# The host MUST set RTO <- RTO * 2 ("back off the timer").
            self.backoff = self.backoff.saturating_mul(2);
            self.rto = self.rto.times(2).min(self.limits.maximum);
        }
        if self.backoff > self.limits.forget_above_backoff {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-5
            //# a TCP implementation MAY clear SRTT and RTTVAR after backing off the timer multiple times
            (self.srtt, self.rttvar) = (0.0, 0.0);
        }
    }

    /// A segment with data was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# Every time a packet containing data is sent (including a retransmission), if the timer is not running,
        //# start it running so that it will expire after RTO seconds
        if self.deadline == Time::NEVER {
            self.deadline = now + self.rto;
        }
    }

    /// New data was acknowledged; `is_all` if nothing is outstanding any more.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, now: Time, is_all: bool) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# When all outstanding data has been acknowledged, turn off the retransmission timer.
        //# When an ACK is received that acknowledges new data, restart the retransmission timer
        self.deadline = if is_all { Time::NEVER } else { now + self.rto };
    }

    /// Data transmission begins, and the timer expired while the SYN was waiting for its acknowledgement.
    pub(super) fn begin_after_lost_syn(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# If the timer expires awaiting the ACK of a SYN segment and the TCP implementation is using an RTO less than
        //# 3 seconds, the RTO MUST be re-initialized to 3 seconds when data transmission begins
        if self.srtt == 0.0 && self.limits.initial < Time::from_secs(3) {
            self.rto = Time::from_secs(3).min(self.limits.maximum);
            self.backoff = 1;
        }
    }

    /// Starts anew.
    pub(super) fn restart(&mut self, now: Time) {
        self.deadline = now + self.rto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seconds;

    fn timer(minimum_s: f64) -> RetransmissionTimer {
        let minimum_s = Seconds::new(minimum_s).unwrap();
        let granularity_s = Seconds::new(0.0).unwrap();
        RetransmissionTimer::new(&RtoConfig { minimum_s, granularity_s, ..RtoConfig::default() })
    }

    #[test]
    fn first_sample_gives_three_times_the_round_trip() {
        let mut timer = timer(0.0);
        timer.sample(Time::from_millis(500));
        assert_eq!(timer.rto(), Time::from_millis(1500));
        timer.sample(Time::from_millis(500));
        // RTTVAR falls by a quarter: 500 + 4 * 187.5.
        assert_eq!(timer.rto(), Time::from_millis(1250));
    }

    #[test]
    fn backs_off_until_a_sample_and_never_beyond_the_maximum() {
        let mut timer = timer(1.0);
        for _ in 0..10 {
            timer.back_off();
        }
        assert_eq!(timer.rto(), Time::from_secs(60));
        timer.sample(Time::from_millis(10));
        assert_eq!(timer.rto(), Time::from_secs(1));
    }

    #[test]
    fn the_estimate_starts_anew_after_four_timeouts() {
        // Constant samples shrink RTTVAR by a quarter each time: 250, 187.5 ms; a first sample sets it to half of itself.
        for (timeouts, microseconds) in [(3, 1_250_000), (4, 1_500_000)] {
            let mut timer = timer(0.0);
            timer.sample(Time::from_millis(500));
            for _ in 0..timeouts {
                timer.back_off();
            }
            timer.sample(Time::from_millis(500));
            assert_eq!(timer.rto().as_ps() / 1_000_000, microseconds, "after {timeouts} timeouts");
        }
    }

    #[test]
    fn samples_are_whole_ticks() {
        let granularity_s = Seconds::new(0.1).unwrap();
        let minimum_s = Seconds::new(0.0).unwrap();
        let mut timer = RetransmissionTimer::new(&RtoConfig { granularity_s, minimum_s, ..RtoConfig::default() });
        timer.sample(Time::from_millis(512));
        assert_eq!(timer.rto(), Time::from_millis(1500));
    }
}
