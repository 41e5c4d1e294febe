//! A convolutional code: an endless stream, decoded in windows that overlap.

use crate::awgn::{Channel, Noise};
use crate::convolutional::{Encoder, Ending, Puncturing};
use crate::modulation::{Decision, Modulation};
use crate::{Soft, bits};

use super::uncoded::lcm;
use super::{Convolutional, Decoder, GoesOn, Link, Outcome, deviation};

/// Approximate number of steps in a batch, and of those that a window decides.
const BATCH_STEPS: u64 = 64 * 8192;
const WINDOW_STEPS: u64 = 8192;
/// Least number of steps that share a stream of random numbers.
const BLOCK_STEPS: u64 = 192;

/// One endless stream of data, its blocks each with random data and noise of its own.
///
/// A window decides the bits of its blocks. It also reads some blocks before and after them, so that its decisions are those of a
/// decoder that has read the stream from its beginning.
#[derive(Clone)]
pub(super) struct Stream {
    encoder: Encoder,
    decoder: Decoder,
    channel: Channel,
    puncturing: Option<Puncturing>,
    outputs: usize,
    /// The received symbol of a 0 without noise.
    certain: Soft,
    /// Number of data bits of a block, such that its sent bits fill whole bytes and symbols.
    block_steps: usize,
    /// Bytes sent of a block.
    block_sent_bytes: usize,
    batch_blocks: u64,
    /// Number of blocks that a window decides; the number that it reads on each side follows.
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
        let window_blocks = WINDOW_STEPS.div_ceil(block_steps);
        let margin = (2 * coding.traceback() + 10 * coding.code.constraint_length() as usize) as u64;
        let margin_blocks = margin.div_ceil(block_steps);
        let window_steps = (2 * margin_blocks + window_blocks) * block_steps;
        let deviation = deviation(modulation, es_n0_db);
        Stream {
            encoder: Encoder::new(&coding.code),
            decoder: Decoder::new(coding, decision, deviation, window_steps as usize),
            outputs: coding.code.outputs(),
            certain: if decision == Decision::Hard { 1 } else { 127 },
            channel: Channel::new(modulation, decision, es_n0_db),
            puncturing: Some(pattern.clone()).filter(|pattern| pattern.rate() * pattern.outputs() as f64 > 1.0),
            block_steps: block_steps as usize,
            block_sent_bytes: pattern.sent_bits(block_steps as usize) / 8,
            batch_blocks: batch_steps / block_steps,
            window_blocks,
            margin_blocks,
        }
    }

    /// Data of a window that decides blocks from `first` on, and its received symbols.
    ///
    /// The stream is preceded by zeros that are received without noise, because the encoder begins in state 0.
    fn send_window(&self, seed: u64, first: u64, data: &mut Vec<u8>, symbols: &mut Vec<Soft>) {
        let block_bytes = self.block_steps / 8;
        let missing = self.margin_blocks.saturating_sub(first) as usize;
        let blocks = (2 * self.margin_blocks + self.window_blocks) as usize - missing;
        let steps = blocks * self.block_steps;

        let mut sent_data = vec![0; steps / 8];
        let mut noises = Vec::with_capacity(blocks);
        for (at, block) in sent_data.chunks_exact_mut(block_bytes).enumerate() {
            let mut noise = Noise::stream(seed, first + (missing + at) as u64 - self.margin_blocks);
            noise.fill(block);
            noises.push(noise);
        }
        let mut sent = self.encoder.encode(&sent_data, steps, Ending::Truncated);
        if let Some(puncturing) = &self.puncturing {
            sent = puncturing.puncture(&sent, steps);
        }
        data.resize(data.len() + missing * block_bytes, 0);
        data.append(&mut sent_data);
        symbols.resize(symbols.len() + missing * self.block_steps * self.outputs, self.certain);
        let mut carry = |received: &mut Vec<Soft>| {
            for (block, noise) in sent.chunks_exact(self.block_sent_bytes).zip(&mut noises) {
                self.channel.carry(block, block.len() * 8, noise, received);
            }
        };
        if let Some(puncturing) = &self.puncturing {
            let mut received = Vec::with_capacity(sent.len() * 8);
            carry(&mut received);
            symbols.append(&mut puncturing.depuncture(&received, steps).expect("what was sent is whole periods"));
        } else {
            carry(symbols);
        }
    }

    /// Wrong bits of some blocks from `first` on, counted from their first bit.
    fn wrong(&self, seed: u64, first: u64, blocks: u64, goes_on: GoesOn<'_>) -> Vec<u32> {
        let windows = blocks.div_ceil(self.window_blocks);
        let steps = (windows * (2 * self.margin_blocks + self.window_blocks)) as usize * self.block_steps;
        let (mut data, mut symbols) = (Vec::with_capacity(steps / 8), Vec::with_capacity(steps * self.outputs));
        for offset in (0..blocks).step_by(self.window_blocks as usize) {
            self.send_window(seed, first + offset, &mut data, &mut symbols);
        }
        let decoded = self.decoder.decode(&symbols, goes_on);
        let block_bytes = self.block_steps / 8;
        let window_bytes = (2 * self.margin_blocks + self.window_blocks) as usize * block_bytes;
        let decided =
            self.margin_blocks as usize * block_bytes..window_bytes - self.margin_blocks as usize * block_bytes;
        let windows = data.chunks_exact(window_bytes).zip(decoded.chunks_exact(window_bytes));
        let decided_bits = 8 * decided.len();
        let wrong = windows.enumerate().flat_map(|(window, (data, decoded))| {
            let wrong = bits::differences(&data[decided.clone()], &decoded[decided.clone()], decided_bits);
            wrong.map(move |at| (window * decided_bits + at) as u32)
        });
        let end = (blocks as usize * self.block_steps) as u32;
        wrong.take_while(|&at| at < end).collect()
    }
}

impl Link for Stream {
    fn batch_bits(&self) -> u64 {
        self.batch_blocks * self.block_steps as u64
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        self.run_while(seed, batch, &|| true)
    }

    fn run_while(&self, seed: u64, batch: u64, goes_on: GoesOn<'_>) -> Outcome {
        Outcome { wrong: self.wrong(seed, batch * self.batch_blocks, self.batch_blocks, goes_on), gave_up: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolutional::{Code, Viterbi};
    use crate::scheme::DecoderKind;

    #[test]
    fn windows_decide_as_one_decoder_over_all_would() {
        for puncturing in [None, Some(Puncturing::usual("2/3").unwrap())] {
            let code = Code::new(5, &[0o23, 0o35]).unwrap();
            let coding = Convolutional { puncturing, decoder: DecoderKind::Serial, ..Convolutional::new(code) };
            for (decision, es_n0_db) in [(Decision::Hard, 1.5), (Decision::Soft, -1.0)] {
                let stream = Stream::new(&coding, Modulation::Bpsk, decision, es_n0_db, 1);
                let blocks = 5 * stream.window_blocks;
                let in_windows = stream.wrong(9, 0, blocks, &|| true);
                let (mut data, mut symbols) = (Vec::new(), Vec::new());
                let mut whole = stream.clone();
                whole.window_blocks = blocks;
                whole.send_window(9, 0, &mut data, &mut symbols);
                let mut decoded = vec![0; data.len()];
                let mut viterbi = Viterbi::new(&coding.code, coding.traceback());
                viterbi.decode(&symbols, Ending::Truncated, &mut decoded).unwrap();
                let before = whole.margin_blocks as usize * whole.block_steps;
                let end = before + blocks as usize * whole.block_steps;
                let at_once = bits::differences(&data, &decoded, end).map(|at| (at - before) as u32);
                assert!(in_windows.len() > 20);
                assert_eq!(in_windows, at_once.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_batch_is_whole_frames_and_the_run_does_not_depend_on_it() {
        let coding = Convolutional::new(Code::new(5, &[0o23, 0o35]).unwrap());
        let stream = |frame| Stream::new(&coding, Modulation::Qpsk, Decision::Hard, 1.5, frame);
        let (plain, framed) = (stream(1), stream(10_200));
        assert_eq!(framed.batch_bits() % 10_200, 0);
        let both = plain.batch_bits().min(framed.batch_bits()) as u32;
        let wrong = |stream: &Stream| stream.run(4, 0).wrong.into_iter().filter(|&at| at < both).collect::<Vec<_>>();
        assert!(wrong(&plain).len() > 100);
        assert_eq!(wrong(&plain), wrong(&framed));
    }
}
