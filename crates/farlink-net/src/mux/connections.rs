//! The AeroTP connections of one session, told apart by their ports.

use std::collections::BTreeMap;

use bytes::Bytes;
use farlink_core::agenda::Agenda;
use farlink_core::endpoint::Probe;
use farlink_core::event::Event;
use farlink_core::hop::LinkWatch;
use farlink_core::protocol::aerotp::{Acceptor, AcceptorLimits, AerotpConfig, Connection, Handle, Segment};
use farlink_core::rng::RandomSource;
use farlink_core::units::Count;
use farlink_core::wire::aerotp::{Arrived, Outside};
use farlink_core::{Endpoint, LinkHint, OriginShift, Rx, Stream, Time, Transmit};

use super::datagram_queue::{Waiting, rate_of};
use super::place::Place;
use super::rates::{RateIndex, Rates, TIMER_LATENESS, Turn};

#[derive(Debug)]
struct Opened {
    peer_port: u16,
    connection: Connection<Bytes>,
    /// The rate that it shares with others.
    rate: Option<RateIndex>,
    /// Whether its end was told. It still answers what the peer repeats.
    has_ended: bool,
}

/// Connections that the peer opens, to one port.
#[derive(Debug)]
struct Accepted {
    acceptor: Acceptor<u16, Bytes>,
    rate: Option<RateIndex>,
}

/// The next datagram to send.
pub(super) enum Outgoing {
    Segment(Outside, Transmit<Segment<Bytes>>),
    Datagram { port: u16, data: Bytes },
}

/// All connections of a session.
#[derive(Debug)]
pub(super) struct Connections {
    opened: BTreeMap<u16, Opened>,
    /// Which of the opened ones have something to do, by own port, and which one has sent last.
    agenda: Agenda<u16>,
    turn: u16,
    /// By own port; the peer is known by its port.
    accepted: BTreeMap<u16, Accepted>,
    rates: Rates,
    /// Connections that have sent at a common rate since it was last not open.
    have_sent: BTreeMap<Place, RateIndex>,
    datagrams: Waiting,
    /// How many were dropped before they were sent and not taken note of.
    pub(super) dropped_datagrams: u64,
    /// The rate of datagrams, once there were any.
    datagram_rate: Option<RateIndex>,
    next_port: u16,
    /// The largest packet, headers of IP and UDP included; set when connections may use another size than they began with.
    packet_bytes: Option<Count>,
    /// The latest report on this host's own link. `[Y26]`
    own_link: LinkWatch,
    /// Whether the session has shown that the peer receives at its address. `[Y8]`
    is_address_proven: bool,
    moved: OriginShift,
    /// Whether accepted connections send next.
    is_turn_of_accepted: bool,
}

/// Ports of the side that began the session are even, those of the other odd. `[Y13]`
const FIRST_PORT: u16 = 0xc000;

impl Connections {
    pub(super) fn new(has_begun: bool, moved: OriginShift, own_link: LinkWatch) -> Self {
        Connections {
            opened: BTreeMap::new(),
            agenda: Agenda::default(),
            turn: 0,
            accepted: BTreeMap::new(),
            rates: Rates::default(),
            have_sent: BTreeMap::new(),
            datagrams: Waiting::default(),
            dropped_datagrams: 0,
            datagram_rate: None,
            next_port: FIRST_PORT + u16::from(!has_begun),
            packet_bytes: None,
            own_link,
            is_address_proven: has_begun,
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
        if self.is_idle() {
            self.rates.begin_anew();
        }
        let rate = self.rates.of(config);
        let mut connection = Connection::connect(config, random);
        connection.move_origin(self.moved);
        match rate {
            Some(_) => connection.share_rate(),
            None => connection.set_timer_lateness(TIMER_LATENESS),
        }
        let learn = what_is_known(now, self.packet_bytes, self.own_link);
        lend(&mut self.rates, rate, &mut connection, learn);
        self.opened.insert(port, Opened { peer_port, connection, rate, has_ended: false });
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
            lend(&mut self.rates, opened.rate, &mut opened.connection, |it| {
                it.handle_packet(now, &arrived.segment, rx);
            });
            self.agenda.touch(destination);
            return Some(Place::Opened(destination));
        }
        if !self.accepted.contains_key(&destination) {
            let (config, limits) = listening.get(&destination)?;
            let mut acceptor = Acceptor::new(config, *limits).ok()?;
            acceptor.move_origin(self.moved);
            let rate = self.rates.of(config);
            match rate {
                Some(_) => acceptor.share_rate(),
                None => acceptor.set_timer_lateness(TIMER_LATENESS),
            }
            self.accepted.insert(destination, Accepted { acceptor, rate });
        }
        let Accepted { acceptor, rate } = self.accepted.get_mut(&destination)?;
        let newest = acceptor.newest();
        let segment = &arrived.segment;
        let handle = match *rate {
            Some(rate) => acceptor.handle_packet_at(self.rates.get_mut(rate), now, source, segment, rx, random),
            None => acceptor.handle_packet(now, source, segment, rx, random),
        }?;
        if newest < Some(handle) {
            self.on_accepted(now, destination, handle);
        }
        Some(Place::Accepted(destination, handle))
    }

    /// The peer has opened a connection.
    fn on_accepted(&mut self, now: Time, port: u16, handle: Handle) {
        let others = self.accepted.values().flat_map(|it| it.acceptor.handles()).nth(1);
        if others.is_none() && self.opened.values().all(|opened| opened.has_ended) {
            self.rates.begin_anew();
        }
        if let Some(Accepted { acceptor, rate }) = self.accepted.get_mut(&port)
            && let Some(connection) = acceptor.get_mut(handle)
        {
            if self.is_address_proven {
                connection.address_proven();
            }
            let learn = what_is_known(now, self.packet_bytes, self.own_link);
            lend(&mut self.rates, *rate, connection, learn);
        }
    }

    /// The peer has shown that it receives at its address. `[Y8]`
    pub(super) fn address_proven(&mut self) {
        self.is_address_proven = true;
        self.each(Connection::address_proven);
    }

    /// Takes a report on this host's own link. `[Y26]`
    pub(super) fn handle_link(&mut self, now: Time, own_link: LinkWatch, hints: &[LinkHint]) {
        self.own_link = own_link;
        self.each(|connection| hints.iter().for_each(|&hint| connection.handle_link(now, hint)));
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

    /// Whether the last acknowledgement of one that has ended is still to go out.
    pub(super) fn owe_last_acknowledgements(&self) -> bool {
        self.all().any(Connection::owes_last_acknowledgement)
    }

    /// Whether something waits for an acknowledgement.
    pub(super) fn is_in_flight(&self) -> bool {
        self.all().any(|connection| connection.probe().in_flight_bytes.is_some_and(|bytes| bytes > 0))
    }

    fn all(&self) -> impl Iterator<Item = &Connection<Bytes>> {
        let opened = self.opened.values().map(|opened| &opened.connection);
        let accepted = self.accepted.values().map(|it| &it.acceptor);
        opened.chain(accepted.flat_map(|acceptor| acceptor.handles().filter_map(|handle| acceptor.get(handle))))
    }

    fn each(&mut self, mut change: impl FnMut(&mut Connection<Bytes>)) {
        for (&port, opened) in &mut self.opened {
            lend(&mut self.rates, opened.rate, &mut opened.connection, &mut change);
            self.agenda.touch(port);
        }
        for Accepted { acceptor, rate } in self.accepted.values_mut() {
            let handles: Vec<_> = acceptor.handles().collect();
            for handle in handles {
                let connection = acceptor.get_mut(handle).expect("it was just listed");
                lend(&mut self.rates, *rate, connection, &mut change);
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.rates.handle_timeout(now);
        // A touched one may have another deadline than the one that is known.
        let touched: Vec<u16> = self.agenda.touched().collect();
        touched.into_iter().for_each(|port| self.wake(now, port));
        while let Some(port) = self.agenda.take_due(now) {
            self.wake(now, port);
        }
        let acceptors = self.accepted.values_mut().map(|it| &mut it.acceptor);
        for acceptor in acceptors.filter(|acceptor| is_due(acceptor.poll_timeout(), now)) {
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
            .chain(self.accepted.values().filter_map(|it| it.acceptor.poll_timeout()))
            .fold(self.agenda.next_due().min(self.rates.poll_timeout()), Time::min);
        (next != Time::NEVER).then_some(next)
    }

    /// The next packet to send: first those that need no common rate, as acknowledgements, then data in turn. `datagrams` says
    /// how many bytes a datagram has more in its packet, and how many it may have.
    pub(super) fn poll_transmit(&mut self, now: Time, datagrams: (usize, usize)) -> Option<Outgoing> {
        loop {
            if let Some((outside, transmit)) = self.transmit_unpaced(now) {
                return Some(Outgoing::Segment(outside, transmit));
            }
            while let Some((rate, turn)) = self.rates.next_turn(now) {
                let out = match turn {
                    Turn::Datagrams(class) => self.transmit_datagram(now, rate, class, datagrams),
                    Turn::Connection(place) => self.transmit_paced(now, rate, place),
                };
                match out {
                    Some(out) => return Some(out),
                    None => self.rates.want_no_more(rate, turn),
                }
            }
            if self.have_sent.is_empty() {
                self.rates.rest();
                return None;
            }
            // They may want no more, and their deadlines are others now, which is looked at once for many packets.
            while let Some((place, rate)) = self.have_sent.pop_first() {
                self.rates.want_no_more(rate, Turn::Connection(place));
                self.get_mut(place);
            }
        }
    }

    /// The next segment that needs no common rate. Connections that this side and that the peer opened take turns.
    fn transmit_unpaced(&mut self, now: Time) -> Option<(Outside, Transmit<Segment<Bytes>>)> {
        for _ in 0..2 {
            self.is_turn_of_accepted = !self.is_turn_of_accepted;
            let out = if self.is_turn_of_accepted { self.transmit_accepted(now) } else { self.transmit_opened(now) };
            if out.is_some() {
                return out;
            }
        }
        None
    }

    /// A datagram waits for its turn among those of its class. `[Y22]`, `[Y25]`
    pub(super) fn send_datagram(&mut self, config: &AerotpConfig, class: u8, port: u16, data: Bytes) {
        let rate = self.datagram_rate.or_else(|| self.rates.of(&rate_of(config)));
        let rate = rate.expect("reliable connections have a common rate");
        self.datagram_rate = Some(rate);
        self.rates.want(rate, Turn::Datagrams(class));
        self.dropped_datagrams += self.datagrams.push(class, port, data);
    }

    /// How many datagrams wait to be sent.
    pub(super) fn waiting_datagrams(&self) -> usize {
        self.datagrams.len()
    }

    pub(super) fn has_datagrams(&self) -> bool {
        !self.datagrams.is_empty()
    }

    fn transmit_datagram(
        &mut self,
        now: Time,
        rate: RateIndex,
        class: u8,
        (around, most): (usize, usize),
    ) -> Option<Outgoing> {
        let mut next = self.datagrams.pop(class)?;
        while next.1.len() > most {
            self.dropped_datagrams += 1; // packets have become shorter since it was written
            next = self.datagrams.pop(class)?;
        }
        let (port, data) = next;
        self.rates.get_mut(rate).on_datagram(now, (around + data.len()) as u32);
        if !self.datagrams.has(class) {
            self.rates.want_no_more(rate, Turn::Datagrams(class));
        }
        Some(Outgoing::Datagram { port, data })
    }

    /// The next segment of a connection that has the turn.
    fn transmit_paced(&mut self, now: Time, rate: RateIndex, place: Place) -> Option<Outgoing> {
        let common = self.rates.get_mut(rate);
        let (outside, transmit) = match place {
            Place::Opened(source) => {
                let opened = self.opened.get_mut(&source)?;
                let Some(transmit) = common.lend(&mut opened.connection, |it| it.poll_transmit(now)) else {
                    // It did not get what it wants at once, and asks for it again at the next event.
                    let later = Some(opened.connection.wants_rate_at()).filter(|&at| at > now);
                    let due = opened.connection.poll_timeout().into_iter().chain(later).min();
                    self.agenda.settle(source, due.unwrap_or(Time::NEVER));
                    self.agenda.may_tell(source);
                    return None;
                };
                (Outside { source, destination: opened.peer_port, ecn: transmit.ecn }, transmit)
            }
            Place::Accepted(source, handle) => {
                let acceptor = &mut self.accepted.get_mut(&source)?.acceptor;
                let (destination, transmit) = acceptor.poll_transmit_at(common, now, handle)?;
                (Outside { source, destination, ecn: transmit.ecn }, transmit)
            }
        };
        self.have_sent.insert(place, rate);
        Some(Outgoing::Segment(outside, transmit))
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
            let mut due = opened.connection.poll_timeout().unwrap_or(Time::NEVER);
            match (opened.rate, opened.connection.wants_rate_at()) {
                (Some(rate), at) if at <= now => self.rates.want(rate, Turn::Connection(Place::Opened(source))),
                (_, at) => due = due.min(at),
            }
            self.agenda.settle(source, due);
        }
        None
    }

    fn transmit_accepted(&mut self, now: Time) -> Option<(Outside, Transmit<Segment<Bytes>>)> {
        self.accepted.iter_mut().find_map(|(&source, Accepted { acceptor, rate })| {
            let sent = acceptor.poll_transmit(now);
            for handle in acceptor.take_waiting() {
                let rate = rate.expect("only those wait that share a rate");
                self.rates.want(rate, Turn::Connection(Place::Accepted(source, handle)));
            }
            let (destination, transmit) = sent?;
            Some((Outside { source, destination, ecn: transmit.ecn }, transmit))
        })
    }

    /// How much may go out at once: a millisecond of what all rates have together.
    pub(super) fn bytes_at_once(&self) -> u64 {
        self.rates.bytes_per_ms()
    }

    /// The common rate, if something waits for it.
    pub(super) fn contended_bits_per_s(&self) -> Option<f64> {
        self.rates.contended_bits_per_s()
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
        let told = accepted.find_map(|(&port, it)| {
            it.acceptor.poll_event().map(|(handle, event)| (Place::Accepted(port, handle), event))
        });
        told.or_else(|| self.rates.take_lowered().map(|(place, rate_bps)| (place, Event::RateLowered(rate_bps))))
    }

    /// The class of a connection from now on. `[Y25]`
    pub(super) fn set_class(&mut self, place: Place, class: u8) {
        if self.get(place).is_some() {
            self.rates.set_class(Turn::Connection(place), class);
        }
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Connection<Bytes>> {
        match place {
            Place::Opened(port) => {
                let opened = self.opened.get_mut(&port)?;
                self.agenda.touch(port);
                Some(&mut opened.connection)
            }
            Place::Accepted(port, handle) => self.accepted.get_mut(&port)?.acceptor.get_mut(handle),
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<&Connection<Bytes>> {
        match place {
            Place::Opened(port) => self.opened.get(&port).map(|opened| &opened.connection),
            Place::Accepted(port, handle) => self.accepted.get(&port)?.acceptor.get(handle),
        }
    }

    /// Measurements of a connection. A common rate is that of all its connections together.
    pub(super) fn probe(&self, place: Place) -> Option<Probe> {
        let probe = self.get(place)?.probe();
        let rate = match place {
            Place::Opened(port) => self.opened.get(&port)?.rate,
            Place::Accepted(port, _) => self.accepted.get(&port)?.rate,
        };
        let pacing_bps = rate.map_or(probe.pacing_bps, |rate| self.rates.get(rate).bits_per_s());
        Some(Probe { pacing_bps, ..probe })
    }

    /// The end of a connection was told. One that this side opened stays as long as it may have to answer; accepted ones are
    /// kept by their acceptor, as late segments could open them again.
    pub(super) fn on_ended(&mut self, place: Place, event: Event) {
        if matches!(event, Event::Aborted(_) | Event::Closed) {
            self.rates.forget_class(Turn::Connection(place));
        }
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
            .flat_map(|(&port, it)| it.acceptor.handles().map(move |handle| Place::Accepted(port, handle)));
        opened.chain(accepted).collect()
    }

    /// Whether there is none that has not ended.
    pub(super) fn is_idle(&self) -> bool {
        self.opened.values().all(|opened| opened.has_ended)
            && self.accepted.values().all(|it| it.acceptor.handles().next().is_none())
    }

    pub(super) fn move_origin(&mut self, by: OriginShift) {
        self.moved += by;
        self.opened.values_mut().for_each(|opened| opened.connection.move_origin(by));
        self.agenda.move_origin(by);
        self.accepted.values_mut().for_each(|it| it.acceptor.move_origin(by));
        self.rates.move_origin(by);
    }
}

/// Tells a new connection what others know already.
fn what_is_known(now: Time, packet_bytes: Option<Count>, own_link: LinkWatch) -> impl FnOnce(&mut Connection<Bytes>) {
    move |connection| {
        if let Some(bytes) = packet_bytes {
            drop(connection.set_packet_bytes(now, bytes));
        }
        own_link.current_hints().into_iter().flatten().for_each(|hint| connection.handle_link(now, hint));
    }
}

/// Does something to a connection that has the rate meanwhile, if it shares one.
fn lend<R>(
    rates: &mut Rates,
    rate: Option<RateIndex>,
    connection: &mut Connection<Bytes>,
    act: impl FnOnce(&mut Connection<Bytes>) -> R,
) -> R {
    match rate {
        Some(rate) => rates.get_mut(rate).lend(connection, act),
        None => act(connection),
    }
}

fn is_due(due: Option<Time>, now: Time) -> bool {
    due.is_some_and(|due| due <= now)
}

/// The next port of the same parity, in the range of ephemeral ones.
fn after(port: u16) -> u16 {
    port.wrapping_add(2) | FIRST_PORT
}
