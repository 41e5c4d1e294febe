//! Where the files of a store are: a folder, or in tests something that fails.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files.
pub(super) trait Medium: Debug + Send + Sync {
    /// Makes a file, which must not be there.
    fn create(&self, name: &str) -> io::Result<Arc<dyn MediumFile>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>>;

    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Waits until the names of files are on the disk.
    fn sync_names(&self) -> io::Result<()>;
}

/// A file.
pub(super) trait MediumFile: Debug + Send + Sync {
    fn len(&self) -> io::Result<u64>;

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all; after an error a part may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Waits until the content is on the disk.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the file system, for its owner only.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens or makes a folder. One that is made is on the disk, with those in which it is.
    pub(super) fn new(path: PathBuf) -> io::Result<Self> {
        let new: Vec<_> = path.ancestors().take_while(|it| !is_there(it)).map(Path::to_owned).collect();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        for folder in new {
            let within = folder.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(within)?.sync_all()?;
        }
        Ok(Folder(path))
    }
}

fn is_there(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

impl Medium for Folder {
    fn create(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(self.0.join(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        Ok(Arc::new(File::options().read(true).write(true).open(self.0.join(name))?))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

impl MediumFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
