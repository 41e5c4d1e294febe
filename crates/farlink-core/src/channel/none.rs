//! A channel without errors or losses.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site};
use crate::rng::Rng;

/// Every frame arrives as it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clear {}

impl ChannelConfig for Clear {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        Ok(Arc::new(*self))
    }
}

impl Prepared for Clear {
    fn start(&self, _rng: &mut Rng) -> Box<dyn Channel> {
        Box::new(State)
    }
}

struct State;

impl Channel for State {
    fn quiet(&self) -> Quiet {
        Quiet::FOREVER
    }

    fn carry(&mut self, _frame: &Frame, _rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        Fate::Delivered
    }
}
