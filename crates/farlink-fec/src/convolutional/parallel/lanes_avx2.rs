//! Thirty-two frames at once with AVX2.

use std::arch::x86_64::*;

use super::lanes::{Lanes, Quantiser};

/// A register of AVX2.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Avx2(__m256i);

// SAFETY (of every block below): the trait's contract has AVX2 enabled in the caller; addresses are vouched for by it.
impl Lanes for Avx2 {
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        Avx2(unsafe { _mm256_set1_epi8(byte.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Avx2(unsafe { _mm256_add_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Avx2(unsafe { _mm256_sub_epi8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        Avx2(unsafe { _mm256_min_epu8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Avx2(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mark_less(self, _b: Self, a: Self, min: Self, bit: Self) -> Self {
        Avx2(unsafe { _mm256_or_si256(self.0, _mm256_andnot_si256(_mm256_cmpeq_epi8(min.0, a.0), bit.0)) })
    }

    #[inline(always)]
    unsafe fn select_less(_b: Self, a: Self, min: Self, yes: Self, no: Self) -> Self {
        Avx2(unsafe { _mm256_blendv_epi8(yes.0, no.0, _mm256_cmpeq_epi8(min.0, a.0)) })
    }

    #[inline(always)]
    unsafe fn select_bit<const BIT: u32>(self, zero: Self, one: Self) -> Self {
        // The bit moves to the top of its byte; the other bits do not matter.
        let mask = unsafe {
            match BIT {
                0 => _mm256_slli_epi16::<7>(self.0),
                1 => _mm256_slli_epi16::<6>(self.0),
                2 => _mm256_slli_epi16::<5>(self.0),
                3 => _mm256_slli_epi16::<4>(self.0),
                4 => _mm256_slli_epi16::<3>(self.0),
                5 => _mm256_slli_epi16::<2>(self.0),
                6 => _mm256_slli_epi16::<1>(self.0),
                _ => self.0,
            }
        };
        Avx2(unsafe { _mm256_blendv_epi8(zero.0, one.0, mask) })
    }

    #[inline(always)]
    unsafe fn bit_of_low_two(self) -> Self {
        unsafe {
            let low = _mm256_and_si256(self.0, _mm256_set1_epi8(3));
            Avx2(_mm256_shuffle_epi8(_mm256_set1_epi32(0x8844_2211_u32.cast_signed()), low))
        }
    }

    #[inline(always)]
    unsafe fn append(self, byte: Self, mask: Self) -> Self {
        unsafe {
            let bits = _mm256_cmpeq_epi8(_mm256_and_si256(byte.0, mask.0), mask.0);
            Avx2(_mm256_sub_epi8(_mm256_add_epi8(self.0, self.0), bits))
        }
    }

    #[inline(always)]
    unsafe fn reverse_bits(self) -> Self {
        unsafe {
            let nibbles = _mm256_setr_epi8(
                0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15, 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7,
                15,
            );
            let mask = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(nibbles, _mm256_and_si256(self.0, mask));
            let high = _mm256_shuffle_epi8(nibbles, _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), mask));
            Avx2(_mm256_or_si256(_mm256_slli_epi16::<4>(low), high))
        }
    }

    #[inline(always)]
    unsafe fn costs(self, quantiser: &Quantiser) -> (Self, Self) {
        unsafe {
            let size = _mm256_min_epu8(_mm256_abs_epi8(self.0), _mm256_set1_epi8(quantiser.full_scale.cast_signed()));
            let scale = _mm256_set1_epi16(quantiser.scale);
            let high_bytes = _mm256_set1_epi16(0xff00_u16.cast_signed());
            // (size * 2^8 * scale + 2^14) / 2^15 in 16 bits, for the odd bytes and for the even ones.
            let odd = _mm256_mulhrs_epi16(_mm256_and_si256(size, high_bytes), scale);
            let even = _mm256_mulhrs_epi16(_mm256_slli_epi16::<8>(size), scale);
            let cost = _mm256_or_si256(_mm256_slli_epi16::<8>(odd), even);
            let zero = _mm256_and_si256(cost, _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0));
            (Avx2(zero), Avx2(_mm256_xor_si256(cost, zero)))
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> (Self, Self) {
        unsafe { (Avx2(_mm256_unpacklo_epi8(self.0, other.0)), Avx2(_mm256_unpackhi_epi8(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn gather16(from: *const u8, apart: usize) -> Self {
        unsafe { Avx2(_mm256_loadu2_m128i(from.add(apart).cast(), from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_by_fours(from: *const Self) -> [Self; 4] {
        unsafe {
            let from = from.cast::<u8>();
            // Within 16 bytes, those of each remainder next to each other; then a transposition of 4 x 4 of such words.
            let order = _mm256_setr_epi8(
                0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                15,
            );
            let a = _mm256_shuffle_epi8(Self::gather16(from, 64).0, order);
            let b = _mm256_shuffle_epi8(Self::gather16(from.add(16), 64).0, order);
            let c = _mm256_shuffle_epi8(Self::gather16(from.add(32), 64).0, order);
            let d = _mm256_shuffle_epi8(Self::gather16(from.add(48), 64).0, order);
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            [
                Avx2(_mm256_unpacklo_epi64(ab, cd)),
                Avx2(_mm256_unpackhi_epi64(ab, cd)),
                Avx2(_mm256_unpacklo_epi64(ab_high, cd_high)),
                Avx2(_mm256_unpackhi_epi64(ab_high, cd_high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn lookup(table: [u8; 16], index: Self) -> Self {
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            Avx2(_mm256_shuffle_epi8(table, index.0))
        }
    }

    #[inline(always)]
    unsafe fn least(self) -> u8 {
        unsafe {
            let half = _mm_min_epu8(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            // The high bytes become 0.
            let pairs = _mm_min_epu8(half, _mm_srli_epi16::<8>(half));
            _mm_cvtsi128_si32(_mm_minpos_epu16(pairs)) as u8
        }
    }

    #[inline(always)]
    fn prefetch(at: *const u8) {
        // SAFETY: a hint, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
