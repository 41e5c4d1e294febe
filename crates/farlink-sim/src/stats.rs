//! Means and their confidence intervals.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over independent runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of its confidence interval; NaN if there was one run only.
    pub half_width: f64,
}

/// Mean of the known values, and its interval at `level` (such as 0.95) by Student's t. `None` if no value is known.
pub fn interval(values: impl Iterator<Item = f64>, level: f64) -> Option<Interval> {
    let mut moments = Moments::default();
    values.for_each(|value| moments.add(value));
    moments.interval(&mut Quantiles::new(level))
}

/// Mean and spread of values, which are not stored: Welford, "Note on a method for calculating corrected sums of squares and
/// products", Technometrics 4(3), 1962. The last bits depend on the order of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    count: u64,
    sum: f64,
    /// The mean that belongs to `squares`.
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl Moments {
    /// Adds a value, if it is known.
    pub(crate) fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.sum += value;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// `None` if no value is known.
    pub(crate) fn interval(&self, quantiles: &mut Quantiles) -> Option<Interval> {
        let n = self.count as f64;
        let mean = self.sum / n;
        match self.count {
            0 => None,
            1 => Some(Interval { mean, half_width: f64::NAN }),
            count => {
                let variance = self.squares / (n - 1.0);
                Some(Interval { mean, half_width: quantiles.of(count - 1) * (variance / n).sqrt() })
            }
        }
    }
}

/// Student's quantiles of one level. The latest one is cached, because most quantities have the same number of values.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    level: f64,
    last: Option<(u64, f64)>,
}

impl Quantiles {
    pub(crate) fn new(level: f64) -> Self {
        Quantiles { level, last: None }
    }

    fn of(&mut self, degrees: u64) -> f64 {
        match self.last {
            Some((same, quantile)) if same == degrees => quantile,
            _ => {
                let quantile = t_quantile(degrees as usize, self.level);
                self.last = Some((degrees, quantile));
                quantile
            }
        }
    }
}

/// The factor of the standard error for a two-sided interval of a level.
pub(crate) fn t_quantile(degrees: usize, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.5 + level / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        for (degrees, level, expected) in [(1, 0.95, 12.706), (9, 0.95, 2.262), (9, 0.99, 3.250), (199, 0.95, 1.972)] {
            assert!((t_quantile(degrees, level) - expected).abs() < 5e-4, "{degrees} {level}");
        }
    }

    /// For values with a small spread compared with their mean.
    #[test]
    fn one_pass_gives_the_result_of_two() {
        for offset in [0.0, 1.0, 1e6, 1e9] {
            let values: Vec<f64> = (0..10_000_u32).map(|i| offset + f64::from(i * i % 7919) / 7919.0).collect();
            let mean = values.iter().sum::<f64>() / 1e4;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 9999.0;
            let found = interval(values.iter().copied(), 0.95).unwrap();
            let half_width = t_quantile(9999, 0.95) * (variance / 1e4).sqrt();
            assert_eq!(found.mean, mean);
            let tolerance = if offset > 1e8 { 1e-6 } else { 1e-9 };
            assert!((found.half_width / half_width - 1.0).abs() < tolerance, "{offset}: {}", found.half_width);
        }
        assert_eq!(interval([0.1; 1000].into_iter(), 0.95).unwrap().half_width, 0.0, "no spread, no width");
    }

    #[test]
    fn unknown_values_do_not_count() {
        let values = [1.0, f64::NAN, 3.0];
        let found = interval(values.iter().copied(), 0.95).unwrap();
        assert_eq!(found.mean, 2.0);
        assert!((found.half_width - 12.706).abs() < 1e-3);
        assert!(interval([5.0].into_iter(), 0.95).unwrap().half_width.is_nan());
        assert_eq!(interval([f64::NAN].into_iter(), 0.95), None);
    }
}
