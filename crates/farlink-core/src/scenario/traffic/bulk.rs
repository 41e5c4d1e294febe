use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;

/// There is always more to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {}

impl Traffic for Bulk {
    fn is_endless(&self) -> bool {
        true
    }
}
