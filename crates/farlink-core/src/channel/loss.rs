//! Independent losses of whole frames.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::Probability;

/// Each frame is lost with the same probability, independently of its length and of the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Probability that a frame is lost.
    pub loss: Probability,
}

impl ChannelConfig for Loss {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        Ok(Arc::new(*self))
    }
}

impl Prepared for Loss {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let loss = self.loss.get();
        Box::new(State { loss, intact: rng.failures_before_success(loss) })
    }
}

struct State {
    loss: f64,
    /// Number of intact frames before the next lost one. It is geometric, so that only losses need a random number.
    intact: u64,
}

impl Channel for State {
    fn quiet(&self) -> Quiet {
        Quiet { frames: self.intact, bits: u64::MAX, until: Time::NEVER }
    }

    fn skip(&mut self, frames: u64, _bits: u64) {
        self.intact -= frames;
    }

    fn carry(&mut self, _frame: &Frame, rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        if self.intact > 0 {
            self.intact -= 1;
            return Fate::Delivered;
        }
        self.intact = rng.failures_before_success(self.loss);
        Fate::Lost
    }
}
