//! Protocol data units, typed. `farlink_core::wire` turns them into bytes and back.

use crate::endpoint::{Damage, Integrity, Packet};
use crate::payload::Payload;

/// The kind of a PDU. The numbers are SSCOP's PDU type fields (ITU-T Q.2110, table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Requests a connection (BGN).
    Begin = 1,
    /// Accepts a connection (BGAK).
    BeginAck = 2,
    /// Carries the end of the sender's stream (END).
    End = 3,
    /// Acknowledges an END (ENDAK).
    EndAck = 4,
    /// Data (SD).
    #[default]
    Data = 8,
    /// Asks the receiver for a STAT.
    Poll = 10,
    /// Answers a POLL.
    Stat = 11,
    /// Reports a gap without a POLL.
    Ustat = 12,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] =
        [Kind::Begin, Kind::BeginAck, Kind::End, Kind::EndAck, Kind::Data, Kind::Poll, Kind::Stat, Kind::Ustat];

    /// The kind of a number.
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A range of the stream: its first position, and the one after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First position.
    pub from: u32,
    /// Position after the last byte.
    pub to: u32,
}

/// The content of a STAT or USTAT in addition to the cumulative acknowledgement.
///
/// Within the range that it covers, the listed ranges are missing and everything else has arrived. A STAT that is too long for
/// one packet is sent in parts, each of which covers a range of its own; the parts stay valid if another one is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The range that it covers.
    pub covers: Range,
    /// The missing ranges within it, in ascending order.
    pub missing: Vec<Range>,
}

/// Length of the covered range in a STAT on the wire, in bytes.
pub(crate) const COVER_BYTES: u16 = 8;
/// Length of each missing range on the wire, in bytes.
pub(crate) const RANGE_BYTES: u16 = 8;

impl Report {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.covers.from == self.covers.to && self.missing.is_empty()
    }

    /// The bytes that it adds to a STAT on the wire.
    pub(crate) fn stat_bytes(&self) -> u16 {
        if self.is_empty() { 0 } else { COVER_BYTES + RANGE_BYTES * self.missing.len() as u16 }
    }
}

/// An STP packet. Its kind determines which fields are used; the others are zero. Positions count bytes of the stream and wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pdu<D> {
    /// The kind of the packet.
    pub kind: Kind,
    /// Bytes of headers on the wire (STP and IP), the report and the parity of a code around the packet included.
    pub header_bytes: u16,
    /// DATA: position of its first byte. POLL and END: position after the last byte sent. STAT and USTAT: position of the next
    /// expected byte.
    pub position: u32,
    /// POLL and STAT: the POLL's number.
    pub poll: u32,
    /// POLL: the sender's clock, in microseconds. STAT: the clock of the POLL that it answers.
    pub clock: u32,
    /// BEGIN, BEGIN-ACK, STAT and USTAT: receive window, in bytes from `position` on (from 0 in BEGIN and BEGIN-ACK).
    pub window: u32,
    /// STAT and USTAT: the missing ranges.
    pub report: Report,
    /// Application data.
    pub payload: D,
}

impl<D: Payload> Packet for Pdu<D> {
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
        (!self.payload.is_empty()).then_some(self.position)
    }

    /// The checksum covers header and payload: a packet with damage that the code cannot correct is dropped.
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.all_or_nothing(self.wire_bytes())
    }
}

/// The 64-bit position of a wrapped position, given a 64-bit one nearby.
#[inline]
pub(super) fn unwrap(position: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(position.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_of_sscop() {
        assert_eq!(Kind::ALL.map(|kind| kind as u8), [1, 2, 3, 4, 8, 10, 11, 12]);
        assert_eq!(Kind::from_number(9), None);
        assert!(Kind::ALL.into_iter().all(|kind| Kind::from_number(kind as u8) == Some(kind)));
    }

    #[test]
    fn positions_wrap() {
        assert_eq!(unwrap(5, 0xffff_fff0), 0x1_0000_0005);
        assert_eq!(unwrap(0xffff_fff0, 0x1_0000_0005), 0xffff_fff0);
        assert!((unwrap(u32::MAX, 0) as i64) < 0, "before the beginning");
    }
}
