//! What one direction of a hop is made of, ready for any number of runs.

use std::sync::Arc;

use super::QueueLimit;
use crate::bundle::{BundleConfig, LineConfig};
use crate::channel::Prepared;
use crate::link::setting::{PreparedDelay, PreparedRate};
use crate::turns::CLASSES;
use crate::units::BitRate;

/// One direction of one hop.
#[derive(Clone, Debug)]
pub struct HopSetup {
    /// The hop's name.
    pub name: String,
    /// Rate.
    pub rate: PreparedRate,
    /// One-way delay.
    pub delay: PreparedDelay,
    /// Queue limit.
    pub limit: QueueLimit,
    /// What a packet must find waiting to be marked with congestion; unlimited if none ever is.
    pub mark_from: QueueLimit,
    /// The weight of each class of service, `None` for strict ones; none at all if classes make no difference.
    pub weights: Option<[Option<f64>; CLASSES]>,
    /// Whether packets may overtake each other when the delay falls.
    pub overtakes: bool,
    /// The channel.
    pub channel: Arc<dyn Prepared>,
    /// The lines of a bundle, which stand in place of the link.
    pub bundle: Option<Arc<BundleSetup>>,
}

/// Lines that carry packets as one.
#[derive(Clone, Debug)]
pub struct BundleSetup {
    /// How they do.
    pub config: BundleConfig,
    /// Each of them.
    pub lines: Vec<LineConfig>,
}

impl BundleSetup {
    /// Rate of all lines together.
    pub fn rate(&self) -> BitRate {
        BitRate::new(self.lines.iter().map(|line| line.rate.get()).sum::<f64>().min(1e13)).expect("rates are positive")
    }
}
