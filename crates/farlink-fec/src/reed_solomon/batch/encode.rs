//! Encodes by filling erasures: the parity makes all syndromes of the word zero.
//!
//! The syndromes of the data are cheap to compute ([`syndromes`](super::syndromes)). The parity is their product with a fixed
//! matrix, the inverse of the one that maps the parity symbols to their syndromes.

use super::lanes::{Lanes, transpose};
use super::syndromes::Syndromes;
use crate::gf256::Linear;
use crate::reed_solomon::Code;

/// The encoder at one level of SIMD.
#[derive(Clone)]
pub(super) struct Encoder<L: Lanes> {
    n: usize,
    k: usize,
    syndromes: Syndromes<L>,
    /// The matrix, with a row per parity symbol; its entries are maps to the basis of the symbols as sent.
    matrix: Vec<L::Map>,
    columns: Box<[L; 256]>,
    computed: Vec<L>,
}

impl<L: Lanes> Encoder<L> {
    /// # Safety
    /// The machine has the level of `L`.
    pub(super) unsafe fn new(code: &Code) -> Self {
        let output = code.basis.map_or(Linear::identity(), |(_, to_dual)| to_dual);
        // SAFETY: the caller's.
        unsafe {
            let entry = |&c: &u8| L::map(&Linear::multiplication(&code.field, c).then(&output));
            Encoder {
                n: code.n,
                k: code.k,
                syndromes: Syndromes::new(code, code.k, &Linear::identity()),
                matrix: parity_of_syndromes(code).iter().flatten().map(entry).collect(),
                columns: Box::new([L::splat(0); 256]),
                computed: vec![L::splat(0); code.parity_symbols()],
            }
        }
    }

    /// # Safety
    /// The machine has the level of `L`; the words are whole.
    #[inline(always)]
    pub(super) unsafe fn encode(&mut self, words: &mut [u8]) {
        let (n, k) = (self.n, self.k);
        let nothing = [0u8; 255];
        let count = words.len() / n;
        // SAFETY: the caller's; a lane without a word has k zeros to read.
        unsafe {
            for first in (0..count).step_by(L::COUNT) {
                let lanes = L::COUNT.min(count - first);
                let mut pointers = [nothing.as_ptr(); 64];
                for (lane, pointer) in pointers[..lanes].iter_mut().enumerate() {
                    *pointer = words.as_ptr().add((first + lane) * n);
                }
                self.syndromes.compute(&pointers[..L::COUNT], &mut self.columns, &mut self.computed);
                self.multiply_by_matrix();
                let group = &mut words[first * n..(first + lanes) * n];
                for at in (0..n - k).step_by(16) {
                    self.store_parity(at, group);
                }
            }
        }
    }

    /// The parity symbols of all lanes into the columns.
    ///
    /// # Safety
    /// The machine has the level of `L`.
    #[inline(always)]
    unsafe fn multiply_by_matrix(&mut self) {
        let parity = self.computed.len();
        // SAFETY: the caller's.
        unsafe {
            for (column, row) in self.columns.iter_mut().zip(self.matrix.chunks_exact(parity)) {
                let mut sum = L::splat(0);
                for (&syndrome, &entry) in self.computed.iter().zip(row) {
                    sum = sum.xor(syndrome.apply(entry));
                }
                *column = sum;
            }
        }
    }

    /// Up to 16 parity symbols, from number `at`, into each word.
    ///
    /// # Safety
    /// The machine has the level of `L`.
    #[inline(always)]
    unsafe fn store_parity(&self, at: usize, words: &mut [u8]) {
        let symbols = (self.n - self.k - at).min(16);
        let mut rows = [self.columns[0]; 16];
        rows[..symbols].copy_from_slice(&self.columns[at..at + symbols]);
        let mut bytes = [0u8; 16 * 64];
        // SAFETY: the caller's; row i ends at (i + 1) * COUNT <= 1024.
        unsafe {
            for (i, row) in transpose(rows).into_iter().enumerate() {
                row.store(bytes.as_mut_ptr().add(i * L::COUNT));
            }
        }
        for (lane, word) in words.chunks_exact_mut(self.n).enumerate() {
            let from = &bytes[lane % 16 * L::COUNT + lane / 16 * 16..][..16];
            let to = &mut word[self.k + at..];
            if let Some(to) = to.first_chunk_mut::<16>() {
                to.copy_from_slice(from);
            } else {
                to.copy_from_slice(&from[..symbols]);
            }
        }
    }
}

/// The matrix that maps the syndromes of the data to the parity, by Gauss-Jordan elimination.
fn parity_of_syndromes(code: &Code) -> Vec<Vec<u8>> {
    let field = &code.field;
    let r = code.parity_symbols();
    let first = code.parameters.first_root as usize;
    // Syndrome j of parity symbol m alone, next to the unit matrix.
    let mut rows: Vec<Vec<u8>> = (0..r)
        .map(|j| {
            let vandermonde = (0..r).map(|m| code.power((r - 1 - m) * (first + j)));
            vandermonde.chain((0..r).map(|i| u8::from(i == j))).collect()
        })
        .collect();
    for at in 0..r {
        let pivot =
            (at..r).find(|&row| rows[row][at] != 0).expect("a Vandermonde matrix of different roots is regular");
        rows.swap(at, pivot);
        let scale = field.inverse(rows[at][at]);
        let scaled: Vec<u8> = rows[at].iter().map(|&entry| field.multiply(scale, entry)).collect();
        for (other, row) in rows.iter_mut().enumerate() {
            let factor = row[at];
            if other == at {
                row.copy_from_slice(&scaled);
            } else if factor != 0 {
                row.iter_mut().zip(&scaled).for_each(|(entry, &pivot)| *entry ^= field.multiply(factor, pivot));
            }
        }
    }
    rows.into_iter().map(|row| row[r..].to_vec()).collect()
}
