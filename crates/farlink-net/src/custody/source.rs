//! Where a stream begins: an application that hands it to the first gateway.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use farlink_core::gateway::{Gateway, MemoryStore};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::io::Endpoint;
use crate::seal::PublicKey;

use super::frame::{MOST_DATA, Refusal};
use super::outgoing::{Outgoing, Progress};
use super::stream::{Label, StreamId};

/// A stream that this program hands to a gateway, which passes it on.
///
/// Written data that the gateway has not [kept](Self::kept) yet is held here, and sent again if the gateway has lost it.
#[derive(Debug)]
pub struct Source {
    stream: StreamId,
    /// Dropped at the end of the stream.
    data: Option<mpsc::Sender<Bytes>>,
    kept: watch::Receiver<u64>,
    task: JoinHandle<Result<(), Refusal>>,
}

/// Why a stream is not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The gateway does not take it.
    #[error("{}", .0.text())]
    Refused(Refusal),
    /// The runtime ends.
    #[error("the program ends before the stream does; wait for finish")]
    Stopped,
}

/// Pieces that wait before they are held.
const AHEAD: usize = 16;

impl Source {
    /// Begins a stream to a sink, through the gateway with this key at this address. Nothing is awaited. At most `held_bytes` are held that
    /// the gateway has not kept.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open(
        endpoint: &Endpoint,
        (gateway, address): (PublicKey, SocketAddr),
        sink: Label,
        held_bytes: u64,
    ) -> Self {
        Self::resume(endpoint, (gateway, address), sink, StreamId::random(), held_bytes)
    }

    /// Begins a stream again that an earlier program has not finished. The same bytes are to be written, from the first one on: what the
    /// gateway has of them is not sent.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn resume(
        endpoint: &Endpoint,
        (gateway, address): (PublicKey, SocketAddr),
        sink: Label,
        stream: StreamId,
        held_bytes: u64,
    ) -> Self {
        let (data, from) = mpsc::channel(AHEAD);
        let (tell, kept) = watch::channel(0);
        let outgoing = Outgoing::new(super::near_reliable(endpoint), stream, sink);
        let task = tokio::spawn(run(outgoing, (gateway, address), from, tell, held_bytes.max(1)));
        Source { stream, data: Some(data), kept, task }
    }

    /// The number of the stream.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Writes all of it; waits while the gateway keeps nothing and there is no room. It may be cancelled, and has written a part then.
    ///
    /// # Errors
    /// If the gateway does not take the stream.
    pub async fn write(&mut self, mut data: Bytes) -> Result<(), SourceError> {
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(MOST_DATA));
            let sent = match &self.data {
                Some(to) => to.send(piece).await.is_ok(),
                None => false,
            };
            if !sent {
                return Err(self.failure().await);
            }
        }
        Ok(())
    }

    /// How many bytes from the beginning on the gateway has kept.
    pub fn kept(&self) -> u64 {
        *self.kept.borrow()
    }

    /// [`kept`](Self::kept), to be watched elsewhere.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.kept.clone()
    }

    /// Waits until the gateway has kept so many bytes.
    ///
    /// # Errors
    /// If the gateway does not take the stream.
    pub async fn wait_kept(&mut self, bytes: u64) -> Result<(), SourceError> {
        match self.kept.wait_for(|&kept| kept >= bytes).await.map(drop) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure().await),
        }
    }

    /// Ends the stream, and waits until the gateway has kept all of it.
    ///
    /// # Errors
    /// If the gateway does not take the stream.
    pub async fn finish(mut self) -> Result<(), SourceError> {
        self.data = None;
        match (&mut self.task).await {
            Ok(result) => result.map_err(SourceError::Refused),
            Err(_) => Err(SourceError::Stopped),
        }
    }

    async fn failure(&mut self) -> SourceError {
        self.data = None;
        match (&mut self.task).await {
            Ok(Err(why)) => SourceError::Refused(why),
            _ => SourceError::Stopped,
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // A stream that was not finished does not end.
        self.task.abort();
    }
}

/// The node of a source: as at a gateway, with a store in memory.
async fn run(
    mut outgoing: Outgoing,
    gateway_at: (PublicKey, SocketAddr),
    mut from: mpsc::Receiver<Bytes>,
    kept: watch::Sender<u64>,
    held_bytes: u64,
) -> Result<(), Refusal> {
    let mut gateway = Gateway::new(MemoryStore::<Bytes>::default(), held_bytes);
    gateway.on_incoming(0);
    loop {
        let Ok(()) = outgoing.advance(&mut gateway, || Some(gateway_at));
        let now = gateway.received() - gateway.held_bytes();
        kept.send_if_modified(|kept| std::mem::replace(kept, now) != now);
        if gateway.is_complete() {
            outgoing.forget().await;
            return Ok(());
        }
        let has_room = gateway.room() > 0 && !gateway.has_end();
        tokio::select! {
            data = from.recv(), if has_room => {
                let taken: Result<(), Infallible> = match data {
                    Some(data) => gateway.receive(gateway.received(), data).map(drop),
                    None => gateway.on_end(),
                };
                let Ok(()) = taken;
            }
            event = outgoing.event() => match outgoing.on_event(event, &mut gateway) {
                // Room comes by itself; the others do not.
                Ok(Progress::None | Progress::Kept | Progress::Refused(Refusal::Full)) => {}
                Ok(Progress::Refused(why)) => return Err(why),
            },
        }
    }
}
