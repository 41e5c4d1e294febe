//! The content of a MACK, checked by the sender of the stream.

use crate::time::Time;

use super::segment::MOST_EDGES;

/// The content of a MACK, in 64-bit positions of the stream and checked against the sent data.
#[derive(Clone, Copy, Debug)]
pub(super) struct MackFields {
    /// All data before this position has arrived.
    pub(super) ack: u64,
    /// When the segment was sent whose timestamp it echoes, in ticks.
    pub(super) echo: u64,
    /// The round-trip time, without the time for which the receiver held the segment.
    pub(super) round_trip: Time,
    /// The position up to which data may be sent.
    pub(super) window_end: u64,
    pub(super) blocks: [(u64, u64); MOST_EDGES / 2],
    pub(super) block_count: usize,
    pub(super) is_from_start: bool,
    pub(super) is_to_end: bool,
    /// The window field of the MACK; in modes without acknowledgements, the number of corrected bits.
    pub(super) window: u32,
    /// Segments that arrived damaged so far.
    pub(super) damaged: u16,
    /// Start of each coded block and the number of symbols that it needs; empty if the MACK lists received blocks.
    pub(super) deficits: [(u64, u64); MOST_EDGES / 2],
    pub(super) deficit_count: usize,
    /// Whether it counts received segments instead of listing blocks; the count follows.
    pub(super) counts_segments: bool,
    pub(super) arrived: u32,
    /// Bytes that the peer has skipped so far, modulo 2^32, if any.
    pub(super) skipped: Option<u32>,
    /// The longest time by which a segment with new data was overtaken, in microseconds, if any was.
    pub(super) overtaken_by: Option<u64>,
}

impl MackFields {
    /// The blocks received after `ack`, in ascending order.
    pub(super) fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..self.block_count]
    }

    /// `[A9]` Whether it says if the data at a position after `ack` has arrived. It does between blocks, except at an
    /// empty block.
    pub(super) fn describes(&self, position: u64) -> bool {
        let at = self.blocks().partition_point(|block| block.1 <= position);
        let is_before_known = self.blocks().get(at).map_or(self.is_to_end, |block| block.0 < block.1);
        let is_behind_known = match at.checked_sub(1) {
            Some(before) => self.blocks()[before].0 < self.blocks()[before].1,
            None => self.is_from_start,
        };
        is_before_known && is_behind_known
    }

    /// How many bytes of the stream it reports as received; if it counts segments, they count as full ones.
    pub(super) fn arrived_bytes(&self, payload_bytes: u64) -> u64 {
        let beyond: u64 = self.blocks().iter().map(|(start, end)| end - start).sum();
        if self.counts_segments { u64::from(self.arrived) * payload_bytes } else { self.ack + beyond }
    }

    /// Whether data before a received block is missing, or may be.
    pub(super) fn has_gaps(&self) -> bool {
        self.counts_segments || self.block_count > 0
    }

    /// The coded blocks that the peer knows, and the number of symbols that each needs.
    pub(super) fn deficits(&self) -> &[(u64, u64)] {
        &self.deficits[..self.deficit_count]
    }
}
