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

/// Mean of the values that are known, and its interval at `level` (0.95, say) by Student's t. `None` if none is known.
pub fn interval(values: impl Iterator<Item = f64> + Clone, level: f64) -> Option<Interval> {
    let known = values.filter(|value| !value.is_nan());
    let n = known.clone().count();
    if n == 0 {
        return None;
    }
    let mean = known.clone().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Interval { mean, half_width: f64::NAN });
    }
    let variance = known.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    Some(Interval { mean, half_width: t_quantile(n - 1, level) * (variance / n as f64).sqrt() })
}

/// The factor on the standard error that makes a two-sided interval of that level.
pub(crate) fn t_quantile(degrees: usize, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.5 + level / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, level, expected) in [(1, 0.95, 12.706), (9, 0.95, 2.262), (9, 0.99, 3.250), (199, 0.95, 1.972)] {
            assert!((t_quantile(degrees, level) - expected).abs() < 5e-4, "{degrees} {level}");
        }
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
