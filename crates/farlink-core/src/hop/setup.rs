//! The resolved configuration of one direction of a hop, ready for any number of runs.

use std::sync::Arc;

use super::{PolicerConfig, QueueLimit};
use crate::bundle::{BundleConfig, LineConfig, LinkArq};
use crate::channel::Prepared;
use crate::link::setting::{PreparedDelay, PreparedRate};
use crate::paths::{PathBundleConfig, PathRules};
use crate::time::Time;
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
    /// A bundle of IP paths, which replaces the link in both directions.
    pub paths: Option<Arc<PathsSetup>>,
}

impl HopSetup {
    /// Mean rate in bit/s; of a bundle, as if all lines were always as fast as they ever are.
    pub fn most_bps(&self) -> f64 {
        self.bundle.as_ref().map_or_else(|| self.rate.mean_bps(), |bundle| bundle.fastest_bps())
    }

    /// Whether a bundle replaces the link, of lines or of paths.
    pub fn is_bundle(&self) -> bool {
        self.bundle.is_some() || self.paths.is_some()
    }

    /// Average rate that the policer passes over `duration_s` seconds, in bit/s; infinite if there is none.
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

/// A bundle of paths, ready for any number of runs.
#[derive(Clone, Debug)]
pub struct PathsSetup {
    /// What both ends are set to.
    pub config: PathBundleConfig,
    /// The paths, by number.
    pub members: Vec<MemberSetup>,
}

/// A path of a bundle.
#[derive(Clone, Debug)]
pub struct MemberSetup {
    /// Its name.
    pub name: String,
    /// What it may be used for.
    pub rules: PathRules,
    /// The links from the near end to the far one, and back.
    pub links: [HopSetup; 2],
    /// When it is unplugged, and which ends are told: near, far.
    pub unplugged: Vec<(Time, Time, [bool; 2])>,
}

impl PathsSetup {
    /// The numbers of the paths that do not stand by; of all if all do.
    pub fn usual(&self) -> impl Iterator<Item = usize> {
        let is_all = self.members.iter().all(|member| member.rules.is_standby);
        (0..self.members.len()).filter(move |&path| is_all || !self.members[path].rules.is_standby)
    }

    /// Their mean rates together, in the direction that begins at an end.
    pub fn rate(&self, end: usize) -> BitRate {
        let bps: f64 = self.usual().map(|path| self.members[path].links[end].rate.mean_bps()).sum();
        BitRate::new(bps.clamp(1e-3, 1e13)).expect("it is within the range")
    }

    /// The longest of their delays.
    pub fn delay(&self, end: usize) -> Time {
        self.usual().map(|path| self.members[path].links[end].delay.longest()).max().unwrap_or(Time::ZERO)
    }
}
