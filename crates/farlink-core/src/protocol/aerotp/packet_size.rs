//! The packet size of a connection: a state, because the path MTU may change.

use super::fec::{CRC_BYTES, MOST_WORDS};
use super::parity::Parity;
use super::segment::{FEC_BYTES, OPENING_BYTES, REPAIR_BYTES};

/// The largest packet on the wire, and what of it is left for data. `[S1]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PacketSize {
    /// Headers, payload, parity and checksum.
    pub(super) packet_bytes: u64,
    /// Headers of lower layers and AeroTP's own without optional fields.
    header_bytes: u64,
    /// Whether the mode describes blocks of packets.
    has_erasure: bool,
    /// The present parity of segments with data. `[S5]`
    pub(super) parity: Parity,
}

impl PacketSize {
    pub(super) fn new(packet_bytes: u64, header_bytes: u64, has_erasure: bool, parity: Parity) -> Self {
        PacketSize { packet_bytes, header_bytes, has_erasure, parity }
    }

    /// The same with another parity, or with as much of it as leaves room for data.
    pub(super) fn with_parity(self, parity: Parity) -> Self {
        let wanted = PacketSize { parity, ..self };
        let parity = match parity {
            Parity::Words(words) => Parity::Words(words.min(self.most_fec_words())),
            Parity::Share(_) if wanted.has_room() => parity,
            Parity::Share(_) => Parity::NONE,
        };
        PacketSize { parity, ..self }
    }

    /// Whether a full segment has room for data beside its parity, and for the description of a block if there are any.
    pub(super) fn has_room(self) -> bool {
        self.data_bytes() > if self.has_erasure { u64::from(REPAIR_BYTES) } else { 0 }
    }

    /// Payload of the smallest full segment, with its parity.
    pub(super) fn data_bytes(self) -> u64 {
        u64::from(self.parity.payload_bytes(self.payload_bytes() as u32))
    }

    /// Payload of a full segment without parity that opens a connection, which is the smallest full one.
    pub(super) fn payload_bytes(self) -> u64 {
        let overhead = self.header_bytes + u64::from(OPENING_BYTES) + u64::from(CRC_BYTES);
        self.packet_bytes.saturating_sub(overhead)
    }

    /// Length of a full symbol of a coded block: the room in the smallest full segment after its description.
    pub(super) fn symbol_bytes(self) -> u64 {
        self.payload_bytes().saturating_sub(u64::from(REPAIR_BYTES))
    }

    /// Largest number of parity words that leaves room for data.
    pub(super) fn most_fec_words(self) -> u16 {
        let description = if self.has_erasure { u64::from(REPAIR_BYTES) } else { 0 };
        let room = self.payload_bytes().saturating_sub(u64::from(FEC_BYTES) + description + 1) / 4;
        room.min(u64::from(MOST_WORDS)) as u16
    }

    /// Largest payload of a segment with the present parity, with or without the opening field.
    #[inline]
    pub(super) fn room(self, is_opening: bool) -> u32 {
        let opening = if is_opening { u32::from(OPENING_BYTES) } else { 0 };
        let overhead = self.header_bytes as u32 + opening + CRC_BYTES;
        self.parity.payload_bytes((self.packet_bytes as u32).saturating_sub(overhead))
    }

    /// Words of parity in a full segment.
    pub(super) fn full_words(self) -> u16 {
        match self.parity {
            Parity::Words(words) => words,
            Parity::Share(_) => self.parity.words(self.data_bytes() as u32),
        }
    }
}
