//! A convolutional code: an endless stream, decoded in windows that overlap.

use crate::awgn::{Channel, Noise};
use crate::convolutional::{Encoder, Ending, Viterbi};
use crate::modulation::{Decision, Modulation};
use crate::{Soft, bits};

use super::{Convolutional, Link, Outcome};

/// Windows of a batch, and about how many steps each decides.
const WINDOWS: u64 = 64;
const WINDOW_STEPS: usize = 8192;
/// About how many steps share a stream of random numbers.
const BLOCK_STEPS: usize = 256;

/// One endless stream of data, its blocks each with random data and noise of its own.
///
/// A window decides the bits of its blocks, and reads some blocks before and after them, so that it decides as if it had read
/// the stream from its beginning.
pub(super) struct Stream {
    encoder: Encoder,
    viterbi: Viterbi,
    channel: Channel,
    outputs: usize,
    /// Data bits of a block, so many that its coded bits fill whole bytes and symbols.
    block_steps: usize,
    /// Blocks that a window decides, and that it reads on each side.
    window_blocks: u64,
    margin_blocks: u64,
}

impl Stream {
    pub(super) fn new(coding: &Convolutional, modulation: Modulation, decision: Decision, es_n0_db: f64) -> Stream {
        let unit = 24;
        let block_steps = BLOCK_STEPS.div_ceil(unit) * unit;
        let margin = 2 * coding.traceback() + 10 * coding.code.constraint_length() as usize;
        Stream {
            encoder: Encoder::new(&coding.code),
            viterbi: Viterbi::new(&coding.code, coding.traceback()),
            channel: Channel::new(modulation, decision, es_n0_db),
            outputs: coding.code.outputs(),
            block_steps,
            window_blocks: WINDOW_STEPS.div_ceil(block_steps) as u64,
            margin_blocks: margin.div_ceil(block_steps) as u64,
        }
    }

    /// Wrong bits of a window that decides `window_blocks` blocks from `first` on, counted from its first bit.
    fn window(&self, seed: u64, first: u64) -> Vec<u32> {
        let lead = first.min(self.margin_blocks);
        let blocks = lead + self.window_blocks + self.margin_blocks;
        let block_bytes = self.block_steps / 8;
        let steps = blocks as usize * self.block_steps;

        let mut data = vec![0; steps / 8];
        let mut noises = Vec::with_capacity(blocks as usize);
        for (at, block) in data.chunks_exact_mut(block_bytes).enumerate() {
            let mut noise = Noise::stream(seed, first - lead + at as u64);
            noise.fill(block);
            noises.push(noise);
        }
        let coded = self.encoder.encode(&data, steps, Ending::Truncated);
        let mut received: Vec<Soft> = Vec::with_capacity(steps * self.outputs);
        for (block, noise) in coded.chunks_exact(block_bytes * self.outputs).zip(&mut noises) {
            self.channel.carry(block, block.len() * 8, noise, &mut received);
        }
        let mut decoded = vec![0; steps / 8];
        let result = self.viterbi.clone().decode(&received, Ending::Truncated, &mut decoded);
        result.expect("the symbols are whole steps and the data have room");

        let decided = lead as usize * block_bytes..(lead + self.window_blocks) as usize * block_bytes;
        let decided_bits = self.window_blocks as usize * self.block_steps;
        bits::differences(&data[decided.clone()], &decoded[decided], decided_bits).map(|at| at as u32).collect()
    }
}

impl Link for Stream {
    fn batch_bits(&self) -> u64 {
        WINDOWS * self.window_blocks * self.block_steps as u64
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        let mut wrong = Vec::new();
        for window in 0..WINDOWS {
            let first = (batch * WINDOWS + window) * self.window_blocks;
            let offset = (window * self.window_blocks) as u32 * self.block_steps as u32;
            wrong.extend(self.window(seed, first).into_iter().map(|at| at + offset));
        }
        Outcome { wrong, gave_up: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolutional::Code;

    #[test]
    fn windows_decide_as_one_decoder_over_all_would() {
        let coding = Convolutional { code: Code::new(5, &[0o23, 0o35]).unwrap(), traceback: None };
        for (decision, es_n0_db) in [(Decision::Hard, 0.0), (Decision::Soft, -2.5)] {
            let mut stream = Stream::new(&coding, Modulation::Bpsk, decision, es_n0_db);
            stream.window_blocks = 3;
            let in_windows: Vec<u32> = (0..40u32)
                .flat_map(|window| {
                    let offset = window * 3 * stream.block_steps as u32;
                    stream.window(9, u64::from(window) * 3).into_iter().map(move |at| at + offset)
                })
                .collect();
            stream.window_blocks = 120;
            let at_once = stream.window(9, 0);
            assert!(at_once.len() > 100);
            assert_eq!(in_windows, at_once);
        }
    }
}
