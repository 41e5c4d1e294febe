//! A windowed maximum filter.

/// A running maximum over a window of time, from the best three samples (K. Nichols' algorithm, lib/win_minmax.c of Linux).
/// Time is any count that does not decrease, such as round trips or cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    /// The best sample, the best since that one, and the best since the second: (time, value).
    best: [(u64, f64); 3],
}

impl WindowedMax {
    /// The largest value.
    pub(super) fn get(&self) -> f64 {
        self.best[0].1
    }

    fn reset(&mut self, sample: (u64, f64)) {
        self.best = [sample; 3];
    }

    /// Takes a sample; samples older than `window` no longer count.
    pub(super) fn update(&mut self, window: u64, time: u64, value: f64) {
        let sample = (time, value);
        if value >= self.best[0].1 || time - self.best[2].0 > window {
            self.reset(sample); // a new maximum, or nothing is left in the window
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        self.age(window, sample);
    }

    /// Replaces samples that have left the window by the next best, and keeps the three apart in time.
    fn age(&mut self, window: u64, sample: (u64, f64)) {
        let age = sample.0 - self.best[0].0;
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if sample.0 - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            // For a quarter of the window there was no better second sample.
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_maximum_leaves_with_its_window() {
        let mut max = WindowedMax::default();
        max.update(10, 0, 5.0);
        for time in 1..=10 {
            max.update(10, time, 3.0);
            assert_eq!(max.get(), 5.0);
        }
        max.update(10, 11, 3.0);
        assert_eq!(max.get(), 3.0);
    }

    proptest! {
        /// The result is never above the true maximum of the window and never below the latest value, and a new maximum takes
        /// effect at once.
        #[test]
        fn lies_between_the_latest_value_and_the_windows_maximum(
            steps in proptest::collection::vec((0_u64..4, 0.0..100.0_f64), 1..200), window in 1_u64..20,
        ) {
            let mut max = WindowedMax::default();
            let (mut time, mut all) = (0, Vec::new());
            for (step, value) in steps {
                time += step;
                all.push((time, value));
                max.update(window, time, value);
                let largest =
                    all.iter().filter(|(at, _)| time - at <= window).map(|(_, value)| *value).fold(0.0, f64::max);
                prop_assert!(max.get() >= value && max.get() <= largest, "{} of {largest}", max.get());
            }
        }
    }
}
