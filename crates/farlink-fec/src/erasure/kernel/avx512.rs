//! AVX-512 with GFNI: `gf2p8mulb` multiplies 64 bytes at once.
//!
//! Two ways to fill a vector: 64 bytes of a row ([`wide`]), or, for short blocks, the same 8 bytes of eight rows
//! ([`lanes`]).

use super::{Blocks, Product};
use std::arch::x86_64::*;

/// Writes all rows.
///
/// # Safety
/// The machine has AVX-512 F, BW, VBMI and GFNI; all blocks and coefficients lie inside their buffers (see
/// [`Product::write`]).
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) unsafe fn write(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>) {
    let rows = to.which.len();
    // Vectors to multiply for each source, plus one to distribute the coefficients.
    let quads = product.len.div_ceil(8);
    let by_lanes = rows.div_ceil(8) * (quads + 1);
    if (8..64).contains(&product.len) && by_lanes < rows {
        let mut first = 0;
        while first < rows {
            // SAFETY: as for this function; the block length is 8 to 63 bytes; row `first` exists.
            first += unsafe {
                if rows - first > 8 {
                    lanes_of::<2>(product, dst, to, first)
                } else {
                    lanes_of::<1>(product, dst, to, first)
                }
            };
        }
        return;
    }
    let mut first = 0;
    while first < rows {
        let count = (rows - first).min(8);
        // SAFETY: as for this function; rows `first..first + count` exist.
        unsafe {
            match count {
                1 => strip::<1>(product, dst, to, first),
                2 => strip::<2>(product, dst, to, first),
                3 => strip::<3>(product, dst, to, first),
                4 => strip::<4>(product, dst, to, first),
                5 => strip::<5>(product, dst, to, first),
                6 => strip::<6>(product, dst, to, first),
                7 => strip::<7>(product, dst, to, first),
                _ => strip::<8>(product, dst, to, first),
            }
        }
        first += count;
    }
}

/// `R` rows from `first` on, along the blocks. The last vector overlaps the previous ones and writes the same bytes twice.
///
/// # Safety
/// As for [`write()`], and the rows exist.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn strip<const R: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, first: usize) {
    let len = product.len;
    // SAFETY: every vector lies inside the blocks, or a mask says how much of it does.
    unsafe {
        if len < 64 {
            return wide::<R, 1, true>(product, dst, to, first, [0], (1 << len) - 1);
        }
        let mut offset = 0;
        while len - offset > 64 {
            let at = offset.min(len - 128.min(len));
            wide::<R, 2, false>(product, dst, to, first, [at, (at + 64).min(len - 64)], 0);
            offset += 128;
            if offset >= len {
                return;
            }
        }
        wide::<R, 1, false>(product, dst, to, first, [len - 64], 0);
    }
}

/// `R` rows, `V` vectors of 64 bytes of each, at these offsets; with `MASKED`, only the bytes under the mask exist.
///
/// # Safety
/// As for [`write()`], and the rows and bytes exist.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn wide<const R: usize, const V: usize, const MASKED: bool>(
    product: &Product<'_>,
    dst: &mut [u8],
    to: Blocks<'_>,
    first: usize,
    offsets: [usize; V],
    mask: u64,
) {
    let src = product.src.as_ptr();
    let load = |block: usize| {
        // SAFETY: the caller's.
        offsets.map(|offset| unsafe {
            let at = src.add(block + offset).cast();
            if MASKED { _mm512_maskz_loadu_epi8(mask, at) } else { _mm512_loadu_epi8(at) }
        })
    };
    // SAFETY: the caller's; a coefficient of an existing row and source lies inside.
    unsafe {
        let factor = |c: *const u8, row: usize| _mm512_set1_epi8(*c.add(row) as i8);
        let mut sums = [[_mm512_setzero_si512(); V]; R];
        if let Some(start) = product.start {
            for (row, sums) in sums.iter_mut().enumerate() {
                *sums = load(start.at(first + row));
            }
        }
        let coefficients =
            |source: u8| product.coefficients.as_ptr().add(source as usize * product.coefficient_stride + first);
        let block = |source: u8| product.from.first + source as usize * product.from.stride;
        let mut pairs = product.from.which.chunks_exact(2);
        for pair in &mut pairs {
            let (x, y) = (load(block(pair[0])), load(block(pair[1])));
            let (c, d) = (coefficients(pair[0]), coefficients(pair[1]));
            for (row, sums) in sums.iter_mut().enumerate() {
                let (c, d) = (factor(c, row), factor(d, row));
                for v in 0..V {
                    sums[v] = add3(sums[v], _mm512_gf2p8mul_epi8(x[v], c), _mm512_gf2p8mul_epi8(y[v], d));
                }
            }
        }
        for &source in pairs.remainder() {
            let (x, c) = (load(block(source)), coefficients(source));
            for (row, sums) in sums.iter_mut().enumerate() {
                let c = factor(c, row);
                for v in 0..V {
                    sums[v] = _mm512_xor_si512(sums[v], _mm512_gf2p8mul_epi8(x[v], c));
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let block = dst.as_mut_ptr().add(to.at(first + row));
            for (sum, offset) in sums.iter().zip(offsets) {
                let at = block.add(offset).cast();
                if MASKED { _mm512_mask_storeu_epi8(at, mask, *sum) } else { _mm512_storeu_epi8(at, *sum) }
            }
        }
    }
}

/// Up to `8 G` rows from `first` on; returns their number.
///
/// # Safety
/// As for [`lanes`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn lanes_of<const G: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, first: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match product.len.div_ceil(8) {
            1 => lanes::<G, 1>(product, dst, to, first),
            2 => lanes::<G, 2>(product, dst, to, first),
            3 => lanes::<G, 3>(product, dst, to, first),
            4 => lanes::<G, 4>(product, dst, to, first),
            5 => lanes::<G, 5>(product, dst, to, first),
            6 => lanes::<G, 6>(product, dst, to, first),
            7 => lanes::<G, 7>(product, dst, to, first),
            _ => lanes::<G, 8>(product, dst, to, first),
        }
    }
    8 * G
}

/// Up to `8 G` rows from `first` on, of blocks of `8 Q - 7` to `8 Q` bytes: a vector holds 8 bytes of each of eight rows.
/// The last 8 bytes overlap the previous ones and are written twice with the same values.
///
/// # Safety
/// As for [`write()`]; blocks have 8 bytes at least and more than `8 G - 8` rows exist from `first` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn lanes<const G: usize, const Q: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, first: usize) {
    let rows = to.which.len() - first;
    let offset = |q: usize| if q + 1 == Q { product.len - 8 } else { 8 * q };
    let src = product.src.as_ptr();
    let of_group = |group: usize| (rows - 8 * group).min(8);
    let spread = _mm512_set_epi64(
        0x0707070707070707,
        0x0606060606060606,
        0x0505050505050505,
        0x0404040404040404,
        0x0303030303030303,
        0x0202020202020202,
        0x0101010101010101,
        0,
    );
    // SAFETY: the caller's; eight coefficients can be read at any row because of the padding.
    unsafe {
        let mut sums = [[_mm512_setzero_si512(); G]; Q];
        if let Some(start) = product.start {
            for group in 0..G {
                let mut quads = [[0i64; 8]; Q];
                for row in 0..of_group(group) {
                    let block = src.add(start.at(first + 8 * group + row));
                    for (q, quads) in quads.iter_mut().enumerate() {
                        quads[row] = block.add(offset(q)).cast::<i64>().read_unaligned();
                    }
                }
                for (sums, quads) in sums.iter_mut().zip(&quads) {
                    sums[group] = _mm512_loadu_epi64(quads.as_ptr());
                }
            }
        }
        // Each of a row's coefficients, repeated eight times.
        let factors = |source: u8| -> [__m512i; G] {
            let at = product.coefficients.as_ptr().add(source as usize * product.coefficient_stride + first);
            std::array::from_fn(|group| {
                let eight = at.add(8 * group).cast::<i64>().read_unaligned();
                _mm512_permutexvar_epi8(spread, _mm512_set1_epi64(eight))
            })
        };
        let block = |source: u8| src.add(product.from.first + source as usize * product.from.stride);
        let load = |block: *const u8, q: usize| _mm512_set1_epi64(block.add(offset(q)).cast::<i64>().read_unaligned());
        let mut pairs = product.from.which.chunks_exact(2);
        for pair in &mut pairs {
            let (c, d) = (factors(pair[0]), factors(pair[1]));
            let (a, b) = (block(pair[0]), block(pair[1]));
            for (q, sums) in sums.iter_mut().enumerate() {
                let (x, y) = (load(a, q), load(b, q));
                for (group, sum) in sums.iter_mut().enumerate() {
                    let (cx, dy) = (_mm512_gf2p8mul_epi8(x, c[group]), _mm512_gf2p8mul_epi8(y, d[group]));
                    *sum = add3(*sum, cx, dy);
                }
            }
        }
        for &source in pairs.remainder() {
            let c = factors(source);
            for (q, sums) in sums.iter_mut().enumerate() {
                let x = load(block(source), q);
                for (sum, &c) in sums.iter_mut().zip(&c) {
                    *sum = _mm512_xor_si512(*sum, _mm512_gf2p8mul_epi8(x, c));
                }
            }
        }
        for group in 0..G {
            let mut quads = [[0i64; 8]; Q];
            for (quads, sums) in quads.iter_mut().zip(&sums) {
                _mm512_storeu_epi64(quads.as_mut_ptr(), sums[group]);
            }
            for row in 0..of_group(group) {
                let block = dst.as_mut_ptr().add(to.at(first + 8 * group + row));
                for (q, quads) in quads.iter().enumerate() {
                    block.add(offset(q)).cast::<i64>().write_unaligned(quads[row]);
                }
            }
        }
    }
}

/// a + b + c.
#[inline]
#[target_feature(enable = "avx512f")]
fn add3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(a, b, c)
}
