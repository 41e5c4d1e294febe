//! The host side of AeroTP: makes a connection for each peer and assigns segments to them.

mod routing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ConfigError;
use crate::agenda::Agenda;
use crate::endpoint::{Endpoint, LinkHint, Rx, Transmit};
use crate::event::{Abort, Event};
use crate::origin::{MoveOrigin, OriginShift};
use crate::payload::Payload;
use crate::rng::RandomSource;
use crate::time::Time;

use super::admission::Reset;
use super::config::{AerotpConfig, Opens};
use super::connection::{Connection, Dropped};
use super::peer::Peer;
use super::rate::CommonRate;
use super::segment::Segment;

/// How many connections an [`Acceptor`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptorLimits {
    /// Backlog: half-open connections, whose peers have not yet shown that they receive this side's segments. `[H3]`
    pub half_open: usize,
    /// Connections, those included that have ended and are not forgotten. `[H4]`
    pub connections: usize,
}

impl Default for AcceptorLimits {
    fn default() -> Self {
        AcceptorLimits { half_open: 128, connections: 1024 }
    }
}

/// A connection of an [`Acceptor`]. No two connections have the same handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u64);

/// Segments of no connection that were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Segments that no connection saw.
    pub dropped: Dropped,
    /// Openings for which there was no room. `[H3]`, `[H4]`
    pub full: u64,
}

/// Accepts connections of any number of peers over one socket.
///
/// `A` is the address of a peer with its ports, whatever tells two peers apart on the host's network. A host passes each segment to
/// [`handle_packet`](Self::handle_packet) with the address of its sender and its own source of random numbers. It then sends what
/// [`poll_transmit`](Self::poll_transmit) gives, takes events from [`poll_event`](Self::poll_event) and waits until
/// [`poll_timeout`](Self::poll_timeout). An application learns of a connection by [`Event::Connected`] and uses it as a
/// [`Stream`](crate::endpoint::Stream) through [`get_mut`](Self::get_mut).
///
/// A call looks at the connections that have something to do; others cost memory only.
#[derive(Clone, Debug)]
pub struct Acceptor<A, D> {
    config: AerotpConfig,
    limits: AcceptorLimits,
    connections: BTreeMap<Handle, Accepted<A, D>>,
    /// The last connection of each address.
    addresses: BTreeMap<A, Last>,
    /// When removed peers are forgotten.
    past: BTreeSet<(Time, A)>,
    /// Which connections have something to do.
    agenda: Agenda<Handle>,
    /// Answers to segments of no connection, at most one for each address.
    resets: VecDeque<(A, Reset)>,
    /// The handle of the next connection.
    next: u64,
    /// The connection that sent last.
    turn: Handle,
    is_link_down: bool,
    /// How late the timers of the driver may be.
    timer_lateness: Time,
    /// By how much the origin of the clock has moved.
    moved: OriginShift,
    /// Whether connections share a rate, and those that have come to want it.
    shares_rate: bool,
    waiting: Vec<Handle>,
    refused: Refused,
}

impl<A: Copy + Ord, D: Payload> MoveOrigin for Acceptor<A, D> {
    fn move_origin(&mut self, by: OriginShift) {
        let Self {
            connections,
            addresses,
            past,
            agenda,
            moved,
            config: _,
            limits: _,
            resets: _,
            next: _,
            turn: _,
            is_link_down: _,
            timer_lateness: _,
            shares_rate: _,
            waiting: _,
            refused: _,
        } = self;
        connections.values_mut().for_each(|accepted| accepted.move_origin(by));
        addresses.values_mut().for_each(|last| last.move_origin(by));
        let kept = std::mem::take(past);
        past.extend(kept.into_iter().map(|(mut until, address)| {
            until.move_origin(by);
            (until, address)
        }));
        agenda.move_origin(by);
        moved.move_origin(by);
    }
}

#[derive(Clone, Debug)]
struct Accepted<A, D> {
    address: A,
    connection: Connection<D>,
}

impl<A, D: Payload> MoveOrigin for Accepted<A, D> {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { connection, address: _ } = self;
        connection.move_origin(by);
    }
}

/// The last connection of an address. `[C11]`
#[derive(Clone, Copy, Debug)]
enum Last {
    /// It is still kept, whether it has ended or not.
    Kept(Handle),
    /// The application has removed it; its peer is remembered until its segments can no longer be in flight.
    Removed { peer: Peer, until: Time },
}

impl MoveOrigin for Last {
    fn move_origin(&mut self, by: OriginShift) {
        match self {
            Last::Kept(_) => {}
            Last::Removed { peer, until } => {
                peer.move_origin(by);
                until.move_origin(by);
            }
        }
    }
}

impl<A: Copy + Ord, D: Payload> Acceptor<A, D> {
    /// An acceptor without connections; all of them will have this configuration.
    ///
    /// # Errors
    /// If the mode has no connections, or both sides are to open them, so that no side waits for a peer.
    pub fn new(config: &AerotpConfig, limits: AcceptorLimits) -> Result<Self, ConfigError> {
        if config.carries_messages() {
            let what = "datagrams have no connections that could be accepted";
            return Err(ConfigError::new("mode", what, "choose another mode, or use a connection for each peer"));
        }
        if config.opens == Opens::Both {
            let what = "with \"both\" no side waits for a peer";
            return Err(ConfigError::new("opens", what, "choose opens = \"sender\""));
        }
        Ok(Acceptor {
            config: config.clone(),
            limits,
            connections: BTreeMap::new(),
            addresses: BTreeMap::new(),
            past: BTreeSet::new(),
            agenda: Agenda::default(),
            resets: VecDeque::new(),
            next: 0,
            turn: Handle(0),
            is_link_down: false,
            timer_lateness: Time::ZERO,
            moved: OriginShift::default(),
            shares_rate: false,
            waiting: Vec::new(),
            refused: Refused::default(),
        })
    }

    /// As [`Connection::set_timer_lateness`], for connections to come.
    pub fn set_timer_lateness(&mut self, late: Time) {
        self.timer_lateness = late;
    }

    /// A segment arrived from an address. Returns the connection that it belongs to or has opened, which may have something to
    /// send, to read or to tell now. `random` gives the tags of new connections.
    pub fn handle_packet(
        &mut self,
        now: Time,
        from: A,
        segment: &Segment<D>,
        rx: Rx,
        random: &mut dyn RandomSource,
    ) -> Option<Handle> {
        self.route(now, from, segment, rx, random, None)
    }

    /// Connections to come [share their rate](Connection::share_rate). Their owner then calls [`handle_packet_at`](Self::handle_packet_at)
    /// in place of [`handle_packet`](Self::handle_packet), and after [`poll_transmit`](Self::poll_transmit) has nothing more, it asks
    /// [`take_waiting`](Self::take_waiting), and for the data of these [`poll_transmit_at`](Self::poll_transmit_at). `[P21]`
    pub fn share_rate(&mut self) {
        self.shares_rate = true;
    }

    /// As [`handle_packet`](Self::handle_packet), for connections that share a rate.
    pub fn handle_packet_at(
        &mut self,
        rate: &mut CommonRate,
        now: Time,
        from: A,
        segment: &Segment<D>,
        rx: Rx,
        random: &mut dyn RandomSource,
    ) -> Option<Handle> {
        self.route(now, from, segment, rx, random, Some(rate))
    }

    /// The next segment of a connection that wants the rate, and where to. When the rate is not open any more, the owner
    /// [touches](Self::get_mut) those that have sent, whose deadlines are others now.
    pub fn poll_transmit_at(
        &mut self,
        rate: &mut CommonRate,
        now: Time,
        handle: Handle,
    ) -> Option<(A, Transmit<Segment<D>>)> {
        let accepted = self.connections.get_mut(&handle)?;
        let sent = rate.lend(&mut accepted.connection, |it| it.poll_transmit(now));
        if sent.is_none() {
            // It did not get what it wants at once, and asks for it again at the next event.
            let later = Some(accepted.connection.wants_rate_at()).filter(|&at| at > now);
            let due = Self::timeout_of(&self.config, &accepted.connection).min(later.unwrap_or(Time::NEVER));
            self.agenda.settle(handle, due);
            self.agenda.may_tell(handle);
        }
        Some((accepted.address, sent?))
    }

    /// Connections that have come to want the rate that they share, each of them once.
    pub fn take_waiting(&mut self) -> impl Iterator<Item = Handle> + '_ {
        self.waiting.drain(..)
    }

    /// Advice from the link that all connections use.
    pub fn handle_link(&mut self, now: Time, hint: LinkHint) {
        match hint {
            LinkHint::Up => self.is_link_down = false,
            LinkHint::Down => self.is_link_down = true,
            _ => {}
        }
        for (&handle, accepted) in &mut self.connections {
            accepted.connection.handle_link(now, hint);
            self.agenda.touch(handle);
        }
    }

    /// Time has passed. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        // A touched one may have another deadline than the one that is known.
        let touched: Vec<Handle> = self.agenda.touched().collect();
        touched.into_iter().for_each(|handle| self.wake(now, handle));
        while let Some(handle) = self.agenda.take_due(now) {
            self.wake(now, handle);
        }
        while let Some(&(_, address)) = self.past.first().filter(|(until, _)| *until <= now) {
            self.forget_past(address);
        }
    }

    fn wake(&mut self, now: Time, handle: Handle) {
        let Some(Accepted { connection, .. }) = self.connections.get_mut(&handle) else { return };
        connection.handle_timeout(now);
        if connection.is_half_open() && now >= connection.last_received() + self.config.give_up_after_s.time() {
            connection.abort(Abort::NoAnswer); // `[H5]`
        }
        self.forget(now, handle);
    }

    /// As [`Connection::move_origin`], for all its connections and those to come. `[L15]`
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
    }

    /// The next segment to send, and where to. Connections take turns.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(A, Transmit<Segment<D>>)> {
        if !self.is_link_down
            && let Some((to, reset)) = self.resets.pop_front()
        {
            return Some((to, Transmit::plain(reset.segment(&self.config))));
        }
        while self.agenda.take_due(now).is_some() {}
        while let Some(handle) = self.agenda.after(Some(self.turn)) {
            if let Some(out) = self.connections.get_mut(&handle).and_then(|it| it.send(now)) {
                self.turn = handle;
                return Some(out);
            }
            self.settle(now, handle);
        }
        None
    }

    /// A connection has nothing more to send that needs no common rate.
    fn settle(&mut self, now: Time, handle: Handle) {
        let mut due = Time::NEVER;
        if let Some(Accepted { connection, .. }) = self.connections.get(&handle) {
            due = Self::timeout_of(&self.config, connection);
            match connection.wants_rate_at() {
                at if at <= now => self.waiting.push(handle),
                at => due = due.min(at),
            }
        }
        self.agenda.settle(handle, due);
    }

    /// The next thing to tell an application.
    pub fn poll_event(&mut self) -> Option<(Handle, Event)> {
        while let Some(handle) = self.agenda.telling() {
            if let Some(event) = self.connections.get_mut(&handle).and_then(|it| it.connection.poll_event()) {
                self.agenda.touch(handle); // one that has told its end is forgotten
                return Some((handle, event));
            }
            self.agenda.has_told(handle);
        }
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Time> {
        let touched = self.agenda.touched().filter_map(|handle| self.connections.get(&handle));
        let touched = touched.map(|it| Self::timeout_of(&self.config, &it.connection)).min();
        let past = self.past.first().map(|(until, _)| *until);
        let next = touched.into_iter().chain(past).fold(self.agenda.next_due(), Time::min);
        (next != Time::NEVER).then_some(next)
    }

    /// A connection; `None` once it is forgotten.
    pub fn get(&self, handle: Handle) -> Option<&Connection<D>> {
        self.connections.get(&handle).map(|it| &it.connection)
    }

    /// A connection, to be written and read; `None` once it is forgotten.
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut Connection<D>> {
        let found = self.connections.get_mut(&handle)?;
        self.agenda.touch(handle);
        Some(&mut found.connection)
    }

    /// The connection that was opened last, of those that are kept.
    pub fn newest(&self) -> Option<Handle> {
        self.connections.last_key_value().map(|(&handle, _)| handle)
    }

    /// Where the peer of a connection is; `None` once it is forgotten.
    pub fn address(&self, handle: Handle) -> Option<A> {
        self.connections.get(&handle).map(|it| it.address)
    }

    /// Connections that are kept, in the order in which they were opened.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.connections.keys().copied()
    }

    /// Number of half-open connections.
    pub fn half_open(&self) -> usize {
        self.connections.values().filter(|it| it.connection.is_half_open()).count()
    }

    /// Counts of segments that were dropped and that no connection counts.
    pub fn refused(&self) -> Refused {
        self.refused
    }
}

impl<A: Copy, D: Payload> Accepted<A, D> {
    fn send(&mut self, now: Time) -> Option<(A, Transmit<Segment<D>>)> {
        self.connection.poll_transmit(now).map(|transmit| (self.address, transmit))
    }
}
