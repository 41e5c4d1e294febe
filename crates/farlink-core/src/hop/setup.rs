//! The resolved configuration of one direction of a hop, ready for any number of runs.

use std::sync::Arc;

use super::{PolicerConfig, QueueLimit};
use crate::bundle::{BundleConfig, LineConfig, LinkArq};
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
    /// The policer in front of the queue.
    pub policer: Option<PolicerConfig>,
    /// Queue limit.
    pub limit: QueueLimit,
    /// Backlog from which on arriving packets are marked with congestion; unlimited if none is ever marked.
    pub mark_from: QueueLimit,
    /// Weight of each class of service, `None` for a strict class; `None` as a whole if the queue ignores classes.
    pub weights: Option<[Option<f64>; CLASSES]>,
    /// Whether packets may overtake each other when the delay falls.
    pub overtakes: bool,
    /// The channel.
    pub channel: Arc<dyn Prepared>,
    /// A bundle of lines, which replaces the link.
    pub bundle: Option<Arc<BundleSetup>>,
}

impl HopSetup {
    /// Mean rate in bit/s; of a bundle, as if all lines were always as fast as they ever are.
    pub fn most_bps(&self) -> f64 {
        self.bundle.as_ref().map_or_else(|| self.rate.mean_bps(), |bundle| bundle.fastest_bps())
    }

    /// What the policer passes on average over `duration_s` seconds, in bit/s; infinite if there is none.
    pub fn policed_bps(&self, duration_s: f64) -> f64 {
        let passes = |policer: PolicerConfig| policer.rate_bps.get() + policer.burst_bytes.get() * 8.0 / duration_s;
        self.policer.map_or(f64::INFINITY, passes)
    }
}

/// A bundle of lines.
#[derive(Clone, Debug)]
pub struct BundleSetup {
    /// Configuration of the bundle.
    pub config: BundleConfig,
    /// Configuration of each line in this direction.
    pub lines: Vec<LineConfig>,
}

impl BundleSetup {
    /// The same bundle in the other direction.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let lines = self.lines.iter().map(|line| line.reversed()).collect();
        BundleSetup { config: self.config.reversed(), lines }
    }

    /// Largest total rate of all lines in this direction, in bit/s: lines whose `arq` changes may become faster.
    pub fn fastest_bps(&self) -> f64 {
        let fastest = |line: &LineConfig| line.arq.as_ref().map_or(1.0, LinkArq::fastest_factor) * line.rate.get();
        self.lines.iter().map(fastest).sum()
    }

    /// Total rate of all lines in this direction, at the beginning.
    pub fn rate(&self) -> BitRate {
        BitRate::new(self.lines.iter().map(|line| line.rate.get()).sum::<f64>().min(1e13)).expect("rates are positive")
    }
}
