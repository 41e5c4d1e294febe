//! How long the next new frame is, from how many bits are wrong.
//!
//! Short frames lose less to an error, long ones less to headers; with independent errors, one length is best (Epple, section
//! 3.3.3, equation (11)). Over fading the error rate is another one each millisecond: here the length follows it. The estimate
//! from acknowledgements ([`Estimator`]) is a round trip old by nature, whatever its memory; the genie, who is told the
//! error rate of its link by the link, shows what that costs.
//!
//! Frames are cut to the length of the moment when they are sent first. With selective repeat, a frame keeps its length when it
//! is repeated: its number stands for its data, and the receiver may hold those that follow. While it is too long to get
//! through, others go first. In go-back-N and stop-and-wait
//! nothing gets past a frame that is too long for the moment, so there frames are cut again, never longer; the receiver
//! drops the beginning that it has, as their place in the stream says. That takes that none is given up
//! (`max_transmissions`): what is given up has a place and a length.

mod config;
mod estimator;
mod rule;

use crate::time::Time;

pub use config::{AdaptiveLength, Estimate, LengthRule};
use estimator::Estimator;
use rule::{best_bits, hazard_of};

/// Chooses the length of frames.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Length {
    source: Source,
    rule: Rule,
    header_bits: f64,
    min_bytes: u32,
    max_bytes: u32,
    /// As long as nothing new is known.
    current_bytes: u32,
}

/// Where the error rate is from.
#[derive(Clone, Debug)]
enum Source {
    Acknowledged(Estimator),
    Genie,
    /// Only when the latest loss was noticed, and for how long it counts.
    LatestLoss {
        at: Option<Time>,
        memory: Time,
    },
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Optimal,
    Power { scale: f64, exponent: f64 },
}

impl Length {
    /// For frames of at most `max_bytes` of data behind so many bytes of header.
    pub(in crate::protocol) fn new(config: &AdaptiveLength, header_bytes: u64, max_bytes: u64) -> Self {
        let whole = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let header_bits = header_bytes as f64 * 8.0;
        let source = match (config.rule, config.estimate) {
            (LengthRule::TwoLengths, _) => Source::LatestLoss { at: None, memory: config.memory_s.time() },
            (_, Estimate::Genie) => Source::Genie,
            (_, Estimate::Acknowledged) => {
                let start = hazard_of(max_bytes as f64 * 8.0, header_bits);
                Source::Acknowledged(Estimator::new(config.memory_s.time(), config.prior_losses.get(), start))
            }
        };
        let rule = match config.rule {
            LengthRule::Optimal | LengthRule::TwoLengths => Rule::Optimal,
            LengthRule::Power => Rule::Power { scale: config.scale.get(), exponent: config.exponent.get() },
        };
        let max_bytes = whole(max_bytes);
        let min_bytes = whole(config.min_bytes.whole()).min(max_bytes);
        Length { source, rule, header_bits, min_bytes, max_bytes, current_bytes: max_bytes }
    }

    /// Whether it is the link that says how many bits are wrong.
    pub(in crate::protocol) fn wants_hints(&self) -> bool {
        matches!(self.source, Source::Genie)
    }

    /// The link's bit error rate is this from now on.
    pub(in crate::protocol) fn set_link_ber(&mut self, ber: f64) {
        if self.wants_hints() {
            self.follow(-libm::log1p(-ber.clamp(0.0, 1.0)));
        }
    }

    /// So many frames, with so much data together, have arrived intact.
    #[inline]
    pub(in crate::protocol) fn on_acknowledged(&mut self, now: Time, frames: u64, bytes: u64) {
        if let Source::Acknowledged(estimator) = &mut self.source {
            estimator.add_intact(now, bytes as f64 * 8.0 + frames as f64 * self.header_bits);
        }
    }

    /// A frame with so much data is taken for lost.
    pub(in crate::protocol) fn on_lost(&mut self, now: Time, bytes: u32) {
        match &mut self.source {
            Source::Acknowledged(estimator) => estimator.add_lost(now, f64::from(bytes) * 8.0 + self.header_bits),
            Source::LatestLoss { at, .. } => *at = Some(now),
            Source::Genie => {}
        }
    }

    /// Data of the next new frame, in bytes.
    #[inline]
    pub(in crate::protocol) fn next_bytes(&mut self, now: Time) -> u32 {
        match &mut self.source {
            Source::Acknowledged(estimator) => {
                if let Some(hazard) = estimator.poll(now) {
                    self.follow(hazard);
                }
            }
            Source::LatestLoss { at, memory } => {
                let is_recent = at.is_some_and(|at| now < at + *memory);
                self.current_bytes = if is_recent { self.min_bytes } else { self.max_bytes };
            }
            Source::Genie => {}
        }
        self.current_bytes
    }

    /// Whether a frame with so much data would rather be lost than not, by the error rate that the length of the moment is the
    /// best one for: that of equation (11), h = l' / (l (l + l')), and h L > 1.
    pub(in crate::protocol) fn is_too_long(&mut self, now: Time, bytes: u32) -> bool {
        let best_bits = f64::from(self.next_bytes(now)) * 8.0;
        f64::from(bytes) * 8.0 * hazard_of(best_bits, self.header_bits) > 1.0
    }

    fn follow(&mut self, hazard: f64) {
        let best = best_bits(hazard, self.header_bits);
        let bits = match self.rule {
            Rule::Optimal => best,
            Rule::Power { scale, exponent } => scale * self.header_bits * libm::pow(best / self.header_bits, exponent),
        };
        // Infinite without errors; the cast stops at the largest number.
        self.current_bytes = (libm::round(bits / 8.0) as u32).clamp(self.min_bytes, self.max_bytes);
    }
}

#[cfg(test)]
mod tests;
