//! The progress of long work, and requests to stop it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Called with the number of finished runs and of all runs; returns `Break` to request a stop. Collecting the error events of one
/// coding counts as 100 runs.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Counts runs, and passes on a request to stop.
pub(crate) struct Watch<'a> {
    progress: Progress<'a>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(progress: Progress<'a>) -> Self {
        Watch { progress, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    pub(crate) fn expect(&self, runs: u64) {
        self.total.fetch_add(runs, Ordering::Relaxed);
    }

    pub(crate) fn finish(&self, runs: u64) {
        self.done.fetch_add(runs, Ordering::Relaxed);
    }

    pub(crate) fn finish_one(&self) {
        self.finish(1);
    }

    pub(crate) fn report(&self, done: u64) -> ControlFlow<()> {
        (self.progress)(done, self.total.load(Ordering::Relaxed))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.report(self.done.load(Ordering::Relaxed)).is_break()
    }
}
