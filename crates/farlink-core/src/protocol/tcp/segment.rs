//! The typed TCP segment: what RFC 9293 puts on the wire, with the payload left generic.

use crate::endpoint::{Damage, Ecn, Integrity, Packet};
use crate::express::PlainPacket;
use crate::payload::Payload;

/// Control bits (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// ECN-Echo: a packet arrived that was marked with congestion (RFC 3168, section 6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// A received range that the cumulative acknowledgement does not cover (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: u32,
    /// The sequence number right behind it.
    pub right: u32,
}

/// Up to four selective-acknowledgement blocks (three beside timestamps), the most recently changed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Appends a block; `false` if there is no room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = block;
        self.count += 1;
        true
    }

    /// The blocks in order.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Timestamps option (RFC 7323, section 3.2), in ticks of a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock, echoed.
    pub echo: u32,
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1); 0 means not sent.
    pub mss: u16,
    /// Shift of the window field (RFC 7323, section 2); `None` means not offered.
    pub window_shift: Option<u8>,
    /// Selective acknowledgement permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment<D> {
    /// Sequence number of the first payload byte (or of the SYN).
    pub seq: u32,
    /// Next sequence number expected from the peer.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Bytes of headers on the wire as the scenario counts them (TCP and IP with their options), with the parity of a code
    /// around the segment.
    pub header_bytes: u16,
    /// Window field as on the wire, before scaling.
    pub window: u16,
    /// Timestamps, if agreed.
    pub timestamps: Option<Timestamps>,
    /// Options of a SYN.
    pub syn: SynOptions,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Application data.
    pub payload: D,
}

/// A segment without options whose payload is only a length: what most of a simulation is made of.
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
    /// Congestion codepoint of the packet around it.
    pub ecn: Ecn,
}

impl<D: Payload> Segment<D> {
    /// Sequence numbers it occupies: payload, SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

impl<D: Payload> Packet for Segment<D> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.payload.len() as u32
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload.len() as u32
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        (!self.payload.is_empty()).then_some(self.seq)
    }

    /// The Internet checksum covers header and payload alike: damage that no code mends loses the segment.
    #[inline]
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.all_or_nothing(self.wire_bytes())
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

impl PlainPacket for PlainSegment {
    /// Data moves on by its length; acknowledgements, by what they acknowledge, which is nothing in duplicates.
    #[inline(always)]
    fn step_to(&self, next: &Self) -> Option<u32> {
        let step = if self.payload_bytes > 0 { self.payload_bytes } else { next.ack.wrapping_sub(self.ack) };
        (self.ahead(step, 1) == *next && step <= i32::MAX as u32).then_some(step)
    }

    #[inline(always)]
    fn ahead(&self, step: u32, n: u32) -> Self {
        let by = step.wrapping_mul(n);
        let (seq, ack) = if self.payload_bytes > 0 { (by, 0) } else { (0, by) };
        PlainSegment { seq: self.seq.wrapping_add(seq), ack: self.ack.wrapping_add(ack), ..*self }
    }
}
