//! One session: the keys shared with a peer, the path to it, and the connections on it. `[Y1]` to `[Y12]`, `[Y18]`

use std::collections::VecDeque;

use bytes::Bytes;
use farlink_core::endpoint::Ecn;
use farlink_core::hop::LinkWatch;
use farlink_core::protocol::aerotp::Segment;
use farlink_core::units::Count;
use farlink_core::wire::aerotp::Outside;
use farlink_core::wire::aerotp::sealed::{
    Algorithm, Cover, KeyPhase, Kind, NotOpened, OUTER_BYTES, Opened, OuterHeader, OuterPacket, Sealer, TAG_BYTES,
    Unsealer, packet_bytes,
};
use farlink_core::{OriginShift, Time, Transmit};
use tracing::{Span, debug, debug_span};

use crate::seal::hello::{
    Checked, INITIATION_CONTENT_BYTES, Initiation, Initiator, RESPONSE_CONTENT_BYTES, Response, SessionKeys, set_cookie,
};
use crate::seal::mac::{Mac, are_equal};
use crate::seal::{PublicKey, SealingKey};

use super::connections::{Connections, Outgoing};
use super::datagram_queue::longest;
use super::message::{DATAGRAM_HEADER_BYTES, Message};
use super::path_mtu::{BASE_BYTES, PathMtu};
use super::renewal::Renewals;
use super::route::{Budget, Route, UDP_BYTES};
use super::silence::Silence;

/// Bytes of the packet of an initiation, and of a response.
pub(super) const INITIATION_BYTES: usize = OUTER_BYTES + INITIATION_CONTENT_BYTES;
pub(super) const RESPONSE_BYTES: usize = OUTER_BYTES + RESPONSE_CONTENT_BYTES;

/// After the first packet under the keys of the whole handshake, early ones may still come for so long.
const EARLY_STRAGGLERS: Time = Time::from_secs(3);
/// A challenge is repeated so often until it is answered.
const CHALLENGE_INTERVAL: Time = Time::from_millis(250);
/// How long an answer may take: before a round trip is known, and at least.
const FIRST_TIMEOUT: Time = Time::from_secs(1);
const LEAST_TIMEOUT: Time = Time::from_millis(200);
/// The number of probes whose answers tell nothing.
pub(super) const NOBODYS: u64 = 0;
/// A packet is full if it is shorter than the longest by no more than this: codes and data are cut to their own lengths.
const NEARLY: usize = 32;

#[derive(Debug)]
pub(super) struct Session {
    /// The id of packets to this side.
    pub(super) own_id: u32,
    /// The code of the initiation, by which it is recognised.
    pub(super) code: Mac,
    /// That of packets to the peer, once it is known.
    pub(super) peer_id: Option<u32>,
    pub(super) peer: PublicKey,
    pub(super) route: Route,
    budget: Budget,
    /// Whether this side began it.
    has_begun: bool,
    /// The handshake that this side began, until it is answered.
    initiator: Option<Box<Initiator>>,
    /// That of both directions.
    algorithm: Algorithm,
    sealer: Sealer<SealingKey>,
    opener: Option<Unsealer<SealingKey>>,
    /// Opens early packets, and until when.
    early: Option<Box<Unsealer<SealingKey>>>,
    early_until: Time,
    /// The hello before each packet, until the peer has shown that it needs none. `[Y3]`, `[Y4]`
    pub(super) hello: Option<Bytes>,
    /// Whether the hello goes out even if there is nothing else to send.
    is_hello_due: bool,
    reset_token: Option<Mac>,
    messages: VecDeque<Message>,
    challenge: Option<Challenge>,
    pub(super) connections: Connections,
    /// When the last packet of the peer opened.
    pub(super) last_opened: Time,
    /// The longest time without one, but for the present one.
    pub(super) longest_silence: Time,
    /// When the last datagram of an application went out.
    pub(super) last_datagram: Time,
    /// When an application asked for the session to be kept.
    last_asked: Time,
    path_mtu: PathMtu,
    renewals: Renewals,
    silence: Silence,
    /// When this side first sent what the peer answers with its keys.
    pub(super) began: Time,
    /// A segment that did not fit into the last batch.
    held: Option<Ready>,
    /// Span of the log for this session.
    pub(super) span: Span,
    /// The proven route that was told last.
    pub(super) told: Option<Route>,
}

/// A question to an address that has to be proven.
#[derive(Clone, Copy, Debug)]
struct Challenge {
    number: u64,
    /// When it is asked again.
    again: Time,
}

/// The next datagram to send.
#[derive(Debug)]
enum Ready {
    Segment(Outside, Transmit<Segment<Bytes>>),
    Message(Message),
    Hello,
}

/// A datagram that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: usize,
    pub(super) ecn: Ecn,
    /// Whether it may be too long for the path: what goes out with it would be lost as well.
    pub(super) is_probe: bool,
}

/// Bounds of a datagram that joins a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Like {
    pub(super) most_bytes: usize,
    pub(super) ecn: Ecn,
}

impl Session {
    /// A session that this side begins.
    pub(super) fn calling(
        (own_id, code): (u32, Mac),
        peer: PublicKey,
        route: Route,
        (initiator, content): (Initiator, Vec<u8>),
        initiation: &Initiation,
        (path_mtu, renewals, moved, own_link): (PathMtu, Renewals, OriginShift, LinkWatch),
    ) -> Self {
        let early = SealingKey::new(initiation.algorithm, initiation.early.clone());
        Session {
            own_id,
            code,
            peer_id: None,
            peer,
            route,
            budget: Budget::Proven,
            has_begun: true,
            initiator: Some(Box::new(initiator)),
            algorithm: initiation.algorithm,
            sealer: Sealer::starting_at(0, Kind::Early, early, KeyPhase::default(), 0),
            opener: None,
            early: None,
            early_until: Time::NEVER,
            hello: Some(hello_packet(&content, 0)),
            is_hello_due: false,
            reset_token: None,
            messages: VecDeque::new(),
            challenge: None,
            connections: Connections::new(true, moved, own_link),
            last_opened: Time::ZERO,
            longest_silence: Time::ZERO,
            last_datagram: Time::ZERO,
            last_asked: Time::ZERO,
            path_mtu,
            renewals,
            silence: Silence::new(),
            began: Time::ZERO,
            held: None,
            span: span(own_id, &peer, &route),
            told: None,
        }
    }

    /// A session that a peer begins.
    #[expect(clippy::too_many_arguments, reason = "a handshake has as many results")]
    pub(super) fn answering(
        now: Time,
        (own_id, code): (u32, Mac),
        peer: PublicKey,
        route: Route,
        initiation: &Initiation,
        response: &Response,
        (content, keys): (Vec<u8>, SessionKeys),
        (path_mtu, renewals, keep, moved, own_link): (PathMtu, Renewals, Time, OriginShift, LinkWatch),
    ) -> Self {
        let early = response.takes_early.then(|| {
            let key = SealingKey::new(initiation.algorithm, initiation.early.clone());
            Box::new(Unsealer::starting_in(KeyPhase::default(), Kind::Early, key, 0, keep))
        });
        Session {
            own_id,
            code,
            peer_id: Some(initiation.connection_id),
            peer,
            route,
            budget: Budget::NONE,
            has_begun: false,
            initiator: None,
            algorithm: response.algorithm,
            sealer: Sealer::new(keys.sending, initiation.connection_id).covered_by(response.cover),
            opener: Some(Unsealer::new(keys.receiving, own_id, keep).covered_by(response.cover)),
            early,
            early_until: Time::NEVER,
            hello: Some(hello_packet(&content, initiation.connection_id)),
            is_hello_due: true,
            reset_token: Some(initiation.reset_token),
            messages: VecDeque::new(),
            challenge: None,
            connections: Connections::new(false, moved, own_link),
            last_opened: now,
            longest_silence: Time::ZERO,
            last_datagram: Time::ZERO,
            last_asked: Time::ZERO,
            path_mtu,
            renewals,
            silence: Silence::new(),
            began: now,
            held: None,
            span: span(own_id, &peer, &route),
            told: None,
        }
    }

    /// The initiation has come again: so has, perhaps, not the response.
    pub(super) fn on_repeated_initiation(&mut self, bytes: usize) {
        self.budget.on_received(bytes);
        self.is_hello_due = self.hello.is_some();
    }

    /// A response has come; whether it is the right one.
    pub(super) fn on_response(&mut self, now: Time, route: Route, response: &Checked<'_>, keep: Time) -> bool {
        let Some(initiator) = &mut self.initiator else {
            // The peer has not seen yet that its response has come.
            self.say(Message::Ping);
            return true;
        };
        let Some((response, keys)) = initiator.finish(response) else { return false };
        (self.initiator, self.hello, self.is_hello_due) = (None, None, false);
        (self.peer_id, self.reset_token) = (Some(response.connection_id), Some(response.reset_token));
        self.algorithm = response.algorithm;
        if response.cover == Cover::Seal {
            self.renewals.begin(now);
        }
        self.silence.set_round_trip(now.since(self.began));
        let number = self.sealer.next_number();
        self.sealer =
            Sealer::starting_at(number, Kind::Sealed, keys.sending, KeyPhase::default(), response.connection_id)
                .covered_by(response.cover);
        self.opener = Some(Unsealer::new(keys.receiving, self.own_id, keep).covered_by(response.cover));
        (self.route, self.last_opened) = (route, now);
        debug!(algorithm = ?self.algorithm, cover = ?response.cover, "the handshake is answered");
        self.say(Message::Ping);
        self.follow_path_mtu(now);
        true
    }

    /// Packets have the length that the path is known to carry.
    fn follow_path_mtu(&mut self, now: Time) {
        let bytes = Count::new(f64::from(self.path_mtu.bytes())).expect("sizes of packets are counts");
        debug!(bytes = self.path_mtu.bytes(), "longest packets");
        self.connections.set_packet_bytes(now, bytes);
    }

    fn say(&mut self, message: Message) {
        if !self.messages.contains(&message) {
            self.messages.push_back(message);
        }
    }

    /// Asks the peer for an answer, which tells nothing but that it has the session; whether something came since the last time. `[Y27]`
    pub(super) fn ask(&mut self, now: Time) -> bool {
        self.challenge(NOBODYS);
        let last = std::mem::replace(&mut self.last_asked, now);
        let has_answered = !self.is_calling() && self.last_opened >= last;
        if !has_answered {
            self.forget_own_address();
        }
        has_answered
    }

    /// The own address may have stopped to lead to the peer, as that of a cable that was pulled: the system chooses another one, if this
    /// side began the session. Otherwise the peer expects answers from where it sends to. `[Y9]`
    fn forget_own_address(&mut self) {
        if self.has_begun {
            self.route.local = None;
        }
    }

    /// Asks the peer for an answer with this number.
    pub(super) fn challenge(&mut self, number: u64) {
        self.say(Message::Challenge(number));
    }

    /// The latest round trip of data, or that of the handshake.
    pub(super) fn round_trip(&self) -> Option<Time> {
        self.connections.round_trip().or(self.silence.round_trip())
    }

    /// The responder wants this cookie in the initiation. `[Y15]`
    pub(super) fn on_cookie(&mut self, cookie: &Mac) {
        if let Some(hello) = self.hello.as_mut().filter(|_| self.initiator.is_some()) {
            let mut packet = hello.to_vec();
            set_cookie(&mut packet[OUTER_BYTES..], cookie);
            *hello = packet.into();
            self.is_hello_due = true;
        }
    }

    /// Opens a packet; `bytes` are those of its whole datagram.
    pub(super) fn open(
        &mut self,
        now: Time,
        route: Route,
        packet: OuterPacket,
        bytes: usize,
        challenge: impl FnOnce() -> u64,
    ) -> Result<Opened, NotOpened> {
        let is_early = packet.header().kind == Kind::Early;
        let opener = if is_early { self.early.as_deref_mut() } else { self.opener.as_mut() };
        let opened = opener.ok_or(NotOpened::Kind)?.open_content(packet, now)?;
        self.longest_silence = self.longest_silence.max(now.since(self.last_opened));
        self.last_opened = now;
        self.budget.on_received(bytes);
        if is_early {
            return Ok(opened);
        }
        if let Some(opener) = &self.opener
            && self.renewals.on_opened(&mut self.sealer, opener)
        {
            debug!("the peer has the new keys");
        }
        if self.early.is_some() && self.early_until == Time::NEVER {
            self.early_until = now + EARLY_STRAGGLERS;
        }
        if self.hello.is_some() {
            // The datagram was sealed with the response's keys, so the peer receives at this address. `[Y4]`
            (self.hello, self.is_hello_due) = (None, false);
            self.budget = Budget::Proven;
            self.connections.address_proven();
            self.silence.set_round_trip(now.since(self.began));
            debug!("the peer has the keys");
            self.follow_path_mtu(now);
        }
        if opened.is_newest() {
            self.follow(now, route, bytes, challenge);
        }
        Ok(opened)
    }

    /// The newest packet has come from `route`; if that is another one, the peer has moved. `[Y9]`
    fn follow(&mut self, now: Time, route: Route, bytes: usize, challenge: impl FnOnce() -> u64) {
        if self.route.is_same(&route) {
            self.route.local = route.local;
            return;
        }
        debug!(remote = %route.remote, "the peer has moved");
        self.route = route;
        self.budget = Budget::NONE;
        self.budget.on_received(bytes);
        self.challenge = Some(Challenge { number: challenge(), again: now });
        self.path_mtu.begin_again();
        self.follow_path_mtu(now);
    }

    /// A segment of a connection has come.
    pub(super) fn on_segment(&mut self, now: Time) {
        self.silence.on_segment(now);
    }

    /// A message of the session has come over the present route.
    pub(super) fn on_message(&mut self, now: Time, message: Message, route: &Route) {
        match message {
            Message::Ping | Message::Datagram { .. } => {}
            Message::Challenge(number) | Message::Probe { number, .. } => self.say(Message::Answer(number)),
            Message::Answer(number) => {
                if self.challenge.is_some_and(|challenge| challenge.number == number) && self.route.is_same(route) {
                    (self.challenge, self.budget) = (None, Budget::Proven);
                    debug!("the peer's address is proven");
                } else if self.path_mtu.on_answer(now, number) {
                    self.follow_path_mtu(now);
                }
            }
            // Without a seal there is nothing to renew. `[Y24]`
            Message::Renew(_) | Message::Renewed(_) if self.sealer.cover() == Cover::Clear => {}
            Message::Renew(question) => {
                let Some(opener) = &mut self.opener else { return };
                let answer = self.renewals.on_question(&question, self.algorithm, &self.sealer, opener);
                if let Some(answer) = answer {
                    self.say(Message::Renewed(answer));
                }
            }
            Message::Renewed(answer) => {
                let Some(opener) = &mut self.opener else { return };
                if self.renewals.on_answer(now, &answer, self.algorithm, &mut self.sealer, opener) {
                    debug!("new keys");
                    // The first packet under the new key, so that the peer need not wait for data.
                    self.say(Message::Ping);
                }
            }
        }
    }

    /// Whether a token proves that the peer has lost the session.
    pub(super) fn is_reset(&self, token: &Mac) -> bool {
        self.reset_token.is_some_and(|right| are_equal(&right, token))
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if now >= self.early_until {
            (self.early, self.early_until) = (None, Time::NEVER);
        }
        let (settled, in_flight) = (|| self.connections.settled_bytes(), || self.connections.is_in_flight());
        if self.path_mtu.handle_timeout(now, settled, in_flight) {
            self.follow_path_mtu(now);
        }
        if self.silence.is_over(now) && !self.connections.is_idle() {
            self.forget_own_address();
            self.say(self.probe(NOBODYS, BASE_BYTES));
        }
        if let Some(question) = self.renewals.handle_timeout(now, &self.sealer) {
            self.say(Message::Renew(question));
        }
        self.connections.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Time {
        let challenge = self.challenge.map_or(Time::NEVER, |challenge| challenge.again);
        self.connections
            .poll_timeout()
            .unwrap_or(Time::NEVER)
            .min(challenge)
            .min(self.early_until)
            .min(self.path_mtu.due())
            .min(self.renewals.poll_timeout())
            .min(self.silence.due())
    }

    /// Writes the next datagram to `out`, if there is one and, in a batch, if it is like those before.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut [u8], like: Option<Like>) -> Option<Written> {
        loop {
            let ready = self.held.take().or_else(|| self.next(now))?;
            let (bytes, ecn) = self.size(&ready);
            if like.is_some_and(|like| bytes > like.most_bytes || ecn != like.ecn) || bytes > out.len() {
                self.held = Some(ready);
                return None;
            }
            if !self.budget.take(bytes) {
                continue; // it counts as lost on the way `[Y8]`
            }
            if self.write(&ready, &mut out[..bytes]).is_some() {
                self.note_full(now, bytes, &ready);
                return Some(Written { bytes, ecn, is_probe: matches!(ready, Ready::Message(Message::Probe { .. })) });
            }
        }
    }

    /// Full packets begin the search for longer ones, once the peer has the keys.
    fn note_full(&mut self, now: Time, bytes: usize, ready: &Ready) {
        let is_full = bytes + self.route.ip_bytes() + UDP_BYTES + NEARLY >= usize::from(self.path_mtu.bytes());
        let has_data = matches!(ready, Ready::Segment(..) | Ready::Message(Message::Datagram { .. }));
        if is_full && self.hello.is_none() && has_data {
            let (connections, timeout) = (&self.connections, || timeout_of(&self.connections));
            self.path_mtu.on_full(now, || connections.settled_bytes(), timeout);
        }
    }

    fn next(&mut self, now: Time) -> Option<Ready> {
        if let Some(challenge) = self.challenge.as_mut().filter(|challenge| challenge.again <= now) {
            challenge.again = now + CHALLENGE_INTERVAL;
            return Some(Ready::Message(Message::Challenge(challenge.number)));
        }
        if let Some(message) = self.messages.pop_front() {
            return Some(Ready::Message(message));
        }
        if now >= self.path_mtu.due() {
            let timeout = timeout_of(&self.connections);
            let [first, second] = self.path_mtu.next_probes(now, timeout);
            let [first, second] = [first, second].map(|probe| probe.map(|it| self.probe(it.number, it.bytes)));
            self.messages.extend(second);
            if let Some(first) = first {
                return Some(Ready::Message(first));
            }
        }
        let around = self.route.ip_bytes() + UDP_BYTES + OUTER_BYTES + TAG_BYTES + DATAGRAM_HEADER_BYTES;
        if let Some(outgoing) = self.connections.poll_transmit(now, (around, self.longest_datagram())) {
            let (round_trip, wait) = (|| self.connections.round_trip(), || timeout_of(&self.connections));
            if let Some(question) = self.renewals.on_segment(now, &self.sealer, round_trip, wait) {
                self.say(Message::Renew(question));
            }
            return Some(match outgoing {
                Outgoing::Segment(outside, transmit) => Ready::Segment(outside, transmit),
                Outgoing::Datagram { port, data } => {
                    self.last_datagram = now;
                    Ready::Message(Message::Datagram { port, data })
                }
            });
        }
        std::mem::take(&mut self.is_hello_due).then_some(Ready::Hello)
    }

    /// The longest datagram that fits into a packet now.
    pub(super) fn longest_datagram(&self) -> usize {
        longest(self.path_mtu.bytes(), self.route.ip_bytes(), self.hello.as_ref().map_or(0, Bytes::len))
    }

    /// A probe in a packet of so many bytes with all headers.
    fn probe(&self, number: u64, packet_bytes: u16) -> Message {
        let around = self.route.ip_bytes() + UDP_BYTES + OUTER_BYTES + TAG_BYTES;
        Message::Probe { number, content_bytes: packet_bytes - around as u16 }
    }

    /// Bytes of the datagram, and its mark.
    fn size(&self, ready: &Ready) -> (usize, Ecn) {
        let (behind, ecn) = match ready {
            Ready::Segment(_, transmit) => (packet_bytes(&transmit.packet, self.sealer.cover()), transmit.ecn),
            Ready::Message(message) => (OUTER_BYTES + message.bytes() + TAG_BYTES, Ecn::NotCapable),
            Ready::Hello => (0, Ecn::NotCapable),
        };
        (self.hello.as_ref().map_or(0, Bytes::len) + behind, ecn)
    }

    /// `None` if no packet number is left: the session is then silent, and its connections end by themselves.
    fn write(&mut self, ready: &Ready, out: &mut [u8]) -> Option<()> {
        let behind = match &self.hello {
            Some(hello) => {
                self.is_hello_due = false;
                out[..hello.len()].copy_from_slice(hello);
                &mut out[hello.len()..]
            }
            None => out,
        };
        match ready {
            Ready::Segment(outside, transmit) => {
                self.sealer.seal_into(&transmit.packet, outside, behind).ok().map(drop)
            }
            Ready::Message(message) => self.sealer.seal_message(&message.encode(), behind).ok().map(drop),
            Ready::Hello => Some(()),
        }
    }

    /// The route, if the peer has shown that it receives there.
    pub(super) fn proven(&self) -> Option<Route> {
        let is_proven = self.budget == Budget::Proven && self.hello.is_none() && self.initiator.is_none();
        is_proven.then_some(self.route)
    }

    /// Whether the peer has not yet shown that it has the keys of this session.
    pub(super) fn is_half_open(&self) -> bool {
        self.hello.is_some()
    }

    /// Whether this side began it and has no answer yet.
    pub(super) fn is_calling(&self) -> bool {
        self.initiator.is_some()
    }

    pub(super) fn move_origin(&mut self, by: OriginShift) {
        let move_time = |time: Time| if time == Time::NEVER { time } else { time.since(by.time()) };
        self.early_until = move_time(self.early_until);
        self.last_opened = move_time(self.last_opened);
        self.last_datagram = move_time(self.last_datagram);
        self.last_asked = move_time(self.last_asked);
        if let Some(challenge) = &mut self.challenge {
            challenge.again = move_time(challenge.again);
        }
        self.path_mtu.move_origin(by.time());
        self.renewals.move_origin(by.time());
        self.silence.move_origin(by.time());
        self.began = move_time(self.began);
        self.connections.move_origin(by);
    }
}

fn span(own_id: u32, peer: &PublicKey, route: &Route) -> Span {
    debug_span!("session", id = own_id, %peer, remote = %route.remote)
}

/// How long answers may take on the path of these connections.
fn timeout_of(connections: &Connections) -> Time {
    connections.round_trip().map_or(FIRST_TIMEOUT, |it| it.times(2).max(LEAST_TIMEOUT))
}

/// The outer header of a packet of kind hello.
pub(super) fn hello_header(content_bytes: usize, connection_id: u32) -> OuterHeader {
    OuterHeader {
        kind: Kind::Hello,
        key_phase: KeyPhase::default(),
        parity_words: 0,
        content_bytes: content_bytes as u16,
        connection_id,
        number: 0,
    }
}

/// A whole packet of kind hello.
pub(super) fn hello_packet(content: &[u8], connection_id: u32) -> Bytes {
    [&hello_header(content.len(), connection_id).encode()[..], content].concat().into()
}
