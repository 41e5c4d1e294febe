//! BBR: sends at the bandwidth, and with the window, of its model of the path.
//!
//! The model uses the [samples](super::super::flight::Sample) of delivery rate and round-trip time that each acknowledgement
//! gives: the largest rate of the last rounds, and the least round trip of the last seconds.

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
    /// The round ends when a segment is acknowledged that was sent after this number of bytes was delivered.
    ends_with: u64,
    /// Whether the present acknowledgement began a new round.
    is_start: bool,
}

impl Rounds {
    /// Begins a new round here, regardless of the data in flight.
    fn restart(&mut self, delivered: u64) {
        self.ends_with = delivered;
    }

    /// Takes an acknowledgement that reports something new.
    fn update(&mut self, sample: &Sample) {
        self.is_start = sample.prior_delivered >= self.ends_with;
        if self.is_start {
            self.ends_with = sample.delivered;
            self.count += 1;
        }
    }
}
