//! Random numbers of the operating system.

use farlink_core::rng::RandomSource;
#[cfg(not(fuzzing))]
use ring::rand::{SecureRandom, SystemRandom};

#[cfg(fuzzing)]
pub(crate) use super::repeatable::fill;

/// Fills a buffer.
#[cfg(not(fuzzing))]
pub(crate) fn fill(out: &mut [u8]) {
    SystemRandom::new().fill(out).expect("the operating system has random numbers");
}

/// For tags and first sequence numbers, which strangers must not guess.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OsRandom;

impl RandomSource for OsRandom {
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        fill(&mut bytes);
        u64::from_ne_bytes(bytes)
    }
}
