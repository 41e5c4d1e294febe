//! Independent bit errors.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site, jump};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::Probability;

/// Each bit on the wire, headers included, is wrong with the same probability, independently of the others: the binary
/// symmetric channel. A frame of n bits arrives intact with probability (1 - ber)^n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ber {
    /// Probability that a bit is wrong.
    pub ber: Probability,
}

impl ChannelConfig for Ber {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        Ok(Arc::new(*self))
    }
}

impl Prepared for Ber {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let ber = self.ber.get();
        Box::new(State { ber, gap: rng.failures_before_success(ber) })
    }
}

struct State {
    ber: f64,
    /// Number of correct bits before the next wrong one. It is geometric, so that only wrong bits need a random number.
    gap: u64,
}

impl Channel for State {
    fn quiet(&self) -> Quiet {
        Quiet { frames: u64::MAX, bits: self.gap, until: Time::NEVER }
    }

    fn skip(&mut self, _frames: u64, bits: u64) {
        self.gap -= bits;
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        jump::damage(&mut self.gap, frame.bits, errors, || rng.failures_before_success(self.ber))
    }
}
