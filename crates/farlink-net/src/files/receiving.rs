//! The receiver's side of the stream.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::error::{FilesError, FormatError};
use super::frame::{self, Frame, FrameReader, Outcome};
use super::limits::ReceiveOptions;
use super::manifest::{Decoder, Kind, Manifest};
use super::store::{self, Command, Event};
use super::summary::{Counter, Failure, Progress, Summary};

/// How often the thread looks whether an fsync is due.
const TICK: Duration = Duration::from_millis(250);

/// Receives files and folders into a directory, from a stream whose other end calls [`send_files`](super::send_files).
/// The directory is made if it does not exist.
///
/// `progress` is called for each file and chunk. Dropping the future ends the transfer; what was received is fsynced,
/// and a later call goes on from there.
///
/// # Errors
///
/// The whole transfer failed. Files that failed while others went on are in [`Summary::failed`].
pub async fn receive_files<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    directory: &Path,
    options: &ReceiveOptions,
    progress: impl FnMut(Progress),
) -> Result<Summary, FilesError> {
    receive_files_in_turn(stream, directory, options, progress, ()).await
}

/// As [`receive_files`]. Drops `turn` as soon as the directory is free for another transfer, though the sender may not have heard the
/// outcome yet.
pub(crate) async fn receive_files_in_turn<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    directory: &Path,
    options: &ReceiveOptions,
    progress: impl FnMut(Progress),
    turn: impl Sized,
) -> Result<Summary, FilesError> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut frames = FrameReader::new(reader);
    let mut received = receive(&mut frames, &mut writer, directory, options, progress).await;
    drop(turn);
    if let Err(FilesError::Stream(_)) = &received
        && let Ok(said) = tokio::time::timeout(frame::LAST_WORDS, refusal(&mut frames)).await
    {
        // A peer that refuses also closes the stream: its reason says more than a failed stream.
        received = said.map_or(received, Err);
    }
    frame::write_last_words(&mut writer, received.as_ref().err(), Some(directory)).await;
    received
}

/// The other side's refusal, if it came before its stream ended.
async fn refusal<R: AsyncRead + Unpin>(frames: &mut FrameReader<R>) -> Option<FilesError> {
    loop {
        match frames.next().await {
            Ok(_) => {}
            Err(error @ (FilesError::RefusedByPeer { .. } | FilesError::Version { .. })) => return Some(error),
            Err(_) => return None,
        }
    }
}

async fn receive<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    frames: &mut FrameReader<R>,
    writer: &mut W,
    directory: &Path,
    options: &ReceiveOptions,
    progress: impl FnMut(Progress),
) -> Result<Summary, FilesError> {
    frame::write_preamble(writer).await?;
    writer.flush().await.map_err(FilesError::Stream)?;
    let manifest = Arc::new(read_manifest(frames, options).await?);
    let (commands, mut events) = store::start(directory, options.clone(), Arc::clone(&manifest))?;
    let mut transfer = Transfer::new(&manifest, progress);
    let mut done = transfer.run(frames, writer, commands, &mut events).await;
    // The commands are dropped: the thread fsyncs what it has and ends. Then the directory is free for the next
    // transfer.
    while let Some(event) = events.recv().await {
        // An error of the thread in data before the end of the stream is the cause; the end of the stream is not.
        if let (Event::Failed(error), Err(FilesError::Closed | FilesError::Stream(_))) = (event, &done) {
            done = Err(error);
        }
    }
    done?;
    Ok(transfer.summary)
}

async fn read_manifest<R: AsyncRead + Unpin>(
    frames: &mut FrameReader<R>,
    options: &ReceiveOptions,
) -> Result<Manifest, FilesError> {
    let mut decoder = Decoder::new(options);
    loop {
        match frames.next().await? {
            Frame::Manifest(body) => decoder.frame(&body)?,
            Frame::ManifestEnd { entries, bytes } => return Ok(decoder.finish(entries, bytes)?),
            other => return Err(FormatError::Order(other.kind()).into()),
        }
    }
}

/// A transfer whose manifest has come.
struct Transfer<'a, P> {
    manifest: &'a Manifest,
    progress: P,
    counter: Counter,
    summary: Summary,
    /// The file that is coming, and how much of it there is.
    current: Option<(u32, u64)>,
}

impl<'a, P: FnMut(Progress)> Transfer<'a, P> {
    fn new(manifest: &'a Manifest, progress: P) -> Self {
        let counter = Counter::new(manifest.total_bytes());
        Transfer { manifest, progress, counter, summary: Summary::default(), current: None }
    }

    async fn run<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        frames: &mut FrameReader<R>,
        writer: &mut W,
        commands: mpsc::Sender<Command>,
        events: &mut mpsc::Receiver<Event>,
    ) -> Result<(), FilesError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_done = false;
        loop {
            // A frame is read when the thread has room for it; what the thread says goes out meanwhile.
            let event = tokio::select! {
                event = events.recv() => event,
                permit = commands.reserve(), if !is_done => match permit {
                    Err(_) => events.recv().await,
                    Ok(permit) => tokio::select! {
                        event = events.recv() => event,
                        frame = frames.next() => {
                            let command = self.command(frame?)?;
                            is_done = matches!(command, Command::Done);
                            permit.send(command);
                            continue;
                        }
                        _ = tick.tick() => {
                            permit.send(Command::Tick);
                            continue;
                        }
                    },
                },
            };
            match event {
                Some(Event::Say(frame)) => {
                    self.count(&frame);
                    frame::write(writer, &frame).await?;
                    if events.is_empty() || frame == Frame::Finished {
                        writer.flush().await.map_err(FilesError::Stream)?;
                    }
                    if frame == Frame::Finished {
                        return Ok(());
                    }
                }
                Some(Event::Failed(error)) => return Err(error),
                None => return Err(FilesError::ThreadEnded),
            }
        }
    }

    /// The thread's work for a frame of the sender.
    fn command(&mut self, frame: Frame) -> Result<Command, FormatError> {
        Ok(match frame {
            Frame::Begin { index, offset } => {
                let size = self.manifest.get(index).and_then(|entry| entry.size());
                if size.is_none_or(|size| offset > size) {
                    return Err(FormatError::Fields(frame.kind()));
                }
                self.current = Some((index, offset));
                self.summary.resumed_bytes += offset;
                (self.progress)(self.counter.begin(&self.manifest.path(index), offset));
                Command::Begin { index, offset }
            }
            Frame::Chunk { sha256, data } => {
                self.summary.carried_bytes += data.len() as u64;
                if let Some((_, length)) = &mut self.current {
                    *length += data.len() as u64;
                    (self.progress)(self.counter.carried(data.len()));
                }
                Command::Chunk { sha256, data }
            }
            Frame::End { sha256 } => Command::End { sha256 },
            Frame::Abandon { index, reason } => Command::Abandon { index, reason },
            Frame::Differs { index } => Command::Differs { index },
            Frame::Done => Command::Done,
            other => return Err(FormatError::Order(other.kind())),
        })
    }

    /// Counts what the sender is told.
    fn count(&mut self, frame: &Frame) {
        let Frame::Verdict { index, outcome } = frame else { return };
        match outcome {
            Outcome::Placed => self.summary.placed += 1,
            Outcome::AlreadyThere => self.summary.already_there += 1,
            Outcome::Failed(reason) => {
                let path = self.manifest.path(*index);
                self.summary.failed.push(Failure { path, reason: reason.clone() });
                let Some(Kind::File { size }) = self.manifest.get(*index).map(|entry| entry.kind) else { return };
                let there = self.current.take_if(|(current, _)| current == index).map_or(0, |(_, length)| length);
                (self.progress)(self.counter.left_out(size.saturating_sub(there)));
            }
        }
    }
}
