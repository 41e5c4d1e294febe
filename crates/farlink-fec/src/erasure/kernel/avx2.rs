//! AVX2: products of nibbles looked up with `pshufb`.

use super::{Blocks, FIELD, Product};
use crate::gf256::Linear;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// Shorter blocks do not fill half a vector.
pub(super) const LEN_MIN: usize = 16;

/// Products of each factor with all low nibbles, and with all high nibbles.
static NIBBLES: LazyLock<Box<[[[u8; 16]; 2]]>> =
    LazyLock::new(|| (0..=255).map(|c| Linear::multiplication(&FIELD, c).nibble_tables()).collect());

/// From this number of bytes on, the tables of a strip's coefficients are worth a copy next to each other.
const PACKED_LEN_MIN: usize = 256;

/// Rows of a strip: with more, the sums would not fit into the registers.
const ROWS_MAX: usize = 4;

/// Writes all rows.
///
/// # Safety
/// The machine has AVX2; all blocks and coefficients lie inside their buffers (see [`Product::write`]); blocks have at
/// least [`LEN_MIN`] bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn write(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>) {
    let rows = to.which.len();
    let is_long = product.len >= PACKED_LEN_MIN;
    let mut first = 0;
    while first < rows {
        let count = (rows - first).min(ROWS_MAX);
        // SAFETY: as for this function; rows `first..first + count` exist.
        unsafe {
            match count {
                1 if is_long => packed::<1>(product, dst, to, first),
                2 if is_long => packed::<2>(product, dst, to, first),
                3 if is_long => packed::<3>(product, dst, to, first),
                _ if is_long => packed::<ROWS_MAX>(product, dst, to, first),
                1 => strip::<1>(product, dst, to, first),
                2 => strip::<2>(product, dst, to, first),
                3 => strip::<3>(product, dst, to, first),
                _ => strip::<ROWS_MAX>(product, dst, to, first),
            }
        }
        first += count;
    }
}

/// `R` rows from `first` on, along long blocks. The last vectors overlap the previous ones and write the same bytes twice.
///
/// The tables of the strip's coefficients and the places of its sources are first copied in the order of their use: looking
/// them up anew at each position takes as many instructions as the products.
///
/// # Safety
/// As for [`write()`]; the rows exist; blocks have at least 64 bytes.
#[target_feature(enable = "avx2")]
unsafe fn packed<const R: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, first: usize) {
    let (len, count) = (product.len, product.from.which.len());
    let nibbles: &[[[u8; 16]; 2]] = &NIBBLES;
    let mut tables = [const { MaybeUninit::<__m256i>::uninit() }; ROWS_MAX * 256];
    let mut places = [0; 256];
    for (source, place) in places[..count].iter_mut().enumerate() {
        *place = product.from.at(source);
        let c = product.from.which[source] as usize * product.coefficient_stride + first;
        for row in 0..R {
            let pair = &nibbles[product.coefficients[c + row] as usize];
            // SAFETY: a pair of tables has 32 bytes.
            tables[source * R + row].write(unsafe { _mm256_loadu_si256(pair.as_ptr().cast()) });
        }
    }
    let (places, tables) = (&places[..count], tables.as_ptr().cast());
    let mut offset = 0;
    while offset < len {
        // SAFETY: the caller's; 64 or 32 bytes from the offset lie inside each block; every table is written.
        unsafe {
            if len - offset > 32 {
                packed_step::<R, 2>(product, dst, to, first, offset.min(len - 64), places, tables);
            } else {
                packed_step::<R, 1>(product, dst, to, first, len - 32, places, tables);
            }
        }
        offset += 64;
    }
}

/// The lower and the upper nibbles of bytes, each as a byte.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles_of<const V: usize>(bytes: [__m256i; V]) -> ([__m256i; V], [__m256i; V]) {
    let nibble = _mm256_set1_epi8(15);
    let high = bytes.map(|x| _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble));
    (bytes.map(|x| _mm256_and_si256(x, nibble)), high)
}

/// Adds the products of bytes, given by their nibbles, with the coefficient of two tables.
#[inline]
#[target_feature(enable = "avx2")]
fn add_products<const V: usize>(
    sums: &mut [__m256i; V],
    low: [__m256i; V],
    low_table: __m256i,
    high: [__m256i; V],
    high_table: __m256i,
) {
    for v in 0..V {
        let (a, b) = (_mm256_shuffle_epi8(low_table, low[v]), _mm256_shuffle_epi8(high_table, high[v]));
        sums[v] = _mm256_xor_si256(sums[v], _mm256_xor_si256(a, b));
    }
}

/// `R` rows, `V` vectors at an offset of each, from the sources at `places` and the pairs of tables in their order.
///
/// # Safety
/// As for [`write()`]; the rows, `32 V` bytes from the offset of each block, and `R` pairs of tables for each place exist.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn packed_step<const R: usize, const V: usize>(
    product: &Product<'_>,
    dst: &mut [u8],
    to: Blocks<'_>,
    first: usize,
    offset: usize,
    places: &[usize],
    mut tables: *const __m128i,
) {
    // SAFETY: the caller's.
    unsafe {
        let src = product.src.as_ptr().add(offset);
        let load = |block: usize| -> [__m256i; V] {
            std::array::from_fn(|v| _mm256_loadu_si256(src.add(block + 32 * v).cast()))
        };
        let mut sums = [[_mm256_setzero_si256(); V]; R];
        if let Some(start) = product.start {
            for (row, sums) in sums.iter_mut().enumerate() {
                *sums = load(start.at(first + row));
            }
        }
        for &place in places {
            let x = load(place);
            let (low, high) = nibbles_of(x);
            for sums in &mut sums {
                let low_table = _mm256_broadcastsi128_si256(*tables);
                let high_table = _mm256_broadcastsi128_si256(*tables.add(1));
                tables = tables.add(2);
                add_products(sums, low, low_table, high, high_table);
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let block = dst.as_mut_ptr().add(to.at(first + row) + offset);
            for (v, &sum) in sums.iter().enumerate() {
                _mm256_storeu_si256(block.add(32 * v).cast(), sum);
            }
        }
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
        for source in 0..product.from.which.len() {
            let x: [__m256i; V] = load(product.src.as_ptr().add(product.from.at(source)), places);
            let (low, high) = nibbles_of(x);
            let c = product.from.which[source] as usize * product.coefficient_stride + first;
            for (row, sums) in sums.iter_mut().enumerate() {
                let tables = &nibbles[*product.coefficients.get_unchecked(c + row) as usize];
                let low_table = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[0].as_ptr().cast()));
                let high_table = _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[1].as_ptr().cast()));
                add_products(sums, low, low_table, high, high_table);
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
