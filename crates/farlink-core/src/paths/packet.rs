//! Packets between the two ends of a bundle over a path.

use crate::payload::Payload;
use crate::time::Time;

/// Lanes of a class. Packets are kept in order within a lane, and a flow has one lane.
pub const LANES: u8 = 16;

/// Bits of a packet's number on its path, as sent.
pub(crate) const NUMBER_BITS: u32 = 24;

/// Bits of a data packet's number in its lane, as sent.
pub(crate) const SEQUENCE_BITS: u32 = 20;

/// Bits of a timestamp, as sent.
pub(crate) const STAMP_BITS: u32 = 24;

/// The unit of timestamps and of delays: 32 us, so that 24 bits last 537 s.
const TICK_PS: u64 = 32_000_000;

/// A packet on a path.
///
/// Numbers and timestamps are the low bits that fit into their field; the receiver takes the value nearest to what it expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<D> {
    /// Number of the path, the same at both ends.
    pub path: u8,
    /// Which incarnation of the sender sent it; not 0.
    pub from: u16,
    /// For which incarnation of the receiver it is; 0 if the sender does not know it yet.
    pub to: u16,
    /// Number of the packet on this path and in this direction, 24 bits.
    pub number: u32,
    /// When it was sent, by the sender's clock.
    pub sent: Stamp,
    /// Its content.
    pub frames: Vec<Frame<D>>,
}

/// Part of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<D> {
    /// A packet of the user, or a piece of one.
    Data(Data<D>),
    /// Which packets of a path arrived.
    Acknowledgement(Acknowledgement),
    /// Asks for an immediate acknowledgement. Padded to a length, so that two of them show the rate.
    Probe {
        /// Number of zero bytes.
        padding: u16,
    },
    /// How long the receiver should wait for a missing packet, because it may be sent again.
    Hold(Ticks),
    /// The sender no longer uses this path: what is in flight to it there will not be acknowledged.
    Close {
        /// Number of the path.
        path: u8,
    },
}

/// A packet of the user, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<D> {
    /// Its class, below 8.
    pub class: u8,
    /// Its lane within the class, below [`LANES`].
    pub lane: u8,
    /// Number of the user's packet in its lane, 20 bits.
    pub sequence: u32,
    /// Position of the piece in the user's packet, in bytes.
    pub offset: u16,
    /// Whether the user's packet ends with this piece.
    pub is_last: bool,
    /// Bytes of the user's packet.
    pub payload: D,
}

/// Which packets of a path arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the path that they came over.
    pub path: u8,
    /// The highest number that arrived, 24 bits.
    pub largest: u32,
    /// When the packet with this number arrived, by the clock of the end that acknowledges it.
    pub received: Stamp,
    /// How long its acknowledgement was held back.
    pub held: Ticks,
    /// Ranges of other packets that arrived.
    pub ranges: Ranges,
}

/// Ranges of numbers, from the highest down: how many numbers before the largest arrived too, then by turns how many are missing and
/// how many arrived. Counts are at least 1, except the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(pub Vec<u16>);

/// An instant in units of 32 us, modulo 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub u32);

impl Stamp {
    /// The instant as sent.
    pub fn at(now: Time) -> Self {
        Stamp((now.as_ps() / TICK_PS) as u32 & ((1 << STAMP_BITS) - 1))
    }
}

/// A duration in units of 32 us, 24 bits: at most 537 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u32);

impl Ticks {
    /// The duration, rounded up, or the longest one that 24 bits hold.
    pub fn of(time: Time) -> Self {
        Ticks(u32::try_from(time.as_ps().div_ceil(TICK_PS)).unwrap_or(u32::MAX).min((1 << 24) - 1))
    }

    /// As a time.
    pub fn time(self) -> Time {
        Time::from_ps(u64::from(self.0) * TICK_PS)
    }
}

/// Ticks since the start of the clock.
pub(crate) fn ticks(now: Time) -> u64 {
    now.as_ps() / TICK_PS
}

/// The length of a tick in seconds.
pub(crate) const TICK_SECONDS: f64 = TICK_PS as f64 * 1e-12;

/// The number whose low `bits` are `low` that is nearest to `expected`; never below zero.
pub(crate) fn expand(low: u32, bits: u32, expected: u64) -> u64 {
    let round = 1u64 << bits;
    let candidate = (expected & !(round - 1)) | (u64::from(low) & (round - 1));
    if candidate + round / 2 < expected {
        candidate + round
    } else if candidate > expected + round / 2 && candidate >= round {
        candidate - round
    } else {
        candidate
    }
}

/// The low bits of a number.
pub(crate) fn low(number: u64, bits: u32) -> u32 {
    (number & ((1 << bits) - 1)) as u32
}

/// Length of the header of every packet: path, incarnations, number and timestamp.
pub const HEADER_BYTES: usize = 1 + 2 + 2 + 3 + 3;

/// Length of the header of a whole packet of the user that is the last frame.
pub const DATA_BYTES: usize = 1 + 3;

/// How much longer the header of a piece is.
pub const PIECE_BYTES: usize = 2;

/// Longest frame with an acknowledgement of `counts` counts.
pub(crate) const fn acknowledgement_bytes(counts: usize) -> usize {
    1 + 1 + 3 + 3 + 3 + 1 + 2 * counts
}

impl<D: Payload> Packet<D> {
    /// Length on the wire, in bytes.
    pub fn wire_bytes(&self) -> usize {
        let frames: usize = self.frames.iter().map(Frame::wire_bytes).sum();
        // Only the last frame has no length of its own.
        let lengths = self.frames.iter().rev().skip(1).filter(|frame| matches!(frame, Frame::Data(_))).count() * 2;
        HEADER_BYTES + frames + lengths
    }

    /// Whether the receiver has to acknowledge it.
    pub fn asks_for_acknowledgement(&self) -> bool {
        self.frames.iter().any(|frame| !matches!(frame, Frame::Acknowledgement(_)))
    }
}

impl<D: Payload> Frame<D> {
    /// Length on the wire as the last frame, in bytes.
    fn wire_bytes(&self) -> usize {
        match self {
            Frame::Data(data) => data.header_bytes() + data.payload.len(),
            Frame::Acknowledgement(acknowledgement) => {
                let long = acknowledgement.ranges.0.iter().filter(|&&count| count >= 0x80).count();
                acknowledgement_bytes(0) + acknowledgement.ranges.0.len() + long
            }
            Frame::Probe { padding } => 1 + 2 + usize::from(*padding),
            Frame::Hold(_) => 1 + 3,
            Frame::Close { .. } => 1 + 1,
        }
    }
}

impl<D: Payload> Data<D> {
    /// Whether it is a whole packet of the user.
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.is_last
    }

    fn header_bytes(&self) -> usize {
        DATA_BYTES + if self.is_whole() { 0 } else { PIECE_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_expand_to_the_nearest() {
        for expected in [0, 5, 0xff_ffff, 0x100_0000, 0x1_0000_0123, 7 << 40] {
            for offset in [-1_000_000_i64, -1, 0, 1, 8_000_000] {
                let Ok(number) = u64::try_from(expected as i64 + offset) else { continue };
                assert_eq!(expand(low(number, 24), 24, expected), number, "{expected} {offset}");
            }
        }
    }
}
