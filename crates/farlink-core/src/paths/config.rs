//! Policy of a bundle of paths for each class of packets, and use of each path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Bytes that the seal of a packet adds to it: kind and path, connection id, packet number, tag (docs/bundle-protocol.md).
pub const SEAL_BYTES: u32 = 1 + 4 + 4 + 16;

/// Number of classes; class 0 goes first.
pub const CLASSES: usize = 8;

/// Largest number of paths of a bundle.
pub const MOST_PATHS: usize = 16;

/// Which paths the packets of a class take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// A copy on each of the two paths that deliver first; the first copy that arrives counts. Paces and windows hardly hold these
    /// packets back, so the class is for a small part of the load.
    Redundant,
    /// As `redundant`, on every path that may carry the class.
    RedundantOnAll,
    /// The path that delivers the packet first. Paths that deliver later help while packets wait.
    #[default]
    EarliestDelivery,
    /// The path with the lowest `cost`; a dearer one only while no cheaper one is up, or while packets have waited for `spill_s`.
    Cheapest,
}

/// How a class is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRules {
    /// Which paths its packets take.
    pub policy: Policy,
    /// Whether the packets of a flow are delivered in the order in which they were sent. Otherwise each is delivered when it arrives.
    pub is_ordered: bool,
}

impl Default for ClassRules {
    fn default() -> Self {
        ClassRules { policy: Policy::EarliestDelivery, is_ordered: true }
    }
}

/// One end of a bundle. Both ends may differ in every value.
#[derive(Clone, Debug)]
pub struct PathBundleConfig {
    /// The rules of each class.
    pub classes: [ClassRules; CLASSES],
    /// A lost packet is sent again at most so many times. What a path held when it failed is sent again once more.
    pub repeat: u8,
    /// A packet older than this is not sent again, and counts as lost.
    pub repeat_within: Time,
    /// Upper bound of the time for which a receiver holds packets back because an earlier one is missing. Usually the bound that
    /// follows from round trips and delays is far lower.
    pub longest_wait: Time,
    /// A packet occupies a path at most for so long: longer ones are cut, so that a small packet waits at most for one piece.
    pub latency: Time,
    /// Packets of a class with [`Policy::Cheapest`] that have waited for so long go over the next dearer path as well.
    pub spill: Time,
    /// No piece is shorter because of `latency`, in bytes.
    pub shortest_piece: u32,
    /// Most bytes that wait in front of the paths.
    pub queue_bytes: usize,
    /// Most bytes in flight over all paths together, those that wait to be sent again included.
    pub flight_bytes: usize,
    /// Most bytes that wait at the receiver for earlier packets and missing pieces.
    pub reorder_bytes: usize,
    /// A path that loses a larger share of its packets is left out while others are up; in [0, 1].
    pub most_loss: f64,
    /// A path whose one-way delay is so much longer than that of the fastest one is left out while others are up.
    pub most_lag: Time,
}

impl Default for PathBundleConfig {
    fn default() -> Self {
        PathBundleConfig {
            classes: [ClassRules::default(); CLASSES],
            repeat: 3,
            repeat_within: Time::from_secs(10),
            longest_wait: Time::from_secs(10),
            latency: Time::from_millis(250),
            spill: Time::from_secs(1),
            shortest_piece: 256,
            queue_bytes: 4 << 20,
            flight_bytes: 16 << 20,
            reorder_bytes: 4 << 20,
            most_loss: 0.12,
            most_lag: Time::from_secs(1),
        }
    }
}

/// Use of a path.
#[derive(Clone, Debug)]
pub struct PathRules {
    /// The number of the path in packets, the same at both ends; the lowest free one unless set. Below [`MOST_PATHS`].
    pub number: Option<u8>,
    /// Whether it carries packets only while no other path can carry their class.
    pub is_standby: bool,
    /// Bit `c` says whether it may carry class `c`.
    pub classes: u8,
    /// Cost of a byte, in any unit, for [`Policy::Cheapest`].
    pub cost: f64,
    /// Longest packet, headers of the seal already taken off, in bytes.
    pub mtu: u32,
    /// Length of all headers and checks around a packet, which count in the rate and in the budgets, in bytes.
    pub overhead_bytes: u32,
    /// Most bytes of data a day, headers included; then the path carries probes only until the next day.
    pub bytes_a_day: Option<u64>,
    /// Most minutes a day in which it carries data.
    pub minutes_a_day: Option<u32>,
    /// Budget of probes and of their answers, headers included, in bytes a day.
    pub probe_bytes_a_day: u64,
    /// Time between two probes of an idle path, if the budget allows it.
    pub probe_interval: Time,
    /// Delay that packets of this end may cause in the path's own buffers, unless jitter, round trip or slow packets ask for more.
    pub queue: Time,
}

impl PathRules {
    /// A path without limits.
    pub const DEFAULT: PathRules = PathRules {
        number: None,
        is_standby: false,
        classes: u8::MAX,
        cost: 1.0,
        mtu: 1400,
        overhead_bytes: 56,
        bytes_a_day: None,
        minutes_a_day: None,
        probe_bytes_a_day: 20_000_000,
        probe_interval: Time::from_secs(2),
        queue: Time::from_millis(10),
    };
}

impl Default for PathRules {
    fn default() -> Self {
        PathRules::DEFAULT
    }
}
