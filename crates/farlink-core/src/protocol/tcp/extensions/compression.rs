//! The size of compressed headers (SCPS-TP).
//!
//! A compressed header has the connection's identifier, a set of flags that says which fields follow, the fields, and
//! the checksum. Fields are present whole or not at all, never as differences. Therefore each header can be decoded by
//! itself, and the loss of one does not affect the others, unlike with RFC 1144. Only fields that cannot have changed
//! are left out: the acknowledgement in data to a peer that has sent none, the sequence number in acknowledgements of a
//! side that has sent none, and ports. SYN segments are not compressed.

use crate::endpoint::Packet;
use crate::payload::Payload;
use crate::protocol::tcp::segment::{Flags, Segment};

/// Acknowledgement number and window.
const ACKNOWLEDGEMENT_BYTES: u16 = 6;
const SEQUENCE_BYTES: u16 = 4;
/// Both values of the option, without its kind and length.
const TIMESTAMP_BYTES: u16 = 8;

/// Sizes of compressed headers on the wire, including those of the network layer.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Compressed {
    /// Size for a data segment: connection identifier, flags, sequence number, checksum.
    pub(in crate::protocol) data: u16,
    /// Size for an acknowledgement: connection identifier, flags, window, acknowledgement number, checksum.
    pub(in crate::protocol) ack: u16,
}

impl Compressed {
    /// Header size of a data segment in a one-way transfer.
    pub(super) fn data_bytes(self, has_timestamps: bool) -> u16 {
        self.data + if has_timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Header size of a segment with its options; `has_sent` and `has_heard` say whether data was sent and received since the
    /// SYN.
    pub(super) fn header_bytes<D: Payload>(self, segment: &Segment<D>, has_sent: bool, has_heard: bool) -> u16 {
        let is_data = segment.payload_bytes() > 0;
        let mut more = match (is_data, segment.flags.has(Flags::FIN)) {
            (true, _) if has_heard => ACKNOWLEDGEMENT_BYTES,
            (false, is_fin) if has_sent || is_fin => SEQUENCE_BYTES,
            _ => 0,
        };
        if segment.timestamps.is_some() {
            more += TIMESTAMP_BYTES;
        }
        // Other options follow their length unchanged, without padding.
        let mut options = segment.snack.map_or(0, |snack| snack.option_bytes());
        if segment.corruption_experienced {
            options += 2;
        }
        if !segment.sack.is_empty() {
            options += 2 + 8 * segment.sack.as_slice().len() as u16;
        }
        if options > 0 {
            more += 1 + options;
        }
        // These fields and ECN flags need a second octet of flags.
        const SECOND: u8 = Flags::FIN.0 | Flags::ECE.0 | Flags::CWR.0;
        if options > 0 || segment.flags.0 & SECOND != 0 {
            more += 1;
        }
        // Data begins at an even octet, as the checksum needs it.
        (if is_data { self.data } else { self.ack }) + more.next_multiple_of(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::protocol::tcp::segment::{SnackReport, Timestamps};

    #[test]
    fn a_compressed_header_has_only_the_fields_that_changed() {
        let compressed = Compressed { data: 28, ack: 30 };
        let data = Segment { flags: Flags::ACK, payload: Virtual(1000), ..Segment::default() };
        let ack = Segment { flags: Flags::ACK, payload: Virtual(0), ..Segment::default() };
        let snack = Some(SnackReport::new(0, 1));
        let timestamps = Some(Timestamps::default());
        let fin = Flags::ACK.with(Flags::FIN);
        for (segment, has_sent, has_heard, bytes) in [
            (data, true, false, 28),
            (data, true, true, 28 + 6),
            (Segment { timestamps, ..data }, true, false, 28 + 8),
            (Segment { flags: fin, ..data }, true, false, 28 + 2),
            (Segment { flags: Flags::ACK.with(Flags::CWR), ..data }, true, false, 28 + 2),
            (ack, false, true, 30),
            (ack, true, true, 30 + 4),
            (Segment { flags: fin, ..ack }, false, true, 30 + 4 + 2),
            (Segment { flags: Flags::ACK.with(Flags::ECE), ..ack }, false, true, 30 + 2),
            // A second octet of flags, the length of the options, six octets of them.
            (Segment { snack, ..ack }, false, true, 30 + 8),
            (Segment { snack, timestamps, ..ack }, false, true, 30 + 8 + 8),
            (Segment { corruption_experienced: true, ..ack }, false, true, 30 + 4),
            (Segment { corruption_experienced: true, snack, ..ack }, false, true, 30 + 10),
        ] {
            assert_eq!(compressed.header_bytes(&segment, has_sent, has_heard), bytes, "{segment:?}");
        }
    }
}
