//! A flow: which transport carries what, from when on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::restart::Restart;
use super::traffic::TrafficKind;
use crate::ConfigError;
use crate::units::{ClassNumber, CountToMillion, Seconds};

/// Traffic from one end of the path to the other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of its transport.
    pub transport: String,
    /// Class of service of its packets, there and back, for hops that serve classes (`service`): lower goes first; 0 unless given.
    /// A packet that names a class itself has that one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub class: ClassNumber,
    /// How many such flows there are, each with a transport of its own.
    #[serde(default = "one")]
    pub count: CountToMillion,
    /// When it starts, in seconds after the start of the run.
    #[serde(default)]
    pub start_s: Seconds,
    /// It starts at a random instant within this span after `start_s`, drawn anew for each of `count` and each run.
    #[serde(default)]
    pub start_spread_s: Seconds,
    /// Whether gateways on its path split it; yes unless given. Datagrams (`kind = "udp"`) always pass them as they pass a router.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub split: bool,
    /// One of its two ends goes down with all its state and starts anew; never unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// What it sends.
    pub traffic: TrafficKind,
}

fn one() -> CountToMillion {
    CountToMillion::new(1.0).expect("a constant within its range")
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_first(class: &ClassNumber) -> bool {
    class.whole() == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

impl Flow {
    /// Checks what the types cannot; paths are relative to the flow.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.traffic.as_dyn().check().map_err(|error| error.within("traffic"))
    }
}
