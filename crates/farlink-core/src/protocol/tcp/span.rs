//! A part of the stream, by its offsets.

/// A stretch of the stream to put into one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) len: u32,
}
