//! 64 lanes, with the multiplication of GFNI, which supports only the field of AES: symbols are mapped there and back.

use std::arch::x86_64::*;

use super::lanes::Lanes;
use crate::gf256::{self, Field, Linear};

#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(__m512i);

// SAFETY, for every block below: the caller sees to it that the machine has AVX-512 F, BW, VL, DQ, VBMI and GFNI, and
// that pointers lead to as many bytes as the trait says.
impl Lanes for Avx512 {
    const COUNT: usize = 64;
    /// The matrix of `gf2p8affineqb`.
    type Map = u64;
    type Mask = u64;
    type Algebra = ();

    fn algebra(_: &Field) -> ((), Field) {
        ((), Field::new(gf256::AES).expect("the polynomial of AES is irreducible"))
    }

    #[inline(always)]
    unsafe fn map(linear: &Linear) -> u64 {
        linear.affine_matrix()
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        unsafe { Avx512(_mm512_set1_epi8(byte as i8)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { Avx512(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_pieces(from: &[*const u8], step: usize, offset: usize) -> Self {
        unsafe {
            let piece = |at: usize| _mm_loadu_si128(from[at * step].add(offset).cast());
            let first = _mm512_castsi128_si512(piece(0));
            // A masked broadcast needs only a load, while an insertion would also use the shuffle port.
            let second = _mm512_mask_broadcast_i64x2(first, 0b0000_1100, piece(1));
            let third = _mm512_mask_broadcast_i64x2(second, 0b0011_0000, piece(2));
            Avx512(_mm512_mask_broadcast_i64x2(third, 0b1100_0000, piece(3)))
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn apply(self, map: u64) -> Self {
        unsafe { Avx512(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, _mm512_set1_epi64(map as i64))) }
    }

    #[inline(always)]
    unsafe fn multiply(self, other: Self, (): &()) -> Self {
        unsafe { Avx512(_mm512_gf2p8mul_epi8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn inverse(self, (): &()) -> Self {
        unsafe {
            let identity = _mm512_set1_epi64(Linear::identity().affine_matrix() as i64);
            Avx512(_mm512_gf2p8affineinv_epi64_epi8::<0>(self.0, identity))
        }
    }

    #[inline(always)]
    unsafe fn look_up(self, table: &[u8; 256]) -> Self {
        unsafe {
            let quarter = |at: usize| _mm512_loadu_si512(table.as_ptr().add(64 * at).cast());
            let low = _mm512_permutex2var_epi8(quarter(0), self.0, quarter(1));
            let high = _mm512_permutex2var_epi8(quarter(2), self.0, quarter(3));
            Avx512(_mm512_mask_blend_epi8(_mm512_movepi8_mask(self.0), low, high))
        }
    }

    #[inline(always)]
    unsafe fn is_nonzero(self) -> u64 {
        unsafe { _mm512_test_epi8_mask(self.0, self.0) }
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_sub_epi8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn greatest(self) -> u8 {
        unsafe {
            let half = _mm256_max_epu8(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            super::avx2::greatest(half)
        }
    }

    #[inline(always)]
    unsafe fn both(a: u64, b: u64) -> u64 {
        a & b
    }

    #[inline(always)]
    unsafe fn is_at_most(self, other: Self) -> u64 {
        unsafe { _mm512_cmple_epu8_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn select(mask: u64, yes: Self, no: Self) -> Self {
        unsafe { Avx512(_mm512_mask_blend_epi8(mask, no.0, yes.0)) }
    }

    #[inline(always)]
    unsafe fn bits(mask: u64) -> u64 {
        mask
    }

    #[inline(always)]
    unsafe fn unpack_low(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_unpacklo_epi8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn unpack_high(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_unpackhi_epi8(self.0, other.0)) }
    }
}
