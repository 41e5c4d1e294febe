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

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It comes out of the bundle now.
    Delivered,
    /// It never will.
    Lost,
    /// It never will, as a call dropped.
    Cut,
}

/// What a bundle has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fragments given to lines.
    pub fragments: u64,
    /// Packets put back into the queue as a call dropped.
    pub requeued: u64,
    /// Fragments that arrived after one that was sent later.
    pub out_of_order: u64,
    /// Most bytes that waited in the queue.
    pub peak_waiting_bytes: u64,
}

/// One direction of a bundle of lines.
///
/// A driver puts packets in with [`send`](Multilink::send), calls [`handle_timeout`](Multilink::handle_timeout) at
/// [`poll_timeout`](Multilink::poll_timeout), and after both takes what came of packets with [`poll`](Multilink::poll). It serves
/// simulated and emulated bundles alike. Both directions of a hop are started with the same `hop` stream, so that calls drop both
/// ways at once.
#[derive(Debug)]
pub struct Multilink {
    lines: Vec<Line>,
    /// What either end knows of a line whose call dropped; in the order of `lines`.
    ends: Vec<Ends>,
    is_reverse: bool,
    calls: Option<Calls>,
    changes: Vec<Change>,
    availability: Availability,
    /// Where it has got to.
    now: Time,
    measured_since: Time,

    limit: QueueLimit,
    queue: VecDeque<u32>,
    queue_bytes: u64,
    packets: Vec<Packet>,
    free: Vec<u32>,
    /// Packets in the order in which they were numbered, until the receiver is past them.
    numbered: VecDeque<Numbered>,
    /// Packets that go again under new numbers.
    torn: Vec<u32>,
    /// Fragments that go again under theirs, in order.
    again: VecDeque<Fragment<Piece>>,

    scheduler: Scheduler,
    /// The line behind the one that was taken last.
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
    /// Behind the highest number that was delivered without numbers around it.
    highest: u32,
    outcomes: VecDeque<(u32, Outcome)>,
    counts: Counts,
}

/// A packet in the bundle, or a place for one.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    bytes: u32,
    /// How many packets have had this place before.
    life: u32,
    is_alive: bool,
    /// Fragments, or copies, on lines.
    on_lines: u32,
}

/// A packet that has numbers.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    place: u32,
    life: u32,
    /// Behind its last fragment, in the count of all.
    end: u64,
}

/// The sender of Linux, and the speeds of the serial ports by which it cuts.
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
    /// Begins a run. `hop` is the same stream for both directions of a hop; what else they draw is from `rng`.
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
            torn: Vec::new(),
            again: VecDeque::new(),
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

    /// The direction from the far end of the hop to the near one, which dials.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.is_reverse = true;
        self
    }

    /// A packet comes to the queue; its place, or none if there was no room for it. Calls are in order of time.
    pub fn send(&mut self, now: Time, bytes: u32) -> Option<u32> {
        self.handle_timeout(now);
        let place = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            (self.packets.len() - 1) as u32
        });
        let packet = &mut self.packets[place as usize];
        *packet = Packet { bytes, is_alive: true, on_lines: 0, ..*packet };
        let goes_now = !self.is_waiting() && self.dispatch_now(place);
        if !goes_now {
            if !self.has_room(bytes) {
                self.release(place);
                return None;
            }
            self.queue.push_back(place);
            self.queue_bytes += u64::from(bytes);
            self.counts.peak_waiting_bytes = self.counts.peak_waiting_bytes.max(self.queue_bytes);
        }
        Some(place)
    }

    /// Whether anything waits for lines.
    fn is_waiting(&self) -> bool {
        !(self.queue.is_empty() && self.again.is_empty())
    }

    fn has_room(&self, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.queue_bytes + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => ((self.queue.len() + self.again.len()) as u64) < limit,
        }
    }

    /// When [`handle_timeout`](Multilink::handle_timeout) is due: never while there is nothing in the bundle.
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

    /// Does all that is due by now. Early calls do nothing.
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

    /// What became of a packet, by its place: it is free from now on.
    pub fn poll(&mut self) -> Option<(u32, Outcome)> {
        let (place, outcome) = self.outcomes.pop_front()?;
        self.free.push(place);
        Some((place, outcome))
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let of_receiver = self.receiver.counts().out_of_order;
        Counts { out_of_order: self.counts.out_of_order + of_receiver, ..self.counts }
    }

    /// How long its lines were up since the run began to be measured.
    pub fn availability(&mut self, now: Time) -> Availability {
        self.handle_timeout(now);
        match &self.calls {
            None => Availability::always(self.lines.len(), self.measured_since, now),
            Some(calls) => self.availability.until(now, calls, self.lines.len()),
        }
    }

    /// The warm-up is over.
    pub fn begin_measurement(&mut self, now: Time) {
        self.handle_timeout(now);
        self.measured_since = now;
        self.availability.begin(now);
    }

    /// Everything that has arrived.
    fn receive(&mut self) {
        let known = self.again.len();
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

    /// Packets that are complete, and those that never will be.
    fn read(&mut self) {
        loop {
            self.pieces.clear();
            let is_packet = self.receiver.next_packet(self.now, &mut self.pieces);
            let complete = self.pieces.first().map(|piece| (piece.packet, piece.life));
            let settled = self.receiver.settled();
            while let Some(&Numbered { place, life, .. }) = self.numbered.front().filter(|front| front.end <= settled) {
                self.numbered.pop_front();
                let packet = self.packets[place as usize];
                if packet.is_alive && packet.life == life {
                    let is_complete = complete == Some((place, life));
                    self.end(place, if is_complete { Outcome::Delivered } else { Outcome::Lost });
                }
            }
            if !is_packet {
                return;
            }
        }
    }

    fn alive(&mut self, piece: Piece) -> Option<&mut Packet> {
        self.packets.get_mut(piece.packet as usize).filter(|packet| packet.is_alive && packet.life == piece.life)
    }

    /// A packet without a number is there.
    fn deliver(&mut self, piece: Piece) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Delivered);
        }
    }

    fn end(&mut self, place: u32, outcome: Outcome) {
        let packet = &mut self.packets[place as usize];
        packet.is_alive = false;
        packet.life = packet.life.wrapping_add(1);
        self.outcomes.push_back((place, outcome));
    }

    /// Nobody was told of a packet: its place is free.
    fn release(&mut self, place: u32) {
        self.packets[place as usize].is_alive = false;
        self.free.push(place);
    }

    /// A fragment did not arrive; its packet comes to that end unless it is sent again.
    fn lose_fragment(&mut self, sent: &Sent, outcome: Outcome) {
        let (is_copied, requeues) = (self.scheduler == Scheduler::Redundant, self.requeues);
        let keeps_numbers = self.keeps_numbers();
        let place = sent.fragment.payload.packet;
        let Some(packet) = self.alive(sent.fragment.payload) else { return };
        packet.on_lines -= 1;
        if is_copied && packet.on_lines > 0 {
            return; // another copy is under way
        }
        if !requeues {
            self.end(place, outcome);
        } else if keeps_numbers {
            self.again.push_back(sent.fragment);
        } else {
            packet.life = packet.life.wrapping_add(1);
            packet.on_lines = 0;
            self.torn.push(place);
        }
    }

    fn keeps_numbers(&self) -> bool {
        self.has_numbers && self.peer == Peer::Farlink
    }

    /// What lines have lost goes before what waits, in its order. `known` fragments went again before.
    fn put_back(&mut self, known: usize) {
        if self.again.len() > known {
            let (numbering, sent) = (self.framing.numbering, self.splitter.count());
            for fragment in self.again.range(known..) {
                self.queue_bytes += u64::from(fragment.payload.bytes);
            }
            let again = self.again.make_contiguous();
            again[known..].sort_by_key(|fragment| fragment.payload.packet);
            let packets = again[known..].chunk_by(|a, b| a.payload.packet == b.payload.packet).count();
            self.counts.requeued += packets as u64;
            again.sort_by_key(|fragment| numbering.count_near(sent, fragment.number));
        }
        let must_tell = self.has_numbers && !self.torn.is_empty();
        while let Some(place) = self.torn.pop() {
            self.queue.push_front(place);
            self.queue_bytes += u64::from(self.packets[place as usize].bytes);
            self.counts.requeued += 1;
        }
        if must_tell {
            self.send_empty(0..self.lines.len());
        }
    }

    /// Empty fragments, so that the receiver knows at once that lower numbers never come (RFC 1990, section 4.1).
    fn send_empty(&mut self, lines: std::ops::Range<usize>) {
        let on_line = self.framing.line_bytes(0, true);
        for line in self.lines[lines].iter_mut().filter(|line| line.is_up) {
            let mut nothing = Piece { packet: u32::MAX, ..Piece::default() };
            line.take(self.now, self.splitter.cut(&mut nothing, 0, true), on_line);
        }
    }
}
