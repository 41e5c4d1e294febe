//! A convolutional code: its constraint length and generators.

use std::fmt;
use std::str::FromStr;

/// Constraint lengths that are supported.
pub const CONSTRAINT_LENGTHS: std::ops::RangeInclusive<u32> = 3..=15;
/// Largest number of generators of a code.
pub(crate) const GENERATORS_MAX: usize = 8;

/// A non-catastrophic convolutional code of rate 1/n.
///
/// The encoder's window is the newest bit and the K - 1 bits before it; output j is the parity of the window and
/// generator j. Written as in the literature: K bits wide, the most significant for the newest bit, in octal, so that 171
/// and 133 are the usual code of K = 7.
///
/// ```
/// let code: farlink_fec::convolutional::Code = "171,133".parse()?;
/// assert_eq!((code.constraint_length(), code.outputs()), (7, 2));
/// # Ok::<(), farlink_fec::convolutional::CodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    constraint_length: u32,
    generators: Vec<u32>,
}

/// Why a code is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// K is out of range.
    #[error("constraint length {0}; it lies between 3 and 15")]
    ConstraintLength(u32),
    /// There are too few generators to correct anything, or more than are supported.
    #[error("the number of generators is {0}; a code has 2 to {GENERATORS_MAX}, one for each bit that it sends")]
    GeneratorCount(usize),
    /// Not an octal number.
    #[error("generator `{0}` is not octal; write them like 171,133, the most significant bit for the newest data bit")]
    NotOctal(String),
    /// The octal number has more bits than any constraint length.
    #[error("generator `{0}` is too long; constraint lengths end at 15, five octal digits")]
    TooLong(String),
    /// A generator uses no bit.
    #[error("generator {0} (counted from 1) is zero: its output would carry nothing")]
    Zero(usize),
    /// A generator has more than K bits.
    #[error(
        "generator {generator:o} (octal) has {} bits; with constraint length {constraint_length} at most \
         {constraint_length} fit",
        32 - .generator.leading_zeros()
    )]
    TooWide {
        /// The generator.
        generator: u32,
        /// K.
        constraint_length: u32,
    },
    /// No generator uses the newest bit.
    #[error(
        "no generator uses the newest bit (the most significant of {constraint_length}): the outputs only come late, \
         and the constraint length is less than {constraint_length}"
    )]
    NewestUnused {
        /// K.
        constraint_length: u32,
    },
    /// No generator uses the oldest bit.
    #[error(
        "no generator uses the oldest bit (the least significant): the constraint length is less than \
         {constraint_length}; shift the generators right"
    )]
    OldestUnused {
        /// K.
        constraint_length: u32,
    },
    /// Finitely many channel errors can cause infinitely many data errors.
    #[error(
        "the generators {generators} are catastrophic: they have the common factor {factor}, so a few channel errors \
         can cause data errors without end (Massey and Sain 1968); choose generators without a common factor"
    )]
    Catastrophic {
        /// The generators, octal.
        generators: String,
        /// Their greatest common divisor, a polynomial in the delay D.
        factor: String,
    },
}

impl Code {
    /// A code from its generators (see [`Code`] for how they are written).
    ///
    /// # Errors
    /// If the generators do not fit the constraint length or the code is catastrophic: then the generators, polynomials
    /// over GF(2) in the delay D, have a common factor other than a power of D (J. L. Massey and M. K. Sain, "Inverses of
    /// linear sequential circuits", IEEE Trans. Computers C-17, 1968).
    pub fn new(constraint_length: u32, generators: &[u32]) -> Result<Code, CodeError> {
        if !CONSTRAINT_LENGTHS.contains(&constraint_length) {
            return Err(CodeError::ConstraintLength(constraint_length));
        }
        if !(2..=GENERATORS_MAX).contains(&generators.len()) {
            return Err(CodeError::GeneratorCount(generators.len()));
        }
        if let Some(at) = generators.iter().position(|&g| g == 0) {
            return Err(CodeError::Zero(at + 1));
        }
        if let Some(&generator) = generators.iter().find(|&&g| g >> constraint_length != 0) {
            return Err(CodeError::TooWide { generator, constraint_length });
        }
        let taken = generators.iter().fold(0, |all, g| all | g);
        if taken >> (constraint_length - 1) == 0 {
            return Err(CodeError::NewestUnused { constraint_length });
        }
        if taken & 1 == 0 {
            return Err(CodeError::OldestUnused { constraint_length });
        }
        let code = Code { constraint_length, generators: generators.to_vec() };
        // The newest and the oldest bit are used, so neither D nor its inverse divides all generators.
        let divisor = generators.iter().fold(0, |divisor, &g| greatest_common_divisor(divisor, g));
        if divisor != 1 {
            return Err(CodeError::Catastrophic { generators: code.to_string(), factor: in_delays(divisor) });
        }
        Ok(code)
    }

    /// A code from octal generators such as `171,133`; spaces and brackets around and between them are ignored. The longest
    /// generator determines the constraint length.
    ///
    /// # Errors
    /// As [`Code::new`], and if a generator is not octal.
    pub fn from_octal(generators: &str) -> Result<Code, CodeError> {
        let generators = parse_octal(generators)?;
        let longest = generators.iter().map(|g| 32 - g.leading_zeros()).max().unwrap_or(0);
        if generators.is_empty() || longest == 0 {
            return Err(generators.first().map_or(CodeError::GeneratorCount(0), |_| CodeError::Zero(1)));
        }
        Code::new(longest, &generators)
    }

    /// A code from octal generators and the constraint length that they must have.
    ///
    /// # Errors
    /// As [`Code::new`], and if a generator is not octal.
    pub fn from_octal_of_length(constraint_length: u32, generators: &str) -> Result<Code, CodeError> {
        Code::new(constraint_length, &parse_octal(generators)?)
    }

    /// K: the output depends on the newest bit and the K - 1 bits before it.
    pub fn constraint_length(&self) -> u32 {
        self.constraint_length
    }

    /// The generators, K bits wide, the most significant for the newest bit.
    pub fn generators(&self) -> &[u32] {
        &self.generators
    }

    /// n: number of coded bits per data bit.
    pub fn outputs(&self) -> usize {
        self.generators.len()
    }

    /// Number of states of the encoder, 2^(K-1).
    pub fn states(&self) -> usize {
        1 << (self.constraint_length - 1)
    }

    /// The outputs for a window of K bits, output 0 in bit 0.
    ///
    /// The window's most significant bit is the newest. The state of the encoder afterwards is the window shifted right by one.
    #[inline]
    pub fn output(&self, window: u32) -> u32 {
        self.generators.iter().enumerate().map(|(j, g)| ((window & g).count_ones() & 1) << j).sum()
    }

    /// [`output`](Code::output) for all 2^K windows.
    pub fn output_table(&self) -> Vec<u8> {
        (0..1 << self.constraint_length).map(|window| self.output(window) as u8).collect()
    }

    /// The state of the encoder after some bits, starting from state 0: the last K - 1 of them, the most recent in the highest
    /// bit.
    pub(crate) fn state_after(&self, bits: impl IntoIterator<Item = bool>) -> u32 {
        let newest = 1 << (self.constraint_length - 2);
        bits.into_iter().fold(0, |state, bit| state >> 1 | if bit { newest } else { 0 })
    }
}

/// The generators in octal, in the form for [`Code::from_octal`].
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, generator) in self.generators.iter().enumerate() {
            write!(f, "{}{generator:o}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = CodeError;

    fn from_str(generators: &str) -> Result<Code, CodeError> {
        Code::from_octal(generators)
    }
}

fn parse_octal(generators: &str) -> Result<Vec<u32>, CodeError> {
    let is_between = |c: char| c.is_whitespace() || ",;()[]{}".contains(c);
    let words = generators.split(is_between).filter(|word| !word.is_empty());
    words
        .map(|word| match word.bytes().all(|digit| (b'0'..=b'7').contains(&digit)) {
            true => u32::from_str_radix(word, 8).map_err(|_| CodeError::TooLong(word.to_owned())),
            false => Err(CodeError::NotOctal(word.to_owned())),
        })
        .collect()
}

/// Euclid's algorithm for polynomials over GF(2).
fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        while a != 0 && a.leading_zeros() <= b.leading_zeros() {
            a ^= b << (b.leading_zeros() - a.leading_zeros());
        }
        (a, b) = (b, a);
    }
    a
}

/// A polynomial in powers of the delay D, from its bits; the most significant is that of D^0.
fn in_delays(polynomial: u32) -> String {
    let degree = 31 - polynomial.leading_zeros();
    let terms = (0..=degree).filter(|delay| polynomial >> (degree - delay) & 1 == 1).map(|delay| match delay {
        0 => "1".to_owned(),
        1 => "D".to_owned(),
        _ => format!("D^{delay}"),
    });
    terms.collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn octal_is_read_and_written() {
        let code = Code::from_octal(" [171, 133]").unwrap();
        assert_eq!((code.constraint_length(), code.generators()), (7, &[0b111_1001, 0b101_1011][..]));
        assert_eq!(code.to_string(), "171,133");
        assert_eq!("46321 51271 63667 70535".parse::<Code>().unwrap().constraint_length(), 15);
        assert_eq!(Code::from_octal_of_length(3, "(7, 5)").unwrap(), Code::from_octal("7,5").unwrap());
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let refused = |constraint_length, text| Code::from_octal_of_length(constraint_length, text).unwrap_err();
        assert_eq!(refused(7, ""), CodeError::GeneratorCount(0));
        assert_eq!(refused(3, "7,5,7,5,7,5,7,5,7"), CodeError::GeneratorCount(9));
        assert_eq!(refused(7, "171"), CodeError::GeneratorCount(1));
        assert_eq!(refused(7, "171,0"), CodeError::Zero(2));
        assert_eq!(refused(7, "171,189"), CodeError::NotOctal("189".to_owned()));
        assert_eq!(refused(7, "171,+33"), CodeError::NotOctal("+33".to_owned()));
        assert_eq!(refused(7, "77777777777777"), CodeError::TooLong("77777777777777".to_owned()));
        assert_eq!(refused(6, "171,133"), CodeError::TooWide { generator: 0o171, constraint_length: 6 });
        assert_eq!(refused(8, "171,133"), CodeError::NewestUnused { constraint_length: 8 });
        assert_eq!(refused(5, "36,22"), CodeError::OldestUnused { constraint_length: 5 });
        assert_eq!(refused(2, "3,1"), CodeError::ConstraintLength(2));
        assert_eq!(Code::from_octal("3,1").unwrap_err(), CodeError::ConstraintLength(2));
        assert_eq!(Code::from_octal("0,0").unwrap_err(), CodeError::Zero(1));
        assert_eq!(Code::from_octal(" ").unwrap_err(), CodeError::GeneratorCount(0));
        assert_eq!(Code::from_octal("200000,1").unwrap_err(), CodeError::ConstraintLength(17));
    }

    /// Viterbi's example, 1+D and 1+D^2 = (1+D)^2, and two products whose common factor is less obvious.
    #[test]
    fn catastrophic_generators_are_refused_with_their_common_factor() {
        for (generators, common) in [("6,5", "1+D"), ("7,7", "1+D+D^2"), ("17,12,5", "1+D^2")] {
            match Code::from_octal(generators).unwrap_err() {
                CodeError::Catastrophic { factor, .. } => assert_eq!(factor, common, "{generators}"),
                other => panic!("{generators}: {other}"),
            }
        }
    }

    fn product(a: u32, b: u32) -> u32 {
        (0..16).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ a << bit)
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(constraint_length in 3u32..=15, a: u32, b: u32, c: u32) {
            let mask = (1 << constraint_length) - 1;
            if let Ok(code) = Code::new(constraint_length, &[a & mask | 1 << (constraint_length - 1), b & mask, c & mask]) {
                prop_assert_eq!(Code::from_octal(&code.to_string()), Ok(code));
            }
        }

        #[test]
        fn a_common_factor_is_found(factor in 2u32..32, a in 1u32..256, b in 1u32..256) {
            let generators = [product(factor | 1, a | 1), product(factor | 1, b | 128)];
            let constraint_length = 32 - generators.iter().map(|g| g.leading_zeros()).min().unwrap();
            let refused = Code::new(constraint_length, &generators);
            prop_assert!(matches!(refused, Err(CodeError::Catastrophic { .. })), "{:?}", refused);
        }

        #[test]
        fn any_text_is_answered(text: String) {
            let _ = Code::from_octal(&text);
        }
    }
}
