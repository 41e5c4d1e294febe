//! The code itself: its constraint length and generators.

/// Constraint lengths that are supported.
pub(crate) const CONSTRAINT_LENGTHS: std::ops::RangeInclusive<u32> = 3..=15;

/// A convolutional code of rate 1/n.
///
/// The encoder's window is the newest bit and the K - 1 bits before it; output j is the parity of the window and
/// generator j. Written as in the literature: K bits wide, the most significant for the newest bit, in octal, so that 171
/// and 133 are the usual code of K = 7.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    constraint_length: u32,
    generators: Vec<u32>,
}

/// Why there is no such code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// K is out of range.
    #[error("constraint length {0}; it lies between 3 and 15")]
    ConstraintLength(u32),
}

impl Code {
    /// A code from its generators (see [`Code`] for how they are written).
    ///
    /// # Errors
    /// If the generators do not fit the constraint length.
    pub fn new(constraint_length: u32, generators: &[u32]) -> Result<Code, CodeError> {
        if !CONSTRAINT_LENGTHS.contains(&constraint_length) {
            return Err(CodeError::ConstraintLength(constraint_length));
        }
        Ok(Code { constraint_length, generators: generators.to_vec() })
    }

    /// K: the newest bit and how many before it decide the output.
    pub fn constraint_length(&self) -> u32 {
        self.constraint_length
    }

    /// The generators, K bits wide, the most significant for the newest bit.
    pub fn generators(&self) -> &[u32] {
        &self.generators
    }

    /// n: coded bits for each data bit.
    pub fn outputs(&self) -> usize {
        self.generators.len()
    }

    /// States of the encoder, 2^(K-1).
    pub fn states(&self) -> usize {
        1 << (self.constraint_length - 1)
    }

    /// The outputs for a window of K bits, output 0 in bit 0.
    ///
    /// The window's most significant bit is the newest; what the encoder remembers afterwards, its state, is the window
    /// shifted right by one.
    #[inline]
    pub fn output(&self, window: u32) -> u32 {
        self.generators.iter().enumerate().map(|(j, g)| ((window & g).count_ones() & 1) << j).sum()
    }
}
