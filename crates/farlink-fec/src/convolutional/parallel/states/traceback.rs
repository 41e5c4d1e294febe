//! Trace-back along the metrics themselves, two steps at a time.

use std::ops::Range;

use super::super::lanes::Lanes;
use super::super::trellis::Trellis;
use super::symbol_costs::Table;
use super::{Frame, States};

/// The outputs on the branches that lead to a state in two steps.
#[derive(Clone, Debug)]
pub(super) struct Predecessors {
    /// For every state, the outputs of the two branches from the first of the four states.
    outputs: Vec<[u8; 2]>,
    /// Changes of the outputs by the last bits of a window, 1, 2 and 3.
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

    /// The state two steps before; the first one of equal ones. Up to four outputs if not WIDE.
    ///
    /// # Safety
    /// The state is valid, and there is a metric for each state.
    #[inline(always)]
    unsafe fn two_steps_back<const WIDE: bool>(&self, state: usize, metrics: *const u8, tables: &[Table; 2]) -> usize {
        let first = (4 * state) & (self.outputs.len() - 1);
        let branch = |step: usize, word: u8| {
            let Table([low, high]) = &tables[step];
            if WIDE {
                return tables[step].metric(usize::from(word));
            }
            debug_assert!(word < 16 && high.iter().all(|&metric| metric == 0));
            // SAFETY: a word of up to four outputs.
            u32::from(unsafe { *low.get_unchecked(usize::from(word)) })
        };
        // SAFETY: the caller's; the first state is a multiple of 4.
        let ([earlier, later], four) =
            unsafe { (*self.outputs.get_unchecked(state), *metrics.add(first).cast::<[u8; 4]>()) };
        // The cost of both steps; the least significant bits identify the path.
        let path = |at: usize| 4 * (u32::from(four[at]) + branch(0, earlier ^ self.changes[at])) + at as u32;
        let even = path(0).min(path(1)) + 4 * branch(1, later);
        let odd = path(2).min(path(3)) + 4 * branch(1, later ^ self.changes[1]);
        first + (even.min(odd) & 3) as usize
    }

    /// The state one step before.
    fn step_back(&self, state: usize, metrics: &[u8], table: &Table) -> usize {
        let first = (2 * state) & (metrics.len() - 1);
        let output = usize::from(self.outputs[state][1]);
        let path = |at: usize| u32::from(metrics[first + at]) + table.metric(output ^ usize::from(self.changes[at]));
        first + usize::from(path(1) < path(0))
    }
}

impl<V: Lanes> Frame<V> {
    /// The metrics at a ring position.
    fn metrics(&self, slot: usize, slots: usize) -> &[u8] {
        let vectors = self.metrics.len() / slots;
        let vectors = &self.metrics[slot * vectors..(slot + 1) * vectors];
        // SAFETY: a vector is LANES bytes.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * V::LANES) }
    }
}

impl<V: Lanes> States<V> {
    /// Traces `rows` frames back from the time `end`, from state 0 or from the best state, to decode the given bytes of data.
    #[inline(always)]
    pub(super) fn trace_back(&self, rows: usize, end: usize, begin: usize, bytes: Range<usize>, data: &mut [u8]) {
        match (rows, self.plan.trellis.outputs > 4) {
            (4, false) => self.trace::<4, false>(0, end, begin, &bytes, data),
            (2, false) => self.trace::<2, false>(0, end, begin, &bytes, data),
            (_, is_wide) => {
                for row in 0..rows {
                    match is_wide {
                        true => self.trace::<1, true>(row, end, begin, &bytes, data),
                        false => self.trace::<1, false>(row, end, begin, &bytes, data),
                    }
                }
            }
        }
    }

    /// Traces several frames side by side, because each trace-back has to wait for its next state.
    #[inline(always)]
    fn trace<const FRAMES: usize, const WIDE: bool>(
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
        let mut slot = self.slot(time);
        for (state, frame) in states.iter_mut().zip(frames) {
            let metrics = frame.metrics(slot, self.slots);
            *state = match ends_in_zero {
                true if time < end => self.predecessors.step_back(0, metrics, &frame.tables[slot][0]),
                true => 0,
                false => best_state(metrics),
            };
        }
        let (newest, all) = (self.plan.trellis.constraint_length - 1, self.plan.trellis.states);
        let (row_bytes, skip) = (self.plan.row_bytes, self.plan.skip_bytes);
        let mut byte = bytes.end;
        loop {
            // A state contains the K - 1 bits before it; at the beginning it contains all bits.
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
                slot = if slot == 0 { self.slots - 1 } else { slot - 1 };
                for (state, frame) in states.iter_mut().zip(frames) {
                    // SAFETY: slots hold a metric for each state, and states lead to states.
                    *state = unsafe {
                        let metrics = frame.metrics.as_ptr().cast::<u8>().add(slot * all);
                        let tables = frame.tables.get_unchecked(slot);
                        self.predecessors.two_steps_back::<WIDE>(*state, metrics, tables)
                    };
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
