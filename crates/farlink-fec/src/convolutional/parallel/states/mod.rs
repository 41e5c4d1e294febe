//! Decodes a few frames at once, with the states of each in the lanes, for codes with so many states that the metrics of one
//! frame per lane would not fit in the caches.
//!
//! Instead of decisions it stores the metrics before every second step: repeating the comparisons along the one path that is
//! traced back costs less than storing the results of all. Frames take turns, so that the arithmetic of one hides the latency of
//! another.

mod butterflies;
mod symbol_costs;
mod traceback;

use butterflies::Butterflies;
use symbol_costs::{SymbolCosts, Table};
use traceback::Predecessors;

use super::group::{CHUNK, Plan};
use super::lanes::Lanes;
use crate::Soft;

/// The buffers of all frames that are decoded at once.
#[derive(Clone, Debug)]
pub(super) struct States<V> {
    plan: Plan,
    butterflies: Butterflies<V>,
    predecessors: Predecessors,
    symbol_costs: SymbolCosts,
    /// Branch metrics of two steps.
    metrics: [Vec<V>; 2],
    frames: Vec<Frame<V>>,
    /// Number of even times for which a frame's rings have room.
    slots: usize,
}

/// The stored state of one frame for the newest few hundred steps, in rings.
#[derive(Clone, Debug)]
struct Frame<V> {
    /// The metrics at even times.
    metrics: Vec<V>,
    /// The branch metrics of the two following steps.
    tables: Vec<[Table; 2]>,
    /// The least metric before the last pair of steps and after it.
    least: [u8; 2],
    /// The value last subtracted from all metrics.
    subtracted: u8,
}

/// Number of frames decoded at once; their state should fit in the second-level cache.
fn frames_at_once(constraint_length: usize) -> usize {
    match constraint_length {
        ..=12 => 4,
        13 => 2,
        _ => 1,
    }
}

impl<V: Lanes> States<V> {
    /// Largest number of rows that are decoded at once.
    pub(super) fn rows(&self) -> usize {
        self.frames.len()
    }

    /// The trellis has at least 4 LANES states, and a state at least 8 bits.
    pub(super) fn new(plan: Plan) -> States<V> {
        // SAFETY: a vector of bytes may be all zeros.
        let zero: V = unsafe { std::mem::zeroed() };
        let trellis = &plan.trellis;
        let kept = plan.traceback.saturating_add(8 * plan.burst_bytes() + 8 + CHUNK).min(plan.steps);
        let slots = kept.div_ceil(2) + 2;
        let butterflies = Butterflies::new(trellis);
        let frame = Frame {
            metrics: vec![zero; slots * trellis.states / V::LANES],
            tables: vec![Default::default(); slots],
            least: [0; 2],
            subtracted: 0,
        };
        States {
            symbol_costs: SymbolCosts::new(&plan),
            metrics: std::array::from_fn(|_| vec![zero; butterflies.words()]),
            butterflies,
            predecessors: Predecessors::new(trellis),
            frames: vec![frame; frames_at_once(trellis.constraint_length)],
            slots,
            plan,
        }
    }

    /// The ring position of an even time.
    fn slot(&self, time: usize) -> usize {
        time / 2 % self.slots
    }

    /// Decodes the rows, at most [`States::rows`], into `data`, `row_bytes` for each; data beyond the end of `data` is dropped.
    ///
    /// # Safety
    /// As for [`Lanes`]; every row holds the symbols of all steps.
    #[inline(always)]
    pub(super) unsafe fn decode(&mut self, rows: &[&[Soft]], data: &mut [u8]) {
        let (steps, constraint_length) = (self.plan.steps, self.plan.trellis.constraint_length);
        let vectors = self.plan.trellis.states / V::LANES;
        let mut given = self.plan.skip_bytes;
        // Pairs of steps begin at even times. Before, in a frame from state 0, there is only one path to each state.
        let begin = match self.plan.starts_in_zero {
            true if steps < constraint_length => steps,
            true => (constraint_length - 1) & !1,
            false => 0,
        };
        for (frame, row) in rows.iter().enumerate() {
            self.begin(frame, row, begin);
        }
        let mut done = begin;
        loop {
            let end = steps.min((done + 1).next_multiple_of(CHUNK));
            for (frame, row) in rows.iter().enumerate() {
                self.load(frame, row, done..end);
            }
            let mut slot = self.slot(done);
            for _ in (done..end).step_by(2) {
                let next = if slot + 1 == self.slots { 0 } else { slot + 1 };
                for frame in &mut self.frames[..rows.len()] {
                    // The least metric of two steps ago, less what has been subtracted since. It is known by now. Until it is
                    // subtracted, metrics grow for three steps, which their range allows.
                    let less = frame.least[0] - frame.subtracted;
                    frame.subtracted = less;
                    // SAFETY: slots hold as many bytes as there are states.
                    let least = unsafe {
                        let metrics = frame.metrics.as_mut_ptr();
                        let (from, to) = (metrics.add(slot * vectors).cast_const(), metrics.add(next * vectors));
                        self.butterflies.two_steps(from, to, &frame.tables[slot], less, &mut self.metrics)
                    };
                    frame.least = [frame.least[1], least];
                }
                slot = next;
            }
            done = end;
            while let Some(last) = self.plan.gives(given, done) {
                self.trace_back(rows.len(), done, begin, given..last, data);
                given = last;
            }
            if done == steps {
                return;
            }
        }
    }

    /// The metrics after the first `time` steps. From state 0, at most K - 1 steps lead to 2^time states.
    fn begin(&mut self, frame: usize, row: &[Soft], time: usize) {
        self.load(frame, row, 0..time);
        let trellis = &self.plan.trellis;
        let slot = self.slot(time);
        let frame = &mut self.frames[frame];
        (frame.least, frame.subtracted) = ([0; 2], 0);
        let vectors = trellis.states / V::LANES;
        let to = &mut frame.metrics[slot * vectors..(slot + 1) * vectors];
        // SAFETY: a vector is LANES bytes of any value.
        let to = unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), trellis.states) };
        if !self.plan.starts_in_zero {
            to.fill(0);
            return;
        }
        let newest = trellis.constraint_length - 1;
        let mut metrics = vec![0u32];
        for step in 0..time {
            let table = &frame.tables[step / 2][step % 2];
            let after = |bit: u32| {
                let reached = metrics.iter().enumerate();
                reached.map(move |(state, metric)| {
                    let window = bit << newest | (state as u32) << (newest - step);
                    metric + table.metric(trellis.code.output(window) as usize)
                })
            };
            metrics = after(0).chain(after(1)).collect();
        }
        let least = metrics.iter().copied().min().unwrap_or_default();
        to.fill(trellis.unreachable);
        for (state, metric) in metrics.iter().enumerate() {
            to[state << (newest - time)] = (metric - least) as u8;
        }
    }

    /// Makes the tables of steps, from an even time on; if their number is odd, one more with all costs 0.
    #[inline(always)]
    fn load(&mut self, frame: usize, row: &[Soft], steps: std::ops::Range<usize>) {
        match self.plan.trellis.outputs {
            ..=3 => self.load_words::<1>(frame, row, steps),
            4 => self.load_words::<2>(frame, row, steps),
            _ => self.load_words::<4>(frame, row, steps),
        }
    }

    #[inline(always)]
    fn load_words<const WORDS: usize>(&mut self, frame: usize, row: &[Soft], steps: std::ops::Range<usize>) {
        let n = self.plan.trellis.outputs;
        let mut slot = self.slot(steps.start);
        let tables = &mut self.frames[frame].tables;
        for symbols in row[steps.start * n..steps.end * n].chunks(2 * n) {
            let (first, second) = symbols.split_at(n);
            tables[slot] = [self.symbol_costs.table::<WORDS>(first), self.symbol_costs.table::<WORDS>(second)];
            slot = if slot + 1 == self.slots { 0 } else { slot + 1 };
        }
    }
}
