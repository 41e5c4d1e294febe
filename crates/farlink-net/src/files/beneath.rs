//! Opening, creating and renaming below one folder, from which no path leads out.
//!
//! Every path is resolved by `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, each time anew: a folder that
//! someone swaps for a symbolic link during the transfer is an error and not a way out. What has no such call
//! (`mkdirat`, `renameat2`, `unlinkat`) gets the opened folder and one component, which Linux does not follow.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec, Timestamps, UTIME_OMIT,
};
use rustix::io::Errno;

use super::manifest::Modified;

/// How often `openat2` may ask to be called again because of renames at the same time.
const ATTEMPTS: u32 = 64;

/// A folder, and what is below it.
#[derive(Debug)]
pub(super) struct Beneath {
    root: OwnedFd,
}

impl Beneath {
    /// The folder at this path, which the user chose: symbolic links in it are followed.
    pub(super) fn root(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Beneath { root: fs::open(path, flags, Mode::empty())? })
    }

    /// A folder of this one, as a root of its own.
    pub(super) fn inner(&self, path: &Path) -> io::Result<Self> {
        Ok(Beneath { root: self.folder(path)? })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens with these flags.
    pub(super) fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // A pipe that someone puts there does not block; `O_PATH` never does, and openat2 takes no more flags beside
        // it.
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NONBLOCK };
        let mut attempts = 0;
        loop {
            match fs::openat2(&self.root, path, flags, mode, resolve) {
                Err(Errno::AGAIN) if attempts < ATTEMPTS => attempts += 1,
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Opens a folder; the empty path is this folder itself.
    pub(super) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Opens a regular file; anything else there is an error.
    pub(super) fn file(&self, path: &Path, flags: OFlags) -> io::Result<std::fs::File> {
        let file = self.open(
            path,
            flags,
            if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() },
        )?;
        match FileType::from_raw_mode(fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Errno::EXIST.into()),
        }
    }

    /// The entry at a path, a symbolic link as itself; `None` if there is none.
    pub(super) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        match self.open(path, OFlags::PATH, Mode::empty()) {
            Ok(file) => Ok(Some(fs::fstat(&file)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder that only its owner may enter; one that stands there is fine.
    pub(super) fn make_folder(&self, path: &Path) -> io::Result<Made> {
        let (parent, name) = self.parent(path)?;
        match fs::mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) => Ok(Made::New),
            Err(Errno::EXIST) => match self.stat(path)? {
                Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Ok(Made::Stood),
                _ => Err(Errno::EXIST.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Moves `name` of the folder `from` to `path` in one step.
    ///
    /// # Errors
    ///
    /// Something stands there and `overwrite` is false ([`Errno::EXIST`]), or a folder does.
    pub(super) fn place(&self, from: &Beneath, name: &OsStr, path: &Path, overwrite: bool) -> io::Result<()> {
        let (parent, new_name) = self.parent(path)?;
        if overwrite {
            return Ok(fs::renameat(&from.root, name, &parent, new_name)?);
        }
        match fs::renameat_with(&from.root, name, &parent, new_name, RenameFlags::NOREPLACE) {
            // Not every file system knows the flag; a second name fails as well when the name is taken.
            Err(Errno::INVAL) => {
                fs::linkat(&from.root, name, &parent, new_name, AtFlags::empty())?;
                Ok(fs::unlinkat(&from.root, name, AtFlags::empty())?)
            }
            done => Ok(done?),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        match fs::unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder.
    pub(super) fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
    }

    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name))
    }
}

/// Outcome of [`Beneath::make_folder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    New,
    Stood,
}

/// Gives an open file or folder its mode and time of modification.
pub(super) fn restore(file: impl AsFd, mode: u16, modified: Modified) -> io::Result<()> {
    fs::fchmod(&file, Mode::from_raw_mode(mode.into()))?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanoseconds.into() },
    };
    Ok(fs::futimens(&file, &times)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_path_leads_out() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let directory = tempfile::tempdir().unwrap();
        symlink(outside.path(), directory.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), directory.path().join("file")).unwrap();
        let beneath = Beneath::root(directory.path()).unwrap();

        for path in ["link/secret", "file", "../x", "/etc/passwd", "link"] {
            let flags = OFlags::RDWR | OFlags::CREATE;
            assert!(beneath.file(Path::new(path), flags).is_err(), "{path}");
        }
        for path in ["link/new", "link", "../new"] {
            assert!(beneath.make_folder(Path::new(path)).is_err(), "{path}");
        }
        assert!(beneath.remove(Path::new("link/secret")).is_err());
        beneath.file(Path::new("own"), OFlags::RDWR | OFlags::CREATE).unwrap();
        assert!(beneath.place(&beneath, OsStr::new("own"), Path::new("link/own"), true).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_that_is_taken_stays_unless_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("new"), "new").unwrap();
        std::fs::write(directory.path().join("old"), "old").unwrap();
        let beneath = Beneath::root(directory.path()).unwrap();
        let place = |overwrite| beneath.place(&beneath, OsStr::new("new"), Path::new("old"), overwrite);

        assert_eq!(place(false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(directory.path().join("old")).unwrap(), b"old");
        place(true).unwrap();
        assert_eq!(std::fs::read(directory.path().join("old")).unwrap(), b"new");
    }
}
