use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::units::{BitRate, Count};

/// Messages of equal length at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Application data per second, headers not included.
    pub rate_bps: BitRate,
    /// Application data in each message; a message goes out every `payload_bytes` times 8 over `rate_bps`.
    pub payload_bytes: Count,
    /// Ends after so many bytes; goes on until the end of the run unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Count>,
}

impl Traffic for Cbr {
    fn is_endless(&self) -> bool {
        self.bytes.is_none()
    }
}
