//! Receives streams from gateways, into a folder or a pipe.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farlink_core::protocol::aerotp::AcceptorLimits;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::custody::{Label, Piece, Sink, SinkStream, StreamId};
use crate::io::Endpoint;
use crate::mux::Trust;
use crate::settings::{PathSettings, set_patience};
use crate::state::StateFolder;

use super::place::Place;
use super::{HandoverError, LAST_WORDS};

/// Where streams are received, and from whom.
#[derive(Clone, Debug)]
pub struct ReceiveSettings {
    /// Address of the socket.
    pub listen: SocketAddr,
    /// Length, rate and protection of packets.
    pub path: PathSettings,
    /// Whether one whole stream is enough.
    pub once: bool,
    /// How long a silent gateway is waited for; then it connects again.
    pub patience: Duration,
}

/// Where streams go.
pub enum Target {
    /// A folder: each has a file with the name of the sink and its number.
    Folder(PathBuf),
    /// The first one goes there.
    Pipe(Box<dyn Write + Send>),
}

/// Events meanwhile.
#[derive(Debug)]
pub enum Received {
    /// The socket is open.
    Listening(SocketAddr),
    /// A stream has begun, or goes on behind what is there of it.
    Begun(StreamId, Label, u64),
    /// So many bytes of a stream are kept.
    Kept(StreamId, u64),
    /// A stream waits for room on the disk.
    Waits(StreamId, HandoverError),
    /// A stream has ended.
    Ended(StreamId, Result<Outcome, HandoverError>),
}

/// A stream that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The name of the sink.
    pub label: Label,
    /// The last gateway, by its name.
    pub from: String,
    /// Its length.
    pub bytes: u64,
    /// Bytes that gateways have lost; they are zeros, and listed beside the file.
    pub lost: u64,
    /// Its file; none if it went into a pipe.
    pub path: Option<PathBuf>,
}

/// Written at a time.
const BATCH_BYTES: usize = 1 << 20;
/// The next piece is waited for so long before what there is gets written.
const BATCH: Duration = Duration::from_millis(20);
/// A full disk is tried again so much later.
const AGAIN: Duration = Duration::from_secs(1);
const QUEUE: usize = 64;

/// Receives streams from trusted gateways, until it is dropped, or one whole stream has come.
///
/// Data that it has kept is on the disk, and gateways forget it. A program that is started again goes on with the same folder.
///
/// # Errors
/// If a file of this host or the target cannot be used, or the socket cannot be opened or fails.
pub async fn receive(
    folder: &StateFolder,
    target: Target,
    settings: &ReceiveSettings,
    mut tell: impl FnMut(Received),
) -> Result<(), HandoverError> {
    let trusted = Arc::new(folder.trusted()?);
    if let Target::Folder(path) = &target {
        std::fs::create_dir_all(path).map_err(|error| HandoverError::output(path, "no folder", error))?;
    }
    let mut config = settings.path.endpoint(folder, Trust::Keys(trusted.keys()))?;
    set_patience(&mut config.connection, settings.patience);
    let endpoint = Endpoint::bind(settings.listen, config, Box::new(folder.counters_to_answer()?))?;
    let mut sink = Sink::listen(&endpoint, AcceptorLimits::default())?;
    tell(Received::Listening(endpoint.local_addr()));
    let (events, mut told) = mpsc::channel(QUEUE);
    let mut tasks = JoinSet::new();
    let (into, mut pipe) = match target {
        Target::Folder(path) => (Some(path), None),
        Target::Pipe(pipe) => (None, Some(pipe)),
    };
    let is_once = settings.once || pipe.is_some();
    // Streams that cannot be written are not offered again as long as they are here.
    let mut failed = Vec::new();
    loop {
        tokio::select! {
            accepted = sink.accept(), if into.is_some() || pipe.is_some() => {
                let Some(stream) = accepted else { return Err(HandoverError::SocketFailed) };
                let from = trusted.name(&stream.from()).map_or_else(|| stream.from().to_string(), str::to_owned);
                let events = events.clone();
                match (&into, pipe.take()) {
                    (Some(path), _) => drop(tasks.spawn(into_folder(stream, path.clone(), from, events))),
                    (None, Some(pipe)) => drop(tasks.spawn(into_pipe(stream, pipe, from, events))),
                    (None, None) => {}
                }
            }
            Some(event) = told.recv() => {
                let end = match &event {
                    Received::Ended(_, Ok(outcome)) => Some(outcome.lost == 0),
                    Received::Ended(_, Err(_)) => Some(false),
                    _ => None,
                };
                match event {
                    Received::Ended(_, Err(error)) if is_once => return Err(error),
                    event => tell(event),
                }
                if end.is_some() && is_once {
                    let _ = timeout(LAST_WORDS, endpoint.finish()).await;
                    return Ok(());
                }
            }
            Some(ended) = tasks.join_next() => failed.extend(ended.ok().flatten()),
        }
    }
}

/// Keeps a stream as a file. Returns it if that does not work.
async fn into_folder(
    mut stream: SinkStream,
    folder: PathBuf,
    from: String,
    events: mpsc::Sender<Received>,
) -> Option<SinkStream> {
    let (id, label) = (stream.id(), stream.label().clone());
    let kept = keep_in_folder(&mut stream, &folder, from, &events).await;
    let result = match kept {
        Err(Stop::Failed(what, error)) => Err(HandoverError::output(&folder.join(label.as_str()), what, error)),
        Err(Stop::Socket) => Err(HandoverError::SocketFailed),
        Ok(outcome) => Ok(outcome),
    };
    let is_failure = result.is_err();
    let _ = events.send(Received::Ended(id, result)).await;
    is_failure.then_some(stream)
}

enum Stop {
    Failed(&'static str, io::Error),
    Socket,
}

async fn keep_in_folder(
    stream: &mut SinkStream,
    folder: &std::path::Path,
    from: String,
    events: &mpsc::Sender<Received>,
) -> Result<Outcome, Stop> {
    let (id, label) = (stream.id(), stream.label().clone());
    let mut place = Place::open(folder, &label, id).map_err(|error| Stop::Failed("cannot be opened", error))?;
    let _ = events.send(Received::Begun(id, label.clone(), place.bytes())).await;
    loop {
        let mut batch = Batch::default();
        let has_ended = batch.fill(stream).await?;
        loop {
            let (again, written) = spawn_blocking(move || {
                let written = batch.write(&mut place);
                ((place, batch), written)
            })
            .await
            .map_err(|_| Stop::Socket)?;
            (place, batch) = again;
            match written {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    let why = HandoverError::output(folder, "a stream waits for room", error);
                    let _ = events.send(Received::Waits(id, why)).await;
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(Stop::Failed("cannot be written", error)),
            }
        }
        if !has_ended {
            stream.keep().await;
            let _ = events.send(Received::Kept(id, stream.position())).await;
            continue;
        }
        let bytes = stream.position();
        let (path, lost) = spawn_blocking(move || place.finish(bytes).map(|path| (path, place.lost())))
            .await
            .map_err(|_| Stop::Socket)?
            .map_err(|error| Stop::Failed("cannot be given its name", error))?;
        stream.keep().await;
        return Ok(Outcome { label, from, bytes, lost, path: Some(path) });
    }
}

/// Data that came and was not written yet.
#[derive(Default)]
struct Batch {
    data: Vec<(u64, Bytes)>,
    /// Positions between which nothing comes, before the data.
    lost: Option<(u64, u64)>,
}

impl Batch {
    /// Waits for the first piece, and takes what comes soon after it. Returns whether the stream has ended.
    async fn fill(&mut self, stream: &mut SinkStream) -> Result<bool, Stop> {
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            let within = if bytes == 0 { Duration::MAX } else { BATCH };
            let Ok(piece) = timeout(within, stream.read()).await else { break };
            match piece.map_err(|_| Stop::Socket)? {
                None => return Ok(true),
                Some(Piece::Data(data)) => {
                    bytes += data.len();
                    self.data.push((stream.position() - data.len() as u64, data));
                }
                // Data behind it goes into the next batch.
                Some(Piece::Lost(bytes)) => {
                    self.lost = Some((stream.position() - bytes, stream.position()));
                    break;
                }
            }
        }
        Ok(false)
    }

    fn write(&self, place: &mut Place) -> io::Result<()> {
        place.write(&self.data)?;
        self.lost.map_or(Ok(()), |(from, to)| place.lose(from, to))
    }
}

/// Passes a stream on to a pipe. Kept is what the pipe has taken.
async fn into_pipe(
    mut stream: SinkStream,
    mut pipe: Box<dyn Write + Send>,
    from: String,
    events: mpsc::Sender<Received>,
) -> Option<SinkStream> {
    let (id, label) = (stream.id(), stream.label().clone());
    let _ = events.send(Received::Begun(id, label.clone(), 0)).await;
    let result = loop {
        let mut batch = Batch::default();
        let Ok(has_ended) = batch.fill(&mut stream).await else { break Err(HandoverError::SocketFailed) };
        let lost = batch.lost;
        let written = spawn_blocking(move || {
            let written = batch.data.iter().try_for_each(|(_, data)| pipe.write_all(data)).and_then(|()| pipe.flush());
            (pipe, written)
        });
        match written.await {
            Ok((again, Ok(()))) => pipe = again,
            Ok((_, Err(error))) => {
                break Err(HandoverError::output(std::path::Path::new("-"), "the output cannot be written", error));
            }
            Err(_) => break Err(HandoverError::SocketFailed),
        }
        if let Some((from, to)) = lost {
            break Err(HandoverError::Lost { stream: id, from, to });
        }
        stream.keep().await;
        let bytes = stream.position();
        let _ = events.send(Received::Kept(id, bytes)).await;
        if has_ended {
            break Ok(Outcome { label, from, bytes, lost: 0, path: None });
        }
    };
    let _ = events.send(Received::Ended(id, result)).await;
    None
}
