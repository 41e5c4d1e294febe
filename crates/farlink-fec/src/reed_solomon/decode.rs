//! Decodes one word with errors and erasures: Berlekamp-Massey, Chien, Forney.

use super::Code;

/// The corrections of a decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrected {
    /// Number of wrong symbols that were corrected, outside the erasures.
    pub errors: usize,
    /// Number of symbols that the caller had declared erased, whether or not they had been wrong.
    pub erasures: usize,
}

/// Why a word is not decoded; it is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The decoder gives up: no code word is close enough.
    #[error("too many errors: no code word lies within {0} symbols of the word")]
    TooManyErrors(usize),
    /// The length is not that of a word of this code.
    #[error("a word of {len} bytes, where the code has {n}")]
    WrongLength {
        /// Bytes given.
        len: usize,
        /// Symbols of the code.
        n: usize,
    },
    /// There are more erasures than parity symbols.
    #[error("{erasures} erasures, where {parity} parity symbols fill at most {parity}")]
    TooManyErasures {
        /// Erasures given.
        erasures: usize,
        /// Parity symbols of the code.
        parity: usize,
    },
    /// The erasure is outside the word.
    #[error("erasure at symbol {position}, where the word has symbols 0 to {}", n - 1)]
    ErasureOutside {
        /// Position given.
        position: usize,
        /// Symbols of the code.
        n: usize,
    },
    /// The position is given twice.
    #[error("symbol {0} is declared erased twice")]
    ErasureTwice(usize),
}

impl Code {
    /// Corrects a word of n symbols in place; `erasures` are positions of symbols known to be unreliable.
    ///
    /// Any e errors and f erasures with 2 e + f <= n - k are corrected. Beyond that the decoder usually detects the failure and
    /// gives up, leaving the word unchanged. Sometimes another code word is closer, which no decoder can detect.
    ///
    /// # Errors
    /// If it gives up, the word has another length, or the erasures are too many, outside the word or given twice.
    pub fn decode(&self, word: &mut [u8], erasures: &[usize]) -> Result<Corrected, DecodeError> {
        self.check(word, erasures)?;
        let mut received = word.to_vec();
        if let Some((to_conventional, _)) = self.basis {
            to_conventional.apply_to(&mut received);
        }
        let syndromes = self.syndromes(&received);
        if syndromes.iter().all(|&s| s == 0) {
            return Ok(Corrected { errors: 0, erasures: erasures.len() });
        }

        let left = (self.parity_symbols() - erasures.len()) / 2;
        let give_up = DecodeError::TooManyErrors(left);
        let locator = self.locator(&syndromes, erasures);
        let wrong = self.roots(&locator);
        if locator.len() - 1 > left + erasures.len() || wrong.len() != locator.len() - 1 {
            return Err(give_up);
        }
        let magnitudes = self.magnitudes(&syndromes, &locator, &wrong);
        if self.syndromes_of(&wrong, &magnitudes) != syndromes {
            return Err(give_up);
        }
        for (&position, magnitude) in wrong.iter().zip(magnitudes) {
            received[position] ^= magnitude;
        }

        if let Some((_, to_dual)) = self.basis {
            to_dual.apply_to(&mut received);
        }
        word.copy_from_slice(&received);
        Ok(Corrected { errors: wrong.len() - erasures.len(), erasures: erasures.len() })
    }

    fn check(&self, word: &[u8], erasures: &[usize]) -> Result<(), DecodeError> {
        if word.len() != self.n {
            return Err(DecodeError::WrongLength { len: word.len(), n: self.n });
        }
        let mut seen = [false; 255];
        for &position in erasures {
            if position >= self.n {
                return Err(DecodeError::ErasureOutside { position, n: self.n });
            }
            if std::mem::replace(&mut seen[position], true) {
                return Err(DecodeError::ErasureTwice(position));
            }
        }
        if erasures.len() > self.parity_symbols() {
            return Err(DecodeError::TooManyErasures { erasures: erasures.len(), parity: self.parity_symbols() });
        }
        Ok(())
    }

    /// The received polynomial at the roots of the generator, by Horner's rule.
    fn syndromes(&self, received: &[u8]) -> Vec<u8> {
        let mut syndromes = vec![0; self.parity_symbols()];
        // All chains side by side, because each has to wait for its table.
        for &symbol in received {
            for (sum, times_root) in syndromes.iter_mut().zip(&self.times_roots) {
                *sum = times_root[*sum as usize] ^ symbol;
            }
        }
        syndromes
    }

    /// Syndromes of an error pattern alone.
    fn syndromes_of(&self, wrong: &[usize], magnitudes: &[u8]) -> Vec<u8> {
        let term = |j: usize, position: usize, magnitude: u8| {
            let power = (self.n - 1 - position) * (self.parameters.first_root as usize + j);
            self.field.multiply(magnitude, self.power(power))
        };
        let sum = |j| wrong.iter().zip(magnitudes).fold(0, |sum, (&at, &magnitude)| sum ^ term(j, at, magnitude));
        (0..self.parity_symbols()).map(sum).collect()
    }

    /// The polynomial whose roots are the inverse locators of the wrong symbols, lowest coefficient first, without leading zeros:
    /// Berlekamp and Massey's algorithm, started with the erasures (Massey 1969; Blahut 2003, chapter 7).
    fn locator(&self, syndromes: &[u8], erasures: &[usize]) -> Vec<u8> {
        let field = &self.field;
        let mut locator = vec![0; syndromes.len() + 1];
        locator[0] = 1;
        for &position in erasures {
            let x = self.power(self.n - 1 - position);
            for i in (1..locator.len()).rev() {
                locator[i] ^= field.multiply(x, locator[i - 1]);
            }
        }
        let mut earlier = locator.clone();
        let mut length = erasures.len();
        for r in erasures.len()..syndromes.len() {
            let discrepancy = (0..=r).fold(0, |sum, i| sum ^ field.multiply(locator[i], syndromes[r - i]));
            earlier.rotate_right(1);
            earlier[0] = 0;
            if discrepancy == 0 {
                continue;
            }
            let before = locator.clone();
            for (coefficient, &other) in locator.iter_mut().zip(&earlier) {
                *coefficient ^= field.multiply(discrepancy, other);
            }
            if 2 * length <= r + erasures.len() {
                length = r + 1 + erasures.len() - length;
                let scale = field.inverse(discrepancy);
                earlier = before.into_iter().map(|coefficient| field.multiply(scale, coefficient)).collect();
            }
        }
        let degree = locator.iter().rposition(|&coefficient| coefficient != 0).unwrap_or(0);
        locator.truncate(degree + 1);
        locator
    }

    /// Positions in the word whose inverse locators are zeros of the polynomial.
    fn roots(&self, locator: &[u8]) -> Vec<usize> {
        let inverse_locators: Vec<u8> = (0..self.n).map(|position| self.inverse_locator(position)).collect();
        let mut values = vec![0; self.n];
        for &coefficient in locator.iter().rev() {
            for (value, &x) in values.iter_mut().zip(&inverse_locators) {
                *value = self.field.multiply(*value, x) ^ coefficient;
            }
        }
        (0..self.n).filter(|&position| values[position] == 0).collect()
    }

    /// The correction of each wrong position: X^(1-f) evaluator(1/X) / locator'(1/X) (Forney 1965).
    fn magnitudes(&self, syndromes: &[u8], locator: &[u8], wrong: &[usize]) -> Vec<u8> {
        let field = &self.field;
        let coefficient = |k: usize| (0..=k).fold(0, |sum, i| sum ^ field.multiply(locator[i], syndromes[k - i]));
        let evaluator: Vec<u8> = (0..locator.len() - 1).map(coefficient).collect();
        let derivative: Vec<u8> =
            locator[1..].iter().enumerate().map(|(i, &c)| if i % 2 == 0 { c } else { 0 }).collect();
        let magnitude = |&position: &usize| {
            let inverse = self.inverse_locator(position);
            let scale = self.power((self.n - 1 - position) * (256 - self.parameters.first_root as usize));
            let ratio =
                field.multiply(self.evaluate(&evaluator, inverse), field.inverse(self.evaluate(&derivative, inverse)));
            field.multiply(scale, ratio)
        };
        wrong.iter().map(magnitude).collect()
    }

    fn inverse_locator(&self, position: usize) -> u8 {
        self.power(255 - (self.n - 1 - position))
    }

    /// The value of a polynomial, lowest coefficient first, at x.
    fn evaluate(&self, polynomial: &[u8], x: u8) -> u8 {
        polynomial.iter().rev().fold(0, |sum, &coefficient| self.field.multiply(sum, x) ^ coefficient)
    }
}
