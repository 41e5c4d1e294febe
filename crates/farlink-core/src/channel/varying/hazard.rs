//! The hazard of bit errors over time: a repeating series of error rates, its integral, and the inverse of the integral.

use crate::channel::ChannelState;

/// Picoseconds since the series first began.
pub(super) type Position = u64;

/// A repeating series of bit error rates at equal distances.
#[derive(Debug)]
pub(super) struct Hazard {
    /// -ln(1 - BER) of each sample.
    per_bit: Box<[f64]>,
    /// Duration of a sample, in ps.
    sample: f64,
    /// Duration of all samples, in ps.
    duration: u64,
    /// Integral of the hazard (times ps) before each [`BLOCK`] of samples, and over all. Samples in which frames are lost count
    /// as 0.
    sums: Box<[f64]>,
    /// Ranges of samples in which frames are lost: start and end.
    lost: Box<[(usize, usize)]>,
}

/// Number of samples per entry of `sums`: fewer entries save memory, but lookups walk through more samples.
const BLOCK: usize = 64;

impl Hazard {
    /// Builds the series from the error rate of each sample. Frames sent at a rate above `lost_above` are lost.
    pub(super) fn new(ber: impl Iterator<Item = f64>, duration_s: f64, lost_above: f64) -> Self {
        let mut lost: Vec<(usize, usize)> = Vec::new();
        let hazard = |(at, ber): (usize, f64)| {
            if ber > lost_above {
                match lost.last_mut() {
                    Some((_, until)) if *until == at => *until = at + 1,
                    _ => lost.push((at, at + 1)),
                }
            }
            -libm::log1p(-ber)
        };
        let per_bit: Box<[f64]> = ber.enumerate().map(hazard).collect();
        let duration = crate::Time::from_secs_f64(duration_s).as_ps();
        let sample = duration as f64 / per_bit.len() as f64;
        let mut series = Hazard { per_bit, sample, duration, sums: Box::default(), lost: lost.into_boxed_slice() };
        series.sums = series.summed();
        series
    }

    fn summed(&self) -> Box<[f64]> {
        let mut sums = Vec::with_capacity(self.per_bit.len() / BLOCK + 2);
        let mut sum = 0.0;
        let mut zones = self.lost.iter().peekable();
        for (at, &hazard) in self.per_bit.iter().enumerate() {
            if at % BLOCK == 0 {
                sums.push(sum);
            }
            while zones.next_if(|(_, until)| *until <= at).is_some() {}
            if zones.peek().is_none_or(|(from, _)| at < *from) {
                sum += hazard * self.sample;
            }
        }
        sums.push(sum);
        sums.into_boxed_slice()
    }

    /// Duration of the series, in ps.
    pub(super) fn duration(&self) -> u64 {
        self.duration
    }

    /// Position at which a sample begins.
    fn start(&self, at: usize) -> u64 {
        if at == self.per_bit.len() { self.duration } else { (at as f64 * self.sample).round() as u64 }
    }

    /// Index of the sample at a position within the series.
    fn index(&self, within: u64) -> usize {
        let mut at = ((within as f64 / self.sample) as usize).min(self.per_bit.len() - 1);
        while self.start(at) > within {
            at -= 1;
        }
        while self.start(at + 1) <= within {
            at += 1;
        }
        at
    }

    /// Index of the sample at a position, and the position at which that repetition of the series began.
    fn sample_at(&self, position: Position) -> (usize, u64) {
        let within = position % self.duration;
        (self.index(within), position - within)
    }

    /// Hazard of a bit that is sent at a position.
    pub(super) fn per_bit(&self, position: Position) -> f64 {
        self.per_bit[self.sample_at(position).0]
    }

    /// Position at which the sample at `position` ends.
    pub(super) fn next_sample(&self, position: Position) -> Position {
        let (at, base) = self.sample_at(position);
        base.saturating_add(self.start(at + 1))
    }

    pub(super) fn state(&self, position: Position) -> ChannelState {
        let (at, _) = self.sample_at(position);
        let ber = -libm::expm1(-self.per_bit[at]);
        ChannelState { up: !self.is_lost(at), ber: Some(ber), ..ChannelState::UP }
    }

    fn is_lost(&self, at: usize) -> bool {
        let next = self.lost.partition_point(|&(_, until)| until <= at);
        self.lost.get(next).is_some_and(|&(from, _)| from <= at)
    }

    /// The first section with lost frames that ends after a position.
    pub(super) fn next_lost(&self, position: Position) -> (Position, Position) {
        let (at, base) = self.sample_at(position);
        let next = self.lost.partition_point(|&(_, until)| until <= at);
        let (base, zone) = match self.lost.get(next) {
            Some(zone) => (base, zone),
            None => match self.lost.first() {
                Some(zone) => (base.saturating_add(self.duration), zone),
                None => return (u64::MAX, u64::MAX),
            },
        };
        (base.saturating_add(self.start(zone.0)), base.saturating_add(self.start(zone.1)))
    }

    /// Position at which the integral of the hazard from `from` on reaches `more`; `u64::MAX` if it never does.
    pub(super) fn reach(&self, from: Position, more: f64) -> Position {
        let total = self.sums[self.sums.len() - 1];
        if total <= 0.0 || from == u64::MAX {
            return u64::MAX;
        }
        let (at, mut base) = self.sample_at(from);
        let within = from - base;
        if !self.is_lost(at) {
            let here = self.per_bit[at];
            let span = more / here;
            if span < (self.start(at + 1) - within) as f64 {
                return from.saturating_add((span as u64).max(1));
            }
        }
        let mut goal = self.sum_before(at, within) + more;
        if goal >= total {
            let cycles = (goal / total).floor();
            let jump = cycles * self.duration as f64;
            if jump >= (u64::MAX - base) as f64 {
                return u64::MAX;
            }
            base += cycles as u64 * self.duration;
            goal = (goal - cycles * total).clamp(0.0, total);
        }
        base.saturating_add(self.position_of(goal)).max(from + 1)
    }

    /// Integral up to a position within the series, which lies in sample `at`.
    fn sum_before(&self, at: usize, within: u64) -> f64 {
        let first = at / BLOCK;
        let whole: f64 = (first * BLOCK..at).map(|at| self.counted(at) * self.sample).sum();
        self.sums[first] + whole + self.counted(at) * (within - self.start(at)) as f64
    }

    /// Position within the series at which the integral reaches `goal`.
    fn position_of(&self, goal: f64) -> u64 {
        // The last entry is the integral over all samples, and no block begins there.
        let blocks = &self.sums[..self.sums.len() - 1];
        let block = blocks.partition_point(|&sum| sum <= goal).max(1) - 1;
        let mut sum = self.sums[block];
        for at in block * BLOCK..self.per_bit.len() {
            let here = self.counted(at);
            let after = sum + here * self.sample;
            if after > goal {
                return self.start(at) + ((goal - sum) / here) as u64;
            }
            sum = after;
        }
        // The goal was missed by a rounding error.
        self.duration
    }

    /// Hazard of a sample; 0 where frames are lost.
    fn counted(&self, at: usize) -> f64 {
        if self.is_lost(at) { 0.0 } else { self.per_bit[at] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clear_series_has_no_errors_and_a_dark_one_loses_every_frame() {
        let clear = Hazard::new([0.0; 5].into_iter(), 1e-3, 0.1);
        assert_eq!(clear.reach(0, 1.0), u64::MAX);
        assert_eq!(clear.next_lost(0), (u64::MAX, u64::MAX));
        let dark = Hazard::new([0.5; 5].into_iter(), 1e-3, 0.1);
        assert_eq!(dark.reach(0, 1.0), u64::MAX, "a lost frame has no wrong bits");
        assert_eq!(dark.next_lost(7), (0, 1_000_000_000));
        assert!(!dark.state(0).up);
    }

    /// A series of ten samples of 1 ms; positions and sums are in units of one sample.
    #[test]
    fn lost_samples_add_no_hazard_and_the_series_repeats() {
        let ber = [1e-3, 1e-3, 0.4, 0.4, 0.0, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3];
        let hazard = Hazard::new(ber.into_iter(), 10e-3, 0.1);
        let millis = |ms: f64| (ms * 1e9) as u64;
        let unit = hazard.per_bit[0] * 1e9;
        for (from, more, to) in [
            (0.5, 1.0, 1.5),
            (0.5, 2.0, 5.5),
            (0.5, 7.0, 10.5),
            (0.5, 7.0 * 1000.0, 10_000.5),
            (2.5, 0.25, 5.25),
            (12.0, 1.5, 16.5),
        ] {
            let reached = hazard.reach(millis(from), more * unit);
            assert!(reached.abs_diff(millis(to)) <= 10, "{from} + {more}: {reached}");
        }
        assert_eq!(hazard.next_lost(millis(0.0)), (millis(2.0), millis(4.0)));
        assert_eq!(hazard.next_lost(millis(3.9)), (millis(2.0), millis(4.0)));
        assert_eq!(hazard.next_lost(millis(4.0)), (millis(12.0), millis(14.0)));
        assert!(hazard.state(millis(11.0)).up && !hazard.state(millis(13.0)).up);
        assert_eq!(hazard.next_sample(millis(12.5)), millis(13.0));
    }

    proptest! {
        /// Against adding up sample by sample.
        #[test]
        fn reaching_inverts_the_sum(
            ber in prop::collection::vec(prop_oneof![Just(0.0), Just(0.3), 1e-9..1e-2f64], 1..300),
            duration_ns in 1_000_000u64..10_000_000, from in 0.0..3.0f64, more in 0.0..5.0f64,
        ) {
            let hazard = Hazard::new(ber.iter().copied(), duration_ns as f64 * 1e-9, 0.1);
            let duration = hazard.duration() as f64;
            let total: f64 = hazard.sums[hazard.sums.len() - 1];
            prop_assume!(total > 0.0);
            let from = (from * duration) as u64;
            let reached = hazard.reach(from, more * total);
            let mut sum = 0.0;
            let mut at = from;
            while at < reached {
                let end = hazard.next_sample(at).min(reached);
                let (index, _) = hazard.sample_at(at);
                sum += if ber[index] > 0.1 { 0.0 } else { hazard.per_bit[index] * (end - at) as f64 };
                at = end;
            }
            // Positions are whole picoseconds, and samples end on one.
            let slack = 1e-2 * 3.0 * (ber.len() as f64) + 1e-9 * total;
            prop_assert!((sum - more * total).abs() <= slack, "{sum} instead of {}", more * total);
        }
    }
}
