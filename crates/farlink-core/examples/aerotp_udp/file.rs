//! The files at both ends.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use farlink_core::protocol::aerotp::Connection;
use farlink_core::{Event, Stream, Time};

use crate::driver::Application;
use crate::{Failure, acknowledged, name, write};

/// Read from the file at once.
const PIECE_BYTES: usize = 1 << 18;
/// Read ahead of what has arrived.
const AHEAD_BYTES: u64 = 16 << 20;

/// A file that is being sent.
pub(crate) struct Outgoing {
    path: PathBuf,
    file: File,
    bytes: u64,
    written: u64,
    has_ended: bool,
    acknowledged: u64,
    /// The peer has answered: of an empty file nothing else tells that there is one.
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
}

impl Application for Outgoing {
    fn moved_bytes(&self) -> u64 {
        self.acknowledged
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn step(&mut self, now: Time, end: &mut Connection<Bytes>) -> Result<(), Failure> {
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

    fn on_event(&mut self, _now: Time, event: Event, _end: &mut Connection<Bytes>) {
        self.is_answered |= event == Event::Connected;
    }

    fn is_safe(&self) -> bool {
        self.is_answered && self.has_ended && self.acknowledged == self.bytes
    }
}

/// A file that is being received, under another name until it is whole.
pub(crate) struct Incoming {
    path: PathBuf,
    partial: PathBuf,
    file: Option<File>,
    bytes: u64,
    is_whole: bool,
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
        Ok(Incoming { path: path.to_owned(), partial, file: Some(file), bytes: 0, is_whole: false })
    }

    /// Gives the file its name.
    pub(crate) fn keep(mut self) -> Result<(), Failure> {
        let file = self.file.take().expect("it is open until now");
        file.sync_all().and_then(|()| std::fs::rename(&self.partial, &self.path)).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", name(&self.path)), "choose another place")
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Gone if it was kept.
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl Application for Incoming {
    fn moved_bytes(&self) -> u64 {
        self.bytes
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn step(&mut self, _now: Time, end: &mut Connection<Bytes>) -> Result<(), Failure> {
        let file = self.file.as_mut().expect("it is open");
        while let Some(data) = end.read() {
            self.bytes += data.len() as u64;
            file.write_all(&data).map_err(|error| {
                Failure::new(
                    format!("cannot write {}: {error}", name(&self.partial)),
                    "free some space, or choose another place",
                )
            })?;
        }
        Ok(())
    }

    fn on_event(&mut self, now: Time, event: Event, end: &mut Connection<Bytes>) {
        if event == Event::Finished {
            self.is_whole = true;
            end.close(now);
        }
    }

    fn is_safe(&self) -> bool {
        self.is_whole
    }
}
