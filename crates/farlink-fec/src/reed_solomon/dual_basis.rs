//! Berlekamp's dual basis, in which CCSDS sends the symbols.

use crate::gf256::{Field, Linear};

/// From the conventional basis to the dual one: bit 7 - i of the image of z is the trace of z a^(117 i).
///
/// CCSDS 131.0-B, sections 4.3.9 and 4.4.2: the basis l0 ... l7 is dual to 1, b, ..., b^7 with b = a^117, and the coefficient of l0 is
/// sent first.
pub(super) fn to_dual(field: &Field) -> Linear {
    Linear::new(std::array::from_fn(|bit| {
        (0..8).fold(0, |image, i| image | trace(field, field.multiply(1 << bit, field.exp(117 * i))) << (7 - i))
    }))
}

/// Sum of the eight conjugates: 0 or 1.
fn trace(field: &Field, element: u8) -> u8 {
    let square = |x: &u8| Some(field.multiply(*x, *x));
    std::iter::successors(Some(element), square).take(8).fold(0, |sum, conjugate| sum ^ conjugate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::CCSDS;

    #[test]
    fn the_matrix_is_that_of_the_standard() {
        // CCSDS 131.0-B-2, section 4.3.9: rows of the two matrices, the image of the first bit sent first.
        let rows = [0x8d, 0xef, 0xec, 0x86, 0xfa, 0x99, 0xaf, 0x7b];
        let rows_back = [0xc5, 0x42, 0x2e, 0xfd, 0xf0, 0x79, 0xac, 0xcc];
        let map = to_dual(&Field::new(CCSDS).unwrap());
        let back = map.inverse().unwrap();
        for at in 0..8 {
            assert_eq!(map.apply(0x80 >> at), rows[at]);
            assert_eq!(back.apply(0x80 >> at), rows_back[at]);
        }
    }
}
