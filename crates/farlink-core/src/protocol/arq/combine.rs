//! Whether the damaged copies of a frame can be decoded together (type II hybrid ARQ).
//!
//! The mother code is a Reed-Solomon code over GF(2^16), one codeword a frame: 16-bit symbols, so that a frame of any length is
//! one codeword, and every selection of its parity symbols is again a code of the largest distance (it is maximum distance
//! separable). With p parity symbols received, the frame can be decoded if and only if twice the number of wrong symbols, in data
//! and parity together, is at most p. No decoder runs: the simulated channel reports the number of wrong symbols.

/// The damaged copies and parity that a receiver holds of a frame that it cannot decode yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Partial {
    /// Wrong symbols in the best copy of the data and the parity sent with it; `None` without a copy.
    wrong_data: Option<u32>,
    /// The increments of parity that have arrived.
    increments: u32,
    wrong_parity: u32,
    parity_symbols: u32,
}

impl Partial {
    /// Adds a copy of the data with `wrong` wrong symbols and `parity_symbols` symbols of parity.
    pub(super) fn add_data(&mut self, wrong: u32, parity_symbols: u32) {
        if self.wrong_data.is_none() {
            self.parity_symbols += parity_symbols;
        }
        self.wrong_data = Some(self.wrong_data.map_or(wrong, |known| known.min(wrong)));
    }

    /// Adds an increment of parity (1 and up); a repeated one has no effect.
    pub(super) fn add_parity(&mut self, increment: u8, wrong: u32, parity_symbols: u32) {
        let bit = 1_u32.checked_shl(u32::from(increment)).unwrap_or(0);
        if self.increments & bit == 0 {
            self.increments |= bit;
            self.wrong_parity += wrong;
            self.parity_symbols += parity_symbols;
        }
    }

    /// Whether there is a copy of the data that parity could correct.
    pub(super) fn has_data(&self) -> bool {
        self.wrong_data.is_some()
    }

    /// Whether the decoder can correct all wrong symbols.
    pub(super) fn is_decodable(&self) -> bool {
        self.wrong_data.is_some_and(|wrong| 2 * (wrong + self.wrong_parity) <= self.parity_symbols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_accumulates_until_it_is_twice_the_number_of_errors() {
        let mut partial = Partial::default();
        partial.add_parity(1, 0, 8);
        assert!(!partial.is_decodable() && !partial.has_data(), "parity without data cannot be decoded");
        partial.add_data(9, 2);
        assert!(!partial.is_decodable(), "9 wrong, 10 symbols of parity");
        partial.add_parity(1, 0, 8);
        assert!(!partial.is_decodable(), "the same increment adds nothing");
        partial.add_parity(2, 1, 8);
        assert!(!partial.is_decodable(), "10 wrong, 18 symbols of parity");
        partial.add_parity(3, 0, 2);
        assert!(partial.is_decodable(), "10 wrong, 20 symbols of parity");
    }

    #[test]
    fn the_copy_with_fewer_errors_is_kept() {
        let mut partial = Partial::default();
        partial.add_data(5, 4);
        partial.add_data(2, 4);
        assert!(partial.is_decodable());
        partial.add_data(7, 4);
        assert!(partial.is_decodable());
    }
}
