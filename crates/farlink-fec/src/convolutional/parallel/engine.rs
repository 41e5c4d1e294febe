//! Choice of the decoder: for each level of SIMD one with a frame in every lane, and one with a frame's states in the lanes.

use super::group::{Group, Plan};
use super::lanes::{Lanes, Portable};
#[cfg(target_arch = "x86_64")]
use super::lanes_avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::lanes_avx512::Avx512;
use super::states::States;
use crate::Soft;
use crate::simd::Simd;

/// From this constraint length on, the lanes contain the states of a frame, if there are instructions that move bytes between
/// them. Measured: at 10, frames are faster by a third; at 12, states by a fifth (at 15, three times); at 11 both are equal, but
/// states need only the fast caches and vary less on a busy machine. Plain Rust is always faster with frames.
const STATES_IN_LANES_FROM: usize = 11;

/// The content of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LanesHold {
    Frames,
    States,
}

impl LanesHold {
    /// The faster choice.
    fn best(constraint_length: usize, simd: Simd) -> LanesHold {
        if simd == Simd::Portable || constraint_length < STATES_IN_LANES_FROM {
            LanesHold::Frames
        } else {
            LanesHold::States
        }
    }
}

/// A decoder with one kind of vector.
#[derive(Clone, Debug)]
pub(super) enum Decoder<V> {
    Frames(Box<Group<V>>),
    States(Box<States<V>>),
}

impl<V: Lanes> Decoder<V> {
    fn new(plan: Plan, lanes_hold: LanesHold) -> Decoder<V> {
        match lanes_hold {
            LanesHold::Frames => Decoder::Frames(Box::new(Group::new(plan))),
            LanesHold::States => Decoder::States(Box::new(States::new(plan))),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Decoder::Frames(_) => V::LANES,
            Decoder::States(states) => states.rows(),
        }
    }

    /// # Safety
    /// As for [`Lanes`]; at least one row and at most [`Engine::rows`], each with the symbols of all steps.
    #[inline(always)]
    unsafe fn decode(&mut self, rows: &[&[Soft]], data: &mut [u8]) {
        // SAFETY: the caller's.
        match self {
            Decoder::Frames(group) => unsafe { group.decode(rows, data) },
            Decoder::States(states) => unsafe { states.decode(rows, data) },
        }
    }
}

/// A decoder for one level of SIMD.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Portable(Decoder<Portable>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Decoder<Avx2>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Decoder<Avx512>),
}

impl Engine {
    pub(super) fn new(plan: Plan, simd: Simd) -> Engine {
        let lanes_hold = LanesHold::best(plan.trellis.constraint_length, simd.min(Simd::best()));
        Engine::with(plan, simd, lanes_hold)
    }

    /// If lanes contain states, the constraint length is at least 9.
    pub(super) fn with(plan: Plan, simd: Simd, lanes_hold: LanesHold) -> Engine {
        match simd.min(Simd::best()) {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => Engine::Avx2(Decoder::new(plan, lanes_hold)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Gfni => Engine::Avx512(Decoder::new(plan, lanes_hold)),
            _ => Engine::Portable(Decoder::new(plan, lanes_hold)),
        }
    }

    /// Largest number of rows that are decoded at once.
    pub(super) fn rows(&self) -> usize {
        match self {
            Engine::Portable(decoder) => decoder.rows(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(decoder) => decoder.rows(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(decoder) => decoder.rows(),
        }
    }

    /// Decodes at least one row, and at most [`Engine::rows`].
    pub(super) fn decode(&mut self, rows: &[&[Soft]], data: &mut [u8]) {
        match self {
            // SAFETY: plain Rust needs no instructions; the callers give rows of the plan's length.
            Engine::Portable(decoder) => unsafe { decoder.decode(rows, data) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `with` chose this because the machine has AVX2; rows as above.
            Engine::Avx2(decoder) => unsafe { decode_avx2(decoder, rows, data) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `with` chose this because the machine has AVX-512 and GFNI; rows as above.
            Engine::Avx512(decoder) => unsafe { decode_avx512(decoder, rows, data) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn decode_avx2(decoder: &mut Decoder<Avx2>, rows: &[&[Soft]], data: &mut [u8]) {
    // SAFETY: the caller's; the instructions are enabled here.
    unsafe { decoder.decode(rows, data) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni")]
unsafe fn decode_avx512(decoder: &mut Decoder<Avx512>, rows: &[&[Soft]], data: &mut [u8]) {
    // SAFETY: the caller's; the instructions are enabled here.
    unsafe { decoder.decode(rows, data) }
}
