//! No code at all.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CodeConfig;
use crate::ConfigError;

/// No code: the bits are modulated as they are, and all errors of the demodulator remain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uncoded {}

impl CodeConfig for Uncoded {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        Ok(scheme::Coding::Uncoded)
    }
}
