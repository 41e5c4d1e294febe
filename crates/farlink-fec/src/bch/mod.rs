//! Binary BCH codes: a code per packet that corrects up to t bit errors.
//!
//! Systematic and shortened to any length (Bose and Ray-Chaudhuri 1960; Hocquenghem 1959; MacWilliams and Sloane 1977,
//! chapter 9). With t = 1 they are Hamming codes. A word is its data bits, then its parity bits, packed
//! ([`mod@bits`]); bits of the last byte beyond the word are ignored.

mod field;

use self::field::{Field, MAX_DEGREE};
use crate::bits;

/// Largest number of bit errors that a code here corrects.
pub const MAX_T: usize = 16;

/// Bits of the shift register: parity of the largest code, m t = 256.
const REGISTER_WORDS: usize = 4;
type Register = [u64; REGISTER_WORDS];

/// Why there is no such code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// There are no data bits.
    #[error("0 data bits: a code needs at least one")]
    NoData,
    /// The code would correct nothing, or more than is supported.
    #[error("t = {0} wrong bits: it must lie between 1 and {MAX_T}")]
    Capability(usize),
    /// No field is large enough.
    #[error("{data_bits} data bits with t = {t} are too many: data and parity have at most 65535 bits; split the data")]
    TooLong {
        /// Number of data bits.
        data_bits: usize,
        /// Number of bit errors to correct.
        t: usize,
    },
}

/// Why a word is not decoded; it is left as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The decoder gives up: no code word is close enough.
    #[error("too many errors: no code word lies within {0} bits of the word")]
    TooManyErrors(usize),
    /// The length is not that of a word of this code.
    #[error("a word of {bytes} bytes, where the code's {bits} bits take {}", crate::bits::bytes_for(*bits))]
    WrongLength {
        /// Number of bytes given.
        bytes: usize,
        /// Bits of the code.
        bits: usize,
    },
}

/// A binary BCH code that corrects up to t bit errors in a word.
#[derive(Clone, Debug)]
pub struct Bch {
    data_bits: usize,
    parity_bits: usize,
    t: usize,
    field: Field,
    /// Remainders of all bytes, parity in the highest bits.
    remainders: Box<[Register; 256]>,
}

impl Bch {
    /// The code over the smallest field GF(2^m) in which `data_bits` data bits and their parity, at most m t bits, fit: a word
    /// has at most 2^m - 1 bits, with m at most 16.
    ///
    /// # Errors
    /// If there are no data bits or too many, or t lies outside 1 to [`MAX_T`].
    pub fn for_payload(data_bits: usize, t: usize) -> Result<Bch, CodeError> {
        if data_bits == 0 {
            return Err(CodeError::NoData);
        }
        if !(1..=MAX_T).contains(&t) {
            return Err(CodeError::Capability(t));
        }
        let too_long = CodeError::TooLong { data_bits, t };
        // The parity is rarely much shorter than m t. Fields whose words are shorter than the data are not tried.
        let least = (2..=MAX_DEGREE).find(|&m| data_bits < 1 << m).ok_or(too_long.clone())?;
        for m in least..=MAX_DEGREE {
            let field = Field::new(m);
            let generator = field.generator(t);
            if data_bits + generator.len() < 1 << m {
                return Ok(Bch::of(data_bits, t, field, &generator));
            }
        }
        Err(too_long)
    }

    fn of(data_bits: usize, t: usize, field: Field, generator: &[bool]) -> Bch {
        let mut feedback = [0; REGISTER_WORDS];
        for (at, _) in generator.iter().enumerate().filter(|&(_, &is_set)| is_set) {
            feedback[at / 64] |= 1 << (63 - at % 64);
        }
        let remainder = |byte: usize| {
            let mut register = [0; REGISTER_WORDS];
            register[0] = (byte as u64) << 56;
            for _ in 0..8 {
                step(&mut register, &feedback);
            }
            register
        };
        let remainders = Box::new(std::array::from_fn(remainder));
        Bch { data_bits, parity_bits: generator.len(), t, field, remainders }
    }

    /// Data bits of a word.
    pub fn data_bits(&self) -> usize {
        self.data_bits
    }

    /// Parity bits of a word.
    pub fn parity_bits(&self) -> usize {
        self.parity_bits
    }

    /// Bits of a word.
    pub fn code_bits(&self) -> usize {
        self.data_bits + self.parity_bits
    }

    /// Number of bit errors that are always corrected.
    pub fn t(&self) -> usize {
        self.t
    }

    /// Writes the parity after the data bits of a word.
    ///
    /// # Panics
    /// If the word does not have the bytes for [`code_bits`](Bch::code_bits).
    pub fn encode(&self, word: &mut [u8]) {
        assert_eq!(word.len(), bits::bytes_for(self.code_bits()), "bytes of a word of {} bits", self.code_bits());
        let parity = self.parity_of(word);
        for at in 0..self.parity_bits {
            bits::set(word, self.data_bits + at, parity[at / 64] << (at % 64) >> 63 == 1);
        }
    }

    /// Corrects a word in place and returns the positions of the wrong bits, ascending.
    ///
    /// With more than t bit errors it usually detects that and gives up; sometimes another code word is closer.
    ///
    /// # Errors
    /// If it gives up or the word has another length.
    pub fn decode(&self, word: &mut [u8]) -> Result<Vec<usize>, DecodeError> {
        if word.len() != bits::bytes_for(self.code_bits()) {
            return Err(DecodeError::WrongLength { bytes: word.len(), bits: self.code_bits() });
        }
        let remainder = self.remainder(word);
        if remainder == [0; REGISTER_WORDS] {
            return Ok(Vec::new());
        }
        let give_up = DecodeError::TooManyErrors(self.t);
        let locator = self.field.locator(&self.syndromes(&remainder));
        let errors = locator.len() - 1;
        if errors > self.t {
            return Err(give_up);
        }
        let wrong = self.field.roots(&locator, self.code_bits());
        let flip = |word: &mut [u8]| wrong.iter().for_each(|&at| word[at / 8] ^= 0x80 >> (at % 8));
        if wrong.len() != errors {
            return Err(give_up);
        }
        flip(word);
        if self.remainder(word) != [0; REGISTER_WORDS] {
            flip(word);
            return Err(give_up);
        }
        Ok(wrong)
    }

    /// The received polynomial modulo the generator.
    fn remainder(&self, word: &[u8]) -> Register {
        let mut remainder = self.parity_of(word);
        for at in 0..self.parity_bits {
            remainder[at / 64] ^= u64::from(bits::get(word, self.data_bits + at)) << (63 - at % 64);
        }
        remainder
    }

    /// The parity of a word's data bits, in the highest bits.
    fn parity_of(&self, word: &[u8]) -> Register {
        let mut register = [0; REGISTER_WORDS];
        // Zeros that are not sent precede the word: they move the data's last bit to the end of a byte.
        let missing = self.data_bits.wrapping_neg() % 8;
        let mut before = 0;
        for &byte in &word[..bits::bytes_for(self.data_bits)] {
            let shifted = (u16::from(before) << 8 | u16::from(byte)) >> missing;
            before = byte;
            let index = (register[0] >> 56) as u8 ^ shifted as u8;
            shift_left(&mut register, 8);
            for (register, remainder) in register.iter_mut().zip(&self.remainders[index as usize]) {
                *register ^= remainder;
            }
        }
        register
    }

    /// The remainder at the first 2 t powers of the primitive element; those at even powers are squares.
    fn syndromes(&self, remainder: &Register) -> Vec<u16> {
        let mut syndromes = vec![0; 2 * self.t];
        for at in (0..self.parity_bits).filter(|at| remainder[at / 64] << (at % 64) >> 63 == 1) {
            for odd in (0..2 * self.t).step_by(2) {
                syndromes[odd] ^= self.field.exp((self.parity_bits - 1 - at) * (odd + 1));
            }
        }
        for even in (1..2 * self.t).step_by(2) {
            syndromes[even] = self.field.multiply(syndromes[even / 2], syndromes[even / 2]);
        }
        syndromes
    }
}

/// Multiplies by x modulo the generator.
fn step(register: &mut Register, feedback: &Register) {
    let carry = register[0] >> 63 == 1;
    shift_left(register, 1);
    if carry {
        register.iter_mut().zip(feedback).for_each(|(register, feedback)| *register ^= feedback);
    }
}

fn shift_left(register: &mut Register, by: u32) {
    for at in 0..REGISTER_WORDS {
        let next = register.get(at + 1).map_or(0, |next| next >> (64 - by));
        register[at] = register[at] << by | next;
    }
}

#[cfg(test)]
mod tests;
