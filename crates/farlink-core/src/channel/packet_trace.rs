//! Recorded losses of frames.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replay::{Recording, Replay};
use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site};
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::{Offset, Trace, TraceError};
use crate::units::Whole;

/// Frames are lost where the frames of a measurement were. At its end the recording starts over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketTrace {
    /// A trace file of kind "packet-loss".
    pub file: String,
    /// Index of the frame in the recording to start with, or "random" for another one in each run.
    #[serde(default)]
    pub offset: Offset<Whole>,
}

impl ChannelConfig for PacketTrace {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let trace = site.traces.load(&self.file)?;
        let Trace::PacketLoss { lost } = &*trace else {
            return Err(TraceError::wrong_kind(&self.file, &trace, "packet-loss").into());
        };
        let positions = lost.iter().zip(0..).filter_map(|(&lost, at)| lost.then_some(at)).collect();
        Ok(Arc::new(Ready(Recording { positions, length: lost.len() as u64, offset: self.offset })))
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
        Quiet { frames: self.0.gap, bits: u64::MAX, until: Time::NEVER }
    }

    fn skip(&mut self, frames: u64, _bits: u64) {
        self.0.gap -= frames;
    }

    fn carry(&mut self, _frame: &Frame, _rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        if self.0.gap > 0 {
            self.0.gap -= 1;
            return Fate::Delivered;
        }
        self.0.gap = self.0.pass();
        Fate::Lost
    }
}
