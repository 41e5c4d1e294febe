//! Strength of the code in the packet from what the receiver reports of the errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Fraction, PositiveSeconds};

use super::strength::smallest_words;

/// Parity that follows the bit error rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveFec {
    /// Send the least parity by which no larger share of the packets whose headers arrive is lost.
    pub target_loss: Fraction,
    /// The receiver reports what it measures this often at most.
    pub report_every_s: PositiveSeconds,
}

impl Default for AdaptiveFec {
    fn default() -> Self {
        AdaptiveFec {
            target_loss: Fraction::new(1e-3).expect("a constant within its range"),
            report_every_s: PositiveSeconds::new(1.0).expect("a constant within its range"),
        }
    }
}

/// Of each report, so much is left when the next one comes.
const MEMORY: f64 = 0.75;

/// What the sender knows of the bit error rate.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Estimate {
    target: f64,
    /// What the link says itself goes before what is measured.
    hint: Option<f64>,
    /// Bits that the reports are of and wrong ones among them, older ones for less.
    bits: f64,
    wrong: f64,
    /// What the last report counted: up to which position, wrong bits that were mended, packets that were not.
    last: (u64, u32, u16),
}

impl Estimate {
    pub(in super::super) fn new(config: &AdaptiveFec) -> Self {
        Estimate { target: config.target_loss.get(), hint: None, bits: 0.0, wrong: 0.0, last: (0, 0, 0) }
    }

    pub(in super::super) fn on_hint(&mut self, ber: f64) {
        self.hint = Some(ber);
    }

    /// The receiver has counted so much since the beginning. A packet that was not mended had at least `worst` wrong bits.
    /// Whether that says anything new.
    pub(in super::super) fn on_report(&mut self, position: u64, mended: u32, damaged: u16, worst: u32) -> bool {
        let (before, mended_before, damaged_before) = self.last;
        if position <= before {
            return false;
        }
        let lost = f64::from(damaged.wrapping_sub(damaged_before)) * f64::from(worst);
        self.bits = self.bits * MEMORY + 8.0 * (position - before) as f64;
        self.wrong = self.wrong * MEMORY + f64::from(mended.wrapping_sub(mended_before)) + lost;
        self.last = (position, mended, damaged);
        true
    }

    /// The bit error rate, or what it hardly exceeds where few errors were seen: a standard deviation and one error more.
    /// None before anything is known.
    fn ber(&self) -> Option<f64> {
        let measured = (self.bits > 0.0).then(|| (self.wrong + self.wrong.sqrt() + 1.0) / self.bits);
        self.hint.or(measured).map(|ber| ber.min(0.5))
    }

    /// The parity that is enough, in words; none before anything is known.
    pub(in super::super) fn words(&self, room_bytes: u32, most: u16) -> Option<u16> {
        self.ber().map(|ber| smallest_words(ber, self.target, room_bytes, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::aerotp::Fec;

    fn estimate() -> Estimate {
        Estimate::new(&AdaptiveFec::default())
    }

    #[test]
    fn the_link_knows_best() {
        let mut estimate = estimate();
        assert_eq!(estimate.words(1452, 256), None);
        estimate.on_report(1_000_000, 8000, 0, 3);
        assert!(estimate.words(1452, 256).is_some_and(|words| words > 20), "1e-3 was measured");
        estimate.on_hint(0.0);
        assert_eq!(estimate.words(1452, 256), Some(0));
    }

    #[test]
    fn what_is_measured_is_enough_and_little_more() {
        for ber in [1e-5, 1e-4, 1e-3] {
            let mut estimate = estimate();
            for report in 1..20_u32 {
                let bits = f64::from(report) * 1e6;
                estimate.on_report((bits / 8.0) as u64, (bits * ber) as u32, 0, 3);
            }
            let words = estimate.words(1452, 256).unwrap();
            let enough = smallest_words(ber, 1e-3, 1452, 256);
            assert!((enough..=enough + 5).contains(&words), "{words} at {ber}, {enough} are enough");
            assert!(Fec::new(1452 - 4 * u32::from(words), words).residual_loss(ber) <= 1e-3);
        }
    }

    /// Errors that cannot be mended make it stronger; their absence weaker again.
    #[test]
    fn it_follows_both_ways() {
        let mut estimate = estimate();
        for report in 1..10 {
            estimate.on_report(report * 125_000, 0, 10 * report as u16, 20);
        }
        let strong = estimate.words(1452, 256).unwrap();
        assert!(!estimate.on_report(9 * 125_000, 5000, 5000, 20), "nothing new");
        for report in 10..60 {
            estimate.on_report(report * 125_000, 0, 90, 20);
        }
        let weak = estimate.words(1452, 256).unwrap();
        assert!(strong > weak + 4 && weak <= 3, "{strong}, then {weak}");
    }
}
