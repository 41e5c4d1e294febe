//! Outcome and progress of a transfer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many failures and files left out a summary names; the others are counted.
const NAMED: usize = 1_000;

/// How far a transfer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The file that is being sent or received, below the receiver's directory. Show it by
    /// [`printable`](super::printable).
    pub file: Arc<Path>,
    /// Bytes that the receiver has, of all files.
    pub done_bytes: u64,
    /// Bytes of all files, without those that turned out not to be sent.
    pub total_bytes: u64,
    /// Bytes of `done_bytes` that were there before this transfer.
    pub resumed_bytes: u64,
}

/// Outcome of a transfer. It is the same at both sides, but for files left out, which only the sender knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were placed.
    pub placed: u64,
    /// Files that stood there before, byte for byte.
    pub already_there: u64,
    /// Bytes of file content that came over the stream in this transfer.
    pub carried_bytes: u64,
    /// Bytes that were there before and were not sent again.
    pub resumed_bytes: u64,
    /// Files and folders that failed.
    pub failed: Named<Failure>,
    /// Paths that the sender left out.
    pub left_out: Named<LeftOut>,
}

impl Summary {
    /// Exit code of a process: 0, or 2 when a file failed.
    pub const fn exit_code(&self) -> u8 {
        if self.failed.count == 0 { 0 } else { 2 }
    }
}

/// A file or folder that failed while the others went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which one, below the receiver's directory.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

/// A path that a sender does not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which one, on the sender.
    pub path: PathBuf,
    /// Its kind: "a symbolic link".
    pub what: &'static str,
}

/// Things of which there may be very many: their number, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// How many there were.
    pub count: u64,
    /// The first 1,000.
    pub first: Vec<T>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named { count: 0, first: Vec::new() }
    }
}

impl<T> Named<T> {
    pub(super) fn push(&mut self, thing: T) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(thing);
        }
    }

    pub(super) fn extend(&mut self, other: Named<T>) {
        self.count += other.count;
        let room = NAMED.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }
}

/// The progress of a transfer, as a side counts it.
pub(super) struct Counter {
    now: Progress,
}

impl Counter {
    pub(super) fn new(total_bytes: u64) -> Self {
        Counter { now: Progress { file: Path::new("").into(), done_bytes: 0, total_bytes, resumed_bytes: 0 } }
    }

    /// A file begins, of which this much was there.
    pub(super) fn begin(&mut self, path: &Path, resumed_bytes: u64) -> Progress {
        self.now.file = path.into();
        self.now.resumed_bytes += resumed_bytes;
        self.now.done_bytes += resumed_bytes;
        self.now.clone()
    }

    pub(super) fn carried(&mut self, bytes: usize) -> Progress {
        self.now.done_bytes += bytes as u64;
        self.now.clone()
    }

    /// A file or the rest of it is not sent.
    pub(super) fn left_out(&mut self, bytes: u64) -> Progress {
        self.now.total_bytes = self.now.total_bytes.saturating_sub(bytes).max(self.now.done_bytes);
        self.now.clone()
    }
}
