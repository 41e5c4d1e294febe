//! TCP versions: what each does about loss. One file, one line each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A TCP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Fast retransmit, then slow start (4.3BSD-Tahoe).
    Tahoe,
    /// Fast recovery until the first new acknowledgement (RFC 2581).
    Reno,
    /// Fast recovery through partial acknowledgements (RFC 6582).
    NewReno,
    /// Recovery from selective acknowledgements (RFC 6675).
    Sack,
}
