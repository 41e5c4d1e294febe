//! A flow: which transport carries what, from when on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ScenarioError;
use super::traffic::TrafficKind;
use crate::units::{CountToMillion, Seconds};

/// Traffic from one end of the path to the other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of its transport.
    pub transport: String,
    /// How many such flows there are, each with a transport of its own.
    #[serde(default = "one")]
    pub count: CountToMillion,
    /// When it starts, in seconds after the start of the run.
    #[serde(default)]
    pub start_s: Seconds,
    /// It starts at a random instant within this span after `start_s`, drawn anew for each of `count` and each run.
    #[serde(default)]
    pub start_spread_s: Seconds,
    /// What it sends.
    pub traffic: TrafficKind,
}

fn one() -> CountToMillion {
    CountToMillion::new(1.0).expect("a constant within its range")
}

impl Flow {
    /// Checks what the types cannot; paths are relative to the flow.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.traffic.as_dyn().check().map_err(|error| error.within("traffic"))
    }
}
