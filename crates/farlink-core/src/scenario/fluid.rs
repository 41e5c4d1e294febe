//! The engine `fluid`: the keys that it supports, and its options.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::near_names::suggest;
use crate::ConfigError;
use crate::units::{PositiveSeconds, Seconds};

/// Keys that the engine supports. It computes long-run averages, which do not depend on the keys for the start and the end of a
/// run.
pub(super) const HONOURED: &[&str] = &[
    "title",
    "seed",
    "engines",
    "unsupported",
    "precision.*",
    "fluid.**",
    "path",
    "link.rate_bps",
    "link.rate_bps.kind",
    "link.rate_bps.file",
    "link.delay_s",
    "link.queue_bytes",
    "link.queue_packets",
    "link.channel.kind",
    "link.channel.loss",
    "link.channel.ber",
    "link.channel.file",
    "link.channel.lost_above_ber",
    "link.return.rate_bps",
    "link.return.delay_s",
    "link.return.processing_s",
    "transport.*.kind",
    "transport.*.variant",
    "transport.*.congestion_control",
    "transport.*.cubic.*",
    "transport.*.segment_bytes",
    "transport.*.header_bytes",
    "transport.*.ack_bytes",
    "transport.*.timestamps",
    "transport.*.window_scaling",
    "transport.*.max_window_segments",
    "transport.*.receive_window_segments",
    "transport.*.duplicate_ack_threshold",
    "transport.*.limited_transmit",
    "transport.*.delayed_ack",
    "transport.*.byte_counting",
    "transport.*.rto.minimum_s",
    "transport.*.rto.maximum_s",
    "flow.*.transport",
    "flow.*.count",
    "flow.*.traffic.kind",
    // The start and length of a run, and the content of its trace.
    "duration_s",
    "runs",
    "measure.*",
    "limits.*",
    "flow.*.start_s",
    "flow.*.start_spread_s",
    "transport.*.initial_window_segments",
    "transport.*.initial_ssthresh_segments",
    "transport.*.hystart",
    "transport.*.handshake",
    "transport.*.fin",
    "transport.*.restart_after_idle",
    "transport.*.rto.initial_s",
];

/// Options of the engine `fluid`; other engines ignore them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fluid {
    /// Each flow has an equal part of the bottleneck's rate and of its queue for itself, instead of sharing both.
    pub own_buffers: bool,
    /// Several losses may happen within one round trip. Otherwise a loss that follows another within a round trip is delayed
    /// until the first one is repaired, as in TGEP (Celandroni et al.).
    pub multiple_losses: bool,
    /// Retransmission timers may expire: when a retransmission is lost, or when too few acknowledgements come back to reveal a
    /// loss.
    pub timeouts: bool,
    /// For each flow name: how much longer the flow's round-trip time is than that of the path, in seconds.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub extra_round_trip_s: IndexMap<String, Seconds>,
    /// Longest simulated time of a point, in seconds. A point ends earlier once its goodput is known precisely enough.
    pub max_time_s: PositiveSeconds,
}

impl Default for Fluid {
    fn default() -> Self {
        Fluid {
            own_buffers: false,
            multiple_losses: true,
            timeouts: true,
            extra_round_trip_s: IndexMap::new(),
            max_time_s: PositiveSeconds::new(1e7).expect("a constant within its range"),
        }
    }
}

impl Fluid {
    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the table.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), ConfigError> {
        for name in self.extra_round_trip_s.keys() {
            if !scenario.flow.contains_key(name) {
                let remedy = suggest(name, "flows", scenario.flow.keys().map(String::as_str));
                let what = format!("there is no [flow.{name}]");
                return Err(ConfigError::new(format!("extra_round_trip_s.{name}"), what, remedy));
            }
        }
        Ok(())
    }
}
