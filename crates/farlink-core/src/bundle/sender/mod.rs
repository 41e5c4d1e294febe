//! The sender of a bundle: queues packets, assigns them to lines, and tracks those that are not known to have arrived.

mod dispatch;

use std::collections::VecDeque;

use super::config::{BundleConfig, Cut, Header, OnDrop, Peer};
use super::fragment::{Fragment, Splitter};
use super::framing::Framing;
use super::line_config::LineConfig;
use super::lines::Lines;
use super::linux;
use super::piece::Piece;
use super::schedule::Scheduler;
use super::shares;
use crate::link::QueueLimit;
use crate::payload::Payload;
use crate::time::Time;

/// The outcome of a packet.
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

/// The sender of a bundle.
///
/// A driver gives it packets with [`send`](Sender::send), calls [`dispatch`](Sender::dispatch) whenever a line may have
/// room again, and reports when lines come up and go down. It takes the outcomes of packets with
/// [`poll`](Sender::poll).
#[derive(Debug)]
pub struct Sender<D> {
    limit: QueueLimit,
    queue: VecDeque<u32>,
    queue_bytes: u64,
    packets: Vec<Packet<D>>,
    free: Vec<u32>,
    /// Packets in the order in which they were numbered, until the receiver has delivered or given up all their
    /// fragments.
    numbered: VecDeque<Numbered>,
    /// Packets to be sent again under new numbers.
    to_renumber: Vec<u32>,
    /// Fragments to be sent again under their old numbers, in order.
    to_resend: VecDeque<Fragment<Piece<D>>>,

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

    outcomes: VecDeque<(u32, Outcome)>,
    counts: Counts,
}

/// A slot for a packet in the bundle.
#[derive(Clone, Debug, Default)]
struct Packet<D> {
    payload: D,
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

impl<D: Payload> Sender<D> {
    /// A sender for these lines, all of which are up.
    pub fn new(config: &BundleConfig, lines: &[LineConfig], limit: QueueLimit) -> Self {
        let framing = config.framing();
        Sender {
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
            requeues: config.what_on_drop() == OnDrop::Requeue,
            peer: config.peer,
            least_fragment: u32::try_from(config.min_fragment_bytes.whole()).unwrap_or(u32::MAX),
            framing,
            splitter: Splitter::new(framing.numbering),
            shares: Vec::new(),
            as_shares: Vec::new(),
            linux: ForLinux::new(config, lines),
            outcomes: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Sends a packet. Returns its slot, or `None` if the queue had no room for it.
    pub fn send(&mut self, now: Time, payload: D, lines: &mut impl Lines<D>) -> Option<u32> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            (self.packets.len() - 1) as u32
        });
        let bytes = payload.len() as u64;
        let packet = &mut self.packets[slot as usize];
        *packet = Packet { payload, is_alive: true, on_lines: 0, generation: packet.generation };
        let is_sent = !self.is_waiting() && self.dispatch_now(now, slot, lines);
        if !is_sent {
            if !self.has_room(bytes) {
                self.release(slot);
                return None;
            }
            self.queue.push_back(slot);
            self.queue_bytes += bytes;
            self.counts.peak_waiting_bytes = self.counts.peak_waiting_bytes.max(self.queue_bytes);
        }
        Some(slot)
    }

    /// Whether any packet or fragment waits for a line.
    pub fn is_waiting(&self) -> bool {
        !(self.queue.is_empty() && self.to_resend.is_empty())
    }

    fn has_room(&self, bytes: u64) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.queue_bytes + bytes <= limit,
            QueueLimit::Packets(limit) => ((self.queue.len() + self.to_resend.len()) as u64) < limit,
        }
    }

    /// Whether packets are numbered, so that the receiver can put them in order.
    pub fn has_numbers(&self) -> bool {
        self.has_numbers
    }

    /// Whether the port of each line is filled as Linux fills it.
    pub fn is_linux(&self) -> bool {
        self.linux.is_some()
    }

    /// The next outcome: the slot of a packet and what happened to it. The slot is free afterwards.
    pub fn poll(&mut self) -> Option<(u32, Outcome)> {
        let (slot, outcome) = self.outcomes.pop_front()?;
        self.packets[slot as usize].payload = D::default();
        self.free.push(slot);
        Some((slot, outcome))
    }

    /// Whether [`poll`](Sender::poll) will return an outcome.
    pub fn has_outcomes(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A line is up again.
    pub fn line_up(&mut self, now: Time, line: usize, lines: &mut impl Lines<D>) {
        self.linux.iter_mut().for_each(|linux| linux.sender.attach(line));
        if self.requeues && self.has_numbers && !self.keeps_numbers() {
            self.send_empty(now, line..line + 1, lines);
        }
    }

    /// A line is down, and these of its fragments are not known to have arrived: they are lost or sent again.
    pub fn line_down(
        &mut self,
        now: Time,
        line: usize,
        unconfirmed: impl IntoIterator<Item = Fragment<Piece<D>>>,
        lines: &mut impl Lines<D>,
    ) {
        let known = self.begin_losses();
        for fragment in unconfirmed {
            self.lose_fragment(fragment, Outcome::Cut);
        }
        self.end_losses(now, known, lines);
        self.detach(line);
    }

    /// A line is down before anything was sent over it.
    pub fn detach(&mut self, line: usize) {
        self.linux.iter_mut().for_each(|linux| linux.sender.detach(line));
    }

    /// A piece is known to have arrived.
    pub fn note_arrival(&mut self, piece: &Piece<D>) {
        if let Some(packet) = self.alive(piece) {
            packet.on_lines -= 1;
        }
    }

    /// The packet of a bundle without sequence numbers has arrived.
    pub fn note_delivery(&mut self, piece: &Piece<D>) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Delivered);
        }
    }

    /// The receiver has delivered or given up all fragments before the count `settled`, and delivered the packet of a
    /// piece with the last of them, if there is one. Only a driver that also runs the receiver knows this.
    pub fn note_settled(&mut self, settled: u64, delivered: Option<&Piece<D>>) {
        let complete = delivered.map(|piece| (piece.packet, piece.generation));
        while let Some(&Numbered { slot, generation, .. }) = self.numbered.front().filter(|front| front.end <= settled)
        {
            self.numbered.pop_front();
            let packet = &self.packets[slot as usize];
            if packet.is_alive && packet.generation == generation {
                let is_complete = complete == Some((slot, generation));
                self.end(slot, if is_complete { Outcome::Delivered } else { Outcome::Lost });
            }
        }
    }

    /// Losses follow: [`lose_fragment`](Sender::lose_fragment) for each, then [`end_losses`](Sender::end_losses).
    pub(super) fn begin_losses(&self) -> usize {
        self.to_resend.len()
    }

    fn alive(&mut self, piece: &Piece<D>) -> Option<&mut Packet<D>> {
        self.packets
            .get_mut(piece.packet as usize)
            .filter(|packet| packet.is_alive && packet.generation == piece.generation)
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
    pub(super) fn lose_fragment(&mut self, fragment: Fragment<Piece<D>>, outcome: Outcome) {
        let (is_copied, requeues) = (self.scheduler == Scheduler::Redundant, self.requeues);
        let keeps_numbers = self.keeps_numbers();
        let slot = fragment.payload.packet;
        let Some(packet) = self.alive(&fragment.payload) else { return };
        packet.on_lines -= 1;
        if is_copied && packet.on_lines > 0 {
            return; // another copy is in flight
        }
        if !requeues {
            self.end(slot, outcome);
        } else if keeps_numbers {
            self.to_resend.push_back(fragment);
        } else {
            packet.generation = packet.generation.wrapping_add(1);
            packet.on_lines = 0;
            self.to_renumber.push(slot);
        }
    }

    fn keeps_numbers(&self) -> bool {
        self.has_numbers && self.peer == Peer::Farlink
    }

    /// Puts lost packets and fragments in front of the queue, in their order. `known` fragments were there to be sent
    /// again before.
    pub(super) fn end_losses(&mut self, now: Time, known: usize, lines: &mut impl Lines<D>) {
        if self.to_resend.len() > known {
            let (numbering, sent) = (self.framing.numbering, self.splitter.count());
            for fragment in self.to_resend.range(known..) {
                self.queue_bytes += u64::from(fragment.payload.bytes());
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
            self.queue_bytes += u64::from(self.packets[slot as usize].bytes());
            self.counts.requeued += 1;
        }
        if must_tell {
            self.send_empty(now, 0..lines.count(), lines);
        }
    }

    /// Sends empty fragments, so that the receiver learns at once that lower numbers will never arrive (RFC 1990,
    /// section 4.1).
    fn send_empty(&mut self, now: Time, which: std::ops::Range<usize>, lines: &mut impl Lines<D>) {
        let on_line = self.framing.line_bytes(0, true);
        for line in which {
            if lines.is_up(line) {
                let mut nothing = Piece { packet: u32::MAX, ..Piece::default() };
                lines.take(line, now, self.splitter.cut(&mut nothing, 0, true), on_line);
            }
        }
    }
}

impl<D: Payload> Packet<D> {
    fn bytes(&self) -> u32 {
        u32::try_from(self.payload.len()).expect("no packet is as long")
    }
}
