//! The retransmission timer.

mod config;

use crate::time::Time;

pub use config::{RtoAlgorithm, RtoConfig};

/// The round-trip estimate, the back-off and the timer itself.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct RetransmissionTimer {
    /// When it expires; `Time::NEVER` if it is not running.
    pub(in crate::protocol) deadline: Time,
    /// Current RTO including back-off.
    rto: Time,
    backoff: u32,
    /// SRTT and RTTVAR in picoseconds; `srtt` is zero before the first sample.
    srtt: f64,
    rttvar: f64,
    recent: Deviation,
    /// The latest sample, for the time series.
    pub(in crate::protocol) latest: Option<Time>,
    limits: Limits,
}

/// Linux's state of the latest round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Deviation {
    /// Smoothed deviation from the mean, ps.
    mean: f64,
    /// Its largest value in this round trip, ps.
    largest: f64,
    /// End of the round, on the scale of [`Progress`].
    round_ends: u64,
}

/// Progress of a sender when it takes a sample, by which round trips are counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Progress {
    /// The position before which all data is acknowledged, or the time if there are no positions.
    at: u64,
    /// End of a round that begins now.
    round_ends: u64,
}

impl Progress {
    /// Progress in a stream: all data below `acknowledged` is acknowledged, and the next data starts at `next`.
    #[inline(always)]
    pub(in crate::protocol) fn of_stream(acknowledged: u64, next: u64) -> Self {
        // Linux: `after(snd_una, rtt_seq)`, with snd_nxt as rtt_seq.
        Progress { at: acknowledged, round_ends: next + 1 }
    }

    /// Progress by time only.
    #[inline(always)]
    pub(in crate::protocol) fn of_time(now: Time, round_trip: Time) -> Self {
        Progress { at: now.as_ps(), round_ends: (now + round_trip).as_ps() }
    }
}

/// The configuration, converted to times.
#[derive(Clone, Copy, Debug)]
struct Limits {
    initial: Time,
    minimum: Time,
    maximum: Time,
    granularity: Time,
    algorithm: RtoAlgorithm,
    alpha: f64,
    beta: f64,
    k: f64,
    factor: f64,
    backoff_limit: u32,
    forget_above_backoff: u32,
}

impl RetransmissionTimer {
    pub(in crate::protocol) fn new(config: &RtoConfig) -> Self {
        let whole = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let (alpha, beta) = config.gains();
        RetransmissionTimer {
            deadline: Time::NEVER,
            rto: config.initial_s.time(),
            backoff: 1,
            srtt: 0.0,
            rttvar: 0.0,
            recent: Deviation::default(),
            latest: None,
            limits: Limits {
                initial: config.initial_s.time(),
                minimum: Time::from_secs_f64(config.least_s()),
                maximum: Time::from_secs_f64(config.most_s()),
                granularity: config.granularity_s.time(),
                algorithm: config.algorithm,
                alpha,
                beta,
                k: config.variations(),
                factor: config.multiple(),
                backoff_limit: whole(config.most_backoff()),
                forget_above_backoff: whole(config.forgets_above()),
            },
        }
    }

    /// Current RTO, back-off included.
    #[inline]
    pub(in crate::protocol) fn rto(&self) -> Time {
        self.rto
    }

    /// The RTO, if a probe after new data has to come before it counted from when the oldest segment was sent, as in Linux
    /// (`tcp_schedule_loss_probe` with `tcp_rto_delta_us`).
    #[inline]
    pub(in crate::protocol) fn limits_probes(&self) -> Option<Time> {
        (self.limits.algorithm == RtoAlgorithm::Linux).then_some(self.rto)
    }

    /// The smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub(in crate::protocol) fn smoothed(&self) -> Option<Time> {
        (self.srtt > 0.0).then(|| Time::from_ps(self.srtt as u64))
    }

    /// Takes a round-trip time that ends now, of a segment that was sent once. The caller applies Karn's algorithm.
    pub(in crate::protocol) fn sample(&mut self, now: Time, round_trip: Time) {
        self.sample_at(Progress::of_time(now, round_trip), round_trip);
    }

    /// Takes a round-trip time of a sender whose progress is known.
    pub(in crate::protocol) fn sample_at(&mut self, progress: Progress, round_trip: Time) {
        self.latest = Some(round_trip);
        let r = self.to_ticks(round_trip).as_ps() as f64;
        let Limits { algorithm, alpha, beta, .. } = self.limits;
        if self.srtt == 0.0 {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-2
            //# SRTT <- R
            //# RTTVAR <- R/2
            self.srtt = r;
            self.rttvar = r / 2.0;
            self.recent = Deviation { mean: self.rttvar, largest: self.rttvar, round_ends: progress.round_ends };
        } else if algorithm == RtoAlgorithm::Linux {
            self.sample_as_linux(progress, r);
        } else {
            //= https://www.rfc-editor.org/rfc/rfc6298#section-2
            //# RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|
            //# SRTT <- (1 - alpha) * SRTT + alpha * R'
            self.rttvar = (1.0 - beta) * self.rttvar + beta * (self.srtt - r).abs();
            self.srtt = (1.0 - alpha) * self.srtt + alpha * r;
        }
        self.backoff = 1;
        self.update();
    }

    /// `tcp_rtt_estimator` of Linux (net/ipv4/tcp_input.c): the variation follows the largest deviation of the latest round trip.
    /// It grows at once, and falls once per round trip by a quarter of its excess. A sample below the mean raises the deviation
    /// less. While a loss holds back the acknowledgement, no round ends and the variation does not fall.
    #[cold]
    fn sample_as_linux(&mut self, progress: Progress, r: f64) {
        let Limits { alpha, beta, k, .. } = self.limits;
        // Linux's `mdev` is four times the mean deviation and is added to the RTO as it is; here it is multiplied by `k`.
        let least = self.limits.minimum.as_ps() as f64 / k.max(1.0);
        let error = r - self.srtt;
        self.srtt += alpha * error;
        let beyond = error.abs() - self.recent.mean;
        let gain = if error < 0.0 && beyond > 0.0 { beta / 8.0 } else { beta };
        self.recent.mean += gain * beyond;
        if self.recent.mean > self.recent.largest {
            self.recent.largest = self.recent.mean;
            self.rttvar = self.rttvar.max(self.recent.largest);
        }
        if progress.at >= self.recent.round_ends {
            if self.recent.largest < self.rttvar {
                self.rttvar -= beta * (self.rttvar - self.recent.largest);
            }
            self.recent.round_ends = progress.round_ends;
            self.recent.largest = least;
        }
        self.rttvar = self.rttvar.max(least);
    }

    /// Rounds a sample to whole ticks of the clock, at least one.
    fn to_ticks(&self, round_trip: Time) -> Time {
        let tick = self.limits.granularity.as_ps();
        if tick == 0 {
            return round_trip;
        }
        Time::from_ps(((round_trip.as_ps() + tick / 2) / tick).max(1) * tick)
    }

    fn update(&mut self) {
        let Limits { algorithm, factor, k, initial, minimum, maximum, granularity, .. } = self.limits;
        self.rto = match algorithm {
            RtoAlgorithm::Fixed => initial,
            //= https://www.rfc-editor.org/rfc/rfc793#section-3.7
            //# RTO = min[UBOUND,max[LBOUND,(BETA*SRTT)]]
            RtoAlgorithm::Rfc793 => Time::from_ps((factor * self.srtt) as u64).max(minimum),
            RtoAlgorithm::Linux => {
                let variation = (k * self.rttvar).max(minimum.as_ps() as f64);
                Time::from_ps((factor * (self.srtt + variation)) as u64)
            }
            RtoAlgorithm::JacobsonKarels | RtoAlgorithm::Rfc6298 | RtoAlgorithm::Conservative => {
                //= https://www.rfc-editor.org/rfc/rfc6298#section-2
                //# RTO <- SRTT + max (G, K*RTTVAR)
                let variation = (k * self.rttvar).max(granularity.as_ps() as f64);
                let computed = Time::from_ps((factor * (self.srtt + variation)) as u64);
                //= https://www.rfc-editor.org/rfc/rfc6298#section-2
                //# Whenever RTO is computed, if it is less than 1 second, then the RTO SHOULD be rounded up to 1 second.
                computed.max(minimum)
            }
        }
        .min(maximum);
    }

    /// The timer expired.
    pub(in crate::protocol) fn back_off(&mut self) {
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
    pub(in crate::protocol) fn on_sent(&mut self, now: Time) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# Every time a packet containing data is sent (including a retransmission), if the timer is not running,
        //# start it running so that it will expire after RTO seconds
        if self.deadline == Time::NEVER {
            self.deadline = now + self.rto;
        }
    }

    /// New data was acknowledged; `is_all` if nothing is outstanding any more.
    #[inline]
    pub(in crate::protocol) fn on_acknowledged(&mut self, now: Time, is_all: bool) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# When all outstanding data has been acknowledged, turn off the retransmission timer.
        //# When an ACK is received that acknowledges new data, restart the retransmission timer
        self.deadline = if is_all { Time::NEVER } else { now + self.rto };
    }

    /// Data transmission begins after the timer expired while the SYN waited for its acknowledgement.
    pub(in crate::protocol) fn begin_after_lost_syn(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# If the timer expires awaiting the ACK of a SYN segment and the TCP implementation is using an RTO less than
        //# 3 seconds, the RTO MUST be re-initialized to 3 seconds when data transmission begins
        if self.srtt == 0.0 && self.limits.initial < Time::from_secs(3) {
            self.rto = Time::from_secs(3).min(self.limits.maximum);
            self.backoff = 1;
        }
    }

    /// A report without a new acknowledgement shows that data sent before the oldest segment in flight still arrives. `sent` is
    /// when the reported segment was sent, `head_sent` when the oldest segment in flight was last sent.
    pub(in crate::protocol) fn on_reported(&mut self, now: Time, sent: Time, head_sent: Option<Time>) {
        // Linux (tcp_clean_rtx_queue): a report of a segment sent after the oldest one does not restart the timer, because
        // otherwise it would be postponed for as long as losses are repaired.
        let is_older = head_sent.is_some_and(|head_sent| sent < head_sent);
        if self.limits.algorithm == RtoAlgorithm::Linux && self.deadline != Time::NEVER && is_older {
            self.restart(now);
        }
    }

    /// Restarts the timer.
    pub(in crate::protocol) fn restart(&mut self, now: Time) {
        self.deadline = now + self.rto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{OrNever, Seconds};

    fn timer(minimum_s: f64) -> RetransmissionTimer {
        let minimum_s = Seconds::new(minimum_s).unwrap();
        let granularity_s = Seconds::new(0.0).unwrap();
        RetransmissionTimer::new(&RtoConfig { minimum_s: Some(minimum_s), granularity_s, ..RtoConfig::default() })
    }

    #[test]
    fn first_sample_gives_three_times_the_round_trip() {
        let mut timer = timer(0.0);
        timer.sample(Time::ZERO, Time::from_millis(500));
        assert_eq!(timer.rto(), Time::from_millis(1500));
        timer.sample(Time::ZERO, Time::from_millis(500));
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
        timer.sample(Time::ZERO, Time::from_millis(10));
        assert_eq!(timer.rto(), Time::from_secs(1));
    }

    #[test]
    fn a_sample_ends_the_back_off_and_its_count() {
        let mut timer = timer(0.0);
        // More often than the limit of 64 times allows.
        (0..8).for_each(|_| timer.back_off());
        timer.sample(Time::ZERO, Time::from_millis(100));
        let computed = timer.rto();
        assert_eq!(computed, Time::from_millis(300));
        timer.back_off();
        assert_eq!(timer.rto(), computed.times(2));
        timer.back_off();
        assert_eq!(timer.rto(), computed.times(4));
    }

    #[test]
    fn the_estimate_is_discarded_after_four_timeouts() {
        // Constant samples reduce RTTVAR by a quarter each time: 250, 187.5 ms; a first sample sets it to half of itself.
        for (timeouts, microseconds) in [(3, 1_250_000), (4, 1_500_000)] {
            let mut timer = timer(0.0);
            timer.sample(Time::ZERO, Time::from_millis(500));
            for _ in 0..timeouts {
                timer.back_off();
            }
            timer.sample(Time::ZERO, Time::from_millis(500));
            assert_eq!(timer.rto().as_ps() / 1_000_000, microseconds, "after {timeouts} timeouts");
        }
    }

    #[test]
    fn the_estimate_is_kept_if_so_configured() {
        let minimum_s = Some(Seconds::new(0.0).unwrap());
        let config = RtoConfig { minimum_s, forget_above_backoff: Some(OrNever::Never), ..RtoConfig::default() };
        let mut timer = RetransmissionTimer::new(&config);
        timer.sample(Time::ZERO, Time::from_millis(100));
        (0..10).for_each(|_| timer.back_off());
        assert_eq!(timer.smoothed(), Some(Time::from_millis(100)));
    }

    #[test]
    fn samples_are_whole_ticks() {
        let granularity_s = Seconds::new(0.1).unwrap();
        let minimum_s = Seconds::new(0.0).unwrap();
        let mut timer =
            RetransmissionTimer::new(&RtoConfig { granularity_s, minimum_s: Some(minimum_s), ..RtoConfig::default() });
        timer.sample(Time::ZERO, Time::from_millis(512));
        assert_eq!(timer.rto(), Time::from_millis(1500));
    }

    fn of(algorithm: RtoAlgorithm) -> RetransmissionTimer {
        let granularity_s = Seconds::new(0.0).unwrap();
        RetransmissionTimer::new(&RtoConfig { algorithm, granularity_s, ..RtoConfig::default() })
    }

    fn rto_ms(algorithm: RtoAlgorithm, samples_ms: &[u64]) -> u64 {
        let mut timer = of(algorithm);
        let mut now = Time::ZERO;
        for &sample in samples_ms {
            now += Time::from_millis(sample);
            timer.sample(now, Time::from_millis(sample));
        }
        timer.rto().as_ps() / 1_000_000_000
    }

    #[test]
    fn every_algorithm_matches_its_source() {
        // First sample R = 800 ms, second 1600 ms. SRTT: 800, then 900 ms; RTTVAR: 400, then 500 ms.
        for (algorithm, first_ms, second_ms) in [
            (RtoAlgorithm::Rfc793, 1600, 1800),
            (RtoAlgorithm::JacobsonKarels, 1600, 1900),
            (RtoAlgorithm::Rfc6298, 2400, 2900),
            (RtoAlgorithm::Conservative, 4800, 5800),
            (RtoAlgorithm::Linux, 2400, 2900),
            (RtoAlgorithm::Fixed, 1000, 1000),
        ] {
            let got = [rto_ms(algorithm, &[800]), rto_ms(algorithm, &[800, 1600])];
            assert_eq!(got, [first_ms, second_ms], "{algorithm:?}");
        }
    }

    /// Linux applies its minimum to the variation, so a steady path of 600 ms times out after 800 ms and not after 1 s. A sample
    /// far below the mean does not raise the timeout as one far above it does.
    #[test]
    fn linux_bounds_the_variation_and_ignores_a_fast_sample() {
        let steady = [600; 200];
        assert_eq!(rto_ms(RtoAlgorithm::Linux, &steady), 800);
        assert_eq!(rto_ms(RtoAlgorithm::Rfc6298, &steady), 1000);
        let with = |last| rto_ms(RtoAlgorithm::Linux, &[&steady[..], &[last]].concat());
        assert!(with(1000) > 950 && with(200) < 800, "{} {}", with(1000), with(200));
    }

    /// Segments of one byte; `samples` are (acknowledged position, next position, round trip in ms).
    fn linux_after(samples: &[(u64, u64, u64)]) -> RetransmissionTimer {
        let mut timer = of(RtoAlgorithm::Linux);
        for &(acknowledged, next, sample) in samples {
            timer.sample_at(Progress::of_stream(acknowledged, next), Time::from_millis(sample));
        }
        timer
    }

    fn ms(time: Time) -> u64 {
        time.as_ps() / 1_000_000_000
    }

    /// One sample of 23 s among samples of 1 s: those of the same round reduce the mean but not the variation.
    #[test]
    fn linux_lets_the_variation_fall_once_a_round() {
        // R = 1 s: mean deviation 500 ms. Then |23 - 1| = 22 s: (3 x 500 + 22000) / 4 = 5875 ms; variation 4 x 5875.
        let spike = [(1, 11, 1000), (2, 12, 23_000)];
        assert_eq!(ms(linux_after(&spike).rto()), 3750 + 23_500);
        let follow = |samples: &[(u64, u64, u64)]| ms(linux_after(&[&spike[..], samples].concat()).rto());
        // The round began when 11 was the next position: up to 11 only the mean falls, 1 s + 2750 ms (7/8)^n.
        let within: Vec<_> = (3..=11).map(|n| (n, n + 10, 1000)).collect();
        let rest = 2750.0 * 0.875_f64.powi(9);
        assert_eq!(follow(&within), (1000.0 + rest + 23_500.0) as u64);
        // 12 is beyond: the largest deviation of that round was the spike's, so nothing falls yet, but the next round begins.
        let ended = [&within[..], &[(12, 22, 1000)]].concat();
        let rest = rest * 0.875;
        assert_eq!(follow(&ended), (1000.0 + rest + 23_500.0) as u64);
        // With RFC 6298 the spike is forgotten by then.
        let plain: Vec<u64> = [1000, 23_000].into_iter().chain([1000; 10]).collect();
        assert!(rto_ms(RtoAlgorithm::Rfc6298, &plain) < 9000, "{}", rto_ms(RtoAlgorithm::Rfc6298, &plain));
    }

    /// Reports during a recovery: the acknowledgement does not advance, so the variation stays, however much time
    /// passes.
    #[test]
    fn linux_ends_no_round_while_the_acknowledgement_does_not_advance() {
        let spike = [(1, 11, 1000), (2, 12, 23_000)];
        let reports = [(2, 30, 1000); 500];
        assert_eq!(ms(linux_after(&[&spike[..], &reports].concat()).rto()), 1000 + 23_500);
        // The first acknowledgement that advances ends the round of the spike; the second ends the round of the small deviations.
        let moved = [(31, 31, 1000), (32, 32, 1000)];
        let rto = ms(linux_after(&[&spike[..], &reports, &moved].concat()).rto());
        assert!(rto > 17_625 + 1000 && rto < 17_625 + 1100, "three quarters: {rto}");
    }

    #[test]
    fn linux_keeps_the_estimate_and_backs_off_to_two_minutes() {
        let mut timer = linux_after(&[(1, 2, 500)]);
        (0..20).for_each(|_| timer.back_off());
        assert_eq!((timer.rto(), timer.smoothed()), (Time::from_secs(120), Some(Time::from_millis(500))));
    }

    /// A report of data sent before the oldest segment was sent again restarts the timer of Linux, and no other.
    #[test]
    fn linux_restarts_on_a_report_of_data_sent_before_the_oldest_segment() {
        for (algorithm, sent, expected) in [
            (RtoAlgorithm::Linux, 1, 11_000),
            (RtoAlgorithm::Linux, 3, 3000),
            (RtoAlgorithm::Linux, 2, 3000),
            (RtoAlgorithm::Rfc6298, 1, 3000),
        ] {
            let mut timer = of(algorithm);
            timer.restart(Time::from_secs(2));
            timer.on_reported(Time::from_secs(10), Time::from_secs(sent), Some(Time::from_secs(2)));
            assert_eq!(ms(timer.deadline), expected, "{algorithm:?}, {sent}");
        }
    }

    #[test]
    fn a_fixed_timeout_neither_learns_nor_backs_off() {
        let mut timer = of(RtoAlgorithm::Fixed);
        timer.sample(Time::ZERO, Time::from_secs(5));
        timer.back_off();
        assert_eq!(timer.rto(), Time::from_secs(1));
    }
}
