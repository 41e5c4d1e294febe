//! The typed TCP segment: the content of RFC 9293, with a generic payload.

use crate::endpoint::{Damage, Integrity, Packet};
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
    /// The sequence number after its last byte.
    pub right: u32,
}

impl SackBlock {
    /// Whether it represents no block.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.left == self.right
    }
}

/// Up to four selective-acknowledgement blocks (three with timestamps), the most recently changed first.
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

    /// The block if there is only one, or an empty one if there is none.
    #[inline(always)]
    pub fn at_most_one(&self) -> Option<SackBlock> {
        (self.count <= 1).then_some(self.blocks[0])
    }
}

impl From<SackBlock> for SackBlocks {
    /// This block alone; no block if it is empty.
    #[inline(always)]
    fn from(block: SackBlock) -> Self {
        let mut blocks = [SackBlock::default(); 4];
        blocks[0] = block;
        SackBlocks { blocks, count: u8::from(!block.is_empty()) }
    }
}

/// Octets of a bit vector that fit into the 40 octets of all options in addition to timestamps.
pub const MOST_SNACK_BYTES: usize = 22;

/// Selective negative acknowledgement (SNACK option of CCSDS 714.0-B-2): a hole, and the data missing after it, in blocks of the
/// maximum segment size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnackReport {
    /// Start of the hole, in blocks after the acknowledgement number.
    pub offset: u16,
    /// Its length, blocks.
    pub size: u16,
    vector: [u8; MOST_SNACK_BYTES],
    octets: u8,
}

impl SnackReport {
    /// A report of one hole.
    pub fn new(offset: u16, size: u16) -> Self {
        SnackReport { offset, size, ..SnackReport::default() }
    }

    /// The bit vector: one bit per block after the hole, the most significant first. A 0 means that a part of the block is
    /// missing; bits after the last 1 have no meaning.
    #[inline]
    pub fn vector(&self) -> &[u8] {
        &self.vector[..usize::from(self.octets)]
    }

    /// Sets the bit vector; what exceeds its capacity is cut off.
    pub fn set_vector(&mut self, vector: &[u8]) {
        let count = vector.len().min(MOST_SNACK_BYTES);
        self.vector = [0; MOST_SNACK_BYTES];
        self.vector[..count].copy_from_slice(&vector[..count]);
        self.octets = count as u8;
    }

    /// Sets the bits from `from` up to `to`; the vector is extended as needed.
    pub fn set_bits(&mut self, from: usize, to: usize, is_there: bool) {
        for bit in from..to.min(8 * MOST_SNACK_BYTES) {
            let mask = 0x80 >> (bit % 8);
            let octet = &mut self.vector[bit / 8];
            *octet = if is_there { *octet | mask } else { *octet & !mask };
            self.octets = self.octets.max((bit / 8 + 1) as u8);
        }
    }

    /// Drops octets without information, and octets beyond the first `most`.
    pub fn trim(&mut self, most: usize) {
        self.octets = self.octets.min(u8::try_from(most).unwrap_or(u8::MAX));
        while self.octets > 0 && self.vector[usize::from(self.octets) - 1] == 0 {
            self.octets -= 1;
        }
        self.vector[usize::from(self.octets)..].fill(0);
    }

    /// Runs of equal bits up to the last 1: first block after the hole, end, and whether the blocks are present.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64, bool)> + '_ {
        let is_there = |bit: usize| self.vector[bit / 8] & (0x80 >> (bit % 8)) != 0;
        let end = (0..8 * usize::from(self.octets)).rev().find(|&bit| is_there(bit)).map_or(0, |last| last + 1);
        let mut from = 0;
        std::iter::from_fn(move || {
            let kind = (from < end).then(|| is_there(from))?;
            let to = (from..end).find(|&bit| is_there(bit) != kind).unwrap_or(end);
            let run = (from as u64, to as u64, kind);
            from = to;
            Some(run)
        })
    }

    /// Octets of the option: kind, length, hole, bit vector.
    #[inline]
    pub fn option_bytes(&self) -> u16 {
        6 + u16::from(self.octets)
    }
}

/// Capabilities of an SCPS-TP endpoint (SCPS capabilities option of CCSDS 714.0-B-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScpsCapabilities {
    /// A set of the bits below.
    pub bits: u8,
    /// The identifier by which the peer shall name the connection in compressed headers.
    pub connection_id: u8,
}

impl ScpsCapabilities {
    /// Best-effort transport.
    pub const BEST_EFFORT: u8 = 0x80;
    /// Selective negative acknowledgements of one hole.
    pub const SNACK_SHORT: u8 = 0x40;
    /// Selective negative acknowledgements with a bit vector.
    pub const SNACK_LONG: u8 = 0x20;
    /// Header compression.
    pub const COMPRESSION: u8 = 0x10;
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
    /// Capabilities of SCPS-TP; `None` means not sent.
    pub scps: Option<ScpsCapabilities>,
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
    /// Bytes of headers on the wire as the scenario counts them: TCP and IP with their options, and the parity of a code around
    /// the segment.
    pub header_bytes: u16,
    /// Window field as on the wire, before scaling.
    pub window: u16,
    /// Timestamps, if agreed.
    pub timestamps: Option<Timestamps>,
    /// Options of a SYN.
    pub syn: SynOptions,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Selective negative acknowledgement.
    pub snack: Option<SnackReport>,
    /// Whether the receiver's link has recently seen damaged packets (corruption experienced option of CCSDS 714.0-B-2).
    pub corruption_experienced: bool,
    /// Application data.
    pub payload: D,
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

    /// The Internet checksum covers header and payload alike, so that uncorrected damage loses the segment.
    #[inline]
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.all_or_nothing(self.wire_bytes())
    }
}
