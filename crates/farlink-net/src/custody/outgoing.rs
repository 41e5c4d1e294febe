//! The side of a node that passes its stream on to the next one. `[N3]`, `[N4]`

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use farlink_core::event::Abort;
use farlink_core::gateway::{Gateway, Span, Store, Writer};
use farlink_core::{Payload, Time};
use tokio::time::Instant;

use crate::io::Endpoint;
use crate::seal::PublicKey;

use super::PORT;
use super::frame::{Frame, MOST_DATA, Refusal};
use super::link::{Link, LinkEvent, event_of};
use super::stream::{Label, StreamId};

/// Written ahead into a connection, at most.
const AHEAD_BYTES: usize = 1 << 18;
/// Pauses before a new connection, the first and the longest one. `[T20]`
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Events of the connection to the next node.
#[derive(Debug)]
pub(super) enum OutgoingEvent {
    Link(io::Result<LinkEvent>),
    /// It is time for another connection.
    Again,
}

/// Actions that follow from an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    None,
    /// The next node has kept more.
    Kept,
    /// The next node does not take the stream. It is asked again later.
    Refused(Refusal),
}

/// The connection to the next node.
#[derive(Debug)]
pub(super) struct Outgoing {
    endpoint: Endpoint,
    stream: StreamId,
    label: Label,
    link: Option<Link>,
    /// Written into the present connection and not kept.
    unkept: VecDeque<Span>,
    kept_bytes: u64,
    /// Position up to which the next node has the stream, by its reports over this connection. It may be beyond what was written.
    kept_to: u64,
    has_put_end: bool,
    again: Option<Instant>,
    pause: Duration,
}

impl Outgoing {
    /// `endpoint` has the mode near-reliable.
    pub(super) fn new(endpoint: Endpoint, stream: StreamId, label: Label) -> Self {
        Outgoing {
            endpoint,
            stream,
            label,
            link: None,
            unkept: VecDeque::new(),
            kept_bytes: 0,
            kept_to: 0,
            has_put_end: false,
            again: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Opens a connection if one is wanted, and writes what it has room for. `to` says where the next node is.
    ///
    /// # Errors
    /// If the store fails.
    pub(super) fn advance<S: Store<Data = Bytes>>(
        &mut self,
        gateway: &mut Gateway<S>,
        to: impl FnOnce() -> Option<(PublicKey, SocketAddr)>,
    ) -> Result<(), S::Error> {
        if gateway.wants_connection() && self.again.is_none() {
            let opened = to().and_then(|(key, address)| self.endpoint.connect(&key, address, PORT).ok());
            let Some(connection) = opened else {
                self.wait();
                return Ok(());
            };
            let mut link = Link::new(connection);
            link.put(&Frame::Open { stream: self.stream, label: self.label.clone() });
            self.link = Some(link);
            (self.kept_bytes, self.kept_to, self.has_put_end) = (0, 0, false);
            self.unkept.clear();
            gateway.on_opened();
        }
        while self.write_ahead(gateway)? {}
        Ok(())
    }

    /// Returns whether there may be more, as the next node has some of it already.
    fn write_ahead<S: Store<Data = Bytes>>(&mut self, gateway: &mut Gateway<S>) -> Result<bool, S::Error> {
        let Some(link) = &mut self.link else { return Ok(false) };
        if link.unwritten() >= AHEAD_BYTES / 2 {
            return Ok(false);
        }
        let mut queue = Queue { room: AHEAD_BYTES - link.unwritten(), pieces: Vec::new(), is_closed: false };
        let mut spans = Vec::new();
        gateway.write_to(Time::ZERO, &mut queue, |span| spans.push(span))?;
        for (span, data) in spans.into_iter().zip(queue.pieces) {
            if span.to > self.kept_to {
                link.put(&Frame::Data { position: span.from, data });
            }
            match self.unkept.back_mut().filter(|last| last.to == span.from) {
                Some(last) => last.to = span.to,
                None => self.unkept.push_back(span),
            }
        }
        if queue.is_closed {
            link.put(&Frame::End { position: gateway.received() });
            self.has_put_end = true;
        }
        let known = self.take_kept(self.kept_to);
        self.kept_bytes += known;
        if known > 0 {
            gateway.on_settled(self.kept_bytes)?;
        }
        Ok(known > 0)
    }

    /// The next event. It may be cancelled.
    pub(super) async fn event(&mut self) -> OutgoingEvent {
        match self.again {
            Some(again) => {
                tokio::time::sleep_until(again).await;
                OutgoingEvent::Again
            }
            None => OutgoingEvent::Link(event_of(&mut self.link, true).await),
        }
    }

    /// Something has happened.
    ///
    /// # Errors
    /// If the store fails.
    pub(super) fn on_event<S: Store<Data = Bytes>>(
        &mut self,
        event: OutgoingEvent,
        gateway: &mut Gateway<S>,
    ) -> Result<Progress, S::Error> {
        match event {
            OutgoingEvent::Again => self.again = None,
            OutgoingEvent::Link(Ok(LinkEvent::Written)) => {}
            OutgoingEvent::Link(Ok(LinkEvent::Frame(Frame::Kept { position, has_end }))) => {
                self.pause = FIRST_PAUSE;
                self.kept_to = self.kept_to.max(position);
                self.kept_bytes += self.take_kept(position);
                let is_more = gateway.on_settled(self.kept_bytes)?;
                if has_end && self.has_put_end && position != gateway.received() {
                    // It has another stream of this number, and does not have the end of this one.
                    self.lose(gateway);
                    return Ok(Progress::Refused(Refusal::Other));
                }
                if has_end && self.has_put_end && self.unkept.is_empty() {
                    gateway.on_closed();
                }
                return Ok(if is_more { Progress::Kept } else { Progress::None });
            }
            OutgoingEvent::Link(Ok(LinkEvent::Frame(Frame::Refused(why)))) => {
                self.lose(gateway);
                return Ok(Progress::Refused(why));
            }
            OutgoingEvent::Link(Ok(LinkEvent::Frame(_))) => self.lose(gateway),
            OutgoingEvent::Link(Err(error)) => {
                tracing::debug!(stream = %self.stream, %error, "the connection to the next node is over");
                self.lose(gateway);
            }
        }
        Ok(Progress::None)
    }

    /// How many of the written bytes are below a position.
    fn take_kept(&mut self, position: u64) -> u64 {
        let mut bytes = 0;
        while let Some(span) = self.unkept.front_mut().filter(|span| span.from < position) {
            let to = span.to.min(position);
            bytes += to - span.from;
            span.from = to;
            if span.is_empty() {
                self.unkept.pop_front();
            }
        }
        bytes
    }

    fn lose<S: Store<Data = Bytes>>(&mut self, gateway: &mut Gateway<S>) {
        self.link = None;
        if !gateway.is_complete() {
            // Custody does not end with a connection, however it has ended. `[N4]`
            let _ = gateway.on_aborted(Abort::PeerRestarted);
            self.wait();
        }
    }

    fn wait(&mut self) {
        self.again = Some(Instant::now() + self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    /// The end of the program does not wait for the connection.
    pub(super) fn leave(&self) {
        self.link.iter().for_each(Link::leave);
    }

    /// The next node may forget the stream, of which it has everything; waits a while until that is said.
    pub(super) async fn forget(&mut self) {
        if let Some(link) = &mut self.link {
            link.put(&Frame::Forget);
            let _ = tokio::time::timeout(LONGEST_PAUSE, link.flush()).await;
        }
    }
}

/// Takes data as a connection does.
#[derive(Debug)]
struct Queue {
    room: usize,
    pieces: Vec<Bytes>,
    is_closed: bool,
}

impl Writer<Bytes> for Queue {
    fn write(&mut self, _now: Time, data: &mut Bytes) -> usize {
        let bytes = data.len().min(MOST_DATA).min(self.room);
        if bytes > 0 {
            self.room -= bytes;
            self.pieces.push(Payload::split_to(data, bytes));
        }
        bytes
    }

    fn close(&mut self, _now: Time) {
        self.is_closed = true;
    }
}
