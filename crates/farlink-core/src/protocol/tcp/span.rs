//! A range of the stream, by its offsets.

/// A range of the stream for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) len: u32,
}
