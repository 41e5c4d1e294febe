//! Arrivals gained by sending more.

use super::phases::Phase;

/// Share that is left of what was measured, after each cycle: five cycles, or twenty where much is lost at random.
const KEPT: f64 = 0.8;
const KEPT_LOSSY: f64 = 0.95;
/// Loss from which on more cycles are pooled.
pub(super) const LOSSY: f64 = 0.05;
/// Packets above and below the base rate that must be known before the margin is.
const LEAST_PACKETS: f64 = 20.0;

/// Packets of phases above and below the base rate. `[P14]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margin {
    above: Side,
    below: Side,
}

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    arrived: f64,
    known: f64,
    /// Gain times packets.
    gain: f64,
}

impl Side {
    fn keep(&mut self, share: f64) {
        self.arrived *= share;
        self.known *= share;
        self.gain *= share;
    }

    fn add(&mut self, phase: &Phase) {
        self.arrived += phase.packets.arrived;
        self.known += phase.packets.known();
        self.gain += phase.gain * phase.packets.known();
    }

    /// Packets that arrive for one packet at the base rate.
    fn delivered(&self) -> f64 {
        self.arrived / self.known * (self.gain / self.known)
    }

    fn mean_gain(&self) -> f64 {
        self.gain / self.known
    }
}

impl Margin {
    pub(super) fn add(&mut self, phase: &Phase) {
        if phase.gain > ABOVE {
            self.above.add(phase);
        } else if phase.gain < BELOW {
            self.below.add(phase);
        }
    }

    /// Forgets some of what was measured, at the end of a cycle.
    pub(super) fn age(&mut self, least_loss: f64) {
        self.keep(if least_loss > LOSSY { KEPT_LOSSY } else { KEPT });
    }

    /// The base rate has changed by this factor: what was measured before tells less of it.
    pub(super) fn discount(&mut self, factor: f64) {
        self.keep(libm::exp(-8.0 * libm::log(factor).abs()));
    }

    fn keep(&mut self, share: f64) {
        self.above.keep(share);
        self.below.keep(share);
    }

    /// The share of additional packets that arrives, of those that arrive below the base rate: 1 where there is room, 0 where
    /// every further packet is lost. `None` if too little is known.
    pub(super) fn value(&self) -> Option<f64> {
        let Margin { above, below } = self;
        if above.known < LEAST_PACKETS || below.known < LEAST_PACKETS || below.arrived <= 0.0 {
            return None;
        }
        let more = above.mean_gain() - below.mean_gain();
        let share = below.arrived / below.known;
        Some((above.delivered() - below.delivered()) / (more * share))
    }
}

/// Phases with a larger gain are above those with a smaller one than `BELOW`.
const ABOVE: f64 = 0.99;
const BELOW: f64 = 0.95;
