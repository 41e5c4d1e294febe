//! A flow: its transport, its traffic, and when it starts.

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
    /// Class of service of its packets in both directions, for hops that serve classes (`service`) and bundles of IP paths
    /// (`paths.classes`); a lower class goes first. Defaults to 0. A packet whose transport gives it a class has that one instead.
    #[serde(default, skip_serializing_if = "is_first")]
    pub class: ClassNumber,
    /// Number of such flows, each with a connection of its own.
    #[serde(default = "one")]
    pub count: CountToMillion,
    /// When it starts, in seconds after the start of the run.
    #[serde(default)]
    pub start_s: Seconds,
    /// The flow starts at a random instant within this span after `start_s`, in seconds. The instant is drawn for each of `count`
    /// flows and each run.
    #[serde(default)]
    pub start_spread_s: Seconds,
    /// Whether gateways on the path split the flow's connection. Defaults to true. Gateways always forward datagrams (`kind =
    /// "udp"`) as a router does.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub split: bool,
    /// A restart: one of the two ends goes down, loses all its state and comes back. By default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// The traffic that it sends.
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
    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the flow.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.traffic.as_dyn().check().map_err(|error| error.within("traffic"))
    }
}
