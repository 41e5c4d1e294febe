//! Choice of the parity in a packet from the receiver's reports of errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::origin::instants;
use crate::time::Time;
use crate::units::{Fraction, PositiveSeconds};

use super::strength::smallest_words;

/// Parity that adapts to the bit error rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveFec {
    /// Target for the share of lost packets, among those whose headers arrive: the sender uses the least parity that keeps the
    /// loss at or below it.
    pub target_loss: Fraction,
    /// Least interval between two reports of the receiver, in seconds.
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

/// Weight that older reports keep when a new one arrives.
const MEMORY: f64 = 0.75;

/// The sender's estimate of the bit error rate.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Estimate {
    target: f64,
    /// The bit error rate reported by the link, which is used instead of the measured one.
    hint: Option<f64>,
    /// Number of bits in the reports, with smaller weights for older ones; `wrong` is the number of wrong bits.
    bits: f64,
    wrong: f64,
    /// The counts of the last report: position in the stream, corrected bits, and packets that could not be corrected.
    last: (u64, u32, u16),
    /// Time between the reports that count, and that of the next one: those from which a rate is learnt come far more often.
    every: Time,
    next: Time,
}

instants! { Estimate: next; fixed: target, hint, bits, wrong, last, every }

impl Estimate {
    /// `has_rate_reports`: whether there are also the reports from which a rate is learnt.
    pub(in super::super) fn new(fec: &AdaptiveFec, has_rate_reports: bool) -> Self {
        let every = if has_rate_reports { fec.report_every_s.time() } else { Time::ZERO };
        let (target, last, next) = (fec.target_loss.get(), (0, 0, 0), Time::ZERO);
        Estimate { target, hint: None, bits: 0.0, wrong: 0.0, last, every, next }
    }

    /// Whether a report that comes now counts.
    pub(in super::super) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.every;
        }
        is_due
    }

    pub(in super::super) fn on_hint(&mut self, ber: f64) {
        self.hint = Some(ber);
    }

    /// Takes a report with the receiver's counts since the start. A packet that could not be corrected counts as `worst` wrong
    /// bits. Returns whether the report is new.
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

    /// The bit error rate with a margin for few errors: one standard deviation and one error are added. `None` before the first
    /// report.
    fn ber(&self) -> Option<f64> {
        let measured = (self.bits > 0.0).then(|| (self.wrong + self.wrong.sqrt() + 1.0) / self.bits);
        self.hint.or(measured).map(|ber| ber.min(0.5))
    }

    /// The parity that suffices, in words; `None` before the first report.
    pub(in super::super) fn words(&self, room_bytes: u32, most: u16) -> Option<u16> {
        self.ber().map(|ber| smallest_words(ber, self.target, room_bytes, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::aerotp::Fec;

    fn estimate() -> Estimate {
        Estimate::new(&AdaptiveFec::default(), false)
    }

    #[test]
    fn a_hint_of_the_link_overrides_the_estimate() {
        let mut estimate = estimate();
        assert_eq!(estimate.words(1452, 256), None);
        estimate.on_report(1_000_000, 8000, 0, 3);
        assert!(estimate.words(1452, 256).is_some_and(|words| words > 20), "1e-3 was measured");
        estimate.on_hint(0.0);
        assert_eq!(estimate.words(1452, 256), Some(0));
    }

    #[test]
    fn the_chosen_parity_is_sufficient_and_hardly_larger() {
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

    /// Errors that cannot be corrected increase the parity; their absence decreases it again.
    #[test]
    fn parity_rises_and_falls_with_the_errors() {
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
