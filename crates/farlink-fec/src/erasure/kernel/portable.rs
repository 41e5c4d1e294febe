//! Plain Rust that compilers vectorise for the machine.

use super::{Blocks, Product};

/// Number of rows at a time.
const ROWS: usize = 4;

pub(super) fn write(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>) {
    for offset in (0..product.len).step_by(64) {
        match product.len - offset {
            1..=16 => step::<16>(product, dst, to, offset),
            17..=32 => step::<32>(product, dst, to, offset),
            _ => step::<64>(product, dst, to, offset),
        }
    }
}

/// All rows, `STEP` bytes or the rest.
fn step<const STEP: usize>(product: &Product<'_>, dst: &mut [u8], to: Blocks<'_>, offset: usize) {
    let rows = to.which.len();
    let len = (product.len - offset).min(STEP);
    for first in (0..rows).step_by(ROWS) {
        let count = (rows - first).min(ROWS);
        let mut sums = [[0u8; STEP]; ROWS];
        if let Some(start) = product.start {
            for (row, sum) in sums[..count].iter_mut().enumerate() {
                let at = start.at(first + row) + offset;
                sum[..len].copy_from_slice(&product.src[at..at + len]);
            }
        }
        for source in 0..product.from.which.len() {
            let at = product.from.at(source) + offset;
            let mut x = [0u8; STEP];
            x[..len].copy_from_slice(&product.src[at..at + len]);
            let mut c = [0u8; ROWS];
            for (row, c) in c[..count].iter_mut().enumerate() {
                *c = product.coefficient(first + row, source);
            }
            add(&mut sums, &mut x, c);
        }
        for (row, sum) in sums[..count].iter().enumerate() {
            let at = to.at(first + row) + offset;
            dst[at..at + len].copy_from_slice(&sum[..len]);
        }
    }
}

/// Adds `c[r] x` to row r: for each set bit of the factor, x is added after as many doublings.
#[inline]
fn add<const STEP: usize>(sums: &mut [[u8; STEP]; ROWS], x: &mut [u8; STEP], mut c: [u8; ROWS]) {
    for _ in 0..8 {
        for (sum, c) in sums.iter_mut().zip(&mut c) {
            let mask = (*c & 1).wrapping_neg();
            for (sum, x) in sum.iter_mut().zip(&*x) {
                *sum ^= x & mask;
            }
            *c >>= 1;
        }
        for x in x.iter_mut() {
            *x = (*x << 1) ^ ((*x >> 7).wrapping_neg() & (super::AES & 0xff) as u8);
        }
    }
}
