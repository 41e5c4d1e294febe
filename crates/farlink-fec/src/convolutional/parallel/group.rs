//! One group of frames, one in each lane, from symbols to packed bits.

use super::acs::{branch_metrics, step, two_steps};
use super::lanes::{Lanes, Quantiser, transpose16};
use super::traceback::{LARGEST_IN_A_BYTE, Window, best_state, trace, trace_each};
use super::trellis::{NORMALISE_EVERY, Trellis};
use crate::Soft;

/// Steps whose symbols are prepared together.
pub(super) const CHUNK: usize = 32;

/// The parameters that all groups share.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) trellis: Trellis,
    pub(super) quantiser: Quantiser,
    /// Number of steps that are processed before a bit is decided.
    pub(super) traceback: usize,
    /// Trellis steps of each row.
    pub(super) steps: usize,
    /// Whether rows begin in state 0, not in any state.
    pub(super) starts_in_zero: bool,
    /// Whether rows end in state 0.
    pub(super) ends_in_zero: bool,
    /// Leading bytes of decoded bits to skip.
    pub(super) skip_bytes: usize,
    /// Decoded bytes of each row to output after these.
    pub(super) row_bytes: usize,
}

impl Plan {
    /// Bytes of output between two trace-backs: with more decisions per step fewer bytes, so that the decisions stay in the
    /// cache.
    pub(super) fn burst_bytes(&self) -> usize {
        match self.trellis.constraint_length {
            ..=7 => 64,
            8..=9 => 16,
            _ => 8,
        }
    }

    /// After `done` steps, the byte up to which the data after the `given` bytes can be output; `None` if there is none yet.
    pub(super) fn gives(&self, given: usize, done: usize) -> Option<usize> {
        let end = self.skip_bytes + self.row_bytes;
        let wanted = if done == self.steps { end } else { given + self.burst_bytes() };
        let is_due = done == self.steps || done >= (8 * wanted).saturating_add(self.traceback);
        (given < end && is_due).then_some(wanted.min(end))
    }

    /// Largest number of steps whose decisions are stored.
    fn stored_steps(&self) -> usize {
        let wanted = self.traceback.saturating_add(8 * (self.skip_bytes + self.burst_bytes()) + 8 + CHUNK);
        wanted.min(self.steps.next_multiple_of(CHUNK))
    }
}

/// The buffers of one group.
#[derive(Clone, Debug)]
pub(super) struct Group<V> {
    plan: Plan,
    metrics: [Vec<V>; 2],
    /// Which of the two metric buffers is the newest.
    now: usize,
    branches: [Vec<V>; 2],
    /// The received symbols of a chunk, lane by lane.
    near: Vec<u8>,
    costs: Vec<V>,
    decisions: Vec<V>,
    bytes: Vec<V>,
}

impl<V: Lanes> Group<V> {
    pub(super) fn new(plan: Plan) -> Group<V> {
        // SAFETY: a vector of bytes may be all zeros.
        let zero: V = unsafe { std::mem::zeroed() };
        let trellis = &plan.trellis;
        let stored = plan.stored_steps();
        Group {
            metrics: std::array::from_fn(|_| vec![zero; trellis.states]),
            now: 0,
            branches: std::array::from_fn(|_| vec![zero; trellis.metrics()]),
            near: vec![0; V::LANES * trellis.outputs * CHUNK],
            costs: vec![zero; 2 * trellis.outputs * CHUNK],
            decisions: vec![zero; stored * trellis.planes()],
            bytes: vec![zero; (stored / 8 + 1).next_multiple_of(16)],
            plan,
        }
    }

    /// Decodes the rows, at most one per lane, into `data`, `row_bytes` for each; data beyond the end of `data` is dropped.
    ///
    /// # Safety
    /// As for [`Lanes`]; there is a row, and every row holds the symbols of all steps.
    #[inline(always)]
    pub(super) unsafe fn decode(&mut self, rows: &[&[Soft]], data: &mut [u8]) {
        let steps = self.plan.steps;
        let n = self.plan.trellis.outputs;
        let constraint_length = self.plan.trellis.constraint_length;
        let mut given = self.plan.skip_bytes;
        let mut base = 0;
        // SAFETY: the caller's; buffers have the sizes that the functions ask for.
        unsafe {
            let far = V::splat(if self.plan.starts_in_zero { self.plan.trellis.unreachable } else { 0 });
            self.now = 0;
            self.metrics[0].fill(far);
            self.metrics[0][0] = V::splat(0);
            let mut least = V::splat(0);
            let mut done = 0;
            while done < steps {
                let chunk = CHUNK.min(steps - done);
                self.load(rows, done * n, chunk * n);
                let begin = done;
                while done < begin + chunk {
                    let starting = self.plan.starts_in_zero && done + 1 < constraint_length;
                    let left = begin + chunk - done;
                    let costs = self.costs.as_ptr().add(2 * n * (done - begin));
                    let at = done - base;
                    if starting || left < 2 || !self.takes_pairs() {
                        least = self.single(costs, at, least);
                        done += 1;
                        if starting {
                            self.forbid(done, least);
                        }
                    } else if left < NORMALISE_EVERY {
                        least = self.pair::<true>(costs, at, least);
                        done += 2;
                    } else {
                        self.pair::<false>(costs, at, least);
                        least = self.pair::<true>(costs.add(4 * n), at + 2, V::splat(0));
                        done += 4;
                    }
                }
                while let Some(last) = self.plan.gives(given, done) {
                    let window = Window { base, end: done, bytes: (given, last) };
                    self.trace_back(window, done == steps && self.plan.ends_in_zero);
                    self.write(last - given, given - self.plan.skip_bytes, rows.len(), data);
                    given = last;
                    let planes = self.plan.trellis.planes();
                    let kept = 8 * given;
                    if kept < done {
                        self.decisions.copy_within((kept - base) * planes..(done - base) * planes, 0);
                        base = kept;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn takes_pairs(&self) -> bool {
        let trellis = &self.plan.trellis;
        trellis.has_both_end_taps && trellis.words.is_none() && trellis.states >= 16
    }

    /// Transposes `count` symbols of every row, from `at`, and converts them to costs.
    ///
    /// They are copied to a place where rows are close together, because rows at distances of a power of two would evict each
    /// other from the cache.
    #[inline(always)]
    unsafe fn load(&mut self, rows: &[&[Soft]], at: usize, count: usize) {
        let apart = self.plan.trellis.outputs * CHUNK;
        // SAFETY: the caller's; `near` has room for a chunk of every lane.
        unsafe {
            for lane in 0..V::LANES {
                let row = rows[if lane < rows.len() { lane } else { 0 }];
                let symbols = &row[at..at + count];
                let near = &mut self.near[lane * apart..lane * apart + count];
                std::ptr::copy_nonoverlapping(symbols.as_ptr().cast(), near.as_mut_ptr(), count);
                for line in (0..apart).step_by(64) {
                    V::prefetch(symbols.as_ptr().cast::<u8>().wrapping_add(apart + line));
                }
            }
            for column in (0..count).step_by(16) {
                let mut tile = [V::splat(0); 16];
                for (i, vector) in tile.iter_mut().enumerate() {
                    *vector = V::gather16(self.near.as_ptr().add(i * apart + column), 16 * apart);
                }
                let tile = transpose16(tile);
                for (i, symbols) in tile.iter().enumerate() {
                    let (zero, one) = symbols.costs(&self.plan.quantiser);
                    self.costs[2 * (column + i)] = zero;
                    self.costs[2 * (column + i) + 1] = one;
                }
            }
        }
    }

    /// One step of any kind; returns the least metric.
    #[inline(always)]
    unsafe fn single(&mut self, costs: *const V, at: usize, least: V) -> V {
        // SAFETY: the caller's.
        unsafe {
            let trellis = &self.plan.trellis;
            branch_metrics(trellis, costs, least, self.branches[0].as_mut_ptr());
            let planes = trellis.planes();
            let decisions = self.decisions[at * planes..(at + 1) * planes].as_mut_ptr();
            let from = self.metrics[self.now].as_ptr();
            self.now ^= 1;
            let to = self.metrics[self.now].as_mut_ptr();
            step(trellis, from, to, self.branches[0].as_ptr(), decisions)
        }
    }

    /// Two steps of a code with both end taps; returns the least metric if `NORMALISE`.
    #[inline(always)]
    unsafe fn pair<const NORMALISE: bool>(&mut self, costs: *const V, at: usize, least: V) -> V {
        // SAFETY: the caller's.
        unsafe {
            let trellis = &self.plan.trellis;
            let first = self.branches[0].as_mut_ptr();
            let second = self.branches[1].as_mut_ptr();
            branch_metrics(trellis, costs, least, first);
            branch_metrics(trellis, costs.add(2 * trellis.outputs), V::splat(0), second);
            let planes = trellis.planes();
            let decisions = self.decisions[at * planes..(at + 2) * planes].as_mut_ptr();
            let from = self.metrics[self.now].as_ptr();
            self.now ^= 1;
            let to = self.metrics[self.now].as_mut_ptr();
            let decisions = [decisions, decisions.add(planes)];
            two_steps::<V, NORMALISE>(trellis, from, to, [first.cast_const(), second], decisions)
        }
    }

    /// After fewer than K - 1 steps from state 0 only the newest bits can be set: the other states get prohibitive costs.
    #[inline(always)]
    unsafe fn forbid(&mut self, done: usize, least: V) {
        let trellis = &self.plan.trellis;
        let known = trellis.constraint_length - 1 - done;
        // SAFETY: the caller's.
        let far = unsafe { V::splat(trellis.unreachable).add(least) };
        for (state, metric) in self.metrics[self.now].iter_mut().enumerate() {
            if state % (1 << known) != 0 {
                *metric = far;
            }
        }
    }

    /// Traces the window back into `self.bytes`, from state 0 or from the best state.
    #[inline(always)]
    unsafe fn trace_back(&mut self, window: Window, from_zero: bool) {
        let trellis = &self.plan.trellis;
        let metrics = self.metrics[self.now].as_ptr();
        let (decisions, bytes) = (self.decisions.as_ptr(), self.bytes.as_mut_ptr());
        // SAFETY: the caller's.
        unsafe {
            let zero = V::splat(0);
            let (state, high) = if from_zero { (zero, zero) } else { best_state(metrics, trellis.states) };
            if trellis.constraint_length > LARGEST_IN_A_BYTE {
                let (low, high) = (state.parts(), high.parts());
                let mut states = [0; 64];
                for (lane, state) in states.iter_mut().enumerate() {
                    *state = u32::from(u16::from_le_bytes([low[lane / 16][lane % 16], high[lane / 16][lane % 16]]));
                }
                return trace_each(trellis, &mut states[..V::LANES], window, decisions, bytes);
            }
            match trellis.constraint_length {
                3 => trace::<V, 3>(state, window, decisions, bytes),
                4 => trace::<V, 4>(state, window, decisions, bytes),
                5 => trace::<V, 5>(state, window, decisions, bytes),
                6 => trace::<V, 6>(state, window, decisions, bytes),
                7 => trace::<V, 7>(state, window, decisions, bytes),
                8 => trace::<V, 8>(state, window, decisions, bytes),
                _ => trace::<V, 9>(state, window, decisions, bytes),
            }
        }
    }

    /// Transposes `count` decoded bytes of every lane into the rows of `data`, from byte `at` of each.
    #[inline(always)]
    unsafe fn write(&mut self, count: usize, at: usize, rows: usize, data: &mut [u8]) {
        let row_bytes = self.plan.row_bytes;
        // SAFETY: the caller's.
        unsafe {
            for column in (0..count).step_by(16) {
                let wide = (count - column).min(16);
                let mut tile = [V::splat(0); 16];
                for (i, bytes) in tile.iter_mut().enumerate() {
                    *bytes = self.bytes[column + i].reverse_bits();
                }
                let tile = transpose16(tile);
                for (i, vector) in tile.iter().enumerate() {
                    for (part, bytes) in vector.parts()[..V::LANES / 16].iter().enumerate() {
                        let row = 16 * part + i;
                        let begin = row * row_bytes + at + column;
                        if row < rows && begin < data.len() {
                            let end = (begin + wide).min(data.len());
                            data[begin..end].copy_from_slice(&bytes[..end - begin]);
                        }
                    }
                }
            }
        }
    }
}
