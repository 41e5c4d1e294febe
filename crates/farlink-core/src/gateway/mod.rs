//! Gateways: a node that reads a stream at the end of one connection and writes it into the next one. `docs/aerotp.md`,
//! [N1]-[N6].
//!
//! A [`Gateway`] is one node of one stream. It owns no connection, clock or file. A driver opens the connections,
//! passes the data that it reads to the gateway, lets the gateway write ([`Gateway::write_to`]) and reports when
//! connections open, close or abort. The gateway decides how much to read, when to open a connection, and which bytes
//! to write again into a new one. The simulator drives it with lengths, a network layer with bytes. The source and the
//! sink of a stream are nodes as well: the application provides the bytes of a source and [takes](Gateway::take_next)
//! those of a sink.
//!
//! Each byte has a position in the stream. A new connection starts at the first byte that is not settled, so some bytes
//! may arrive twice; a node stores only those that are new to it. A plain [`Stream`] carries no positions: its first
//! message says where the connection begins, and the [`Reader`] counts from there.
//!
//! # Duties of a driver
//!
//! - **Room.** It reads no more than [`Gateway::room`] from a connection, so that the connection's window closes
//!   (`[N3]`).
//! - **Custody on disk.** A segment counts as arrived when it is on disk (`[N2]`). Data must be in the store, or in a
//!   journal of segments, before the connection acknowledges it.
//! - **Giving up.** When [`Gateway::on_aborted`] answers [`AfterAbort::GiveUp`], it resets the stream's other
//!   connection and calls [`Gateway::give_up`] (`[N6]`).
//! - **Holes.** Bytes that a connection gave up ([`Event::Skipped`](crate::Event::Skipped)) leave a hole in the
//!   positions. A plain stream cannot express a hole, so the driver must report it to the next node or open a new
//!   connection behind it.

mod reader;
mod spans;
mod store;

pub use reader::Reader;
pub use spans::{Span, Spans};
pub use store::{MemoryStore, Store};

use crate::endpoint::Stream;
use crate::event::Abort;
use crate::payload::Payload;
use crate::time::Time;

/// The writing end of an outgoing connection. Every [`Stream`] is one.
pub trait Writer<D> {
    /// See [`Stream::write`].
    fn write(&mut self, now: Time, data: &mut D) -> usize;

    /// See [`Stream::close`].
    fn close(&mut self, now: Time);
}

impl<D: Payload, S: Stream<D>> Writer<D> for S {
    fn write(&mut self, now: Time, data: &mut D) -> usize {
        Stream::write(self, now, data)
    }

    fn close(&mut self, now: Time) {
        Stream::close(self, now);
    }
}

/// The connection into which a gateway writes.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    written_bytes: u64,
    settled_bytes: u64,
    is_closing: bool,
    has_closed: bool,
}

/// State that a store on disk must keep, so that the gateway can continue after a crash. `[N5]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Positions of the bytes that the gateway holds.
    pub held: Spans,
    /// Everything below this position was received or skipped.
    pub received: u64,
    /// The end of the stream was received.
    pub has_end: bool,
}

/// The consequence of an aborted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAbort {
    /// The peer has lost the connection. The gateway needs a new one and writes all unsettled bytes into it. `[N4]`
    Reopen,
    /// The stream is given up: the driver resets its other connection and calls [`Gateway::give_up`]. `[N6]`
    GiveUp,
}

/// One node of one stream.
#[derive(Debug)]
pub struct Gateway<S: Store> {
    store: S,
    buffer_bytes: u64,
    /// Everything below was received or skipped.
    received: u64,
    /// Received and not written.
    waiting: Spans,
    /// Written into the outgoing connection and not settled.
    unsettled: Spans,
    has_incoming: bool,
    has_end: bool,
    outgoing: Option<Outgoing>,
}

impl<S: Store> Gateway<S> {
    /// A node that stops reading while it holds `buffer_bytes` (`[N3]`). `store` must be empty.
    pub fn new(store: S, buffer_bytes: u64) -> Self {
        Gateway::recovered(store, buffer_bytes, Journal::default())
    }

    /// A node after a crash, with the data that its store still has. All unsettled bytes are written again. `[N5]`
    pub fn recovered(store: S, buffer_bytes: u64, journal: Journal) -> Self {
        Gateway {
            store,
            buffer_bytes,
            received: journal.received,
            waiting: journal.held,
            unsettled: Spans::default(),
            has_incoming: false,
            has_end: journal.has_end,
            outgoing: None,
        }
    }

    /// The present state, which a store on disk must keep.
    pub fn journal(&self) -> Journal {
        let mut held = self.waiting.clone();
        held.prepend(self.unsettled.clone());
        Journal { held, received: self.received, has_end: self.has_end }
    }

    /// The store, for example to simulate a crash.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The store, for a driver that brings it to the disk. What the gateway does with it (the methods of [`Store`]) is not the driver's to do.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Everything below this position was received or skipped.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// A connection from the previous node is established, and its first byte has this position. The gateway then needs
    /// an outgoing connection, even without data (`[N1]`). Bytes below the position that were not received were lost in
    /// a crash (`[N5]`).
    pub fn on_incoming(&mut self, position: u64) {
        self.has_incoming = true;
        self.received = self.received.max(position);
    }

    /// Bytes that the gateway has room for. `[N3]`
    pub fn room(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.held_bytes())
    }

    /// Bytes that it holds: received, but neither settled nor taken by the application.
    pub fn held_bytes(&self) -> u64 {
        self.waiting.bytes() + self.unsettled.bytes()
    }

    /// The bytes that it holds, by position.
    pub fn held(&self) -> impl Iterator<Item = Span> + '_ {
        self.unsettled.iter().chain(self.waiting.iter())
    }

    /// Stores the part of `data` that is new; `position` is that of its first byte. Returns the new part (`[N4]`). Data
    /// beyond the last position of 64 bits is dropped, because a peer has sent a wrong position.
    ///
    /// # Errors
    /// If the store fails. The gateway is then unchanged, but data that the connection has acknowledged is lost, and
    /// the stream should be given up.
    pub fn receive(&mut self, position: u64, mut data: S::Data) -> Result<Option<Span>, S::Error> {
        let end = position.checked_add(data.len() as u64);
        let Some(new) = end.and_then(|to| self.new_part(Span { from: position, to })) else { return Ok(None) };
        if new.from > position {
            data.split_to((new.from - position) as usize);
        }
        self.store.put(new.from, data)?;
        self.received = new.to;
        self.waiting.push(new);
        Ok(Some(new))
    }

    /// The connection has given up these bytes. Returns which of them were not received before.
    pub fn skip(&mut self, span: Span) -> Option<Span> {
        let new = self.new_part(span)?;
        self.received = new.to;
        Some(new)
    }

    fn new_part(&self, span: Span) -> Option<Span> {
        let new = Span { from: span.from.max(self.received), to: span.to };
        (!new.is_empty()).then_some(new)
    }

    /// Everything up to the end of the stream was received. `[N6]`
    ///
    /// # Errors
    /// If the store fails.
    pub fn on_end(&mut self) -> Result<(), S::Error> {
        self.store.put_end(self.received)?;
        self.has_end = true;
        Ok(())
    }

    /// Whether the end of the stream was received.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Whether an outgoing connection is to be opened.
    pub fn wants_connection(&self) -> bool {
        self.outgoing.is_none() && (self.has_incoming || self.has_end || !self.waiting.is_empty())
    }

    /// The driver has opened the outgoing connection. Returns the position of its first byte.
    pub fn on_opened(&mut self) -> u64 {
        self.outgoing = Some(Outgoing::default());
        self.waiting.start().unwrap_or(self.received)
    }

    /// Whether no data waits to be written.
    pub fn is_drained(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes waiting data into the outgoing connection until it is full, and closes the connection after the end of
    /// the stream (`[N1]`, `[N6]`). Calls `written` for each range. Returns whether anything was done.
    ///
    /// # Errors
    /// If the store fails.
    pub fn write_to(
        &mut self,
        now: Time,
        connection: &mut impl Writer<S::Data>,
        mut written: impl FnMut(Span),
    ) -> Result<bool, S::Error> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(false) };
        let mut has_acted = false;
        while let Some(next) = self.waiting.first(u64::MAX).filter(|_| !outgoing.is_closing) {
            let mut data = self.store.get(next)?;
            let bytes = connection.write(now, &mut data) as u64;
            let Some(span) = self.waiting.pop(bytes) else { break };
            outgoing.written_bytes += bytes;
            self.unsettled.push(span);
            written(span);
            has_acted = true;
        }
        if self.has_end && self.waiting.is_empty() && !outgoing.is_closing {
            outgoing.is_closing = true;
            connection.close(now);
            has_acted = true;
        }
        Ok(has_acted)
    }

    /// The first `bytes` written into the outgoing connection will not be sent again ([`Stream::settled_bytes`]), so
    /// the gateway releases them. Returns whether these are more than before. `[N3]`
    ///
    /// # Errors
    /// If the store fails.
    pub fn on_settled(&mut self, bytes: u64) -> Result<bool, S::Error> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(false) };
        let more = bytes.min(outgoing.written_bytes).saturating_sub(outgoing.settled_bytes);
        outgoing.settled_bytes += more;
        self.unsettled.drop_front(more);
        if more > 0 {
            self.store.release(self.held_from())?;
        }
        Ok(more > 0)
    }

    /// The first position that the gateway may still need.
    fn held_from(&self) -> u64 {
        self.unsettled.start().or(self.waiting.start()).unwrap_or(self.received)
    }

    /// The outgoing connection is closed, and its peer has all data and the end of the stream.
    pub fn on_closed(&mut self) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.has_closed = true;
        }
    }

    /// Whether the next node has the whole stream.
    pub fn is_complete(&self) -> bool {
        self.outgoing.is_some_and(|outgoing| outgoing.has_closed)
    }

    /// The outgoing connection was aborted.
    pub fn on_aborted(&mut self, why: Abort) -> AfterAbort {
        match why {
            Abort::Reset | Abort::PeerRestarted => {
                self.outgoing = None;
                self.waiting.prepend(std::mem::take(&mut self.unsettled));
                AfterAbort::Reopen
            }
            Abort::TooManyRetries | Abort::NoAnswer | Abort::NotClosed | Abort::OtherVersion => AfterAbort::GiveUp,
        }
    }

    /// Gives up the stream: the gateway and its store drop all data. `[N6]`
    ///
    /// # Errors
    /// If the store fails; the gateway drops its data even then.
    pub fn give_up(&mut self) -> Result<(), S::Error> {
        self.waiting.clear();
        self.unsettled.clear();
        self.outgoing = None;
        self.store.release(self.held_from())
    }

    /// At the sink, the application takes the next consecutive bytes. Returns them with the position of the first one.
    ///
    /// # Errors
    /// If the store fails.
    pub fn take_next(&mut self) -> Result<Option<(u64, S::Data)>, S::Error> {
        let Some(next) = self.waiting.first(u64::MAX) else { return Ok(None) };
        let data = self.store.get(next)?;
        self.waiting.drop_front(data.len() as u64);
        self.store.release(self.held_from())?;
        Ok(Some((next.from, data)))
    }
}
