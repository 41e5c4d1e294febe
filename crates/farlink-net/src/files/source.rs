//! The thread that reads the files to send.
//!
//! A thread of its own, because reading and hashing block for as long as a transfer takes: it would occupy a place in
//! tokio's pool for days, and a runtime that shuts down would wait for it. It hands over at most [`QUEUE`] chunks, so
//! that a slow stream stops it, and it ends when the other end of a channel is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::fs::OFlags;
use tokio::sync::mpsc;

use crate::remedy::remedy;

use super::digest::{Digest, Hasher, hash_prefix, read_full, sha256};
use super::error::{FilesError, is_fatal};
use super::frame::CHUNK_BYTES;
use super::limits::SendOptions;
use super::manifest::Entry;
use super::tree::{self, Tree};

/// Chunks between the thread and the stream.
pub(super) const QUEUE: usize = 4;

/// The first chunk, and the shortest that a slow stream gets.
const FIRST_CHUNK_BYTES: usize = 1 << 15;
const LEAST_CHUNK_BYTES: usize = 1 << 12;

/// A chunk is what passes in about this time: it is lost when the stream is cut within it.
const SLOW_CHUNK: Duration = Duration::from_millis(500);
const QUICK_CHUNK: Duration = Duration::from_millis(100);

/// The receiver's answer for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Claim { length: u64, sha256: Digest, only: bool },
    NotWanted,
}

/// Output of the thread, in the order in which it is sent.
pub(super) enum Output {
    /// The files to send.
    Tree(Arc<Tree>),
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
    /// The rest of a file, of this many bytes, is not sent.
    Abandon {
        index: u32,
        reason: String,
        bytes: u64,
    },
    Differs {
        index: u32,
        bytes: u64,
    },
    NotWanted {
        bytes: u64,
    },
    Done,
    Failed(FilesError),
}

/// Starts the thread. Answers come in the order of the files in the manifest, one for each.
///
/// # Errors
///
/// No thread could be started.
pub(super) fn start(
    paths: Vec<PathBuf>,
    options: SendOptions,
    answers: mpsc::UnboundedReceiver<Answer>,
) -> Result<mpsc::Receiver<Output>, FilesError> {
    let (outputs, received) = mpsc::channel(QUEUE);
    std::thread::Builder::new()
        .name("farlink-send".to_owned())
        .spawn(move || match send(&paths, &options, answers, &outputs) {
            Err(Stop::Failed(error)) => drop(outputs.blocking_send(Output::Failed(error))),
            Ok(()) | Err(Stop::Unwanted) => {}
        })
        .map_err(|error| FilesError::local("start a thread to read", Path::new(""), error))?;
    Ok(received)
}

/// Why the thread ends early.
enum Stop {
    /// The reader of its output is gone.
    Unwanted,
    Failed(FilesError),
}

impl From<FilesError> for Stop {
    fn from(error: FilesError) -> Self {
        Stop::Failed(error)
    }
}

type Outputs = mpsc::Sender<Output>;

fn hand_over(outputs: &Outputs, output: Output) -> Result<(), Stop> {
    outputs.blocking_send(output).map_err(|_| Stop::Unwanted)
}

fn send(
    paths: &[PathBuf],
    options: &SendOptions,
    mut answers: mpsc::UnboundedReceiver<Answer>,
    outputs: &Outputs,
) -> Result<(), Stop> {
    let tree = Arc::new(tree::walk(paths, options, &|| !outputs.is_closed())?);
    hand_over(outputs, Output::Tree(Arc::clone(&tree)))?;
    let mut chunk_bytes = FIRST_CHUNK_BYTES;
    let mut next = tree.manifest.next_file(0);
    while let Some(index) = next {
        let answer = answers.blocking_recv().ok_or(Stop::Unwanted)?;
        send_file(&tree, index, answer, &mut chunk_bytes, outputs)?;
        next = tree.manifest.next_file(index + 1);
    }
    hand_over(outputs, Output::Done)
}

fn send_file(tree: &Tree, index: u32, answer: Answer, chunk_bytes: &mut usize, outputs: &Outputs) -> Result<(), Stop> {
    let entry = tree.manifest.get(index).expect("next_file returns what is there");
    let size = entry.size().unwrap_or(0);
    if answer == Answer::NotWanted {
        return hand_over(outputs, Output::NotWanted { bytes: size });
    }
    let path = tree.local_path(index);
    let mut left = size;
    let fault = match try_to_send(&path, entry, index, answer, &mut left, chunk_bytes, outputs) {
        Ok(()) => return Ok(()),
        Err(Fault::Stop(stop)) => return Err(stop),
        Err(Fault::Read(error)) if error.kind() == io::ErrorKind::Interrupted => return Err(Stop::Unwanted),
        Err(Fault::Read(error)) if is_fatal(&error) => return Err(FilesError::local("read", &path, error).into()),
        Err(fault) => fault,
    };
    let reason = match fault {
        Fault::Read(error) => format!("the sender cannot read it: {error}; {}", remedy(&error)),
        _ => "it changed on the sending side during the transfer; send it again".to_owned(),
    };
    hand_over(outputs, Output::Abandon { index, reason, bytes: left })
}

/// Why a file is not sent to its end.
enum Fault {
    Stop(Stop),
    Read(io::Error),
    /// It is not what the manifest says.
    Changed,
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        Fault::Stop(stop)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Read(error)
    }
}

/// Sends one file behind what the receiver has of it. `left` is kept at the bytes that are still to come.
fn try_to_send(
    path: &Path,
    entry: &Entry,
    index: u32,
    answer: Answer,
    left: &mut u64,
    chunk_bytes: &mut usize,
    outputs: &Outputs,
) -> Result<(), Fault> {
    // A path that has become a pipe since the walk does not block; one that has become a symbolic link is an error.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check_unchanged(&file, entry)?;
    let mut hasher = Hasher::new();
    if let Answer::Claim { length, sha256, only } = answer {
        // One reading does both: it proves the claim, and it is the beginning of the whole file's SHA-256.
        let own = hash_prefix(&file, length, &|| !outputs.is_closed())?.ok_or(Fault::Changed)?;
        if own.digest() == sha256 {
            hasher = own;
            *left -= length;
        } else if only {
            check_unchanged(&file, entry)?;
            return Ok(hand_over(outputs, Output::Differs { index, bytes: *left })?);
        } else {
            file.seek(SeekFrom::Start(0))?;
        }
    }
    let size = entry.size().unwrap_or(0);
    hand_over(outputs, Output::Begin { index, offset: size - *left })?;
    while *left > 0 {
        let mut chunk = vec![0; usize::try_from(*left).map_or(*chunk_bytes, |left| left.min(*chunk_bytes))];
        if read_full(&mut file, &mut chunk)? < chunk.len() {
            return Err(Fault::Changed);
        }
        hasher.update(&chunk);
        let sha256 = sha256(&chunk);
        *left -= chunk.len() as u64;
        let before = Instant::now();
        hand_over(outputs, Output::Chunk { sha256, data: chunk.into() })?;
        *chunk_bytes = next_chunk_bytes(*chunk_bytes, before.elapsed());
    }
    check_unchanged(&file, entry)?;
    Ok(hand_over(outputs, Output::End { sha256: hasher.digest() })?)
}

/// Whether a file still has the size and time of the manifest.
fn check_unchanged(file: &File, entry: &Entry) -> Result<(), Fault> {
    let metadata = file.metadata()?;
    let is_same =
        metadata.is_file() && Some(metadata.len()) == entry.size() && tree::modified(&metadata) == entry.modified;
    if is_same { Ok(()) } else { Err(Fault::Changed) }
}

/// The length of the next chunk, after one that waited this long for its place in the queue.
fn next_chunk_bytes(chunk_bytes: usize, waited: Duration) -> usize {
    if waited < QUICK_CHUNK {
        (chunk_bytes * 2).min(CHUNK_BYTES)
    } else if waited > SLOW_CHUNK {
        (chunk_bytes / 2).max(LEAST_CHUNK_BYTES)
    } else {
        chunk_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_the_rate_of_the_stream() {
        let mut chunk_bytes = FIRST_CHUNK_BYTES;
        // 10 kB/s.
        for _ in 0..10 {
            chunk_bytes = next_chunk_bytes(chunk_bytes, Duration::from_secs_f64(chunk_bytes as f64 / 10_000.0));
        }
        assert_eq!(chunk_bytes, LEAST_CHUNK_BYTES);
        // 1 GB/s.
        for _ in 0..10 {
            chunk_bytes = next_chunk_bytes(chunk_bytes, Duration::from_secs_f64(chunk_bytes as f64 / 1e9));
        }
        assert_eq!(chunk_bytes, CHUNK_BYTES);
    }
}
