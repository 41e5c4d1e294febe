//! One end of an AeroTP flow: a connection, or a listener that serves one peer at a time.

use crate::endpoint::{Counters, Endpoint, LinkHint, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::payload::Payload;
use crate::protocol::Pairs;
use crate::rng::SplitMix64;
use crate::time::Time;

#[cfg(feature = "trains")]
use super::absorbed::Absorbed;
use super::admission::{Verdict, judge};
use super::config::{AerotpConfig, Opens};
use super::connection::{Arrival, Connection, Dropped};
use super::lifecycle::State;
use super::peer::Peer;
use super::segment::Segment;

/// A connection and, where the peer opens it, its successors: the form of the [`Acceptor`](super::Acceptor) for a
/// single peer.
///
/// A listener has a passive connection from the start, so that data may be written before there is a peer. When that
/// connection has ended, or the peer has restarted, another passive one replaces it, and the application writes its
/// data again. It notices this by [`Abort::PeerRestarted`], or by a second [`Event::Connected`].
/// `[C12]`, `[C18]`
#[derive(Clone, Debug)]
pub struct Side<D> {
    pub(super) connection: Connection<D>,
    pub(super) listener: Option<Listener>,
    rest: Rest,
}

instants! { Side<D>: connection, listener; fixed: rest }

/// Whether anything may have happened since the connection had nothing to send and nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Unknown,
    NothingToSend,
    NothingToDo,
}

/// State that a listener keeps from one connection to the next.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    /// Gives the tag of the next connection. `[L10]`
    random: SplitMix64,
    /// The previous peer. Segments with its tag, or no newer than the last one it sent, belong to the past connection.
    pub(super) past: Option<Peer>,
    /// How the previous connection ended, if the application is yet to be told.
    pub(super) aborted: Option<Abort>,
    /// Segments that earlier connections dropped.
    dropped: Dropped,
}

instants! { Listener: past; fixed: random, aborted, dropped }

impl<D: Payload> Side<D> {
    /// The side that opens the connection.
    pub(super) fn active(connection: Connection<D>) -> Self {
        Side { connection, listener: None, rest: Rest::Unknown }
    }

    /// The side that waits for peers.
    pub(super) fn listening(config: &AerotpConfig, mut random: SplitMix64) -> Self {
        let connection = Connection::listen(config, &mut random);
        // Datagrams have no connections.
        let listener = (!config.carries_messages()).then(|| Listener {
            random,
            past: None,
            aborted: None,
            dropped: Dropped::default(),
        });
        Side { connection, listener, rest: Rest::Unknown }
    }

    /// The present connection.
    pub fn connection(&self) -> &Connection<D> {
        &self.connection
    }

    /// The present connection. Packets and timeouts go to the side, which replaces the connection when it ends.
    pub fn connection_mut(&mut self) -> &mut Connection<D> {
        self.rest = Rest::Unknown;
        &mut self.connection
    }

    /// As [`Connection::move_origin`], also for the connections to come.
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
    }

    /// As [`handle_packet`](Endpoint::handle_packet), for data for which nothing else is to be done: nothing is to be sent, no event is to
    /// be told. Data in order counts as read. Returns `None`, without any effect, if `handle_packet` is to be used.
    #[cfg(feature = "trains")]
    #[inline]
    pub fn absorb(&mut self, now: Time, segment: &Segment<D>, rx: Rx) -> Option<Absorbed> {
        if self.rest == Rest::NothingToDo { self.connection.absorb(now, segment, rx) } else { None }
    }

    /// The state of the present connection.
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// Counts of the segments dropped so far, by all its connections.
    pub fn dropped(&self) -> Dropped {
        let mut dropped = self.connection.dropped();
        if let Some(listener) = &self.listener {
            dropped += listener.dropped;
        }
        dropped
    }

    /// The next connection takes the place of the present one. Everything that its peer has sent so far belongs to the past.
    /// `[C12]`, `[C18]`
    fn listen_again(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        let next = self.connection.next(&mut listener.random);
        let ended = std::mem::replace(&mut self.connection, next);
        listener.past = ended.peer().copied().or(listener.past);
        let is_told = ended.was_reset() && ended.has_told_end();
        let why = if ended.was_reset() { Abort::Reset } else { Abort::PeerRestarted };
        listener.aborted = (ended.is_unfinished() && !is_told).then_some(why);
        listener.dropped += ended.dropped();
    }
}

impl<D: Payload> Endpoint for Side<D> {
    type Packet = Segment<D>;

    #[inline]
    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        self.rest = Rest::Unknown;
        if self.connection.handle(now, segment, rx) == Arrival::Done {
            if let Some((opening, rx)) = self.connection.take_successor().filter(|_| self.listener.is_some()) {
                self.listen_again();
                self.connection.open(now, &opening, rx);
            }
            return;
        }
        if self.connection.is_closed() {
            // A peer that restarted answers with RESET what is sent to it before its opening arrives.
            let is_served = self.listener.is_some() && self.connection.was_reset();
            let past = self.connection.peer().filter(|_| is_served && now < self.connection.remembered_until());
            match judge(past, now, segment) {
                Verdict::Opens if is_served => {}
                Verdict::Late => {
                    self.connection.drop_stray();
                    self.connection.on_late(now, segment, rx);
                    return;
                }
                _ => {
                    self.connection.refuse(segment);
                    return;
                }
            }
            self.listen_again();
            self.connection.open(now, segment, rx);
            return;
        }
        if self.connection.peer().is_some() {
            self.listen_again();
        }
        let past = self.listener.as_ref().and_then(|listener| listener.past.as_ref());
        match judge(past, now, segment) {
            Verdict::Opens => self.connection.open(now, segment, rx),
            Verdict::Late => self.connection.drop_stray(),
            Verdict::Refused => self.connection.refuse(segment),
        }
    }

    fn wants_hints(&self) -> bool {
        self.connection.wants_hints()
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        self.rest = Rest::Unknown;
        self.connection.handle_link(now, hint);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.rest = Rest::Unknown;
        if self.listener.is_some() && now >= self.connection.answers_until() {
            self.listen_again();
        }
        self.connection.handle_timeout(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment<D>>> {
        let transmit = self.connection.poll_transmit(now);
        self.rest = if transmit.is_none() { Rest::NothingToSend } else { Rest::Unknown };
        transmit
    }

    fn poll_event(&mut self) -> Option<Event> {
        let aborted = self.listener.as_mut().and_then(|listener| listener.aborted.take());
        let event = aborted.map(Event::Aborted).or_else(|| self.connection.poll_event());
        self.rest = if event.is_none() && self.rest != Rest::Unknown { Rest::NothingToDo } else { Rest::Unknown };
        event
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        self.connection.poll_timeout()
    }

    fn counters(&self) -> Counters {
        self.connection.counters()
    }

    fn probe(&self) -> Probe {
        self.connection.probe()
    }
}

impl<D: Payload> Stream<D> for Side<D> {
    fn write(&mut self, now: Time, data: &mut D) -> usize {
        self.rest = Rest::Unknown;
        self.connection.write(now, data)
    }

    fn read(&mut self) -> Option<D> {
        self.rest = Rest::Unknown;
        self.connection.read()
    }

    fn close(&mut self, now: Time) {
        self.rest = Rest::Unknown;
        self.connection.close(now);
    }

    fn settled_bytes(&self) -> u64 {
        self.connection.settled_bytes()
    }
}

impl<D: Payload> Pairs<D> for AerotpConfig {
    type End = Side<D>;

    fn pair(&self, seed: u64) -> (Side<D>, Side<D>) {
        let stream = |seed| SplitMix64::new(seed);
        let server = match self.opens {
            Opens::Sender => Side::listening(self, stream(seed.wrapping_add(1))),
            Opens::Both => Side::active(Connection::connect(self, &mut stream(seed.wrapping_add(1))).calling()),
        };
        (Side::active(Connection::connect(self, &mut stream(seed))), server)
    }
}
