//! Limits of a study's cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Count, PositiveSeconds};

/// Limits of a study's cost: a study whose estimated cost exceeds them is refused before it begins. The estimate counts packets,
/// messages and connections. It may be too high, because it ignores that losses reduce a sender's window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// CPU time of all runs of all points together, on one core, in seconds. Defaults to a day.
    pub cpu_s: PositiveSeconds,
    /// Peak memory, in bytes. Defaults to four fifths of the machine's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Count>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { cpu_s: PositiveSeconds::new(86_400.0).expect("a constant within its range"), memory_bytes: None }
    }
}
