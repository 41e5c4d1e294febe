//! The thread that owns the receiver's directory.
//!
//! A thread of its own, for the reasons of the sender's: hashing, writing and fsync block for long. At most [`QUEUE`]
//! chunks wait for it, so that a slow disk stops the stream. When nobody gives it commands any more, it fsyncs what it
//! has and ends.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::fs::fsync;
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::remedy::remedy;

use super::beneath::{Made, restore};
use super::digest::{Digest, sha256};
use super::directory::{DIFFERS, Directory, Look};
use super::durable::{Kept, Key, Partial, Source};
use super::error::{FilesError, FormatError, is_fatal};
use super::frame::{Frame, Outcome};
use super::limits::ReceiveOptions;
use super::manifest::{Kind, Manifest};
use super::names::WORK_FOLDER;

/// Commands and chunks between the stream and the thread.
const QUEUE: usize = 4;

/// Answers and verdicts between the thread and the stream.
const EVENTS: usize = 256;

/// How long a verdict may wait for the fsync of its folder.
const FLUSH_AFTER: Duration = Duration::from_millis(1_000);

/// Folders that may wait for an fsync, each with an open descriptor.
const DIRTY_FOLDERS: usize = 64;

/// Files without anything that one answer names, so that answers flow while the thread looks for the next.
const RUN: u32 = 1_000;

/// Input of the thread from the stream.
#[derive(Debug)]
pub(super) enum Command {
    Begin {
        index: u32,
        offset: u64,
    },
    Chunk {
        sha256: Digest,
        data: Bytes,
    },
    End {
        sha256: Digest,
    },
    Abandon {
        index: u32,
        reason: String,
    },
    Differs {
        index: u32,
    },
    /// Time has passed.
    Tick,
    Done,
}

/// Output of the thread for the stream.
#[derive(Debug)]
pub(super) enum Event {
    /// An answer or a verdict.
    Say(Frame),
    Failed(FilesError),
}

/// Starts the thread for one transfer.
///
/// # Errors
///
/// No thread could be started.
pub(super) fn start(
    directory: &Path,
    options: ReceiveOptions,
    manifest: Arc<Manifest>,
) -> Result<(mpsc::Sender<Command>, mpsc::Receiver<Event>), FilesError> {
    let (to_thread, commands) = mpsc::channel(QUEUE);
    let (events, from_thread) = mpsc::channel(EVENTS);
    let path = directory.to_owned();
    std::thread::Builder::new()
        .name("farlink-receive".to_owned())
        .spawn(move || {
            match Store::open(path, options, manifest, events.clone()).and_then(|mut store| store.run(commands)) {
                Err(Stop::Failed(error)) => drop(events.blocking_send(Event::Failed(error))),
                Ok(()) | Err(Stop::Unwanted) => {}
            }
        })
        .map_err(|error| FilesError::local("start a thread to write", directory, error))?;
    Ok((to_thread, from_thread))
}

/// Why the thread ends early.
enum Stop {
    /// The reader of its events is gone.
    Unwanted,
    Failed(FilesError),
}

impl<E: Into<FilesError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Failed(error.into())
    }
}

/// State of a file before it comes.
enum Held {
    /// The beginning of it in the work folder.
    Partial(Box<Kept>),
    /// A file of its size under its name.
    Existing(Digest),
}

/// The file that is coming.
enum Current {
    None,
    Receiving {
        index: u32,
        partial: Box<Partial>,
    },
    /// The sender says that the file under this name is the same one.
    AlreadyThere {
        index: u32,
        sha256: Digest,
    },
    /// It failed; what still comes of it is dropped.
    Failed {
        index: u32,
    },
}

struct Store {
    directory: Directory,
    options: ReceiveOptions,
    manifest: Arc<Manifest>,
    events: mpsc::Sender<Event>,
    held: BTreeMap<u32, Held>,
    /// Which entries have a verdict, or get one at the next flush.
    has_verdict: Vec<bool>,
    /// The next file that the sender may begin.
    next: u32,
    current: Current,
    /// Folders whose names changed since their last fsync.
    dirty: BTreeMap<PathBuf, OwnedFd>,
    /// Files that were placed since then.
    placed: Vec<(u32, Key)>,
    placed_since: Option<Instant>,
}

impl Store {
    fn open(
        directory: PathBuf,
        options: ReceiveOptions,
        manifest: Arc<Manifest>,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, Stop> {
        let directory = Directory::open(directory, &|| !events.is_closed())?.ok_or(Stop::Unwanted)?;
        let has_verdict = vec![false; manifest.len() as usize];
        Ok(Store {
            directory,
            options,
            manifest,
            events,
            held: BTreeMap::new(),
            has_verdict,
            next: 0,
            current: Current::None,
            dirty: BTreeMap::new(),
            placed: Vec::new(),
            placed_since: None,
        })
    }

    fn run(&mut self, mut commands: mpsc::Receiver<Command>) -> Result<(), Stop> {
        self.answer_all()?;
        while let Some(command) = commands.blocking_recv() {
            if matches!(command, Command::Done) {
                return self.finish();
            }
            let done = self.obey(command);
            if done.is_err() {
                // Data on the disk is kept whatever happened; the first error is reported.
                if let Current::Receiving { partial, .. } = &mut self.current {
                    let _ = partial.keep(&self.directory.work);
                }
                let _ = self.flush();
            }
            done?;
        }
        self.sync()
    }

    fn say(&self, frame: Frame) -> Result<(), Stop> {
        self.events.blocking_send(Event::Say(frame)).map_err(|_| Stop::Unwanted)
    }

    /// Makes the folders and tells the sender what is there of each file.
    fn answer_all(&mut self) -> Result<(), Stop> {
        let manifest = Arc::clone(&self.manifest);
        let events = self.events.clone();
        let go_on = move || !events.is_closed();
        let (mut first, mut count) = (0, 0);
        let mut missing_bytes = 0_u64;
        for (index, entry) in manifest.iter() {
            if !go_on() {
                return Err(Stop::Unwanted);
            }
            let path = manifest.path(index);
            let answer = match entry.kind {
                _ if entry.parent.is_some_and(|parent| self.has_verdict[parent as usize]) => {
                    Some(self.failed_frame(index, "the folder that it stands in failed".to_owned()))
                }
                Kind::Folder => match self.make_folder(&path) {
                    Ok(()) => continue,
                    Err(error) => Some(self.failure(index, "make the folder", error)?),
                },
                Kind::File { size } => {
                    let source = Source { size, modified: entry.modified };
                    match self.directory.look(&path, &source, self.options.overwrite, &go_on) {
                        Ok(look) => {
                            let answer = self.answer(index, size, look);
                            let length = if let Some(Frame::Claim { length, .. }) = answer { length } else { 0 };
                            if !self.has_verdict[index as usize] {
                                missing_bytes = missing_bytes.saturating_add(size - length);
                            }
                            answer
                        }
                        Err(error) => Some(self.failure(index, "look for the file", error)?),
                    }
                }
            };
            if answer.is_some() || count == RUN {
                if count > 0 {
                    self.say(Frame::Nothing { first, count })?;
                }
                count = 0;
            }
            match answer {
                Some(frame) => self.say(frame)?,
                None => {
                    if count == 0 {
                        first = index;
                    }
                    count += 1;
                }
            }
        }
        if count > 0 {
            self.say(Frame::Nothing { first, count })?;
        }
        Ok(self.directory.check_space(missing_bytes)?)
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        match self.directory.make_folder(path)? {
            Made::New => self.mark_dirty(path.parent().unwrap_or(Path::new(""))),
            Made::Stood => Ok(()),
        }
    }

    /// The answer to the sender for a file; `None` for no answer. The state of the file is remembered.
    fn answer(&mut self, index: u32, size: u64, look: Look) -> Option<Frame> {
        match look {
            Look::Nothing => None,
            Look::Partial(kept) => {
                let (length, sha256) = (kept.length, kept.hasher.digest());
                self.held.insert(index, Held::Partial(kept));
                Some(Frame::Claim { index, length, sha256, only: false })
            }
            Look::Existing(sha256) => {
                self.held.insert(index, Held::Existing(sha256));
                Some(Frame::Claim { index, length: size, sha256, only: !self.options.overwrite })
            }
            Look::InTheWay(reason) => Some(self.failed_frame(index, reason.to_owned())),
        }
    }

    fn obey(&mut self, command: Command) -> Result<(), Stop> {
        match command {
            Command::Begin { index, offset } => self.begin(index, offset),
            Command::Chunk { sha256, data } => self.chunk(&sha256, &data),
            Command::End { sha256 } => self.end(&sha256),
            Command::Abandon { index, reason } => self.abandon(index, reason),
            Command::Differs { index } => {
                self.expect(index, &Frame::Differs { index })?;
                match self.held.remove(&index) {
                    Some(Held::Existing(_)) if !self.options.overwrite => self.fail(index, DIFFERS.to_owned()),
                    _ => Err(FormatError::Fields(Frame::Differs { index }.kind()).into()),
                }
            }
            Command::Tick => {
                let now = Instant::now();
                if let Current::Receiving { partial, .. } = &mut self.current
                    && let Err(error) = partial.sync_if_due(&self.directory.work, now)
                {
                    return Err(self.directory.work_error(error).into());
                }
                match self.placed_since {
                    Some(since) if now.saturating_duration_since(since) >= FLUSH_AFTER => self.flush(),
                    _ => Ok(()),
                }
            }
            Command::Done => unreachable!("run takes it"),
        }
    }

    /// Checks that the sender may begin or give up this file now: files come in the order of the manifest, and each
    /// that has no verdict comes.
    fn expect(&mut self, index: u32, frame: &Frame) -> Result<(), FormatError> {
        if !matches!(self.current, Current::None) || self.next_expected() != Some(index) {
            return Err(FormatError::Order(frame.kind()));
        }
        self.next = index + 1;
        Ok(())
    }

    fn next_expected(&self) -> Option<u32> {
        let mut next = self.manifest.next_file(self.next);
        while let Some(index) = next.filter(|&index| self.has_verdict[index as usize]) {
            next = self.manifest.next_file(index + 1);
        }
        next
    }

    fn begin(&mut self, index: u32, offset: u64) -> Result<(), Stop> {
        let frame = Frame::Begin { index, offset };
        self.expect(index, &frame)?;
        let entry = self.manifest.get(index).ok_or(FormatError::Fields(frame.kind()))?;
        let size = entry.size().ok_or(FormatError::Fields(frame.kind()))?;
        let source = Source { size, modified: entry.modified };
        let kept = match self.held.remove(&index) {
            Some(Held::Existing(sha256)) if offset == size => {
                self.current = Current::AlreadyThere { index, sha256 };
                return Ok(());
            }
            Some(Held::Partial(kept)) if offset == kept.length => Some(*kept),
            Some(Held::Existing(_)) if !self.options.overwrite => return Err(FormatError::Order(frame.kind()).into()),
            _ if offset == 0 => None,
            _ => return Err(FormatError::Fields(frame.kind()).into()),
        };
        let key = Key::new(&self.manifest.path(index));
        let partial = Partial::begin(&self.directory.work, key, source, kept)
            .map_err(|error| self.directory.work_error(error))?;
        self.current = Current::Receiving { index, partial: Box::new(partial) };
        Ok(())
    }

    fn chunk(&mut self, sha: &Digest, data: &[u8]) -> Result<(), Stop> {
        let kind = Frame::Chunk { sha256: *sha, data: Bytes::new() }.kind();
        let (index, partial) = match &mut self.current {
            Current::Receiving { index, partial } => (*index, partial),
            Current::Failed { .. } => return Ok(()),
            Current::None | Current::AlreadyThere { .. } => return Err(FormatError::Order(kind).into()),
        };
        if data.len() as u64 > partial.missing() {
            return Err(FormatError::Fields(kind).into());
        }
        if sha256(data) != *sha {
            return Err(FormatError::Damaged.into());
        }
        match partial.append(&self.directory.work, data, sha, Instant::now()) {
            Ok(()) => Ok(()),
            Err(error) if is_fatal(&error) => Err(self.directory.work_error(error).into()),
            Err(error) => {
                self.current = Current::Failed { index };
                let frame = self.failure(index, "write the file", error)?;
                self.say(frame)
            }
        }
    }

    fn end(&mut self, sha256: &Digest) -> Result<(), Stop> {
        let kind = Frame::End { sha256: *sha256 }.kind();
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => Err(FormatError::Order(kind).into()),
            Current::Failed { .. } => Ok(()),
            Current::AlreadyThere { index, sha256: own } => {
                if own != *sha256 {
                    return Err(FormatError::Fields(kind).into());
                }
                // A transfer that was killed right behind the rename left its log.
                let removed = Key::new(&self.manifest.path(index)).remove(&self.directory.work);
                removed.map_err(|error| self.directory.work_error(error))?;
                self.has_verdict[index as usize] = true;
                self.say(Frame::Verdict { index, outcome: Outcome::AlreadyThere })
            }
            Current::Receiving { index, partial } if partial.missing() > 0 => {
                self.current = Current::Receiving { index, partial };
                Err(FormatError::Order(kind).into())
            }
            Current::Receiving { index, partial } if partial.digest() != *sha256 => {
                let removed = partial.key().remove(&self.directory.work);
                removed.map_err(|error| self.directory.work_error(error))?;
                self.fail(index, "its SHA-256 is not that of the sender's file; send it again".to_owned())
            }
            Current::Receiving { index, partial } => self.place(index, *partial),
        }
    }

    /// Gives a complete file its name. Its verdict waits until that is durable.
    fn place(&mut self, index: u32, mut partial: Partial) -> Result<(), Stop> {
        let path = self.manifest.path(index);
        let mode = self.manifest.get(index).map_or(0o600, |entry| entry.mode);
        partial.complete(&self.directory.work, mode).map_err(|error| self.directory.work_error(error))?;
        let key = partial.key().clone();
        drop(partial);
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = key.data.as_os_str();
        let placed = self
            .directory
            .root
            .place(&self.directory.work, name, &path, self.options.overwrite)
            .and_then(|()| self.mark_dirty(parent));
        match placed {
            Ok(()) => {
                self.has_verdict[index as usize] = true;
                self.placed.push((index, key));
                self.placed_since.get_or_insert_with(Instant::now);
                if self.dirty.len() >= DIRTY_FOLDERS { self.flush() } else { Ok(()) }
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => self.fail(index, DIFFERS.to_owned()),
            Err(error) => {
                let frame = self.failure(index, "place the file", error)?;
                self.say(frame)
            }
        }
    }

    fn abandon(&mut self, index: u32, reason: String) -> Result<(), Stop> {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::Receiving { index: current, mut partial } if current == index => {
                partial.sync(&self.directory.work).map_err(|error| self.directory.work_error(error))?;
            }
            Current::AlreadyThere { index: current, .. } if current == index => {}
            Current::Failed { index: current } if current == index => return Ok(()),
            Current::None => {
                self.expect(index, &Frame::Abandon { index, reason: String::new() })?;
                self.held.remove(&index);
            }
            other => {
                self.current = other;
                return Err(FormatError::Order(Frame::Abandon { index, reason: String::new() }.kind()).into());
            }
        }
        self.fail(index, reason)
    }

    /// Fsyncs what is there, for a transfer that goes on later.
    fn sync(&mut self) -> Result<(), Stop> {
        if let Current::Receiving { partial, .. } = &mut self.current {
            partial.sync(&self.directory.work).map_err(|error| self.directory.work_error(error))?;
        }
        self.flush()
    }

    /// Fsyncs the folders in which files were placed, and says so.
    fn flush(&mut self) -> Result<(), Stop> {
        for (path, folder) in std::mem::take(&mut self.dirty) {
            fsync(folder)
                .map_err(|error| FilesError::local("fsync the folder", &self.directory.path.join(path), error))?;
        }
        self.placed_since = None;
        let placed = std::mem::take(&mut self.placed);
        for (_, key) in &placed {
            key.remove(&self.directory.work).map_err(|error| self.directory.work_error(error))?;
        }
        for (index, _) in placed {
            self.say(Frame::Verdict { index, outcome: Outcome::Placed })?;
        }
        Ok(())
    }

    /// Everything came: gives folders their modes and times, and ends.
    fn finish(&mut self) -> Result<(), Stop> {
        if !matches!(self.current, Current::None) || self.next_expected().is_some() {
            self.sync()?;
            return Err(FormatError::Order(Frame::Done.kind()).into());
        }
        self.flush()?;
        let manifest = Arc::clone(&self.manifest);
        // Folders inside first: a mode may bar the way to them, and making entries changes the time.
        for (index, entry) in manifest.iter().rev() {
            if entry.kind != Kind::Folder || self.has_verdict[index as usize] {
                continue;
            }
            let restored = self.directory.root.folder(&manifest.path(index)).and_then(|folder| {
                restore(&folder, entry.mode, entry.modified)?;
                Ok(fsync(&folder)?)
            });
            if let Err(error) = restored {
                let frame = self.failure(index, "set mode and time of the folder", error)?;
                self.say(frame)?;
            }
        }
        // It stays when it has files of other transfers.
        let _ = self.directory.root.remove_folder(Path::new(WORK_FOLDER));
        let _ = fsync(self.directory.root.as_fd());
        self.say(Frame::Finished)
    }

    fn mark_dirty(&mut self, folder: &Path) -> io::Result<()> {
        if !self.dirty.contains_key(folder) {
            self.dirty.insert(folder.to_owned(), self.directory.root.folder(folder)?);
        }
        Ok(())
    }

    fn fail(&mut self, index: u32, reason: String) -> Result<(), Stop> {
        let frame = self.failed_frame(index, reason);
        self.say(frame)
    }

    fn failed_frame(&mut self, index: u32, reason: String) -> Frame {
        self.has_verdict[index as usize] = true;
        Frame::Verdict { index, outcome: Outcome::Failed(reason) }
    }

    /// The verdict on an entry that met an error, unless the error ends the transfer.
    fn failure(&mut self, index: u32, action: &'static str, error: io::Error) -> Result<Frame, Stop> {
        if error.kind() == io::ErrorKind::Interrupted {
            return Err(Stop::Unwanted);
        }
        if is_fatal(&error) {
            return Err(FilesError::local(action, &self.directory.path.join(self.manifest.path(index)), error).into());
        }
        let reason = format!("the receiver cannot {action}: {error}; {}", remedy(&error));
        Ok(self.failed_frame(index, reason))
    }
}
