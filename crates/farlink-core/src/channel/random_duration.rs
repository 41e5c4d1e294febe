//! Random durations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::Rng;
use crate::time::Time;
use crate::units::{PositiveSeconds, Shape};

/// A random duration: `{ distribution = "exponential", mean_s = 3000 }`, `{ distribution = "weibull", shape = 0.6, scale_s = 2000
/// }` or `{ distribution = "constant", value_s = 20 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum RandomDuration {
    /// Memoryless: the remaining time does not depend on how long it has lasted.
    Exponential {
        /// Mean, in seconds.
        mean_s: PositiveSeconds,
    },
    /// With a shape below 1 very short and very long durations are more frequent than with the exponential distribution; with a
    /// shape above 1 those near the mean are.
    Weibull {
        /// Shape; 1 is the exponential distribution.
        shape: Shape,
        /// Scale, in seconds: 63.2 % are shorter.
        scale_s: PositiveSeconds,
    },
    /// Always the same duration.
    Constant {
        /// Length, in seconds.
        value_s: PositiveSeconds,
    },
}

impl RandomDuration {
    /// Draws a duration.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Time {
        match *self {
            RandomDuration::Exponential { mean_s } => Time::from_secs_f64(rng.exponential(mean_s.get())),
            RandomDuration::Weibull { shape, scale_s } => {
                Time::from_secs_f64(scale_s.get() * libm::pow(rng.exponential(1.0), 1.0 / shape.get()))
            }
            RandomDuration::Constant { value_s } => value_s.time(),
        }
    }

    /// Median, in seconds: half of them are shorter.
    pub(crate) fn median_s(&self) -> f64 {
        match *self {
            RandomDuration::Exponential { mean_s } => mean_s.get() * std::f64::consts::LN_2,
            RandomDuration::Weibull { shape, scale_s } => {
                scale_s.get() * libm::pow(std::f64::consts::LN_2, 1.0 / shape.get())
            }
            RandomDuration::Constant { value_s } => value_s.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean of the drawn durations, and the shares above the median and above a threshold.
    fn drawn(json: &str, threshold_s: f64) -> [f64; 3] {
        let duration: RandomDuration = serde_json::from_str(json).unwrap();
        let mut rng = Rng::for_component(1, 0, "random duration");
        let drawn: Vec<f64> = (0..100_000).map(|_| duration.draw(&mut rng).as_secs_f64()).collect();
        let above = |least: f64| drawn.iter().filter(|&&length| length > least).count() as f64 / 1e5;
        [drawn.iter().sum::<f64>() / 1e5, above(duration.median_s()), above(threshold_s)]
    }

    #[test]
    fn mean_median_and_tail_match_the_distribution() {
        // Of both exp(-2) are longer than the threshold; the standard errors of these shares are 0.0011 and 0.0016. With shape
        // 0.5 the mean is twice the scale.
        for (json, threshold_s, mean_s) in [
            (r#"{"distribution": "exponential", "mean_s": 30}"#, 60.0, 30.0),
            (r#"{"distribution": "weibull", "shape": 0.5, "scale_s": 10}"#, 40.0, 20.0),
        ] {
            let [mean, half, tail] = drawn(json, threshold_s);
            assert!((mean / mean_s - 1.0).abs() < 0.03, "{json}: {mean}");
            assert!((half - 0.5).abs() < 0.007 && (tail - (-2.0_f64).exp()).abs() < 0.005, "{json}: {half} {tail}");
        }
        let [mean, _, longer] = drawn(r#"{"distribution": "constant", "value_s": 3}"#, 2.999);
        assert!((mean - 3.0).abs() < 1e-9 && longer == 1.0);
    }
}
