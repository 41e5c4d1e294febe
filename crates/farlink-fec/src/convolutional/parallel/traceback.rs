//! Trace-back: from the decisions to the bits, all lanes at once.

use super::lanes::Lanes;
use super::trellis::Trellis;

/// The largest constraint length whose state fits a byte.
pub(super) const LARGEST_IN_A_BYTE: usize = 9;

/// The interval that is traced back, in steps of the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The first step whose decisions are stored.
    pub(super) base: usize,
    /// The trace-back starts after this many steps.
    pub(super) end: usize,
    /// The bytes of data (eight steps each) to decode.
    pub(super) bytes: (usize, usize),
}

impl Window {
    /// The time at which a register of `width` bits that shifts decisions in holds the given byte at its top, the state
    /// being its `constraint_length - 1` least significant bits, and that time's distance beyond the end.
    fn time(byte: usize, constraint_length: usize) -> usize {
        8 * byte + constraint_length - 1
    }
}

/// The state with the least metric, the first of several: its low and its high byte.
///
/// # Safety
/// As for [`Lanes`]; `metrics` holds a vector for each state.
#[inline(always)]
pub(super) unsafe fn best_state<V: Lanes>(metrics: *const V, states: usize) -> (V, V) {
    // SAFETY: the caller's.
    unsafe {
        let mut best = *metrics;
        let (mut low, mut high) = (V::splat(0), V::splat(0));
        for state in 1..states {
            let metric = *metrics.add(state);
            let less = best.min(metric);
            low = V::select_less(metric, best, less, V::splat(state as u8), low);
            high = V::select_less(metric, best, less, V::splat((state >> 8) as u8), high);
            best = less;
        }
        (low, high)
    }
}

/// Traces back from a state in every lane; writes the bytes to `bytes`, with the newest bit in the most significant position.
///
/// # Safety
/// As for [`Lanes`]; K is the trellis's and at most [`LARGEST_IN_A_BYTE`]; `decisions` holds the planes of every step from
/// the window's first byte, plus K - 1, to its end, `bytes` room for the window's.
#[inline(always)]
pub(super) unsafe fn trace<V: Lanes, const K: usize>(state: V, window: Window, decisions: *const V, bytes: *mut V) {
    // SAFETY: the caller's.
    unsafe {
        let planes = if K > 4 { 1 << (K - 4) } else { 1 };
        // The state, below the bits that were shifted out of it: newer ones, none of which is needed at the end.
        let mut register = state;
        let (first, mut byte) = window.bytes;
        let mut time = window.end;
        // The bits of the last bytes are all in the state.
        while byte > first && Window::time(byte - 1, K) >= time {
            byte -= 1;
            let beyond = Window::time(byte, K) - time;
            *bytes.add(byte - first) = shift_right(register, beyond);
        }
        while byte > first {
            byte -= 1;
            while time > Window::time(byte, K) {
                time -= 1;
                register = before::<V, K>(register, decisions.add((time - window.base) * planes));
            }
            *bytes.add(byte - first) = register;
        }
    }
}

/// The register one step earlier.
#[inline(always)]
unsafe fn before<V: Lanes, const K: usize>(register: V, planes: *const V) -> V {
    // SAFETY: the caller's.
    unsafe {
        // Bits 2 and up choose the plane.
        let decisions = match K {
            3 | 4 => *planes,
            5 => of_two(register, planes),
            6 => of_four(register, planes),
            7 => of_eight(register, planes),
            8 => of_sixteen(register, planes),
            _ => register.select_bit::<6>(of_sixteen(register, planes), of_sixteen(register, planes.add(16))),
        };
        let (low, high) = (V::splat(0x0f), V::splat(0xf0));
        let half = match K {
            3 => low,
            4 => register.select_bit::<2>(low, high),
            5 => register.select_bit::<3>(low, high),
            6 => register.select_bit::<4>(low, high),
            7 => register.select_bit::<5>(low, high),
            8 => register.select_bit::<6>(low, high),
            _ => register.select_bit::<7>(low, high),
        };
        register.append(decisions, register.bit_of_low_two().and(half))
    }
}

/// The plane that bit 2 selects, of two; the functions below use more bits and planes. They are no closures, because closures
/// would be compiled without the instructions.
#[inline(always)]
unsafe fn of_two<V: Lanes>(register: V, planes: *const V) -> V {
    // SAFETY: the caller's.
    unsafe { register.select_bit::<2>(*planes, *planes.add(1)) }
}

#[inline(always)]
unsafe fn of_four<V: Lanes>(register: V, planes: *const V) -> V {
    // SAFETY: the caller's.
    unsafe { register.select_bit::<3>(of_two(register, planes), of_two(register, planes.add(2))) }
}

#[inline(always)]
unsafe fn of_eight<V: Lanes>(register: V, planes: *const V) -> V {
    // SAFETY: the caller's.
    unsafe { register.select_bit::<4>(of_four(register, planes), of_four(register, planes.add(4))) }
}

#[inline(always)]
unsafe fn of_sixteen<V: Lanes>(register: V, planes: *const V) -> V {
    // SAFETY: the caller's.
    unsafe { register.select_bit::<5>(of_eight(register, planes), of_eight(register, planes.add(8))) }
}

/// Every byte shifted right.
#[inline(always)]
unsafe fn shift_right<V: Lanes>(value: V, by: usize) -> V {
    // SAFETY: the caller's.
    unsafe {
        let parts = value.parts().map(|part| part.map(|byte: u8| byte.checked_shr(by as u32).unwrap_or(0)));
        V::gather16(parts.as_ptr().cast(), 16)
    }
}

/// The same for any constraint length: lane by lane at every step, which hides the latency of the decisions. `states` gives the
/// state of each lane at the window's end.
///
/// # Safety
/// As for [`trace`].
#[inline(always)]
pub(super) unsafe fn trace_each<V: Lanes>(
    trellis: &Trellis,
    states: &mut [u32],
    window: Window,
    decisions: *const V,
    bytes: *mut V,
) {
    let (first, end) = window.bytes;
    let (decisions, bytes) = (decisions.cast::<u8>(), bytes.cast::<u8>());
    let (planes, half, mask) = (trellis.planes(), trellis.states / 2, trellis.states - 1);
    // The bits of each lane so far; the most significant bit of a state is the bit of the step that led there.
    let mut registers = [0u8; 64];
    for time in (8 * first..window.end).rev() {
        for (lane, (state, register)) in states.iter_mut().zip(&mut registers).enumerate() {
            let at = *state as usize;
            let newest = usize::from(at >= half);
            *register = *register << 1 | newest as u8;
            // The layout that `acs` describes.
            let (plane, bit) = (at / 4 % planes, at % 4 + 4 * newest);
            // SAFETY: within the decisions of the window's steps.
            let byte = unsafe { *decisions.add(((time - window.base) * planes + plane) * V::LANES + lane) };
            *state = ((2 * at) & mask) as u32 | u32::from(byte >> bit & 1);
        }
        if time.is_multiple_of(8) && time / 8 < end {
            // SAFETY: within the window's bytes.
            unsafe {
                let to = bytes.add((time / 8 - first) * V::LANES);
                std::ptr::copy_nonoverlapping(registers.as_ptr(), to, V::LANES);
            }
        }
    }
}
