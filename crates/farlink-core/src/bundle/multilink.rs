//! A bundle in one direction: the queue in front of it, its lines, and the receiver behind them.

use std::collections::VecDeque;

use super::availability::Availability;
use super::calls::{CallState, Calls, Change};
use super::config::{BundleConfig, Cut, Header, LineConfig, OnDrop};
use super::fragment::Splitter;
use super::framing::Framing;
use super::line::{Line, Sent};
use super::piece::Piece;
use super::reassembly::Reassembler;
use super::schedule::Scheduler;
use super::shares;
use crate::link::QueueLimit;
use crate::rng::Rng;
use crate::time::Time;

/// Fragments that the receiver lets wait: as in Linux.
const MOST_HELD: usize = 128;
/// How much a line must have been seen before its own drops say more than a guess.
const PRIOR: Time = Time::from_secs(3000);

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It comes out of the bundle now.
    Delivered,
    /// It never will.
    Lost,
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
    /// Packets in the order in which they were numbered, until one behind them is delivered.
    numbered: VecDeque<(u32, u32)>,
    torn: Vec<u32>,

    scheduler: Scheduler,
    /// The line behind the one that was taken last.
    turn: usize,
    cut: Cut,
    has_numbers: bool,
    requeues: bool,
    least_fragment: u32,
    framing: Framing,
    splitter: Splitter,
    shares: Vec<u32>,
    as_shares: Vec<shares::Line>,

    receiver: Reassembler<Piece>,
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

impl Multilink {
    /// Begins a run. `hop` is the same stream for both directions of a hop; what else they draw is from `rng`.
    pub fn new(config: &BundleConfig, lines: &[LineConfig], limit: QueueLimit, mut rng: Rng, hop: &Rng) -> Self {
        let calls = config.calls.as_ref().map(|calls| calls.start(lines.len(), hop));
        let framing = config.framing();
        let most_bytes = config.mrru_bytes.whole() as usize;
        let receiver = Reassembler::new(framing.numbering, lines.len(), most_bytes, MOST_HELD);
        let mut bundle = Multilink {
            lines: lines.iter().map(|line| Line::new(config, line, rng.detach())).collect(),
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
            scheduler: config.scheduler,
            turn: 0,
            cut: config.packets,
            has_numbers: config.header != Header::None,
            requeues: config.on_drop == OnDrop::Requeue,
            least_fragment: u32::try_from(config.min_fragment_bytes.whole()).unwrap_or(u32::MAX),
            framing,
            splitter: Splitter::new(framing.numbering),
            shares: Vec::new(),
            as_shares: Vec::new(),
            receiver: match config.reorder_timeout_s {
                None => receiver,
                Some(patience) => receiver.with_patience(patience.time()),
            },
            pieces: Vec::new(),
            highest: 0,
            outcomes: VecDeque::new(),
            counts: Counts::default(),
        };
        if let Some(calls) = &bundle.calls {
            for (index, line) in bundle.lines.iter_mut().enumerate().filter(|(index, _)| !calls.is_up(*index)) {
                line.is_up = false;
                bundle.receiver.set_up(Time::ZERO, index, false);
            }
        }
        bundle
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
        let goes_now = self.queue.is_empty() && self.dispatch_now(place);
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

    fn has_room(&self, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.queue_bytes + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => (self.queue.len() as u64) < limit,
        }
    }

    /// When [`handle_timeout`](Multilink::handle_timeout) is due: never while there is nothing in the bundle.
    pub fn poll_timeout(&self) -> Time {
        if !self.outcomes.is_empty() {
            return self.now;
        }
        let is_idle = self.queue.is_empty() && self.receiver.held() == 0 && self.lines.iter().all(Line::is_empty);
        if is_idle { Time::NEVER } else { self.next_event() }
    }

    fn next_event(&self) -> Time {
        let mut next = self.lines.iter().map(Line::next_arrival).min().unwrap_or(Time::NEVER);
        if !self.queue.is_empty() {
            next = self.lines.iter().map(|line| line.next_departure(self.now)).fold(next, Time::min);
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
            self.receiver.on_timeout(self.now);
            self.read();
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
        for index in 0..self.lines.len() {
            while let Some(sent) = self.lines[index].pop_arrived(self.now) {
                if sent.is_lost {
                    self.lose_fragment(&sent);
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
        self.put_torn_back();
    }

    /// Packets that are complete.
    fn read(&mut self) {
        loop {
            self.pieces.clear();
            if !self.receiver.next_packet(self.now, &mut self.pieces) {
                return;
            }
            let Some(&piece) = self.pieces.first() else { continue };
            // Who stands before it in the order of numbers was given up by the receiver.
            while let Some((place, life)) = self.numbered.pop_front() {
                if (place, life) == (piece.packet, piece.life) {
                    break;
                }
                let packet = self.packets[place as usize];
                if packet.is_alive && packet.life == life {
                    self.lose(place);
                }
            }
            self.deliver(piece);
        }
    }

    fn alive(&mut self, piece: Piece) -> Option<&mut Packet> {
        self.packets.get_mut(piece.packet as usize).filter(|packet| packet.is_alive && packet.life == piece.life)
    }

    fn deliver(&mut self, piece: Piece) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Delivered);
        }
    }

    fn lose(&mut self, place: u32) {
        self.end(place, Outcome::Lost);
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

    /// A fragment did not arrive.
    fn lose_fragment(&mut self, sent: &Sent) {
        let (is_copied, requeues) = (self.scheduler == Scheduler::Redundant, self.requeues);
        let place = sent.fragment.payload.packet;
        let Some(packet) = self.alive(sent.fragment.payload) else { return };
        packet.on_lines -= 1;
        if is_copied && packet.on_lines > 0 {
            return; // another copy is under way
        }
        if requeues {
            packet.life = packet.life.wrapping_add(1);
            packet.on_lines = 0;
            self.torn.push(place);
        } else {
            self.lose(place);
        }
    }

    /// What lines have lost goes before what waits, in its order.
    fn put_torn_back(&mut self) {
        while let Some(place) = self.torn.pop() {
            self.queue.push_front(place);
            self.queue_bytes += u64::from(self.packets[place as usize].bytes);
            self.counts.requeued += 1;
        }
    }

    /// Calls that dropped or were connected.
    fn follow_calls(&mut self) {
        let Some(mut calls) = self.calls.take() else { return };
        let lines = self.lines.len();
        while calls.next_change() <= self.now {
            self.availability.note(calls.next_change(), lines, calls.lines_up());
            self.changes.clear();
            if !calls.advance(self.now, &mut self.changes) {
                break;
            }
            let changes = std::mem::take(&mut self.changes);
            for &Change { at, line, state } in &changes {
                let is_up = state == CallState::Connected;
                if self.lines[line].is_up && !is_up {
                    self.availability.drops += 1;
                    self.hang_up(line, at);
                } else if is_up && !self.lines[line].is_up {
                    self.lines[line].bring_up(at);
                    self.receiver.set_up(at, line, true);
                }
            }
            self.changes = changes;
        }
        self.calls = Some(calls);
    }

    fn hang_up(&mut self, line: usize, at: Time) {
        let lost: Vec<Sent> = self.lines[line].take_down().collect();
        for sent in &lost {
            self.lose_fragment(sent);
        }
        self.put_torn_back();
        self.receiver.set_up(at, line, false);
        self.read();
    }

    /// Gives lines what they have room for.
    fn dispatch(&mut self) {
        while let Some(&place) = self.queue.front() {
            if !self.dispatch_now(place) {
                return;
            }
            self.queue.pop_front();
            self.queue_bytes -= u64::from(self.packets[place as usize].bytes);
        }
    }

    /// Gives a packet to lines, if there is room.
    fn dispatch_now(&mut self, place: u32) -> bool {
        let Packet { bytes, life, .. } = self.packets[place as usize];
        let piece = Piece { packet: place, life, bytes };
        let is_gone = match self.cut {
            Cut::Whole => self.give_whole(piece),
            Cut::Fragmented => self.give_fragments(piece),
        };
        if is_gone && self.has_numbers {
            self.note_numbered(place, life);
        }
        is_gone
    }

    /// Remembers the order of numbers; what is dead in front is forgotten.
    fn note_numbered(&mut self, place: u32, life: u32) {
        while let Some(&(place, life)) = self.numbered.front() {
            let packet = self.packets[place as usize];
            if packet.is_alive && packet.life == life {
                break;
            }
            self.numbered.pop_front();
        }
        self.numbered.push_back((place, life));
    }

    /// A packet goes over one line, or over all that have room.
    fn give_whole(&mut self, mut piece: Piece) -> bool {
        let on_line = self.line_bytes(piece.bytes, true);
        let Some(first) = self.choose(on_line) else { return false };
        let (now, place) = (self.now, piece.packet as usize);
        let fragment = self.splitter.cut(&mut piece, usize::MAX, true);
        self.turn = (first + 1) % self.lines.len();
        let last = if self.scheduler == Scheduler::Redundant { self.lines.len() } else { first + 1 };
        for line in &mut self.lines[first..last] {
            if line.has_room(now, on_line) {
                line.take(now, fragment, on_line);
                self.packets[place].on_lines += 1;
                self.counts.fragments += 1;
            }
        }
        true
    }

    /// The line for so many bytes; none if it is to wait.
    fn choose(&self, bytes: u32) -> Option<usize> {
        let now = self.now;
        let rate = |index| self.calls.as_ref().map_or(0.0, |calls| calls.drop_rate(index, now, PRIOR));
        let all = self.lines.iter().enumerate().filter(|(_, line)| line.is_up);
        let has_room = |line: &Line| line.has_room(now, bytes);
        match self.scheduler {
            // It may be better to wait for a fast line than to take a slow one.
            Scheduler::EarliestDelivery | Scheduler::DropAware => {
                let candidates = all.map(|(index, line)| line.candidate(index, now, bytes, rate(index)));
                self.scheduler.choose(now, self.turn, candidates).filter(|&best| has_room(&self.lines[best]))
            }
            Scheduler::RoundRobin | Scheduler::ShortestQueue | Scheduler::Redundant => {
                let with_room = all.filter(|(_, line)| has_room(line));
                let candidates = with_room.map(|(index, line)| line.candidate(index, now, bytes, 0.0));
                self.scheduler.choose(now, self.turn, candidates)
            }
        }
    }

    /// A packet is cut for the lines that have room.
    fn give_fragments(&mut self, mut piece: Piece) -> bool {
        let now = self.now;
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        self.share(piece.bytes, &mut shares);
        let first = match self.scheduler {
            Scheduler::RoundRobin => self.turn,
            _ => 0,
        };
        let (place, lines) = (piece.packet as usize, self.lines.len());
        let mut is_beginning = true;
        for index in (first..lines).chain(0..first) {
            let Some(bytes) = shares.get(index).copied().filter(|&bytes| bytes > 0) else { continue };
            let on_line = self.line_bytes(bytes, is_beginning);
            let fragment = self.splitter.cut(&mut piece, bytes as usize, is_beginning);
            self.lines[index].take(now, fragment, on_line);
            self.packets[place].on_lines += 1;
            self.counts.fragments += 1;
            self.turn = (index + 1) % lines;
            is_beginning = false;
        }
        self.shares = shares;
        !is_beginning
    }

    /// How many bytes of a packet each line takes.
    fn share(&mut self, bytes: u32, shares: &mut Vec<u32>) {
        let now = self.now;
        let has_room = |line: &Line| line.has_room(now, self.framing.line_bytes(self.least_fragment.min(bytes), true));
        if matches!(self.scheduler, Scheduler::EarliestDelivery | Scheduler::DropAware) {
            self.as_shares.clear();
            self.as_shares.extend(self.lines.iter().map(|line| match line.as_share(now) {
                share if has_room(line) => share,
                share => shares::Line { bytes_per_s: 0.0, ..share },
            }));
            let overhead = self.framing.overhead_bytes(false);
            shares::arriving_together(bytes, overhead, self.least_fragment.min(bytes), &self.as_shares, shares);
            return;
        }
        shares.resize(self.lines.len(), 0);
        let most = (bytes / self.least_fragment.max(1)).max(1);
        let free = self.lines.iter().filter(|line| has_room(line)).count() as u32;
        let used = free.min(most);
        let mut each = shares::equal(bytes, used);
        if self.scheduler == Scheduler::ShortestQueue && used < free {
            for _ in 0..used {
                let candidates =
                    self.lines.iter().enumerate().filter(|(index, line)| shares[*index] == 0 && has_room(line));
                let candidates = candidates.map(|(index, line)| line.candidate(index, now, bytes / used, 0.0));
                let Some(best) = self.scheduler.choose(now, self.turn, candidates) else { break };
                shares[best] = each.next().unwrap_or(0);
            }
            return;
        }
        let lines = self.lines.len();
        for index in (self.turn..lines).chain(0..self.turn) {
            if has_room(&self.lines[index]) {
                let Some(share) = each.next() else { break };
                shares[index] = share;
            }
        }
    }

    fn line_bytes(&self, bytes: u32, is_beginning: bool) -> u32 {
        if self.has_numbers {
            self.framing.line_bytes(bytes, is_beginning)
        } else {
            self.framing.plain_line_bytes(bytes)
        }
    }
}
