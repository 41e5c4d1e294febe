//! Block codes over another link that carries their frames.

use std::collections::BTreeMap;

use crate::awgn::Noise;

use super::{GoesOn, Link, Outcome, ReedSolomon};

/// A block code, as a function from wrong received bits to wrong decoded bits.
pub(super) trait Frames: Send + Sync {
    /// Bits of a frame that are sent.
    fn sent_bits(&self) -> u64;

    /// Data bits of a frame.
    fn data_bits(&self) -> u64;

    /// Decodes a frame with these wrong bits, of which there is at least one, and calls `left` with each residual wrong data bit,
    /// in ascending order. Returns the number of words of the frame that could not be decoded. Seed, batch and frame identify the
    /// random data.
    fn decode(&self, wrong: &[u32], data: (u64, u64), left: &mut dyn FnMut(u32)) -> u64;
}

/// Frames of a block code over another link, whose batches are whole frames.
pub(super) struct Framed {
    frames: Box<dyn Frames>,
    inner: Box<dyn Link>,
}

impl Framed {
    /// # Panics
    /// If an inner batch is not a whole number of frames.
    pub(super) fn new(frames: Box<dyn Frames>, inner: Box<dyn Link>) -> Framed {
        assert_eq!(inner.batch_bits() % frames.sent_bits(), 0, "batches are whole frames");
        Framed { frames, inner }
    }

    fn frames_per_batch(&self) -> u64 {
        self.inner.batch_bits() / self.frames.sent_bits()
    }
}

impl Link for Framed {
    fn batch_bits(&self) -> u64 {
        self.frames_per_batch() * self.frames.data_bits()
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        self.run_while(seed, batch, &|| true)
    }

    fn run_while(&self, seed: u64, batch: u64, goes_on: GoesOn<'_>) -> Outcome {
        let sent_bits = self.frames.sent_bits() as u32;
        let data_bits = self.frames.data_bits() as u32;
        let inner = self.inner.run_while(seed, batch, goes_on);
        let mut outcome = Outcome { wrong: Vec::new(), gave_up: inner.gave_up };
        let mut in_frame = Vec::new();
        for wrong in inner.wrong.chunk_by(|a, b| a / sent_bits == b / sent_bits) {
            let frame = wrong[0] / sent_bits;
            in_frame.clear();
            in_frame.extend(wrong.iter().map(|at| at - frame * sent_bits));
            let number = batch * self.frames_per_batch() + u64::from(frame);
            let mut left = |at| outcome.wrong.push(frame * data_bits + at);
            outcome.gave_up += self.frames.decode(&in_frame, (seed, number), &mut left);
        }
        outcome
    }
}

/// Separates the random data of words from that of the link that carries them.
const DATA_STREAM: u64 = 0x005e_ed0f_da7a;

impl Frames for ReedSolomon {
    fn sent_bits(&self) -> u64 {
        8 * (self.code.n() * self.depth) as u64
    }

    fn data_bits(&self) -> u64 {
        8 * (self.code.k() * self.depth) as u64
    }

    /// Words without a wrong symbol need no decoder; all others are decoded, with random data.
    fn decode(&self, wrong: &[u32], (seed, frame): (u64, u64), left: &mut dyn FnMut(u32)) -> u64 {
        let mut wounds = BTreeMap::<usize, Vec<(usize, u8)>>::new();
        for at in wrong {
            let byte = *at as usize / 8;
            wounds.entry(byte % self.depth).or_default().push((byte / self.depth, 0x80 >> (at % 8)));
        }
        let mut noise = Noise::stream(seed ^ DATA_STREAM, frame);
        let (n, k) = (self.code.n(), self.code.k());
        let mut sent = vec![0; n];
        let mut wrong_left = Vec::new();
        let mut gave_up = 0;
        for (word, wounds) in wounds {
            let (data, parity) = sent.split_at_mut(k);
            noise.fill(data);
            self.code.encode(data, parity);
            let mut received = sent.clone();
            wounds.iter().for_each(|&(symbol, bits)| received[symbol] ^= bits);
            gave_up += u64::from(self.code.decode(&mut received, &[]).is_err());
            for at in crate::bits::differences(&sent, &received, 8 * k) {
                wrong_left.push(((at / 8 * self.depth + word) * 8 + at % 8) as u32);
            }
        }
        wrong_left.sort_unstable();
        wrong_left.into_iter().for_each(left);
        gave_up
    }
}

/// A group of blocks of an erasure code, data blocks first, each followed by its check.
pub(super) struct Group {
    pub(super) data_blocks: u64,
    pub(super) parity_blocks: u64,
    pub(super) block_bits: u64,
    pub(super) check_bits: u64,
}

impl Frames for Group {
    fn sent_bits(&self) -> u64 {
        (self.data_blocks + self.parity_blocks) * (self.block_bits + self.check_bits)
    }

    fn data_bits(&self) -> u64 {
        self.data_blocks * self.block_bits
    }

    /// An erasure code either recovers all lost blocks, if they are not more than its parity blocks, or leaves them unchanged, so
    /// that counting the damaged blocks is enough.
    fn decode(&self, wrong: &[u32], _: (u64, u64), left: &mut dyn FnMut(u32)) -> u64 {
        let length = (self.block_bits + self.check_bits) as u32;
        let lost = wrong.chunk_by(|a, b| a / length == b / length).count() as u64;
        if lost <= self.parity_blocks {
            return 0;
        }
        for at in wrong {
            let (block, inside) = (u64::from(at / length), u64::from(at % length));
            if block < self.data_blocks && inside < self.block_bits {
                left((block * self.block_bits + inside) as u32);
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reed_solomon::Code;

    fn left(group: &Group, wrong: &[u32]) -> (Vec<u32>, u64) {
        let mut all = Vec::new();
        let gave_up = group.decode(wrong, (0, 0), &mut |at| all.push(at));
        (all, gave_up)
    }

    #[test]
    fn a_word_corrects_up_to_t_symbols() {
        let frame = ReedSolomon { code: Code::conventional(15, 9).unwrap(), depth: 2 };
        let left = |symbols: &[(u32, u32)]| {
            let mut all = Vec::new();
            let mut wrong: Vec<u32> =
                symbols.iter().map(|(symbol, word)| (symbol * 2 + word) * 8 + symbol % 8).collect();
            wrong.sort_unstable();
            let gave_up = frame.decode(&wrong, (1, 2), &mut |at| all.push(at));
            (all, gave_up)
        };
        assert_eq!(left(&[(0, 0), (3, 0), (14, 0), (1, 1), (2, 1), (3, 1)]), (vec![], 0));
        let (all, gave_up) = left(&[(0, 0), (3, 0), (14, 0), (0, 1), (2, 1), (3, 1), (9, 1)]);
        assert_eq!((all, gave_up), (vec![8, 42, 59], 1));
    }

    #[test]
    fn a_group_recovers_as_many_blocks_as_it_has_parity() {
        let group = Group { data_blocks: 3, parity_blocks: 1, block_bits: 16, check_bits: 32 };
        assert_eq!((group.sent_bits(), group.data_bits()), (192, 48));
        // Two wrong bits in one block, one of them in the check.
        assert_eq!(left(&group, &[50, 70]), (vec![], 0));
        // Two damaged blocks: the wrong data bits remain.
        assert_eq!(left(&group, &[0, 50, 70]), (vec![0, 18], 1));
        // A data block's check and a parity block.
        assert_eq!(left(&group, &[20, 150]), (vec![], 1));
    }
}
