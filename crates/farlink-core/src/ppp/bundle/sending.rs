//! The way out: flows take turns, packets are cut for the lines that have room, and sent again if a line took them with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::super::ipcp::{IPV4, IPV6};
use super::super::link::Link;
use super::rate::Rate;
use crate::bundle::{Fragment, Numbering, Splitter, shares};
use crate::paths::queue::{FlowQueue, Pressure};
use crate::time::Time;
use crate::wire::mp;

/// Of the bundle's own fragments, which belong to no packet.
const FILLER: u64 = u64::MAX;

/// At most one fragment waits while another is being sent.
const MOST_ON_LINE: usize = 2;
/// A line takes the next fragment when what it has is sent in this time, so that it never idles. More would only wait there, in front of
/// packets that come later.
const AHEAD: Time = Time::from_millis(100);
/// Share of the latency that a fragment may take on its line however long packets are: shorter ones would be headers mostly.
const LEAST_SHARE: f64 = 0.25;
/// A flow's turn: a packet of Ethernet (RFC 8290, section 5.2).
const QUANTUM: f64 = 1514.0;
/// Bytes that CoDel always lets pass, and the least duration of its interval (RFC 8289, section 4).
const LEAST_TARGET: Time = Time::from_millis(5);
const LEAST_INTERVAL: Time = Time::from_millis(100);
/// Bytes that a flow without a backlog may send first, at least.
const LEAST_QUANTUM: f64 = 300.0;

/// A packet with its protocol.
#[derive(Clone, Debug)]
struct Packet {
    /// In the order in which packets were begun.
    order: u64,
    protocol: u16,
    information: Bytes,
    is_counted: bool,
}

/// A packet of which fragments are on lines.
#[derive(Clone, Debug)]
struct Flying {
    packet: Packet,
    /// Fragments that have not left their port.
    on_lines: u32,
    is_cut: bool,
}

/// Counts of packets on the way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounts {
    /// Packets taken.
    pub packets: u64,
    /// Packets that the queue dropped, or that were longer than the peer takes.
    pub dropped: u64,
    /// Fragments given to lines.
    pub fragments: u64,
    /// Packets sent again because a line was lost with a part of them.
    pub repeated: u64,
    /// Fragments without content, which tell the peer what no longer comes.
    pub fillers: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// Packets of the bundle itself, and those that are sent again: they go before all others.
    first: VecDeque<Packet>,
    queue: FlowQueue<Bytes>,
    limit: usize,
    /// The packet that is being cut: its number, and what is left of it.
    current: Option<(u64, Bytes, bool)>,
    flying: BTreeMap<u64, Flying>,
    next_number: u64,
    next_order: u64,
    splitter: Splitter,
    numbering: Numbering,
    /// Whether packets are cut.
    is_cut: bool,
    /// Whether packets of the network are carried now.
    is_open: bool,
    /// Lines over which the peer has to see a number before it can tell what is lost.
    owed: Vec<bool>,
    latency: Time,
    least: u32,
    counts: SendCounts,
}

impl Sending {
    pub(super) fn new(lines: usize, limit: usize, latency: Time, least: u16) -> Self {
        Sending {
            first: VecDeque::new(),
            queue: FlowQueue::new(),
            limit,
            current: None,
            flying: BTreeMap::new(),
            next_number: 0,
            next_order: 0,
            splitter: Splitter::default(),
            numbering: Numbering::Long,
            is_cut: false,
            is_open: false,
            owed: vec![false; lines],
            latency,
            least: least.max(1).into(),
            counts: SendCounts::default(),
        }
    }

    pub(super) fn counts(&self) -> SendCounts {
        SendCounts { dropped: self.counts.dropped + self.queue.dropped(), ..self.counts }
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.first.iter().map(|packet| packet.information.len()).sum::<usize>() + self.queue.bytes()
    }

    /// Takes a packet of IP. If the queue is too long then, the longest flow loses its oldest packet (RFC 8290, section 4.1.2).
    pub(super) fn push(&mut self, now: Time, packet: Bytes, flow: u64) {
        self.counts.packets += 1;
        self.queue.push(now, packet, flow);
        while self.queue.bytes() > self.limit && self.queue.drop_from_longest() {}
    }

    /// A packet that is longer than the peer takes.
    pub(super) fn refuse(&mut self) {
        self.counts.dropped += 1;
    }

    /// Takes a packet of the bundle itself, which goes first.
    pub(super) fn push_control(&mut self, protocol: u16, information: Bytes) {
        const MOST: usize = 16;
        if self.first.iter().filter(|packet| !packet.is_counted).count() < MOST {
            self.first.push_front(Packet { order: 0, protocol, information, is_counted: false });
        }
    }

    /// The bundle begins, without numbers if packets are not cut. What an earlier one had to say itself is dropped. Numbers go on where the last one ended: a peer that noticed no end waits for them, and another passes the gap.
    /// Beyond half of a round the gap would look like old numbers, and they begin at 0.
    pub(super) fn begin(&mut self, numbering: Option<Numbering>) {
        self.first.retain(|packet| packet.is_counted);
        let begun = self.current.take().and_then(|(number, ..)| self.flying.remove(&number));
        self.first.extend(begun.map(|flying| flying.packet).filter(|packet| packet.is_counted));
        self.is_cut = numbering.is_some();
        let Some(numbering) = numbering else { return };
        if numbering != self.numbering || self.splitter.count() % numbering.round() >= numbering.round() / 2 {
            self.splitter = Splitter::new(numbering);
            self.numbering = numbering;
        }
    }

    /// A line joined.
    pub(super) fn joined(&mut self, line: usize) {
        self.owed[line] = true;
    }

    /// No packet of the network waits any longer.
    pub(super) fn clear(&mut self) {
        self.first.retain(|packet| !packet.is_counted);
        self.counts.dropped += self.queue.dropped();
        self.queue = FlowQueue::new();
        if let Some((number, ..)) = self.current.take() {
            self.flying.remove(&number);
        }
    }

    /// Whether packets of the network are carried now, or wait.
    pub(super) fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    /// A fragment of a packet has left its port.
    pub(super) fn sent(&mut self, number: u64) {
        if let Some(flying) = self.flying.get_mut(&number) {
            flying.on_lines -= 1;
            if flying.is_cut && flying.on_lines == 0 {
                self.flying.remove(&number);
            }
        }
    }

    /// A line is gone with parts of these packets: they are sent again, before all others and in their order. Their numbers are given
    /// up: RFC 1990, section 4.1, wants them to rise on each line.
    pub(super) fn repeat(&mut self, lost: &BTreeSet<u64>, links: &mut [Link]) {
        let mut again: Vec<Packet> = Vec::new();
        for number in lost {
            if let Some(flying) = self.flying.remove(number) {
                again.push(flying.packet);
            }
            if self.current.as_ref().is_some_and(|(current, ..)| current == number) {
                self.current = None;
            }
        }
        for link in links {
            link.withdraw(|number| lost.contains(&number));
        }
        self.counts.repeated += again.iter().filter(|packet| packet.is_counted).count() as u64;
        again.sort_by_key(|packet| packet.order);
        again.into_iter().rev().for_each(|packet| self.first.push_front(packet));
        self.owed.iter_mut().for_each(|owed| *owed = true);
    }

    /// Gives packets to lines that have room; `members` are those that the peer takes packets from. Without fragments there is one.
    pub(super) fn dispatch(&mut self, now: Time, links: &mut [Link], members: &[bool], rates: &[Rate]) {
        let is_cut = self.is_cut;
        let total: f64 = (0..links.len()).filter(|&line| members[line]).map(|line| rates[line].bytes_per_s()).sum();
        loop {
            let has_room = |&line: &usize| {
                let (link, ahead) = (&links[line], rates[line].bytes_per_s() * AHEAD.as_secs_f64());
                let is_short = link.backlog_bytes() as f64 <= ahead;
                members[line] && (link.data_frames() == 0 || (is_short && link.data_frames() < MOST_ON_LINE))
            };
            let free: Vec<usize> = (0..links.len()).filter(has_room).collect();
            // A packet is taken from the queue when a line has room for it, and no sooner: others may come before it until then.
            if free.is_empty() || !self.next_packet(now, links, members, total) {
                break;
            }
            if is_cut { self.cut(now, links, &free, rates, total) } else { self.whole(now, &mut links[free[0]]) }
        }
        if is_cut {
            self.fill(now, links, members);
        }
    }

    /// Whether there is a packet to be cut: the rest of the last one, or the next.
    fn next_packet(&mut self, now: Time, links: &[Link], members: &[bool], total: f64) -> bool {
        if self.current.is_some() {
            return true;
        }
        let Some(line) = members.iter().position(|&member| member) else { return false };
        let is_carried = self.is_open || self.first.front().is_some_and(|packet| !packet.is_counted);
        let slowest = links.iter().filter_map(Link::round_trip).max().unwrap_or(Time::ZERO);
        let pressure = self.pressure(total, slowest);
        let next = |sending: &mut Self| sending.first.pop_front().or_else(|| sending.pop(now, pressure));
        let Some(packet) = is_carried.then(|| next(self)).flatten() else { return false };
        let content = if self.is_cut {
            let field = packet.protocol.to_be_bytes();
            let field = if links[line].sends().pfc && packet.protocol < 0x100 { &field[1..] } else { &field[..] };
            [field, &packet.information].concat().into()
        } else {
            packet.information.clone()
        };
        self.next_number += 1;
        self.flying.insert(self.next_number, Flying { packet, on_lines: 0, is_cut: false });
        self.current = Some((self.next_number, content, true));
        true
    }

    /// The next packet of the flow whose turn it is.
    fn pop(&mut self, now: Time, pressure: Pressure) -> Option<Packet> {
        let information = self.queue.pop(now, pressure)?.data;
        self.next_order += 1;
        let protocol = if information.first().is_some_and(|byte| byte >> 4 == 6) { IPV6 } else { IPV4 };
        Some(Packet { order: self.next_order, protocol, information, is_counted: true })
    }

    /// CoDel's target follows the rate of all lines together: one packet may take longer than its usual 5 ms (RFC 8289, section 4.4).
    fn pressure(&self, bytes_per_s: f64, round_trip: Time) -> Pressure {
        let packet_time = Time::from_secs_f64(QUANTUM / bytes_per_s.max(1.0));
        Pressure {
            target: LEAST_TARGET.max(packet_time.times(2)),
            interval: LEAST_INTERVAL.max(round_trip).max(packet_time.times(4)),
            quantum: QUANTUM as i64,
            first_quantum: (bytes_per_s * self.latency.as_secs_f64()).clamp(LEAST_QUANTUM, QUANTUM) as i64,
        }
    }

    fn whole(&mut self, now: Time, link: &mut Link) {
        let Some((number, content, _)) = self.current.take() else { return };
        let Some(flying) = self.flying.get_mut(&number) else { return };
        (flying.on_lines, flying.is_cut) = (1, true);
        self.counts.fragments += 1;
        link.send(now, flying.packet.protocol, &content, number);
    }

    /// Cuts the current packet for these lines, such that its fragments arrive together and none holds its line for too long: a small
    /// packet that comes now waits for the rest of this one, at the rate of all lines, and for the fragment that is sent last.
    fn cut(&mut self, now: Time, links: &mut [Link], free: &[usize], rates: &[Rate], total: f64) {
        let Some((number, mut rest, mut is_beginning)) = self.current.take() else { return };
        let header = self.numbering.header_bytes();
        let as_shares: Vec<shares::Line> = free
            .iter()
            .map(|&line| {
                let bytes_per_s = rates[line].bytes_per_s();
                let backlog = Time::from_secs_f64(links[line].backlog_bytes() as f64 / bytes_per_s);
                let delay = links[line].round_trip().map_or(Time::ZERO, |both| Time::from_ps(both.as_ps() / 2));
                shares::Line { ready: now + backlog + delay, bytes_per_s }
            })
            .collect();
        let overhead = header + links[free[0]].overhead_bytes() as u32;
        let bytes = rest.len() as u32;
        let mut all = Vec::new();
        shares::arriving_together(bytes, overhead, self.least.min(bytes), &as_shares, &mut all);
        let length = self.flying.get(&number).map_or(0, |flying| flying.packet.information.len());
        let latency = self.latency.as_secs_f64();
        let span = (latency - length as f64 / total - AHEAD.as_secs_f64()).max(latency * LEAST_SHARE);
        for (&line, &share) in free.iter().zip(&all).filter(|(_, share)| **share > 0) {
            let most = ((rates[line].bytes_per_s() * span) as u32).saturating_sub(overhead).max(self.least);
            let mru = u32::from(links[line].sends().mru).saturating_sub(header).max(1);
            let fragment = self.splitter.cut(&mut rest, share.min(most).min(mru) as usize, is_beginning);
            is_beginning = false;
            self.give(now, &mut links[line], line, &fragment, number);
            if rest.is_empty() {
                break;
            }
        }
        let Some(flying) = self.flying.get_mut(&number) else { return };
        if rest.is_empty() {
            flying.is_cut = true;
        } else {
            self.current = Some((number, rest, is_beginning));
        }
    }

    fn give(&mut self, now: Time, link: &mut Link, line: usize, fragment: &Fragment<Bytes>, number: u64) {
        let mut bytes = Vec::with_capacity(fragment.payload.len() + 4);
        mp::encode(fragment, self.numbering, &mut bytes);
        link.send(now, mp::PROTOCOL, &bytes, number);
        self.owed[line] = false;
        self.counts.fragments += 1;
        if let Some(flying) = self.flying.get_mut(&number) {
            flying.on_lines += 1;
        }
    }

    /// Sends a number over each line that has to show one and has nothing else to send. The fragment is the end of no packet, so that the
    /// peer drops it; it has a byte, because Linux takes none without (`ppp_receive_mp_frame`).
    fn fill(&mut self, now: Time, links: &mut [Link], members: &[bool]) {
        for line in 0..links.len() {
            if self.owed[line] && members[line] && links[line].data_frames() == 0 {
                let fragment = self.splitter.cut(&mut Bytes::from_static(&[0]), 1, false);
                self.counts.fillers += 1;
                self.give(now, &mut links[line], line, &fragment, FILLER);
            }
        }
    }
}
