//! Restarts: an end of a connection, or a gateway, goes down during a run and comes back without its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{PositiveSeconds, Seconds};

/// One of the two ends or gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one on the side of the source.
    Sender,
    /// The one on the side of the sink.
    Receiver,
}

/// A restart: an end or a gateway goes down, loses its memory, and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Which of the two goes down.
    pub side: Side,
    /// When it goes down, in seconds after the start of the run.
    pub at_s: Seconds,
    /// How long it stays down, in seconds. Packets that arrive meanwhile are dropped.
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
