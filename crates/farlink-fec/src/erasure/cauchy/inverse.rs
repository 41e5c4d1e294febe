//! The inverse of a Cauchy matrix, in closed form.
//!
//! With `C[i][l] = 1 / (x_i + y_l)`, X and Y the polynomials whose zeros are the x and the y, and a prime for the product
//! without the factor that is zero,
//!
//! `C^-1[l][i] = u_l w_i / (x_i + y_l)`, `u_l = X(y_l) / Y'(y_l)`, `w_i = Y(x_i) / X'(x_i)`
//!
//! (Knuth, The Art of Computer Programming 1, section 1.2.3, exercise 41). The number of steps is proportional to the square of
//! the size, compared with the cube for elimination.

use crate::erasure::kernel::{FIELD, Level};
#[cfg(any(target_arch = "x86_64", test))]
use crate::simd::Simd;

/// Writes element (l, i) of the inverse to `inverse[i * stride + l]`.
///
/// # Panics
/// If x and y differ in length or share an element, `stride` is shorter, or `inverse` is too short.
pub(super) fn invert(level: Level, x: &[u8], y: &[u8], inverse: &mut [u8], stride: usize) {
    assert!(x.len() == y.len() && y.len() <= stride, "the matrix is square and fits the stride");
    assert!(inverse.len() >= x.len() * stride, "the inverse has room");
    #[cfg(target_arch = "x86_64")]
    if level.simd() == Simd::Avx512Gfni && x.len() <= 64 {
        // SAFETY: the machine has this level; at most 64 elements; the inverse has room for rows of that many.
        return unsafe { x86::invert(x, y, inverse, stride) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    by_logarithms(x, y, inverse, stride);
}

fn by_logarithms(x: &[u8], y: &[u8], inverse: &mut [u8], stride: usize) {
    let log = |a: u8| u32::from(FIELD.log(a).expect("x and y are different elements"));
    // Logarithm of the product of the differences to all of `others` except itself.
    let product = |a: u8, others: &[u8]| others.iter().filter(|&&b| b != a).map(|&b| log(a ^ b)).sum::<u32>() % 255;
    let mut u = [0; 256];
    for (u, &y_l) in u.iter_mut().zip(y) {
        *u = product(y_l, x) + 255 - product(y_l, y);
    }
    for (i, &x_i) in x.iter().enumerate() {
        let w = product(x_i, y) + 255 - product(x_i, x);
        for (l, &y_l) in y.iter().enumerate() {
            inverse[i * stride + l] = FIELD.exp((u[l] + w + 255 - log(x_i ^ y_l)) as usize);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// All elements of a row at once.
    ///
    /// # Safety
    /// The machine has AVX-512 F and BW and GFNI; x and y have one length, at most 64; `inverse` has as many rows of
    /// `stride`, which is no less.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) unsafe fn invert(x: &[u8], y: &[u8], inverse: &mut [u8], stride: usize) {
        if x.is_empty() {
            return;
        }
        let mask = u64::MAX >> (64 - x.len());
        let one = _mm512_set1_epi8(1);
        // SAFETY: the mask keeps loads inside x and y.
        let (xs, ys) = unsafe {
            (_mm512_maskz_loadu_epi8(mask, x.as_ptr().cast()), _mm512_maskz_loadu_epi8(mask, y.as_ptr().cast()))
        };
        let times = |product, a, b| _mm512_gf2p8mul_epi8(product, _mm512_xor_si512(a, b));
        let times_but_zero = |product, a, b| {
            let difference = _mm512_xor_si512(a, b);
            let is_itself = _mm512_testn_epi8_mask(difference, difference);
            _mm512_mask_gf2p8mul_epi8(product, !is_itself, product, difference)
        };
        // X(y_l), Y'(y_l), Y(x_i), X'(x_i): four chains side by side.
        let (mut x_of_y, mut y_of_y, mut y_of_x, mut x_of_x) = (one, one, one, one);
        for (&x_k, &y_k) in x.iter().zip(y) {
            let (x_k, y_k) = (_mm512_set1_epi8(x_k as i8), _mm512_set1_epi8(y_k as i8));
            x_of_y = times(x_of_y, ys, x_k);
            y_of_y = times_but_zero(y_of_y, ys, y_k);
            y_of_x = times(y_of_x, xs, y_k);
            x_of_x = times_but_zero(x_of_x, xs, x_k);
        }
        let u = _mm512_gf2p8mul_epi8(x_of_y, reciprocal(y_of_y));
        let mut w = [0u8; 64];
        let w_all = _mm512_gf2p8mul_epi8(y_of_x, reciprocal(x_of_x));
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_epi8(w.as_mut_ptr().cast(), w_all) };
        for (i, (&x_i, &w_i)) in x.iter().zip(&w).enumerate() {
            let uw = _mm512_gf2p8mul_epi8(u, _mm512_set1_epi8(w_i as i8));
            let row = _mm512_gf2p8mul_epi8(uw, reciprocal(_mm512_xor_si512(ys, _mm512_set1_epi8(x_i as i8))));
            // SAFETY: the mask keeps the store inside row i.
            unsafe { _mm512_mask_storeu_epi8(inverse.as_mut_ptr().add(i * stride).cast(), mask, row) };
        }
    }

    /// 1/a of each byte, and 0 of 0.
    #[inline]
    #[target_feature(enable = "avx512f,gfni")]
    fn reciprocal(a: __m512i) -> __m512i {
        _mm512_gf2p8affineinv_epi64_epi8::<0>(a, _mm512_set1_epi64(0x0102_0408_1020_4080))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn matrix_times_inverse_is_the_identity(points in Just((0..=255u8).collect::<Vec<_>>()).prop_shuffle(), size in 0..=128usize) {
            let (x, y) = (&points[..size], &points[128..][..size]);
            let stride = size + 3;
            for simd in Simd::available() {
                let mut inverse = vec![0; size * stride];
                invert(Level::new(simd), x, y, &mut inverse, stride);
                for l in 0..size {
                    for (column, y_c) in y.iter().enumerate() {
                        let term = |i: usize| FIELD.multiply(inverse[i * stride + l], FIELD.inverse(x[i] ^ y_c));
                        prop_assert_eq!((0..size).fold(0, |sum, i| sum ^ term(i)), u8::from(l == column), "{:?}", simd);
                    }
                }
            }
        }
    }
}
