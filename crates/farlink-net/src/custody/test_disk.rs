//! A disk for tests: it fills up, fails when it is told to, and loses in a crash what was not brought to it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::medium::{Medium, MediumFile};

/// A disk in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct TestDisk(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    /// By name.
    files: BTreeMap<String, Arc<Mutex<TestContent>>>,
    /// Names that survive a crash.
    durable: BTreeMap<String, Arc<Mutex<TestContent>>>,
    most_bytes: Option<usize>,
    fails: Fails,
    open_files: usize,
}

#[derive(Debug, Default)]
struct TestContent {
    now: Vec<u8>,
    durable: Vec<u8>,
    unreadable: Range<usize>,
}

/// What fails from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fails {
    #[default]
    Nothing,
    Syncs,
    Removes,
    Opens,
}

#[derive(Debug)]
struct TestFile {
    disk: TestDisk,
    content: Arc<Mutex<TestContent>>,
}

impl TestDisk {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    fn file(&self, content: Arc<Mutex<TestContent>>) -> Arc<dyn MediumFile> {
        self.lock().open_files += 1;
        Arc::new(TestFile { disk: self.clone(), content })
    }

    pub(super) fn open_files(&self) -> usize {
        self.lock().open_files
    }

    /// A part of a file, by its place among the names, cannot be read from now on.
    pub(super) fn set_unreadable(&self, place: usize, range: Range<usize>) {
        let file = self.lock().files.values().nth(place).cloned().expect("it is there");
        file.lock().unwrap().unreadable = range;
    }

    pub(super) fn set_most_bytes(&self, bytes: usize) {
        self.lock().most_bytes = Some(bytes);
    }

    pub(super) fn set_fails(&self, fails: Fails) {
        self.lock().fails = fails;
    }

    /// What a machine finds that was switched off: what was synced for certain, and of the rest a part that `keeps` chooses.
    pub(super) fn crash(&self, mut keeps: impl FnMut(usize) -> usize) {
        let mut this = self.lock();
        this.files = this.durable.clone();
        for content in this.files.values() {
            let mut content = content.lock().unwrap();
            let TestContent { now, durable, .. } = &mut *content;
            let common = now.iter().zip(durable.iter()).take_while(|(a, b)| a == b).count();
            // Blocks of what was appended may be there, and the length without them.
            let mut after = durable.clone();
            if now.len() > durable.len() && common == durable.len() {
                let more = keeps(now.len() - durable.len() + 1);
                after.extend_from_slice(&now[durable.len()..durable.len() + more]);
            }
            (*now, *durable) = (after.clone(), after);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().files.values().map(|file| file.lock().unwrap().now.len()).sum()
    }

    /// Changes the content of a file: by its place among the names.
    pub(super) fn change(&self, place: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let this = self.lock();
        let count = this.files.len().max(1);
        if let Some(file) = this.files.values().nth(place % count) {
            let mut file = file.lock().unwrap();
            change(&mut file.now);
            file.durable = file.now.clone();
        }
    }
}

impl Medium for TestDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        let mut this = self.lock();
        if this.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::new(Mutex::default());
        this.files.insert(name.to_owned(), Arc::clone(&content));
        drop(this);
        Ok(self.file(content))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        if self.lock().fails == Fails::Opens {
            return Err(io::Error::other("a test"));
        }
        let content = self.lock().files.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(content))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().files.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut this = self.lock();
        if this.fails == Fails::Removes {
            return Err(io::Error::other("a test"));
        }
        this.files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut this = self.lock();
        if this.fails == Fails::Syncs {
            return Err(io::Error::other("a test"));
        }
        this.durable = this.files.clone();
        Ok(())
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        self.disk.lock().open_files -= 1;
    }
}

impl MediumFile for TestFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().unwrap().now.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let content = self.content.lock().unwrap();
        let (begins, ends) = (offset as usize, offset as usize + into.len());
        if content.unreadable.start < ends && begins < content.unreadable.end {
            return Err(rustix::io::Errno::IO.into());
        }
        let from = content.now.get(offset as usize..offset as usize + into.len());
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let room = {
            let taken = self.disk.bytes();
            let disk = self.disk.lock();
            disk.most_bytes.map_or(usize::MAX, |most| most.saturating_sub(taken))
        };
        let mut content = self.content.lock().unwrap();
        let offset = offset as usize;
        if let Some(there) = content.now.get_mut(offset..offset + bytes.len()) {
            // What is overwritten needs no room.
            there.copy_from_slice(bytes);
            return Ok(());
        }
        assert!(offset == content.now.len(), "a store overwrites whole records only, and appends");
        content.now.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if room < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.content.lock().unwrap().now.truncate(bytes as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.disk.lock().fails == Fails::Syncs {
            return Err(io::Error::other("a test"));
        }
        let mut content = self.content.lock().unwrap();
        content.durable = content.now.clone();
        Ok(())
    }
}
