//! The configuration of Vegas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::Count;

/// How many segments Vegas keeps in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VegasConfig {
    /// With fewer in the queue, the window grows.
    pub alpha_segments: Count,
    /// With more in the queue, it shrinks; at least `alpha_segments`.
    pub beta_segments: Count,
    /// With more in the queue, slow start ends.
    pub gamma_segments: Count,
}

impl Default for VegasConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        VegasConfig { alpha_segments: count(2), beta_segments: count(4), gamma_segments: count(1) }
    }
}

impl VegasConfig {
    pub(in crate::protocol::tcp) fn check(&self) -> Result<(), ConfigError> {
        let (alpha, beta) = (self.alpha_segments.whole(), self.beta_segments.whole());
        if alpha > beta {
            let what = format!("{alpha} is above beta_segments = {beta}: the window would grow and shrink at once");
            return Err(ConfigError::new("alpha_segments", what, "give at most beta_segments"));
        }
        Ok(())
    }
}
