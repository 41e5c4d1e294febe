//! Puncturing: leaving out coded bits to raise the rate.

use std::fmt;
use std::str::FromStr;

use super::code::GENERATORS_MAX;
use crate::{Soft, bits};

/// Longest period of a pattern in steps.
pub(crate) const PERIOD_MAX: usize = 64;

/// The coded bits that are sent: one row per output, over a period of steps.
///
/// Written as in the literature, row by row, with 1 for a bit that is sent: `101/110` sends both bits of the first step, the
/// second output's bit of the second step and the first output's bit of the third step, at rate 3/4. The bits of a step are sent
/// in the order of the outputs.
///
/// ```
/// let puncturing: farlink_fec::convolutional::Puncturing = "101/110".parse()?;
/// assert_eq!((puncturing.period(), puncturing.sent_per_period()), (3, 4));
/// # Ok::<(), farlink_fec::convolutional::PuncturingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Puncturing {
    outputs: usize,
    /// For each step, output j in bit j.
    sent: Vec<u8>,
}

/// Why a pattern is invalid, or does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PuncturingError {
    /// Not 0, 1 or a separator.
    #[error("`{0}` in a puncturing pattern; write rows of 0 and 1, one for each output, like 101/110")]
    NotBinary(char),
    /// No rows, or more than a code has outputs.
    #[error("a puncturing pattern of {0} rows; there are between 1 and {GENERATORS_MAX}, one for each output")]
    RowCount(usize),
    /// Rows have different lengths.
    #[error("row {row} of the puncturing pattern has {length} places, the first {period}; all have the same")]
    RowLength {
        /// The row, counted from 1.
        row: usize,
        /// Length of the row.
        length: usize,
        /// Length of the first row.
        period: usize,
    },
    /// The period is too long.
    #[error("a puncturing pattern over {0} steps; at most {PERIOD_MAX}")]
    Period(usize),
    /// Too few bits are sent.
    #[error(
        "the puncturing pattern sends {sent} coded bits for {period} data bits; a code sends more coded bits than data bits"
    )]
    TooFew {
        /// Coded bits sent in a period.
        sent: usize,
        /// Steps, and so data bits, of a period.
        period: usize,
    },
    /// The number of outputs differs from that of the code.
    #[error("a puncturing pattern of {rows} rows for a code with {outputs} outputs; it takes one row for each output")]
    Rows {
        /// Rows of the pattern.
        rows: usize,
        /// n.
        outputs: usize,
    },
    /// Finitely many channel errors can cause infinitely many data errors, or data is lost even without errors.
    #[error(
        "puncturing {generators} with {pattern} is catastrophic: data can differ without end while no bit that is sent \
         does (the punctured trellis has a cycle of weight 0 off its zero path); send other bits"
    )]
    Catastrophic {
        /// The code's generators, octal.
        generators: String,
        /// The pattern.
        pattern: String,
    },
    /// There is no usual pattern for the rate.
    #[error(
        "no usual puncturing pattern for rate `{0}`; there are 1/2, 2/3, 3/4, 5/6 and 7/8: write the pattern instead"
    )]
    UnknownRate(String),
    /// There is no rate-compatible pattern for the rate.
    #[error(
        "no rate-compatible puncturing pattern for rate `{rate}`; there are {period}/{}, {period}/{}, ... {period}/{most}",
        .period + 1, .period + 2
    )]
    UnknownRcpcRate {
        /// The requested rate.
        rate: String,
        /// Number of steps of the patterns.
        period: usize,
        /// Number of bits of a period without puncturing.
        most: usize,
    },
    /// Not the number of symbols that the steps have.
    #[error("{symbols} symbols for {steps} steps, of which {expected} are sent")]
    Symbols {
        /// Number of symbols given.
        symbols: usize,
        /// Steps of the frame.
        steps: usize,
        /// Number of symbols that are sent in these steps.
        expected: usize,
    },
}

impl Puncturing {
    /// A pattern from its rows, true for a bit that is sent.
    ///
    /// # Errors
    /// than data bits enter. [`check`](Puncturing::check) tells whether the pattern suits a code.
    pub fn new(rows: &[Vec<bool>]) -> Result<Puncturing, PuncturingError> {
        if !(1..=GENERATORS_MAX).contains(&rows.len()) {
            return Err(PuncturingError::RowCount(rows.len()));
        }
        let period = rows[0].len();
        if let Some(at) = rows.iter().position(|row| row.len() != period) {
            return Err(PuncturingError::RowLength { row: at + 1, length: rows[at].len(), period });
        }
        if period > PERIOD_MAX {
            return Err(PuncturingError::Period(period));
        }
        let step = |at: usize| rows.iter().enumerate().map(|(j, row)| u8::from(row[at]) << j).sum();
        let made = Puncturing { outputs: rows.len(), sent: (0..period).map(step).collect() };
        if made.sent_per_period() <= period {
            return Err(PuncturingError::TooFew { sent: made.sent_per_period(), period });
        }
        Ok(made)
    }

    /// A pattern that sends all bits.
    ///
    /// # Panics
    /// If a code of rate 1 / `outputs` is not supported: there are 2 to 8.
    pub fn none(outputs: usize) -> Puncturing {
        assert!((2..=GENERATORS_MAX).contains(&outputs), "{outputs} outputs");
        Puncturing { outputs, sent: vec![(u8::MAX) >> (8 - outputs)] }
    }

    /// The usual pattern of the code 171, 133, in this order, for a rate of 1/2, 2/3, 3/4, 5/6 or 7/8.
    ///
    /// Y. Yasuda, K. Kashiki, Y. Hirata, "High-rate punctured convolutional codes for soft decision Viterbi decoding",
    /// IEEE Trans. Commun. COM-32, 1984; ETSI EN 300 421, table 2, and CCSDS 131.0-B, 3.4.
    ///
    /// # Errors
    /// If the rate is another.
    pub fn usual(rate: &str) -> Result<Puncturing, PuncturingError> {
        let pattern = match rate.trim() {
            "1/2" => "1/1",
            "2/3" => "10/11",
            "3/4" => "101/110",
            "5/6" => "10101/11010",
            "7/8" => "1000101/1111010",
            other => return Err(PuncturingError::UnknownRate(other.to_owned())),
        };
        pattern.parse()
    }

    /// n: rows of the pattern.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Steps, and so data bits, of a period.
    pub fn period(&self) -> usize {
        self.sent.len()
    }

    /// Coded bits sent in a period.
    pub fn sent_per_period(&self) -> usize {
        self.sent.iter().map(|sent| sent.count_ones() as usize).sum()
    }

    /// Data bits per sent bit.
    pub fn rate(&self) -> f64 {
        self.period() as f64 / self.sent_per_period() as f64
    }

    /// The outputs that are sent in a step, output j in bit j.
    pub fn sent_at(&self, step: usize) -> u8 {
        self.sent[step % self.sent.len()]
    }

    /// Whether every bit that `other` sends is sent here too, so that a frame sent with `other` can be completed to this pattern
    /// (Hagenauer 1988, rate compatibility). The periods must be equal.
    pub fn contains(&self, other: &Puncturing) -> bool {
        (self.outputs, self.period()) == (other.outputs, other.period())
            && self.sent.iter().zip(&other.sent).all(|(mine, others)| mine & others == *others)
    }

    /// Bits sent in the first `steps` steps.
    pub fn sent_bits(&self, steps: usize) -> usize {
        let begun = &self.sent[..steps % self.period()];
        steps / self.period() * self.sent_per_period()
            + begun.iter().map(|sent| sent.count_ones() as usize).sum::<usize>()
    }

    /// The sent bits, packed, of the coded bits of `steps` steps; the bits after the last are 0.
    ///
    /// # Panics
    /// If `coded` is shorter than that.
    pub fn puncture(&self, coded: &[u8], steps: usize) -> Vec<u8> {
        let coded_bits = steps * self.outputs;
        assert!(8 * coded.len() >= coded_bits, "fewer bits than those of the steps");
        let mut kept = Vec::with_capacity(bits::bytes_for(self.sent_bits(steps)));
        let masks = self.word_masks();
        // Bits that are kept and not yet written, the last in the lowest position.
        let (mut open, mut count) = (0u128, 0);
        for (at, (word, mask)) in
            coded.chunks(8).zip(masks.into_iter().cycle()).take(coded_bits.div_ceil(64)).enumerate()
        {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            let beyond = (64 * (at + 1)).saturating_sub(coded_bits);
            let mask = mask >> beyond << beyond;
            open = open << mask.count_ones() | u128::from(compress(u64::from_be_bytes(bytes), mask));
            count += mask.count_ones();
            if count >= 64 {
                count -= 64;
                kept.extend(((open >> count) as u64).to_be_bytes());
            }
        }
        let last = ((open << (64 - count)) as u64).to_be_bytes();
        kept.extend(&last[..bits::bytes_for(count as usize)]);
        kept
    }

    /// A mask of sent bits for each word of 64 coded bits, the first bit highest; the masks repeat.
    fn word_masks(&self) -> Vec<u64> {
        let period_bits = self.period() * self.outputs;
        // The number of words that contain whole periods.
        let words = (1..=period_bits).find(|words| (64 * words).is_multiple_of(period_bits)).unwrap_or(period_bits);
        let is_sent = |place: usize| u64::from(self.sent_at(place / self.outputs) >> (place % self.outputs) & 1);
        (0..words).map(|word| (0..64).map(|bit| is_sent(64 * word + bit) << (63 - bit)).sum()).collect()
    }

    /// The symbols of all coded bits of `steps` steps, from those of the sent bits: 0 for a bit that was not sent.
    ///
    /// # Errors
    /// If the number of symbols is not that of `steps` steps.
    pub fn depuncture(&self, symbols: &[Soft], steps: usize) -> Result<Vec<Soft>, PuncturingError> {
        let expected = self.sent_bits(steps);
        if symbols.len() != expected {
            return Err(PuncturingError::Symbols { symbols: symbols.len(), steps, expected });
        }
        let mut all = vec![0; steps * self.outputs];
        let places: Vec<usize> = self.places(self.period()).collect();
        let periods = all.chunks_mut(self.period() * self.outputs).zip(symbols.chunks(places.len()));
        for (all, symbols) in periods {
            places.iter().zip(symbols).for_each(|(&place, &symbol)| all[place] = symbol);
        }
        Ok(all)
    }

    /// Positions of the sent bits among the coded bits, ascending.
    pub fn places(&self, steps: usize) -> impl Iterator<Item = usize> + '_ {
        (0..steps).zip(self.sent.iter().cycle()).flat_map(move |(step, &sent)| {
            (0..self.outputs).filter(move |j| sent >> j & 1 == 1).map(move |j| step * self.outputs + j)
        })
    }
}

/// The bits of a word at the ones of a mask, moved together at the lower end.
fn compress(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") {
        // SAFETY: this machine has the instruction.
        return unsafe { compress_bmi2(word, mask) };
    }
    compress_portable(word, mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2")]
fn compress_bmi2(word: u64, mask: u64) -> u64 {
    std::arch::x86_64::_pext_u64(word, mask)
}

fn compress_portable(word: u64, mut mask: u64) -> u64 {
    let mut kept = 0;
    let mut place = 0;
    while mask != 0 {
        kept |= (word >> mask.trailing_zeros() & 1) << place;
        place += 1;
        mask &= mask - 1;
    }
    kept
}

/// The rows, in the form that is parsed.
impl fmt::Display for Puncturing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for j in 0..self.outputs {
            let row: String = self.sent.iter().map(|sent| if sent >> j & 1 == 1 { '1' } else { '0' }).collect();
            write!(f, "{}{row}", if j == 0 { "" } else { "/" })?;
        }
        Ok(())
    }
}

impl FromStr for Puncturing {
    type Err = PuncturingError;

    /// Parses rows of 0 and 1 with `/`, `;` or `,` between them; spaces and brackets are ignored.
    fn from_str(pattern: &str) -> Result<Puncturing, PuncturingError> {
        let mut rows = vec![Vec::new()];
        for c in pattern.chars() {
            match c {
                '0' | '1' => rows.last_mut().expect("there is one").push(c == '1'),
                '/' | ';' | ',' => rows.push(Vec::new()),
                '[' | ']' | '(' | ')' => {}
                c if c.is_whitespace() => {}
                other => return Err(PuncturingError::NotBinary(other)),
            }
        }
        if rows == [vec![]] {
            return Err(PuncturingError::RowCount(0));
        }
        Puncturing::new(&rows)
    }
}

#[cfg(test)]
mod tests;
