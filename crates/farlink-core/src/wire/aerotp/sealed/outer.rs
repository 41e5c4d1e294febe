//! The outer header.

use bytes::{Bytes, BytesMut};
use farlink_fec::crc::crc_16_ibm_3740;

use crate::wire::Writer;
use crate::wire::aerotp::Refusal;
use crate::wire::aerotp::header::{Fields, MOST_WORDS};

use super::{KeyPhase, TAG_BYTES};

/// Length of the outer header.
pub const OUTER_BYTES: usize = 14;
/// The associated data of the AEAD: the outer header without its check. `[O14]`
const ASSOCIATED_BYTES: usize = 12;

/// The version of the outer header.
const VERSION: u8 = 1;
/// Bits of the key phase and of the words of parity.
const PHASE_BITS: u32 = 3;
const WORDS_BITS: u32 = 9;

/// Content behind an outer header. `[O2]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A message of the handshake.
    Hello,
    /// A segment sealed with a key that the first message of the handshake gives.
    Early,
    /// A segment sealed with a key of the whole handshake.
    Sealed,
    /// The receiver has no such connection.
    Reset,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Hello, Kind::Early, Kind::Sealed, Kind::Reset];

    /// Whether a segment stands behind the header.
    pub const fn is_segment(self) -> bool {
        matches!(self, Kind::Early | Kind::Sealed)
    }
}

/// The outer header: what can be read without a key. `[O1]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterHeader {
    /// The bytes behind it.
    pub kind: Kind,
    /// The phase of the key that sealed it.
    pub key_phase: KeyPhase,
    /// 32-bit words of parity, 0 to 256.
    pub parity_words: u16,
    /// Bytes between header and parity: of a segment, ciphertext and tag.
    pub content_bytes: u16,
    /// The connection, by a number that the receiver chose. `[O5]`
    pub connection_id: u32,
    /// The low 32 bits of the packet number.
    pub number: u32,
}

impl OuterHeader {
    /// Its bytes, with the check.
    pub fn encode(&self) -> [u8; OUTER_BYTES] {
        self.encode_as(VERSION)
    }

    /// As [`encode`](Self::encode), with another version, 0 to 3: what tells a peer that there is none in common.
    pub fn encode_as(&self, version: u8) -> [u8; OUTER_BYTES] {
        let mut bytes = [0; OUTER_BYTES];
        let mut out = Writer::new(&mut bytes);
        let version_and_kind = u16::from(version & 3) << 2 | self.kind as u16;
        let shape = version_and_kind << PHASE_BITS | u16::from(self.key_phase.number());
        out.extend((shape << WORDS_BITS | self.parity_words.min(MOST_WORDS)).to_be_bytes());
        out.extend(self.content_bytes.to_be_bytes());
        out.extend(self.connection_id.to_be_bytes());
        out.extend(self.number.to_be_bytes());
        let check = crc_16_ibm_3740(out.since(0));
        out.extend(check.to_be_bytes());
        bytes
    }

    /// Reads the header of a datagram and compares the lengths. Never panics. The check comes first: a wrong bit is
    /// more frequent than another version. `[O15]`
    ///
    /// # Errors
    /// If the check is wrong, the version is another one, more than 256 words are claimed, or the datagram has another
    /// length.
    pub fn decode(datagram: &[u8]) -> Result<Self, Refusal> {
        let header = Self::decode_first(datagram)?;
        if datagram.len() == header.packet_bytes() { Ok(header) } else { Err(Refusal::Length) } // `[O4]`
    }

    /// As [`decode`](Self::decode), for a datagram in which another packet may follow.
    fn decode_first(datagram: &[u8]) -> Result<Self, Refusal> {
        let mut fields = Fields(datagram);
        let (shape, content_bytes) = (fields.short()?, fields.short()?);
        let (connection_id, number, check) = (fields.word()?, fields.word()?, fields.short()?);
        if crc_16_ibm_3740(&datagram[..ASSOCIATED_BYTES]) != check {
            return Err(Refusal::Check);
        }
        let (version_and_kind, shape) = (shape >> (PHASE_BITS + WORDS_BITS), shape & 0x0fff);
        if version_and_kind >> 2 != u16::from(VERSION) {
            return Err(Refusal::Version); // `[O3]`
        }
        let header = OuterHeader {
            kind: Kind::ALL[usize::from(version_and_kind & 3)],
            key_phase: KeyPhase::new((shape >> WORDS_BITS) as u8),
            parity_words: shape & ((1 << WORDS_BITS) - 1),
            content_bytes,
            connection_id,
            number,
        };
        if header.parity_words > MOST_WORDS {
            return Err(Refusal::Field);
        }
        let least = if header.kind.is_segment() { TAG_BYTES } else { 0 };
        if datagram.len() < header.packet_bytes() || usize::from(content_bytes) < least {
            return Err(Refusal::Length);
        }
        Ok(header)
    }

    /// Length of the packet.
    fn packet_bytes(&self) -> usize {
        OUTER_BYTES + usize::from(self.content_bytes) + 4 * usize::from(self.parity_words)
    }
}

/// Version and kind of a packet with a right check, whatever its version: what all versions have in common. `[O3]`
pub fn foreign(datagram: &[u8]) -> Option<(u8, Kind)> {
    let header = datagram.first_chunk::<OUTER_BYTES>()?;
    let is_right = crc_16_ibm_3740(associated(header)).to_be_bytes() == header[ASSOCIATED_BYTES..];
    is_right.then(|| (header[0] >> 6, Kind::ALL[usize::from(header[0] >> 4 & 3)]))
}

/// The associated data of a datagram that begins with an outer header.
pub(super) fn associated(header: &[u8; OUTER_BYTES]) -> &[u8] {
    &header[..ASSOCIATED_BYTES]
}

/// A datagram with a readable outer header.
#[derive(Clone, Debug)]
pub struct OuterPacket {
    header: OuterHeader,
    bytes: BytesMut,
}

impl OuterPacket {
    /// The first step with a datagram that has arrived, without a key: reads its header.
    ///
    /// # Errors
    /// As [`OuterHeader::decode`].
    pub fn read(datagram: BytesMut) -> Result<Self, Refusal> {
        Ok(OuterPacket { header: OuterHeader::decode(&datagram)?, bytes: datagram })
    }

    /// As [`read`](Self::read), for a datagram that may hold a hello and another packet behind it. Removes the first packet
    /// from it; what remains is empty or the other packet. `[O23]`
    ///
    /// # Errors
    /// As [`OuterHeader::decode`]; the datagram is then unchanged.
    pub fn take_first(datagram: &mut BytesMut) -> Result<Self, Refusal> {
        let header = OuterHeader::decode_first(datagram)?;
        let bytes = header.packet_bytes();
        if header.kind != Kind::Hello && bytes != datagram.len() {
            return Err(Refusal::Length);
        }
        Ok(OuterPacket { header, bytes: datagram.split_to(bytes) })
    }

    /// Its header.
    pub fn header(&self) -> &OuterHeader {
        &self.header
    }

    /// The bytes behind the header, as they arrived: content and parity. For messages of other kinds than segments.
    pub fn behind(&self) -> &[u8] {
        &self.bytes[OUTER_BYTES..]
    }

    /// The header's bytes and what stands behind them, to be changed in place.
    pub(super) fn parts(&mut self) -> Option<(&[u8; OUTER_BYTES], &mut [u8])> {
        let (header, behind) = self.bytes.split_first_chunk_mut()?;
        Some((header, behind))
    }

    /// The content without its last bytes, the tag.
    pub(super) fn into_content(self, tag_bytes: usize) -> Bytes {
        let end = OUTER_BYTES + usize::from(self.header.content_bytes).saturating_sub(tag_bytes);
        let mut bytes = self.bytes.freeze();
        bytes.truncate(end);
        bytes.slice(OUTER_BYTES.min(bytes.len())..)
    }
}
