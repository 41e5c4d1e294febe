//! A bundle in one direction in virtual time: its sender, emulated lines with their calls, and the receiver.

mod acks;
mod availability;
mod ends;
mod line;
mod lines;

use super::calls::Calls;
use super::config::{BundleConfig, Confirmation, Header, ReceiverRule};
use super::dialler::Change;
use super::line_config::LineConfig;
use super::linux;
use super::piece::Piece;
use super::reassembly::Reassembler;
use super::receiver::Receiver;
use super::schedule::Scheduler;
use super::sender::{Counts, Outcome, Sender};
use crate::link::QueueLimit;
use crate::payload::Payload;
use crate::rng::Rng;
use crate::time::Time;

pub use availability::Availability;

use ends::Ends;
use line::Line;
use lines::EmulatedLines;

/// One direction of a bundle of emulated lines.
///
/// A driver sends packets with [`send`](EmulatedBundle::send), calls [`handle_timeout`](EmulatedBundle::handle_timeout) at the time
/// of [`poll_timeout`](EmulatedBundle::poll_timeout), and after each of these calls takes the outcomes with
/// [`poll`](EmulatedBundle::poll). Both directions of a hop are started with the same `hop` stream, so that a call drops in both
/// directions at once.
#[derive(Debug)]
pub struct EmulatedBundle<D> {
    sender: Sender<D>,
    lines: EmulatedLines<D>,
    /// For each line, when each end notices that its call dropped.
    ends: Vec<Ends>,
    is_reverse: bool,
    /// The sign that a fragment need not be sent again.
    confirmation: Option<Confirmation>,
    /// Whether a bundle ends with its last line, and the next one begins anew.
    restarts: bool,
    changes: Vec<Change>,
    availability: Availability,
    /// The time up to which all events were handled.
    now: Time,
    measured_since: Time,
    receiver: Receiver<Piece<D>>,
    pieces: Vec<Piece<D>>,
    /// One more than the highest number that was delivered, for bundles that send no numbers.
    highest: u32,
    /// Fragments of such bundles that arrived after one that was sent later.
    out_of_order: u64,
}

impl<D: Payload> EmulatedBundle<D> {
    /// Begins a run. The calls are drawn from `hop`, which must be the same stream for both directions of a hop; everything else
    /// is drawn from `rng`.
    pub fn new(config: &BundleConfig, lines: &[LineConfig], limit: QueueLimit, mut rng: Rng, hop: &Rng) -> Self {
        let calls = config.start_calls(lines, hop);
        let numbering = config.framing().numbering;
        let line_packets = config.line_packets.whole() as usize;
        let most_bytes = config.mrru_bytes.whole() as usize;
        let most_held = config.reorder_fragments.whole() as usize;
        let confirmation = config.confirmation();
        let is_acknowledged = confirmation == Some(Confirmation::Acknowledged);
        let receiver = match (config.receiver_rule(), config.patience(lines)) {
            (ReceiverRule::Linux, _) => {
                Receiver::Linux(linux::Receiver::new(numbering, lines.len(), most_bytes, most_held))
            }
            (ReceiverRule::Rfc1990, patience) => {
                let receiver = Reassembler::new(numbering, lines.len(), most_bytes, most_held);
                let receiver = match patience {
                    None => receiver,
                    Some(patience) => receiver.with_patience(patience),
                };
                Receiver::Rfc1990(if is_acknowledged { receiver.with_resending() } else { receiver })
            }
        };
        let start = |line: &LineConfig| {
            let emulated = Line::new(line, line_packets, rng.detach());
            match config.scheduler {
                Scheduler::Linux => emulated.with_tty(config.tty_bytes().whole()),
                _ if is_acknowledged => emulated.with_acks(line),
                _ => emulated,
            }
        };
        let mut bundle = EmulatedBundle {
            sender: Sender::new(config, lines, limit),
            lines: EmulatedLines { lines: lines.iter().map(start).collect(), calls },
            ends: vec![Ends::UP; lines.len()],
            is_reverse: false,
            confirmation,
            restarts: config.header != Header::None && !is_acknowledged,
            changes: Vec::new(),
            availability: Availability::default(),
            now: Time::ZERO,
            measured_since: Time::ZERO,
            receiver,
            pieces: Vec::new(),
            highest: 0,
            out_of_order: 0,
        };
        let EmulatedLines { lines, calls } = &mut bundle.lines;
        if let Some(calls) = calls {
            for (index, line) in lines.iter_mut().enumerate().filter(|(index, _)| !calls.is_up(*index)) {
                line.is_up = false;
                bundle.ends[index] = Ends::DOWN;
                bundle.receiver.set_up(Time::ZERO, index, false);
                bundle.sender.detach(index);
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
    pub fn send(&mut self, now: Time, payload: D) -> Option<u32> {
        self.handle_timeout(now);
        self.sender.send(self.now, payload, &mut self.lines)
    }

    /// When [`handle_timeout`](EmulatedBundle::handle_timeout) is due; never while the bundle is empty.
    pub fn poll_timeout(&self) -> Time {
        if self.sender.has_outcomes() {
            return self.now;
        }
        let is_empty = self.lines.lines.iter().all(Line::is_empty);
        let is_idle = !self.sender.is_waiting() && self.receiver.held() == 0 && is_empty;
        if is_idle { Time::NEVER } else { self.next_event() }
    }

    fn next_event(&self) -> Time {
        let EmulatedLines { lines, calls } = &self.lines;
        let mut next = lines.iter().map(|line| line.next_arrival().min(line.next_ack())).min().unwrap_or(Time::NEVER);
        if self.sender.is_linux() {
            next = lines.iter().map(Line::next_wake).fold(next, Time::min);
        } else if self.sender.is_waiting() {
            next = lines.iter().map(|line| line.next_departure(self.now)).fold(next, Time::min);
        }
        if calls.is_some() {
            next = self.ends.iter().flat_map(|ends| ends.noticed).fold(next, Time::min);
        }
        next = next.min(self.receiver.deadline().unwrap_or(Time::NEVER));
        next.min(calls.as_ref().map_or(Time::NEVER, Calls::next_change))
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
            self.take_acks();
            self.follow_calls();
            self.notice();
            self.receiver.on_timeout(self.now);
            self.read();
            if self.sender.is_linux() {
                let now = self.now;
                self.lines.lines.iter_mut().for_each(|line| line.wake(now));
            }
            self.sender.dispatch(self.now, &mut self.lines);
        }
        self.now = self.now.max(now);
    }

    /// The next outcome: the slot of a packet and what happened to it. The slot is free afterwards.
    pub fn poll(&mut self) -> Option<(u32, Outcome)> {
        self.sender.poll()
    }

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        let out_of_order = self.out_of_order + self.receiver.counts().out_of_order;
        Counts { out_of_order, ..self.sender.counts() }
    }

    /// How long the lines were up since the measurement began.
    pub fn availability(&mut self, now: Time) -> Availability {
        self.handle_timeout(now);
        match &self.lines.calls {
            None => Availability::always(self.ends.len(), self.measured_since, now),
            Some(calls) => self.availability.until(now, calls, self.ends.len()),
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
        for index in 0..self.ends.len() {
            while let Some(sent) = self.lines.lines[index].pop_arrived(self.now) {
                if self.confirmation == Some(Confirmation::Sent) {
                    self.sender.on_sent(index);
                }
                let fragment = sent.fragment;
                if sent.is_lost {
                    self.sender.note_loss(&fragment.payload, Outcome::Lost);
                    continue;
                }
                self.sender.note_arrival(&fragment.payload);
                if self.sender.has_numbers() {
                    self.receiver.on_fragment(self.now, index, fragment);
                    self.read();
                } else {
                    self.out_of_order += u64::from(fragment.number < self.highest);
                    self.highest = self.highest.max(fragment.number);
                    self.sender.note_delivery(&fragment.payload);
                }
            }
        }
    }

    /// Tells the sender which acknowledgements have arrived, and which are overdue.
    fn take_acks(&mut self) {
        for (index, line) in self.lines.lines.iter_mut().enumerate() {
            let Some(acks) = line.acks() else { continue };
            while let Some(number) = acks.pop(self.now) {
                self.sender.on_ack(index, number);
            }
            while acks.is_overdue(self.now) {
                self.sender.on_overdue_ack(index);
            }
        }
    }

    /// Takes complete packets from the receiver and ends those that will never be complete.
    fn read(&mut self) {
        loop {
            self.pieces.clear();
            let is_packet = self.receiver.next_packet(self.now, &mut self.pieces);
            self.sender.note_settled(self.receiver.settled(), self.pieces.first());
            if !is_packet {
                return;
            }
        }
    }
}
