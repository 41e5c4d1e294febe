//! A convolutional code: an endless stream, decoded in windows that overlap.

use crate::awgn::{Channel, Noise};
use crate::convolutional::{Encoder, Ending, Puncturing, Viterbi};
use crate::modulation::{Decision, Modulation};
use crate::{Soft, bits};

use super::uncoded::lcm;
use super::{Convolutional, Link, Outcome};

/// About how many steps a batch has, and a window of it decides.
const BATCH_STEPS: u64 = 64 * 8192;
const WINDOW_STEPS: u64 = 8192;
/// Least number of steps that share a stream of random numbers.
const BLOCK_STEPS: u64 = 192;

/// One endless stream of data, its blocks each with random data and noise of its own.
///
/// A window decides the bits of its blocks, and reads some blocks before and after them, so that it decides as if it had read
/// the stream from its beginning.
pub(super) struct Stream {
    encoder: Encoder,
    viterbi: Viterbi,
    channel: Channel,
    puncturing: Option<Puncturing>,
    /// Data bits of a block, so many that what is sent of it fills whole bytes and symbols.
    block_steps: usize,
    /// Bytes sent of a block.
    block_sent_bytes: usize,
    batch_blocks: u64,
    /// Blocks that a window decides, and that it reads on each side.
    window_blocks: u64,
    margin_blocks: u64,
}

impl Stream {
    pub(super) fn new(
        coding: &Convolutional,
        modulation: Modulation,
        decision: Decision,
        es_n0_db: f64,
        frame_bits: u64,
    ) -> Stream {
        let pattern = coding.pattern();
        // Multiples of two, so that the frames of an outer code, which have even lengths, have small common multiples.
        let mut block_steps = 24 * pattern.period() as u64;
        while block_steps < BLOCK_STEPS {
            block_steps *= 2;
        }
        let batch_unit = lcm(block_steps, frame_bits);
        let batch_steps = BATCH_STEPS.div_ceil(batch_unit) * batch_unit;
        let margin = (2 * coding.traceback() + 10 * coding.code.constraint_length() as usize) as u64;
        Stream {
            encoder: Encoder::new(&coding.code),
            viterbi: Viterbi::new(&coding.code, coding.traceback()),
            channel: Channel::new(modulation, decision, es_n0_db),
            puncturing: coding.puncturing.clone(),
            block_steps: block_steps as usize,
            block_sent_bytes: pattern.sent_bits(block_steps as usize) / 8,
            batch_blocks: batch_steps / block_steps,
            window_blocks: WINDOW_STEPS.div_ceil(block_steps),
            margin_blocks: margin.div_ceil(block_steps),
        }
    }

    /// Wrong bits of a window that decides some blocks from `first` on, counted from its first bit.
    fn window(&self, seed: u64, first: u64, decides: u64) -> Vec<u32> {
        let lead = first.min(self.margin_blocks);
        let blocks = lead + decides + self.margin_blocks;
        let block_bytes = self.block_steps / 8;
        let steps = blocks as usize * self.block_steps;

        let mut data = vec![0; steps / 8];
        let mut noises = Vec::with_capacity(blocks as usize);
        for (at, block) in data.chunks_exact_mut(block_bytes).enumerate() {
            let mut noise = Noise::stream(seed, first - lead + at as u64);
            noise.fill(block);
            noises.push(noise);
        }
        let mut sent = self.encoder.encode(&data, steps, Ending::Truncated);
        if let Some(puncturing) = &self.puncturing {
            sent = puncturing.puncture(&sent, steps);
        }
        let mut received: Vec<Soft> = Vec::with_capacity(sent.len() * 8);
        for (block, noise) in sent.chunks_exact(self.block_sent_bytes).zip(&mut noises) {
            self.channel.carry(block, block.len() * 8, noise, &mut received);
        }
        if let Some(puncturing) = &self.puncturing {
            received = puncturing.depuncture(&received, steps).expect("what was sent is whole periods");
        }
        let mut decoded = vec![0; steps / 8];
        let result = self.viterbi.clone().decode(&received, Ending::Truncated, &mut decoded);
        result.expect("the symbols are whole steps and the data have room");

        let decided = lead as usize * block_bytes..(lead + decides) as usize * block_bytes;
        let decided_bits = decides as usize * self.block_steps;
        bits::differences(&data[decided.clone()], &decoded[decided], decided_bits).map(|at| at as u32).collect()
    }
}

impl Link for Stream {
    fn batch_bits(&self) -> u64 {
        self.batch_blocks * self.block_steps as u64
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        let mut wrong = Vec::new();
        for offset in (0..self.batch_blocks).step_by(self.window_blocks as usize) {
            let decides = self.window_blocks.min(self.batch_blocks - offset);
            let bits_before = offset as u32 * self.block_steps as u32;
            let window = self.window(seed, batch * self.batch_blocks + offset, decides);
            wrong.extend(window.into_iter().map(|at| at + bits_before));
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
        for puncturing in [None, Some(Puncturing::usual("2/3").unwrap())] {
            let coding = Convolutional { code: Code::new(5, &[0o23, 0o35]).unwrap(), puncturing, traceback: None };
            for (decision, es_n0_db) in [(Decision::Hard, 1.5), (Decision::Soft, -1.0)] {
                let stream = Stream::new(&coding, Modulation::Bpsk, decision, es_n0_db, 1);
                let in_windows = (0..60u32).flat_map(|window| {
                    let offset = window * 3 * stream.block_steps as u32;
                    stream.window(9, u64::from(window) * 3, 3).into_iter().map(move |at| at + offset)
                });
                let at_once = stream.window(9, 0, 180);
                assert!(at_once.len() > 20);
                assert_eq!(in_windows.collect::<Vec<_>>(), at_once);
            }
        }
    }

    #[test]
    fn a_batch_is_whole_frames_and_the_run_does_not_depend_on_it() {
        let coding = Convolutional { code: Code::new(5, &[0o23, 0o35]).unwrap(), puncturing: None, traceback: None };
        let stream = |frame| Stream::new(&coding, Modulation::Qpsk, Decision::Hard, 1.5, frame);
        let (plain, framed) = (stream(1), stream(10_200));
        assert_eq!(framed.batch_bits() % 10_200, 0);
        let both = plain.batch_bits().min(framed.batch_bits()) as u32;
        let wrong = |stream: &Stream| stream.run(4, 0).wrong.into_iter().filter(|&at| at < both).collect::<Vec<_>>();
        assert!(wrong(&plain).len() > 100);
        assert_eq!(wrong(&plain), wrong(&framed));
    }
}
