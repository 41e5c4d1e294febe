//! The packet size of a connection: a state, because the path MTU may change.

use super::fec::{CRC_BYTES, MOST_WORDS};
use super::segment::{FEC_BYTES, OPENING_BYTES, REPAIR_BYTES};

/// The largest packet on the wire, and what of it is left for data. `[S1]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketSize {
    /// Headers, payload, parity and checksum.
    pub(super) packet_bytes: u64,
    /// Headers of lower layers and AeroTP's own without optional fields.
    header_bytes: u64,
    /// Whether the mode describes blocks of packets.
    has_erasure: bool,
}

impl PacketSize {
    pub(super) fn new(packet_bytes: u64, header_bytes: u64, has_erasure: bool) -> Self {
        PacketSize { packet_bytes, header_bytes, has_erasure }
    }

    /// Payload of a full segment that opens a connection, which is the smallest full one.
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

    /// Largest payload of a segment with this parity, with or without the opening field.
    #[inline]
    pub(super) fn room(self, is_opening: bool, fec_words: u16) -> u32 {
        let opening = if is_opening { u32::from(OPENING_BYTES) } else { 0 };
        let overhead = self.header_bytes as u32 + opening + parity_bytes(fec_words) + CRC_BYTES;
        (self.packet_bytes as u32).saturating_sub(overhead)
    }
}

/// Bytes of a packet that `words` words of parity take.
fn parity_bytes(words: u16) -> u32 {
    if words == 0 { 0 } else { u32::from(FEC_BYTES) + 4 * u32::from(words) }
}
