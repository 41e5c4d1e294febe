//! Frames, which stations exchange.

use crate::endpoint::{Damage, Integrity, Packet};
use crate::payload::Payload;

/// The kind of a frame and which of its fields are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// The frame has a number: it carries data, the parity of data, or `FIN` or `SKIP` instead of data.
    pub const DATA: Flags = Flags(1);
    /// `ack` is the next expected number: all frames before it have arrived.
    pub const ACK: Flags = Flags(2);
    /// With `ACK`: `ack` is the number of a single frame that has arrived.
    pub const SINGLE: Flags = Flags(4);
    /// `nak_count` frames from `nak` on are missing.
    pub const NAK: Flags = Flags(8);
    /// With `NAK`: the receiver holds a damaged copy of the frame and needs its parity.
    pub const HELD: Flags = Flags(16);
    /// The stream ends here.
    pub const FIN: Flags = Flags(32);
    /// Replaces data that was given up; `skipped_bytes` is its length.
    pub const SKIP: Flags = Flags(64);
    /// Asks which of the frames before `number` have arrived.
    pub const ENQUIRY: Flags = Flags(128);
    /// `timestamp` is the sender's clock.
    pub const TIMESTAMP: Flags = Flags(256);
    /// `echo` is the timestamp of the oldest frame that this acknowledgement answers.
    pub const ECHO: Flags = Flags(512);
    /// Parity is symbols of a rate-compatible mother code.
    pub const INCREMENTAL: Flags = Flags(1024);
    /// The connection was given up.
    pub const RESET: Flags = Flags(2048);

    /// The union of both.
    #[must_use]
    #[inline(always)]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    #[inline(always)]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A range of frames that have arrived: from `left` to before `right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Number of the first frame.
    pub left: u32,
    /// Number after the last frame.
    pub right: u32,
}

/// Blocks that an acknowledgement lists, the lowest first. They stand apart from the frame, because most frames have none and every
/// frame is moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    list: Vec<Block>,
}

impl Blocks {
    /// Length of an option that lists `blocks` blocks, in bytes: 8 each and 2 more (RFC 2018, section 3), or 0 without blocks.
    pub const fn option_bytes(blocks: u64) -> u64 {
        if blocks == 0 { 0 } else { 2 + 8 * blocks }
    }

    /// Makes room for `count` more blocks.
    pub fn reserve(&mut self, count: usize) {
        self.list.reserve_exact(count);
    }

    /// Appends a block.
    pub fn push(&mut self, block: Block) {
        self.list.push(block);
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        self.list.iter().copied()
    }
}

/// A frame: data, an acknowledgement, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame<D> {
    /// The kind of the frame.
    pub flags: Flags,
    /// Its number, as it is on the wire.
    pub number: u32,
    /// Position of its data in the sender's stream; wraps.
    pub position: u32,
    /// Bytes of data that were given up.
    pub skipped_bytes: u32,
    /// Acknowledged frame, or the one expected next.
    pub ack: u32,
    /// The first missing frame.
    pub nak: u32,
    /// Number of missing frames from there on.
    pub nak_count: u16,
    /// Which part of the mother code's parity it carries; 0 is the data.
    pub increment: u8,
    /// The sender's clock, in units of 2^16 ps.
    pub timestamp: u32,
    /// The peer's timestamp, echoed.
    pub echo: u32,
    /// Bytes of headers on the wire as the scenario counts them, options included.
    pub header_bytes: u16,
    /// Bytes of parity after the data.
    pub parity_bytes: u16,
    /// Blocks of frames that have arrived after those that `ack` covers.
    pub blocks: Blocks,
    /// Application data.
    pub payload: D,
}

impl<D: Payload> Packet for Frame<D> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.payload.len() as u32 + u32::from(self.parity_bytes)
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload.len() as u32
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        (!self.payload.is_empty()).then_some(self.position)
    }

    /// The header has a checksum of its own, so that it stays usable if only the rest of the frame is damaged. If the code around
    /// the packet fails, the wrong bits stay as they are.
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        if let Some(mended) = damage.all_or_nothing(self.wire_bytes()) {
            return Some(mended);
        }
        let header_bits = u32::from(self.header_bytes) * 8;
        if damage.bits.first().is_none_or(|&bit| bit < header_bits) {
            return None;
        }
        if self.flags.has(Flags::INCREMENTAL) {
            return Some(Integrity::PayloadErrors { symbols: wrong_symbols(damage.bits, header_bits) });
        }
        Some(Integrity::PayloadDamaged)
    }
}

/// Number of 16-bit symbols after the header that have wrong bits.
fn wrong_symbols(bits: &[u32], header_bits: u32) -> u16 {
    let mut last = None;
    let mut count = 0_u16;
    for symbol in bits.iter().map(|bit| (bit - header_bits) / 16) {
        count = count.saturating_add(u16::from(last != Some(symbol)));
        last = Some(symbol);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correction::PacketCode;
    use crate::payload::Virtual;

    fn inspect(flags: Flags, code: PacketCode, bits: &[u32]) -> Option<Integrity> {
        let frame = Frame { flags, header_bytes: 20, parity_bytes: 4, payload: Virtual(100), ..Frame::default() };
        frame.inspect(&Damage { bits, code })
    }

    #[test]
    fn a_damaged_payload_leaves_the_header() {
        let plain = |bits: &[u32]| inspect(Flags::DATA, PacketCode::None, bits);
        assert_eq!(plain(&[159, 500]), None, "the last bit of the header");
        assert_eq!(plain(&[160]), Some(Integrity::PayloadDamaged));
        assert_eq!(plain(&[]), Some(Integrity::Intact));
    }

    #[test]
    fn a_failed_code_keeps_an_intact_header() {
        let coded = |bits: &[u32]| inspect(Flags::DATA, PacketCode::Bits(1), bits);
        assert_eq!(coded(&[5]), Some(Integrity::Mended { bits: 1 }));
        assert_eq!(coded(&[5, 170]), None);
        assert_eq!(coded(&[165, 170]), Some(Integrity::PayloadDamaged));
    }

    #[test]
    fn symbols_of_two_bytes_are_counted_behind_the_header() {
        let flags = Flags::DATA.with(Flags::INCREMENTAL);
        let wrong = |bits: &[u32]| inspect(flags, PacketCode::None, bits);
        assert_eq!(wrong(&[160, 175]), Some(Integrity::PayloadErrors { symbols: 1 }));
        assert_eq!(wrong(&[175, 176, 990]), Some(Integrity::PayloadErrors { symbols: 3 }), "one of them in the parity");
        assert_eq!(wrong(&[3, 175]), None);
    }

    #[test]
    fn blocks_stay_in_order() {
        let all: Vec<Block> = (0..20).map(|n| Block { left: 2 * n, right: 2 * n + 1 }).collect();
        let mut blocks = Blocks::default();
        for (n, &block) in all.iter().enumerate() {
            assert_eq!((blocks.len(), blocks.is_empty()), (n, n == 0));
            blocks.push(block);
        }
        assert!(blocks.iter().eq(all));
    }
}
