//! The segment that trains are made of.

use crate::endpoint::{Damage, Ecn, Integrity, Packet};

use super::super::ack_fields::AckFields;
use super::super::segment::{Flags, SackBlock};
use super::train::Train;

/// A segment whose payload is only a length, without options except for one block received after a gap. Most segments of a
/// simulation are of this kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainSegment {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Next sequence number expected from the peer.
    pub ack: u32,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Headers, bytes on the wire.
    pub header_bytes: u16,
    /// Window field as on the wire.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// ECN codepoint of its packet.
    pub ecn: Ecn,
    /// Selective acknowledgement of one block; empty if there is none.
    pub sack: SackBlock,
}

impl PlainSegment {
    /// The step from this segment to `next` in a train; `None` if they are not of one train. Data advances by its length;
    /// acknowledgements by the newly acknowledged bytes (none in duplicates); those that report a block, by its growth.
    #[inline(always)]
    fn step_to(&self, next: &Self) -> Option<u32> {
        let step = if self.payload_bytes > 0 {
            self.payload_bytes
        } else if self.sack.is_empty() {
            next.ack.wrapping_sub(self.ack)
        } else {
            next.sack.right.wrapping_sub(self.sack.right)
        };
        (self.ahead(step, 1) == *next && step <= i32::MAX as u32).then_some(step)
    }

    /// The segment `n` steps later in a train.
    #[inline(always)]
    pub fn ahead(&self, step: u32, n: u32) -> Self {
        let by = step.wrapping_mul(n);
        let mut ahead = *self;
        if self.payload_bytes > 0 {
            ahead.seq = self.seq.wrapping_add(by);
        } else if self.sack.is_empty() {
            ahead.ack = self.ack.wrapping_add(by);
        } else {
            ahead.sack.right = self.sack.right.wrapping_add(by);
        }
        ahead
    }

    /// The fields that concern the sending direction.
    #[inline(always)]
    pub(super) fn ack_fields(&self) -> AckFields<'_> {
        let &PlainSegment { ack, window, flags, payload_bytes, .. } = self;
        let has_payload = payload_bytes > 0;
        let sack = if self.sack.is_empty() { &[] } else { std::slice::from_ref(&self.sack) };
        AckFields { ack, window, flags, has_payload, echo: None, sack, snack: None, has_corruption: false }
    }
}

impl Packet for PlainSegment {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.payload_bytes
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        (self.payload_bytes > 0).then_some(self.seq)
    }

    #[inline]
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.all_or_nothing(self.wire_bytes())
    }
}

impl Train<PlainSegment> {
    /// Appends `other`; returns `false`, without any effect, if it does not continue this train.
    #[inline(always)]
    pub fn couple(&mut self, other: &Self) -> bool {
        // The distance first: most trains that do not continue this one differ in it.
        let Some(gap) = self.gap_to(other) else { return false };
        let Some(step) = self.first.ahead(self.step, self.count - 1).step_to(&other.first) else { return false };
        let has_step = |train: &Self| train.count == 1 || train.step == step;
        let Some(count) = self.count.checked_add(other.count).filter(|_| has_step(self) && has_step(other)) else {
            return false;
        };
        (self.step, self.gap, self.count) = (step, gap, count);
        true
    }
}
