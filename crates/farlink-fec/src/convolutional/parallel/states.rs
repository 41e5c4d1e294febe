//! A few frames at once, the states of each in the lanes: for codes of so many states that the metrics of a frame for
//! each lane would not fit in the caches.
//!
//! No decisions are stored but the metrics themselves, before every second step: to compare again along the one path
//! that is traced back costs less than to keep what every comparison came to. Frames take turns, so that one's
//! arithmetic hides another's latency.

mod butterflies;
mod traceback;

use butterflies::{Butterflies, Table};
use traceback::Predecessors;

use super::group::{CHUNK, Plan};
use super::lanes::Lanes;
use crate::Soft;

/// The buffers of as many frames as are decoded at once.
#[derive(Clone, Debug)]
pub(super) struct States<V> {
    plan: Plan,
    butterflies: Butterflies<V>,
    predecessors: Predecessors,
    /// Of each output, what its costs add to a table: 1 at the words where it is 0, and where it is 1.
    costs: Vec<[u128; 2]>,
    /// Branch metrics of two steps.
    metrics: [Vec<V>; 2],
    frames: Vec<Frame<V>>,
}

/// What is kept of one frame.
#[derive(Clone, Debug)]
struct Frame<V> {
    /// The metrics at even times, the newest few hundred steps of them: a ring.
    metrics: Vec<V>,
    /// The branch metrics of all steps between, a ring too.
    tables: Vec<Table>,
    /// How many steps' tables there is room for.
    steps: usize,
    /// The least of the metrics before the last pair of steps and after it.
    least: [u8; 2],
    /// What was last subtracted from all metrics.
    subtracted: u8,
}

impl<V: Lanes> Frame<V> {
    /// Where the metrics at an even time begin, in vectors.
    fn place(&self, time: usize) -> usize {
        (time % self.steps) / 2 * (self.metrics.len() / (self.steps / 2))
    }

    fn table(&self, step: usize) -> &Table {
        &self.tables[step % self.steps]
    }

    fn metrics(&self, time: usize) -> &[u8] {
        let vectors = self.metrics.len() / (self.steps / 2);
        let vectors = &self.metrics[self.place(time)..][..vectors];
        // SAFETY: a vector is LANES bytes.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * V::LANES) }
    }

    fn metrics_mut(&mut self, time: usize) -> &mut [u8] {
        let (place, vectors) = (self.place(time), self.metrics.len() / (self.steps / 2));
        let vectors = &mut self.metrics[place..][..vectors];
        // SAFETY: a vector is LANES bytes of any value.
        unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len() * V::LANES) }
    }
}

/// How many frames are decoded at once: what is kept of them should fit in the second cache.
fn frames_at_once(constraint_length: usize) -> usize {
    match constraint_length {
        ..=12 => 4,
        13 => 2,
        _ => 1,
    }
}

impl<V: Lanes> States<V> {
    /// Rows that are decoded at once, at most.
    pub(super) fn rows(&self) -> usize {
        self.frames.len()
    }

    /// The trellis has at least 4 LANES states, and a state at least 8 bits.
    pub(super) fn new(plan: Plan) -> States<V> {
        // SAFETY: a vector of bytes may be all zeros.
        let zero: V = unsafe { std::mem::zeroed() };
        let trellis = &plan.trellis;
        let kept = plan.traceback.saturating_add(8 * plan.burst_bytes() + 8 + CHUNK).min(plan.steps);
        let steps = kept.next_multiple_of(2) + 4;
        let butterflies = Butterflies::new(trellis);
        let costs = (0..trellis.outputs).map(|output| {
            let ones =
                |bit: usize| (0..16).filter(|word| word >> (output % 4) & 1 == bit).map(|word| 1 << (8 * word)).sum();
            [ones(0), ones(1)]
        });
        let frame = Frame {
            metrics: vec![zero; steps / 2 * trellis.states / V::LANES],
            tables: vec![Table::default(); steps],
            steps,
            least: [0; 2],
            subtracted: 0,
        };
        States {
            costs: costs.collect(),
            metrics: std::array::from_fn(|_| vec![zero; butterflies.words()]),
            butterflies,
            predecessors: Predecessors::new(trellis),
            frames: vec![frame; frames_at_once(trellis.constraint_length)],
            plan,
        }
    }

    /// Decodes the rows, at most [`States::rows`], into `data`, `row_bytes` for each; what lies beyond the end of
    /// `data` is left out.
    ///
    /// # Safety
    /// As for [`Lanes`]; every row holds the symbols of all steps.
    #[inline(always)]
    pub(super) unsafe fn decode(&mut self, rows: &[&[Soft]], data: &mut [u8]) {
        let (steps, constraint_length) = (self.plan.steps, self.plan.trellis.constraint_length);
        let mut given = self.plan.skip_bytes;
        // Pairs of steps begin at even times; before, in a frame from state 0, there is only one path to any state.
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
            for time in (done..end).step_by(2) {
                for frame in &mut self.frames[..rows.len()] {
                    // What was the least two steps ago, but for what has been subtracted since. It is known by now, and
                    // until it is subtracted metrics grow for three steps, as long as they may.
                    let less = frame.least[0] - frame.subtracted;
                    frame.subtracted = less;
                    let (from, to) = (frame.place(time), frame.place(time + 2));
                    let tables = [*frame.table(time), *frame.table(time + 1)];
                    // SAFETY: places of as many bytes as there are states.
                    let least = unsafe {
                        let metrics = frame.metrics.as_mut_ptr();
                        let (from, to) = (metrics.add(from).cast_const(), metrics.add(to));
                        self.butterflies.two_steps(from, to, &tables, less, &mut self.metrics)
                    };
                    frame.least = [frame.least[1], least];
                }
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

    /// The metrics after the first steps, `time` of them. From state 0, at most K - 1 steps lead to 2^time states.
    fn begin(&mut self, frame: usize, row: &[Soft], time: usize) {
        self.load(frame, row, 0..time);
        let trellis = &self.plan.trellis;
        let frame = &mut self.frames[frame];
        (frame.least, frame.subtracted) = ([0; 2], 0);
        if !self.plan.starts_in_zero {
            frame.metrics_mut(0).fill(0);
            return;
        }
        let newest = trellis.constraint_length - 1;
        let mut metrics = vec![0u32];
        for step in 0..time {
            let table = frame.table(step);
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
        let to = frame.metrics_mut(time & !1);
        to.fill(trellis.unreachable);
        for (state, metric) in metrics.iter().enumerate() {
            to[state << (newest - time)] = (metric - least) as u8;
        }
    }

    /// Makes the tables of steps; one more, in which all costs are 0, to make their number even.
    fn load(&mut self, frame: usize, row: &[Soft], steps: std::ops::Range<usize>) {
        let n = self.plan.trellis.outputs;
        let frame = &mut self.frames[frame];
        let room = frame.steps;
        let last = steps.end;
        for (step, symbols) in steps.clone().zip(row[steps.start * n..steps.end * n].chunks_exact(n)) {
            let mut tables = [0u128; 2];
            for (output, (&symbol, ones)) in symbols.iter().zip(&self.costs).enumerate() {
                let cost = self.plan.quantiser.table[usize::from(symbol.unsigned_abs().min(127))];
                tables[output / 4] += u128::from(cost) * ones[usize::from(symbol >= 0)];
            }
            frame.tables[step % room] = Table(tables.map(u128::to_le_bytes));
        }
        frame.tables[last % room] = Table::default();
    }
}
