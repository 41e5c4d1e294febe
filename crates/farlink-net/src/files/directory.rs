//! The receiver's directory: what stands there of a file before it comes, and the folder for what is incomplete.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fstatvfs, fsync};
use rustix::io::Errno;

use super::beneath::{Beneath, Made};
use super::digest::{Digest, hash_prefix};
use super::durable::{self, Kept, Key, Source};
use super::error::{FilesError, Refusal};
use super::names::WORK_FOLDER;

/// How long another transfer into the same directory is waited for: one that was dropped ends within this time.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Why a file that exists is not replaced, and what to do.
pub(super) const DIFFERS: &str =
    "another file of this name exists on the receiving side; move it away, or receive with overwrite";

pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) root: Beneath,
    pub(super) work: Beneath,
}

/// State of a file at the receiver.
pub(super) enum Look {
    Nothing,
    /// The beginning of it in the work folder.
    Partial(Box<Kept>),
    /// A file of its size under its name.
    Existing(Digest),
    /// Something that is not replaced.
    InTheWay(&'static str),
}

impl Directory {
    /// Opens it, makes it if it does not exist, and keeps other transfers out. `None` when `go_on` said no.
    pub(super) fn open(path: PathBuf, go_on: &dyn Fn() -> bool) -> Result<Option<Self>, FilesError> {
        std::fs::create_dir_all(&path).map_err(|error| FilesError::local("make the folder", &path, error))?;
        let root = Beneath::root(&path).map_err(|error| FilesError::local("open the folder", &path, error))?;
        if !lock(&root, &path, go_on)? {
            return Ok(None);
        }
        let work = root.make_folder(Path::new(WORK_FOLDER)).and_then(|made| {
            if made == Made::New {
                fsync(root.as_fd())?;
            }
            root.inner(Path::new(WORK_FOLDER))
        });
        let work = work.map_err(|error| FilesError::local("make the folder", &path.join(WORK_FOLDER), error))?;
        Ok(Some(Directory { path, root, work }))
    }

    /// Makes a folder of the manifest; one that stands there is opened for its owner.
    pub(super) fn make_folder(&self, path: &Path) -> io::Result<Made> {
        if self.root.make_folder(path)? == Made::New {
            return Ok(Made::New);
        }
        // An earlier transfer may have given it a mode that lets nothing in; the manifest's mode comes back at the end.
        let folder = self.root.folder(path)?;
        let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            fchmod(&folder, (mode | Mode::RWXU) & (Mode::RWXU | Mode::RWXG | Mode::RWXO))?;
        }
        Ok(Made::Stood)
    }

    /// Looks for what there is of a file. `go_on` is asked now and then.
    pub(super) fn look(
        &self,
        path: &Path,
        source: &Source,
        overwrite: bool,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Look> {
        let existing = self.root.stat(path)?;
        if let Some(stat) = &existing
            && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        {
            return Ok(Look::InTheWay("something of this name that is no file stands there; move it away"));
        }
        let is_same_size = existing.as_ref().is_some_and(|stat| u64::try_from(stat.st_size) == Ok(source.size));
        if existing.is_some() && !is_same_size && !overwrite {
            return Ok(Look::InTheWay(DIFFERS));
        }
        if (existing.is_none() || overwrite)
            && let Some(kept) = durable::find(&self.work, &Key::new(path), source, go_on)?
        {
            return Ok(Look::Partial(Box::new(kept)));
        }
        if is_same_size {
            let file = self.root.file(path, OFlags::RDONLY)?;
            if let Some(hasher) = hash_prefix(file, source.size, go_on)? {
                return Ok(Look::Existing(hasher.digest()));
            }
        }
        Ok(Look::Nothing)
    }

    /// Refuses what cannot fit, before any of it is sent.
    pub(super) fn check_space(&self, missing_bytes: u64) -> Result<(), Refusal> {
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
        ))
    }

    /// A failure of the work folder, which ends the transfer.
    pub(super) fn work_error(&self, error: io::Error) -> FilesError {
        FilesError::local("write", &self.path.join(WORK_FOLDER), error)
    }
}

/// Keeps other transfers out of the directory until the descriptor is closed, also by a kill. False when `go_on` said
/// no.
fn lock(root: &Beneath, path: &Path, go_on: &dyn Fn() -> bool) -> Result<bool, FilesError> {
    for _ in 0..LOCK_ATTEMPTS {
        if !go_on() {
            return Ok(false);
        }
        match flock(root.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(FilesError::local("lock the folder", path, error)),
        }
    }
    Err(Refusal::new(
        "a second transfer into this folder",
        "a folder receives one transfer at a time",
        "wait until the other one ends, or receive into another folder",
    )
    .into())
}
