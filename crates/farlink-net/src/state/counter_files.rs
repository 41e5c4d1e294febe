//! The counters of handshakes in files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::mux::CounterStore;
use crate::seal::PublicKey;

use super::{StateError, whole_file};

/// Bounds of counters in the folder of a host. They are written before a counter at or above them is used.
#[derive(Debug)]
pub struct CounterFiles {
    own: PathBuf,
    own_bound: u64,
    peers: PathBuf,
    bounds: BTreeMap<PublicKey, u64>,
    /// Held as long as this process answers sessions.
    _lock: Option<File>,
}

impl CounterFiles {
    pub(super) fn open(folder: &Path, answers: bool) -> Result<Self, StateError> {
        let (own, peers) = (folder.join("own-counter"), folder.join("peer-counters"));
        let lock = answers.then(|| lock(&folder.join("peer-counters.lock"))).transpose()?;
        // A counter that cannot be kept shows before anything is sent.
        let writable = File::options().append(true).create(true).open(&own);
        writable.map_err(|error| StateError::unwritable(&own, &error))?;
        let own_bound = own_bound(&own)?;
        let mut bounds = BTreeMap::new();
        for (number, line) in text(&peers)?.unwrap_or_default().lines().enumerate() {
            let parts = line.split_once(' ').and_then(|(key, bound)| Some((key.parse().ok()?, bound.parse().ok()?)));
            let (key, bound) = parts.ok_or_else(|| damaged(&peers, number + 1))?;
            bounds.insert(key, bound);
        }
        Ok(CounterFiles { own, own_bound, peers, bounds, _lock: lock })
    }
}

impl CounterStore for CounterFiles {
    fn own(&self) -> u64 {
        self.own_bound
    }

    fn keep_own(&mut self, bound: u64) -> io::Result<()> {
        // Others that send with this key, in this process or another one, take turns, and may have kept a higher one.
        let turn = lock_file(&self.own.with_extension("lock")).map_err(io::Error::other)?;
        flock(&turn, FlockOperation::LockExclusive)?;
        let kept = own_bound(&self.own).map_err(io::Error::other)?;
        let bound = bound.max(kept);
        whole_file::replace(&self.own, format!("{bound}\n").as_bytes())?;
        self.own_bound = bound;
        Ok(())
    }

    fn peer(&self, peer: &PublicKey) -> u64 {
        self.bounds.get(peer).copied().unwrap_or(0)
    }

    fn keep_peer(&mut self, peer: &PublicKey, bound: u64) -> io::Result<()> {
        let before = self.bounds.insert(*peer, bound);
        let mut text = String::new();
        for (key, bound) in &self.bounds {
            writeln!(text, "{key} {bound}").expect("a text grows");
        }
        let written = whole_file::replace(&self.peers, text.as_bytes());
        if written.is_err() {
            match before {
                Some(before) => self.bounds.insert(*peer, before),
                None => self.bounds.remove(peer),
            };
        }
        written
    }
}

/// The bound of the own counter; 0 in an empty file, which a host has before its first handshake.
fn own_bound(path: &Path) -> Result<u64, StateError> {
    match text(path)?.unwrap_or_default().trim() {
        "" => Ok(0),
        text => text.parse().map_err(|_| damaged(path, 1)),
    }
}

fn text(path: &Path) -> Result<Option<String>, StateError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::unreadable(path, &error)),
    }
}

fn damaged(path: &Path, line: usize) -> StateError {
    let what = format!("line {line} is no counter");
    // Without it, recorded first packets would be taken again: nothing is guessed.
    let remedy = "restore it, or make another key, and tell it to the peers";
    StateError::new(path, what, remedy)
}

fn lock_file(path: &Path) -> Result<File, StateError> {
    let opened = File::options().write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| StateError::unwritable(path, &error))
}

fn lock(path: &Path) -> Result<File, StateError> {
    let file = lock_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let what = "another process receives with the same key";
            Err(StateError::new(path, what, "stop it, or give this one another folder of keys"))
        }
        Err(error) => Err(StateError::unwritable(path, &error.into())),
    }
}
