//! Erasure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, Unfit, built::Built};

/// Erasure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {}

impl CodeConfig for Erasure {
    fn build(&self) -> Result<Built, Unfit> {
        Ok(Built::Uncoded)
    }
}
