//! The configuration of Hybla.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::PositiveSeconds;

/// Hybla's constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HyblaConfig {
    /// Round trip of the reference connection whose growth it matches, RTT0.
    pub rtt0_s: PositiveSeconds,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        // The value of the paper and of Linux; ns-3 uses 50 ms.
        HyblaConfig { rtt0_s: PositiveSeconds::new(0.025).expect("a constant within its range") }
    }
}
