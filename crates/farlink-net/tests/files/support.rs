//! Trees of files, streams that fail, and both ends of a transfer in one task.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use farlink_net::files::{FilesError, Progress, ReceiveOptions, SendOptions, Summary, receive_files, send_files};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Random numbers from a seed (SplitMix64), for what needs no strategy of proptest.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(count).collect()
    }
}

/// What there is of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, i64),
}

/// Everything below a folder, without the work folder.
pub(crate) fn contents(root: &Path) -> BTreeMap<PathBuf, Found> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for child in fs::read_dir(&folder).unwrap() {
            let path = child.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if path.file_name().unwrap() == farlink_net::files::WORK_FOLDER {
                continue;
            }
            let content = if metadata.is_dir() {
                folders.push(path.clone());
                None
            } else {
                Some(fs::read(&path).unwrap())
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let inside = path.strip_prefix(root).unwrap().to_owned();
            found.insert(inside, Found { content, mode: metadata.permissions().mode() & 0o7777, modified });
        }
    }
    found
}

pub(crate) fn total_bytes(tree: &BTreeMap<PathBuf, Found>) -> u64 {
    tree.values().map(|found| found.content.as_ref().map_or(0, |content| content.len() as u64)).sum()
}

/// What a stream in memory does to its bytes on the way out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// Nothing is written behind this many bytes: the stream fails then.
    pub(crate) cut_at: Option<u64>,
    /// Seed by which writes are split into pieces.
    pub(crate) split: Option<u64>,
    /// Bytes that are changed: where, and by which XOR.
    pub(crate) changes: Vec<(u64, u8)>,
}

pub(crate) struct Bad<S> {
    /// Dropped when the stream is cut, so that the other end notices.
    stream: Option<S>,
    fate: Fate,
    written: u64,
    random: Random,
    reader: Option<Waker>,
}

impl<S> Bad<S> {
    pub(crate) fn new(stream: S, fate: Fate) -> Self {
        let random = Random(fate.split.unwrap_or(0));
        Bad { stream: Some(stream), fate, written: 0, random, reader: None }
    }
}

fn broken<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
}

impl<S: AsyncRead + Unpin> AsyncRead for Bad<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.reader = Some(cx.waker().clone());
        let Some(stream) = &mut this.stream else { return broken() };
        let most = if this.fate.split.is_some() { 1 + this.random.below(3000) as usize } else { usize::MAX };
        let mut piece = vec![0; most.min(buffer.remaining())];
        let mut part = ReadBuf::new(&mut piece);
        let read = Pin::new(stream).poll_read(cx, &mut part);
        buffer.put_slice(part.filled());
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bad<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut most = bytes.len() as u64;
        if let Some(cut_at) = this.fate.cut_at {
            if this.written >= cut_at {
                this.stream = None;
                if let Some(reader) = this.reader.take() {
                    reader.wake();
                }
            }
            most = most.min(cut_at.saturating_sub(this.written));
        }
        let Some(stream) = &mut this.stream else { return broken() };
        if this.fate.split.is_some() {
            most = most.min(1 + this.random.below(3000));
        }
        let mut piece = bytes[..most as usize].to_vec();
        for &(at, change) in &this.fate.changes {
            if let Some(inside) = at.checked_sub(this.written).filter(|&inside| inside < most) {
                piece[inside as usize] ^= change;
            }
        }
        let written = Pin::new(stream).poll_write(cx, &piece);
        if let Poll::Ready(Ok(written)) = written {
            this.written += written as u64;
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.as_mut().map_or_else(broken, |stream| Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.as_mut().map_or_else(broken, |stream| Pin::new(stream).poll_shutdown(cx))
    }
}

/// How both ends fared.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) sent: Result<Summary, FilesError>,
    pub(crate) received: Result<Summary, FilesError>,
    /// The last progress of each end, if there was any.
    pub(crate) sender_progress: Option<Progress>,
    pub(crate) receiver_progress: Option<Progress>,
}

impl Ends {
    /// Bytes of files that the receiver took in this transfer.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.receiver_progress.as_ref().map_or(0, |progress| progress.done_bytes - progress.resumed_bytes)
    }

    /// Both summaries, of a transfer that must have succeeded.
    pub(crate) fn summaries(self) -> (Summary, Summary) {
        (self.sent.expect("sending succeeds"), self.received.expect("receiving succeeds"))
    }
}

/// A transfer whose streams have these fates: of what the sender writes, and of what the receiver does.
pub(crate) async fn transfer_with(
    paths: &[PathBuf],
    directory: &Path,
    send_options: &SendOptions,
    options: &ReceiveOptions,
    fates: (Fate, Fate),
) -> Ends {
    let (one, other) = tokio::io::duplex(64 << 10);
    let (mut sender_progress, mut receiver_progress) = (None, None);
    let sending = send_files(Bad::new(one, fates.0), paths, send_options, |now| sender_progress = Some(now));
    let receiving = receive_files(Bad::new(other, fates.1), directory, options, |now| receiver_progress = Some(now));
    let both = async { tokio::join!(sending, receiving) };
    let (sent, received) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("no end waits for ever");
    Ends { sent, received, sender_progress, receiver_progress }
}

pub(crate) async fn transfer(path: &Path, directory: &Path) -> Ends {
    let no_fates = (Fate::default(), Fate::default());
    transfer_with(&[path.to_owned()], directory, &SendOptions::default(), &ReceiveOptions::default(), no_fates).await
}

/// An empty folder for the source and a directory to receive into.
pub(crate) struct Place {
    _both: tempfile::TempDir,
    pub(crate) source: PathBuf,
    pub(crate) directory: PathBuf,
}

impl Place {
    /// In memory where there is such a file system: hundreds of transfers fsync thousands of files.
    pub(crate) fn new() -> Self {
        Place::within(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    pub(crate) fn on_disk() -> Self {
        Place::within(tempfile::tempdir().unwrap())
    }

    fn within(both: tempfile::TempDir) -> Self {
        let (source, directory) = (both.path().join("source"), both.path().join("directory"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&directory).unwrap();
        Place { _both: both, source, directory }
    }

    /// Where the receiver puts the source.
    pub(crate) fn copy(&self) -> PathBuf {
        self.directory.join("source")
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.source.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Both trees are the same, and nothing else is in the directory.
    pub(crate) fn assert_same(&self) {
        let (source, copy) = (contents(&self.source), contents(&self.copy()));
        assert!(source == copy, "{:?}\n{:?}", names(&source), names(&copy));
        let entries: Vec<_> = fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(entries, ["source"]);
    }
}

/// The tree without what is in its files, for messages.
fn names(tree: &BTreeMap<PathBuf, Found>) -> Vec<String> {
    let line = |(path, found): (&PathBuf, &Found)| {
        let bytes = found.content.as_ref().map(Vec::len);
        format!("{} {bytes:?} {:o} {:?}", path.display(), found.mode, found.modified)
    };
    tree.iter().map(line).collect()
}
