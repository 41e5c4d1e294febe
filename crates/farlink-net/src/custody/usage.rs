//! How much of the disk and of the memory all streams together take, and may take.

use std::sync::atomic::{AtomicU64, Ordering};

/// A piece of a stream counts as so many bytes at least: where each one is, is held in memory, and a peer may send single bytes.
pub(super) const LEAST_PIECE: u64 = 512;

/// Bytes of files, and pieces in them.
#[derive(Debug)]
pub(super) struct Usage {
    taken: AtomicU64,
    most: AtomicU64,
    pieces: AtomicU64,
}

impl Usage {
    pub(super) fn new(most: u64) -> Self {
        Usage { taken: AtomicU64::new(0), most: AtomicU64::new(most), pieces: AtomicU64::new(0) }
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

    /// Whether there is room for one more piece.
    pub(super) fn has_piece(&self) -> bool {
        self.pieces.load(Ordering::Relaxed) < self.most() / LEAST_PIECE
    }

    pub(super) fn add_pieces(&self, pieces: usize) {
        self.pieces.fetch_add(pieces as u64, Ordering::Relaxed);
    }

    pub(super) fn free_pieces(&self, pieces: usize) {
        self.pieces.fetch_sub(pieces as u64, Ordering::Relaxed);
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    /// Counts bytes for which room was not asked: those that were there at the start, and what makes room elsewhere.
    pub(super) fn add(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}
