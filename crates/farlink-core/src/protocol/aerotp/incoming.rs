//! The input of every receiver of a stream, and the memory that each uses.

use super::segment::Repair;

/// Largest number of out-of-order pieces that a receiver with a buffer of `buffer_bytes` keeps, so that many small pieces take
/// about as much memory as the buffer at most. `[B6]`, `[B9]`
pub(super) fn most_pieces(buffer_bytes: u64) -> usize {
    (buffer_bytes / BYTES_PER_PIECE) as usize + LEAST_PIECES
}

const LEAST_PIECES: usize = 64;
const BYTES_PER_PIECE: u64 = 64;

/// The data of a segment, with 64-bit positions of the stream.
#[derive(Clone, Debug)]
pub(super) struct Incoming<D> {
    pub(super) position: u64,
    pub(super) payload: D,
    pub(super) is_end: bool,
    /// The coded block that it belongs to; its start is a position, reduced to the bits of the field.
    pub(super) repair: Option<Repair>,
    pub(super) timestamp: u32,
    /// Whether its sender does not know yet that its segments arrive.
    pub(super) is_opening: bool,
}
