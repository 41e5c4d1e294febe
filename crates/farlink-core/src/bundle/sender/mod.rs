//! The sender of a bundle: queues packets, assigns them to lines, and sends again what a line has not carried, as far as it knows.

mod again;
mod dispatch;
mod outcomes;

use std::collections::VecDeque;

use super::config::{BundleConfig, Confirmation, Cut, Header, Peer};
use super::fragment::Splitter;
use super::framing::Framing;
use super::line_config::LineConfig;
use super::lines::Lines;
use super::linux;
use super::schedule::Scheduler;
use super::shares;
use crate::link::QueueLimit;
use crate::payload::Payload;
use crate::time::Time;
use again::Unconfirmed;

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
/// room again, and reports when lines come up and go down. If what a line has not carried is to be sent again, the driver also
/// reports what is confirmed: by acknowledgements ([`on_ack`](Sender::on_ack), [`on_overdue_ack`](Sender::on_overdue_ack)), or as
/// sent ([`on_sent`](Sender::on_sent)). Nothing else decides what is sent again.
///
/// A driver that runs the receiver too, as in a simulation, reports what truly becomes of packets
/// ([`note_settled`](Sender::note_settled) and others), and takes their outcomes with [`poll`](Sender::poll).
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
    /// For each line, what it was given.
    given: Vec<Given<D>>,
    /// Fragments to be sent again under their old numbers, in order.
    to_resend: VecDeque<Unconfirmed<D>>,

    scheduler: Scheduler,
    /// The line after the one that was chosen last.
    turn: usize,
    cut: Cut,
    has_numbers: bool,
    confirmation: Option<Confirmation>,
    /// Whether the receiver ignores empty fragments.
    ignores_empty: bool,
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
    /// Whether the packet has no outcome yet.
    is_alive: bool,
    /// Number of the packet's fragments, or copies, that are truly on lines.
    on_lines: u32,
    /// Whether any of them has arrived.
    has_arrived: bool,
    /// Number of them that are not confirmed.
    unconfirmed: u32,
    /// Whether any of them is confirmed.
    is_confirmed: bool,
    /// The outcome that the packet has unless it is sent again, because the receiver will never complete it.
    doom: Option<Outcome>,
    /// Whether its outcome was taken. The slot is free once nothing is unconfirmed.
    is_polled: bool,
}

/// Fragments that a line was given since it is up.
#[derive(Clone, Debug)]
struct Given<D> {
    is_any: bool,
    /// The fragments that are not confirmed, in order.
    unconfirmed: VecDeque<Unconfirmed<D>>,
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
            given: vec![Given::default(); lines.len()],
            to_resend: VecDeque::new(),
            scheduler: config.scheduler,
            turn: 0,
            cut: config.packets,
            has_numbers: config.header != Header::None,
            confirmation: config.confirmation(),
            ignores_empty: config.peer == Peer::Linux,
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
        *packet = Packet { payload, is_alive: true, generation: packet.generation, ..Packet::default() };
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

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A line is up again.
    pub fn line_up(&mut self, now: Time, line: usize, lines: &mut impl Lines<D>) {
        self.linux.iter_mut().for_each(|linux| linux.sender.attach(line));
        if self.gives_new_numbers() {
            self.push_numbers(now, line..line + 1, lines);
        }
    }

    /// A line is down: what it was given and is not confirmed is sent again, or lost.
    pub fn line_down(&mut self, now: Time, line: usize, lines: &mut impl Lines<D>) {
        let Given { is_any, unconfirmed } = std::mem::take(&mut self.given[line]);
        self.send_again(unconfirmed);
        if is_any && self.gives_new_numbers() {
            self.push_numbers(now, 0..lines.count(), lines);
        }
        self.detach(line);
    }

    /// A line is down before anything was sent over it.
    pub fn detach(&mut self, line: usize) {
        self.linux.iter_mut().for_each(|linux| linux.sender.detach(line));
    }

    /// The bundle begins anew, as PPP's does when a line is connected after all were down: numbers begin at 0, and packets that the
    /// receiver has not delivered are lost. Those in the queue stay there.
    pub fn restart(&mut self) {
        self.lose_numbered();
        self.splitter = Splitter::new(self.framing.numbering);
        if let Some(linux) = &mut self.linux {
            linux.sender = linux::Sender::new(self.framing.numbering.header_bytes());
        }
    }

    fn keeps_numbers(&self) -> bool {
        self.confirmation == Some(Confirmation::Acknowledged)
    }

    fn gives_new_numbers(&self) -> bool {
        self.has_numbers && self.confirmation == Some(Confirmation::Sent)
    }
}

impl<D> Default for Given<D> {
    fn default() -> Self {
        Given { is_any: false, unconfirmed: VecDeque::new() }
    }
}

impl<D: Payload> Packet<D> {
    fn bytes(&self) -> u32 {
        u32::try_from(self.payload.len()).expect("no packet is as long")
    }
}
