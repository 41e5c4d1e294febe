//! Traffic sources: when the application of a flow writes how much.

use farlink_core::Time;

/// The sending application of a flow.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Always has more data.
    Bulk,
    /// Writes a file and closes.
    File { left: u64 },
    /// Writes at a constant rate.
    Cbr { interval: Time, payload_bytes: u32, left: u64 },
    /// Forwards the data of another connection.
    Relay,
}

impl Source {
    /// Total bytes to carry; `None` if it has no end.
    pub(super) fn asked_bytes(&self) -> Option<u64> {
        match *self {
            Source::Bulk | Source::Relay => None,
            Source::File { left } | Source::Cbr { left, .. } => (left != u64::MAX).then_some(left),
        }
    }
}

/// Length of a write of a bulk source: large, so that writes are rare, but small enough to be joined to the data left.
pub(super) const BULK_WRITE_BYTES: u32 = 1 << 31;
