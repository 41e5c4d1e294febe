//! Reed-Solomon codes over GF(256).
//!
//! A codeword is n bytes, k of data and then n - k of parity; byte i is the coefficient of x^(n-1-i), and the word is a
//! multiple of the generator polynomial, whose n - k roots are successive powers (Reed and Solomon 1960; MacWilliams
//! and Sloane 1977, chapter 10). Any n up to 255 is a code shortened from 255: the missing symbols before it are zeros.
//!
//! [`Code`] is the code with a simple decoder of errors and erasures for one word at a time. [`BatchDecoder`] and
//! [`BatchEncoder`] process many words at once with the same results, with a word in each lane of the SIMD registers.
//! [`Interleaved`] distributes a burst over several words; [`theory`] gives the probability that a word fails.

mod batch;
mod decode;
mod dual_basis;
mod interleaved;
pub mod theory;

pub use batch::{BatchDecoder, BatchEncoder, Outcome};
pub use decode::{Corrected, DecodeError};
pub use interleaved::{Interleaved, InterleavingError};

use crate::gf256::{self, Field, FieldError, Linear};

/// The parameters of a code other than n and k. With a the field's [generator](Field::generator), the roots of the generator
/// polynomial are a^(p f), a^(p (f + 1)), ..., for the first root f and the primitive element p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Field polynomial, bit i the coefficient of x^i.
    pub polynomial: u16,
    /// First root f, a power of a^p, 0 to 254.
    pub first_root: u8,
    /// Primitive element p, a power of a, coprime with 255.
    pub primitive_element: u8,
    /// Meaning of the bits of a symbol.
    pub basis: Basis,
}

impl Parameters {
    /// The usual code: polynomial 0x11d, roots a^0, a^1, ... as in DVB (ETSI EN 300 421).
    pub const CONVENTIONAL: Parameters =
        Parameters { polynomial: gf256::CONVENTIONAL, first_root: 0, primitive_element: 1, basis: Basis::Conventional };

    /// CCSDS 131.0-B, section 4.3, with n - k = 32: roots a^(11 j), j = 112 to 143, in the dual basis, as on the air.
    pub const CCSDS: Parameters =
        Parameters { polynomial: gf256::CCSDS, first_root: 112, primitive_element: 11, basis: Basis::Dual };

    /// CCSDS 131.0-B, section 4.3, with n - k = 16: roots a^(11 j), j = 120 to 135, in the dual basis.
    pub const CCSDS_E8: Parameters = Parameters { first_root: 120, ..Parameters::CCSDS };
}

/// Meaning of the bits of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Bit i is the coefficient of x^i.
    Conventional,
    /// Berlekamp's dual basis of CCSDS 131.0-B, section 4.3.9. With another field polynomial it is defined the same way.
    Dual,
}

/// Why a code is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The code is longer than the field allows.
    #[error("n = {0} symbols are too many: a Reed-Solomon code over GF(256) has at most 255")]
    TooLong(usize),
    /// There is no data.
    #[error("k = 0: a code word needs at least one data symbol")]
    NoData,
    /// There is no parity.
    #[error("k = {k} is not below n = {n}: no symbol is left for parity")]
    NoParity {
        /// Symbols of a word.
        n: usize,
        /// Data symbols of a word.
        k: usize,
    },
    /// The standard does not have this number of parity symbols.
    #[error("n - k = {0}: CCSDS codes have 16 or 32 parity symbols")]
    NotCcsds(usize),
    /// The powers of a^p do not include all elements.
    #[error("primitive element {0} is not coprime with 255 = 3 x 5 x 17")]
    PrimitiveElement(u8),
    /// a^255 = a^0.
    #[error("first root {0}: powers run from 0 to 254")]
    FirstRoot(u8),
    /// The dual basis requires that a^117 generates the field over GF(2).
    #[error("field polynomial {0:#x} has no dual basis as CCSDS defines it: use 0x187")]
    NoDualBasis(u16),
    /// The polynomial does not define a field.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// A Reed-Solomon code (n, k) over GF(256).
#[derive(Clone, Debug)]
pub struct Code {
    n: usize,
    k: usize,
    parameters: Parameters,
    field: Field,
    /// All multiples of the generator polynomial, n - k coefficients each, highest first, without the leading one.
    multiples: Vec<u8>,
    /// Products of all elements with each root.
    times_roots: Vec<[u8; 256]>,
    /// Maps from symbols as sent to the conventional basis, and back.
    basis: Option<(Linear, Linear)>,
}

impl Code {
    /// The code of n symbols, k of them data.
    ///
    /// # Errors
    /// If n exceeds 255, k is 0 or not below n, or the parameters do not define a code.
    pub fn new(n: usize, k: usize, parameters: Parameters) -> Result<Code, CodeError> {
        if n > 255 {
            return Err(CodeError::TooLong(n));
        }
        if k == 0 {
            return Err(CodeError::NoData);
        }
        if k >= n {
            return Err(CodeError::NoParity { n, k });
        }
        let p = parameters.primitive_element;
        if p.is_multiple_of(3) || p.is_multiple_of(5) || p.is_multiple_of(17) {
            return Err(CodeError::PrimitiveElement(p));
        }
        if parameters.first_root == 255 {
            return Err(CodeError::FirstRoot(255));
        }
        let field = Field::new(parameters.polynomial)?;
        let basis = match parameters.basis {
            Basis::Conventional => None,
            Basis::Dual => {
                let to_dual = dual_basis::to_dual(&field);
                Some((to_dual.inverse().ok_or(CodeError::NoDualBasis(parameters.polynomial))?, to_dual))
            }
        };
        let mut code = Code { n, k, parameters, field, multiples: Vec::new(), times_roots: Vec::new(), basis };
        let generator = code.generator_polynomial();
        let multiple = |factor| generator.iter().map(move |&coefficient| (factor, coefficient));
        let product = |(factor, coefficient)| code.field.multiply(factor, coefficient);
        code.multiples = (0..=255u8).flat_map(multiple).map(product).collect();
        let table = |j| std::array::from_fn(|element| code.field.multiply(element as u8, code.root(j)));
        code.times_roots = (0..n - k).map(table).collect();
        Ok(code)
    }

    /// The code with [`Parameters::CONVENTIONAL`].
    ///
    /// # Errors
    /// If n exceeds 255 or k is 0 or not below n.
    pub fn conventional(n: usize, k: usize) -> Result<Code, CodeError> {
        Code::new(n, k, Parameters::CONVENTIONAL)
    }

    /// The CCSDS code of n symbols, in either basis: with 32 parity symbols or with 16.
    ///
    /// # Errors
    /// If n exceeds 255, k is 0 or not below n, or n - k is neither 16 nor 32.
    pub fn ccsds(n: usize, k: usize, basis: Basis) -> Result<Code, CodeError> {
        let parameters = match n.saturating_sub(k) {
            16 => Parameters::CCSDS_E8,
            32 => Parameters::CCSDS,
            0 => return Code::conventional(n, k), // refused there
            other => return Err(CodeError::NotCcsds(other)),
        };
        Code::new(n, k, Parameters { basis, ..parameters })
    }

    /// Symbols of a word.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Data symbols of a word.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Parity symbols of a word, n - k.
    pub fn parity_symbols(&self) -> usize {
        self.n - self.k
    }

    /// Number of wrong symbols that are always corrected, (n - k)/2 rounded down.
    pub fn t(&self) -> usize {
        self.parity_symbols() / 2
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Computes the parity of a word's data.
    ///
    /// # Panics
    /// If `data` does not have k bytes or `parity` not n - k.
    pub fn encode(&self, data: &[u8], parity: &mut [u8]) {
        assert_eq!(data.len(), self.k, "data of a ({}, {}) code word", self.n, self.k);
        assert_eq!(parity.len(), self.parity_symbols(), "parity of a ({}, {}) code word", self.n, self.k);
        parity.fill(0);
        for &symbol in data {
            let feedback = parity[0] ^ self.conventional_of(symbol);
            let multiple = &self.multiples[feedback as usize * parity.len()..][..parity.len()];
            parity.copy_within(1.., 0);
            parity[self.n - self.k - 1] = 0;
            parity.iter_mut().zip(multiple).for_each(|(register, &product)| *register ^= product);
        }
        if let Some((_, to_dual)) = self.basis {
            to_dual.apply_to(parity);
        }
    }

    /// Root number `at` of the generator polynomial.
    fn root(&self, at: usize) -> u8 {
        self.power(self.parameters.first_root as usize + at)
    }

    /// (a^p)^power: the locator of the coefficient of x^power.
    fn power(&self, power: usize) -> u8 {
        self.field.exp(self.parameters.primitive_element as usize * power)
    }

    /// A symbol as sent, converted to the conventional basis.
    fn conventional_of(&self, symbol: u8) -> u8 {
        self.basis.map_or(symbol, |(to_conventional, _)| to_conventional.apply(symbol))
    }

    fn generator_polynomial(&self) -> Vec<u8> {
        let mut product = vec![1]; // highest coefficient first
        for at in 0..self.parity_symbols() {
            let root = self.root(at);
            product.push(0);
            for i in (1..product.len()).rev() {
                product[i] ^= self.field.multiply(root, product[i - 1]);
            }
        }
        product.split_off(1)
    }
}

#[cfg(test)]
mod tests;
