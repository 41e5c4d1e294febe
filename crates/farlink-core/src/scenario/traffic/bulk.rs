use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;

/// A saturated source: there is always data to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {}

impl Traffic for Bulk {
    fn is_endless(&self) -> bool {
        true
    }
}
