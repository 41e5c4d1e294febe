//! No code at all.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CodeConfig;
use crate::ConfigError;

/// No code: the bits go to the modulator as they are, and errors come as the noise makes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uncoded {}

impl CodeConfig for Uncoded {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        Ok(scheme::Coding::Uncoded)
    }
}
