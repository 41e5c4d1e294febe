//! Product of a matrix and blocks over GF(256): each row is the sum of all source blocks times the coefficients of the row.
//!
//! All rows at a position in the blocks are summed in registers, so that every source byte is read once for several rows and
//! every result is written once. In a loop over `dst += c src`, these memory accesses cost more than the multiplication.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use crate::gf256::{AES, Field};
use crate::simd::Simd;
use std::sync::LazyLock;

/// The field of AES, in which x86 multiplies (GFNI).
pub(super) static FIELD: LazyLock<Field> =
    LazyLock::new(|| Field::new(AES).expect("the polynomial of AES is irreducible"));

/// All numbers, for [`Blocks::which`] to name the first of them.
pub(super) const ALL: [u8; 256] = {
    let mut all = [0; 256];
    let mut at = 0;
    while at < 256 {
        all[at] = at as u8;
        at += 1;
    }
    all
};

/// Eight coefficients are read at a time, so this number of bytes must follow the last coefficient.
pub(super) const PADDING: usize = 8;

/// A level of SIMD that this machine has. It is checked once and not in every call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level(Simd);

impl Level {
    /// # Panics
    /// If this machine lacks the level.
    pub(super) fn new(simd: Simd) -> Level {
        assert!(simd <= Simd::best(), "this machine has no {simd:?}");
        Level(simd)
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn simd(self) -> Simd {
        self.0
    }
}

/// Some blocks of a buffer: block b begins at `first + b * stride`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks<'a> {
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) which: &'a [u8],
}

impl Blocks<'_> {
    #[inline(always)]
    fn at(&self, index: usize) -> usize {
        self.first + self.which[index] as usize * self.stride
    }

    /// End of the first `len` bytes of the last block.
    fn end(&self, len: usize) -> usize {
        if self.which.is_empty() { 0 } else { self.first + self.last() * self.stride + len }
    }

    /// The highest block number.
    fn last(&self) -> usize {
        self.which.iter().fold(0, |last, &number| last.max(number)) as usize
    }
}

/// The inputs of a product of a matrix and blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product<'a> {
    /// Coefficient of row r and source block b at `b * coefficient_stride + r`; [`PADDING`] more bytes follow.
    pub(super) coefficients: &'a [u8],
    pub(super) coefficient_stride: usize,
    pub(super) src: &'a [u8],
    pub(super) from: Blocks<'a>,
    /// Blocks of `src` with which the rows begin, if they do not begin with zero.
    pub(super) start: Option<Blocks<'a>>,
    /// Number of bytes of a block to compute.
    pub(super) len: usize,
}

impl Product<'_> {
    /// Writes one row to each of the blocks `to`.
    ///
    /// # Panics
    /// If a block or a coefficient lies outside its buffer, or there are fewer starts than rows.
    pub(super) fn write(&self, level: Level, dst: &mut [u8], to: Blocks<'_>) {
        let rows = to.which.len();
        assert!(to.end(self.len) <= dst.len(), "the destination holds every row");
        assert!(self.from.end(self.len) <= self.src.len(), "the source holds every block");
        if let Some(start) = self.start {
            assert!(start.which.len() >= rows && start.end(self.len) <= self.src.len(), "each row has its start");
        }
        let last = self.from.which.iter().max().map_or(0, |&last| last as usize);
        assert!(
            last * self.coefficient_stride + rows + PADDING <= self.coefficients.len(),
            "every coefficient is there"
        );
        match level.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has this level; all blocks and coefficients lie inside their buffers.
            Simd::Avx512Gfni => unsafe { avx512::write(self, dst, to) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above, and the blocks are long enough.
            Simd::Avx2 if self.len >= avx2::LEN_MIN => unsafe { avx2::write(self, dst, to) },
            _ => portable::write(self, dst, to),
        }
    }

    #[inline(always)]
    fn coefficient(&self, row: usize, source: usize) -> u8 {
        self.coefficients[self.from.which[source] as usize * self.coefficient_stride + row]
    }
}
