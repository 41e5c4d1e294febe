//! Counters of custody.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of custody.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Streams that were passed on whole.
    pub(crate) finished_total: Count,
    /// Streams that were given up.
    pub(crate) given_up_total: Count,
    /// How many times a stream found no room.
    pub(crate) full_total: Count,
    /// How many times the store failed.
    pub(crate) failures_total: Count,
    /// How many times the disk was waited for.
    pub(crate) commits_total: Count,
}
