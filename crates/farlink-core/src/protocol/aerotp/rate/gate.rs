//! Whether the path loses packets at every rate.

use std::collections::VecDeque;

use super::packets::{Packets, deviation};

/// Packets of a block, and number of blocks.
const BLOCK_PACKETS: f64 = 400.0;
const BLOCKS: usize = 16;
/// The latest of them, and what they may lose more than the least, apart from three standard deviations.
const LATE_BLOCKS: usize = 4;
const MORE: f64 = 0.05;
/// A block with no more loss is quiet; one may be by chance: of a channel that loses 0.02, one in 3,000.
const QUIET: f64 = 0.002;
const QUIET_BLOCKS: usize = 2;

/// The least loss of the latest blocks of packets: what the channel loses, as congestion comes and goes. `[P16]`
#[derive(Clone, Debug, Default)]
pub(super) struct LeastLoss {
    /// Of the present block.
    packets: Packets,
    blocks: VecDeque<Packets>,
    /// The least loss of the blocks, kept because every report asks for it.
    least: Option<f64>,
}

impl LeastLoss {
    /// Takes the packets of a phase whose rate was not above the base rate. Where they are lost in runs of mean length `run`, as many times
    /// more packets tell as much.
    pub(super) fn add(&mut self, packets: Packets, run: f64) {
        self.packets.add(packets);
        if self.packets.known() >= run * BLOCK_PACKETS {
            // Blocks from before it was known that losses come in runs are too short to tell anything.
            self.blocks.retain(|block| 2.0 * block.known() >= run * BLOCK_PACKETS);
            self.blocks.push_back(std::mem::take(&mut self.packets));
            if self.blocks.len() > BLOCKS {
                self.blocks.pop_front();
            }
            self.least = self.blocks.iter().map(Packets::lost_share).reduce(f64::min);
        }
    }

    /// The share; before there is a block, of what was seen so far. Zero before anything was.
    pub(super) fn share(&self) -> f64 {
        self.seen().unwrap_or(0.0)
    }

    /// Whether losses come and go: several blocks were quiet, or one of the first.
    pub(super) fn has_quiet_blocks(&self) -> bool {
        if self.blocks.len() < LATE_BLOCKS {
            return self.share() <= QUIET;
        }
        self.blocks.iter().filter(|block| block.lost_share() <= QUIET).count() >= QUIET_BLOCKS
    }

    /// Whether clearly more is lost of late: the rest is congestion.
    pub(super) fn is_exceeded(&self) -> bool {
        let least = self.share();
        let late = self.blocks.iter().rev().take(LATE_BLOCKS);
        let recent = late.map(Packets::lost_share).sum::<f64>() / LATE_BLOCKS as f64;
        self.blocks.len() >= LATE_BLOCKS && recent > least + MORE + 3.0 * deviation(recent, BLOCK_PACKETS)
    }

    /// The share, if anything was seen.
    pub(super) fn seen(&self) -> Option<f64> {
        self.least.or_else(|| (self.packets.known() > 0.0).then(|| self.packets.lost / self.packets.known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(blocks: &[f64]) -> LeastLoss {
        let mut least = LeastLoss::default();
        for share in blocks {
            least.add(Packets { arrived: BLOCK_PACKETS * (1.0 - share), lost: BLOCK_PACKETS * share }, 1.0);
        }
        least
    }

    /// One block without losses is no sign of congestion: where the channel loses 0.02, there is one in 3,000, a few in an hour at 10 Mb/s.
    /// The rate was CUBIC's for minutes after each.
    #[test]
    fn a_single_quiet_block_may_be_chance() {
        assert!(LeastLoss::default().has_quiet_blocks(), "nothing is known");
        assert!(after(&[0.0]).has_quiet_blocks() && !after(&[0.02]).has_quiet_blocks());
        assert!(after(&[0.02, 0.0, 0.02]).has_quiet_blocks() && !after(&[0.02, 0.0, 0.02, 0.03]).has_quiet_blocks());
        assert!(after(&[0.02, 0.0, 0.02, 0.002]).has_quiet_blocks());
        // In bursts of four, a block of four times as many packets tells as much, and shorter ones from before tell nothing.
        let mut bursts = after(&[0.02, 0.0, 0.02, 0.0]);
        let block = |lost: f64| Packets { arrived: BLOCK_PACKETS - lost, lost };
        [8.0, 0.0, 0.0, 12.0].iter().for_each(|&lost| bursts.add(block(lost), 4.0));
        assert!(!bursts.has_quiet_blocks());
        let long_ago = [&[0.0, 0.0][..], &[0.02; BLOCKS]].concat();
        assert!(!after(&long_ago).has_quiet_blocks());
    }
}
