//! The field of 256 elements, over any irreducible polynomial, and its multiplications by constants over byte strings.
//!
//! An element is a byte: bit i is the coefficient of x^i. Addition is exclusive or.

mod linear;

pub use linear::Linear;

/// x^8 + x^4 + x^3 + x^2 + 1: the usual polynomial of Reed-Solomon codes (DVB, QR codes).
pub const CONVENTIONAL: u16 = 0x11d;
/// x^8 + x^7 + x^2 + x + 1: CCSDS 131.0-B, section 4.3.
pub const CCSDS: u16 = 0x187;
/// x^8 + x^4 + x^3 + x + 1: AES (FIPS 197), in which x86's GFNI multiplies. x is not primitive in it.
pub const AES: u16 = 0x11b;

/// Why a polynomial does not define a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The degree is not 8.
    #[error("field polynomial {0:#x} has not degree 8: it must lie between 0x100 and 0x1ff")]
    Degree(u16),
    /// The polynomial is a product of smaller ones.
    #[error("field polynomial {0:#x} is reducible: choose an irreducible one, such as 0x11d or 0x187")]
    Reducible(u16),
}

/// GF(256): tables of logarithms and powers.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    polynomial: u16,
    generator: u8,
    /// Powers of the generator, repeated, so that a sum of two logarithms needs no reduction; then zeros.
    exp: [u8; 1024],
    /// Logarithms. That of 0 is so large that any sum with it is an index of the zeros, so that products need no branch.
    log: [u16; 256],
}

impl Field {
    /// The field of an irreducible polynomial of degree 8, bit i the coefficient of x^i.
    ///
    /// # Errors
    /// If it has another degree or is reducible.
    pub fn new(polynomial: u16) -> Result<Field, FieldError> {
        if !(0x100..0x200).contains(&polynomial) {
            return Err(FieldError::Degree(polynomial));
        }
        // In a field, unlike in a ring with zero divisors, the powers of some element are all 255 nonzero elements.
        (2..=255u8).find_map(|generator| Field::of(polynomial, generator)).ok_or(FieldError::Reducible(polynomial))
    }

    /// The field with a given generator, if its powers are 255 different elements.
    fn of(polynomial: u16, generator: u8) -> Option<Field> {
        let mut field = Field { polynomial, generator, exp: [0; 1024], log: [510; 256] };
        let mut power = 1u8;
        for at in 0..255 {
            if power == 0 || (at > 0 && power == 1) {
                return None;
            }
            field.exp[at] = power;
            field.exp[at + 255] = power;
            field.log[power as usize] = at as u16;
            power = product(polynomial, power, generator);
        }
        (power == 1).then_some(field)
    }

    /// The polynomial.
    pub fn polynomial(&self) -> u16 {
        self.polynomial
    }

    /// The base of the logarithms: the smallest primitive element, which is x (2) if the polynomial is primitive.
    pub fn generator(&self) -> u8 {
        self.generator
    }

    /// a b.
    #[inline]
    pub fn multiply(&self, a: u8, b: u8) -> u8 {
        // Both logarithms are at most 510; the mask only tells the compiler so.
        self.exp[(self.log[a as usize] + self.log[b as usize]) as usize & 1023]
    }

    /// 1/a; 0 for 0, as in AES.
    #[inline]
    pub fn inverse(&self, a: u8) -> u8 {
        if a == 0 { 0 } else { self.exp[255 - self.log[a as usize] as usize] }
    }

    /// The generator to any power.
    #[inline]
    pub fn exp(&self, power: usize) -> u8 {
        self.exp[power % 255]
    }

    /// Logarithm to the base of the generator, 0 to 254; 0 has none.
    #[inline]
    pub fn log(&self, a: u8) -> Option<u8> {
        (a != 0).then(|| self.log[a as usize] as u8)
    }

    /// Adds c times a string of elements to another: `dst[i] += c src[i]`.
    ///
    /// For many calls with the same factor, keep [`Linear::multiplication`].
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn multiply_add(&self, simd: crate::simd::Simd, c: u8, src: &[u8], dst: &mut [u8]) {
        Linear::multiplication(self, c).add_to(simd, src, dst);
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Field({:#x})", self.polynomial)
    }
}

/// a b modulo a polynomial of degree 8, bit by bit.
fn product(polynomial: u16, a: u8, b: u8) -> u8 {
    let mut sum = 0u16;
    for bit in (0..8).rev() {
        sum <<= 1;
        if sum & 0x100 != 0 {
            sum ^= polynomial;
        }
        if b >> bit & 1 == 1 {
            sum ^= u16::from(a);
        }
    }
    sum as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplication_agrees_with_the_definition() {
        for polynomial in [CONVENTIONAL, CCSDS, AES] {
            let field = Field::new(polynomial).unwrap();
            for a in 0..=255u8 {
                for b in 0..=255u8 {
                    assert_eq!(field.multiply(a, b), product(polynomial, a, b));
                }
                assert_eq!(field.multiply(a, field.inverse(a)), u8::from(a != 0));
                if let Some(log) = field.log(a) {
                    assert_eq!(field.exp(log as usize), a);
                }
            }
        }
    }

    #[test]
    fn the_product_of_fips_197() {
        assert_eq!(Field::new(AES).unwrap().multiply(0x57, 0x83), 0xc1); // section 4.2
        assert_eq!(Field::new(AES).unwrap().generator(), 3);
        assert_eq!(Field::new(CCSDS).unwrap().generator(), 2);
    }

    #[test]
    fn thirty_polynomials_are_irreducible() {
        let count = (0x100..0x200).filter(|&polynomial| Field::new(polynomial).is_ok()).count();
        assert_eq!(count, 30); // (2^8 - 2^4) / 8, by Gauss's formula
        assert_eq!(Field::new(0x101), Err(FieldError::Reducible(0x101)));
        assert_eq!(Field::new(0x1d), Err(FieldError::Degree(0x1d)));
    }
}
