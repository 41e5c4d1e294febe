//! The capacity of a transmitter over time.

use std::sync::Arc;

use super::series::{Recorded, Transmitter};
use crate::time::Time;

/// The number of bits that a transmitter could send in any interval of a run.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// This number of bits per second.
    Constant(f64),
    /// According to a recording.
    Recorded(Arc<Recorded>),
    /// That of several transmitters together.
    Together(Vec<Capacity>),
}

impl Capacity {
    pub(super) fn of(transmitter: &Transmitter) -> Self {
        match transmitter {
            Transmitter::Constant(byte_time, _) => Capacity::Constant(byte_time.rate_bps()),
            Transmitter::Rate(series) => Capacity::Recorded(Arc::new(series.recorded())),
            Transmitter::Delivery(series) => Capacity::Recorded(Arc::new(series.recorded())),
        }
    }

    /// The mean rate from one time to another, both included, in bit/s; NaN for an empty interval.
    pub fn mean_bps(&self, from: Time, to: Time) -> f64 {
        match self {
            Capacity::Constant(rate_bps) => *rate_bps,
            Capacity::Together(all) => all.iter().map(|one| one.mean_bps(from, to)).sum(),
            Capacity::Recorded(recorded) => recorded.bits(from, to) / to.since(from).as_secs_f64(),
        }
    }
}
