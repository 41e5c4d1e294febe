//! Block codes over whatever carries their frames.

use super::{Link, Outcome};

/// A block code, as what it makes of wrong bits.
pub(super) trait Frames: Send + Sync {
    /// Bits of a frame that are sent.
    fn sent_bits(&self) -> u64;

    /// Data bits of a frame.
    fn data_bits(&self) -> u64;

    /// Decodes a frame with these wrong bits, at least one, and hands over the wrong data bits that are left, ascending.
    /// Returns how many words of the frame were given up. Seed, batch and frame name the random data.
    fn decode(&self, wrong: &[u32], data: (u64, u64), left: &mut dyn FnMut(u32)) -> u64;
}

/// Frames of a block code over another link, whose batches are whole frames.
pub(super) struct Framed<F> {
    frames: F,
    inner: Box<dyn Link>,
}

impl<F: Frames> Framed<F> {
    /// # Panics
    /// If the inner batches are no whole frames.
    pub(super) fn new(frames: F, inner: Box<dyn Link>) -> Framed<F> {
        assert_eq!(inner.batch_bits() % frames.sent_bits(), 0, "batches are whole frames");
        Framed { frames, inner }
    }

    fn frames_per_batch(&self) -> u64 {
        self.inner.batch_bits() / self.frames.sent_bits()
    }
}

impl<F: Frames> Link for Framed<F> {
    fn batch_bits(&self) -> u64 {
        self.frames_per_batch() * self.frames.data_bits()
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        let sent_bits = self.frames.sent_bits() as u32;
        let data_bits = self.frames.data_bits() as u32;
        let inner = self.inner.run(seed, batch);
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

/// A group of blocks of an erasure code, data blocks first, each with its check behind it.
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

    /// Any code that rebuilds as many blocks as it has parity gives the right data or leaves them as they are, so that only
    /// the blocks need be counted.
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

    fn left(group: &Group, wrong: &[u32]) -> (Vec<u32>, u64) {
        let mut all = Vec::new();
        let gave_up = group.decode(wrong, (0, 0), &mut |at| all.push(at));
        (all, gave_up)
    }

    #[test]
    fn a_group_mends_as_many_blocks_as_it_has_parity() {
        let group = Group { data_blocks: 3, parity_blocks: 1, block_bits: 16, check_bits: 32 };
        assert_eq!((group.sent_bits(), group.data_bits()), (192, 48));
        // Two wrong bits in one block, one of them in the check.
        assert_eq!(left(&group, &[50, 70]), (vec![], 0));
        // Two blocks: what lies in the data stays.
        assert_eq!(left(&group, &[0, 50, 70]), (vec![0, 18], 1));
        // A data block's check and a parity block.
        assert_eq!(left(&group, &[20, 150]), (vec![], 1));
    }
}
