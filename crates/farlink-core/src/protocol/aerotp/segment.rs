//! An AeroTP segment, typed (Pathapati, figures 1 and 2; `docs/aerotp.md`, section 2).

use crate::endpoint::{Class, Damage, Integrity, Packet};
use crate::express::PlainPacket;
use crate::payload::{Payload, Virtual};

use super::fec::{CRC_BYTES, Fec};
use super::mode::Mode;

/// Optional field of a segment that opens a connection.
pub(super) const OPENING_BYTES: u16 = 4;
/// Optional field of a segment with parity behind its payload.
pub(super) const FEC_BYTES: u16 = 4;
/// Optional field of a segment of another class than the first.
pub(super) const CLASS_BYTES: u16 = 4;
/// Optional field of a segment that describes a coded block.
pub(super) const REPAIR_BYTES: u16 = 16;
/// Optional field of a segment that says where the stream goes on, behind what was given up.
pub(super) const FORWARD_BYTES: u16 = 8;
/// Optional field of a MACK of a stream of which something was skipped.
pub(super) const SKIPPED_BYTES: u16 = 8;
/// What a MACK has before its list.
const MACK_FIXED_BYTES: u32 = 16;
/// Edges that a MACK lists, at most.
pub(super) const MOST_EDGES: usize = 64;

/// The flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// Opens a connection; the first optional field says where the stream begins.
    pub const ASYN: Flags = Flags(0x80);
    /// The stream ends with this segment; the end takes one number.
    pub const AFIN: Flags = Flags(0x40);
    /// Acknowledges; the payload is the list.
    pub const MACK: Flags = Flags(0x20);
    /// There is no such connection.
    pub const RESET: Flags = Flags(0x10);
    /// Parity stands behind the payload; an optional field says how much.
    pub const FEC: Flags = Flags(0x08);
    /// The payload is a repair symbol; optional fields say of what.
    pub const REPAIR: Flags = Flags(0x04);
    /// A check of the payload stands at the end.
    pub const CRC: Flags = Flags(0x02);
    /// More optional fields follow, by type and length.
    pub const EXTENDED: Flags = Flags(0x01);

    /// Whether it has any of these.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// With these as well.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

/// Edges of what has arrived: beginning and end of each block, in ascending order.
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
    /// Adds a block behind all others; `false` if there is no room.
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

    /// The blocks, each from its first byte to behind its last.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + ExactSizeIterator + '_ {
        self.list[..usize::from(self.len)].chunks_exact(2).map(|edges| (edges[0], edges[1]))
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What a MACK says besides its sequence number, which acknowledges everything before it (ACK number 0 of figure 2). `[A2]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mack {
    /// The latest timestamp among the segments that have arrived.
    pub echo: u32,
    /// For how long the receiver has held that: 24 bits of microseconds, behind five of a power of two.
    pub held: u32,
    /// Bytes that may be sent beyond the sequence number.
    pub window: u32,
    /// Segments that arrived with a congestion mark so far; wraps.
    pub marked: u16,
    /// Segments that arrived damaged so far, their header fine and the rest not; wraps.
    pub damaged: u16,
    /// What has arrived beyond it (ACK numbers 1 to N).
    pub edges: Edges,
    /// Nothing has arrived between the sequence number and the first block.
    pub is_from_start: bool,
    /// Nothing has arrived beyond the last block.
    pub is_to_end: bool,
    /// The list does not have edges: its first pair is how many segments with data have arrived so far (wraps) and 0, each
    /// further one the number where a coded block begins and how many symbols it still wants.
    pub counts_symbols: bool,
}

impl Mack {
    /// Bytes of the list with what stands before it.
    pub fn body_bytes(&self) -> u32 {
        MACK_FIXED_BYTES + 4 * self.edges.len() as u32
    }
}

/// A symbol of a coded block: which one, and of what. Data that goes out as it is may have this too, with the number of its
/// source symbol: so the receiver knows the block before the first repair symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Where in the stream the first byte of what it repairs stands.
    pub start: u32,
    /// How many bytes of the stream it is of; the last source symbol is filled up with zeros.
    pub bytes: u32,
    /// Bytes of each symbol.
    pub symbol_bytes: u16,
    /// Source symbols.
    pub symbols: u16,
    /// Number of the symbol in its code; source symbols come first.
    pub index: u32,
}

/// An AeroTP segment. The timestamp of the sender, its mode, its tag and the sequence number are in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment<D> {
    /// Chosen at random by its sender for this connection.
    pub tag: u16,
    /// The mode of the sender's stream.
    pub mode: Mode,
    /// Class of service, 0 to 7; lower goes first.
    pub class: u8,
    /// What it is.
    pub flags: Flags,
    /// Bytes of headers on the wire: below AeroTP, its own, and optional fields.
    pub header_bytes: u16,
    /// 32-bit words of parity behind the payload.
    pub fec_words: u16,
    /// Position of the payload's first byte in the stream; of a MACK, ACK number 0.
    pub sequence: u32,
    /// When it was sent, microseconds.
    pub timestamp: u32,
    /// With ASYN: where the stream begins.
    pub opening: u32,
    /// With MACK.
    pub mack: Option<Mack>,
    /// With REPAIR.
    pub repair: Option<Repair>,
    /// The stream goes on here: what is missing before was given up. `[V3]`
    pub forward: Option<u32>,
    /// With MACK: bytes of the stream that were skipped so far; wraps. `[V8]`
    pub skipped: Option<u32>,
    /// Application data.
    pub payload: D,
}

impl<D: Payload> Segment<D> {
    /// Without what few segments have.
    #[inline]
    pub fn plain(&self) -> PlainSegment {
        PlainSegment {
            tag: self.tag,
            mode: self.mode,
            class: self.class,
            flags: self.flags,
            header_bytes: self.header_bytes,
            fec_words: self.fec_words,
            sequence: self.sequence,
            timestamp: self.timestamp,
            opening: self.opening,
            payload_bytes: self.payload.len() as u32,
        }
    }

    /// Whether its flags contradict what it holds. `[B3]`
    pub(super) fn is_malformed(&self) -> bool {
        let is_mack = self.flags.has(Flags::MACK);
        is_mack != self.mack.is_some()
            || self.flags.has(Flags::REPAIR) != self.repair.is_some()
            || (is_mack && self.forward.is_some())
            || (!is_mack && self.skipped.is_some())
            || (is_mack && (self.flags.has(Flags::AFIN.with(Flags::REPAIR)) || !self.payload.is_empty()))
    }

    /// Bytes between header and trailer: the payload, or the list of a MACK.
    fn body_bytes(&self) -> u32 {
        self.payload.len() as u32 + self.mack.map_or(0, |mack| mack.body_bytes())
    }
}

impl<D: Payload> Packet for Segment<D> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        self.plain().with_body(self.body_bytes()).wire_bytes()
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload.len() as u32
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        match &self.repair {
            Some(repair) if repair.index < u32::from(repair.symbols) => Some(self.sequence),
            _ => self.plain().stream_position(),
        }
    }

    #[inline]
    fn stream_start(&self) -> Option<u32> {
        self.plain().stream_start()
    }

    #[inline]
    fn is_datagram(&self) -> bool {
        self.mode == Mode::Datagram
    }

    #[inline]
    fn class(&self) -> Class {
        Class(self.class)
    }

    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        self.plain().with_body(self.body_bytes()).inspect(damage)
    }
}

/// A segment without the list of a MACK, without what a repair symbol is of, and without what is said of data that was given up;
/// its payload is a length only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainSegment {
    /// See [`Segment`], also for what follows.
    pub tag: u16,
    /// Mode.
    pub mode: Mode,
    /// Class of service.
    pub class: u8,
    /// Flags.
    pub flags: Flags,
    /// Headers on the wire.
    pub header_bytes: u16,
    /// Parity words.
    pub fec_words: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Timestamp.
    pub timestamp: u32,
    /// Where the stream begins.
    pub opening: u32,
    /// Payload.
    pub payload_bytes: u32,
}

impl PlainSegment {
    fn with_body(self, bytes: u32) -> Self {
        PlainSegment { payload_bytes: bytes, ..self }
    }

    fn check_bytes(&self) -> u32 {
        if self.flags.has(Flags::CRC) { CRC_BYTES } else { 0 }
    }
}

impl From<&PlainSegment> for Segment<Virtual> {
    #[inline]
    fn from(plain: &PlainSegment) -> Self {
        let &PlainSegment {
            tag,
            mode,
            class,
            flags,
            header_bytes,
            fec_words,
            sequence,
            timestamp,
            opening,
            payload_bytes,
        } = plain;
        let payload = Virtual(payload_bytes);
        let (mack, repair, forward, skipped) = (None, None, None, None);
        Segment {
            tag,
            mode,
            class,
            flags,
            header_bytes,
            fec_words,
            sequence,
            timestamp,
            opening,
            mack,
            repair,
            forward,
            skipped,
            payload,
        }
    }
}

impl Packet for PlainSegment {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.payload_bytes + 4 * u32::from(self.fec_words) + self.check_bytes()
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    #[inline]
    fn stream_position(&self) -> Option<u32> {
        let is_stream = self.payload_bytes > 0
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

    /// The header has a check of its own: whatever is wrong in it loses the segment. What is wrong behind it, the code mends or
    /// the check finds; without both, nobody notices. `[F5]`
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        let header_bits = u32::from(self.header_bytes) * 8;
        let Some(&first) = damage.bits.first() else { return Some(Integrity::Intact) };
        if first < header_bits {
            return None;
        }
        let fec = Fec {
            payload_bytes: self.payload_bytes,
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

impl PlainPacket for PlainSegment {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correction::PacketCode;

    fn inspect(segment: &Segment<Virtual>, bits: &[u32]) -> Option<Integrity> {
        segment.inspect(&Damage { bits, code: PacketCode::None })
    }

    #[test]
    fn a_header_has_a_check_of_its_own() {
        let checked = Segment { header_bytes: 40, flags: Flags::CRC, payload: Virtual(100), ..Segment::default() };
        assert_eq!(checked.wire_bytes(), 144);
        assert_eq!(inspect(&checked, &[]), Some(Integrity::Intact));
        assert_eq!(inspect(&checked, &[319, 400]), None);
        assert_eq!(inspect(&checked, &[320]), Some(Integrity::PayloadDamaged));
        assert_eq!(inspect(&checked, &[1151]), Some(Integrity::PayloadDamaged), "the check itself");
        let unchecked = Segment { flags: Flags::default(), ..checked };
        assert_eq!(inspect(&unchecked, &[320]), Some(Integrity::Intact), "nobody notices");
    }

    #[test]
    fn parity_mends_what_stands_behind_the_header() {
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
        let segment =
            Segment { header_bytes: 40, flags: Flags::MACK, mack: Some(mack), ..Segment::<Virtual>::default() };
        assert_eq!((segment.wire_bytes(), segment.stream_position()), (72, None));
        assert!(mack.edges.blocks().eq([(10, 20), (30, 40)]));
        while mack.edges.push(0, 0) {}
        assert_eq!(mack.edges.len(), MOST_EDGES);
    }
}
