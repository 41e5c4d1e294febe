//! Long-term sampling: detects a policer that lets through a steady rate and drops the rest (`bbr_lt_bw_sampling` of Linux).

use crate::protocol::tcp::flight::Sample;
use crate::time::Time;

/// Least number of rounds in an interval; an interval of more than `LONGEST` times that is discarded.
const INTERVAL_ROUNDS: u32 = 4;
const LONGEST: u32 = 4;
/// An interval counts as policed if the ratio of lost to delivered data is at least this (`bbr_lt_loss_thresh`: 50 of 256).
const LOSS_RATIO: f64 = 50.0 / 256.0;
/// Rates that differ by less than this, relatively or in bytes per second, count as equal (`bbr_lt_bw_ratio`, `bbr_lt_bw_diff`).
const SAME_RATIO: f64 = 1.0 / 8.0;
const SAME_BYTES_PER_S: f64 = 4000.0 / 8.0;
/// Number of rounds for which the policed rate is used.
const USED_ROUNDS: u32 = 48;

/// The action after a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    GoOn,
    /// Two intervals agree: send at their rate from now on.
    Policed,
    /// The policed rate was used for long enough: probe again.
    Expired,
}

/// Detects a policer by two consecutive intervals with high loss and the same rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Rate of the last interval or, once a policer is detected, of the policer, bytes per second; 0 if there was none.
    rate: f64,
    is_used: bool,
    is_sampling: bool,
    rounds: u32,
    /// Start of the present interval.
    since: Time,
    delivered_then: u64,
    lost: u64,
}

impl Policer {
    /// The rate of the policer, if there is one.
    pub(super) fn rate(&self) -> Option<f64> {
        self.is_used.then_some(self.rate)
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, sample: &Sample) {
        (self.rate, self.is_used, self.is_sampling) = (0.0, false, false);
        self.begin_interval(sample);
    }

    fn begin_interval(&mut self, sample: &Sample) {
        (self.since, self.delivered_then, self.lost, self.rounds) = (sample.now, sample.delivered, 0, 0);
    }

    /// Counts bytes that are declared lost; to be called before `update`.
    pub(super) fn note_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Takes a sample. `is_round_start` says that it begins a round, `may_expire` that the sender probes for bandwidth.
    pub(super) fn update(&mut self, sample: &Sample, is_round_start: bool, may_expire: bool) -> Verdict {
        if self.is_used {
            self.rounds += u32::from(may_expire && is_round_start);
            if may_expire && is_round_start && self.rounds >= USED_ROUNDS {
                self.reset(sample);
                return Verdict::Expired;
            }
            return Verdict::GoOn;
        }
        // Waits for the first loss, because until then the policer spends saved tokens.
        if !self.is_sampling {
            if sample.newly_lost == 0 {
                return Verdict::GoOn;
            }
            self.begin_interval(sample);
            self.is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset(sample);
            return Verdict::GoOn;
        }
        self.rounds += u32::from(is_round_start);
        if self.rounds < INTERVAL_ROUNDS {
            return Verdict::GoOn;
        }
        if self.rounds > LONGEST * INTERVAL_ROUNDS {
            self.reset(sample);
            return Verdict::GoOn;
        }
        // An interval ends with a loss, when the tokens are spent again.
        let delivered = sample.delivered - self.delivered_then;
        if sample.newly_lost == 0 || delivered == 0 || (self.lost as f64) < LOSS_RATIO * delivered as f64 {
            return Verdict::GoOn;
        }
        let elapsed = sample.now.since(self.since);
        if elapsed < Time::from_millis(1) {
            return Verdict::GoOn;
        }
        self.end_interval(sample, delivered as f64 / elapsed.as_secs_f64())
    }

    fn end_interval(&mut self, sample: &Sample, rate: f64) -> Verdict {
        let difference = (rate - self.rate).abs();
        if self.rate > 0.0 && (difference <= SAME_RATIO * self.rate || difference <= SAME_BYTES_PER_S) {
            self.rate = f64::midpoint(rate, self.rate);
            self.is_used = true;
            self.rounds = 0;
            return Verdict::Policed;
        }
        self.rate = rate;
        self.begin_interval(sample);
        Verdict::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of one second in which 1000 bytes arrive and `lost` bytes are lost.
    fn round(policer: &mut Policer, n: u64, lost: u64) -> Verdict {
        let sample = Sample { now: Time::from_secs(n), delivered: n * 1000, newly_lost: lost, ..Sample::default() };
        policer.note_lost(lost);
        policer.update(&sample, true, true)
    }

    #[test]
    fn two_lossy_intervals_of_equal_rate_indicate_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        let verdicts: Vec<_> = (0..9).map(|n| round(&mut policer, n, 300)).collect();
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Policed), Some(7));
        assert_eq!(policer.rate(), Some(1000.0));
        let verdicts: Vec<_> = (9..60).map(|n| round(&mut policer, n, 300)).collect();
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Expired), Some(46));
    }

    #[test]
    fn a_policer_needs_a_fifth_of_the_packets_lost() {
        let mut policer = Policer::default();
        assert!((0..100).all(|n| round(&mut policer, n, 150) == Verdict::GoOn) && policer.rate().is_none());
    }
}
