//! Brings what was put into a store to the disk: only then may it be acknowledged. `[N2]`

use std::io;
use std::sync::Arc;

use super::super::medium::{Medium, MediumFile};
use super::super::record::{FileName, Kind};
use super::super::usage::Usage;
use super::{Durable, FILE_BYTES, StoreFile, StreamStore, remove};

/// Brings to the disk what was put so far. It may run on another thread.
#[derive(Debug)]
pub(in super::super) struct Commit {
    medium: Arc<dyn Medium>,
    usage: Arc<Usage>,
    files: Vec<Unsynced>,
    has_new_names: bool,
    is_finished: bool,
    doomed: Vec<(FileName, u64)>,
    durable: Durable,
}

#[derive(Debug)]
struct Unsynced {
    name: FileName,
    cuts: u32,
    overwrites: u32,
    file: Option<Arc<dyn MediumFile>>,
    end: u64,
}

impl Commit {
    /// # Errors
    /// If it is not certain that everything is on the disk.
    pub(in super::super) fn run(&self) -> io::Result<()> {
        for it in &self.files {
            match &it.file {
                Some(file) => file.sync()?,
                None => self.medium.open(&it.name.text())?.sync()?,
            }
        }
        if self.has_new_names {
            self.medium.sync_names()?;
        }
        // The data that replaces them is on the disk now. The last one says that the others are needless, and goes after them.
        self.doomed.iter().try_for_each(|(name, _)| remove(&*self.medium, name))?;
        // Data must not come back without the word that they were passed on.
        if self.is_finished { self.medium.sync_names() } else { Ok(()) }
    }
}

impl Drop for Commit {
    /// Files that are gone do not count. If it has failed, those that are there are counted again when they are recovered.
    fn drop(&mut self) {
        self.usage.free(self.doomed.iter().map(|(_, bytes)| bytes).sum());
    }
}

impl StreamStore {
    /// The writes that are to be synced, if there are any.
    pub(in super::super) fn commit(&mut self) -> Option<Commit> {
        if self.owes_release && !self.files.is_empty() {
            self.write_released();
        }
        // As long as it is not written down what was released, what comes behind it may look as if it had a hole before it.
        let durable = match self.owes_release {
            true => self.durable,
            false => Durable { received: self.received, has_end: self.end.is_some() },
        };
        if durable == self.durable && self.doomed.is_empty() && !self.has_new_names {
            return None;
        }
        let stream = self.id;
        let doomed = self.doomed.drain(..).map(|(number, bytes)| (FileName { stream, number }, bytes));
        let doomed: Vec<_> = doomed.collect();
        // After a recovery also what an earlier process may not have brought there.
        let is_first = self.durable == Durable::default();
        let files = self.files.iter().filter(|it| is_first || it.synced < it.end || it.overwrites.0 != it.overwrites.1);
        Some(Commit {
            medium: self.medium.clone(),
            usage: self.usage.clone(),
            files: files
                .map(|it| Unsynced {
                    name: FileName { stream, number: it.number },
                    cuts: it.cuts,
                    overwrites: it.overwrites.0,
                    file: it.file.clone(),
                    end: it.end,
                })
                .collect(),
            has_new_names: std::mem::take(&mut self.has_new_names),
            is_finished: self.is_finished && !doomed.is_empty(),
            doomed,
            durable,
        })
    }

    /// A commit has succeeded.
    pub(in super::super) fn on_committed(&mut self, commit: &Commit) {
        for synced in &commit.files {
            let is_same = |file: &&mut StoreFile| (file.number, file.cuts) == (synced.name.number, synced.cuts);
            if let Some(file) = self.files.iter_mut().find(is_same) {
                file.synced = file.synced.max(synced.end);
                file.overwrites.1 = synced.overwrites;
            }
        }
        let is_all = self.files.iter().all(StoreFile::is_on_disk);
        let has_room = self.files.back().is_some_and(|last| last.head > 0 && last.end < FILE_BYTES);
        if commit.durable.received > self.durable.received && has_room {
            // After a crash it tells damage from what was never there. The next commit brings it to the disk.
            if let Err(error) = self.append(Kind::Durable, commit.durable.received, &[], false) {
                tracing::debug!(stream = %self.id, %error, "a commit was not written down");
            }
        }
        self.durable = commit.durable;
        // The latest record may be lost: nothing that was acknowledged depends on it.
        for file in self.files.iter_mut().filter(|file| is_all || file.is_on_disk()) {
            file.file = None;
        }
    }
}
