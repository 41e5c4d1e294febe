//! Hands a file or a pipe to a gateway.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::custody::{Label, Source, StreamId};
use crate::io::Endpoint;
use crate::mux::Trust;
use crate::seal::PublicKey;
use crate::settings::{PathSettings, own_address, set_patience};
use crate::state::StateFolder;

use super::{HandoverError, LAST_WORDS};

/// Where a stream goes.
#[derive(Clone, Debug)]
pub struct SendSettings {
    /// The first gateway.
    pub gateway: PublicKey,
    /// Where it is.
    pub address: SocketAddr,
    /// The sink.
    pub sink: Label,
    /// A stream that was begun before, by the same host and with the same content.
    pub stream: Option<StreamId>,
    /// Length, rate and protection of packets.
    pub path: PathSettings,
    /// How long it may take until the gateway keeps more.
    pub patience: Duration,
}

/// Events meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The stream has this number, with which it can go on after an interruption.
    Begun(StreamId),
    /// The gateway has kept so many bytes.
    Kept(u64),
}

/// A stream that the gateway has on its disk, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub stream: StreamId,
    /// Its length.
    pub bytes: u64,
}

/// Held until the gateway has kept it.
const HELD_BYTES: u64 = 16 << 20;
const READ_BYTES: usize = 1 << 16;
/// Pieces that were read and are not held yet.
const AHEAD: usize = 4;
/// Progress is looked at so often.
const INTERVAL: Duration = Duration::from_millis(100);

/// Hands all of `input` to a gateway. It ends when the gateway has it on its disk: whatever happens then, the stream is passed on to its sink.
///
/// # Errors
/// If a file of this host or the input cannot be used, or the gateway refuses the stream or keeps nothing for too long.
pub async fn send(
    folder: &StateFolder,
    input: impl Read + Send + 'static,
    settings: &SendSettings,
    mut tell: impl FnMut(Sending),
) -> Result<Sent, HandoverError> {
    let SendSettings { gateway, address, ref sink, patience, .. } = *settings;
    let mut config = settings.path.endpoint(folder, Trust::Keys([].into()))?;
    set_patience(&mut config.connection, patience);
    let endpoint = Endpoint::bind(own_address(address), config, Box::new(folder.counters_to_send()?))?;
    let stream = settings.stream.unwrap_or_else(StreamId::random);
    tell(Sending::Begun(stream));
    let source = Source::resume(&endpoint, (gateway, address), sink.clone(), stream, HELD_BYTES);
    let progress = source.progress();
    let read = AtomicU64::new(0);
    let stalled = stalled(&progress, &read, patience, |kept| tell(Sending::Kept(kept)));
    tokio::select! {
        written = write(source, input, &read, address) => written?,
        kept = stalled => return Err(HandoverError::NothingKept { at: address, within_s: patience.as_secs_f64(), kept, stream }),
    }
    let bytes = read.load(Ordering::Relaxed);
    tell(Sending::Kept(bytes));
    // So that the gateway learns that it may forget the stream.
    let _ = tokio::time::timeout(LAST_WORDS, endpoint.finish()).await;
    Ok(Sent { stream, bytes })
}

async fn write(
    mut source: Source,
    input: impl Read + Send + 'static,
    read: &AtomicU64,
    at: SocketAddr,
) -> Result<(), HandoverError> {
    let stream = source.id();
    let mut pieces = pieces_of(input);
    while let Some(piece) = pieces.recv().await {
        let bytes = read.load(Ordering::Relaxed);
        let piece = piece.map_err(|error| HandoverError::Input { bytes, error, stream })?;
        read.fetch_add(piece.len() as u64, Ordering::Relaxed);
        source.write(piece).await.map_err(|why| HandoverError::Refused { at, why })?;
    }
    source.finish().await.map_err(|why| HandoverError::Refused { at, why })
}

/// Reads on a thread of its own, which may wait for a pipe forever.
fn pieces_of(mut input: impl Read + Send + 'static) -> mpsc::Receiver<std::io::Result<Bytes>> {
    let (to, pieces) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let piece = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(bytes) => Ok(Bytes::copy_from_slice(&buffer[..bytes])),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = piece.is_err();
            if to.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    });
    pieces
}

/// Waits until the gateway has kept nothing for too long, though there was something to keep. Returns what it has kept.
async fn stalled(
    progress: &watch::Receiver<u64>,
    read: &AtomicU64,
    patience: Duration,
    mut tell: impl FnMut(u64),
) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let kept = *progress.borrow();
        // With nothing read, nobody has answered yet; with all of it kept, the input is waited for.
        let is_idle = kept > 0 && kept == read.load(Ordering::Relaxed);
        if kept != last || is_idle {
            (last, since) = (kept, Instant::now());
            tell(kept);
        }
        if since.elapsed() > patience {
            return kept;
        }
    }
}
