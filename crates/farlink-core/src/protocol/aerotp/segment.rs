//! An AeroTP segment, typed (Pathapati, figures 1 and 2; `docs/aerotp.md`, section 2).

use crate::endpoint::{Class, Damage, Integrity, Packet};
use crate::payload::Payload;

use super::distances::Distances;
use super::fec::{CRC_BYTES, Fec};
use super::mode::Mode;

/// Optional field of a segment that opens a connection.
pub(super) const OPENING_BYTES: u16 = 4;
/// Optional field of a segment with parity after its payload.
pub(super) const FEC_BYTES: u16 = 4;
/// Optional field of a segment whose class is not 0.
pub(super) const CLASS_BYTES: u16 = 4;
/// Optional field of a segment that describes a coded block.
pub(super) const REPAIR_BYTES: u16 = 16;
/// Optional field of a segment with the position at which the stream continues after data that was given up.
pub(super) const FORWARD_BYTES: u16 = 8;
/// Length of a MACK before its list.
const MACK_FIXED_BYTES: u32 = 16;
/// Largest number of edges in a MACK.
pub(super) const MOST_EDGES: usize = 64;

/// The flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// Opens a connection; the first optional field is the initial sequence number.
    pub const ASYN: Flags = Flags(0x80);
    /// The stream ends with this segment; the end takes one sequence number.
    pub const AFIN: Flags = Flags(0x40);
    /// Acknowledges; the payload is the list.
    pub const MACK: Flags = Flags(0x20);
    /// There is no such connection.
    pub const RESET: Flags = Flags(0x10);
    /// Parity follows the payload; an optional field says how much.
    pub const FEC: Flags = Flags(0x08);
    /// The payload is a repair symbol; optional fields describe its block.
    pub const REPAIR: Flags = Flags(0x04);
    /// A checksum of the payload is at the end.
    pub const CRC: Flags = Flags(0x02);
    /// More optional fields follow, by type and length.
    pub const EXTENDED: Flags = Flags(0x01);

    /// Whether any of these flags is set.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// The union of both.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

/// Edges of the received blocks: start and end of each, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    list: [u32; MOST_EDGES],
    len: u8,
}

impl Default for Edges {
    fn default() -> Self {
        Edges { list: [0; MOST_EDGES], len: 0 }
    }
}

impl Edges {
    /// Adds a block after all others; returns `false` if there is no room.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let at = usize::from(self.len);
        match self.list.get_mut(at..at + 2) {
            Some(place) => {
                place.copy_from_slice(&[start, end]);
                self.len += 2;
                true
            }
            None => false,
        }
    }

    /// The blocks, each with its first position and the one after its last.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + ExactSizeIterator + '_ {
        self.list[..usize::from(self.len)].chunks_exact(2).map(|edges| (edges[0], edges[1]))
    }

    /// All edges, in this order.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.list[..usize::from(self.len)]
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The content of a MACK in addition to its sequence number, which acknowledges all data before it (ACK number 0 of figure 2).
/// `[A2]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mack {
    /// The latest timestamp of the segments that have arrived.
    pub echo: u32,
    /// How long the receiver has held it, in microseconds: 4 bits of exponent (power of two), then 24 bits of mantissa.
    pub held: u32,
    /// Bytes that may be sent beyond the sequence number.
    pub window: u32,
    /// Segments that arrived with a congestion mark so far; wraps.
    pub marked: u16,
    /// Segments that arrived so far with an intact header and damage in the rest; wraps.
    pub damaged: u16,
    /// The blocks received after the sequence number (ACK numbers 1 to N).
    pub edges: Edges,
    /// Whether all data between the sequence number and the first block is missing.
    pub is_from_start: bool,
    /// Whether all data after the last block is missing.
    pub is_to_end: bool,
    /// Whether the list has counts instead of edges: its first pair is the number of data segments received so far (wraps) and 0,
    /// and each further pair is the sequence number of a coded block and the number of symbols that it still needs.
    pub counts_symbols: bool,
    /// Whether the list has distances instead of edges on the wire, which takes a quarter of the bytes. `[A11]`
    pub has_distances: bool,
}

impl Mack {
    /// Length of the list and of the fields before it, in bytes, behind ACK number 0, from which distances count.
    pub fn body_bytes(&self, ack: u32) -> u32 {
        let list = if self.has_distances {
            Distances::new(ack, self.edges.numbers()).bytes()
        } else {
            4 * self.edges.len() as u32
        };
        MACK_FIXED_BYTES + list
    }
}

/// A symbol of a coded block, and the block's description. A data segment may carry this too, with the number of its source
/// symbol, so that the receiver knows the block before the first repair symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Position of the block's first byte in the stream.
    pub start: u32,
    /// Length of the block in the stream, in bytes; the last source symbol is padded with zeros.
    pub bytes: u32,
    /// Length of a symbol, in bytes.
    pub symbol_bytes: u16,
    /// Number of source symbols.
    pub symbols: u16,
    /// Index of the symbol in its code; source symbols come first.
    pub index: u32,
}

/// An AeroTP segment. All segments carry the sender's timestamp, mode and tag, and a sequence number.
///
/// The content of a MACK is four times as long as the rest and stands apart, so that segments with data are short to move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment<D> {
    /// Chosen at random by its sender for this connection.
    pub tag: u16,
    /// The mode of the sender's stream.
    pub mode: Mode,
    /// Class of service, 0 to 7; lower goes first.
    pub class: u8,
    /// Its flags.
    pub flags: Flags,
    /// Bytes of headers on the wire: of lower layers, AeroTP's own, and optional fields.
    pub header_bytes: u16,
    /// 32-bit words of parity after the payload.
    pub fec_words: u16,
    /// Position of the payload's first byte in the stream; of a MACK, ACK number 0.
    pub sequence: u32,
    /// When it was sent, in ticks of the sender's clock (microseconds, or several).
    pub timestamp: u32,
    /// With ASYN: initial sequence number of the stream.
    pub opening: u32,
    /// With MACK: its content.
    pub mack: Option<Box<Mack>>,
    /// With REPAIR: the description of the block.
    pub repair: Option<Repair>,
    /// The position at which the stream continues: missing data before it was given up. `[V3]`
    pub forward: Option<u32>,
    /// With MACK: bytes of the stream that were skipped so far; wraps. `[V8]`
    pub skipped: Option<u32>,
    /// With MACK: the longest time by which later segments overtook one with new data, in ticks of the clock of those segments.
    /// `[A10]`
    pub overtaken_by: Option<u32>,
    /// Without MACK: how many bytes of MACKs the peer may send in a second; 0 for any number. `[M2]`
    pub mack_bytes_per_s: Option<u32>,
    /// Application data.
    pub payload: D,
}

impl<D> Segment<D> {
    /// The extended fields that are numbers, in the order of their types. `[L6]`
    #[inline]
    pub(crate) fn extended_numbers(&self) -> [Option<u32>; 4] {
        [self.forward, self.skipped, self.overtaken_by, self.mack_bytes_per_s]
    }

    /// Length of the extended fields including the byte with the number of words; 0 if there are none.
    #[inline]
    pub(crate) fn extended_bytes(&self) -> u16 {
        let numbers = self.extended_numbers().iter().flatten().count() as u16;
        let bytes = if self.class > 0 { 3 } else { 0 } + 6 * numbers;
        if bytes == 0 { 0 } else { (1 + bytes).next_multiple_of(4) }
    }
}

impl<D: Payload> Segment<D> {
    /// Whether its flags contradict its content. `[B3]`
    #[inline]
    pub(super) fn is_malformed(&self) -> bool {
        let is_mack = self.flags.has(Flags::MACK);
        is_mack != self.mack.is_some()
            || self.flags.has(Flags::REPAIR) != self.repair.is_some()
            || (is_mack && (self.forward.is_some() || self.mack_bytes_per_s.is_some()))
            || (!is_mack && (self.skipped.is_some() || self.overtaken_by.is_some()))
            || (is_mack && (self.flags.has(Flags::AFIN.with(Flags::REPAIR)) || !self.payload.is_empty()))
    }

    /// Bytes between header and trailer: the payload, or the list of a MACK.
    #[inline]
    fn body_bytes(&self) -> u32 {
        self.payload.len() as u32 + self.mack.as_ref().map_or(0, |mack| mack.body_bytes(self.sequence))
    }

    #[inline]
    fn check_bytes(&self) -> u32 {
        if self.flags.has(Flags::CRC) { CRC_BYTES } else { 0 }
    }
}

impl<D: Payload> Packet for Segment<D> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.body_bytes() + 4 * u32::from(self.fec_words) + self.check_bytes()
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload.len() as u32
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        if self.repair.as_ref().is_some_and(|repair| repair.index < u32::from(repair.symbols)) {
            return Some(self.sequence);
        }
        let is_stream = !self.payload.is_empty()
            && self.mode != Mode::Datagram
            && !self.flags.has(Flags(Flags::MACK.0 | Flags::REPAIR.0 | Flags::RESET.0));
        is_stream.then_some(self.sequence)
    }

    #[inline]
    fn stream_start(&self) -> Option<u32> {
        self.flags.has(Flags::ASYN).then_some(self.opening)
    }

    #[inline]
    fn is_datagram(&self) -> bool {
        self.mode == Mode::Datagram
    }

    #[inline]
    fn class(&self) -> Class {
        Class(self.class)
    }

    /// The header has a checksum of its own: a segment with a damaged header is dropped. Damage after the header is corrected by
    /// the code or detected by the payload's checksum; without both it remains undetected. `[F5]`
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        let header_bits = u32::from(self.header_bytes) * 8;
        let Some(&first) = damage.bits.first() else { return Some(Integrity::Intact) };
        if first < header_bits {
            return None;
        }
        let fec = Fec {
            payload_bytes: self.body_bytes(),
            parity_bytes: u32::from(self.fec_words) * 4,
            check_bytes: self.check_bytes(),
        };
        let behind = damage.bits.iter().map(|bit| bit - header_bits);
        if self.fec_words > 0 && fec.mends(behind) {
            return Some(Integrity::Mended { bits: u16::try_from(damage.bits.len()).unwrap_or(u16::MAX) });
        }
        let has_check = self.flags.has(Flags::CRC) || self.fec_words > 0;
        Some(if has_check { Integrity::PayloadDamaged } else { Integrity::Intact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correction::PacketCode;
    use crate::payload::Virtual;

    fn inspect(segment: &Segment<Virtual>, bits: &[u32]) -> Option<Integrity> {
        segment.inspect(&Damage { bits, code: PacketCode::None })
    }

    #[test]
    fn a_header_has_a_checksum_of_its_own() {
        let checked = Segment { header_bytes: 40, flags: Flags::CRC, payload: Virtual(100), ..Segment::default() };
        assert_eq!(checked.wire_bytes(), 144);
        assert_eq!(inspect(&checked, &[]), Some(Integrity::Intact));
        assert_eq!(inspect(&checked, &[319, 400]), None);
        assert_eq!(inspect(&checked, &[320]), Some(Integrity::PayloadDamaged));
        assert_eq!(inspect(&checked, &[1151]), Some(Integrity::PayloadDamaged), "the check itself");
        let unchecked = Segment { flags: Flags::default(), ..checked };
        assert_eq!(inspect(&unchecked, &[320]), Some(Integrity::Intact), "the damage is not detected");
    }

    #[test]
    fn parity_corrects_the_bytes_after_the_header() {
        let flags = Flags::CRC.with(Flags::FEC);
        let coded = Segment { header_bytes: 44, flags, fec_words: 1, payload: Virtual(100), ..Segment::default() };
        assert_eq!(coded.wire_bytes(), 152);
        assert_eq!(inspect(&coded, &[352, 353, 900]), Some(Integrity::Mended { bits: 3 }));
        assert_eq!(inspect(&coded, &[352, 360, 900]), Some(Integrity::PayloadDamaged));
        assert_eq!(inspect(&coded, &[8]), None);
    }

    #[test]
    fn a_mack_costs_its_list() {
        let mut mack = Mack::default();
        assert!(mack.edges.push(10, 20) && mack.edges.push(30, 40));
        let segment = Segment {
            header_bytes: 40,
            flags: Flags::MACK,
            mack: Some(Box::new(mack)),
            ..Segment::<Virtual>::default()
        };
        assert_eq!((segment.wire_bytes(), segment.stream_position()), (72, None));
        assert!(mack.edges.blocks().eq([(10, 20), (30, 40)]));
        while mack.edges.push(0, 0) {}
        assert_eq!(mack.edges.len(), MOST_EDGES);
    }
}
