//! Add, compare, select: one and two steps of the trellis in all lanes.
//!
//! The decision of state s (the oldest bit of the window that leads there) is bit (s & 3) + 4 * (most significant bit of
//! s) of plane s / 4 modulo the planes: both steps of a pair then fill whole bytes while they are in registers.

use super::lanes::Lanes;
use super::trellis::Trellis;

/// The metrics of a step's branches, less `least`, from the costs of a 0 and of a 1 at each output.
///
/// # Safety
/// As for [`Lanes`]; `costs` holds two vectors for each output, `to` as many as the trellis has metrics.
#[inline(always)]
pub(super) unsafe fn branch_metrics<V: Lanes>(trellis: &Trellis, costs: *const V, least: V, to: *mut V) {
    // SAFETY: the caller's.
    unsafe {
        let n = trellis.outputs;
        if let Some(words) = &trellis.words {
            for (at, word) in words.iter().enumerate() {
                let mut metric = (*costs.add((word & 1) as usize)).sub(least);
                for j in 1..n {
                    metric = metric.add(*costs.add(2 * j + (word >> j & 1) as usize));
                }
                *to.add(at) = metric;
            }
            return;
        }
        let (zero, one) = ((*costs).sub(least), (*costs.add(1)).sub(least));
        if n == 2 {
            let (second_zero, second_one) = (*costs.add(2), *costs.add(3));
            *to = zero.add(second_zero);
            *to.add(1) = one.add(second_zero);
            *to.add(2) = zero.add(second_one);
            *to.add(3) = one.add(second_one);
            return;
        }
        (*to, *to.add(1)) = (zero, one);
        for j in 1..n {
            let (zero, one) = (*costs.add(2 * j), *costs.add(2 * j + 1));
            for word in 0..1 << j {
                let metric = *to.add(word);
                *to.add(word) = metric.add(zero);
                *to.add(word + (1 << j)) = metric.add(one);
            }
        }
    }
}

/// One step, for any code. Returns the least of the new metrics.
///
/// # Safety
/// As for [`Lanes`]; `from` and `to` hold a vector for each state, `metrics` what [`branch_metrics`] wrote, `decisions`
/// one for each plane.
#[inline(always)]
pub(super) unsafe fn step<V: Lanes>(
    trellis: &Trellis,
    from: *const V,
    to: *mut V,
    metrics: *const V,
    decisions: *mut V,
) -> V {
    // SAFETY: the caller's.
    unsafe {
        let (states, planes) = (trellis.states, trellis.planes());
        let mut least = V::splat(255);
        // With eight states or fewer, the single plane has them in order.
        let (low, halves) = if states <= 8 { (states, 1) } else { (4, 2) };
        for at in 0..planes {
            let mut plane = V::splat(0);
            for half in 0..halves {
                for i in 0..low {
                    let state = 4 * at + i + half * states / 2;
                    let before = (2 * state) & (states - 1);
                    let [zero, one] = *trellis.branches.get_unchecked(state);
                    let a = (*from.add(before)).add(*metrics.add(zero as usize));
                    let b = (*from.add(before + 1)).add(*metrics.add(one as usize));
                    let metric = a.min(b);
                    *to.add(state) = metric;
                    least = least.min(metric);
                    plane = plane.mark_less(b, a, metric, V::splat(1 << (i + 4 * half)));
                }
            }
            *decisions.add(at) = plane;
        }
        least
    }
}

/// Two steps, for codes with both end taps and at least 16 states. Returns the least of the new metrics if `NORMALISE`.
///
/// Groups of four states stay in registers: 4i to 4i + 3 lead to 2i, 2i + 1 and these plus S/2, and these to i, i + S/4,
/// i + S/2 and i + 3S/4.
///
/// # Safety
/// As for [`step`], for each of two steps.
#[inline(always)]
pub(super) unsafe fn two_steps<V: Lanes, const NORMALISE: bool>(
    trellis: &Trellis,
    from: *const V,
    to: *mut V,
    metrics: [*const V; 2],
    decisions: [*mut V; 2],
) -> V {
    // SAFETY: the caller's.
    unsafe {
        let states = trellis.states;
        let mut least = V::splat(255);
        for j in 0..states / 16 {
            let (mut first, mut second) = ([V::splat(0); 2], [V::splat(0); 2]);
            // Unrolled by hand, so that the bit of every decision is a constant.
            let groups = Groups { trellis, from, to, metrics, at: 4 * j };
            groups.next::<0, NORMALISE>(&mut first[0], &mut second, &mut least);
            groups.next::<1, NORMALISE>(&mut first[0], &mut second, &mut least);
            groups.next::<2, NORMALISE>(&mut first[1], &mut second, &mut least);
            groups.next::<3, NORMALISE>(&mut first[1], &mut second, &mut least);
            *decisions[0].add(2 * j) = first[0];
            *decisions[0].add(2 * j + 1) = first[1];
            *decisions[1].add(j) = second[0];
            *decisions[1].add(j + states / 16) = second[1];
        }
        least
    }
}

/// Groups of four states, from group `at`.
#[derive(Clone, Copy)]
struct Groups<'a, V> {
    trellis: &'a Trellis,
    from: *const V,
    to: *mut V,
    metrics: [*const V; 2],
    at: usize,
}

impl<V: Lanes> Groups<'_, V> {
    /// [`Groups::four_states`], inlined or not as the vectors prefer.
    #[inline(always)]
    unsafe fn next<const G: usize, const NORMALISE: bool>(self, first: &mut V, second: &mut [V; 2], least: &mut V) {
        // SAFETY: the caller's; only plain Rust is kept out, which needs no instructions to be enabled.
        unsafe {
            if V::IN_PIECES {
                self.apart::<G, NORMALISE>(first, second, least);
            } else {
                self.four_states::<G, NORMALISE>(first, second, least);
            }
        }
    }

    #[inline(never)]
    unsafe fn apart<const G: usize, const NORMALISE: bool>(self, first: &mut V, second: &mut [V; 2], least: &mut V) {
        // SAFETY: the caller's.
        unsafe { self.four_states::<G, NORMALISE>(first, second, least) }
    }

    /// Two steps of one of the groups. Decisions go to the planes of the first and of the second step.
    ///
    /// # Safety
    /// As for [`two_steps`].
    #[inline(always)]
    unsafe fn four_states<const G: usize, const NORMALISE: bool>(
        self,
        first: &mut V,
        second: &mut [V; 2],
        least: &mut V,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let i = self.at + G;
            let quarter = self.trellis.states / 4;
            let branches = self.trellis.branches.as_ptr();
            let from = self.from.add(4 * i);
            let low = 2 * (G as u32 % 2);
            let metrics = both(self.metrics[0], branches.add(2 * i));
            let (a, b) = butterfly((*from, *from.add(1)), metrics, first, (low, low + 4));
            let metrics = both(self.metrics[0], branches.add(2 * i + 1));
            let (c, d) = butterfly((*from.add(2), *from.add(3)), metrics, first, (low + 1, low + 5));
            let bits = (G as u32, G as u32 + 4);
            let (w, y) = butterfly((a, c), both(self.metrics[1], branches.add(i)), &mut second[0], bits);
            let (x, z) = butterfly((b, d), both(self.metrics[1], branches.add(i + quarter)), &mut second[1], bits);
            *self.to.add(i) = w;
            *self.to.add(i + quarter) = x;
            *self.to.add(i + 2 * quarter) = y;
            *self.to.add(i + 3 * quarter) = z;
            if NORMALISE {
                *least = least.min(w.min(x)).min(y.min(z));
            }
        }
    }
}

/// The metrics of the two branches into a state, which are complements.
#[inline(always)]
unsafe fn both<V: Lanes>(metrics: *const V, branches: *const [u32; 2]) -> (V, V) {
    // SAFETY: the caller's.
    unsafe { (*metrics.add((*branches)[0] as usize), *metrics.add((*branches)[1] as usize)) }
}

/// From two states to two, with one metric and its complement; the decisions go to the given bits of `plane`.
#[inline(always)]
unsafe fn butterfly<V: Lanes>(
    (even, odd): (V, V),
    (metric, complement): (V, V),
    plane: &mut V,
    bits: (u32, u32),
) -> (V, V) {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (even.add(metric), odd.add(complement));
        let low = a.min(b);
        *plane = plane.mark_less(b, a, low, V::splat(1 << bits.0));
        let (a, b) = (even.add(complement), odd.add(metric));
        let high = a.min(b);
        *plane = plane.mark_less(b, a, high, V::splat(1 << bits.1));
        (low, high)
    }
}
