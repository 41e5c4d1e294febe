//! What the application of a flow writes, and when.

use farlink_core::Time;

/// What a flow's application does.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Always has more to send.
    Bulk,
    /// Writes a file and closes.
    File { left: u64 },
    /// Writes at a constant rate.
    Cbr { interval: Time, payload_bytes: u32, left: u64 },
    /// Passes on what another connection brings.
    Relay,
}

impl Source {
    /// Bytes that it is to carry; `None` if it has no end.
    pub(super) fn asked_bytes(&self) -> Option<u64> {
        match *self {
            Source::Bulk | Source::Relay => None,
            Source::File { left } | Source::Cbr { left, .. } => (left != u64::MAX).then_some(left),
        }
    }
}

/// Amount that a bulk source writes at a time: large enough to be rare, small enough that it joins what is left.
pub(super) const BULK_WRITE_BYTES: u32 = 1 << 31;
