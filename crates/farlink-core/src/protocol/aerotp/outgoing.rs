//! The interface of every sender of a stream, and its counts.

use crate::time::Time;

use super::segment::Repair;

/// How much data of a stream may be written ahead of the sent data. A saturated source writes more than this at once, so it gets an
/// event when there is room again.
pub(super) const ROOM_BYTES: u64 = 1 << 30;

/// Data or a repair symbol to be sent, which the connection puts into a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing<D> {
    /// Position of its first byte in the stream.
    pub(super) position: u64,
    pub(super) payload: D,
    /// Whether the stream ends after it.
    pub(super) is_end: bool,
    /// Set for a repair symbol, and for data that carries the description of its coded block. The block's start is a position,
    /// reduced to the bits of the field.
    pub(super) repair: Option<Repair>,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Segments whose answer was overdue.
    pub(super) timeouts: u64,
    /// Segments that later ones overtook.
    pub(super) overtaken: u64,
    pub(super) peak_bytes: u64,
    pub(super) in_flight_bytes: u64,
    pub(super) latest_round_trip: Option<Time>,
}
