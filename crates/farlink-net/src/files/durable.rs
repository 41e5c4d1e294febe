//! A file that is not complete yet: its bytes, and a log of the chunks of which it consists.
//!
//! The work folder has two files for it, named by a digest of its path: `KEY.data`, the bytes so far, and `KEY.log`: a
//! header that identifies the source (size, time of modification), then length and SHA-256 of each chunk. The log is
//! only appended to. Nothing in it is believed: a resumed file consists of the chunks at its beginning whose bytes have
//! the SHA-256 of the log, and the rest is cut off. So a log that is damaged, torn by a loss of power or missing costs
//! bytes to send again and nothing else.
//!
//! The bytes are fsynced before the part of the log that names them.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use rustix::fs::OFlags;

use super::beneath::{Beneath, restore};
use super::digest::{DIGEST_BYTES, Digest, Hasher, read_full, sha256};
use super::frame::CHUNK_BYTES;
use super::manifest::Modified;

/// Bytes that may wait for an fsync.
const SYNC_BYTES: u64 = 64_000_000;

/// How long a byte may wait for an fsync, less the interval at which [`Partial::sync_if_due`] is called and the time
/// that fsync itself takes: 2 s in all.
const SYNC_AFTER: Duration = Duration::from_millis(1_000);

/// Bytes of a file from which its chunks are logged as they come, without waiting for an fsync. Files below are often
/// complete before they are worth a log.
const LOG_BYTES: u64 = 1 << 20;

const MAGIC: [u8; 8] = *b"FARLOG\x00\x01";

/// Magic, size, seconds, nanoseconds, the first bytes of the SHA-256 of all that.
const HEADER_BYTES: usize = 8 + 8 + 8 + 4 + CHECK_BYTES;
const CHECK_BYTES: usize = 8;

/// Length and SHA-256.
const ENTRY_BYTES: usize = 4 + DIGEST_BYTES;

/// Where the work folder has a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
}

impl Key {
    /// Of the file at this path below the receiver's directory.
    pub(super) fn new(path: &Path) -> Self {
        let digest = sha256(path.as_os_str().as_encoded_bytes());
        let name: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Key { data: format!("{name}.data").into(), log: format!("{name}.log").into() }
    }

    /// Removes both files.
    pub(super) fn remove(&self, work: &Beneath) -> io::Result<()> {
        work.remove(&self.data)?;
        work.remove(&self.log)
    }
}

/// State of a source file: if it differs, the file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) size: u64,
    pub(super) modified: Modified,
}

impl Source {
    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.put_slice(&MAGIC);
        header.put_u64(self.size);
        header.put_i64(self.modified.seconds);
        header.put_u32(self.modified.nanoseconds);
        let check = sha256(&header);
        header.put_slice(&check[..CHECK_BYTES]);
        header.try_into().expect("the fields have HEADER_BYTES")
    }
}

/// The part of a file that an earlier transfer left.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) length: u64,
    pub(super) hasher: Hasher,
    /// Bytes of the log that describe it.
    log_bytes: u64,
}

/// Looks for what is there of a file, and removes what is of no use. `go_on` is asked now and then.
///
/// # Errors
///
/// The work folder cannot be read or changed, or `go_on` said no.
pub(super) fn find(work: &Beneath, key: &Key, source: &Source, go_on: &dyn Fn() -> bool) -> io::Result<Option<Kept>> {
    let (data, log) = (work.file(&key.data, OFlags::RDONLY), work.file(&key.log, OFlags::RDONLY));
    let (mut data, log) = match (data, log) {
        (Ok(data), Ok(log)) => (data, log),
        (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        (Err(_), Err(_)) => return Ok(None),
        _ => {
            key.remove(work)?;
            return Ok(None);
        }
    };
    let mut log = BufReader::new(log);
    let mut header = [0; HEADER_BYTES];
    if read_full(&mut log, &mut header)? < HEADER_BYTES || header != source.header() {
        key.remove(work)?;
        return Ok(None);
    }
    let mut kept = Kept { length: 0, hasher: Hasher::new(), log_bytes: HEADER_BYTES as u64 };
    let mut chunk = Vec::new();
    while let Some((chunk_bytes, expected)) = next_entry(&mut log, source.size - kept.length)? {
        if !go_on() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        chunk.resize(chunk_bytes, 0);
        if read_full(&mut data, &mut chunk)? < chunk_bytes || sha256(&chunk) != expected {
            break;
        }
        kept.hasher.update(&chunk);
        kept.length += chunk_bytes as u64;
        kept.log_bytes += ENTRY_BYTES as u64;
    }
    if kept.length == 0 && source.size > 0 {
        key.remove(work)?;
        return Ok(None);
    }
    Ok(Some(kept))
}

/// The next entry of a log, if it is there and a chunk of this length may come.
fn next_entry(log: &mut impl Read, left: u64) -> io::Result<Option<(usize, Digest)>> {
    let mut entry = [0; ENTRY_BYTES];
    if read_full(log, &mut entry)? < ENTRY_BYTES {
        return Ok(None);
    }
    let mut fields = &entry[..];
    let length = fields.get_u32() as usize;
    let digest = fields.try_into().expect("the rest is the digest");
    Ok(((1..=CHUNK_BYTES).contains(&length) && length as u64 <= left).then_some((length, digest)))
}

/// A file that is being received.
pub(super) struct Partial {
    key: Key,
    source: Source,
    data: File,
    log: Option<File>,
    log_bytes: u64,
    /// Whether the names of both files survive a loss of power.
    is_listed: bool,
    length: u64,
    hasher: Hasher,
    /// Entries that are not in the log yet.
    unlogged: Vec<u8>,
    unsynced_bytes: u64,
    unsynced_since: Option<Instant>,
}

impl Partial {
    /// Begins a file, from its beginning or behind what was kept of it.
    pub(super) fn begin(work: &Beneath, key: Key, source: Source, kept: Option<Kept>) -> io::Result<Self> {
        let Some(kept) = kept else {
            key.remove(work)?;
            let data = work.file(&key.data, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
            return Ok(Partial::new(key, source, data, None, Kept { length: 0, hasher: Hasher::new(), log_bytes: 0 }));
        };
        let mut data = work.file(&key.data, OFlags::RDWR)?;
        cut(&mut data, kept.length)?;
        let mut log = work.file(&key.log, OFlags::RDWR)?;
        cut(&mut log, kept.log_bytes)?;
        Ok(Partial::new(key, source, data, Some(log), kept))
    }

    fn new(key: Key, source: Source, data: File, log: Option<File>, kept: Kept) -> Self {
        Partial {
            key,
            source,
            data,
            log,
            log_bytes: kept.log_bytes,
            is_listed: false,
            length: kept.length,
            hasher: kept.hasher,
            unlogged: Vec::new(),
            unsynced_bytes: 0,
            unsynced_since: None,
        }
    }

    /// Bytes that may still come.
    pub(super) const fn missing(&self) -> u64 {
        self.source.size - self.length
    }

    pub(super) const fn key(&self) -> &Key {
        &self.key
    }

    /// SHA-256 of what is there.
    pub(super) fn digest(&self) -> Digest {
        self.hasher.digest()
    }

    /// Adds a chunk whose SHA-256 was checked, and fsyncs when enough waits for it.
    pub(super) fn append(&mut self, work: &Beneath, chunk: &[u8], sha256: &Digest, now: Instant) -> io::Result<()> {
        if let Err(error) = self.data.write_all(chunk) {
            cut(&mut self.data, self.length)?;
            return Err(error);
        }
        self.hasher.update(chunk);
        self.length += chunk.len() as u64;
        self.unlogged.put_u32(chunk.len() as u32);
        self.unlogged.put_slice(sha256);
        self.unsynced_bytes += chunk.len() as u64;
        self.unsynced_since.get_or_insert(now);
        if self.log.is_some() || self.length >= LOG_BYTES {
            self.write_log(work)?;
        }
        self.sync_if_due(work, now)
    }

    /// Fsyncs when 64 MB wait for it, or the first byte that waits does so for a second.
    pub(super) fn sync_if_due(&mut self, work: &Beneath, now: Instant) -> io::Result<()> {
        let waited = self.unsynced_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if self.unsynced_bytes + CHUNK_BYTES as u64 > SYNC_BYTES || waited >= SYNC_AFTER {
            self.sync(work)?;
        }
        Ok(())
    }

    /// Fsyncs the bytes and then the log.
    pub(super) fn sync(&mut self, work: &Beneath) -> io::Result<()> {
        if self.unsynced_since.is_none() {
            return Ok(());
        }
        self.data.sync_data()?;
        self.write_log(work)?;
        if let Some(log) = &self.log {
            log.sync_data()?;
        }
        if !self.is_listed {
            rustix::fs::fsync(work.as_fd())?;
            self.is_listed = true;
        }
        self.unsynced_bytes = 0;
        self.unsynced_since = None;
        Ok(())
    }

    /// Fsyncs what is there after a failure. On a full disk the last chunk makes room for the log.
    pub(super) fn keep(&mut self, work: &Beneath) -> io::Result<()> {
        if self.sync(work).is_ok() {
            return Ok(());
        }
        if let Some(at) = self.unlogged.len().checked_sub(ENTRY_BYTES) {
            let mut last = &self.unlogged[at..];
            self.length -= u64::from(last.get_u32());
            self.unlogged.truncate(at);
            cut(&mut self.data, self.length)?;
        }
        self.sync(work)
    }

    /// Fsyncs a complete file with its mode and time. It can be placed then.
    pub(super) fn complete(&mut self, work: &Beneath, mode: u16) -> io::Result<()> {
        if self.log.is_some() {
            self.sync(work)?;
        }
        restore(&self.data, mode, self.source.modified)?;
        self.data.sync_all()
    }

    fn write_log(&mut self, work: &Beneath) -> io::Result<()> {
        let log = match &mut self.log {
            Some(log) => log,
            none => none.insert(work.file(&self.key.log, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?),
        };
        let header = self.source.header();
        let header = if self.log_bytes == 0 { &header[..] } else { &[] };
        let written = log.write_all(header).and_then(|()| log.write_all(&self.unlogged));
        if let Err(error) = written {
            // Half an entry would bar the way to all behind it.
            cut(log, self.log_bytes)?;
            return Err(error);
        }
        self.log_bytes += (header.len() + self.unlogged.len()) as u64;
        self.unlogged.clear();
        Ok(())
    }
}

/// Cuts a file and goes on behind its new end.
fn cut(file: &mut File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::End(0))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: Source = Source { size: 100_000, modified: Modified { seconds: 7, nanoseconds: 8 } };

    fn chunks() -> Vec<Vec<u8>> {
        (0..10_u8).map(|value| vec![value; 5_000]).collect()
    }

    /// A work folder with ten chunks of a file.
    fn work_folder() -> (tempfile::TempDir, Beneath, Key) {
        let directory = tempfile::tempdir().unwrap();
        let work = Beneath::root(directory.path()).unwrap();
        let key = Key::new(Path::new("a/b"));
        let now = Instant::now();
        let mut partial = Partial::begin(&work, key.clone(), SOURCE, None).unwrap();
        for chunk in chunks() {
            partial.append(&work, &chunk, &sha256(&chunk), now).unwrap();
        }
        partial.sync(&work).unwrap();
        (directory, work, key)
    }

    fn kept_bytes(work: &Beneath, key: &Key, source: &Source) -> u64 {
        find(work, key, source, &|| true).unwrap().map_or(0, |kept| {
            let whole: Vec<u8> = chunks().concat();
            assert_eq!(kept.hasher.digest(), sha256(&whole[..kept.length as usize]));
            kept.length
        })
    }

    #[test]
    fn what_was_synced_is_found() {
        let (_directory, work, key) = work_folder();
        assert_eq!(kept_bytes(&work, &key, &SOURCE), 50_000);
    }

    #[test]
    fn a_changed_source_starts_again() {
        for source in [
            Source { size: SOURCE.size + 1, ..SOURCE },
            Source { modified: Modified { nanoseconds: 9, ..SOURCE.modified }, ..SOURCE },
        ] {
            let (directory, work, key) = work_folder();
            assert_eq!(kept_bytes(&work, &key, &source), 0);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing useless stays");
        }
    }

    #[test]
    fn a_missing_half_starts_again() {
        for name in ["data", "log"] {
            let (directory, work, key) = work_folder();
            let path = if name == "data" { &key.data } else { &key.log };
            std::fs::remove_file(directory.path().join(path)).unwrap();
            assert_eq!(kept_bytes(&work, &key, &SOURCE), 0, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever happened to the two files, what is found has the right bytes (`kept_bytes` compares them).
        #[test]
        fn damage_costs_bytes_and_nothing_else(
            in_log in any::<bool>(), cut in any::<bool>(), at in any::<prop::sample::Index>(), value in 1_u8..=255,
        ) {
            let (directory, work, key) = work_folder();
            let path = directory.path().join(if in_log { &key.log } else { &key.data });
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= value }
            std::fs::write(&path, bytes).unwrap();

            let left = kept_bytes(&work, &key, &SOURCE);
            let first_damaged = if in_log { at.saturating_sub(HEADER_BYTES) / ENTRY_BYTES } else { at / 5_000 };
            let expected = if in_log && at < HEADER_BYTES { 0 } else { first_damaged as u64 * 5_000 };
            prop_assert_eq!(left, expected);

            // Going on writes over the damage.
            let kept = find(&work, &key, &SOURCE, &|| true).unwrap();
            let mut partial = Partial::begin(&work, key.clone(), SOURCE, kept).unwrap();
            for chunk in &chunks()[left as usize / 5_000..] {
                partial.append(&work, chunk, &sha256(chunk), Instant::now()).unwrap();
            }
            partial.sync(&work).unwrap();
            prop_assert_eq!(kept_bytes(&work, &key, &SOURCE), 50_000);
        }
    }

    #[test]
    fn at_most_64_mb_wait() {
        let directory = tempfile::tempdir().unwrap();
        let work = Beneath::root(directory.path()).unwrap();
        let source = Source { size: 1 << 30, ..SOURCE };
        let mut partial = Partial::begin(&work, Key::new(Path::new("x")), source, None).unwrap();
        let chunk = vec![0; CHUNK_BYTES];
        let (sha256, now) = (sha256(&chunk), Instant::now());
        let mut most_bytes = 0;
        for _ in 0..70 {
            partial.append(&work, &chunk, &sha256, now).unwrap();
            most_bytes = most_bytes.max(partial.unsynced_bytes);
        }
        assert!((SYNC_BYTES - 2 * CHUNK_BYTES as u64..=SYNC_BYTES).contains(&most_bytes), "{most_bytes}");
        assert!(partial.unsynced_bytes < 10 * CHUNK_BYTES as u64);
    }

    #[test]
    fn a_byte_waits_a_second_at_most() {
        let directory = tempfile::tempdir().unwrap();
        let work = Beneath::root(directory.path()).unwrap();
        let begin = Instant::now();
        let mut partial = Partial::begin(&work, Key::new(Path::new("x")), SOURCE, None).unwrap();
        partial.append(&work, b"abc", &sha256(b"abc"), begin).unwrap();
        partial.sync_if_due(&work, begin + SYNC_AFTER / 2).unwrap();
        assert_eq!(partial.unsynced_bytes, 3);
        partial.sync_if_due(&work, begin + SYNC_AFTER).unwrap();
        assert_eq!(partial.unsynced_bytes, 0);
        let kept = find(&work, partial.key(), &SOURCE, &|| true).unwrap().unwrap();
        assert_eq!(kept.length, 3);
    }
}
