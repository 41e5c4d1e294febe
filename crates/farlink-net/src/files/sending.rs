//! The sender's side of the stream.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::error::{FilesError, FormatError};
use super::frame::{self, Frame, FrameReader, Outcome};
use super::limits::SendOptions;
use super::manifest::{Kind, Manifest};
use super::source::{self, Answer, Output};
use super::summary::{Counter, Failure, Named, Progress, Summary};
use super::tree::Tree;

/// Sends files and folders with everything in them over a stream whose other end calls
/// [`receive_files`](super::receive_files).
///
/// `progress` is called for each file and chunk. Dropping the future ends the transfer; the receiver keeps what it has,
/// and a later call goes on from there.
///
/// # Errors
///
/// The whole transfer failed. Files that failed while others went on are in [`Summary::failed`].
pub async fn send_files<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    paths: &[PathBuf],
    options: &SendOptions,
    progress: impl FnMut(Progress),
) -> Result<Summary, FilesError> {
    let (reader, mut writer) = tokio::io::split(stream);
    let sent = send(reader, &mut writer, paths, options, progress).await;
    frame::write_last_words(&mut writer, sent.as_ref().err(), None).await;
    sent
}

async fn send<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    reader: R,
    writer: &mut W,
    paths: &[PathBuf],
    options: &SendOptions,
    progress: impl FnMut(Progress),
) -> Result<Summary, FilesError> {
    let (answers, to_thread) = mpsc::unbounded_channel();
    let mut outputs = source::start(paths.to_vec(), options.clone(), to_thread)?;
    let (tree_found, tree) = oneshot::channel();

    let mut listening = std::pin::pin!(listen(FrameReader::new(reader), tree, answers));
    let mut writing = std::pin::pin!(write_outputs(writer, &mut outputs, tree_found, progress));
    let (carried_bytes, resumed_bytes) = tokio::select! {
        heard = &mut listening => {
            // `Done` may have arrived before its flush returned here.
            let mut summary = heard?;
            (summary.carried_bytes, summary.resumed_bytes) = writing.await?;
            return Ok(summary);
        }
        written = &mut writing => match written {
            Ok(bytes) => bytes,
            // A peer that refuses also closes the stream: its reason says more than a failed stream.
            Err(error @ (FilesError::Stream(_) | FilesError::Closed)) => {
                return match tokio::time::timeout(frame::LAST_WORDS, listening).await {
                    Ok(Err(said @ (FilesError::RefusedByPeer { .. } | FilesError::Version { .. }))) => Err(said),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        },
    };
    let mut summary = listening.await?;
    summary.carried_bytes = carried_bytes;
    summary.resumed_bytes = resumed_bytes;
    Ok(summary)
}

/// Writes what the thread hands over, and returns the bytes of files that it wrote and that it did not have to.
async fn write_outputs<W: AsyncWrite + Unpin>(
    writer: &mut W,
    outputs: &mut mpsc::Receiver<Output>,
    tree_found: oneshot::Sender<Arc<Tree>>,
    mut progress: impl FnMut(Progress),
) -> Result<(u64, u64), FilesError> {
    frame::write_preamble(writer).await?;
    writer.flush().await.map_err(FilesError::Stream)?;
    let tree = match outputs.recv().await {
        Some(Output::Tree(tree)) => tree,
        Some(Output::Failed(error)) => return Err(error),
        _ => return Err(FilesError::ThreadEnded),
    };
    let manifest = &tree.manifest;
    for body in manifest.encode() {
        frame::write(writer, &Frame::Manifest(body.into())).await?;
    }
    let end = Frame::ManifestEnd { entries: manifest.len(), bytes: manifest.total_bytes() };
    frame::write(writer, &end).await?;
    // The task that reads answers needs the tree. It is gone only after an error, which ends this future.
    let _ = tree_found.send(Arc::clone(&tree));

    let mut counter = Counter::new(manifest.total_bytes());
    let (mut carried_bytes, mut resumed_bytes) = (0, 0);
    loop {
        let output = match outputs.try_recv() {
            Ok(output) => output,
            Err(_) => {
                writer.flush().await.map_err(FilesError::Stream)?;
                outputs.recv().await.ok_or(FilesError::ThreadEnded)?
            }
        };
        let frame = match output {
            Output::Begin { index, offset } => {
                resumed_bytes += offset;
                progress(counter.begin(&manifest.path(index), offset));
                Frame::Begin { index, offset }
            }
            Output::Chunk { sha256, data } => Frame::Chunk { sha256, data },
            Output::End { sha256 } => Frame::End { sha256 },
            Output::Abandon { index, reason, bytes } => {
                progress(counter.left_out(bytes));
                Frame::Abandon { index, reason }
            }
            Output::Differs { index, bytes } => {
                progress(counter.left_out(bytes));
                Frame::Differs { index }
            }
            Output::NotWanted { bytes } => {
                progress(counter.left_out(bytes));
                continue;
            }
            Output::Done => break,
            Output::Failed(error) => return Err(error),
            Output::Tree(_) => return Err(FilesError::ThreadEnded),
        };
        frame::write(writer, &frame).await?;
        if let Frame::Chunk { data, .. } = &frame {
            carried_bytes += data.len() as u64;
            progress(counter.carried(data.len()));
        }
    }
    frame::write(writer, &Frame::Done).await?;
    writer.flush().await.map_err(FilesError::Stream)?;
    Ok((carried_bytes, resumed_bytes))
}

/// Takes the receiver's answers and verdicts, until it has finished.
async fn listen<R: AsyncRead + Unpin>(
    mut frames: FrameReader<R>,
    tree: oneshot::Receiver<Arc<Tree>>,
    answers: mpsc::UnboundedSender<Answer>,
) -> Result<Summary, FilesError> {
    // No frame but a refusal comes before the manifest was sent; reading at once hears that.
    let first = frames.next().await?;
    let Ok(tree) = tree.await else { return std::future::pending().await };
    let mut verdicts = Verdicts::new(&tree.manifest, answers);
    let mut frame = first;
    loop {
        match frame {
            Frame::Nothing { first, count } => verdicts.nothing(first, count)?,
            Frame::Claim { index, length, sha256, only } => {
                verdicts.answer(index, length, Answer::Claim { length, sha256, only })?;
            }
            Frame::Verdict { index, outcome } => verdicts.verdict(index, outcome)?,
            Frame::Finished => break,
            other => return Err(FormatError::Order(other.kind()).into()),
        }
        frame = frames.next().await?;
    }
    let mut summary = verdicts.finish()?;
    summary.left_out = tree.left_out.clone();
    // Paths that the walk could not read come first: the receiver has not heard of them.
    let mut failed: Named<Failure> = tree.failed.clone();
    failed.extend(summary.failed);
    summary.failed = failed;
    Ok(summary)
}

/// Which answers and verdicts may come, and what they add up to.
struct Verdicts<'a> {
    manifest: &'a Manifest,
    answers: mpsc::UnboundedSender<Answer>,
    next_answer: Option<u32>,
    /// Which entries have a verdict.
    has_verdict: Vec<bool>,
    summary: Summary,
}

impl<'a> Verdicts<'a> {
    fn new(manifest: &'a Manifest, answers: mpsc::UnboundedSender<Answer>) -> Self {
        let has_verdict = vec![false; manifest.len() as usize];
        Verdicts { manifest, answers, next_answer: manifest.next_file(0), has_verdict, summary: Summary::default() }
    }

    fn nothing(&mut self, first: u32, count: u32) -> Result<(), FormatError> {
        let mut index = first;
        for _ in 0..count {
            self.answer(index, 0, Answer::Nothing)?;
            index = self.next_answer.unwrap_or(u32::MAX);
        }
        Ok(())
    }

    fn answer(&mut self, index: u32, length: u64, answer: Answer) -> Result<(), FormatError> {
        let size = self.manifest.get(index).and_then(|entry| entry.size());
        if self.next_answer != Some(index) || size.is_none_or(|size| length > size) {
            return Err(FormatError::Fields(Frame::Nothing { first: 0, count: 0 }.kind()));
        }
        self.next_answer = self.manifest.next_file(index + 1);
        // The thread is gone only when it met an error, which ends the transfer elsewhere.
        let _ = self.answers.send(answer);
        Ok(())
    }

    fn verdict(&mut self, index: u32, outcome: Outcome) -> Result<(), FormatError> {
        let fields = FormatError::Fields(Frame::Verdict { index, outcome: Outcome::Placed }.kind());
        let entry = self.manifest.get(index).ok_or(fields)?;
        if std::mem::replace(&mut self.has_verdict[index as usize], true) {
            return Err(fields);
        }
        // A verdict in place of an answer: the receiver does not want the file.
        if self.next_answer.is_some_and(|next| index >= next) && entry.kind != Kind::Folder {
            if !matches!(outcome, Outcome::Failed(_)) {
                return Err(fields);
            }
            self.answer(index, 0, Answer::NotWanted)?;
        }
        match outcome {
            Outcome::Failed(reason) => {
                self.summary.failed.push(Failure { path: self.manifest.path(index), reason });
            }
            _ if entry.kind == Kind::Folder => return Err(fields),
            Outcome::Placed => self.summary.placed += 1,
            Outcome::AlreadyThere => self.summary.already_there += 1,
        }
        Ok(())
    }

    fn finish(self) -> Result<Summary, FormatError> {
        let mut files = self.manifest.iter().filter(|(_, entry)| entry.kind != Kind::Folder);
        if self.next_answer.is_some() || !files.all(|(index, _)| self.has_verdict[index as usize]) {
            return Err(FormatError::Order(Frame::Finished.kind()));
        }
        Ok(self.summary)
    }
}
