//! The AeroTP connections of one session, told apart by their ports.

use std::collections::BTreeMap;

use bytes::Bytes;
use farlink_core::agenda::Agenda;
use farlink_core::event::Event;
use farlink_core::protocol::aerotp::{Acceptor, AcceptorLimits, AerotpConfig, Connection, Handle, Segment};
use farlink_core::rng::RandomSource;
use farlink_core::units::Count;
use farlink_core::wire::aerotp::{Arrived, Outside};
use farlink_core::{Endpoint, OriginShift, Rx, Stream, Time, Transmit};

/// A connection within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// This side opened it, at this port of its own.
    Opened(u16),
    /// The peer opened it, to this port.
    Accepted(u16, Handle),
}

#[derive(Debug)]
struct Opened {
    peer_port: u16,
    connection: Connection<Bytes>,
    /// Whether its end was told. It still answers what the peer repeats.
    has_ended: bool,
}

/// All connections of a session.
#[derive(Debug)]
pub(super) struct Connections {
    opened: BTreeMap<u16, Opened>,
    /// Which of the opened ones have something to do, by own port, and which one has sent last.
    agenda: Agenda<u16>,
    turn: u16,
    /// By own port; the peer is known by its port.
    accepted: BTreeMap<u16, Acceptor<u16, Bytes>>,
    next_port: u16,
    /// The largest packet, headers of IP and UDP included; set when connections may use another size than they began with.
    packet_bytes: Option<Count>,
    moved: OriginShift,
    /// Whether accepted connections send next.
    is_turn_of_accepted: bool,
}

/// Drivers wake up late by up to this. What was due meanwhile is sent at once, and no more, whatever the delay.
const TIMER_LATENESS: Time = Time::from_millis(5);
/// Ports of the side that began the session are even, those of the other odd. `[Y13]`
const FIRST_PORT: u16 = 0xc000;

impl Connections {
    pub(super) fn new(has_begun: bool, moved: OriginShift) -> Self {
        Connections {
            opened: BTreeMap::new(),
            agenda: Agenda::default(),
            turn: 0,
            accepted: BTreeMap::new(),
            next_port: FIRST_PORT + u16::from(!has_begun),
            packet_bytes: None,
            moved,
            is_turn_of_accepted: false,
        }
    }

    /// Opens a connection to a port of the peer; `None` if all own ports are used.
    pub(super) fn open(
        &mut self,
        now: Time,
        config: &AerotpConfig,
        peer_port: u16,
        random: &mut dyn RandomSource,
    ) -> Option<Place> {
        let mut port = self.next_port;
        while self.opened.contains_key(&port) {
            port = after(port);
            if port == self.next_port {
                return None;
            }
        }
        self.next_port = after(port);
        let mut connection = Connection::connect(config, random);
        connection.set_timer_lateness(TIMER_LATENESS);
        connection.move_origin(self.moved);
        if let Some(bytes) = self.packet_bytes {
            let _ = connection.set_packet_bytes(now, bytes);
        }
        self.opened.insert(port, Opened { peer_port, connection, has_ended: false });
        self.agenda.touch(port);
        Some(Place::Opened(port))
    }

    /// A segment has arrived. `listening` has the configurations of the ports at which connections are accepted.
    /// Returns the connection that it belongs to or has opened, which may have something to read.
    pub(super) fn handle(
        &mut self,
        now: Time,
        arrived: &Arrived<Bytes>,
        rx: Rx,
        listening: &BTreeMap<u16, (AerotpConfig, AcceptorLimits)>,
        random: &mut dyn RandomSource,
    ) -> Option<Place> {
        let Outside { source, destination, .. } = arrived.outside;
        if let Some(opened) = self.opened.get_mut(&destination) {
            if opened.peer_port != source {
                return None;
            }
            opened.connection.handle_packet(now, &arrived.segment, rx);
            self.agenda.touch(destination);
            return Some(Place::Opened(destination));
        }
        if !self.accepted.contains_key(&destination) {
            let (config, limits) = listening.get(&destination)?;
            let mut acceptor = Acceptor::new(config, *limits).ok()?;
            acceptor.move_origin(self.moved);
            acceptor.set_timer_lateness(TIMER_LATENESS);
            self.accepted.insert(destination, acceptor);
        }
        let acceptor = self.accepted.get_mut(&destination)?;
        let newest = acceptor.newest();
        let handle = acceptor.handle_packet(now, source, &arrived.segment, rx, random)?;
        if let Some(bytes) = self.packet_bytes
            && newest < Some(handle)
            && let Some(connection) = acceptor.get_mut(handle)
        {
            let _ = connection.set_packet_bytes(now, bytes);
        }
        Some(Place::Accepted(destination, handle))
    }

    /// From now on packets may be this long. Erasure coding refuses longer packets than configured and stays as it is.
    pub(super) fn set_packet_bytes(&mut self, now: Time, bytes: Count) {
        self.packet_bytes = Some(bytes);
        self.each(|connection| drop(connection.set_packet_bytes(now, bytes)));
    }

    /// The latest round trip of the data of any of them.
    pub(super) fn round_trip(&self) -> Option<Time> {
        self.all().filter_map(|connection| connection.probe().rtt).max()
    }

    /// Bytes of all of them that will not be sent again.
    pub(super) fn settled_bytes(&self) -> u64 {
        self.all().map(Stream::settled_bytes).sum()
    }

    /// Whether something waits for an acknowledgement.
    pub(super) fn is_in_flight(&self) -> bool {
        self.all().any(|connection| connection.probe().in_flight_bytes.is_some_and(|bytes| bytes > 0))
    }

    fn all(&self) -> impl Iterator<Item = &Connection<Bytes>> {
        let opened = self.opened.values().map(|opened| &opened.connection);
        let accepted = self.accepted.values();
        opened.chain(accepted.flat_map(|acceptor| acceptor.handles().filter_map(|handle| acceptor.get(handle))))
    }

    fn each(&mut self, mut change: impl FnMut(&mut Connection<Bytes>)) {
        for (&port, opened) in &mut self.opened {
            change(&mut opened.connection);
            self.agenda.touch(port);
        }
        for acceptor in self.accepted.values_mut() {
            let handles: Vec<_> = acceptor.handles().collect();
            handles.into_iter().for_each(|handle| change(acceptor.get_mut(handle).expect("it was just listed")));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        // A touched one may have another deadline than the one that is known.
        let touched: Vec<u16> = self.agenda.touched().collect();
        touched.into_iter().for_each(|port| self.wake(now, port));
        while let Some(port) = self.agenda.take_due(now) {
            self.wake(now, port);
        }
        for acceptor in self.accepted.values_mut().filter(|acceptor| is_due(acceptor.poll_timeout(), now)) {
            acceptor.handle_timeout(now);
        }
    }

    fn wake(&mut self, now: Time, port: u16) {
        let Some(opened) = self.opened.get_mut(&port) else { return };
        opened.connection.handle_timeout(now);
        if opened.has_ended && opened.connection.poll_timeout().is_none() {
            self.opened.remove(&port);
            self.agenda.remove(port);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let touched = self.agenda.touched().filter_map(|port| self.opened.get(&port)?.connection.poll_timeout());
        let next = touched
            .chain(self.accepted.values().filter_map(Acceptor::poll_timeout))
            .fold(self.agenda.next_due(), Time::min);
        (next != Time::NEVER).then_some(next)
    }

    /// The next segment to send, with its ports. Connections that this side and that the peer opened take turns.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<(Outside, Transmit<Segment<Bytes>>)> {
        for _ in 0..2 {
            self.is_turn_of_accepted = !self.is_turn_of_accepted;
            let out = if self.is_turn_of_accepted { self.transmit_accepted(now) } else { self.transmit_opened(now) };
            if out.is_some() {
                return out;
            }
        }
        None
    }

    fn transmit_opened(&mut self, now: Time) -> Option<(Outside, Transmit<Segment<Bytes>>)> {
        while let Some(source) = self.agenda.after(Some(self.turn)) {
            let Some(opened) = self.opened.get_mut(&source) else {
                self.agenda.remove(source);
                continue;
            };
            if let Some(transmit) = opened.connection.poll_transmit(now) {
                self.turn = source;
                return Some((Outside { source, destination: opened.peer_port, ecn: transmit.ecn }, transmit));
            }
            self.agenda.settle(source, opened.connection.poll_timeout().unwrap_or(Time::NEVER));
        }
        None
    }

    fn transmit_accepted(&mut self, now: Time) -> Option<(Outside, Transmit<Segment<Bytes>>)> {
        self.accepted.iter_mut().find_map(|(&source, acceptor)| {
            let (destination, transmit) = acceptor.poll_transmit(now)?;
            Some((Outside { source, destination, ecn: transmit.ecn }, transmit))
        })
    }

    /// The next event.
    pub(super) fn poll_event(&mut self) -> Option<(Place, Event)> {
        while let Some(port) = self.agenda.telling() {
            if let Some(event) = self.opened.get_mut(&port).and_then(|it| it.connection.poll_event()) {
                self.agenda.touch(port); // one that has told its end goes when it has nothing more to answer
                return Some((Place::Opened(port), event));
            }
            self.agenda.has_told(port);
        }
        let mut accepted = self.accepted.iter_mut();
        accepted.find_map(|(&port, acceptor)| {
            acceptor.poll_event().map(|(handle, event)| (Place::Accepted(port, handle), event))
        })
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Connection<Bytes>> {
        match place {
            Place::Opened(port) => {
                let opened = self.opened.get_mut(&port)?;
                self.agenda.touch(port);
                Some(&mut opened.connection)
            }
            Place::Accepted(port, handle) => self.accepted.get_mut(&port)?.get_mut(handle),
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<&Connection<Bytes>> {
        match place {
            Place::Opened(port) => self.opened.get(&port).map(|opened| &opened.connection),
            Place::Accepted(port, handle) => self.accepted.get(&port)?.get(handle),
        }
    }

    /// The end of a connection was told. One that this side opened stays as long as it may have to answer; accepted ones are
    /// kept by their acceptor, as late segments could open them again.
    pub(super) fn on_ended(&mut self, place: Place, event: Event) {
        let Place::Opened(port) = place else { return };
        if matches!(event, Event::Aborted(_)) {
            self.opened.remove(&port);
            self.agenda.remove(port);
        } else if let Some(opened) = self.opened.get_mut(&port) {
            opened.has_ended = true;
        }
    }

    /// All connections, to tell their applications that the session is over.
    pub(super) fn places(&self) -> Vec<Place> {
        let opened = self.opened.iter().filter(|(_, it)| !it.has_ended).map(|(&port, _)| Place::Opened(port));
        let accepted = self
            .accepted
            .iter()
            .flat_map(|(&port, acceptor)| acceptor.handles().map(move |handle| Place::Accepted(port, handle)));
        opened.chain(accepted).collect()
    }

    /// Whether there is none that has not ended.
    pub(super) fn is_idle(&self) -> bool {
        self.opened.values().all(|opened| opened.has_ended)
            && self.accepted.values().all(|acceptor| acceptor.handles().next().is_none())
    }

    pub(super) fn move_origin(&mut self, by: OriginShift) {
        self.moved += by;
        self.opened.values_mut().for_each(|opened| opened.connection.move_origin(by));
        self.agenda.move_origin(by);
        self.accepted.values_mut().for_each(|acceptor| acceptor.move_origin(by));
    }
}

fn is_due(due: Option<Time>, now: Time) -> bool {
    due.is_some_and(|due| due <= now)
}

/// The next port of the same parity, in the range of ephemeral ones.
fn after(port: u16) -> u16 {
    port.wrapping_add(2) | FIRST_PORT
}
