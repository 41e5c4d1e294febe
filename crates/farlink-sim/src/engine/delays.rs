//! Delay statistics: sums and histograms.

use std::cell::RefCell;
use std::rc::Rc;

use farlink_core::Time;
pub use farlink_core::histogram::Histogram;

/// Sum and number of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelaySum {
    ps: u128,
    /// Number of delays.
    pub count: u64,
}

impl DelaySum {
    #[inline]
    fn add(&mut self, delay: Time, times: u64) {
        self.ps += u128::from(delay.as_ps()) * u128::from(times);
        self.count += times;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &DelaySum) {
        self.ps += other.ps;
        self.count += other.count;
    }

    /// Mean in seconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ps as f64 / self.count as f64 / 1e12)
    }
}

/// Collects the statistics of delays. Consecutive packets mostly have the same delay, so repetitions are counted first.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    latest: Time,
    /// Number of repetitions of `latest` that are not in the statistics yet.
    repeated: u64,
    sum: DelaySum,
    histogram: Option<Shared>,
}

/// A histogram that several flows may fill.
pub(super) type Shared = Rc<RefCell<Histogram>>;

impl Delays {
    pub(super) fn keep_histogram(&mut self, histogram: Shared) {
        self.histogram = Some(histogram);
    }

    #[inline(always)]
    pub(super) fn add(&mut self, delay: Time) {
        if delay != self.latest {
            self.settle();
            self.latest = delay;
        }
        self.repeated += 1;
    }

    #[inline(never)]
    fn settle(&mut self) {
        self.sum.add(self.latest, self.repeated);
        if let Some(histogram) = &self.histogram {
            // The histogram's counts saturate as well.
            histogram.borrow_mut().record(self.latest, u32::try_from(self.repeated).unwrap_or(u32::MAX));
        }
        self.repeated = 0;
    }

    /// Removes all delays.
    pub(super) fn clear(&mut self) {
        let histogram = self.histogram.take();
        if let Some(histogram) = &histogram {
            histogram.borrow_mut().clear();
        }
        *self = Delays { histogram, ..Delays::default() };
    }

    /// The statistics of all delays. A shared histogram is returned by the last of its users.
    pub(super) fn finish(mut self) -> (DelaySum, Option<Histogram>) {
        self.settle();
        (self.sum, self.histogram.and_then(Rc::into_inner).map(RefCell::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Buckets are a 64th of an octave's lower end wide.
    const HALF_A_BUCKET: f64 = 0.5 / 64.0;

    #[test]
    fn repeated_delays_count_as_often_as_they_occur() {
        let mut delays = Delays::default();
        let histogram = Shared::default();
        delays.keep_histogram(Rc::clone(&histogram));
        let mut other = Delays::default();
        other.keep_histogram(histogram);
        other.add(Time::from_millis(100));
        assert!(other.finish().1.is_none(), "another user still fills it");
        for ms in [100, 100, 100, 200, 100, 300, 300] {
            delays.add(Time::from_millis(ms));
        }
        let (sum, histogram) = delays.finish();
        assert_eq!((sum.count, sum.mean()), (7, Some(1.2 / 7.0)));
        let histogram = histogram.unwrap();
        let median = histogram.quantile(0.5).unwrap();
        assert!((median / 0.1 - 1.0).abs() < HALF_A_BUCKET, "{median}");
        assert_eq!(histogram.count(), 8);
    }

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for ms in 1..=1000 {
            histogram.record(Time::from_millis(ms), 1);
        }
        for (q, expected) in [(0.0, 0.001), (0.5, 0.501), (0.99, 0.991), (1.0, 1.0)] {
            let found = histogram.quantile(q).unwrap();
            assert!((found / expected - 1.0).abs() < HALF_A_BUCKET, "{q}: {found}");
        }
    }

    proptest! {
        /// Because quantiles are the middle of a bucket.
        #[test]
        fn a_single_delay_is_known_within_half_a_bucket(us in 2.0..1e12_f64) {
            let mut histogram = Histogram::default();
            histogram.record(Time::from_secs_f64(us * 1e-6), 1);
            let found = histogram.quantile(0.5).unwrap();
            prop_assert!((found / (us * 1e-6) - 1.0).abs() <= HALF_A_BUCKET * (1.0 + 1e-9), "{} {}", us, found);
        }
    }

    #[test]
    fn zero_and_infinite_delays_have_a_bucket() {
        let mut histogram = Histogram::default();
        histogram.record(Time::ZERO, 1);
        histogram.record(Time::NEVER, 1);
        assert!(histogram.quantile(0.0).unwrap() < 2e-6);
    }
}
