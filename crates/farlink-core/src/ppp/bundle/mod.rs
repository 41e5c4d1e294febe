//! A bundle of PPP lines that carries IP packets as one (RFC 1990).
//!
//! A driver reports carrier with [`Bundle::on_carrier`], passes what a port gives to [`Bundle::receive`], writes what
//! [`Bundle::poll_bytes`] gives, and reports what has left the port with [`Bundle::sent`]. It passes packets in with [`Bundle::send`]
//! and out with [`Bundle::poll_packet`], reads [`Bundle::poll_event`], and calls [`Bundle::handle_timeout`] when
//! [`Bundle::poll_timeout`] says so. Every call may be followed by any other.

mod config;
mod network;
mod rate;
mod receiving;
mod sending;

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;

pub use config::BundleConfig;
pub use sending::SendCounts;

use self::network::Network;
use self::rate::Rate;
use self::receiving::Receiving;
use self::sending::Sending;
use super::hdlc;
use super::ipcp::{Addresses, IPCP, IPV4, IPV6, IPV6CP};
use super::lcp::Discriminator;
use super::link::{Cause, Link, LinkEvent, split_protocol};
use crate::bundle::{Numbering, ReceiverCounts};
use crate::rng::RandomSource;
use crate::time::Time;
use crate::wire::mp;

/// Packets that wait for the driver, at most.
const MOST_PACKETS: usize = 256;
/// A line that joined shows a number so many times more, with pauses that double: for 19 s in all, with a settling time of 0.3 s.
const MOST_SHOWN: u32 = 5;

/// Events of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line joined.
    LineUp {
        /// Index of the line.
        line: usize,
    },
    /// A line left, or could not join.
    LineDown {
        /// Index of the line.
        line: usize,
        /// Why.
        cause: Cause,
    },
    /// The network can be used, or its properties changed.
    NetworkUp(Properties),
    /// It no longer can.
    NetworkDown,
    /// There is no network of IP version 4: the peer wants another address for this end than the one that is configured here.
    AddressesDisagree {
        /// The address that is configured here.
        own: Ipv4Addr,
        /// The one that the peer would give.
        wanted: Ipv4Addr,
    },
}

/// Addresses and MTU of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Longest packet that the peer takes, bytes.
    pub mtu: u16,
    /// Addresses of version 4.
    pub ipv4: Option<Addresses>,
    /// Identifiers of this end and of the peer, for addresses of version 6.
    pub ipv6: Option<(u64, u64)>,
}

/// A line of a bundle as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStatus {
    /// Whether it is part of the bundle.
    pub is_member: bool,
    /// Rate at which its port sends, bit/s.
    pub rate_bps: f64,
    /// Shortest time to an answer.
    pub round_trip: Option<Time>,
    /// Bytes that have not left its port.
    pub backlog_bytes: usize,
    /// Frames that came over it.
    pub frames: hdlc::Counts,
}

/// Identity of a bundle's peer (RFC 1990, section 5.1.3: endpoint discriminator and authenticated name).
type Peer = (Discriminator, Option<Vec<u8>>);

/// A bundle of lines to one peer.
#[derive(Clone, Debug)]
pub struct Bundle<R> {
    links: Vec<Link>,
    members: Vec<bool>,
    /// Members over which the peer takes packets of the bundle by now.
    ready: Vec<bool>,
    /// When a line shows its next number, ready by then, and how many times it did. A peer that attaches the line late has not seen the
    /// first ones, and holds everything behind a gap until it has seen one.
    shows_at: Vec<(Option<Time>, u32)>,
    settle: Time,
    rates: Vec<Rate>,
    sending: Sending,
    receiving: Receiving,
    network: Network,
    /// The peer, while there is a bundle.
    peer: Option<Peer>,
    /// Whether packets are cut, and the longest that the peer puts together.
    is_cut: bool,
    peer_mru: u16,
    shown: Option<Properties>,
    disagreement: Option<(Ipv4Addr, Ipv4Addr)>,
    /// When the network ends that has no line.
    lingers_until: Option<Time>,
    linger: Time,
    random: R,
    packets: VecDeque<Bytes>,
    events: VecDeque<Event>,
    /// Packets that the driver was too slow for.
    overrun: u64,
}

impl<R: RandomSource> Bundle<R> {
    /// A bundle whose lines have no carrier yet. `random` has to be unpredictable for a peer: it makes challenges.
    pub fn new(config: BundleConfig, random: R) -> Self {
        let lines = config.rates.len();
        let identities = Arc::new(config.identities);
        Bundle {
            links: (0..lines).map(|_| Link::new(config.link.clone(), Arc::clone(&identities))).collect(),
            members: vec![false; lines],
            ready: vec![false; lines],
            shows_at: vec![(None, 0); lines],
            settle: config.settle,
            rates: config.rates.iter().map(|&rate| Rate::nominal(rate)).collect(),
            sending: Sending::new(lines, config.queue_bytes, config.latency, config.least_fragment),
            receiving: Receiving::new(lines, config.patience),
            network: Network::new(config.ipv4, config.ipv6, config.link.limits),
            peer: None,
            is_cut: false,
            peer_mru: super::lcp::DEFAULT_MRU,
            shown: None,
            disagreement: None,
            lingers_until: None,
            linger: config.linger,
            random,
            packets: VecDeque::new(),
            events: VecDeque::new(),
            overrun: 0,
        }
    }

    /// How many lines there are.
    pub fn lines(&self) -> usize {
        self.links.len()
    }

    /// A line got carrier or lost it. An index that there is not is ignored, here and below.
    pub fn on_carrier(&mut self, now: Time, line: usize, is_up: bool) {
        let Some(link) = self.links.get_mut(line) else { return };
        link.on_carrier(now, is_up, &mut self.random);
        self.settle(now, line);
    }

    /// Bytes came from a port.
    pub fn receive(&mut self, now: Time, line: usize, mut bytes: &[u8]) {
        if line >= self.links.len() {
            return;
        }
        let asked: Vec<[u8; 16]> = self.links.iter().filter_map(Link::challenge).collect();
        while self.links[line].receive(now, &mut bytes, &asked, &mut self.random) {
            self.drain(now, line);
        }
        self.settle(now, line);
    }

    /// Appends up to `room` bytes for a port to `out`.
    pub fn poll_bytes(&mut self, line: usize, room: usize, out: &mut Vec<u8>) {
        if let Some(link) = self.links.get_mut(line) {
            link.take(room, out);
        }
    }

    /// Whether there are bytes for a port.
    pub fn has_bytes(&self, line: usize) -> bool {
        self.links.get(line).is_some_and(Link::has_bytes)
    }

    /// This many further bytes, of those that were polled, have left a port.
    pub fn sent(&mut self, now: Time, line: usize, bytes: usize) {
        let Some(link) = self.links.get_mut(line) else { return };
        link.sent(now, bytes);
        self.rates[line].sent(now, bytes, link.backlog_bytes() > 0);
        self.settle(now, line);
    }

    /// Takes a packet of IP of the flow with this hash; `false` if it is none, is longer than the peer takes, or no network carries it.
    /// Packets of other flows may be dropped to make room for it.
    pub fn send(&mut self, now: Time, packet: Bytes, flow: u64) -> bool {
        let protocol = match packet.first().map(|byte| byte >> 4) {
            Some(4) => IPV4,
            Some(6) => IPV6,
            _ => return false,
        };
        // While the bundle has no line, packets wait if the network is kept.
        let is_carried = self.network.carries(protocol) || self.lingers_until.is_some();
        if !is_carried || packet.len() > usize::from(self.peer_mru) {
            self.sending.refuse();
            return false;
        }
        self.sending.push(now, packet, flow);
        self.dispatch(now);
        true
    }

    /// The next packet that came.
    pub fn poll_packet(&mut self) -> Option<Bytes> {
        self.packets.pop_front()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        let links = self.links.iter().filter_map(Link::poll_timeout);
        let others = [self.network.poll_timeout(), self.receiving.poll_timeout(), self.lingers_until];
        let shows = self.shows_at.iter().filter_map(|(at, _)| *at);
        links.chain(others.into_iter().flatten()).chain(shows).min()
    }

    /// Does what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        for line in 0..self.links.len() {
            if self.links[line].poll_timeout().is_some_and(|due| due <= now) {
                self.links[line].on_timeout(now, &mut self.random);
                self.settle(now, line);
            }
        }
        for line in 0..self.links.len() {
            let (at, times) = self.shows_at[line];
            if at.is_some_and(|due| due <= now) {
                self.ready[line] = true;
                self.sending.joined(line);
                let next = now + self.settle.times(2 << times);
                self.shows_at[line] = ((times < MOST_SHOWN).then_some(next), (times + 1).min(MOST_SHOWN + 1));
            }
        }
        self.network.on_timeout(now, &mut self.random);
        self.receiving.on_timeout(now);
        self.take_packets(now, None);
        if self.lingers_until.is_some_and(|until| until <= now) {
            self.lingers_until = None;
            self.peer = None;
            self.sending.clear();
        }
        self.show(now);
        self.dispatch(now);
    }

    /// Ends all lines, and tells the peer. They stay closed until they lose carrier.
    pub fn close(&mut self, now: Time) {
        for line in 0..self.links.len() {
            self.links[line].close(now, &mut self.random);
            self.settle(now, line);
        }
    }

    /// How a line stands.
    pub fn status(&self, line: usize) -> Option<LineStatus> {
        let link = self.links.get(line)?;
        Some(LineStatus {
            is_member: self.members[line],
            rate_bps: self.rates[line].bytes_per_s() * 8.0,
            round_trip: link.round_trip(),
            backlog_bytes: link.backlog_bytes(),
            frames: link.counts(),
        })
    }

    /// Counts of packets on the way out.
    pub fn send_counts(&self) -> SendCounts {
        self.sending.counts()
    }

    /// Counts of packets and fragments that came.
    pub fn receive_counts(&self) -> ReceiverCounts {
        self.receiving.counts()
    }

    /// How many times a peer has begun its bundle anew while lines of the old one seemed up.
    pub fn peer_restarts(&self) -> u64 {
        self.receiving.restarts()
    }

    /// Bytes that wait for a line.
    pub fn waiting_bytes(&self) -> usize {
        self.sending.waiting_bytes()
    }

    /// Addresses and MTU of the network; `None` while it cannot be used.
    pub fn properties(&self) -> Option<&Properties> {
        self.shown.as_ref()
    }

    /// Does what follows from what a line has done.
    fn settle(&mut self, now: Time, line: usize) {
        self.drain(now, line);
        self.show(now);
        self.dispatch(now);
    }

    fn drain(&mut self, now: Time, line: usize) {
        let mut lost = BTreeSet::new();
        while let Some(event) = self.links[line].poll_event() {
            match event {
                LinkEvent::Open => self.join(now, line),
                LinkEvent::Closed(cause) => {
                    self.repeat(&mut lost);
                    self.leave(now, line, cause);
                }
                LinkEvent::Packet(mp::PROTOCOL, information) if self.members[line] && self.is_cut => {
                    self.ready[line] = true;
                    self.receiving.on_frame(now, line, &information);
                    self.take_packets(now, Some(line));
                }
                LinkEvent::Packet(protocol, information) if self.members[line] => {
                    self.ready[line] = true;
                    self.on_packet(now, Some(line), protocol, &information);
                }
                LinkEvent::Packet(..) => {}
                // The peer has not attached the line yet.
                LinkEvent::ProtocolRejected(mp::PROTOCOL) if self.members[line] => {
                    self.ready[line] = false;
                    let times = self.shows_at[line].1;
                    self.shows_at[line] = (Some(now + self.settle.times(1 << times)), times);
                }
                LinkEvent::ProtocolRejected(protocol) if self.members[line] => {
                    self.network.rejected(now, protocol, &mut self.random);
                }
                LinkEvent::ProtocolRejected(_) => {}
                LinkEvent::Sent(number) => self.sending.sent(number),
                LinkEvent::Unsent(number) => {
                    lost.insert(number);
                }
            }
        }
        self.repeat(&mut lost);
    }

    /// Sends again what a line has taken with it.
    fn repeat(&mut self, lost: &mut BTreeSet<u64>) {
        let lost = std::mem::take(lost);
        if !lost.is_empty() {
            self.sending.repeat(&lost, &mut self.links);
        }
    }

    fn numbering(is_short: bool) -> Numbering {
        if is_short { Numbering::Short } else { Numbering::Long }
    }

    fn join(&mut self, now: Time, line: usize) {
        let peer = self.links[line].peer();
        let is_first = !self.members.contains(&true);
        let is_multilink = self.links[line].is_multilink();
        if is_first {
            self.begin(line, peer);
        } else if self.peer.as_ref() != Some(&peer) {
            return self.refuse(now, line, Cause::OtherPeer);
        } else if !self.is_cut || !is_multilink {
            return self.refuse(now, line, Cause::NoMultilink);
        } else if self.headers_differ(line) {
            return self.refuse(now, line, Cause::OtherHeader);
        }
        self.members[line] = true;
        self.shows_at[line] = (Some(now + self.settle), 0);
        self.lingers_until = None;
        self.sending.joined(line);
        self.receiving.set_up(now, line, true);
        self.events.push_back(Event::LineUp { line });
        self.network.joined(now, &mut self.random);
    }

    /// The first line of a bundle joins: it says how packets are cut.
    fn begin(&mut self, line: usize, peer: Peer) {
        if self.peer.as_ref().is_some_and(|before| *before != peer) {
            // The waiting packets are for another peer.
            self.sending.clear();
        }
        self.peer = Some(peer);
        let link = &self.links[line];
        self.is_cut = link.is_multilink();
        self.peer_mru = link.sends().mrru.filter(|_| self.is_cut).unwrap_or(link.sends().mru);
        self.sending.begin(self.is_cut.then(|| Self::numbering(link.sends().short_numbers)));
        if let Some(mrru) = link.receives().mrru.filter(|_| self.is_cut) {
            self.receiving.begin(Self::numbering(link.receives().short_numbers), mrru);
        }
    }

    fn headers_differ(&self, line: usize) -> bool {
        let Some(other) = self.members.iter().position(|&member| member) else { return false };
        let (ours, others) = (&self.links[line], &self.links[other]);
        let headers = |link: &Link| (link.sends().short_numbers, link.receives().short_numbers);
        headers(ours) != headers(others)
    }

    fn refuse(&mut self, now: Time, line: usize, cause: Cause) {
        self.links[line].fail(now, cause, &mut self.random);
    }

    fn leave(&mut self, now: Time, line: usize, cause: Cause) {
        self.events.push_back(Event::LineDown { line, cause });
        if !std::mem::replace(&mut self.members[line], false) {
            return;
        }
        (self.ready[line], self.shows_at[line]) = (false, (None, 0));
        self.receiving.set_up(now, line, false);
        self.take_packets(now, None);
        if !self.members.contains(&true) {
            self.network.ended(now, &mut self.random);
            if self.linger > Time::ZERO && self.shown.is_some() {
                self.lingers_until = Some(now + self.linger);
            } else {
                self.peer = None;
                self.sending.clear();
            }
        }
    }

    /// Takes packets that are complete.
    fn take_packets(&mut self, now: Time, line: Option<usize>) {
        while let Some(packet) = self.receiving.next_packet(now) {
            if let Some((protocol, information)) = split_protocol(&packet) {
                self.on_packet(now, line, protocol, &information);
            }
        }
    }

    fn on_packet(&mut self, now: Time, line: Option<usize>, protocol: u16, information: &Bytes) {
        match protocol {
            IPV4 | IPV6 if self.network.carries(protocol) => {
                if self.packets.len() < MOST_PACKETS {
                    self.packets.push_back(information.clone());
                } else {
                    self.overrun += 1;
                }
            }
            // Not negotiated yet: the peer is ahead of this end (RFC 1661, section 3.5).
            IPV4 | IPV6 => {}
            IPCP | IPV6CP if self.network.handle(now, protocol, information, &mut self.random) => {}
            // Echoes and the like of the whole bundle are not answered: each line has its own.
            super::lcp::PROTOCOL => {}
            _ => {
                if let Some(line) = line {
                    self.links[line].reject_protocol(now, protocol, information);
                }
            }
        }
    }

    /// Tells the driver what the network is like now, if that has changed.
    fn show(&mut self, now: Time) {
        while let Some((protocol, information)) = self.network.poll_transmit(now) {
            self.sending.push_control(protocol, information);
        }
        let (ipv4, ipv6) = (self.network.ipv4(), self.network.ipv6());
        self.sending.set_open(ipv4.is_some() || ipv6.is_some());
        if self.lingers_until.is_some() {
            return;
        }
        let disagreement = self.network.disagreement();
        if disagreement != self.disagreement {
            self.events.extend(disagreement.map(|(own, wanted)| Event::AddressesDisagree { own, wanted }));
            self.disagreement = disagreement;
        }
        let properties = (ipv4.is_some() || ipv6.is_some()).then_some(Properties { mtu: self.peer_mru, ipv4, ipv6 });
        // A line has come back, and IP is negotiated anew: the network is kept meanwhile.
        let is_kept = properties.is_none() && self.members.contains(&true) && self.linger > Time::ZERO;
        if properties != self.shown && !is_kept {
            self.events.push_back(properties.clone().map_or(Event::NetworkDown, Event::NetworkUp));
            self.shown = properties;
        }
    }

    fn dispatch(&mut self, now: Time) {
        self.sending.dispatch(now, &mut self.links, &self.ready, &self.rates);
    }

    /// Packets that came and were dropped, because the driver took none.
    pub fn overrun(&self) -> u64 {
        self.overrun
    }
}
