//! The reference decoder: one frame or stream at a time, simple and exact.
//!
//! A. J. Viterbi, "Error bounds for convolutional codes and an asymptotically optimum decoding algorithm", IEEE Trans. Inform.
//! Theory IT-13, 1967. A path's metric is the correlation of its coded bits with the symbols, an exact integer, so that hard
//! decisions, soft decisions and punctured bits (symbol 0) need no special treatment.

use super::{Code, Ending};
use crate::{Soft, bits};

/// Largest number of passes over a tail-biting frame before the decoder gives up.
const ROUNDS_MAX: usize = 20;
/// Metric of a state in which a frame cannot begin. No path compensates for it, because K n · 2 · 127 is below 31,000.
const IMPOSSIBLE: i32 = -(1 << 20);

/// The Viterbi algorithm with finite trace-back.
///
/// ```
/// use farlink_fec::convolutional::{Code, Ending, Viterbi};
///
/// let mut viterbi = Viterbi::new(&Code::from_octal("7,5")?, 15);
/// let mut data = [0];
/// // 1 0 0 and two zeros are sent as 11 10 11 00 00; the third symbol is wrong.
/// let decoded = viterbi.decode(&[-1, -1, 1, 1, -1, -1, 1, 1, 1, 1], Ending::Terminated, &mut data);
/// assert_eq!((decoded.unwrap().data_bits, data), (3, [0b1000_0000]));
/// # Ok::<(), farlink_fec::convolutional::CodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Viterbi {
    trellis: Trellis,
    traceback: usize,
}

/// The result of decoding a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Number of bits written.
    pub data_bits: usize,
    /// Whether the winning path ends where it began. This is false only for a tail-biting frame for which the decoder found no
    /// such path and gave up; the bits are then those of the likeliest path that does not close.
    pub is_closed: bool,
}

/// Why a frame cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The number of symbols is not a multiple of a step.
    #[error("{symbols} symbols; a code of rate 1/{outputs} takes a multiple of {outputs}")]
    Partial {
        /// Number of symbols.
        symbols: usize,
        /// n.
        outputs: usize,
    },
    /// There are fewer symbols than the tail has.
    #[error("{symbols} symbols; the tail of a terminated frame alone has {tail}")]
    Short {
        /// Number of symbols.
        symbols: usize,
        /// Number of symbols of the tail.
        tail: usize,
    },
    /// The data does not fit.
    #[error("{data_bits} data bits do not fit in {bytes} bytes")]
    Room {
        /// Bits of the frame.
        data_bits: usize,
        /// Bytes for them.
        bytes: usize,
    },
}

impl Viterbi {
    /// The usual trace-back, 5 K steps. Compared with a trace-back over the whole frame, the code 171, 133 has a quarter more
    /// wrong bits with soft decisions at 3 dB and a fifteenth more with hard decisions at 5 dB; with 10 K steps the loss cannot
    /// be measured. Punctured codes need even more.
    pub fn usual_traceback(code: &Code) -> usize {
        5 * code.constraint_length() as usize
    }

    /// A decoder that decides a bit once it is `traceback` steps old, at least 1, on the best path known then. If `traceback`
    /// covers the frame, it decodes with maximum likelihood.
    pub fn new(code: &Code, traceback: usize) -> Viterbi {
        Viterbi { trellis: Trellis::new(code), traceback: traceback.max(1) }
    }

    /// Decodes a frame from all its symbols into the first bits of `data`; the rest of the last byte becomes 0.
    ///
    /// A tail-biting frame is decoded over its whole length, regardless of the trace-back, in several passes until the winning
    /// path ends where it began (R. Y. Shao, S. Lin, M. P. C. Fossorier, "Two decoding algorithms for tailbiting codes", IEEE
    /// Trans. Commun. 51, 2003); see [`Decoded::is_closed`].
    ///
    /// # Errors
    /// If the number of symbols does not fit the code and the ending, or the data does not fit in `data`.
    pub fn decode(&mut self, symbols: &[Soft], ending: Ending, data: &mut [u8]) -> Result<Decoded, DecodeError> {
        let (outputs, bytes) = (self.trellis.outputs, data.len());
        if !symbols.len().is_multiple_of(outputs) {
            return Err(DecodeError::Partial { symbols: symbols.len(), outputs });
        }
        let tail = ending.steps(0, self.trellis.constraint_length);
        let steps = symbols.len() / outputs;
        let data_bits =
            steps.checked_sub(tail).ok_or(DecodeError::Short { symbols: symbols.len(), tail: tail * outputs })?;
        let data = data.get_mut(..bits::bytes_for(data_bits)).ok_or(DecodeError::Room { data_bits, bytes })?;
        data.fill(0);

        if ending == Ending::TailBiting {
            let is_closed = self.decode_round(symbols, data);
            return Ok(Decoded { data_bits, is_closed });
        }
        let mut at = 0;
        let mut keep = |bit| {
            if bit && at < data_bits {
                bits::set(data, at, true);
            }
            at += 1;
        };
        let mut stream = Stream::begin(&mut self.trellis, self.traceback.min(steps));
        stream.push(symbols, &mut keep)?;
        stream.end((ending == Ending::Terminated).then_some(0), &mut keep);
        Ok(Decoded { data_bits, is_closed: true })
    }

    /// Begins to decode a stream that was encoded from state 0 on.
    pub fn stream(&mut self) -> Stream<'_> {
        Stream::begin(&mut self.trellis, self.traceback)
    }

    /// Decodes a tail-biting frame; returns whether the winning path closes.
    fn decode_round(&mut self, symbols: &[Soft], data: &mut [u8]) -> bool {
        let trellis = &mut self.trellis;
        let mut history = History::new(symbols.len() / trellis.outputs, trellis.states);
        trellis.metrics.fill(0);
        let mut origins: Vec<usize> = vec![0; trellis.states];
        let mut next_origins = origins.clone();
        // Gain of the best closing path so far in its pass.
        let mut best_gain = None;
        for _ in 0..ROUNDS_MAX {
            trellis.offset = 0;
            let metrics_before = trellis.metrics.clone();
            origins.iter_mut().enumerate().for_each(|(state, origin)| *origin = state);
            for (step, symbols) in symbols.chunks_exact(trellis.outputs).enumerate() {
                let decisions = history.row_mut(step);
                trellis.step(symbols, decisions);
                for (to, origin) in next_origins.iter_mut().enumerate() {
                    *origin = origins[trellis.predecessor(to, decisions)];
                }
                std::mem::swap(&mut origins, &mut next_origins);
            }
            let gain = |state: usize| {
                trellis.offset + i64::from(trellis.metrics[state]) - i64::from(metrics_before[origins[state]])
            };
            let closing = (0..trellis.states).filter(|&state| origins[state] == state);
            let best = closing.max_by_key(|&state| gain(state));
            if let Some(end) = best.filter(|&end| best_gain.is_none_or(|best_gain| gain(end) > best_gain)) {
                best_gain = Some(gain(end));
                trellis.trace(end, &history, data);
            }
            let winner = trellis.best_state();
            if origins[winner] == winner {
                trellis.trace(winner, &history, data);
                return true;
            }
        }
        if best_gain.is_none() {
            trellis.trace(trellis.best_state(), &history, data);
        }
        best_gain.is_some()
    }
}

/// A stream that is being decoded, from [`Viterbi::stream`].
#[derive(Debug)]
pub struct Stream<'a> {
    trellis: &'a mut Trellis,
    traceback: usize,
    history: History,
    /// The state after each step on the latest best path, for the steps in `history`.
    path: Vec<usize>,
    /// Number of steps processed.
    steps: usize,
}

impl Stream<'_> {
    fn begin(trellis: &mut Trellis, traceback: usize) -> Stream<'_> {
        trellis.metrics.fill(IMPOSSIBLE);
        trellis.metrics[0] = 0;
        let history = History::new(traceback + 1, trellis.states);
        Stream { traceback, path: vec![0; history.rows], history, steps: 0, trellis }
    }

    /// Processes the symbols of some steps, and passes each decided bit to `bit`, in order.
    ///
    /// # Errors
    /// If the number of symbols is not a multiple of a step; then none is processed.
    pub fn push(&mut self, symbols: &[Soft], mut bit: impl FnMut(bool)) -> Result<(), DecodeError> {
        let outputs = self.trellis.outputs;
        if !symbols.len().is_multiple_of(outputs) {
            return Err(DecodeError::Partial { symbols: symbols.len(), outputs });
        }
        for symbols in symbols.chunks_exact(outputs) {
            self.trellis.step(symbols, self.history.row_mut(self.steps));
            self.trace(self.trellis.best_state());
            if let Some(step) = self.steps.checked_sub(self.traceback) {
                bit(self.trellis.bit(self.path[step % self.history.rows]));
            }
            self.steps += 1;
        }
        Ok(())
    }

    /// Decides all remaining bits: on the path to `state`, or on the best path if it is `None`.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn end(mut self, state: Option<usize>, mut bit: impl FnMut(bool)) {
        let state = state.unwrap_or_else(|| self.trellis.best_state());
        assert!(state < self.trellis.states, "state {state} of {}", self.trellis.states);
        let Some(last) = self.steps.checked_sub(1) else { return };
        self.steps = last;
        self.trace(state);
        for step in self.steps_left() {
            bit(self.trellis.bit(self.path[step % self.history.rows]));
        }
    }

    /// Steps that are not decided yet, for [`end`](Stream::end).
    fn steps_left(&self) -> std::ops::RangeInclusive<usize> {
        (self.steps + 1).saturating_sub(self.traceback)..=self.steps
    }

    /// Writes the path to `state` after the newest step, `self.steps`, to `path`. It usually soon joins the path that is already
    /// there; from then on, both are the same.
    fn trace(&mut self, mut state: usize) {
        let rows = self.history.rows;
        let oldest = self.steps.saturating_sub(self.traceback);
        for step in (oldest..=self.steps).rev() {
            let known = &mut self.path[step % rows];
            if *known == state && step < self.steps {
                break;
            }
            *known = state;
            state = self.trellis.predecessor(state, self.history.row(step));
        }
    }
}

/// The better of the two predecessors of each state, for the last steps.
#[derive(Clone, Debug)]
struct History {
    rows: usize,
    words: usize,
    decisions: Vec<u64>,
}

impl History {
    fn new(rows: usize, states: usize) -> History {
        let words = states.div_ceil(64);
        History { rows, words, decisions: vec![0; rows * words] }
    }

    fn row(&self, step: usize) -> &[u64] {
        &self.decisions[step % self.rows * self.words..][..self.words]
    }

    fn row_mut(&mut self, step: usize) -> &mut [u64] {
        &mut self.decisions[step % self.rows * self.words..][..self.words]
    }
}

/// The code's trellis, and the metrics of the best paths to all states.
///
/// State `to` has the predecessors `2 to` and `2 to + 1`, less the highest bit, and its own highest bit is the data bit.
#[derive(Clone, Debug)]
struct Trellis {
    constraint_length: u32,
    outputs: usize,
    states: usize,
    /// For each output and window, 0, or all ones if the output is 1. There are four parts: the windows with data bit 0 of the
    /// even states, those of the odd states, and the same with data bit 1.
    masks: Vec<i32>,
    /// The contribution of a step for each of these windows.
    branches: Vec<i32>,
    /// For each state, 1 if its odd predecessor was better.
    odd_wins: Vec<i32>,
    /// The metrics of the even states, and then of the odd ones.
    split: Vec<i32>,
    metrics: Vec<i32>,
    next_metrics: Vec<i32>,
    /// The sum subtracted from all metrics so that they do not overflow.
    offset: i64,
    /// Number of steps until the next subtraction.
    steps_to_offset: u32,
}

/// Number of steps after which the metrics, which change by at most 8 · 127 in each, are reset to about 0.
const STEPS_TO_OFFSET: u32 = 1 << 12;

impl Trellis {
    fn new(code: &Code) -> Trellis {
        // Data bit 0 and then 1, for each the windows of even and then of odd states.
        let states = code.states() as u32;
        let windows =
            [0, 1, states, states + 1].into_iter().flat_map(|first| (0..states / 2).map(move |to| first + 2 * to));
        let masks = (0..code.outputs()).flat_map(|j| windows.clone().map(move |window| (j, window)));
        Trellis {
            constraint_length: code.constraint_length(),
            outputs: code.outputs(),
            states: code.states(),
            masks: masks.map(|(j, window)| -((code.output(window) >> j & 1) as i32)).collect(),
            branches: vec![0; 2 * code.states()],
            odd_wins: vec![0; code.states()],
            split: vec![0; code.states()],
            metrics: vec![0; code.states()],
            next_metrics: vec![0; code.states()],
            offset: 0,
            steps_to_offset: STEPS_TO_OFFSET,
        }
    }

    /// Add, compare and select; sets the bit of each state whose better predecessor is the odd one.
    ///
    /// These are plain loops over slices, which the compiler vectorises, without overflow checks, because the metrics stay far
    /// below an overflow.
    fn step(&mut self, symbols: &[Soft], decisions: &mut [u64]) {
        let half = self.states / 2;
        self.branches.fill(0);
        for (&symbol, masks) in symbols.iter().zip(self.masks.chunks_exact(2 * self.states)) {
            let symbol = i32::from(symbol);
            for (branch, mask) in self.branches.iter_mut().zip(masks) {
                // The symbol, or its negative where the mask is all ones.
                *branch = branch.wrapping_add((symbol ^ mask).wrapping_sub(*mask));
            }
        }
        let (even, odd) = self.split.split_at_mut(half);
        for ((even, odd), from) in even.iter_mut().zip(odd.iter_mut()).zip(self.metrics.chunks_exact(2)) {
            (*even, *odd) = (from[0], from[1]);
        }
        for ((branches, next), odd_wins) in (self.branches.chunks_exact(self.states))
            .zip(self.next_metrics.chunks_exact_mut(half))
            .zip(self.odd_wins.chunks_exact_mut(half))
        {
            let (even_branches, odd_branches) = branches.split_at(half);
            let (even, odd) = (&even[..half], &odd[..half]);
            for to in 0..half {
                let even = even[to].wrapping_add(even_branches[to]);
                let odd = odd[to].wrapping_add(odd_branches[to]);
                next[to] = even.max(odd);
                odd_wins[to] = i32::from(odd > even);
            }
        }
        for (decisions, odd_wins) in decisions.iter_mut().zip(self.odd_wins.chunks(64)) {
            // In groups of four, because the number of states is a multiple of four.
            *decisions = odd_wins.chunks_exact(4).enumerate().fold(0, |word, (at, wins)| {
                word | ((wins[0] | wins[1] << 1 | wins[2] << 2 | wins[3] << 3) as u64) << (4 * at)
            });
        }
        std::mem::swap(&mut self.metrics, &mut self.next_metrics);
        self.steps_to_offset -= 1;
        if self.steps_to_offset == 0 {
            self.steps_to_offset = STEPS_TO_OFFSET;
            let best = self.metrics[self.best_state()];
            self.metrics.iter_mut().for_each(|metric| *metric -= best);
            self.offset += i64::from(best);
        }
    }

    fn predecessor(&self, to: usize, decisions: &[u64]) -> usize {
        (to << 1 & (self.states - 1)) | (decisions[to / 64] >> (to % 64) & 1) as usize
    }

    /// The data bit of the step that led to a state.
    fn bit(&self, state: usize) -> bool {
        state >= self.states / 2
    }

    fn best_state(&self) -> usize {
        let best = self.metrics.iter().copied().fold(i32::MIN, i32::max);
        self.metrics.iter().position(|&metric| metric == best).expect("the best is one of them")
    }

    /// The data bits of a whole frame on the path to `state`.
    fn trace(&self, mut state: usize, history: &History, data: &mut [u8]) {
        for step in (0..history.rows).rev() {
            bits::set(data, step, self.bit(state));
            state = self.predecessor(state, history.row(step));
        }
    }
}

#[cfg(test)]
mod error_rate;
#[cfg(test)]
mod tests;
