//! AVX2: products of nibbles looked up with `pshufb`.

use super::{Blocks, FIELD, Product};
use crate::gf256::Linear;
use std::arch::x86_64::*;
use std::sync::LazyLock;

/// Shorter blocks do not fill half a vector.
pub(super) const LEN_MIN: usize = 16;

/// Products of each factor with all low nibbles, and with all high nibbles.
static NIBBLES: LazyLock<Box<[[[u8; 16]; 2]]>> =
    LazyLock::new(|| (0..=255).map(|c| Linear::multiplication(&FIELD, c).nibble_tables()).collect());

/// Writes all rows.
///
/// # Safety
/// The machine has AVX2; all blocks and coefficients lie inside their buffers (see [`Product::write`]); blocks have at
/// least [`LEN_MIN`] bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn write(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>) {
    let rows = to.which.len();
    let mut first = 0;
    while first < rows {
        let count = (rows - first).min(4);
        // SAFETY: as for this function; rows `first..first + count` exist.
        unsafe {
            match count {
                1 => strip::<1>(product, dst, to, first),
                2 => strip::<2>(product, dst, to, first),
                3 => strip::<3>(product, dst, to, first),
                _ => strip::<4>(product, dst, to, first),
            }
        }
        first += count;
    }
}

/// `R` rows from `first` on, along the blocks. The last vectors overlap the previous ones and write the same bytes twice.
///
/// # Safety
/// As for [`write()`], and the rows exist.
#[target_feature(enable = "avx2")]
unsafe fn strip<const R: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, first: usize) {
    let len = product.len;
    // SAFETY: the halves of every vector lie inside the blocks: `low + 16` and `high + 16` are at most `len`.
    unsafe {
        if len < 32 {
            return step::<R, 1>(product, dst, to, first, [(0, len - 16)]);
        }
        let mut offset = 0;
        while len - offset >= 64 {
            let (a, b) = (offset, offset + 32);
            step::<R, 2>(product, dst, to, first, [(a, a + 16), (b, b + 16)]);
            offset += 64;
        }
        while offset < len {
            let at = offset.min(len - 32);
            step::<R, 1>(product, dst, to, first, [(at, at + 16)]);
            offset += 32;
        }
    }
}

/// `R` rows at `V` positions, each given by the offsets of a vector's two halves.
///
/// # Safety
/// As for [`write()`], and the rows and 16 bytes at each offset exist.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step<const R: usize, const V: usize>(
    product: &Product<'_>,
    dst: &mut [u8],
    to: Blocks<'_>,
    first: usize,
    places: [(usize, usize); V],
) {
    // SAFETY: the caller's; a table of NIBBLES has 16 bytes.
    unsafe {
        let mut sums = [[_mm256_setzero_si256(); V]; R];
        if let Some(start) = product.start {
            for (row, sums) in sums.iter_mut().enumerate() {
                *sums = load(product.src.as_ptr().add(start.at(first + row)), places);
            }
        }
        let nibbles: &[[[u8; 16]; 2]] = &NIBBLES;
        let nibble = _mm256_set1_epi8(15);
        for source in 0..product.from.which.len() {
            let x: [__m256i; V] = load(product.src.as_ptr().add(product.from.at(source)), places);
            let low = x.map(|x| _mm256_and_si256(x, nibble));
            let high = x.map(|x| _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble));
            let c = product.from.which[source] as usize * product.coefficient_stride + first;
            for (row, sums) in sums.iter_mut().enumerate() {
                let tables = &nibbles[*product.coefficients.get_unchecked(c + row) as usize];
                let low_table = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast()));
                let high_table = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast()));
                for v in 0..V {
                    let a = _mm256_shuffle_epi8(low_table, low[v]);
                    let b = _mm256_shuffle_epi8(high_table, high[v]);
                    sums[v] = _mm256_xor_si256(sums[v], _mm256_xor_si256(a, b));
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let block = dst.as_mut_ptr().add(to.at(first + row));
            for (sum, (low, high)) in sums.iter().zip(places) {
                _mm_storeu_si128(block.add(low).cast(), _mm256_castsi256_si128(*sum));
                _mm_storeu_si128(block.add(high).cast(), _mm256_extracti128_si256::<1>(*sum));
            }
        }
    }
}

/// # Safety
/// 16 bytes from each offset of `block` exist.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const V: usize>(block: *const u8, places: [(usize, usize); V]) -> [__m256i; V] {
    // SAFETY: the caller's.
    places.map(|(low, high)| unsafe {
        _mm256_set_m128i(_mm_loadu_si128(block.add(high).cast()), _mm_loadu_si128(block.add(low).cast()))
    })
}
