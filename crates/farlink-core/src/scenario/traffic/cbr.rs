use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::units::{BitRate, Count};

/// Messages of equal length at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Application data in bits per second, without headers.
    pub rate_bps: BitRate,
    /// Application data in each message, in bytes. A message is sent every 8 x `payload_bytes` / `rate_bps` seconds.
    pub payload_bytes: Count,
    /// Total amount of data, in bytes. By default the source sends until the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Count>,
}

impl Traffic for Cbr {
    fn is_endless(&self) -> bool {
        self.bytes.is_none()
    }
}
