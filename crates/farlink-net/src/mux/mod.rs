//! Many sealed sessions with many connections over one socket, without the socket.
//!
//! A [`Mux`] takes datagrams, time and the application's calls, and gives datagrams and events. A driver passes on what a socket
//! receives ([`receive`](Mux::receive)), sends what [`poll_transmit`](Mux::poll_transmit) writes, and waits until
//! [`poll_timeout`](Mux::poll_timeout). `docs/sessions.md` has the rules, `[Y1]` and so on.

mod connections;
mod counters;
mod datagram_queue;
mod datagrams;
mod handshakes;
mod left_behind;
mod message;
mod path_mtu;
mod place;
mod rates;
mod renewal;
mod resets;
mod route;
mod service;
mod session;
mod silence;
mod versions;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use farlink_core::agenda::Agenda;
use farlink_core::endpoint::{Ecn, Probe, Rx};
use farlink_core::event::{Abort, Event};
use farlink_core::hop::LinkWatch;
use farlink_core::link::LinkState;
use farlink_core::protocol::aerotp::{AcceptorLimits, AerotpConfig, Dropped};
use farlink_core::units::Count;
use farlink_core::wire::aerotp::sealed::{Kind, OUTER_BYTES, OuterPacket, TAG_BYTES};
use farlink_core::{ConfigError, LinkHint, OriginShift, Stream as _, Time};
use tracing::debug;

use crate::remedy::remedy_of_shortage;
use crate::seal::cookie::{CookieMaker, CookieSeal};
use crate::seal::mac::{HelloMac, Mac, ResetSecret};
use crate::seal::random::OsRandom;
use crate::seal::versions::VersionMac;
use crate::seal::{PresharedKey, PublicKey, StaticKey};

pub use counters::{CounterStore, MemoryCounters};
pub use datagram_queue::Datagram;
pub use datagrams::DatagramError;
pub(crate) use rates::USUAL_CLASS;
pub use route::Route;

pub(crate) use counters::Counters;
use datagram_queue::Unread;
use handshakes::Load;
pub(crate) use handshakes::{agreed, preferred};
use left_behind::LeftBehind;
use message::Message;
use path_mtu::BASE_BYTES;
pub(crate) use path_mtu::{PathMtu, PathProbe};
use place::Place;
use renewal::Own;
use route::{IPV6_BYTES, UDP_BYTES};
use session::{INITIATION_BYTES, NOBODYS, RESPONSE_BYTES, Session};

/// The outer header, the tag, and what is left of AeroTP's own header of 20 bytes without HEC (2) and CRC-32 (4). `[O22]`
const SEALED_HEADER_BYTES: usize = OUTER_BYTES + TAG_BYTES + 20 - 2 - 4;

/// Whose sessions are answered.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The peers with these keys.
    Keys(BTreeSet<PublicKey>),
    /// Everybody's. A session then says who the peer is, and nothing else. Early packets stay closed, as the counters of everybody
    /// cannot be kept.
    Anyone,
}

/// Parameters of a [`Mux`].
#[derive(Clone, Debug)]
pub struct MuxConfig {
    /// The own key.
    pub key: StaticKey,
    /// The key that both sides share beside their own.
    pub shared: PresharedKey,
    /// Whose sessions are answered.
    pub trust: Trust,
    /// The longest packet that is looked for on a path, headers of IP and UDP included, in bytes: 1200 to 9000.
    pub packet_bytes: u16,
    /// Sessions that may be half open, and sessions in all.
    pub half_open: usize,
    /// Sessions that may be kept.
    pub sessions: usize,
    /// A session without connections is forgotten after so much silence.
    pub idle: Time,
    /// Permits that packets go in the clear, if the peer permits it too: nobody is kept from reading and forging them, and damaged payload
    /// can be delivered. The handshake, and data before its end, are sealed all the same. `[Y24]`
    pub insecure: bool,
    /// Keys are used for so long, and for eight round trips at least; then another handshake gives new ones.
    pub key_life: Time,
}

/// Shortest and longest packet that can be set.
const PACKET_BYTES: std::ops::RangeInclusive<u16> = 1200..=9000;

impl MuxConfig {
    /// For a key: nobody is trusted yet, packets have up to 1500 bytes.
    pub fn new(key: StaticKey) -> Self {
        MuxConfig {
            key,
            shared: PresharedKey::default(),
            trust: Trust::Keys(BTreeSet::new()),
            packet_bytes: 1500,
            half_open: 1024,
            sessions: 65_536,
            idle: Time::from_secs(120),
            insecure: false,
            key_life: Time::from_secs(120),
        }
    }
}

/// A connection of a [`Mux`]; no two have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    session: u32,
    place: Place,
}

impl ConnectionId {
    /// The own port to which the peer opened the connection; `None` if this side opened it.
    pub fn accepted_at(&self) -> Option<u16> {
        match self.place {
            Place::Accepted(port, _) => Some(port),
            Place::Opened(_) => None,
        }
    }
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration of the connection is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The counter of the own handshakes could not be kept.
    #[error("cannot keep the counter of handshakes: {0}; {remedy}", remedy = of_counter(.0))]
    Counter(#[from] io::Error),
    /// There are as many connections or sessions as there may be.
    #[error("there are already as many connections as there may be; close some first")]
    Full,
}

fn of_counter(error: &io::Error) -> &'static str {
    remedy_of_shortage(error).unwrap_or("make the folder of the keys writable")
}

/// Counts of datagrams that did nothing, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxCounts {
    /// Datagrams that arrived.
    pub received: u64,
    /// No outer header, or not the right length.
    pub unreadable: u64,
    /// Hellos of other versions of the protocol.
    pub other_versions: u64,
    /// Hellos without the code that shows that the sender knows the own public key: one keyed hash each.
    pub unasked: u64,
    /// Hellos that cost two key agreements and came from no trusted key, or did not open.
    pub untrusted: u64,
    /// Hellos that were answered with a cookie, as there were many.
    pub without_cookie: u64,
    /// Hellos for which there was no room.
    pub full: u64,
    /// Hellos whose counter has been taken before: their early packets stay closed.
    pub repeated_hellos: u64,
    /// Packets of no session.
    pub stray: u64,
    /// Packets that did not open: repeated, damaged or forged.
    pub unopened: u64,
    /// Sealed packets without a usable segment, or to a port at which nothing listens.
    pub unusable: u64,
    /// Datagrams of applications that gave way to newer ones before they were sent, or for which there was no room when they arrived.
    pub dropped_datagrams: u64,
}

/// Datagrams for one destination that go out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where to, and from which own address.
    pub route: Route,
    /// The mark of all of them.
    pub ecn: Ecn,
    /// Bytes of all datagrams.
    pub bytes: usize,
    /// Bytes of each but the last, which may have fewer.
    pub datagram_bytes: usize,
}

/// State of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionState {
    /// Measurements of the sending side.
    pub probe: Probe,
    /// Segments that it dropped.
    pub dropped: Dropped,
    /// Bytes from the beginning of the own stream that will not be sent again.
    pub settled_bytes: u64,
}

/// Something of each session, by its own id. This side has drawn the ids at random, so that nobody can choose some that collide.
type ById<V> = HashMap<u32, V, BuildHasherDefault<IdHasher>>;

/// Spreads random ids over the buckets: each datagram looks for its session some times.
#[derive(Clone, Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Sessions and connections over one socket.
pub struct Mux {
    config: MuxConfig,
    own: Arc<Own>,
    own_code: HelloMac,
    reset: ResetSecret,
    cookies: Option<CookieMaker>,
    cookie_seal: CookieSeal,
    load: Load,
    counters: Counters,
    store: Box<dyn CounterStore>,
    listening: BTreeMap<u16, (AerotpConfig, AcceptorLimits)>,
    datagram_ports: BTreeSet<u16>,
    unread: Unread,
    /// Sessions that have datagrams to send.
    with_datagrams: BTreeSet<u32>,
    /// The session that was looked for last.
    found: Option<u32>,
    sessions: ById<Session>,
    /// Answered initiations by their code.
    answered: HashMap<Mac, u32>,
    /// Ids of sessions by the id of packets to their peers.
    by_peer_id: HashMap<u32, u32>,
    /// Which sessions have something to do, and which one has sent last.
    agenda: Agenda<u32>,
    turn: Option<u32>,
    /// Initiations of this side that wait for an answer, by their code.
    asked: HashMap<Mac, u32>,
    /// Cookies to be sent: the contents of hellos.
    given: VecDeque<(Route, Vec<u8>)>,
    /// Messages that end sessions at peers: resets, and answers to other versions.
    resets: VecDeque<(Route, Vec<u8>)>,
    versions: VersionMac,
    events: VecDeque<(ConnectionId, Event)>,
    /// Sessions whose proven route has changed.
    paths: VecDeque<(u32, Option<Route>)>,
    is_told_readable: BTreeSet<ConnectionId>,
    /// Sessions to which their peers have begun newer ones.
    left_behind: LeftBehind,
    random: OsRandom,
    /// The latest report on this host's own link.
    own_link: LinkWatch,
    moved: OriginShift,
    /// The clock that counters follow, microseconds since 1970.
    unix_us: fn() -> u64,
    counts: MuxCounts,
}

impl std::fmt::Debug for Mux {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mux")
            .field("sessions", &self.sessions.len())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Mux {
    /// A mux without sessions. `unix_us` is the wall clock, microseconds since 1970, which counters of handshakes follow where it goes
    /// forward; nothing else depends on it.
    ///
    /// # Errors
    /// If `packet_bytes` is not within 1200 and 9000.
    pub fn new(config: MuxConfig, store: Box<dyn CounterStore>, unix_us: fn() -> u64) -> Result<Self, ConfigError> {
        if !PACKET_BYTES.contains(&config.packet_bytes) {
            let what = format!("packets have 1200 to 9000 bytes, not {}", config.packet_bytes);
            return Err(ConfigError::new(
                "packet_bytes",
                what,
                "give 1500 for Ethernet, 9000 for jumbo frames, 1200 to look for nothing longer",
            ));
        }
        Ok(Mux {
            own: Arc::new(Own { key: config.key.clone(), shared: config.shared.clone() }),
            own_code: HelloMac::to(&config.key.public()),
            reset: ResetSecret::of(&config.key),
            cookies: None,
            cookie_seal: CookieSeal::of(&config.key.public()),
            versions: VersionMac::of(&config.key.public()),
            load: Load::default(),
            config,
            counters: Counters::default(),
            store,
            listening: BTreeMap::new(),
            datagram_ports: BTreeSet::new(),
            unread: Unread::default(),
            with_datagrams: BTreeSet::new(),
            found: None,
            sessions: ById::default(),
            answered: HashMap::new(),
            by_peer_id: HashMap::new(),
            agenda: Agenda::default(),
            turn: None,
            asked: HashMap::new(),
            given: VecDeque::new(),
            resets: VecDeque::new(),
            events: VecDeque::new(),
            paths: VecDeque::new(),
            is_told_readable: BTreeSet::new(),
            left_behind: LeftBehind::default(),
            random: OsRandom,
            own_link: LinkWatch::new(),
            moved: OriginShift::default(),
            unix_us,
            counts: MuxCounts::default(),
        })
    }

    /// Gives the store of the counters back, with the locks that it holds, so that another mux may have it. Handshakes fail from now on.
    pub(crate) fn release_counters(&mut self) {
        self.store = Box::new(counters::Released);
    }

    /// From now on sessions of others are answered. Sessions that there are go on.
    pub fn set_trust(&mut self, trust: Trust) {
        self.config.trust = trust;
    }

    /// The class of a connection, 0 to 7. `[Y25]`
    pub fn set_class(&mut self, id: ConnectionId, class: u8) {
        if let Some(session) = self.sessions.get_mut(&id.session) {
            session.connections.set_class(id.place, class);
        }
    }

    /// The state of the link that this host sends into, as its modem reports it: all connections know it from now on, of all sessions and
    /// later ones too. While it is down, nothing is sent; a learnt rate is not above its rate. `[Y26]`
    pub fn set_link(&mut self, now: Time, state: LinkState) {
        let hints: Vec<LinkHint> = self.own_link.update(state).into_iter().flatten().collect();
        for (&id, session) in self.sessions.iter_mut().filter(|_| !hints.is_empty()) {
            session.connections.handle_link(now, self.own_link, &hints);
            self.agenda.touch(id);
        }
    }

    /// Accepts connections to a port with this configuration, whose sizes of packets and headers the mux sets.
    ///
    /// # Errors
    /// If the configuration is refused, or has no connections that could be accepted.
    pub fn listen(&mut self, port: u16, config: &AerotpConfig, limits: AcceptorLimits) -> Result<(), ConfigError> {
        // Peers of both families may come: the longer header leaves room for either.
        let config = self.sized(config, RESPONSE_BYTES, IPV6_BYTES);
        farlink_core::protocol::aerotp::Acceptor::<u16, Bytes>::new(&config, limits)?;
        self.listening.insert(port, (config, limits));
        Ok(())
    }

    /// Opens a connection to a port of a peer, over the session that there is with it or a new one. It needs no round trip: what
    /// is written goes out at once.
    ///
    /// # Errors
    /// If the configuration is refused, the counter of handshakes cannot be kept, or there are too many sessions.
    pub fn connect(
        &mut self,
        now: Time,
        peer: &PublicKey,
        route: Route,
        port: u16,
        config: &AerotpConfig,
    ) -> Result<ConnectionId, OpenError> {
        let session = self.session_with(now, peer, route)?;
        let config = self.sized(config, INITIATION_BYTES, route.ip_bytes());
        let it = self.sessions.get_mut(&session).expect("it was just found");
        let place = it.connections.open(now, &config, port, &mut self.random).ok_or(OpenError::Full)?;
        self.touch(session);
        Ok(ConnectionId { session, place })
    }

    /// Opens a session with a peer that nothing needs yet, or asks whether the peer still has the one that there is. Asked for again before
    /// [`idle`](MuxConfig::idle) has passed, the session stays. `[Y27]`
    ///
    /// Returns whether the peer has answered since this was asked for last.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn keep_session(&mut self, now: Time, peer: &PublicKey, route: Route) -> Result<bool, OpenError> {
        let id = self.session_with(now, peer, route)?;
        let session = self.sessions.get_mut(&id).expect("it was just found");
        let has_answered = session.ask(now);
        self.touch(id);
        Ok(has_answered)
    }

    /// The rate of the connections with a peer at an address in bit/s, if some of them wait for it.
    pub fn contended_bits_per_s(&self, peer: &PublicKey, route: &Route) -> Option<f64> {
        let session = self.sessions.get(&self.known_session(peer, route)?)?;
        session.connections.contended_bits_per_s()
    }

    /// The session with a peer at an address, or a new one.
    fn session_with(&mut self, now: Time, peer: &PublicKey, route: Route) -> Result<u32, OpenError> {
        let session = match self.known_session(peer, &route) {
            Some(known) => known,
            None => self.call(now, peer, route)?,
        };
        self.found = Some(session);
        Ok(session)
    }

    fn known_session(&self, peer: &PublicKey, route: &Route) -> Option<u32> {
        let is_it = |session: &Session| session.peer == *peer && session.route.remote == route.remote;
        let found = self.found.and_then(|id| self.sessions.get(&id)).filter(|session| is_it(session));
        found.or_else(|| self.sessions.values().find(|session| is_it(session))).map(|session| session.own_id)
    }

    /// Takes as much from the front of `data` as fits; 0 means full, or that the connection is over.
    pub fn write(&mut self, now: Time, id: ConnectionId, data: &mut Bytes) -> usize {
        let connection = self.sessions.get_mut(&id.session).and_then(|it| it.connections.get_mut(id.place));
        let taken = connection.map_or(0, |connection| connection.write(now, data));
        self.touch(id.session);
        taken
    }

    /// The next data in order, if any.
    pub fn read(&mut self, id: ConnectionId) -> Option<Bytes> {
        let data = self.sessions.get_mut(&id.session)?.connections.get_mut(id.place)?.read();
        self.touch(id.session);
        data
    }

    /// Opens a connection though nothing is written to it yet. It does nothing once anything was sent.
    pub fn announce(&mut self, id: ConnectionId) {
        if let Some(connection) = self.sessions.get_mut(&id.session).and_then(|it| it.connections.get_mut(id.place)) {
            connection.announce();
            self.touch(id.session);
        }
    }

    /// Nothing more will be written to a connection.
    pub fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.sessions.get_mut(&id.session).and_then(|it| it.connections.get_mut(id.place)) {
            connection.close(now);
            self.touch(id.session);
        }
    }

    /// Bytes that were written to a connection and never sent.
    pub fn unsent_bytes(&self, id: ConnectionId) -> u64 {
        let connection = self.sessions.get(&id.session).and_then(|session| session.connections.get(id.place));
        connection.map_or(0, |connection| connection.unsent_bytes())
    }

    /// State of a connection; `None` once it has ended and its end was told.
    pub fn state(&self, id: ConnectionId) -> Option<ConnectionState> {
        let connections = &self.sessions.get(&id.session)?.connections;
        let (connection, probe) = (connections.get(id.place)?, connections.probe(id.place)?);
        Some(ConnectionState { probe, dropped: connection.dropped(), settled_bytes: connection.settled_bytes() })
    }

    /// When something last came from the peer of a connection; `None` once the session is over.
    pub fn last_heard(&self, id: ConnectionId) -> Option<Time> {
        self.sessions.get(&id.session).map(|session| session.last_opened)
    }

    /// The longest silence of the peer of a connection after which it was heard again; `None` once the session is over.
    pub fn longest_silence(&self, id: ConnectionId) -> Option<Time> {
        self.sessions.get(&id.session).map(|session| session.longest_silence)
    }

    /// The latest round trip of the session of a connection, of its data or else of the handshake, if one is known.
    pub fn round_trip(&self, id: ConnectionId) -> Option<Time> {
        self.sessions.get(&id.session)?.round_trip()
    }

    /// Asks the peer of a connection for an answer, which tells nothing but that it is there. `[Y10]`
    pub fn ask(&mut self, id: ConnectionId) {
        if let Some(session) = self.sessions.get_mut(&id.session) {
            session.challenge(NOBODYS);
            self.touch(id.session);
        }
    }

    /// Whether connections have ended whose peers may not know it if this side is gone at once: their last acknowledgement is still to go
    /// out, which it does three times.
    pub fn owes_last_acknowledgements(&self) -> bool {
        self.sessions.values().any(|session| session.connections.owe_last_acknowledgements())
    }

    /// Key and route of a connection's peer; `None` once the session is over.
    pub fn peer(&self, id: ConnectionId) -> Option<(PublicKey, Route)> {
        self.sessions.get(&id.session).map(|session| (session.peer, session.route))
    }

    /// A datagram arrived. Never fails: what cannot be used is counted and dropped.
    pub fn receive(&mut self, now: Time, route: Route, ecn: Ecn, mut datagram: BytesMut) {
        self.counts.received += 1;
        let bytes = datagram.len();
        let Ok(first) = OuterPacket::take_first(&mut datagram) else {
            return self.on_foreign(now, route, &datagram);
        };
        match first.header().kind {
            Kind::Hello => {
                let Some(session) = self.on_hello(now, route, &first, bytes) else { return };
                if !datagram.is_empty() {
                    match OuterPacket::read(datagram) {
                        Ok(second) => self.on_packet(now, session, route, ecn, second, bytes),
                        Err(_) => self.counts.unreadable += 1,
                    }
                }
                self.touch(session);
            }
            Kind::Sealed => {
                let session = first.header().connection_id;
                if self.sessions.contains_key(&session) {
                    self.on_packet(now, session, route, ecn, first, bytes);
                    self.touch(session);
                } else {
                    self.on_stray(now, route, session, bytes);
                }
            }
            Kind::Early => self.counts.stray += 1, // only behind its hello `[O23]`
            Kind::Reset => self.on_reset(&route, first.behind()),
        }
    }

    /// The next event of a connection.
    pub fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        let next = self.events.pop_front()?;
        if next.1 == Event::Readable {
            self.is_told_readable.remove(&next.0);
        }
        Some(next)
    }

    /// The next session, by a number, whose route to a peer that has shown that it receives there is another one; `None` as a route if
    /// there is none any more. A host may give such a peer a socket of its own.
    pub fn poll_path(&mut self) -> Option<(u32, Option<Route>)> {
        self.paths.pop_front()
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.agenda.after(None).is_some() || !self.resets.is_empty() || !self.given.is_empty() {
            return Some(Time::ZERO);
        }
        Some(self.agenda.next_due().min(self.left_behind.due())).filter(|&due| due != Time::NEVER)
    }

    /// The clock reads less from now on ([`OriginShift`]).
    pub fn move_origin(&mut self, by: OriginShift) {
        self.moved += by;
        self.sessions.values_mut().for_each(|session| session.move_origin(by));
        self.agenda.move_origin(by);
        self.left_behind.move_origin(by.time());
        self.load = Load::default();
        if let Some(cookies) = &mut self.cookies {
            cookies.move_origin(by.time());
        }
    }

    /// Counts of datagrams that did nothing.
    pub fn counts(&self) -> MuxCounts {
        self.counts
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The own public key.
    pub fn public_key(&self) -> PublicKey {
        self.config.key.public()
    }

    /// The configuration of a connection that begins with a hello of so many bytes before each packet. `[Y14]`
    fn sized(&self, config: &AerotpConfig, hello_bytes: usize, ip_bytes: usize) -> AerotpConfig {
        let count = |bytes: usize| Count::new(bytes as f64).expect("sizes of packets are counts");
        let packet_bytes = count(usize::from(BASE_BYTES) - hello_bytes);
        AerotpConfig { packet_bytes, header_bytes: count(ip_bytes + UDP_BYTES + SEALED_HEADER_BYTES), ..config.clone() }
    }

    /// A packet of a session has come.
    fn on_packet(&mut self, now: Time, id: u32, route: Route, ecn: Ecn, packet: OuterPacket, bytes: usize) {
        let is_segment = matches!(packet.header().kind, Kind::Early | Kind::Sealed);
        let Some(session) = self.sessions.get_mut(&id).filter(|_| is_segment) else {
            self.counts.stray += 1;
            return;
        };
        let span = session.span.clone();
        let _entered = span.enter();
        let was_half_open = session.is_half_open();
        let opened = session.open(now, route, packet, bytes, || {
            use farlink_core::rng::RandomSource as _;
            OsRandom.next_u64()
        });
        let opened = match opened {
            Ok(opened) => opened,
            Err(_) => {
                self.counts.unopened += 1;
                return;
            }
        };
        let is_proven = was_half_open && !session.is_half_open();
        if is_proven {
            self.on_newest(now, id);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(message) = opened.message() {
            match Message::decode(message) {
                Some(Message::Datagram { port, data }) => {
                    let peer = session.peer;
                    self.on_datagram(Datagram { peer, route, port, data, is_damaged: opened.is_damaged() });
                }
                Some(_) if opened.is_damaged() => self.counts.unopened += 1,
                Some(message) => {
                    if let Message::Answer(number) = message {
                        self.left_behind.on_answer(now, id, number);
                    }
                    session.on_message(now, message, &route);
                }
                None => self.counts.unusable += 1,
            }
            return;
        }
        let Ok(arrived) = opened.segment::<Bytes>() else {
            self.counts.unusable += 1;
            return;
        };
        session.on_segment(now);
        // A mark in either header is a mark. `[L14]`
        let ecn = if ecn == Ecn::Congestion { ecn } else { arrived.outside.ecn };
        let rx = Rx { ecn, integrity: arrived.integrity };
        match session.connections.handle(now, &arrived, rx, &self.listening, &mut self.random) {
            Some(place) => {
                // Events that came first, as that the connection is there, are told first.
                self.take_events(id);
                self.tell_readable(ConnectionId { session: id, place });
            }
            None => self.counts.unusable += 1,
        }
    }

    /// There may be something to read; once until that is taken.
    fn tell_readable(&mut self, id: ConnectionId) {
        if self.is_told_readable.insert(id) {
            self.events.push_back((id, Event::Readable));
        }
    }

    /// Ends a session; the applications of its connections are told why.
    fn remove(&mut self, id: u32, why: Abort) {
        let Some(session) = self.sessions.remove(&id) else { return };
        debug!(parent: &session.span, ?why, "the session is over");
        if session.told.is_some() {
            self.paths.push_back((id, None));
        }
        self.counts.dropped_datagrams += session.connections.waiting_datagrams() as u64;
        for place in session.connections.places() {
            self.events.push_back((ConnectionId { session: id, place }, Event::Aborted(why)));
        }
        self.answered.remove(&session.code);
        self.asked.remove(&session.code);
        if let Some(peer_id) = session.peer_id {
            self.by_peer_id.remove(&peer_id);
        }
        self.agenda.remove(id);
        self.left_behind.forget(id);
        self.with_datagrams.remove(&id);
    }
}

#[cfg(test)]
mod tests;
