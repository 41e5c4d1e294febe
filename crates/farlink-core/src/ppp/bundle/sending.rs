//! The way out: packets are cut for the lines that have room, and sent again if a line took them with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::super::link::Link;
use super::rate::Rate;
use crate::bundle::{Fragment, Numbering, Splitter, shares};
use crate::time::Time;
use crate::wire::mp;

/// Of the bundle's own fragments, which belong to no packet.
const FILLER: u64 = u64::MAX;

/// A line takes a fragment while another is being sent: one waits, so that the line never idles, and no more.
const MOST_ON_LINE: usize = 2;

/// A packet with its protocol.
#[derive(Clone, Debug)]
struct Packet {
    /// In the order in which packets came.
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
    /// Packets that found the queue full or were longer than the peer takes.
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
    queue: VecDeque<Packet>,
    queue_bytes: usize,
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
            queue: VecDeque::new(),
            queue_bytes: 0,
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
        self.counts
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.queue_bytes
    }

    /// Takes a packet of the network; `false` if the queue is full.
    pub(super) fn push(&mut self, protocol: u16, information: Bytes) -> bool {
        if self.queue_bytes + information.len() > self.limit {
            self.counts.dropped += 1;
            return false;
        }
        self.counts.packets += 1;
        self.queue_bytes += information.len();
        let order = self.order();
        self.queue.push_back(Packet { order, protocol, information, is_counted: true });
        true
    }

    /// A packet that is longer than the peer takes.
    pub(super) fn refuse(&mut self) {
        self.counts.dropped += 1;
    }

    /// Takes a packet of the bundle itself, which goes first.
    pub(super) fn push_control(&mut self, protocol: u16, information: Bytes) {
        const MOST: usize = 16;
        if self.queue.iter().filter(|packet| !packet.is_counted).count() < MOST {
            self.queue.push_front(Packet { order: 0, protocol, information, is_counted: false });
        }
    }

    fn order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    /// The bundle begins, without numbers if packets are not cut. What an earlier one had to say itself is dropped. Numbers go on where the last one ended: a peer that noticed no end waits for them, and another passes the gap.
    /// Beyond half of a round the gap would look like old numbers, and they begin at 0.
    pub(super) fn begin(&mut self, numbering: Option<Numbering>) {
        self.queue.retain(|packet| packet.is_counted);
        if let Some(flying) = self.current.take().and_then(|(number, ..)| self.flying.remove(&number))
            && flying.packet.is_counted
        {
            self.queue_bytes += flying.packet.information.len();
            self.queue.push_front(flying.packet);
        }
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
        self.queue.retain(|packet| !packet.is_counted);
        self.queue_bytes = 0;
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
        for packet in again.into_iter().rev() {
            self.queue_bytes += if packet.is_counted { packet.information.len() } else { 0 };
            self.queue.push_front(packet);
        }
        self.owed.iter_mut().for_each(|owed| *owed = true);
    }

    /// Gives packets to lines that have room; `members` are those that the peer takes packets from. Without fragments there is one.
    pub(super) fn dispatch(&mut self, now: Time, links: &mut [Link], members: &[bool], rates: &[Rate]) {
        let is_cut = self.is_cut;
        while self.next_packet(links, members) {
            let free: Vec<usize> =
                (0..links.len()).filter(|&line| members[line] && links[line].data_frames() < MOST_ON_LINE).collect();
            if free.is_empty() {
                return;
            }
            if is_cut { self.cut(now, links, &free, rates) } else { self.whole(now, &mut links[free[0]]) }
        }
        if is_cut {
            self.fill(now, links, members);
        }
    }

    /// Whether there is a packet to be cut: the rest of the last one, or the next.
    fn next_packet(&mut self, links: &[Link], members: &[bool]) -> bool {
        if self.current.is_some() {
            return true;
        }
        let Some(line) = members.iter().position(|&member| member) else { return false };
        let is_carried = self.is_open || self.queue.front().is_some_and(|packet| !packet.is_counted);
        let Some(packet) = is_carried.then(|| self.queue.pop_front()).flatten() else { return false };
        self.queue_bytes -= if packet.is_counted { packet.information.len() } else { 0 };
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

    fn whole(&mut self, now: Time, link: &mut Link) {
        let Some((number, content, _)) = self.current.take() else { return };
        let Some(flying) = self.flying.get_mut(&number) else { return };
        (flying.on_lines, flying.is_cut) = (1, true);
        self.counts.fragments += 1;
        link.send(now, flying.packet.protocol, &content, number);
    }

    /// Cuts the current packet for these lines, such that its fragments arrive together and none holds its line for too long.
    fn cut(&mut self, now: Time, links: &mut [Link], free: &[usize], rates: &[Rate]) {
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
        for (&line, &share) in free.iter().zip(&all).filter(|(_, share)| **share > 0) {
            // Two fragments may be in front of a small packet: one is being sent, one waits.
            let in_time = rates[line].bytes_per_s() * self.latency.as_secs_f64() / 2.0;
            let most = (in_time as u32).saturating_sub(overhead).max(self.least);
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
