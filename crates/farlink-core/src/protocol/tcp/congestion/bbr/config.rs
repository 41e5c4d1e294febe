//! The configuration of BBR.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{PositiveSeconds, Probability};

/// Constants of BBR that matter on long paths; the defaults are those of Linux and of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BbrConfig {
    /// How long a round-trip time counts as the least, before the sender almost stops sending to measure it again (ProbeRTT). On
    /// a path with a round trip of nearly this length, a longer window avoids that it stops most of the time.
    pub min_rtt_window_s: PositiveSeconds,
    /// Shortest duration of ProbeRTT; it lasts at least one round trip in any case.
    pub probe_rtt_s: PositiveSeconds,
    /// Share by which the pacing rate lies below the measured bandwidth.
    #[schemars(extend("exclusiveMaximum" = 1))]
    pub pacing_margin: Probability,
}

impl Default for BbrConfig {
    fn default() -> Self {
        let seconds = |s| PositiveSeconds::new(s).expect("a constant within its range");
        BbrConfig {
            min_rtt_window_s: seconds(10.0),
            probe_rtt_s: seconds(0.2),
            pacing_margin: Probability::new(0.01).expect("a constant within its range"),
        }
    }
}
