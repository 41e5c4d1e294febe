//! What breaks down during a run, and comes back without its memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{PositiveSeconds, Seconds};

/// Which of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one nearer to the source.
    Sender,
    /// The one nearer to the sink.
    Receiver,
}

/// Something goes down with all that it had in memory, and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Which of the two goes down.
    pub side: Side,
    /// When, in seconds after the start of the run.
    pub at_s: Seconds,
    /// For how long; packets that reach it meanwhile vanish.
    pub down_for_s: PositiveSeconds,
}

impl Restart {
    /// Checks it against the end of the run; the path is relative to its table.
    pub(super) fn check(&self, duration: Option<PositiveSeconds>) -> Result<(), ConfigError> {
        match duration {
            Some(duration) if self.at_s.get() >= duration.get() => {
                let (at, end) = (self.at_s.get(), duration.get());
                let what = format!("it goes down at {at} s, after the end at duration_s = {end}");
                Err(ConfigError::new("at_s", what, format!("give less than {end}")))
            }
            _ => Ok(()),
        }
    }
}
