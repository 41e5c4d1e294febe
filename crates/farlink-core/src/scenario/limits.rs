//! What a study may cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Count, PositiveSeconds};

/// What a study may cost: one whose estimate is above is refused before it begins. The estimate counts packets, messages and
/// connections. It does not know of packets that are never sent because losses hold a window back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// CPU time of all runs of all points together, on one core; a day unless given.
    pub cpu_s: PositiveSeconds,
    /// Memory at any time; four fifths of what the machine has unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Count>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { cpu_s: PositiveSeconds::new(86_400.0).expect("a constant within its range"), memory_bytes: None }
    }
}
