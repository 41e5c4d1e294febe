//! The thread that owns the receiver's directory.
//!
//! A thread of its own, for the reasons of the sender's: hashing, writing and fsync block for long. At most [`QUEUE`]
//! chunks wait for it, so that a slow disk stops the stream. When nobody gives it commands any more, it fsyncs what it has
//! and ends.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fstatvfs, fsync};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::beneath::{Beneath, Made, restore};
use super::digest::{Digest, hash_prefix, sha256};
use super::durable::{self, Kept, Key, Partial, Source};
use super::error::{FilesError, FormatError, Refusal, is_fatal, remedy};
use super::frame::{Frame, Outcome};
use super::limits::ReceiveOptions;
use super::manifest::{Entry, Kind, Manifest};
use super::names::WORK_FOLDER;

/// Commands and chunks between the stream and the thread.
const QUEUE: usize = 4;

/// Answers and verdicts between the thread and the stream.
const EVENTS: usize = 256;

/// How long a verdict may wait for the fsync of its folder.
const FLUSH_AFTER: Duration = Duration::from_millis(1_000);

/// Folders that may wait for an fsync, each with an open descriptor.
const DIRTY_FOLDERS: usize = 64;

/// How long another transfer into the same directory is waited for: one that was dropped ends within this time.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Files without anything that one answer names, so that answers flow while the thread looks for the next.
const RUN: u32 = 1_000;

/// What the stream has for the thread.
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

/// What the thread has for the stream.
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
    /// Nobody waits for its events any more.
    Unwanted,
    Failed(FilesError),
}

impl<E: Into<FilesError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Failed(error.into())
    }
}

/// What there is of a file before it comes.
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
    directory: PathBuf,
    options: ReceiveOptions,
    manifest: Arc<Manifest>,
    root: Beneath,
    work: Beneath,
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
        std::fs::create_dir_all(&directory).map_err(|error| FilesError::local("make the folder", &directory, error))?;
        let root =
            Beneath::root(&directory).map_err(|error| FilesError::local("open the folder", &directory, error))?;
        lock(&root, &directory, &events)?;
        let work_path = directory.join(WORK_FOLDER);
        let work = root.make_folder(Path::new(WORK_FOLDER)).and_then(|made| {
            if made == Made::New {
                fsync(root.as_fd())?;
            }
            root.inner(Path::new(WORK_FOLDER))
        });
        let work = work.map_err(|error| FilesError::local("make the folder", &work_path, error))?;
        let has_verdict = vec![false; manifest.len() as usize];
        Ok(Store {
            directory,
            options,
            manifest,
            root,
            work,
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
                // What is there is kept whatever happened; the first error is the one to tell.
                if let Current::Receiving { partial, .. } = &mut self.current {
                    let _ = partial.keep(&self.work);
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
        let (mut first, mut count) = (0, 0);
        let mut missing_bytes = 0_u64;
        for (index, entry) in manifest.iter() {
            if self.events.is_closed() {
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
                Kind::File { size } => match self.look(index, &path, entry, size) {
                    Ok(Look::Nothing) => {
                        missing_bytes = missing_bytes.saturating_add(size);
                        None
                    }
                    Ok(Look::Claim { length, sha256, only }) => {
                        missing_bytes = missing_bytes.saturating_add(size - length);
                        Some(Frame::Claim { index, length, sha256, only })
                    }
                    Ok(Look::InTheWay(reason)) => Some(self.failed_frame(index, reason)),
                    Err(error) => Some(self.failure(index, "look for the file", error)?),
                },
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
        self.check_space(missing_bytes)
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        if self.root.make_folder(path)? == Made::New {
            return self.mark_dirty(path.parent().unwrap_or(Path::new("")));
        }
        // An earlier transfer may have given it a mode that lets nothing in; the manifest's mode comes back at the end.
        let folder = self.root.folder(path)?;
        let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            fchmod(&folder, (mode | Mode::RWXU) & (Mode::RWXU | Mode::RWXG | Mode::RWXO))?;
        }
        Ok(())
    }

    /// What there is of a file.
    fn look(&mut self, index: u32, path: &Path, entry: &Entry, size: u64) -> io::Result<Look> {
        let events = self.events.clone();
        let go_on = move || !events.is_closed();
        let existing = self.root.stat(path)?;
        if let Some(stat) = &existing
            && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        {
            return Ok(Look::InTheWay("something of this name that is no file stands there; move it away".to_owned()));
        }
        let same_size = existing.as_ref().is_some_and(|stat| u64::try_from(stat.st_size) == Ok(size));
        if existing.is_some() && !same_size && !self.options.overwrite {
            return Ok(Look::InTheWay(DIFFERS.to_owned()));
        }
        let key = Key::new(path);
        if existing.is_none() || self.options.overwrite {
            let source = Source { size, modified: entry.modified };
            if let Some(kept) = durable::find(&self.work, &key, &source, &go_on)? {
                let look = Look::Claim { length: kept.length, sha256: kept.hasher.digest(), only: false };
                self.held.insert(index, Held::Partial(Box::new(kept)));
                return Ok(look);
            }
        }
        if same_size {
            let file = self.root.file(path, OFlags::RDONLY)?;
            if let Some(hasher) = hash_prefix(file, size, &go_on)? {
                let sha256 = hasher.digest();
                self.held.insert(index, Held::Existing(sha256));
                return Ok(Look::Claim { length: size, sha256, only: !self.options.overwrite });
            }
        }
        Ok(Look::Nothing)
    }

    /// Refuses what cannot fit, before any of it is sent.
    fn check_space(&self, missing_bytes: u64) -> Result<(), Stop> {
        let Ok(disk) = fstatvfs(self.work.as_fd()) else { return Ok(()) };
        let blocks = if rustix::process::geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
        let free_bytes = blocks.saturating_mul(disk.f_frsize);
        if missing_bytes <= free_bytes {
            return Ok(());
        }
        Err(Refusal::new(
            format!("{missing_bytes} bytes to receive"),
            format!("the disk has {free_bytes} bytes free"),
            "free space on the receiving side, or send less",
        )
        .into())
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
                    && let Err(error) = partial.sync_if_due(&self.work, now)
                {
                    return Err(self.work_error(error).into());
                }
                match self.placed_since {
                    Some(since) if now.saturating_duration_since(since) >= FLUSH_AFTER => self.flush(),
                    _ => Ok(()),
                }
            }
            Command::Done => unreachable!("run takes it"),
        }
    }

    /// Checks that the sender may begin or give up this file now: files come in the order of the manifest, and each that
    /// has no verdict comes.
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
        let partial = Partial::begin(&self.work, key, source, kept).map_err(|error| self.work_error(error))?;
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
        match partial.append(&self.work, data, sha, Instant::now()) {
            Ok(()) => Ok(()),
            Err(error) if is_fatal(&error) => Err(self.work_error(error).into()),
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
                let removed = Key::new(&self.manifest.path(index)).remove(&self.work);
                removed.map_err(|error| self.work_error(error))?;
                self.has_verdict[index as usize] = true;
                self.say(Frame::Verdict { index, outcome: Outcome::AlreadyThere })
            }
            Current::Receiving { index, partial } if partial.missing() > 0 => {
                self.current = Current::Receiving { index, partial };
                Err(FormatError::Order(kind).into())
            }
            Current::Receiving { index, partial } if partial.digest() != *sha256 => {
                let removed = partial.key().remove(&self.work);
                removed.map_err(|error| self.work_error(error))?;
                self.fail(index, "its SHA-256 is not that of the sender's file; send it again".to_owned())
            }
            Current::Receiving { index, partial } => self.place(index, *partial),
        }
    }

    /// Gives a complete file its name. Its verdict waits until that is durable.
    fn place(&mut self, index: u32, mut partial: Partial) -> Result<(), Stop> {
        let path = self.manifest.path(index);
        let mode = self.manifest.get(index).map_or(0o600, |entry| entry.mode);
        partial.complete(&self.work, mode).map_err(|error| self.work_error(error))?;
        let key = partial.key().clone();
        drop(partial);
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = key.data.as_os_str();
        let placed =
            self.root.place(&self.work, name, &path, self.options.overwrite).and_then(|()| self.mark_dirty(parent));
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
                partial.sync(&self.work).map_err(|error| self.work_error(error))?;
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
            partial
                .sync(&self.work)
                .map_err(|error| FilesError::local("write", &self.directory.join(WORK_FOLDER), error))?;
        }
        self.flush()
    }

    /// Fsyncs the folders in which files were placed, and says so.
    fn flush(&mut self) -> Result<(), Stop> {
        for (path, folder) in std::mem::take(&mut self.dirty) {
            fsync(folder).map_err(|error| FilesError::local("fsync the folder", &self.directory.join(path), error))?;
        }
        self.placed_since = None;
        let placed = std::mem::take(&mut self.placed);
        for (_, key) in &placed {
            key.remove(&self.work).map_err(|error| self.work_error(error))?;
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
            let restored = self.root.folder(&manifest.path(index)).and_then(|folder| {
                restore(&folder, entry.mode, entry.modified)?;
                Ok(fsync(&folder)?)
            });
            if let Err(error) = restored {
                let frame = self.failure(index, "set mode and time of the folder", error)?;
                self.say(frame)?;
            }
        }
        // It stays when it has files of other transfers.
        let _ = self.root.remove_folder(Path::new(WORK_FOLDER));
        let _ = fsync(self.root.as_fd());
        self.say(Frame::Finished)
    }

    fn mark_dirty(&mut self, folder: &Path) -> io::Result<()> {
        if !self.dirty.contains_key(folder) {
            self.dirty.insert(folder.to_owned(), self.root.folder(folder)?);
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
            return Err(FilesError::local(action, &self.directory.join(self.manifest.path(index)), error).into());
        }
        let reason = format!("the receiver cannot {action}: {error}; {}", remedy(&error));
        Ok(self.failed_frame(index, reason))
    }

    fn work_error(&self, error: io::Error) -> FilesError {
        FilesError::local("write", &self.directory.join(WORK_FOLDER), error)
    }
}

/// Why a file that exists is not replaced, and what to do.
const DIFFERS: &str = "another file of this name exists on the receiving side; move it away, or receive with overwrite";

/// What there is of a file, for the sender.
enum Look {
    Nothing,
    Claim { length: u64, sha256: Digest, only: bool },
    InTheWay(String),
}

/// Keeps other transfers out of the directory until the descriptor is closed, also by a kill.
fn lock(root: &Beneath, directory: &Path, events: &mpsc::Sender<Event>) -> Result<(), Stop> {
    for _ in 0..LOCK_ATTEMPTS {
        if events.is_closed() {
            return Err(Stop::Unwanted);
        }
        match flock(root.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(FilesError::local("lock the folder", directory, error).into()),
        }
    }
    Err(Refusal::new(
        "a second transfer into this folder",
        "a folder receives one transfer at a time",
        "wait until the other one ends, or receive into another folder",
    )
    .into())
}
