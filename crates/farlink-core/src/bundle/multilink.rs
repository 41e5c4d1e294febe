//! A bundle in one direction: the queue in front of it, its lines, and the receiver behind them.

mod dispatch;
mod ends;

use std::collections::VecDeque;

use super::availability::Availability;
use super::calls::{Calls, Change};
use super::config::{BundleConfig, Cut, Header, OnDrop, Peer, ReceiverRule};
use super::fragment::{Fragment, Splitter};
use super::framing::Framing;
use super::line::{Line, Sent};
use super::line_config::LineConfig;
use super::linux;
use super::piece::Piece;
use super::reassembly::Reassembler;
use super::receiver::Receiver;
use super::schedule::Scheduler;
use super::shares;
use crate::link::QueueLimit;
use crate::rng::Rng;
use crate::time::Time;

use ends::Ends;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bundle delivers it now.
    Delivered,
    /// It will never be delivered.
    Lost,
    /// It will never be delivered, because a call dropped.
    Cut,
}

/// Counts of a bundle's packets and fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fragments given to lines.
    pub fragments: u64,
    /// Packets put back into the queue because a call dropped.
    pub requeued: u64,
    /// Fragments that arrived after one that was sent later.
    pub out_of_order: u64,
    /// Largest backlog of the queue, in bytes.
    pub peak_waiting_bytes: u64,
}

/// One direction of a bundle of lines.
///
/// A driver sends packets with [`send`](Multilink::send), calls [`handle_timeout`](Multilink::handle_timeout) at the time of
/// [`poll_timeout`](Multilink::poll_timeout), and after each of these calls takes the outcomes with [`poll`](Multilink::poll).
/// The same code serves simulated and emulated bundles. Both directions of a hop are started with the same `hop` stream, so that
/// a call drops in both directions at once.
#[derive(Debug)]
pub struct Multilink {
    lines: Vec<Line>,
    /// For each line, when each end notices that its call dropped.
    ends: Vec<Ends>,
    is_reverse: bool,
    calls: Option<Calls>,
    changes: Vec<Change>,
    availability: Availability,
    /// The time up to which all events were handled.
    now: Time,
    measured_since: Time,

    limit: QueueLimit,
    queue: VecDeque<u32>,
    queue_bytes: u64,
    packets: Vec<Packet>,
    free: Vec<u32>,
    /// Packets in the order in which they were numbered, until the receiver has delivered or given up all their fragments.
    numbered: VecDeque<Numbered>,
    /// Packets to be sent again under new numbers.
    to_renumber: Vec<u32>,
    /// Fragments to be sent again under their old numbers, in order.
    to_resend: VecDeque<Fragment<Piece>>,

    scheduler: Scheduler,
    /// The line after the one that was chosen last.
    turn: usize,
    cut: Cut,
    has_numbers: bool,
    requeues: bool,
    peer: Peer,
    least_fragment: u32,
    framing: Framing,
    splitter: Splitter,
    shares: Vec<u32>,
    as_shares: Vec<shares::Line>,
    linux: Option<ForLinux>,

    receiver: Receiver,
    pieces: Vec<Piece>,
    /// One more than the highest number that was delivered, for bundles that send no numbers.
    highest: u32,
    outcomes: VecDeque<(u32, Outcome)>,
    counts: Counts,
}

/// A slot for a packet in the bundle.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    bytes: u32,
    /// Generation of the slot: how many packets were in it before.
    generation: u32,
    is_alive: bool,
    /// Number of the packet's fragments, or copies, on lines.
    on_lines: u32,
}

/// A packet whose fragments were numbered.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    slot: u32,
    generation: u32,
    /// The count of all fragments up to and including its last one.
    end: u64,
}

/// The sender of Linux, and the speeds of the serial ports, which decide the lengths of fragments.
#[derive(Debug)]
struct ForLinux {
    sender: linux::Sender,
    speeds: Vec<u64>,
    fragments: Vec<(usize, u32)>,
}

impl ForLinux {
    fn new(config: &BundleConfig, lines: &[LineConfig]) -> Option<Self> {
        if config.scheduler != Scheduler::Linux {
            return None;
        }
        let mut sender = linux::Sender::new(config.framing().numbering.header_bytes());
        (0..lines.len()).for_each(|line| sender.attach(line));
        let speeds = lines.iter().map(|line| line.serial_bps.map_or(0, |speed| speed.get() as u64)).collect();
        Some(ForLinux { sender, speeds, fragments: Vec::new() })
    }
}

impl Multilink {
    /// Begins a run. The calls are drawn from `hop`, which must be the same stream for both directions of a hop; everything else
    /// is drawn from `rng`.
    pub fn new(config: &BundleConfig, lines: &[LineConfig], limit: QueueLimit, mut rng: Rng, hop: &Rng) -> Self {
        let calls = config.calls.as_ref().map(|calls| calls.start(lines, hop));
        let framing = config.framing();
        let line_packets = config.line_packets.whole() as usize;
        let most_bytes = config.mrru_bytes.whole() as usize;
        let most_held = config.reorder_fragments.whole() as usize;
        let requeues = config.what_on_drop() == OnDrop::Requeue;
        let receiver = match (config.receiver_rule(), config.patience(lines)) {
            (ReceiverRule::Linux, _) => {
                Receiver::Linux(linux::Receiver::new(framing.numbering, lines.len(), most_bytes, most_held))
            }
            (ReceiverRule::Rfc1990, patience) => {
                let receiver = Reassembler::new(framing.numbering, lines.len(), most_bytes, most_held);
                let receiver = match patience {
                    None => receiver,
                    Some(patience) => receiver.with_patience(patience),
                };
                let is_resent = requeues && config.peer == Peer::Farlink;
                Receiver::Rfc1990(if is_resent { receiver.with_resending() } else { receiver })
            }
        };
        let start = |line: &LineConfig| match config.scheduler {
            Scheduler::Linux => Line::new(line, line_packets, rng.detach()).with_tty(config.tty_bytes().whole()),
            _ => Line::new(line, line_packets, rng.detach()),
        };
        let mut bundle = Multilink {
            lines: lines.iter().map(start).collect(),
            ends: vec![Ends::UP; lines.len()],
            is_reverse: false,
            calls,
            changes: Vec::new(),
            availability: Availability::default(),
            now: Time::ZERO,
            measured_since: Time::ZERO,
            limit,
            queue: VecDeque::new(),
            queue_bytes: 0,
            packets: Vec::new(),
            free: Vec::new(),
            numbered: VecDeque::new(),
            to_renumber: Vec::new(),
            to_resend: VecDeque::new(),
            scheduler: config.scheduler,
            turn: 0,
            cut: config.packets,
            has_numbers: config.header != Header::None,
            requeues,
            peer: config.peer,
            least_fragment: u32::try_from(config.min_fragment_bytes.whole()).unwrap_or(u32::MAX),
            framing,
            splitter: Splitter::new(framing.numbering),
            shares: Vec::new(),
            as_shares: Vec::new(),
            linux: ForLinux::new(config, lines),
            receiver,
            pieces: Vec::new(),
            highest: 0,
            outcomes: VecDeque::new(),
            counts: Counts::default(),
        };
        if let Some(calls) = &bundle.calls {
            for (index, line) in bundle.lines.iter_mut().enumerate().filter(|(index, _)| !calls.is_up(*index)) {
                line.is_up = false;
                bundle.ends[index] = Ends::DOWN;
                bundle.receiver.set_up(Time::ZERO, index, false);
                bundle.linux.iter_mut().for_each(|linux| linux.sender.detach(index));
            }
        }
        bundle
    }

    /// The same bundle in the direction from the far end of the hop to the near end, which dials.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.is_reverse = true;
        self
    }

    /// Sends a packet. Returns its slot, or `None` if the queue had no room for it. `now` must not decrease from call to call.
    pub fn send(&mut self, now: Time, bytes: u32) -> Option<u32> {
        self.handle_timeout(now);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            (self.packets.len() - 1) as u32
        });
        let packet = &mut self.packets[slot as usize];
        *packet = Packet { bytes, is_alive: true, on_lines: 0, ..*packet };
        let is_sent = !self.is_waiting() && self.dispatch_now(slot);
        if !is_sent {
            if !self.has_room(bytes) {
                self.release(slot);
                return None;
            }
            self.queue.push_back(slot);
            self.queue_bytes += u64::from(bytes);
            self.counts.peak_waiting_bytes = self.counts.peak_waiting_bytes.max(self.queue_bytes);
        }
        Some(slot)
    }

    /// Whether any packet or fragment waits for a line.
    fn is_waiting(&self) -> bool {
        !(self.queue.is_empty() && self.to_resend.is_empty())
    }

    fn has_room(&self, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.queue_bytes + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => ((self.queue.len() + self.to_resend.len()) as u64) < limit,
        }
    }

    /// When [`handle_timeout`](Multilink::handle_timeout) is due; never while the bundle is empty.
    pub fn poll_timeout(&self) -> Time {
        if !self.outcomes.is_empty() {
            return self.now;
        }
        let is_idle = !self.is_waiting() && self.receiver.held() == 0 && self.lines.iter().all(Line::is_empty);
        if is_idle { Time::NEVER } else { self.next_event() }
    }

    fn next_event(&self) -> Time {
        let mut next = self.lines.iter().map(Line::next_arrival).min().unwrap_or(Time::NEVER);
        if self.linux.is_some() {
            next = self.lines.iter().map(Line::next_wake).fold(next, Time::min);
        } else if self.is_waiting() {
            next = self.lines.iter().map(|line| line.next_departure(self.now)).fold(next, Time::min);
        }
        if self.calls.is_some() {
            next = self.ends.iter().flat_map(|ends| ends.noticed).fold(next, Time::min);
        }
        next = next.min(self.receiver.deadline().unwrap_or(Time::NEVER));
        next.min(self.calls.as_ref().map_or(Time::NEVER, Calls::next_change))
    }

    /// Handles all events that are due at `now`. Calls before the next event have no effect.
    pub fn handle_timeout(&mut self, now: Time) {
        loop {
            let next = self.next_event();
            if next > now || next == Time::NEVER {
                break;
            }
            self.now = self.now.max(next);
            self.receive();
            self.follow_calls();
            self.notice();
            self.receiver.on_timeout(self.now);
            self.read();
            if self.linux.is_some() {
                let now = self.now;
                self.lines.iter_mut().for_each(|line| line.wake(now));
            }
            self.dispatch();
        }
        self.now = self.now.max(now);
    }

    /// The next outcome: the slot of a packet and what happened to it. The slot is free afterwards.
    pub fn poll(&mut self) -> Option<(u32, Outcome)> {
        let (slot, outcome) = self.outcomes.pop_front()?;
        self.free.push(slot);
        Some((slot, outcome))
    }

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        let of_receiver = self.receiver.counts().out_of_order;
        Counts { out_of_order: self.counts.out_of_order + of_receiver, ..self.counts }
    }

    /// How long the lines were up since the measurement began.
    pub fn availability(&mut self, now: Time) -> Availability {
        self.handle_timeout(now);
        match &self.calls {
            None => Availability::always(self.lines.len(), self.measured_since, now),
            Some(calls) => self.availability.until(now, calls, self.lines.len()),
        }
    }

    /// Begins the measurement, at the end of the warm-up.
    pub fn begin_measurement(&mut self, now: Time) {
        self.handle_timeout(now);
        self.measured_since = now;
        self.availability.begin(now);
    }

    /// Hands all fragments that have arrived to the receiver.
    fn receive(&mut self) {
        let known = self.to_resend.len();
        for index in 0..self.lines.len() {
            while let Some(sent) = self.lines[index].pop_arrived(self.now) {
                if sent.is_lost {
                    self.lose_fragment(&sent, Outcome::Lost);
                    continue;
                }
                let piece = sent.fragment.payload;
                if let Some(packet) = self.alive(piece) {
                    packet.on_lines -= 1;
                }
                if self.has_numbers {
                    self.receiver.on_fragment(self.now, index, sent.fragment);
                    self.read();
                } else {
                    self.counts.out_of_order += u64::from(sent.fragment.number < self.highest);
                    self.highest = self.highest.max(sent.fragment.number);
                    self.deliver(piece);
                }
            }
        }
        self.put_back(known);
    }

    /// Takes complete packets from the receiver and ends those that will never be complete.
    fn read(&mut self) {
        loop {
            self.pieces.clear();
            let is_packet = self.receiver.next_packet(self.now, &mut self.pieces);
            let complete = self.pieces.first().map(|piece| (piece.packet, piece.generation));
            let settled = self.receiver.settled();
            while let Some(&Numbered { slot, generation, .. }) =
                self.numbered.front().filter(|front| front.end <= settled)
            {
                self.numbered.pop_front();
                let packet = self.packets[slot as usize];
                if packet.is_alive && packet.generation == generation {
                    let is_complete = complete == Some((slot, generation));
                    self.end(slot, if is_complete { Outcome::Delivered } else { Outcome::Lost });
                }
            }
            if !is_packet {
                return;
            }
        }
    }

    fn alive(&mut self, piece: Piece) -> Option<&mut Packet> {
        self.packets
            .get_mut(piece.packet as usize)
            .filter(|packet| packet.is_alive && packet.generation == piece.generation)
    }

    /// Delivers a packet of a bundle without sequence numbers.
    fn deliver(&mut self, piece: Piece) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Delivered);
        }
    }

    fn end(&mut self, slot: u32, outcome: Outcome) {
        let packet = &mut self.packets[slot as usize];
        packet.is_alive = false;
        packet.generation = packet.generation.wrapping_add(1);
        self.outcomes.push_back((slot, outcome));
    }

    /// Frees the slot of a packet that the queue had no room for.
    fn release(&mut self, slot: u32) {
        self.packets[slot as usize].is_alive = false;
        self.free.push(slot);
    }

    /// Handles the loss of a fragment. Unless it is sent again, its packet ends with `outcome`.
    fn lose_fragment(&mut self, sent: &Sent, outcome: Outcome) {
        let (is_copied, requeues) = (self.scheduler == Scheduler::Redundant, self.requeues);
        let keeps_numbers = self.keeps_numbers();
        let slot = sent.fragment.payload.packet;
        let Some(packet) = self.alive(sent.fragment.payload) else { return };
        packet.on_lines -= 1;
        if is_copied && packet.on_lines > 0 {
            return; // another copy is in flight
        }
        if !requeues {
            self.end(slot, outcome);
        } else if keeps_numbers {
            self.to_resend.push_back(sent.fragment);
        } else {
            packet.generation = packet.generation.wrapping_add(1);
            packet.on_lines = 0;
            self.to_renumber.push(slot);
        }
    }

    fn keeps_numbers(&self) -> bool {
        self.has_numbers && self.peer == Peer::Farlink
    }

    /// Puts lost packets and fragments in front of the queue, in their order. `known` fragments were there to be sent again
    /// before.
    fn put_back(&mut self, known: usize) {
        if self.to_resend.len() > known {
            let (numbering, sent) = (self.framing.numbering, self.splitter.count());
            for fragment in self.to_resend.range(known..) {
                self.queue_bytes += u64::from(fragment.payload.bytes);
            }
            let resent = self.to_resend.make_contiguous();
            resent[known..].sort_by_key(|fragment| fragment.payload.packet);
            let packets = resent[known..].chunk_by(|a, b| a.payload.packet == b.payload.packet).count();
            self.counts.requeued += packets as u64;
            resent.sort_by_key(|fragment| numbering.count_near(sent, fragment.number));
        }
        let must_tell = self.has_numbers && !self.to_renumber.is_empty();
        while let Some(slot) = self.to_renumber.pop() {
            self.queue.push_front(slot);
            self.queue_bytes += u64::from(self.packets[slot as usize].bytes);
            self.counts.requeued += 1;
        }
        if must_tell {
            self.send_empty(0..self.lines.len());
        }
    }

    /// Sends empty fragments, so that the receiver learns at once that lower numbers will never arrive (RFC 1990, section 4.1).
    fn send_empty(&mut self, lines: std::ops::Range<usize>) {
        let on_line = self.framing.line_bytes(0, true);
        for line in self.lines[lines].iter_mut().filter(|line| line.is_up) {
            let mut nothing = Piece { packet: u32::MAX, ..Piece::default() };
            line.take(self.now, self.splitter.cut(&mut nothing, 0, true), on_line);
        }
    }
}
