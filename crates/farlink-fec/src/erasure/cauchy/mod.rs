//! A systematic MDS code over GF(256) for groups of at most 256 blocks, from a Cauchy matrix.

mod inverse;
#[cfg(test)]
mod tests;

use super::MdsError;
use super::kernel::{ALL, Blocks, FIELD, Level, PADDING, Product};
use crate::simd::Simd;
use inverse::invert;

/// Bytes of a block that are decoded at once, so that the partial results stay in the cache.
const STRETCH: usize = 2048;

/// A packet erasure code: k data blocks and m parity blocks, any k of which are enough to recover the data.
///
/// Byte by byte, parity block i is the sum of all data blocks j, each divided by `x_i + y_j`, with `x_i = 255 - i` and
/// `y_j = j`, over GF(256) with the polynomial x^8 + x^4 + x^3 + x + 1. Every square part of such a matrix (of Cauchy) can
/// be inverted, which makes the code maximum distance separable: no code corrects more losses with m parity blocks. A parity
/// block depends neither on m nor, if missing data blocks are taken as zero, on k, so that more parity can be sent later.
///
/// Sources: Blömer, Kalfane, Karp, Karpinski, Luby, Zuckerman, An XOR-based erasure-resilient coding scheme, ICSI
/// TR-95-048 (1995), for the matrix; Rizzo, Effective erasure codes for reliable computer communication protocols, ACM CCR
/// 27(2) (1997), for its use on packets.
///
/// # Examples
/// ```
/// use farlink_fec::erasure::{Cauchy, Workspace};
///
/// let code = Cauchy::new(3, 2)?;
/// let mut blocks = b"three blocks".to_vec(); // of 4 bytes
/// blocks.resize(5 * 4, 0); // and room for parity
/// let sent = blocks[..12].to_vec();
/// let (data, parity) = blocks.split_at_mut(12);
/// code.encode(data, 4, parity)?;
///
/// blocks[..8].fill(0); // the first two blocks are lost
/// code.decode(&mut blocks, 4, &[true, true, false, false, false], &mut Workspace::default())?;
/// assert_eq!(blocks[..12], sent);
/// # Ok::<(), farlink_fec::erasure::MdsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cauchy {
    k: usize,
    m: usize,
    level: Level,
    /// Coefficient of parity block i and data block j at `j * m + i`, then padding.
    coefficients: Vec<u8>,
}

/// Work memory of a decoder. It grows to the size that the largest group needs and can be used for every code.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// The x values of the parity blocks that are used.
    x: Vec<u8>,
    /// Coefficients of those parity blocks, if they are not adjacent.
    coefficients: Vec<u8>,
    inverse: Vec<u8>,
    /// The contribution of the lost blocks to each of those parity blocks.
    partial: Vec<u8>,
}

impl Cauchy {
    /// Largest number of blocks in a group, data and parity.
    pub const BLOCKS_MAX: usize = 256;

    /// The code of k data and m parity blocks, with the fastest instructions of this machine.
    ///
    /// # Errors
    /// If k or m is zero or k + m exceeds [`BLOCKS_MAX`](Cauchy::BLOCKS_MAX).
    pub fn new(k: usize, m: usize) -> Result<Cauchy, MdsError> {
        Cauchy::with_simd(k, m, Simd::best())
    }

    /// The same code with slower instructions, for comparisons.
    ///
    /// # Errors
    /// As for [`new`](Cauchy::new).
    ///
    /// # Panics
    /// If this machine lacks the level.
    pub fn with_simd(k: usize, m: usize, simd: Simd) -> Result<Cauchy, MdsError> {
        let level = Level::new(simd);
        if k == 0 || m == 0 {
            return Err(MdsError::Empty { k, m });
        }
        if k.saturating_add(m) > Cauchy::BLOCKS_MAX {
            return Err(MdsError::TooManyBlocks { k, m, max: Cauchy::BLOCKS_MAX });
        }
        let mut coefficients = Vec::with_capacity(k * m + PADDING);
        for j in 0..k {
            coefficients.extend((0..m).map(|i| FIELD.inverse(x(i) ^ j as u8)));
        }
        coefficients.resize(k * m + PADDING, 0);
        Ok(Cauchy { k, m, level, coefficients })
    }

    /// Number of data blocks in a group.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of parity blocks in a group.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Writes the parity blocks.
    ///
    /// `data` holds k blocks after each other, `parity` has room for m.
    ///
    /// # Errors
    /// If a length does not fit.
    pub fn encode(&self, data: &[u8], block_bytes: usize, parity: &mut [u8]) -> Result<(), MdsError> {
        MdsError::check_length("data", data.len(), self.k, block_bytes)?;
        MdsError::check_length("parity", parity.len(), self.m, block_bytes)?;
        let blocks = |count: usize| Blocks { first: 0, stride: block_bytes, which: &ALL[..count] };
        let product = Product {
            coefficients: &self.coefficients,
            coefficient_stride: self.m,
            src: data,
            from: blocks(self.k),
            start: None,
            len: block_bytes,
        };
        product.write(self.level, parity, blocks(self.m));
        Ok(())
    }

    /// Recovers the lost data blocks in place.
    ///
    /// `blocks` has the k data blocks, followed by the m parity blocks. `lost` says which of them did not arrive; the content of
    /// these does not matter. Parity blocks are not changed.
    ///
    /// # Errors
    /// If more than m blocks are lost or a length does not fit; the blocks are then unchanged.
    pub fn decode(
        &self,
        blocks: &mut [u8],
        block_bytes: usize,
        lost: &[bool],
        workspace: &mut Workspace,
    ) -> Result<(), MdsError> {
        let (k, m) = (self.k, self.m);
        MdsError::check_length("blocks", blocks.len(), k + m, block_bytes)?;
        MdsError::check_lost(lost, k, m)?;
        let (lost_data, lost_parity) = lost.split_at(k);
        let (known, lost) = Numbers::sort(lost_data);
        let (known, lost) = (known.get(), lost.get());
        let count = lost.len();
        if count == 0 {
            return Ok(());
        }
        let (arrived, _) = Numbers::sort(lost_parity);
        let parity = choose(arrived.get(), count);
        let Workspace { x: xs, coefficients, inverse, partial } = workspace;

        // Rows of coefficients that are not adjacent are copied next to each other.
        let first = parity[0] as usize;
        let (coefficients, coefficient_stride) = if parity[count - 1] as usize - first + 1 == count {
            (&self.coefficients[first..], m)
        } else {
            coefficients.clear();
            for j in 0..k {
                coefficients.extend(parity.iter().map(|&i| self.coefficients[j * m + i as usize]));
            }
            coefficients.resize(k * count + PADDING, 0);
            (&coefficients[..], count)
        };
        xs.clear();
        xs.extend(parity.iter().map(|&i| x(i as usize)));
        grow(inverse, count * count + PADDING);
        invert(self.level, xs, lost, inverse, count);

        let stretch = block_bytes.min(STRETCH);
        grow(partial, count * stretch);
        for offset in (0..block_bytes).step_by(stretch) {
            let len = (block_bytes - offset).min(stretch);
            let of_lost = Product {
                coefficients,
                coefficient_stride,
                src: blocks,
                from: Blocks { first: offset, stride: block_bytes, which: known },
                start: Some(Blocks { first: offset + k * block_bytes, stride: block_bytes, which: parity }),
                len,
            };
            let partials = Blocks { first: 0, stride: stretch, which: &ALL[..count] };
            of_lost.write(self.level, partial, partials);
            let recovered = Product {
                coefficients: inverse,
                coefficient_stride: count,
                src: partial,
                from: partials,
                start: None,
                len,
            };
            recovered.write(self.level, blocks, Blocks { first: offset, stride: block_bytes, which: lost });
        }
        Ok(())
    }
}

/// Numbers of blocks, ascending.
struct Numbers {
    numbers: [u8; 256],
    count: usize,
}

impl Numbers {
    /// Numbers of the blocks that arrived, and of the lost ones. There is no branch, because it could not be predicted.
    fn sort(lost: &[bool]) -> (Numbers, Numbers) {
        let none = || Numbers { numbers: [0; 256], count: 0 };
        let (mut arrived, mut missing) = (none(), none());
        for (number, &is_lost) in lost.iter().enumerate().take(256) {
            // The number written to the wrong list is overwritten by the next one.
            arrived.numbers[arrived.count & 255] = number as u8;
            missing.numbers[missing.count & 255] = number as u8;
            arrived.count += usize::from(!is_lost);
            missing.count += usize::from(is_lost);
        }
        (arrived, missing)
    }

    fn get(&self) -> &[u8] {
        &self.numbers[..self.count]
    }
}

/// `count` of the parity blocks: the first adjacent ones, if there are that many.
fn choose(arrived: &[u8], count: usize) -> &[u8] {
    let adjacent = arrived.windows(count).find(|run| (run[count - 1] - run[0]) as usize + 1 == count);
    adjacent.unwrap_or(&arrived[..count])
}

/// The x value of parity block i; the y value of a data block is its number.
fn x(i: usize) -> u8 {
    255 - i as u8
}

fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}
