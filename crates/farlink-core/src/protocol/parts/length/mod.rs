//! Chooses the length of the next new frame by the bit error rate.
//!
//! Short frames lose less to an error, long frames less to headers; with independent errors, one length is best (Epple, section
//! 3.3.3, equation (11)). Over fading the error rate changes each millisecond, and the length follows it. The estimate from
//! acknowledgements ([`Estimator`]) is always a round trip old, whatever its memory. The genie gets the error rate from its link;
//! the comparison shows the cost of that delay. Between them is the far end's measurement of its received power
//! ([`Measurement`]), which has no noise of counted losses, but arrives late.
//!
//! A frame gets the present length when it is sent first. With selective repeat, a frame keeps its length when it is sent again,
//! because its number stands for its data, and the receiver may hold the frames after it. While it is too long to get through,
//! other frames are sent first. In go-back-N and stop-and-wait no frame can pass one that is too long, so there it is divided
//! again, into frames that are never longer. The receiver drops the part that it has, by its position in the stream. This needs
//! that no frame is given up (`max_transmissions`), because a frame that is given up has a fixed position and length.

mod config;
mod estimator;
mod measurement;
mod rule;

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::time::Time;

pub use config::{AdaptiveLength, Estimate, LengthRule};
use estimator::Estimator;
use measurement::Measurement;
use rule::{best_bits, hazard_of};

/// Chooses the length of frames.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Length {
    source: Source,
    rule: Rule,
    header_bits: f64,
    min_bytes: u32,
    max_bytes: u32,
    /// The length until the error rate changes.
    current_bytes: u32,
    /// The result of the rule without bounds.
    best_bytes: u32,
}

instants! { Length: source; fixed: rule, header_bits, min_bytes, max_bytes, current_bytes, best_bytes }

/// The source of the error rate.
#[derive(Clone, Debug)]
enum Source {
    Acknowledged(Estimator),
    Genie,
    Measured(Measurement),
    /// Uses only the time at which the latest loss was noticed, and how long it counts.
    LatestLoss {
        at: Option<Time>,
        memory: Time,
    },
}

impl MoveOrigin for Source {
    fn move_origin(&mut self, by: OriginShift) {
        match self {
            Source::Acknowledged(estimator) => estimator.move_origin(by),
            Source::Genie => {}
            Source::Measured(measurement) => measurement.move_origin(by),
            Source::LatestLoss { at, memory: _ } => at.move_origin(by),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Optimal,
    Power { scale: f64, exponent: f64 },
}

impl Length {
    /// For frames with at most `max_bytes` bytes of data after `header_bytes` bytes of header.
    pub(in crate::protocol) fn new(config: &AdaptiveLength, header_bytes: u64, max_bytes: u64) -> Self {
        let whole = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let header_bits = header_bytes as f64 * 8.0;
        let source = match (config.rule, config.estimate) {
            (LengthRule::TwoLengths, _) => Source::LatestLoss { at: None, memory: config.memory_s.time() },
            (_, Estimate::Genie) => Source::Genie,
            (_, Estimate::Measured) => {
                let (delay, interval) = (config.measurement_delay_s.time(), config.measurement_interval_s.time());
                Source::Measured(Measurement::new(delay, interval))
            }
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
        Length { source, rule, header_bits, min_bytes, max_bytes, current_bytes: max_bytes, best_bytes: u32::MAX }
    }

    /// Whether the link tells the bit error rate.
    pub(in crate::protocol) fn wants_hints(&self) -> bool {
        matches!(self.source, Source::Genie | Source::Measured(_))
    }

    /// Takes the link's present bit error rate.
    pub(in crate::protocol) fn set_link_ber(&mut self, now: Time, ber: f64) {
        match &mut self.source {
            Source::Genie => self.follow(hazard(ber)),
            Source::Measured(measurement) => measurement.on_ber(now, ber),
            Source::Acknowledged(_) | Source::LatestLoss { .. } => {}
        }
    }

    /// `frames` frames with `bytes` bytes of data in all have arrived intact.
    #[inline]
    pub(in crate::protocol) fn on_acknowledged(&mut self, now: Time, frames: u64, bytes: u64) {
        if let Source::Acknowledged(estimator) = &mut self.source {
            estimator.add_intact(now, bytes as f64 * 8.0 + frames as f64 * self.header_bits);
        }
    }

    /// A frame with `bytes` bytes of data counts as lost.
    pub(in crate::protocol) fn on_lost(&mut self, now: Time, bytes: u32) {
        match &mut self.source {
            Source::Acknowledged(estimator) => estimator.add_lost(now, f64::from(bytes) * 8.0 + self.header_bits),
            Source::LatestLoss { at, .. } => *at = Some(now),
            Source::Genie | Source::Measured(_) => {}
        }
    }

    /// Data length of the next new frame, in bytes.
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
            Source::Measured(measurement) => {
                if let Some(ber) = measurement.poll(now) {
                    self.follow(hazard(ber));
                }
            }
            Source::Genie => {}
        }
        self.current_bytes
    }

    /// Whether a frame with `bytes` bytes of data is more likely lost than not. The error rate is the one for which the present
    /// length is best: that of equation (11), h = l' / (l (l + l')), and the condition is h L > 1.
    pub(in crate::protocol) fn is_too_long(&mut self, now: Time, bytes: u32) -> bool {
        let best_bits = f64::from(self.next_bytes(now)) * 8.0;
        f64::from(bytes) * 8.0 * hazard_of(best_bits, self.header_bits) > 1.0
    }

    /// Frames have another largest length from now on, no less than the least.
    pub(in crate::protocol) fn set_most_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = u32::try_from(max_bytes).unwrap_or(u32::MAX).max(self.min_bytes);
        self.current_bytes = self.best_bytes.clamp(self.min_bytes, self.max_bytes);
    }

    fn follow(&mut self, hazard: f64) {
        let best = best_bits(hazard, self.header_bits);
        let bits = match self.rule {
            Rule::Optimal => best,
            Rule::Power { scale, exponent } => scale * self.header_bits * libm::pow(best / self.header_bits, exponent),
        };
        // The optimum is infinite without errors; the cast saturates.
        self.best_bytes = libm::round(bits / 8.0) as u32;
        self.current_bytes = self.best_bytes.clamp(self.min_bytes, self.max_bytes);
    }
}

/// Wrong bits per bit, as the rate of a Poisson process.
fn hazard(ber: f64) -> f64 {
    -libm::log1p(-ber.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;
