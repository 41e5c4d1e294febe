//! The stopping rule: runs are added until a confidence interval is narrow enough.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::near_names::suggest;
use super::quantity;
use crate::ConfigError;
use crate::units::{CountToMillion, Fraction};

/// One run has no interval.
const LEAST_RUNS: u64 = 2;

/// Add runs until the confidence interval of a quantity is narrow enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// The quantity, a column of the result table such as `goodput_bps`. Its value for all flows together is used.
    pub quantity: String,
    /// Required half-width of the interval, as a fraction of the mean.
    pub ci: Fraction,
    /// Confidence level of the interval.
    #[serde(default = "level")]
    pub level: Fraction,
    /// Least number of runs.
    #[serde(default = "min_runs")]
    #[schemars(extend("minimum" = LEAST_RUNS))]
    pub min_runs: CountToMillion,
    /// Largest number of runs.
    #[serde(default = "max_runs")]
    pub max_runs: CountToMillion,
}

fn level() -> Fraction {
    Fraction::new(0.95).expect("a constant within its range")
}

fn min_runs() -> CountToMillion {
    CountToMillion::new(20.0).expect("a constant within its range")
}

fn max_runs() -> CountToMillion {
    CountToMillion::new(1000.0).expect("a constant within its range")
}

impl Precision {
    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the table.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (min, max) = (self.min_runs.whole(), self.max_runs.whole());
        if !quantity::names().any(|name| name == self.quantity) {
            let what = format!("{:?} is not a measured quantity", self.quantity);
            return Err(ConfigError::new("quantity", what, suggest(&self.quantity, "quantities", quantity::names())));
        }
        if min < LEAST_RUNS {
            let what = format!("{min} run has no interval");
            return Err(ConfigError::new("min_runs", what, format!("give at least {LEAST_RUNS}")));
        }
        if min > max {
            let what = format!("{min} is above max_runs = {max}");
            return Err(ConfigError::new("min_runs", what, "give at most max_runs, or raise max_runs"));
        }
        Ok(())
    }
}
