//! Goodput and its confidence interval, from batches of a run whose length is not fixed.

use crate::stats::{Interval, t_quantile};

/// Batches are merged in pairs when there are this many, so that between half of this number and all of it are in use.
const MOST: usize = 64;
/// Number of batches between two checks of the interval. Checking after each batch would end runs whose interval is narrow only
/// by chance.
const EVERY: usize = 8;
/// Largest correlation of neighbouring batches; with more, batches are too short to count as independent.
const MOST_CORRELATION: f64 = 0.3;

/// Segments and seconds of consecutive batches of a run; the goodput is the ratio of their sums.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// For each batch, the segments of each flow and then of all flows.
    segments: Vec<f64>,
    seconds: Vec<f64>,
    columns: usize,
    /// Number of original batches in one of the present batches.
    pub(super) merged: u64,
}

impl Batches {
    pub(super) fn new(flows: usize) -> Self {
        Batches { segments: Vec::new(), seconds: Vec::new(), columns: flows + 1, merged: 1 }
    }

    /// Ends a batch; returns whether the interval should be checked now.
    pub(super) fn push(&mut self, of_flows: &[f64], seconds: f64) -> bool {
        if self.seconds.len() == MOST {
            self.merge();
        }
        self.segments.extend_from_slice(of_flows);
        self.segments.push(of_flows.iter().sum());
        self.seconds.push(seconds);
        let count = self.seconds.len();
        count >= MOST / 2 && count.is_multiple_of(EVERY)
    }

    fn merge(&mut self) {
        let columns = self.columns;
        let pairs = self.seconds.len() / 2;
        for pair in 0..pairs {
            self.seconds[pair] = self.seconds[2 * pair] + self.seconds[2 * pair + 1];
            for column in 0..columns {
                self.segments[pair * columns + column] =
                    self.segments[2 * pair * columns + column] + self.segments[(2 * pair + 1) * columns + column];
            }
        }
        self.seconds.truncate(pairs);
        self.segments.truncate(pairs * columns);
        self.merged *= 2;
    }

    /// Segments per second of all flows with their interval at `level`, if batches count as independent.
    pub(super) fn all(&self, level: f64) -> Option<Interval> {
        let (ratio, residuals) = self.residuals(self.columns - 1)?;
        let square: f64 = residuals.iter().map(|residual| residual * residual).sum();
        let neighbours: f64 = residuals.windows(2).map(|two| two[0] * two[1]).sum();
        // Batches without variation count as independent, because their correlation is only that of rounding errors.
        let is_constant = square.sqrt() <= 1e-9 * ratio * self.seconds.iter().sum::<f64>();
        (is_constant || neighbours <= MOST_CORRELATION * square).then(|| self.interval(self.columns - 1, level))
    }

    /// The same for one flow (`column` from 0; the last column is all flows), without a check of independence.
    pub(super) fn interval(&self, column: usize, level: f64) -> Interval {
        let Some((mean, residuals)) = self.residuals(column) else {
            return Interval { mean: f64::NAN, half_width: f64::NAN };
        };
        // The ratio's variance by its linearisation (Law and Kelton, section 9.5): residuals over the mean time.
        let count = residuals.len() as f64;
        let variance = residuals.iter().map(|residual| residual * residual).sum::<f64>() / (count - 1.0);
        let seconds = self.seconds.iter().sum::<f64>() / count;
        let half_width = t_quantile(residuals.len() - 1, level) * (variance / count).sqrt() / seconds;
        Interval { mean, half_width }
    }

    fn residuals(&self, column: usize) -> Option<(f64, Vec<f64>)> {
        if self.seconds.len() < 2 {
            return None;
        }
        let of_column = || self.segments.iter().skip(column).step_by(self.columns);
        let ratio = of_column().sum::<f64>() / self.seconds.iter().sum::<f64>();
        Some((ratio, of_column().zip(&self.seconds).map(|(segments, seconds)| segments - ratio * seconds).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_batches_keeps_the_ratio() {
        let mut batches = Batches::new(1);
        let mut sums = (0.0, 0.0);
        for n in 0..1000 {
            let (segments, seconds) = (f64::from(n % 7) + 1.0, f64::from(n % 3) + 1.0);
            sums = (sums.0 + segments, sums.1 + seconds);
            batches.push(&[segments], seconds);
        }
        assert!(batches.seconds.len() <= MOST && batches.merged > 1);
        assert!((batches.interval(0, 0.95).mean - sums.0 / sums.1).abs() < 1e-12);
        assert_eq!(batches.interval(0, 0.95), batches.interval(1, 0.95));
    }

    #[test]
    fn a_trend_is_not_taken_for_independent_batches() {
        let mut batches = Batches::new(1);
        for n in 0..40 {
            batches.push(&[f64::from(n)], 1.0);
        }
        assert_eq!(batches.all(0.95), None);
    }
}
