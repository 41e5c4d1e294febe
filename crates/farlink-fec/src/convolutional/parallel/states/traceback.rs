//! Trace-back along the metrics themselves, two steps at a time.

use std::ops::Range;

use super::super::lanes::Lanes;
use super::super::trellis::Trellis;
use super::butterflies::Table;
use super::{Frame, States};

impl Table {
    /// The metric of a word of outputs.
    #[inline(always)]
    pub(super) fn metric(&self, word: usize) -> u32 {
        u32::from(self.0[0][word % 16]) + u32::from(self.0[1][word / 16 % 16])
    }
}

/// The outputs on the branches that lead to a state in two steps.
#[derive(Clone, Debug)]
pub(super) struct Predecessors {
    /// For every state, of the two branches from the first of the four states.
    outputs: Vec<[u8; 2]>,
    /// What the last bits of a window, 1, 2 and 3, change.
    changes: [u8; 4],
}

impl Predecessors {
    pub(super) fn new(trellis: &Trellis) -> Predecessors {
        let (code, states) = (&trellis.code, trellis.states as u32);
        let outputs = |state| [code.output((4 * state) & (2 * states - 1)), code.output(2 * state)];
        Predecessors {
            outputs: (0..states).map(|state| outputs(state).map(|output| output as u8)).collect(),
            changes: [0, 1, 2, 3].map(|window| code.output(window) as u8),
        }
    }

    /// The state two steps before: of equal ones the first.
    #[inline(always)]
    fn two_steps_back(&self, state: usize, metrics: &[u8], tables: [&Table; 2]) -> usize {
        let first = (4 * state) & (metrics.len() - 1);
        let [earlier, later] = self.outputs[state].map(usize::from);
        let changes = self.changes.map(usize::from);
        let later = [tables[1].metric(later), tables[1].metric(later ^ changes[1])];
        let four = &metrics[first..first + 4];
        // The place of each in its last bits.
        let path = |at: usize| {
            let metric = u32::from(four[at]) + tables[0].metric(earlier ^ changes[at]) + later[at / 2];
            metric << 2 | at as u32
        };
        let best = path(0).min(path(1)).min(path(2).min(path(3)));
        first + (best & 3) as usize
    }

    /// The state one step before.
    fn step_back(&self, state: usize, metrics: &[u8], table: &Table) -> usize {
        let first = (2 * state) & (metrics.len() - 1);
        let output = usize::from(self.outputs[state][1]);
        let path = |at: usize| u32::from(metrics[first + at]) + table.metric(output ^ usize::from(self.changes[at]));
        first + usize::from(path(1) < path(0))
    }
}

impl<V: Lanes> States<V> {
    /// Traces `rows` frames back from the time `end`, from state 0 or from the best one, to get some bytes of data.
    #[inline(always)]
    pub(super) fn trace_back(&self, rows: usize, end: usize, begin: usize, bytes: Range<usize>, data: &mut [u8]) {
        for first in (0..rows).step_by(4) {
            match rows - first {
                1 => self.trace::<1>(first, end, begin, &bytes, data),
                2 => self.trace::<2>(first, end, begin, &bytes, data),
                3 => self.trace::<3>(first, end, begin, &bytes, data),
                _ => self.trace::<4>(first, end, begin, &bytes, data),
            }
        }
    }

    /// As many frames side by side: each one's next state has to be waited for.
    #[inline(always)]
    fn trace<const FRAMES: usize>(
        &self,
        first: usize,
        end: usize,
        begin: usize,
        bytes: &Range<usize>,
        data: &mut [u8],
    ) {
        let frames: [&Frame<V>; FRAMES] = std::array::from_fn(|at| &self.frames[first + at]);
        let (mut states, mut time) = ([0; FRAMES], end);
        let ends_in_zero = self.plan.ends_in_zero && end == self.plan.steps;
        if end > begin && !end.is_multiple_of(2) {
            time = if ends_in_zero { end - 1 } else { end + 1 };
        }
        for (state, frame) in states.iter_mut().zip(frames) {
            *state = match ends_in_zero {
                true if time < end => self.predecessors.step_back(0, frame.metrics(time), frame.table(time)),
                true => 0,
                false => best_state(frame.metrics(time & !1)),
            };
        }
        let newest = self.plan.trellis.constraint_length - 1;
        let (row_bytes, skip) = (self.plan.row_bytes, self.plan.skip_bytes);
        let mut byte = bytes.end;
        loop {
            // A state is the K - 1 bits before it; at the beginning it is all that there are.
            while byte > bytes.start && (8 * byte >= time || time == begin) {
                byte -= 1;
                for (at, state) in states.iter().enumerate() {
                    let oldest_first = (state >> (newest + 8 * byte).saturating_sub(time)) as u8;
                    if let Some(target) = data.get_mut((first + at) * row_bytes + byte - skip) {
                        *target = oldest_first.reverse_bits();
                    }
                }
            }
            if byte == bytes.start {
                return;
            }
            let next = begin.max(8 * byte);
            while time > next {
                time -= 2;
                for (state, frame) in states.iter_mut().zip(frames) {
                    let tables = [frame.table(time), frame.table(time + 1)];
                    *state = self.predecessors.two_steps_back(*state, frame.metrics(time), tables);
                }
            }
        }
    }
}

/// The state with the least metric, the first of several.
#[inline(always)]
fn best_state(metrics: &[u8]) -> usize {
    let least = metrics.iter().fold(u8::MAX, |least, &metric| least.min(metric));
    let has_least = |metrics: &[u8]| metrics.iter().fold(false, |found, &metric| found | (metric == least));
    let part = metrics.chunks_exact(64).position(has_least).unwrap_or_default();
    64 * part + metrics[64 * part..].iter().position(|&metric| metric == least).unwrap_or_default()
}
