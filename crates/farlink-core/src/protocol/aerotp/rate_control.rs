//! Where the rate of a connection comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the sending rate is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateControl {
    /// No rate: the sender sends the receiver's whole window at once.
    None,
    /// The fixed rate `rate_bps`.
    Fixed,
    /// A rate learnt from arrivals, the round trip and congestion marks.
    Learnt,
    /// As `learnt`, but during congestion not above the rate that TCP would reach (RFC 5348, section 3.1).
    Friendly,
}
