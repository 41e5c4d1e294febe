//! Add, compare, select: two steps of the trellis, with neighbouring states in neighbouring lanes.
//!
//! States 4i to 4i + 3 lead to 2i, 2i + 1 and these plus S/2, and these to i, i + S/4, i + S/2 and i + 3S/4. Lane l of the
//! vectors of group g has i = g LANES + l, so only the loads move bytes between lanes. A code is linear: the outputs of a
//! window are those of its group's part and of its lane's part, added modulo 2. A step thus needs one vector of metrics
//! for each word of outputs that some group has for its part, whatever the number of states.

use super::super::lanes::Lanes;
use super::super::trellis::Trellis;
use super::symbol_costs::Table;

/// Positions of the metrics of a trellis's branches.
#[derive(Clone, Debug)]
pub(super) struct Butterflies<V> {
    /// For each group the positions (in bytes) of the metrics of its branches: into the four states after the first step,
    /// from the even and from the odd state, and the same for the second step, in the order of [`windows`].
    groups: Vec<[u32; 16]>,
    /// For each step and word, the positions of a lane's metric in both parts of a [`Table`].
    places: [Vec<[V; 2]>; 2],
    /// Whether there are more than four outputs.
    is_wide: bool,
    has_both_end_taps: bool,
}

/// The windows of the branches of the group that begins at i.
fn windows(i: u32, states: u32) -> [u32; 16] {
    let (first, second) = (4 * i, 2 * i);
    let from = [first, first + states, first + 2, first + 2 + states];
    let then = [second, second + states, second + states / 2, second + states / 2 + states];
    std::array::from_fn(|at| (if at < 8 { from[at / 2] } else { then[(at - 8) / 2] }) + at as u32 % 2)
}

impl<V: Lanes> Butterflies<V> {
    /// The trellis has at least 4 LANES states.
    pub(super) fn new(trellis: &Trellis) -> Butterflies<V> {
        let code = &trellis.code;
        let groups = trellis.states / (4 * V::LANES);
        let windows = |group: usize| windows((group * V::LANES) as u32, trellis.states as u32);
        let mut words: Vec<u32> = (0..groups).flat_map(windows).map(|window| code.output(window)).collect();
        words.sort_unstable();
        words.dedup();
        let place = |window: u32| {
            let at = words.binary_search(&code.output(window)).unwrap_or_default();
            (at * size_of::<V>()) as u32
        };
        let places = [4, 2].map(|stride| {
            let lanes = |word: u32, shift: u32| {
                let place = |lane| (code.output(stride * lane as u32) ^ word) >> shift & 15;
                vector(|lane| place(lane) as u8)
            };
            words.iter().map(|&word| [lanes(word, 0), lanes(word, 4)]).collect()
        });
        Butterflies {
            groups: (0..groups).map(|group| windows(group).map(place)).collect(),
            places,
            is_wide: trellis.outputs > 4,
            has_both_end_taps: trellis.has_both_end_taps,
        }
    }

    /// Number of vectors of metrics that a step needs.
    pub(super) fn words(&self) -> usize {
        self.places[0].len()
    }

    /// Two steps, after which every metric is reduced by `less`; returns the least new metric.
    ///
    /// # Safety
    /// As for [`Lanes`]; `from` and `to` hold a byte for each state, in order, and `metrics` room for
    /// [`Butterflies::words`] vectors for each step.
    #[inline(always)]
    pub(super) unsafe fn two_steps(
        &self,
        from: *const V,
        to: *mut V,
        tables: &[Table; 2],
        less: u8,
        metrics: &mut [Vec<V>; 2],
    ) -> u8 {
        // SAFETY: the caller's.
        unsafe {
            self.branch_metrics(0, &tables[0], less, &mut metrics[0]);
            self.branch_metrics(1, &tables[1], 0, &mut metrics[1]);
            let metrics = [metrics[0].as_ptr(), metrics[1].as_ptr()];
            if self.has_both_end_taps {
                self.all_groups::<true>(from, to, metrics).least()
            } else {
                self.all_groups::<false>(from, to, metrics).least()
            }
        }
    }

    #[inline(always)]
    unsafe fn branch_metrics(&self, step: usize, table: &Table, less: u8, to: &mut [V]) {
        let Table([first, second]) = *table;
        let first = first.map(|metric| metric.wrapping_sub(less));
        for (metric, place) in to.iter_mut().zip(&self.places[step]) {
            // SAFETY: the caller's.
            unsafe {
                *metric = V::lookup(first, place[0]);
                if self.is_wide {
                    *metric = metric.add(V::lookup(second, place[1]));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn all_groups<const BOTH_END_TAPS: bool>(&self, from: *const V, to: *mut V, metrics: [*const V; 2]) -> V {
        // SAFETY: the caller's.
        unsafe {
            let quarter = self.groups.len();
            let mut least = V::splat(255);
            for (at, places) in self.groups.iter().enumerate() {
                let [p, q, r, s] = V::load_by_fours(from.add(4 * at));
                let (a, b) = butterfly::<V, BOTH_END_TAPS, 0>(p, q, metrics[0], places);
                let (c, d) = butterfly::<V, BOTH_END_TAPS, 4>(r, s, metrics[0], places);
                let (w, y) = butterfly::<V, BOTH_END_TAPS, 8>(a, c, metrics[1], places);
                let (x, z) = butterfly::<V, BOTH_END_TAPS, 12>(b, d, metrics[1], places);
                *to.add(at) = w;
                *to.add(at + quarter) = x;
                *to.add(at + 2 * quarter) = y;
                *to.add(at + 3 * quarter) = z;
                least = least.min(w.min(x).min(y.min(z)));
            }
            least
        }
    }
}

/// From two states to two; the branches' positions begin at AT. With both end taps there are two metrics, each for two branches.
#[inline(always)]
unsafe fn butterfly<V: Lanes, const BOTH_END_TAPS: bool, const AT: usize>(
    even: V,
    odd: V,
    metrics: *const V,
    places: &[u32; 16],
) -> (V, V) {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (*metrics.byte_add(places[AT] as usize), *metrics.byte_add(places[AT + 1] as usize));
        let (c, d) = if BOTH_END_TAPS {
            (b, a)
        } else {
            (*metrics.byte_add(places[AT + 2] as usize), *metrics.byte_add(places[AT + 3] as usize))
        };
        (even.add(a).min(odd.add(b)), even.add(c).min(odd.add(d)))
    }
}

/// A vector from the bytes of its lanes.
fn vector<V: Lanes>(byte: impl Fn(usize) -> u8) -> V {
    let bytes: [u8; 64] = std::array::from_fn(|lane| if lane < V::LANES { byte(lane) } else { 0 });
    // SAFETY: a vector is LANES bytes, at most 64, of any value.
    unsafe { bytes.as_ptr().cast::<V>().read_unaligned() }
}
