//! 32 lanes: constants are multiplied by two look-ups in tables of 16 entries, variables bit by bit.

use std::arch::x86_64::*;

use super::lanes::Lanes;
use crate::gf256::{Field, Linear};

#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(__m256i);

#[derive(Clone)]
pub(super) struct Algebra {
    /// The field polynomial without x^8.
    reduction: u8,
    inverses: [u8; 256],
}

/// Greatest byte.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn greatest(bytes: __m256i) -> u8 {
    // SAFETY: the caller's.
    unsafe {
        let half = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
        let pairs = _mm_min_epu8(
            _mm_xor_si128(half, _mm_set1_epi8(-1)),
            _mm_srli_epi16::<8>(_mm_xor_si128(half, _mm_set1_epi8(-1))),
        );
        // The instruction finds the least of eight 16-bit numbers; the greatest byte is the complement's least.
        !(_mm_cvtsi128_si32(_mm_minpos_epu16(pairs)) as u8)
    }
}

// SAFETY, for every block below: the caller sees to it that the machine has AVX2, and that pointers lead to as many
// bytes as the trait says.
impl Lanes for Avx2 {
    const COUNT: usize = 32;
    /// Images of the low nibbles and of the high ones.
    type Map = [__m256i; 2];
    type Mask = __m256i;
    type Algebra = Algebra;

    fn algebra(field: &Field) -> (Algebra, Field) {
        let inverses = std::array::from_fn(|element| field.inverse(element as u8));
        (Algebra { reduction: field.polynomial() as u8, inverses }, field.clone())
    }

    #[inline(always)]
    unsafe fn map(linear: &Linear) -> [__m256i; 2] {
        let tables = linear.nibble_tables();
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        unsafe { Avx2(_mm256_set1_epi8(byte as i8)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { Avx2(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_pieces(from: &[*const u8], step: usize, offset: usize) -> Self {
        unsafe {
            let piece = |at: usize| _mm_loadu_si128(from[at * step].add(offset).cast());
            Avx2(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(piece(0)), piece(1)))
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn apply(self, map: [__m256i; 2]) -> Self {
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(map[0], _mm256_and_si256(self.0, nibble));
            let high = _mm256_shuffle_epi8(map[1], _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), nibble));
            Avx2(_mm256_xor_si256(low, high))
        }
    }

    #[inline(always)]
    unsafe fn multiply(self, other: Self, algebra: &Algebra) -> Self {
        unsafe {
            let (zero, reduction) = (_mm256_setzero_si256(), _mm256_set1_epi8(algebra.reduction as i8));
            let mut sum = zero;
            let mut bits = other.0;
            for _ in 0..8 {
                // Horner's rule in x: the sign of a byte is its highest coefficient.
                let carry = _mm256_and_si256(_mm256_cmpgt_epi8(zero, sum), reduction);
                let term = _mm256_and_si256(_mm256_cmpgt_epi8(zero, bits), self.0);
                sum = _mm256_xor_si256(_mm256_xor_si256(_mm256_add_epi8(sum, sum), carry), term);
                bits = _mm256_add_epi8(bits, bits);
            }
            Avx2(sum)
        }
    }

    #[inline(always)]
    unsafe fn inverse(self, algebra: &Algebra) -> Self {
        unsafe { self.look_up(&algebra.inverses) }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u8; 256]) -> Self {
        let mut bytes = [0u8; 32];
        unsafe {
            self.store(bytes.as_mut_ptr());
            for byte in &mut bytes {
                *byte = table[*byte as usize];
            }
            Self::load(bytes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn is_nonzero(self) -> __m256i {
        unsafe {
            let is_zero = _mm256_cmpeq_epi8(self.0, _mm256_setzero_si256());
            _mm256_xor_si256(is_zero, _mm256_set1_epi8(-1))
        }
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_sub_epi8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn greatest(self) -> u8 {
        unsafe { greatest(self.0) }
    }

    #[inline(always)]
    unsafe fn both(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn is_at_most(self, other: Self) -> __m256i {
        unsafe { _mm256_cmpeq_epi8(_mm256_min_epu8(self.0, other.0), self.0) }
    }

    #[inline(always)]
    unsafe fn select(mask: __m256i, yes: Self, no: Self) -> Self {
        unsafe { Avx2(_mm256_blendv_epi8(no.0, yes.0, mask)) }
    }

    #[inline(always)]
    unsafe fn bits(mask: __m256i) -> u64 {
        unsafe { u64::from(_mm256_movemask_epi8(mask) as u32) }
    }

    #[inline(always)]
    unsafe fn unpack_low(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_unpacklo_epi8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn unpack_high(self, other: Self) -> Self {
        unsafe { Avx2(_mm256_unpackhi_epi8(self.0, other.0)) }
    }
}
