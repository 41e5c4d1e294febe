//! Concatenated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, Unfit, built::Built};

/// Concatenated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concatenated {}

impl CodeConfig for Concatenated {
    fn build(&self) -> Result<Built, Unfit> {
        Ok(Built::Uncoded)
    }
}
