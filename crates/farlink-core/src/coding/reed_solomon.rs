//! ReedSolomon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, Unfit, built::Built};

/// ReedSolomon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReedSolomon {}

impl CodeConfig for ReedSolomon {
    fn build(&self) -> Result<Built, Unfit> {
        Ok(Built::Uncoded)
    }
}
