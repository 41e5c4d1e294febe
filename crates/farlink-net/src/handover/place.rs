//! Where a stream that is received stands in a folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::custody::{Label, StreamId};

/// The file of a stream: hidden until all of it is there.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    name: String,
    part: Option<File>,
    /// Bytes that are there.
    bytes: u64,
    /// Of these, bytes that do not come any more.
    lost: u64,
}

impl Place {
    /// Opens what there is of a stream, or begins it.
    pub(super) fn open(folder: &Path, label: &Label, stream: StreamId) -> io::Result<Self> {
        let name = format!("{label}-{stream}");
        let mut place = Place { folder: folder.to_owned(), name, part: None, bytes: 0, lost: 0 };
        if let Some(done) = [place.whole(), place.damaged()].iter().find(|path| path.exists()) {
            place.bytes = fs::metadata(done)?.len();
            return Ok(place);
        }
        let file =
            File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(place.part_path())?;
        place.bytes = file.metadata()?.len();
        place.part = Some(file);
        for line in fs::read_to_string(place.lost_path()).unwrap_or_default().lines() {
            let bounds = line.split_once(' ').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
            place.lost += bounds.map_or(0, |(from, to): (u64, u64)| to.saturating_sub(from));
        }
        sync_names(folder)?;
        Ok(place)
    }

    fn whole(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn damaged(&self) -> PathBuf {
        self.folder.join(format!("{}.damaged", self.name))
    }

    fn part_path(&self) -> PathBuf {
        self.folder.join(format!(".{}.part", self.name))
    }

    fn lost_path(&self) -> PathBuf {
        self.folder.join(format!(".{}.lost", self.name))
    }

    /// Bytes that are there from before.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that do not come any more, and read as zeros.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes pieces with their positions, one behind the other, and waits until they are on the disk. An earlier program may have written
    /// them. Once more does no harm.
    pub(super) fn write(&mut self, pieces: &[(u64, Bytes)]) -> io::Result<()> {
        let Some(file) = &self.part else { return Ok(()) };
        for (position, data) in pieces {
            file.write_all_at(data, *position)?;
            self.bytes = self.bytes.max(position + data.len() as u64);
        }
        file.sync_data()
    }

    /// Notes that bytes do not come any more, unless they are there from before.
    pub(super) fn lose(&mut self, from: u64, to: u64) -> io::Result<()> {
        let from = from.max(self.bytes);
        if from >= to || self.part.is_none() {
            return Ok(());
        }
        let mut list = File::options().append(true).create(true).mode(0o600).open(self.lost_path())?;
        writeln!(list, "{from} {to}")?;
        list.sync_all()?;
        if let Some(file) = &self.part {
            file.set_len(to)?;
        }
        (self.bytes, self.lost) = (to, self.lost + (to - from));
        Ok(())
    }

    /// All of it is there, which is so many bytes: gives it its name, and waits until that is on the disk. Returns the name.
    pub(super) fn finish(&mut self, bytes: u64) -> io::Result<PathBuf> {
        if self.bytes != bytes {
            return Err(io::Error::other(format!("it has {} bytes, the stream {bytes}", self.bytes)));
        }
        let path = if self.lost > 0 { self.damaged() } else { self.whole() };
        let Some(file) = self.part.take() else {
            return Ok(if self.damaged().exists() { self.damaged() } else { self.whole() });
        };
        file.sync_all()?;
        if self.lost > 0 {
            fs::rename(self.lost_path(), self.folder.join(format!("{}.lost", self.name)))?;
        }
        fs::rename(self.part_path(), &path)?;
        sync_names(&self.folder)?;
        Ok(path)
    }
}

/// Waits until the names in a folder are on the disk.
fn sync_names(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Place {
        Place::open(folder, &"shore".parse().unwrap(), [7; 16].into()).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_stream_goes_on_where_an_earlier_program_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let name = "shore-07070707070707070707070707070707";
        let mut place = open(folder.path());
        place.write(&[(0, Bytes::from_static(b"abc")), (3, Bytes::from_static(b"def"))]).unwrap();
        drop(place);
        assert_eq!(names(folder.path()), [format!(".{name}.part")]);
        let mut place = open(folder.path());
        assert_eq!(place.bytes(), 6);
        // The gateway begins with what was not acknowledged.
        place.lose(0, 3).unwrap();
        place.write(&[(3, Bytes::from_static(b"defghi"))]).unwrap();
        assert_eq!(place.finish(9).unwrap(), folder.path().join(name));
        assert_eq!((fs::read(folder.path().join(name)).unwrap(), place.lost()), (b"abcdefghi".to_vec(), 0));
        // Once more, as the gateway was not told.
        let mut place = open(folder.path());
        place.lose(0, 9).unwrap();
        place.write(&[(0, Bytes::from_static(b"xyz"))]).unwrap();
        assert!(place.finish(10).unwrap_err().to_string().contains("it has 9 bytes, the stream 10"));
        assert_eq!(place.finish(9).unwrap(), folder.path().join(name));
        assert_eq!(names(folder.path()), [name]);
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"abcdefghi");
    }

    #[test]
    fn what_is_lost_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut place = open(folder.path());
        place.write(&[(0, Bytes::from_static(b"ab"))]).unwrap();
        place.lose(2, 5).unwrap();
        drop(place);
        let mut place = open(folder.path());
        assert_eq!((place.bytes(), place.lost()), (5, 3));
        place.write(&[(5, Bytes::from_static(b"f"))]).unwrap();
        let path = place.finish(6).unwrap();
        assert!(path.to_str().unwrap().ends_with(".damaged"), "{path:?}");
        assert_eq!(fs::read(&path).unwrap(), b"ab\0\0\0f");
        assert_eq!(fs::read_to_string(path.with_extension("lost")).unwrap(), "2 5\n");
        // A gap that no disk has room for is an error, and no panic.
        let mut place = Place::open(folder.path(), &"shore".parse().unwrap(), [8; 16].into()).unwrap();
        assert!(place.lose(0, u64::MAX).is_err());
    }
}
