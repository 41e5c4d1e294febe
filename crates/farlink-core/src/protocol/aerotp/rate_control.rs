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
    /// A rate learnt from what arrives, the round trip and congestion marks. Beside others (`alone`) it takes more than they do.
    Learnt,
    /// As `learnt`, but beside others no more than CUBIC, unless they leave it.
    Friendly,
}
