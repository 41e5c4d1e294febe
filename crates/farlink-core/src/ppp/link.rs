//! One line: framing, LCP, proof of both ends, echoes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::auth::{self, Prover, Standing, Verifier};
use super::automaton::State;
use super::control::{ControlPacket, code};
use super::echo::{Echo, EchoConfig};
use super::hdlc::{Accm, Counts, Decoder};
use super::lcp::{self, Agreed, Discriminator, Hopeless, LcpConfig, LcpOptions};
use super::negotiator::{Layer, Limits, Negotiator};
use super::outbox::{Load, Outbox};
use super::secret::Identities;
use crate::rng::RandomSource;
use crate::time::Time;

/// Address "all stations" and control "unnumbered information" (RFC 1662, section 3.1).
const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
/// Address, control, protocol and the header of a fragment in front of what MRU counts.
const HEADERS: usize = 2 + 2;
/// Frames of the line itself that may wait: a peer cannot ask for answers without limit.
const MOST_CONTROL: usize = 16;

/// Why a line is not, or no longer, part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The line lost its carrier.
    NoCarrier,
    /// The peer does not answer requests.
    NoAnswer,
    /// The peer no longer answers echoes.
    NoEcho,
    /// Nothing that was written to the port has left it.
    Stalled,
    /// Our own packets come back.
    LoopedBack,
    /// The peer does not prove who it is.
    NoProof,
    /// The peer's secret is not the one that is known for its name, or nobody of that name is known.
    WrongSecret,
    /// The peer does not accept our name and secret.
    Refused,
    /// The peer has ended the line.
    Terminated,
    /// The peer began to negotiate anew.
    Renegotiated,
    /// The peer is not the one that the bundle's other lines have.
    OtherPeer,
    /// The peer's lines differ in the header of fragments.
    OtherHeader,
    /// The bundle has another line, and the peer of this one does not cut packets.
    NoMultilink,
    /// This end was told to close.
    Closed,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::NoCarrier => "no carrier",
            Cause::NoAnswer => "no answer: the peer does not speak PPP, or restart is shorter than the round trip",
            Cause::NoEcho => "no echo: the peer no longer answers",
            Cause::Stalled => "stalled: nothing leaves the port; check flow control",
            Cause::LoopedBack => "looped back: our own packets come back; check the line or the modem's test mode",
            Cause::NoProof => "no proof: the peer does not prove who it is, but has to",
            Cause::WrongSecret => "wrong secret: the peer's name and secret are not among the known ones",
            Cause::Refused => "refused: the peer does not accept our name and secret",
            Cause::Terminated => "terminated by the peer",
            Cause::Renegotiated => "the peer negotiates anew",
            Cause::OtherPeer => {
                "another peer: its name or endpoint discriminator is not that of the bundle's other lines"
            }
            Cause::OtherHeader => {
                "another header: short sequence numbers on some lines only; set them alike at the peer"
            }
            Cause::NoMultilink => "no multilink: the peer does not put packets together that come over several lines",
            Cause::Closed => "closed",
        })
    }
}

impl Cause {
    /// Whether another try at once would end the same way.
    const fn is_lasting(self) -> bool {
        matches!(
            self,
            Cause::LoopedBack
                | Cause::NoProof
                | Cause::WrongSecret
                | Cause::Refused
                | Cause::OtherPeer
                | Cause::OtherHeader
                | Cause::NoMultilink
        )
    }
}

/// Configuration of a line.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Options of the line. `demands` and `offers` follow from the identities.
    pub lcp: LcpConfig,
    /// Timers and counters of negotiations and proofs.
    pub limits: Limits,
    /// Echoes; `None`: only carrier tells that the line is gone.
    pub echo: Option<EchoConfig>,
    /// From the end of a line that still has carrier to the next try; twelve times as long if that would end likewise.
    pub retry: Time,
}

impl Default for LinkConfig {
    fn default() -> Self {
        let (lcp, limits, echo) = (LcpConfig::default(), Limits::default(), Some(EchoConfig::default()));
        LinkConfig { lcp, limits, echo, retry: Time::from_secs(5) }
    }
}

/// Events of a line for its bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkEvent {
    /// Packets of the network may be sent.
    Open,
    /// They no longer may, or the try has failed.
    Closed(Cause),
    /// A packet of another protocol.
    Packet(u16, Bytes),
    /// The peer does not have a protocol.
    ProtocolRejected(u16),
    /// A frame of data has left the port.
    Sent(u64),
    /// A frame of data has not.
    Unsent(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No carrier, or it has ended and waits.
    Dead,
    Establish,
    Authenticate,
    Network,
}

/// One line of a bundle.
#[derive(Clone, Debug)]
pub(super) struct Link {
    config: LinkConfig,
    identities: Arc<Identities>,
    lcp: Negotiator<LcpOptions>,
    decoder: Decoder,
    outbox: Outbox,
    phase: Phase,
    has_carrier: bool,
    verifier: Option<Verifier>,
    prover: Option<Prover>,
    echo: Option<Echo>,
    retry_at: Option<Time>,
    /// When bytes left the port last, or there were none.
    progress: Time,
    events: VecDeque<LinkEvent>,
    reject_id: u8,
    /// Whether it was told to close, until it loses carrier.
    is_closed: bool,
}

impl Link {
    pub(super) fn new(mut config: LinkConfig, identities: Arc<Identities>) -> Self {
        config.lcp.demands.clone_from(&identities.demands);
        config.lcp.offers = identities.offers();
        let longest = usize::from(config.lcp.mru.max(lcp::DEFAULT_MRU)) + HEADERS;
        Link {
            lcp: Negotiator::new(LcpOptions::new(config.lcp.clone()), config.limits),
            decoder: Decoder::new(longest),
            config,
            identities,
            outbox: Outbox::default(),
            phase: Phase::Dead,
            has_carrier: false,
            verifier: None,
            prover: None,
            echo: None,
            retry_at: None,
            progress: Time::ZERO,
            events: VecDeque::new(),
            reject_id: 0,
            is_closed: false,
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    pub(super) fn counts(&self) -> Counts {
        self.decoder.counts()
    }

    /// How this end sends.
    pub(super) fn sends(&self) -> &Agreed {
        self.lcp.options.sends()
    }

    /// How the peer sends.
    pub(super) fn receives(&self) -> &Agreed {
        self.lcp.options.receives()
    }

    pub(super) fn is_multilink(&self) -> bool {
        self.lcp.options.is_multilink()
    }

    /// Identity of the peer: its system, and the name that it has proven.
    pub(super) fn peer(&self) -> (Discriminator, Option<Vec<u8>>) {
        let name = self.verifier.as_ref().and_then(|verifier| match verifier.standing() {
            Standing::Proven(name) => name.clone(),
            _ => None,
        });
        (self.sends().discriminator.clone(), name)
    }

    pub(super) fn round_trip(&self) -> Option<Time> {
        self.echo.as_ref()?.round_trip()
    }

    pub(super) fn backlog_bytes(&self) -> usize {
        self.outbox.backlog_bytes()
    }

    pub(super) fn data_frames(&self) -> usize {
        self.outbox.data_frames()
    }

    pub(super) fn has_bytes(&self) -> bool {
        self.outbox.untaken_bytes() > 0
    }

    /// The challenge that the peer of this line has to answer.
    pub(super) fn challenge(&self) -> Option<[u8; 16]> {
        self.verifier.as_ref().map(Verifier::challenge)
    }

    pub(super) fn on_carrier(&mut self, now: Time, is_up: bool, random: &mut dyn RandomSource) {
        if is_up == self.has_carrier {
            return;
        }
        self.has_carrier = is_up;
        self.retry_at = None;
        self.is_closed = false;
        if is_up {
            self.phase = Phase::Establish;
            self.decoder = Decoder::new(usize::from(self.config.lcp.mru.max(lcp::DEFAULT_MRU)) + HEADERS);
            self.lcp.open(now, random);
            self.lcp.up(now, random);
        } else {
            self.lcp.down(now, random);
            self.lcp.close(now, random);
            // The port may have had bytes that it has not sent: they count as lost with the call.
            let events = &mut self.events;
            self.outbox.clear(|number| events.push_back(LinkEvent::Unsent(number)));
            self.ended(Cause::NoCarrier);
            self.outbox.clear(|_| {});
        }
        self.advance(now, random);
    }

    /// Ends the line for good: until carrier is lost, it stays closed.
    pub(super) fn close(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.is_closed = true;
        self.fail(now, Cause::Closed, random);
    }

    /// Gives the line up: it leaves the bundle at once, and tells the peer.
    pub(super) fn fail(&mut self, now: Time, cause: Cause, random: &mut dyn RandomSource) {
        self.ended(cause);
        self.lcp.close(now, random);
        let wait = if cause.is_lasting() { self.config.retry.times(12) } else { self.config.retry };
        self.retry_at = (self.has_carrier && !self.is_closed).then(|| now + wait);
        self.advance(now, random);
    }

    fn ended(&mut self, cause: Cause) {
        if self.phase != Phase::Dead {
            self.leave_network();
            self.phase = Phase::Dead;
            self.events.push_back(LinkEvent::Closed(cause));
        }
    }

    /// No longer authenticated, no longer watched; data that have not left are given back.
    fn leave_network(&mut self) {
        (self.verifier, self.prover, self.echo) = (None, None, None);
        self.decoder.set_map(Accm::ALL);
        let events = &mut self.events;
        self.outbox.clear_data(|number| events.push_back(LinkEvent::Unsent(number)));
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let stalled = (!self.outbox.is_empty()).then(|| self.stall_time()).flatten();
        [
            self.lcp.poll_timeout(),
            self.verifier.as_ref().and_then(Verifier::poll_timeout),
            self.prover.as_ref().and_then(Prover::poll_timeout),
            self.echo.as_ref().and_then(Echo::poll_timeout),
            self.retry_at,
            stalled,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When a port that sends nothing is given up.
    fn stall_time(&self) -> Option<Time> {
        let echo = self.config.echo.filter(|_| self.phase == Phase::Network)?;
        Some(self.progress + echo.interval.times(4 * u64::from(echo.failures.max(1))))
    }

    pub(super) fn on_timeout(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.lcp.on_timeout(now, random);
        let mut out = Vec::new();
        if let Some(verifier) = &mut self.verifier {
            verifier.on_timeout(now, &self.identities, &mut out);
        }
        if let Some(prover) = &mut self.prover {
            prover.on_timeout(now, &self.identities, &mut out);
        }
        self.send_all(out);
        if self.echo.as_ref().is_some_and(|echo| echo.has_failed(now)) {
            self.fail(now, Cause::NoEcho, random);
        } else if !self.outbox.is_empty() && self.stall_time().is_some_and(|due| due <= now) {
            self.fail(now, Cause::Stalled, random);
        }
        if let Some(id) = self.echo.as_mut().and_then(|echo| echo.on_timeout(now)) {
            let data = self.receives().magic.to_be_bytes().to_vec().into();
            self.push(now, lcp::PROTOCOL, &ControlPacket { code: code::ECHO_REQUEST, id, data }.encode(), Load::Echo);
        }
        if self.retry_at.is_some_and(|due| due <= now) {
            self.retry_at = None;
            if is_at_rest(self.lcp.state()) {
                self.phase = Phase::Establish;
                self.lcp.down(now, random);
                self.lcp.open(now, random);
                self.lcp.up(now, random);
            }
        }
        self.advance(now, random);
    }

    /// Takes bytes of the port, up to the next frame; returns whether there may be more. `asked` are the challenges of other lines:
    /// who passes them on gets no answer from us.
    pub(super) fn receive(
        &mut self,
        now: Time,
        bytes: &mut &[u8],
        asked: &[[u8; 16]],
        random: &mut dyn RandomSource,
    ) -> bool {
        let Some(frame) = self.decoder.next(bytes) else { return false };
        if let Some((protocol, information)) = split(&frame) {
            self.on_frame(now, protocol, information, asked, random);
            self.advance(now, random);
        }
        true
    }

    fn on_frame(
        &mut self,
        now: Time,
        protocol: u16,
        information: Bytes,
        asked: &[[u8; 16]],
        random: &mut dyn RandomSource,
    ) {
        if !self.has_carrier {
            return;
        }
        if let Some(echo) = &mut self.echo {
            echo.on_frame(now);
        }
        match protocol {
            lcp::PROTOCOL => self.on_lcp(now, &information, random),
            auth::PAP | auth::CHAP if matches!(self.phase, Phase::Authenticate | Phase::Network) => {
                let Some(packet) = ControlPacket::decode(&information) else { return };
                let mut out = Vec::new();
                if let Some(verifier) = &mut self.verifier {
                    verifier.handle(protocol, &packet, &self.identities, &mut out);
                }
                if let Some(prover) = &mut self.prover {
                    let is_ours = |challenge: &[u8]| asked.iter().any(|one| one == challenge);
                    prover.handle(protocol, &packet, &self.identities, is_ours, &mut out);
                }
                self.send_all(out);
            }
            // Before both ends are known, everything else is dropped silently (RFC 1661, section 3.5).
            _ if self.phase == Phase::Network => self.events.push_back(LinkEvent::Packet(protocol, information)),
            _ => {}
        }
    }

    fn on_lcp(&mut self, now: Time, information: &Bytes, random: &mut dyn RandomSource) {
        let Some(packet) = ControlPacket::decode(information) else { return };
        let magic = packet.data.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        match packet.code {
            code::ECHO_REQUEST | code::ECHO_REPLY | code::DISCARD_REQUEST if !self.lcp.is_open() => {}
            //= https://www.rfc-editor.org/rfc/rfc1661#section-5.8
            //# The Magic-Number field is four octets, and aids in detecting links which are in the looped-back condition.
            code::ECHO_REQUEST | code::ECHO_REPLY if magic != 0 && magic == self.receives().magic => {
                self.fail(now, Cause::LoopedBack, random);
            }
            code::ECHO_REQUEST => {
                let rest = packet.data.get(4..).unwrap_or_default();
                let data = [&self.receives().magic.to_be_bytes(), rest].concat().into();
                self.control(now, &ControlPacket { code: code::ECHO_REPLY, id: packet.id, data });
            }
            code::ECHO_REPLY => {
                if let Some(echo) = &mut self.echo {
                    echo.on_reply(now, packet.id);
                }
            }
            code::DISCARD_REQUEST => {}
            code::PROTOCOL_REJECT => {
                let rejected = packet.data.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
                if let Some(protocol) = rejected.filter(|_| self.lcp.is_open()) {
                    self.events.push_back(LinkEvent::ProtocolRejected(protocol));
                }
            }
            _ => {
                let was_open = self.lcp.is_open();
                self.lcp.handle(now, &packet, random);
                if was_open && !self.lcp.is_open() {
                    let is_terminated = matches!(packet.code, code::TERMINATE_REQUEST | code::CODE_REJECT);
                    self.ended(if is_terminated { Cause::Terminated } else { Cause::Renegotiated });
                    if !is_terminated {
                        self.phase = Phase::Establish;
                    }
                }
            }
        }
    }

    /// Tells the peer that a protocol is not known here (RFC 1661, section 5.7).
    pub(super) fn reject_protocol(&mut self, now: Time, protocol: u16, information: &[u8]) {
        self.reject_id = self.reject_id.wrapping_add(1);
        let most = usize::from(self.sends().mru).saturating_sub(4 + 2).min(information.len());
        let data = [&protocol.to_be_bytes()[..], &information[..most]].concat().into();
        self.control(now, &ControlPacket { code: code::PROTOCOL_REJECT, id: self.reject_id, data });
    }

    /// Does what follows from a step of LCP or of a proof.
    fn advance(&mut self, now: Time, random: &mut dyn RandomSource) {
        while let Some(packet) = self.lcp.poll_transmit() {
            self.control(now, &packet);
        }
        while let Some(layer) = self.lcp.poll_layer() {
            match layer {
                Layer::Up => self.established(now, random),
                Layer::Finished if self.has_carrier => {
                    self.ended(Cause::NoAnswer);
                    self.retry_at = self.retry_at.or((!self.is_closed).then(|| now + self.config.retry));
                }
                Layer::Down | Layer::Started | Layer::Finished => {}
            }
        }
        if self.phase == Phase::Dead && self.has_carrier && !is_at_rest(self.lcp.state()) {
            // The peer began while this end waited for its next try.
            self.phase = Phase::Establish;
            self.retry_at = None;
        }
        if let Some(hopeless) = self.lcp.options.hopeless().filter(|_| self.phase != Phase::Dead) {
            let cause = match hopeless {
                Hopeless::LoopedBack => Cause::LoopedBack,
                Hopeless::NoProof => Cause::NoProof,
            };
            self.fail(now, cause, random);
        }
        if self.phase == Phase::Authenticate {
            self.judge(now, random);
        }
    }

    fn established(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.phase = Phase::Authenticate;
        self.retry_at = None;
        self.decoder.set_map(self.receives().map);
        let mut out = Vec::new();
        let limits = self.config.limits;
        self.verifier =
            self.receives().proof.map(|proof| Verifier::start(now, proof, limits, &self.identities, random, &mut out));
        self.prover = self.sends().proof.map(|proof| Prover::start(now, proof, limits, &self.identities, &mut out));
        self.send_all(out);
    }

    /// Opens the network once both ends are known.
    fn judge(&mut self, now: Time, random: &mut dyn RandomSource) {
        let peers = self.verifier.as_ref().map(|verifier| verifier.standing().clone());
        let ours = self.prover.as_ref().map(|prover| prover.standing().clone());
        match (peers, ours) {
            (Some(Standing::Failed), _) => self.fail(now, Cause::WrongSecret, random),
            (Some(Standing::Silent), _) => self.fail(now, Cause::NoProof, random),
            (_, Some(Standing::Failed)) => self.fail(now, Cause::Refused, random),
            (_, Some(Standing::Silent)) => self.fail(now, Cause::NoAnswer, random),
            (Some(Standing::Open), _) | (_, Some(Standing::Open)) => {}
            (None | Some(Standing::Proven(_)), None | Some(Standing::Proven(_))) => {
                self.phase = Phase::Network;
                self.progress = now;
                self.echo = self.config.echo.map(|config| Echo::start(now, config));
                self.events.push_back(LinkEvent::Open);
            }
        }
    }

    fn send_all(&mut self, packets: Vec<(u16, ControlPacket)>) {
        for (protocol, packet) in packets {
            if self.outbox.control_frames() < MOST_CONTROL {
                self.push_content(protocol, &packet.encode(), Load::Control);
            }
        }
    }

    fn control(&mut self, now: Time, packet: &ControlPacket) {
        if self.outbox.control_frames() < MOST_CONTROL {
            self.push(now, lcp::PROTOCOL, &packet.encode(), Load::Control);
        }
    }

    /// Sends a packet of the bundle, or a part of one.
    pub(super) fn send(&mut self, now: Time, protocol: u16, information: &[u8], number: u64) {
        self.push(now, protocol, information, Load::Data(number));
    }

    fn push(&mut self, now: Time, protocol: u16, information: &[u8], load: Load) {
        if self.outbox.is_empty() {
            self.progress = now;
        }
        self.push_content(protocol, information, load);
    }

    fn push_content(&mut self, protocol: u16, information: &[u8], load: Load) {
        let sends = self.lcp.options.sends();
        // LCP is sent as if no option had been negotiated (RFC 1662, section 7, and RFC 1661, sections 6.5 and 6.6).
        let is_plain = protocol == lcp::PROTOCOL || !self.lcp.is_open();
        let mut content = Vec::with_capacity(HEADERS + information.len());
        if is_plain || !sends.acfc {
            content.extend(ADDRESS_AND_CONTROL);
        }
        if is_plain || !sends.pfc || protocol > 0xff {
            content.push((protocol >> 8) as u8);
        }
        content.push(protocol as u8);
        content.extend_from_slice(information);
        self.outbox.push(&content, if is_plain { Accm::ALL } else { sends.map }, load);
    }

    /// Bytes that a fragment takes on the line beside its payload and the escapes.
    pub(super) fn overhead_bytes(&self) -> usize {
        let sends = self.sends();
        1 + if sends.acfc { 0 } else { 2 } + if sends.pfc { 1 } else { 2 } + super::hdlc::CHECK_BYTES
    }

    pub(super) fn take(&mut self, room: usize, out: &mut Vec<u8>) {
        self.outbox.take(room, out);
    }

    pub(super) fn sent(&mut self, now: Time, bytes: usize) {
        if bytes > 0 {
            self.progress = now;
        }
        let (events, echo) = (&mut self.events, &mut self.echo);
        self.outbox.sent(bytes, |load| match load {
            Load::Control => {}
            Load::Echo => echo.iter_mut().for_each(|echo| echo.on_sent(now)),
            Load::Data(number) => events.push_back(LinkEvent::Sent(number)),
        });
    }

    pub(super) fn withdraw(&mut self, is_useless: impl Fn(u64) -> bool) {
        self.outbox.withdraw(is_useless);
    }
}

/// Whether nothing is negotiated.
const fn is_at_rest(state: State) -> bool {
    !matches!(state, State::ReqSent | State::AckRcvd | State::AckSent | State::Opened)
}

/// Protocol and information of a frame, with or without address, control and the first byte of the protocol. `None` if there is none.
pub(super) fn split(frame: &Bytes) -> Option<(u16, Bytes)> {
    let behind = if frame.starts_with(&ADDRESS_AND_CONTROL) { 2 } else { 0 };
    split_protocol(&frame.slice(behind..))
}

/// Protocol and information of a packet. The least significant bit of a protocol's last byte is 1, and of its first byte 0 (RFC 1661,
/// section 2).
pub(super) fn split_protocol(packet: &Bytes) -> Option<(u16, Bytes)> {
    match packet[..] {
        [short, ..] if short & 1 == 1 => Some((short.into(), packet.slice(1..))),
        [high, low, ..] if low & 1 == 1 => Some((u16::from_be_bytes([high, low]), packet.slice(2..))),
        _ => None,
    }
}
