//! What a scenario says about Hybla.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::PositiveSeconds;

/// Hybla's constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HyblaConfig {
    /// Round trip of the connection to keep up with, RTT0.
    pub rtt0_s: PositiveSeconds,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        // The paper's and Linux's; ns-3 has 50 ms.
        HyblaConfig { rtt0_s: PositiveSeconds::new(0.025).expect("a constant within its range") }
    }
}
