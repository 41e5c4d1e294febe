//! The files at both ends.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use farlink_core::protocol::aerotp::Connection;
use farlink_core::{Stream, Time};

use crate::command_line::Failure;
use crate::{acknowledged, name, write};

/// Size of one read of the file.
const PIECE_BYTES: usize = 1 << 18;
/// Amount read ahead of the data that has arrived.
const AHEAD_BYTES: u64 = 16 << 20;

/// A file that is being sent.
pub(crate) struct Outgoing {
    path: PathBuf,
    file: File,
    bytes: u64,
    written: u64,
    has_ended: bool,
    acknowledged: u64,
    /// Whether the peer has answered, which is the only sign that an empty file has arrived.
    is_answered: bool,
}

impl Outgoing {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let unreadable = |error| Failure::new(format!("cannot read {}: {error}", name(path)), "give a file to send");
        let file = File::open(path).map_err(unreadable)?;
        let data = file.metadata().map_err(unreadable)?;
        if !data.is_file() {
            return Err(Failure::new(format!("{} is no file", name(path)), "give a file to send"));
        }
        let (path, bytes) = (path.to_owned(), data.len());
        Ok(Outgoing { path, file, bytes, written: 0, has_ended: false, acknowledged: 0, is_answered: false })
    }

    pub(crate) fn moved_bytes(&self) -> u64 {
        self.acknowledged
    }

    pub(crate) fn size(&self) -> u64 {
        self.bytes
    }

    /// Writes as much as there is room for.
    pub(crate) fn step(&mut self, now: Time, end: &mut Connection<Bytes>) -> Result<(), Failure> {
        self.acknowledged = acknowledged(end).min(self.bytes);
        while !self.has_ended && self.written - self.acknowledged < AHEAD_BYTES {
            let mut piece = vec![0; PIECE_BYTES];
            let n = self.file.read(&mut piece).map_err(|error| {
                Failure::new(
                    format!("cannot read {}: {error}", name(&self.path)),
                    "look at the disk, and send it again",
                )
            })?;
            if n == 0 {
                self.has_ended = true;
                self.bytes = self.written;
                end.close(now);
                break;
            }
            piece.truncate(n);
            self.written += n as u64;
            write(end, now, Bytes::from(piece));
        }
        Ok(())
    }

    /// Nothing has arrived at the receiver of the next attempt.
    pub(crate) fn begin_again(&mut self) -> Result<(), Failure> {
        let path = &self.path;
        self.file.rewind().map_err(|error| {
            Failure::new(format!("cannot read {} again: {error}", name(path)), "look at the disk, and send it again")
        })?;
        (self.written, self.acknowledged, self.has_ended, self.is_answered) = (0, 0, false, false);
        Ok(())
    }

    pub(crate) fn on_connected(&mut self) {
        self.is_answered = true;
    }

    /// Whether everything has arrived, even if the connection is still open.
    pub(crate) fn is_safe(&self) -> bool {
        self.is_answered && self.has_ended && self.acknowledged == self.bytes
    }
}

/// A file that is being received, under another name until it is complete.
pub(crate) struct Incoming {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    bytes: u64,
}

impl Incoming {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let Some(file_name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(Failure::new(format!("{} is no name for a file", name(path)), "give the file to write"));
        };
        let partial = path.with_file_name(format!(".{}.{}.part", file_name.to_string_lossy(), std::process::id()));
        let file = File::create_new(&partial).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", name(&partial)), "choose another place")
        })?;
        Ok(Incoming { path: path.to_owned(), partial, file, bytes: 0 })
    }

    /// Gives the file its name.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        self.file.sync_all().and_then(|()| std::fs::rename(&self.partial, &self.path)).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", name(&self.path)), "choose another place")
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // The temporary file no longer exists if it was renamed.
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl Incoming {
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all available data.
    pub(crate) fn step(&mut self, end: &mut Connection<Bytes>) -> Result<(), Failure> {
        while let Some(data) = end.read() {
            self.bytes += data.len() as u64;
            let written = self.file.write_all(&data);
            written.map_err(|error| unwritable(&self.partial, &error))?;
        }
        Ok(())
    }

    /// Starts again, for another sender.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        cleared.map_err(|error| unwritable(&self.partial, &error))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", name(path)), "free some space, or choose another place")
}
