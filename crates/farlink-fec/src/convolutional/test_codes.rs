//! Codes, frames and channels for property tests.

use proptest::prelude::*;

use super::Code;
use crate::{Soft, bits};

/// Any code of up to `K = 9`, mostly 2 or 3 outputs.
pub(crate) fn any_code() -> impl Strategy<Value = Code> {
    any_code_of(3..=9)
}

/// Any code of these constraint lengths.
pub(crate) fn any_code_of(constraint_lengths: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Code> {
    let generators = (constraint_lengths, prop::collection::vec(any::<u32>(), 2..=5));
    generators.prop_filter_map("no code", |(constraint_length, mut generators)| {
        generators.iter_mut().for_each(|generator| *generator &= (1 << constraint_length) - 1);
        Code::new(constraint_length, &generators).ok()
    })
}

/// Packed random bits.
pub(crate) fn random_bits(rng: &mut impl rand::Rng, count: usize) -> Vec<u8> {
    let mut data: Vec<u8> = (0..bits::bytes_for(count)).map(|_| rng.next_u32() as u8).collect();
    (count..8 * data.len()).for_each(|at| bits::set(&mut data, at, false));
    data
}

/// Symbols of coded bits without noise.
pub(crate) fn symbols(coded: &[u8], count: usize, amplitude: Soft) -> Vec<Soft> {
    (0..count).map(|at| if bits::get(coded, at) { -amplitude } else { amplitude }).collect()
}
