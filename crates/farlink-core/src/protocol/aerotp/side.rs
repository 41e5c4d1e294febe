//! One end of an AeroTP flow: a connection, or a listener that serves one peer at a time.

use crate::endpoint::{Counters, Endpoint, LinkHint, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::payload::Payload;
use crate::protocol::Pairs;
use crate::rng::SplitMix64;
use crate::time::Time;

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
}

instants! { Side<D>: connection, listener }

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
        Side { connection, listener: None }
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
        Side { connection, listener }
    }

    /// The present connection.
    pub fn connection(&self) -> &Connection<D> {
        &self.connection
    }

    /// The present connection. Packets and timeouts go to the side, which replaces the connection when it ends.
    pub fn connection_mut(&mut self) -> &mut Connection<D> {
        &mut self.connection
    }

    /// As [`Connection::move_origin`], also for the connections to come.
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
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
        self.connection.handle_link(now, hint);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.listener.is_some() && now >= self.connection.answers_until() {
            self.listen_again();
        }
        self.connection.handle_timeout(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment<D>>> {
        self.connection.poll_transmit(now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        let aborted = self.listener.as_mut().and_then(|listener| listener.aborted.take());
        aborted.map(Event::Aborted).or_else(|| self.connection.poll_event())
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
        self.connection.write(now, data)
    }

    fn read(&mut self) -> Option<D> {
        self.connection.read()
    }

    fn close(&mut self, now: Time) {
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
