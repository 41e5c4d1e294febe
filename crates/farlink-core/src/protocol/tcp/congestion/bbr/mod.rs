//! BBR: sends at the bandwidth and with the window that a model of the path asks for.
//!
//! The model comes from the [samples](super::super::flight::Sample) of delivery rate and round-trip time that each
//! acknowledgement gives: the largest rate of the last rounds, the least round trip of the last seconds.

#[cfg(test)]
mod bench;
mod config;
mod filter;
mod model;
mod policer;
pub(super) mod v1;
pub(super) mod v3;

pub use config::BbrConfig;

use crate::protocol::tcp::flight::Sample;
use model::{Aggregation, Model};

/// Counts round trips by packets: one ends when the first segment sent after its beginning is acknowledged.
#[derive(Clone, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends with a segment that was sent when so much had been delivered, bytes.
    ends_with: u64,
    /// The acknowledgement at hand began a new one.
    is_start: bool,
}

impl Rounds {
    /// A new round begins here, whatever was under way.
    fn restart(&mut self, delivered: u64) {
        self.ends_with = delivered;
    }

    /// An acknowledgement that reports something new.
    fn update(&mut self, sample: &Sample) {
        self.is_start = sample.prior_delivered >= self.ends_with;
        if self.is_start {
            self.ends_with = sample.delivered;
            self.count += 1;
        }
    }
}
