//! The decoder's tables of a code: the outputs of each branch, and the largest cost.

use super::super::Code;

/// Steps between two subtractions of the least metric.
pub(super) const NORMALISE_EVERY: usize = 4;

/// Limit of the cost of one symbol; more levels improve nothing.
const FINEST: u32 = 63;

/// Up to this number of outputs, all combinations have a metric; with more, only those that occur.
const COMBINE_ALL: usize = 6;

/// A code's trellis. State s follows the states 2s and 2s + 1, modulo the number of states; its most significant bit is the data
/// bit of the step.
#[derive(Clone, Debug)]
pub(super) struct Trellis {
    pub(super) code: Code,
    pub(super) constraint_length: usize,
    pub(super) states: usize,
    pub(super) outputs: usize,
    /// The output words that have a metric, unless all combinations have one.
    pub(super) words: Option<Vec<u32>>,
    /// The index of the metrics of the branches from 2s and 2s + 1 into s.
    pub(super) branches: Vec<[u32; 2]>,
    /// Whether every output depends on the newest and on the oldest bit: the four branches of a butterfly then have one
    /// metric and its complement.
    pub(super) has_both_end_taps: bool,
    /// The largest cost of a symbol.
    pub(super) largest_cost: u8,
    /// Cost of a state that cannot be reached yet, which exceeds that of any reachable state.
    pub(super) unreachable: u8,
}

impl Trellis {
    pub(super) fn new(code: &Code) -> Trellis {
        let (outputs, states) = (code.outputs(), code.states());
        let has_both_end_taps = code.generators().iter().all(|g| g & 1 == 1 && g & states as u32 != 0);
        let windows = (0..states as u32).map(|state| [code.output(2 * state), code.output(2 * state + 1)]);
        let mut branches: Vec<[u32; 2]> = windows.collect();
        let words = (outputs > COMBINE_ALL).then(|| {
            let mut words: Vec<u32> = branches.iter().flatten().copied().collect();
            words.sort_unstable();
            words.dedup();
            for word in branches.iter_mut().flatten() {
                *word = words.binary_search(word).map_or(0, |at| at as u32);
            }
            words
        });
        let spread = largest_spread(code);
        let n = outputs as u32;
        // Every metric has to fit into a byte: the spread, the growth of the least metric until it is subtracted, and a branch.
        // On the best path a step costs at most half of full scale for each output that the newest bit inverts.
        let inverted = code.generators().iter().filter(|&g| g & states as u32 != 0).count() as u32;
        let growth = (NORMALISE_EVERY as u32 - 1) * (2 * n - inverted);
        let worst = (spread + n + growth.div_ceil(2)).max(spread + 2 * n);
        // At least 1 for any code: 14 steps of 8 outputs have a spread of 112 at most, so that `worst` is 144 at most.
        let largest_cost = (254 / worst).min(FINEST);
        Trellis {
            code: code.clone(),
            constraint_length: code.constraint_length() as usize,
            states,
            outputs,
            words,
            branches,
            has_both_end_taps,
            largest_cost: largest_cost as u8,
            unreachable: ((spread + n) * largest_cost + 1) as u8,
        }
    }

    /// Bytes of decisions for one step, each of eight states.
    #[inline(always)]
    pub(super) fn planes(&self) -> usize {
        (self.states / 8).max(1)
    }

    /// Branch metrics of one step.
    #[inline(always)]
    pub(super) fn metrics(&self) -> usize {
        match &self.words {
            Some(words) => words.len(),
            None => 1 << self.outputs,
        }
    }
}

/// The largest number of symbols in which two paths of K - 1 steps from one state differ. No two metrics differ by more than this
/// times the largest cost, because every state can be reached from the past of the best one.
fn largest_spread(code: &Code) -> u32 {
    let states = code.states();
    let mut weights: Vec<Option<u32>> = vec![None; states];
    weights[0] = Some(0);
    for _ in 1..code.constraint_length() {
        weights = (0..states as u32)
            .map(|state| {
                let from = |oldest: u32| {
                    let window = 2 * state + oldest;
                    weights[window as usize % states].map(|weight| weight + code.output(window).count_ones())
                };
                from(0).max(from(1))
            })
            .collect();
    }
    weights.into_iter().flatten().max().unwrap_or(0)
}
