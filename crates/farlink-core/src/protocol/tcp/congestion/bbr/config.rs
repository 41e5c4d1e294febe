//! What a scenario says about BBR.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{PositiveSeconds, Probability};

/// Constants of BBR that decide on long paths; the defaults are those of Linux and of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BbrConfig {
    /// How long a round-trip time stands as the least before the sender all but stops to measure it again (ProbeRTT); on a
    /// path whose round trip is not much shorter, a longer one keeps it from stopping most of the time.
    pub min_rtt_window_s: PositiveSeconds,
    /// How long it stays so, at least; a round trip in any case.
    pub probe_rtt_s: PositiveSeconds,
    /// By which share it paces below the bandwidth measured.
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
