//! Recorded bit errors.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replay::{Recording, Replay};
use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site, jump};
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::{Offset, Trace, TraceError};
use crate::units::Whole;

/// Bits on the wire are wrong where the bits of a measurement were. At its end the recording starts over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BitTrace {
    /// A trace file of kind "bit-errors".
    pub file: String,
    /// Index of the bit in the recording to start with, or "random" for another one in each run.
    #[serde(default)]
    pub offset: Offset<Whole>,
}

impl ChannelConfig for BitTrace {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let trace = site.traces.load(&self.file)?;
        let Trace::BitErrors { position, bits } = &*trace else {
            return Err(TraceError::wrong_kind(&self.file, &trace, "bit-errors").into());
        };
        let positions = position.as_slice().into();
        Ok(Arc::new(Ready(Recording { positions, length: *bits, offset: self.offset })))
    }
}

#[derive(Debug)]
struct Ready(Recording);

impl Prepared for Ready {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        Box::new(State(self.0.start(rng)))
    }
}

struct State(Replay);

impl Channel for State {
    fn quiet(&self) -> Quiet {
        Quiet { frames: u64::MAX, bits: self.0.gap, until: Time::NEVER }
    }

    fn skip(&mut self, _frames: u64, bits: u64) {
        self.0.gap -= bits;
    }

    fn carry(&mut self, frame: &Frame, _rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let mut gap = self.0.gap;
        let fate = jump::damage(&mut gap, frame.bits, errors, || self.0.pass());
        self.0.gap = gap;
        fate
    }
}
