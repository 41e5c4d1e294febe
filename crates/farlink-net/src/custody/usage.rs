//! How much of the disk all streams together take, and may take.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of files.
#[derive(Debug)]
pub(super) struct Usage {
    taken: AtomicU64,
    most: AtomicU64,
}

impl Usage {
    pub(super) fn new(most: u64) -> Self {
        Usage { taken: AtomicU64::new(0), most: AtomicU64::new(most) }
    }

    pub(super) fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes so many, if there is room.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let most = self.most();
        let more = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts bytes for which room was not asked: those that were there at the start, and what makes room elsewhere.
    pub(super) fn add(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}
