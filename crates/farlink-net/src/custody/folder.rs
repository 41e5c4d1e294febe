//! The folder of a store: who has it, of which version it is, and which streams it has.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::medium::{Folder, Medium};
use super::record::FileName;
use super::stream::StreamId;

/// Why a store cannot be used. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}; {remedy}", path.display())]
pub struct StoreError {
    path: PathBuf,
    what: String,
    remedy: String,
}

impl StoreError {
    pub(super) fn unusable(path: &Path, error: &io::Error) -> Self {
        let (what, remedy) = match error.kind() {
            io::ErrorKind::Unsupported => (
                "has streams of another version".to_owned(),
                "start the version of farlink that wrote them, until all are passed on, or give another folder",
            ),
            _ => (format!("cannot be used: {error}"), "give a folder of your own, on a disk that can be written"),
        };
        StoreError { path: path.to_owned(), what, remedy: remedy.to_owned() }
    }
}

/// The store of a gateway, which no other process has.
#[derive(Debug)]
pub(super) struct StoreFolder {
    pub(super) medium: Arc<dyn Medium>,
    _lock: File,
}

const LOCK: &str = "lock";
const FORMAT: &str = "format";
const FORMAT_TEXT: &str = "farlink custody 1\n";
const STREAMS: &str = "streams";

impl StoreFolder {
    /// Opens or makes the folder.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let wrong = |what: String, remedy: &str| StoreError { path: path.to_owned(), what, remedy: remedy.to_owned() };
        let unusable = |error: io::Error| StoreError::unusable(path, &error);
        Folder::new(path.to_owned()).map_err(unusable)?;
        let mode = fs::metadata(path).map_err(unusable)?.permissions().mode() & 0o777;
        if mode & 0o022 != 0 {
            let what = format!("can be written by other users (mode {mode:o})");
            return Err(wrong(what, "chmod 700 it, or give a folder of your own"));
        }
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK));
        let lock = lock.map_err(unusable)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let what = "another process has this store".to_owned();
                return Err(wrong(what, "stop it, or give this gateway another folder"));
            }
            Err(error) => return Err(unusable(error.into())),
        }
        let format = path.join(FORMAT);
        match fs::read_to_string(&format) {
            Ok(text) if text == FORMAT_TEXT => {}
            Ok(text) => {
                let what = format!("is a store of another version: {:?}, not {:?}", text.trim(), FORMAT_TEXT.trim());
                let remedy = "start the version of farlink that wrote it, until all streams are passed on, or give another folder";
                return Err(wrong(what, remedy));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => begin(path).map_err(unusable)?,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let what = "is a store of another version".to_owned();
                return Err(wrong(what, "start the version of farlink that wrote it, or give another folder"));
            }
            Err(error) => return Err(unusable(error)),
        }
        let medium = Folder::new(path.join(STREAMS)).map_err(unusable)?;
        Ok(StoreFolder { medium: Arc::new(medium), _lock: lock })
    }
}

/// Writes the version, so that it is there whole or not at all.
fn begin(path: &Path) -> io::Result<()> {
    let new = path.join("format.new");
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    io::Write::write_all(&mut &file, FORMAT_TEXT.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path.join(FORMAT))?;
    File::open(path)?.sync_all()
}

/// The numbers of the files of each stream.
pub(super) fn streams(medium: &dyn Medium) -> io::Result<BTreeMap<StreamId, Vec<u64>>> {
    let mut streams: BTreeMap<StreamId, Vec<u64>> = BTreeMap::new();
    for name in medium.list()?.iter().filter_map(|name| FileName::parse(name)) {
        streams.entry(name.stream).or_default().push(name.number);
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_one_process_and_one_version_and_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("custody");
        let store = StoreFolder::open(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join(STREAMS))), (0o700, 0o700));
        let name = FileName { stream: StreamId::from([1; 16]), number: 0 };
        store.medium.create(&name.text()).unwrap();
        assert_eq!(mode(&path.join(STREAMS).join(name.text())), 0o600);
        assert_eq!(streams(&*store.medium).unwrap(), BTreeMap::from([(name.stream, vec![0])]));
        let taken = StoreFolder::open(&path).unwrap_err().to_string();
        assert!(
            taken.ends_with("another process has this store; stop it, or give this gateway another folder"),
            "{taken}"
        );
        drop(store);
        drop(StoreFolder::open(&path).unwrap());
        fs::write(path.join(FORMAT), "farlink custody 2\n").unwrap();
        let other = StoreFolder::open(&path).unwrap_err().to_string();
        assert!(other.contains("another version: \"farlink custody 2\", not \"farlink custody 1\"; start"), "{other}");
        fs::write(path.join(FORMAT), [0xff; 9]).unwrap();
        assert!(StoreFolder::open(&path).unwrap_err().to_string().contains("another version"));
    }

    /// In a folder of theirs, others could put links in place of files, or take streams away.
    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o770, 0o707] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = StoreFolder::open(folder.path()).unwrap_err().to_string();
            assert!(
                refused.ends_with(&format!("(mode {mode:o}); chmod 700 it, or give a folder of your own")),
                "{refused}"
            );
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written into it");
        }
    }

    /// A link is the choice of whoever wrote the configuration.
    #[test]
    fn the_folder_may_be_a_link_and_new_folders_may_be_deep() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        drop(StoreFolder::open(&deep).unwrap());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&deep, &link).unwrap();
        let store = StoreFolder::open(&link).unwrap();
        assert!(StoreFolder::open(&deep).unwrap_err().to_string().contains("another process has this store"));
        drop(store);
    }
}
