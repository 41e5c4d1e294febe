//! Maps of bytes that are linear over GF(2): multiplication by a constant, and change of basis.

use super::Field;
use crate::simd::Simd;

/// A linear map of the 8 bits of a byte, given by the image of each bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    columns: [u8; 8],
}

impl Linear {
    /// The map that takes the byte `1 << i` to `columns[i]`.
    pub fn new(columns: [u8; 8]) -> Linear {
        Linear { columns }
    }

    /// The map that changes nothing.
    pub fn identity() -> Linear {
        Linear { columns: std::array::from_fn(|bit| 1 << bit) }
    }

    /// Multiplication by a constant.
    pub fn multiplication(field: &Field, c: u8) -> Linear {
        Linear { columns: std::array::from_fn(|bit| field.multiply(c, 1 << bit)) }
    }

    /// The image of a byte.
    #[inline]
    pub fn apply(&self, byte: u8) -> u8 {
        (0..8).filter(|bit| byte >> bit & 1 == 1).fold(0, |sum, bit| sum ^ self.columns[bit])
    }

    /// The composition of this map and then another.
    pub fn then(&self, next: &Linear) -> Linear {
        Linear { columns: self.columns.map(|column| next.apply(column)) }
    }

    /// The inverse map, if there is one.
    pub fn inverse(&self) -> Option<Linear> {
        let mut inverse = [0u8; 8];
        for byte in 0..=255u8 {
            let image = self.apply(byte);
            if image.is_power_of_two() {
                inverse[image.trailing_zeros() as usize] = byte;
            }
        }
        let inverse = Linear { columns: inverse };
        (inverse.then(self) == Linear::identity()).then_some(inverse)
    }

    /// The matrix in the form of `gf2p8affineqb`: byte 7 - i has the bits whose sum is image bit i.
    pub fn affine_matrix(&self) -> u64 {
        let row = |bit: usize| (0..8).fold(0u8, |row, column| row | (self.columns[column] >> bit & 1) << column);
        u64::from_be_bytes(std::array::from_fn(row))
    }

    /// Images of the low nibbles, then of the high ones, in the form of `pshufb`.
    pub fn nibble_tables(&self) -> [[u8; 16]; 2] {
        [std::array::from_fn(|low| self.apply(low as u8)), std::array::from_fn(|high| self.apply((high as u8) << 4))]
    }

    /// Images of all bytes.
    pub fn table(&self) -> [u8; 256] {
        std::array::from_fn(|byte| self.apply(byte as u8))
    }

    /// `dst[i] ^= map(src[i])`.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn add_to(&self, simd: Simd, src: &[u8], dst: &mut [u8]) {
        assert_eq!(src.len(), dst.len(), "source and destination have one length");
        let tables = self.nibble_tables();
        let done = match simd {
            Simd::Portable => 0,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => {
                check(simd);
                // SAFETY: the machine has this level (just checked); the lengths are equal.
                unsafe { x86::add_avx2(&tables, src, dst) }
            }
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Gfni => {
                check(simd);
                // SAFETY: the machine has this level (just checked); the lengths are equal.
                unsafe { x86::add_avx512(self.affine_matrix(), src, dst) };
                src.len()
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => 0,
        };
        for (from, to) in src[done..].iter().zip(&mut dst[done..]) {
            *to ^= tables[0][(from & 15) as usize] ^ tables[1][(from >> 4) as usize];
        }
    }

    /// `bytes[i] = map(bytes[i])`.
    pub fn apply_to(&self, bytes: &mut [u8]) {
        let table = self.table();
        for byte in bytes {
            *byte = table[*byte as usize];
        }
    }
}

/// # Panics
/// If this machine lacks the level.
#[cfg(target_arch = "x86_64")]
fn check(simd: Simd) {
    assert!(simd <= Simd::best(), "this machine has no {simd:?}");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Whole blocks of 32 bytes; returns their length in bytes.
    ///
    /// # Safety
    /// The machine has AVX2; the two have one length.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn add_avx2(tables: &[[u8; 16]; 2], src: &[u8], dst: &mut [u8]) -> usize {
        let whole = src.len() / 32 * 32;
        // SAFETY: a table has 16 bytes; every 32 bytes from `at` lie below `whole`, inside both slices.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast()));
            let nibble = _mm256_set1_epi8(15);
            for at in (0..whole).step_by(32) {
                let from = _mm256_loadu_si256(src.as_ptr().add(at).cast());
                let to = dst.as_mut_ptr().add(at).cast::<__m256i>();
                let a = _mm256_shuffle_epi8(low, _mm256_and_si256(from, nibble));
                let b = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(from, 4), nibble));
                _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), _mm256_xor_si256(a, b)));
            }
        }
        whole
    }

    /// All bytes, the last ones under a mask.
    ///
    /// # Safety
    /// The machine has AVX-512 F and BW and GFNI; the two have one length.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) unsafe fn add_avx512(matrix: u64, src: &[u8], dst: &mut [u8]) {
        let matrix = _mm512_set1_epi64(matrix as i64);
        for at in (0..src.len()).step_by(64) {
            let mask = u64::MAX >> (64 - (src.len() - at).min(64));
            // SAFETY: the mask keeps loads and stores inside both slices.
            unsafe {
                let to = dst.as_mut_ptr().add(at).cast::<i8>();
                let from = _mm512_maskz_loadu_epi8(mask, src.as_ptr().add(at).cast());
                let image = _mm512_gf2p8affine_epi64_epi8::<0>(from, matrix);
                _mm512_mask_storeu_epi8(to, mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, to), image));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::{CCSDS, CONVENTIONAL};
    use proptest::prelude::*;

    #[test]
    fn an_inverse_undoes_and_a_projection_has_none() {
        let field = Field::new(CCSDS).unwrap();
        let map = Linear::multiplication(&field, 0x53);
        assert_eq!(map.inverse(), Some(Linear::multiplication(&field, field.inverse(0x53))));
        assert_eq!(Linear::multiplication(&field, 0).inverse(), None);
        assert_eq!(Linear::new([1, 2, 4, 8, 16, 32, 64, 3]).inverse(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_level_adds_the_same(c: u8, src in prop::collection::vec(any::<u8>(), 0..200), seed: u8) {
            let field = Field::new(CONVENTIONAL).unwrap();
            let start: Vec<u8> = (0..src.len()).map(|at| (at as u8).wrapping_mul(seed)).collect();
            let expected: Vec<u8> = src.iter().zip(&start).map(|(&x, &y)| y ^ field.multiply(c, x)).collect();
            for simd in Simd::available() {
                let mut dst = start.clone();
                field.multiply_add(simd, c, &src, &mut dst);
                prop_assert_eq!(&dst, &expected, "{:?}", simd);
            }
        }
    }
}
