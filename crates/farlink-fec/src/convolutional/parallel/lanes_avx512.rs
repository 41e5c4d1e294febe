//! Sixty-four frames at once with AVX-512 and GFNI.

use std::arch::x86_64::*;

use super::lanes::{Lanes, Quantiser};

/// The even positions of 128 bytes.
const EVEN: [u8; 64] = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = 2 * i as u8;
        i += 1;
    }
    places
};

/// A register of AVX-512.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Avx512(__m512i);

// SAFETY (of every block below): the trait's contract has AVX-512 F, BW, VL, DQ, VBMI and GFNI enabled in the caller;
// addresses are vouched for by it.
impl Lanes for Avx512 {
    const LANES: usize = 64;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        Avx512(unsafe { _mm512_set1_epi8(byte.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_min_epu8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mark_less(self, b: Self, a: Self, _min: Self, bit: Self) -> Self {
        unsafe { Avx512(_mm512_mask_add_epi8(self.0, _mm512_cmplt_epu8_mask(b.0, a.0), self.0, bit.0)) }
    }

    #[inline(always)]
    unsafe fn select_less(b: Self, a: Self, _min: Self, yes: Self, no: Self) -> Self {
        unsafe { Avx512(_mm512_mask_blend_epi8(_mm512_cmplt_epu8_mask(b.0, a.0), no.0, yes.0)) }
    }

    #[inline(always)]
    unsafe fn select_bit<const BIT: u32>(self, zero: Self, one: Self) -> Self {
        unsafe {
            let set = _mm512_test_epi8_mask(self.0, _mm512_set1_epi8((1u8 << BIT).cast_signed()));
            Avx512(_mm512_mask_blend_epi8(set, zero.0, one.0))
        }
    }

    #[inline(always)]
    unsafe fn bit_of_low_two(self) -> Self {
        unsafe {
            let low = _mm512_and_si512(self.0, _mm512_set1_epi8(3));
            Avx512(_mm512_shuffle_epi8(_mm512_set1_epi32(0x8844_2211_u32.cast_signed()), low))
        }
    }

    #[inline(always)]
    unsafe fn append(self, byte: Self, mask: Self) -> Self {
        unsafe {
            let set = _mm512_test_epi8_mask(byte.0, mask.0);
            let twice = _mm512_add_epi8(self.0, self.0);
            Avx512(_mm512_mask_add_epi8(twice, set, twice, _mm512_set1_epi8(1)))
        }
    }

    #[inline(always)]
    unsafe fn reverse_bits(self) -> Self {
        // The identity's rows in reverse order: bit i of the result is bit 7 - i.
        unsafe {
            Avx512(_mm512_gf2p8affine_epi64_epi8::<0>(
                self.0,
                _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed()),
            ))
        }
    }

    #[inline(always)]
    unsafe fn costs(self, quantiser: &Quantiser) -> (Self, Self) {
        unsafe {
            let size = _mm512_min_epu8(_mm512_abs_epi8(self.0), _mm512_set1_epi8(127));
            let low = _mm512_loadu_si512(quantiser.table.as_ptr().cast());
            let high = _mm512_loadu_si512(quantiser.table.as_ptr().add(64).cast());
            let cost = _mm512_permutex2var_epi8(low, size, high);
            let zero = _mm512_maskz_mov_epi8(_mm512_movepi8_mask(self.0), cost);
            (Avx512(zero), Avx512(_mm512_xor_si512(cost, zero)))
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> (Self, Self) {
        unsafe { (Avx512(_mm512_unpacklo_epi8(self.0, other.0)), Avx512(_mm512_unpackhi_epi8(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn gather16(from: *const u8, apart: usize) -> Self {
        unsafe {
            let all = _mm512_castsi128_si512(_mm_loadu_si128(from.cast()));
            let all = _mm512_inserti32x4::<1>(all, _mm_loadu_si128(from.add(apart).cast()));
            let all = _mm512_inserti32x4::<2>(all, _mm_loadu_si128(from.add(2 * apart).cast()));
            Avx512(_mm512_inserti32x4::<3>(all, _mm_loadu_si128(from.add(3 * apart).cast())))
        }
    }

    #[inline(always)]
    unsafe fn load_by_fours(from: *const Self) -> [Self; 4] {
        unsafe {
            let even = _mm512_loadu_si512(EVEN.as_ptr().cast());
            let odd = _mm512_or_si512(even, _mm512_set1_epi8(1));
            let [a, b, c, d] = *from.cast::<[__m512i; 4]>();
            let (low_even, low_odd) = (_mm512_permutex2var_epi8(a, even, b), _mm512_permutex2var_epi8(a, odd, b));
            let (high_even, high_odd) = (_mm512_permutex2var_epi8(c, even, d), _mm512_permutex2var_epi8(c, odd, d));
            [
                Avx512(_mm512_permutex2var_epi8(low_even, even, high_even)),
                Avx512(_mm512_permutex2var_epi8(low_odd, even, high_odd)),
                Avx512(_mm512_permutex2var_epi8(low_even, odd, high_even)),
                Avx512(_mm512_permutex2var_epi8(low_odd, odd, high_odd)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn lookup(table: [u8; 16], index: Self) -> Self {
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            Avx512(_mm512_shuffle_epi8(table, index.0))
        }
    }

    #[inline(always)]
    unsafe fn least(self) -> u8 {
        unsafe {
            let half = _mm256_min_epu8(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
            let quarter = _mm_min_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
            // The high bytes become 0.
            let pairs = _mm_min_epu8(quarter, _mm_srli_epi16::<8>(quarter));
            _mm_cvtsi128_si32(_mm_minpos_epu16(pairs)) as u8
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a hint, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
