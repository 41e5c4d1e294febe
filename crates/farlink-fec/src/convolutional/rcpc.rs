//! Rate-compatible punctured convolutional codes.
//!
//! J. Hagenauer, "Rate-compatible punctured convolutional codes (RCPC codes) and their applications", IEEE Trans. Commun.
//! 36, 1988: patterns of period 8 for one mother code, of which each sends all that those of higher rates send, so that a
//! 36, 1988: patterns of period 8 for one mother code, each of which sends all bits of those with higher rates, so that a frame
//! can be completed later. The patterns here are those of ETSI EN 300 401, 11.1.2 (digital audio broadcasting), an RCPC family of
//! K = 7 with Hagenauer's generators. His own tables for K = 7 and K = 5 send the bits in another order and are not included.

use super::{Code, Puncturing, PuncturingError};

/// Number of steps of all patterns.
const PERIOD: usize = 8;
/// Generators, octal, in the order in which their outputs are sent.
const GENERATORS: [u32; 4] = [0o133, 0o171, 0o145, 0o133];
/// Steps of the period in the order in which an output is added at them.
const STEPS: [usize; PERIOD] = [0, 4, 2, 6, 1, 5, 3, 7];

/// A mother code and its patterns: rates 8/9, 8/10, ... down to the mother's.
///
/// ```
/// use farlink_fec::convolutional::Rcpc;
///
/// let family = Rcpc::third();
/// let puncturing = family.puncturing("4/5")?;
/// assert_eq!(puncturing.to_string(), "11111111/10001000/00000000");
/// assert!(family.puncturing("2/3")?.contains(&puncturing));
/// # Ok::<(), farlink_fec::convolutional::PuncturingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rcpc {
    code: Code,
}

impl Rcpc {
    /// The mother code 133, 171, 145: rates 8/9 to 8/24.
    pub fn third() -> Rcpc {
        Rcpc::with_outputs(3)
    }

    /// The mother code 133, 171, 145, 133: rates 8/9 to 8/32.
    pub fn quarter() -> Rcpc {
        Rcpc::with_outputs(4)
    }

    fn with_outputs(outputs: usize) -> Rcpc {
        Rcpc { code: Code::new(7, &GENERATORS[..outputs]).expect("the generators are good") }
    }

    /// The mother code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// All patterns, the highest rate first: pattern i sends 9 + i bits for 8 data bits.
    pub fn patterns(&self) -> Vec<Puncturing> {
        (PERIOD + 1..=PERIOD * self.code.outputs()).map(|sent| self.pattern(sent)).collect()
    }

    /// The pattern for a rate, written as a fraction such as 8/12 or 2/3.
    ///
    /// # Errors
    /// If the rate is not a fraction equal to 8/9, 8/10, ... or the mother's rate.
    pub fn puncturing(&self, rate: &str) -> Result<Puncturing, PuncturingError> {
        let most = PERIOD * self.code.outputs();
        let unknown = || PuncturingError::UnknownRcpcRate { rate: rate.to_owned(), period: PERIOD, most };
        let (data_bits, sent) = rate.split_once('/').ok_or_else(unknown)?;
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&number| number > 0).map(u64::from);
        let (data_bits, sent) = number(data_bits).zip(number(sent)).ok_or_else(unknown)?;
        (PERIOD + 1..=most)
            .find(|&candidate| candidate as u64 * data_bits == PERIOD as u64 * sent)
            .map(|sent| self.pattern(sent))
            .ok_or_else(unknown)
    }

    /// Adds bits output by output, and step by step for each output.
    fn pattern(&self, sent: usize) -> Puncturing {
        let row = |j: usize| {
            let count = sent.saturating_sub(PERIOD * j).min(PERIOD);
            (0..PERIOD).map(|step| STEPS[..count].contains(&step)).collect()
        };
        let rows: Vec<Vec<bool>> = (0..self.code.outputs()).map(row).collect();
        Puncturing::new(&rows).expect("more bits are sent than the period has steps")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolutional::Spectrum;

    /// ETSI EN 300 401, 11.1.2: some of the 24 vectors by index; the outputs of a step are adjacent.
    const VECTORS: [(usize, u32); 9] = [
        (1, 0b1100_1000_1000_1000_1000_1000_1000_1000),
        (3, 0b1100_1000_1100_1000_1100_1000_1000_1000),
        (5, 0b1100_1100_1100_1000_1100_1000_1100_1000),
        (8, 0b1100_1100_1100_1100_1100_1100_1100_1100),
        (11, 0b1110_1100_1110_1100_1110_1100_1100_1100),
        (14, 0b1110_1110_1110_1100_1110_1110_1110_1100),
        (16, 0b1110_1110_1110_1110_1110_1110_1110_1110),
        (19, 0b1111_1110_1111_1110_1111_1110_1110_1110),
        (23, 0b1111_1111_1111_1111_1111_1111_1111_1110),
    ];

    #[test]
    fn the_patterns_are_those_of_the_standard() {
        let patterns = Rcpc::quarter().patterns();
        assert_eq!(patterns.len(), 24);
        for (index, vector) in VECTORS {
            let pattern = &patterns[index - 1];
            let sent = pattern.places(PERIOD).fold(0u32, |sent, place| sent | 1 << (31 - place));
            assert_eq!(sent, vector, "{index}: {sent:032b}");
        }
    }

    #[test]
    fn each_pattern_sends_all_that_those_of_higher_rates_send() {
        for family in [Rcpc::third(), Rcpc::quarter()] {
            let patterns = family.patterns();
            for (at, pattern) in patterns.iter().enumerate() {
                assert_eq!(pattern.sent_per_period(), 9 + at);
                assert_eq!(pattern.check(family.code()), Ok(()));
                assert!(patterns[..at].iter().all(|higher| pattern.contains(higher) && !higher.contains(pattern)));
            }
        }
    }

    /// Rates 8/16 and 8/24 are codes of their own, whose distances are published; between them no additional bit may reduce the
    /// distance.
    #[test]
    fn the_free_distance_grows_with_what_is_sent() {
        let family = Rcpc::quarter();
        let distance = |pattern: &Puncturing| Spectrum::new(family.code(), pattern, 1).unwrap().free_distance();
        let distances: Vec<usize> = family.patterns().iter().map(distance).collect();
        assert!(distances.is_sorted(), "{distances:?}");
        assert_eq!((distances[7], distances[15]), (10, 14));
    }

    #[test]
    fn rates_are_reduced_or_not() {
        let family = Rcpc::third();
        assert_eq!(family.puncturing("1/2"), family.puncturing("8/16"));
        assert_eq!(family.puncturing(" 4 / 5").unwrap().sent_per_period(), 10);
        for rate in ["8/25", "1/4", "8/8", "7/8", "", "8", "8/0", "0/9", "-8/-9", "99999999999/1"] {
            assert!(matches!(family.puncturing(rate), Err(PuncturingError::UnknownRcpcRate { .. })), "{rate}");
        }
        assert!(Rcpc::quarter().puncturing("1/4").is_ok());
    }
}
