//! From received symbols to the metrics of all branches of a step.

use super::super::group::Plan;
use crate::Soft;

/// The metrics of a step's branches: of the first four outputs, indexed by their word, and of the other four.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(super) struct Table(pub(super) [[u8; 16]; 2]);

impl Table {
    /// The metric of a word of outputs.
    #[inline(always)]
    pub(super) fn metric(&self, word: usize) -> u32 {
        u32::from(self.0[0][word % 16]) + u32::from(self.0[1][word / 16 % 16])
    }
}

/// Contributions of symbols to the metrics.
#[derive(Clone, Debug)]
pub(super) struct SymbolCosts {
    /// The cost of every symbol, as an unsigned byte, on a branch that contradicts it.
    costs: Vec<u8>,
    /// For each output, for a negative symbol and for another, the table with a 1 where a branch contradicts it. The bytes are
    /// packed in words, the first in the least significant byte; no sum of costs overflows into the next byte.
    contradicted: Vec<[[u64; 4]; 2]>,
}

impl SymbolCosts {
    pub(super) fn new(plan: &Plan) -> SymbolCosts {
        let size = |symbol: u8| symbol.cast_signed().unsigned_abs().min(127);
        let costs = (0..=u8::MAX).map(|symbol| plan.quantiser.table[usize::from(size(symbol))]);
        let contradicted = (0..plan.trellis.outputs).map(|output| {
            // A 1 is sent as a negative symbol.
            [0, 1].map(|bit| {
                let is_contradicted = |at: usize| at / 16 == output / 4 && at >> (output % 4) & 1 == bit;
                let byte = |at: usize| if is_contradicted(at) { 1 << (8 * (at % 8)) } else { 0 };
                std::array::from_fn(|word| (8 * word..8 * word + 8).map(byte).sum())
            })
        });
        SymbolCosts { costs: costs.collect(), contradicted: contradicted.collect() }
    }

    /// The table of a step, its first WORDS eight bytes, which are enough for the outputs. All 0 without symbols.
    #[inline(always)]
    pub(super) fn table<const WORDS: usize>(&self, symbols: &[Soft]) -> Table {
        let mut sums = [0u64; 4];
        for (symbol, contradicted) in symbols.iter().zip(&self.contradicted) {
            let cost = u64::from(self.costs[usize::from(symbol.cast_unsigned())]);
            let contradicted = &contradicted[usize::from(*symbol >= 0)];
            for word in 0..WORDS {
                sums[word] += cost * contradicted[word];
            }
        }
        let bytes = |word: usize| sums[word].to_le_bytes();
        let half = |word| std::array::from_fn(|at| if at < 8 { bytes(word)[at] } else { bytes(word + 1)[at - 8] });
        Table([half(0), half(2)])
    }
}
