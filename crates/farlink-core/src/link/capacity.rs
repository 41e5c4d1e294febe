//! What a transmitter could send in a span of time.

use std::sync::Arc;

use super::series::{Recorded, Transmitter};
use crate::time::Time;

/// What a transmitter could send in any span of a run.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// So many bits in every second.
    Constant(f64),
    /// What a recording allows.
    Recorded(Arc<Recorded>),
}

impl Capacity {
    pub(super) fn of(transmitter: &Transmitter) -> Self {
        match transmitter {
            Transmitter::Constant(byte_time, _) => Capacity::Constant(byte_time.rate_bps()),
            Transmitter::Rate(series) => Capacity::Recorded(Arc::new(series.recorded())),
            Transmitter::Delivery(series) => Capacity::Recorded(Arc::new(series.recorded())),
        }
    }

    /// The mean rate from one instant to another, both included, in bit/s; NaN if that is no time.
    pub fn mean_bps(&self, from: Time, to: Time) -> f64 {
        match self {
            Capacity::Constant(rate_bps) => *rate_bps,
            Capacity::Recorded(recorded) => recorded.bits(from, to) / to.since(from).as_secs_f64(),
        }
    }
}
