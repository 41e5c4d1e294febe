//! Where streams end: an application that takes them from the last gateway.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use farlink_core::ConfigError;
use farlink_core::protocol::aerotp::AcceptorLimits;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::io::{Connection, Endpoint};
use crate::seal::PublicKey;

use super::frame::{Frame, Refusal};
use super::link::{Link, LinkEvent, event_of};
use super::stream::{Label, StreamId};

/// Takes the streams that gateways bring to an endpoint.
///
/// It remembers what it has taken of each stream as long as it is there, so that what a gateway brings again after a crash comes once.
#[derive(Debug)]
pub struct Sink {
    accepted: UnboundedReceiver<SinkStream>,
    task: tokio::task::JoinHandle<()>,
}

/// A stream at its sink.
#[derive(Debug)]
pub struct SinkStream {
    stream: StreamId,
    label: Label,
    from: PublicKey,
    known: Arc<Known>,
    links: UnboundedReceiver<Link>,
    link: Option<Link>,
    /// Bytes that came and were not read, behind lost ones.
    next: Option<(u64, Bytes)>,
    read: u64,
    kept: u64,
    has_read_end: bool,
}

/// The next part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, each of them once and in order.
    Data(Bytes),
    /// So many bytes do not come: the store of a gateway was damaged, or it has given them up.
    Lost(u64),
}

/// Finished streams that are remembered, for gateways that ask again.
const MOST_FINISHED: usize = 65_536;
/// Connections may take so long to say what they are, and gateways to say that they have been told the end.
const OPENING: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Known(Mutex<KnownStreams>);

#[derive(Debug, Default)]
struct KnownStreams {
    /// A gateway may not open more, though each has ended its connection.
    most_open: usize,
    open: BTreeMap<StreamId, (PublicKey, UnboundedSender<Link>)>,
    /// With their ends.
    finished: BTreeMap<StreamId, (PublicKey, u64)>,
    /// In the order in which they have finished.
    order: VecDeque<StreamId>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, KnownStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a connection to its stream, which may be new. Returns it with the end of the stream if that has finished, or with why it is not
    /// taken.
    fn pass(
        self: &Arc<Self>,
        (stream, label): (StreamId, Label),
        from: PublicKey,
        link: Link,
        accept: &UnboundedSender<SinkStream>,
    ) -> Option<(Link, Result<u64, Refusal>)> {
        let mut streams = self.lock();
        if let Some((owner, end)) = streams.finished.get(&stream) {
            return Some((link, if *owner == from { Ok(*end) } else { Err(Refusal::NotYours) }));
        }
        let Some((owner, to)) = streams.open.get(&stream) else {
            if streams.open.len() >= streams.most_open {
                return Some((link, Err(Refusal::Full)));
            }
            let (to, links) = mpsc::unbounded_channel();
            let _ = to.send(link);
            streams.open.insert(stream, (from, to));
            drop(streams);
            let known = self.clone();
            let _ = accept.send(SinkStream {
                stream,
                label,
                from,
                known,
                links,
                link: None,
                next: None,
                read: 0,
                kept: 0,
                has_read_end: false,
            });
            return None;
        };
        if *owner != from {
            return Some((link, Err(Refusal::NotYours)));
        }
        let _ = to.send(link);
        None
    }
}

impl Sink {
    /// Takes streams at an endpoint, from all hosts that it trusts, as many at a time as connections. It accepts all connections of the
    /// endpoint; those to other ports end.
    ///
    /// # Errors
    /// If the settings of the endpoint are refused.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn listen(endpoint: &Endpoint, limits: AcceptorLimits) -> Result<Self, ConfigError> {
        super::near_reliable(endpoint).listen(super::PORT, limits)?;
        let (accept, accepted) = mpsc::unbounded_channel();
        let known = KnownStreams { most_open: limits.connections, ..KnownStreams::default() };
        let known = Arc::new(Known(Mutex::new(known)));
        let endpoint = endpoint.clone();
        let task = tokio::spawn(async move {
            while let Some(connection) = endpoint.accept().await {
                if connection.accepted_at() == Some(super::PORT) {
                    tokio::spawn(take(connection, known.clone(), accept.clone()));
                }
            }
        });
        Ok(Sink { accepted, task })
    }

    /// The next stream that is new; `None` if the endpoint cannot be used any more.
    pub async fn accept(&mut self) -> Option<SinkStream> {
        self.accepted.recv().await
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(connection: Connection, known: Arc<Known>, accept: UnboundedSender<SinkStream>) {
    let Some((from, _)) = connection.peer() else { return };
    let mut link = Link::new(connection);
    let Ok(Ok(Frame::Open { stream, label })) = tokio::time::timeout(OPENING, link.frame()).await else { return };
    let Some((mut link, end)) = known.pass((stream, label), from, link, &accept) else { return };
    let end = match end {
        Ok(end) => end,
        Err(why) => {
            link.put(&Frame::Refused(why));
            let _ = tokio::time::timeout(OPENING, link.flush()).await;
            return;
        }
    };
    link.put(&Frame::Kept { position: end, has_end: true });
    let _ = tokio::time::timeout(OPENING, forgotten(&mut link, &known, stream, end)).await;
}

/// Answers for a finished stream until the gateway has forgotten it.
async fn forgotten(link: &mut Link, known: &Known, stream: StreamId, end: u64) {
    loop {
        match link.event(true).await {
            Ok(LinkEvent::Written) | Ok(LinkEvent::Frame(Frame::Data { .. })) => {}
            // A peer that does not read gets no more reports.
            Ok(LinkEvent::Frame(Frame::End { .. })) if link.unwritten() > 0 => {}
            Ok(LinkEvent::Frame(Frame::End { .. })) => link.put(&Frame::Kept { position: end, has_end: true }),
            Ok(LinkEvent::Frame(Frame::Forget)) => {
                known.lock().finished.remove(&stream);
                return;
            }
            _ => return,
        }
    }
}

impl SinkStream {
    /// The number of the stream.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// The name under which it was sent here.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The last gateway.
    pub fn from(&self) -> PublicKey {
        self.from
    }

    /// How many bytes were read, lost ones included.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// The next part; `None` at the end. It waits as long as gateways take, and may be cancelled.
    ///
    /// # Errors
    /// If the endpoint cannot be used any more.
    pub async fn read(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if let Some((position, mut data)) = self.next.take() {
                if position > self.read {
                    let lost = position - self.read;
                    self.read = position;
                    self.next = (!data.is_empty()).then_some((position, data));
                    return Ok(Some(Piece::Lost(lost)));
                }
                // Data that was read comes again after a crash of the gateway.
                let known = (self.read - position).min(data.len() as u64) as usize;
                data.advance(known);
                if !data.is_empty() {
                    self.read += data.len() as u64;
                    return Ok(Some(Piece::Data(data)));
                }
            }
            if self.has_read_end {
                return Ok(None);
            }
            tokio::select! {
                link = self.links.recv() => {
                    let Some(mut link) = link else { return Err(io::ErrorKind::NotConnected.into()) };
                    link.put(&Frame::Kept { position: self.kept, has_end: false });
                    self.link = Some(link);
                }
                event = event_of(&mut self.link, true) => match event {
                    Ok(LinkEvent::Written) => {}
                    Ok(LinkEvent::Frame(Frame::Data { position, data })) => self.next = Some((position, data)),
                    Ok(LinkEvent::Frame(Frame::End { position })) => {
                        self.has_read_end = true;
                        self.next = Some((position, Bytes::new()));
                    }
                    Ok(LinkEvent::Frame(_)) | Err(_) => self.link = None,
                },
            }
        }
    }

    /// Everything that was read is kept: gateways will not bring it again. An application that stores data calls this when they are stored.
    /// After the end this waits until the gateway knows, or is gone.
    pub async fn keep(&mut self) {
        let has_end = self.has_read_end && self.next.is_none();
        self.kept = self.read;
        if has_end {
            let mut streams = self.known.lock();
            if streams.open.remove(&self.stream).is_some() {
                streams.finished.insert(self.stream, (self.from, self.read));
                streams.order.push_back(self.stream);
                while streams.order.len() > MOST_FINISHED {
                    let oldest = streams.order.pop_front().expect("there are many");
                    streams.finished.remove(&oldest);
                }
            }
        }
        while let Ok(link) = self.links.try_recv() {
            self.link = Some(link);
        }
        let Some(link) = &mut self.link else { return };
        link.put(&Frame::Kept { position: self.read, has_end });
        if has_end {
            let _ = tokio::time::timeout(OPENING, forgotten(link, &self.known, self.stream, self.read)).await;
            self.link = None;
        } else if link.flush().await.is_err() {
            self.link = None;
        }
    }
}

impl Drop for SinkStream {
    fn drop(&mut self) {
        self.known.lock().open.remove(&self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::super::PORT;
    use super::super::tests::{endpoints, label};
    use super::*;

    /// A gateway that opens stream after stream, each over a connection that ends at once.
    #[tokio::test]
    async fn open_streams_are_bounded() {
        let [here, gateway] = endpoints();
        let known = Arc::new(Known(Mutex::new(KnownStreams { most_open: 3, ..KnownStreams::default() })));
        let (accept, mut accepted) = mpsc::unbounded_channel();
        let from = gateway.public_key();
        let pass = |stream| {
            let link = Link::new(here.connect(&from, gateway.local_addr(), PORT).unwrap());
            known.pass((stream, label()), from, link, &accept).map(|(_, why)| why)
        };
        let streams = [0; 5].map(|_| StreamId::random());
        assert_eq!(
            streams[..4].iter().map(|it| pass(*it)).collect::<Vec<_>>(),
            [None, None, None, Some(Err(Refusal::Full))]
        );
        assert_eq!(pass(streams[1]), None, "another connection of a stream that is there");
        drop(accepted.recv().await);
        assert_eq!(pass(streams[4]), None);
    }
}
