use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::units::Count;

/// One file. The flow is done when all of it has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Length of the file, in bytes.
    pub bytes: Count,
}

impl Traffic for File {
    fn is_endless(&self) -> bool {
        false
    }
}
