//! A stream of blocks of bits that fail independently of each other; some bits of a failed block are wrong.

use std::collections::VecDeque;

use crate::rng::Rng;

/// The parameters of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedBlocks {
    /// Bits of a block; at least 1.
    pub(super) block_bits: u32,
    /// Probability that a block fails.
    pub(super) fails: f64,
    /// Probability that a bit of a failed block is wrong; at least one bit is.
    pub(super) wrong: f64,
}

impl FailedBlocks {
    /// The mean share of wrong bits.
    pub(super) fn bit_error_rate(&self) -> f64 {
        let bits = f64::from(self.block_bits);
        let none_drawn = libm::pow(1.0 - self.wrong, bits);
        self.fails * (self.wrong + none_drawn / bits)
    }

    /// Starts at a random bit of the stationary stream.
    pub(super) fn start(self, rng: &mut Rng) -> Blocks {
        let at = rng.below(u64::from(self.block_bits)) as u32;
        let mut blocks = Blocks { of: self, at, wrong: VecDeque::new() };
        if rng.chance(self.fails) {
            blocks.fail(rng);
            blocks.wrong.retain(|&bit| bit >= at);
        }
        blocks
    }
}

/// The stream at one bit.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    of: FailedBlocks,
    /// The place of the next bit in its block.
    at: u32,
    /// The wrong bits of this block from there on.
    wrong: VecDeque<u32>,
}

impl Blocks {
    /// Steps behind the next wrong bit; returns the number of correct bits before it, the largest number if there is none.
    pub(super) fn next_wrong(&mut self, rng: &mut Rng) -> u64 {
        let mut passed = 0;
        if self.wrong.is_empty() {
            let good = rng.failures_before_success(self.of.fails);
            let rest = u64::from(self.of.block_bits - self.at);
            passed = good.saturating_mul(u64::from(self.of.block_bits)).saturating_add(rest);
            self.at = 0;
            self.fail(rng);
        }
        // A failed block has a wrong bit.
        let bit = self.wrong.pop_front().unwrap_or(self.at);
        passed = passed.saturating_add(u64::from(bit - self.at));
        self.at = bit + 1;
        passed
    }

    /// Draws the wrong bits of a failed block.
    fn fail(&mut self, rng: &mut Rng) {
        let FailedBlocks { block_bits, wrong, .. } = self.of;
        let mut bit = rng.failures_before_success(wrong);
        while bit < u64::from(block_bits) {
            self.wrong.push_back(bit as u32);
            bit = bit.saturating_add(1).saturating_add(rng.failures_before_success(wrong));
        }
        if self.wrong.is_empty() {
            self.wrong.push_back(rng.below(u64::from(block_bits)) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    /// Positions of the wrong bits in the first `bits` bits.
    fn play(of: FailedBlocks, seed: u64, bits: u64) -> Vec<u64> {
        let mut rng = Rng::for_component(seed, 0, "blocks");
        let mut blocks = of.start(&mut rng);
        let (mut at, mut positions) = (0_u64, Vec::new());
        loop {
            at = at.saturating_add(blocks.next_wrong(&mut rng));
            if at >= bits {
                return positions;
            }
            positions.push(at);
            at += 1;
        }
    }

    #[test]
    fn a_stream_whose_blocks_never_fail_has_no_wrong_bit() {
        assert!(play(FailedBlocks { block_bits: 100, fails: 0.0, wrong: 0.1 }, 1, 1_000_000).is_empty());
    }

    #[test]
    fn packets_are_lost_as_often_as_their_blocks_fail() {
        // All bits of a failed block are wrong. Packets of 250 bits follow each other; in blocks of 100 bits, every second one lies
        // in 3 blocks, the others in 4, wherever the stream starts (but in 2 of 100 places).
        let of = FailedBlocks { block_bits: 100, fails: 0.2, wrong: 1.0 };
        let bits = 250 * 200_000;
        let mut hit = vec![false; 200_000];
        play(of, 7, bits).iter().for_each(|at| hit[(at / 250) as usize] = true);
        let share = hit.iter().filter(|&&hit| hit).count() as f64 / hit.len() as f64;
        let of_blocks = |blocks: i32| 1.0 - 0.8_f64.powi(blocks);
        let expected = (of_blocks(3) + of_blocks(4)) / 2.0;
        assert!((share - expected).abs() < 0.006, "{share} is not {expected}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_share_of_wrong_bits_is_the_expected_one(
            block_bits in 1u32..2000,
            fails in 0.05f64..1.0,
            wrong in 0.0f64..1.0,
            seed in 0u64..1000,
        ) {
            let of = FailedBlocks { block_bits, fails, wrong };
            let blocks = 4000.0;
            let bits = u64::from(block_bits) * blocks as u64;
            let seen = play(of, seed, bits).len() as f64 / bits as f64;
            // The number of failed blocks is binomial; each has about `wrong` of its bits, at least one.
            let expected = of.bit_error_rate();
            let each = expected / fails;
            let error = each * ((1.0 - fails) * fails / blocks).sqrt() + each * (fails / blocks / (each * f64::from(block_bits))).sqrt();
            prop_assert!((seen - expected).abs() < 6.0 * error + 2.0 / bits as f64, "{seen} is not {expected} within 6 times {error}");
        }

        /// A run that starts at any bit of a block sees the same stream.
        #[test]
        fn every_start_is_alike(first in 0usize..3, seed in 0u64..50) {
            let of = FailedBlocks { block_bits: 30, fails: 0.5, wrong: 0.3 };
            let (mut hits, runs) = (0, 2000);
            for run in 0..runs {
                hits += u32::from(play(of, seed * 10_000 + run, 3).contains(&(first as u64)));
            }
            let (expected, share) = (of.bit_error_rate(), f64::from(hits) / runs as f64);
            let error = (expected * (1.0 - expected) / runs as f64).sqrt();
            prop_assert!((share - expected).abs() < 5.0 * error, "{share} is not {expected}");
        }
    }
}
