//! True outcomes of packets. Only a driver that also runs the lines and the receiver knows them, as in a simulation; the sender's
//! decisions do not depend on it.

use super::super::config::Confirmation;
use super::super::piece::Piece;
use super::super::schedule::Scheduler;
use super::{Numbered, Outcome, Packet, Sender};
use crate::payload::Payload;

impl<D: Payload> Sender<D> {
    /// The next outcome: the slot of a packet and what happened to it. The slot may be used again afterwards.
    pub fn poll(&mut self) -> Option<(u32, Outcome)> {
        let (slot, outcome) = self.outcomes.pop_front()?;
        let packet = &mut self.packets[slot as usize];
        packet.payload = D::default();
        if packet.unconfirmed > 0 {
            packet.is_polled = true;
        } else {
            self.free.push(slot);
        }
        Some((slot, outcome))
    }

    /// Whether [`poll`](Sender::poll) will return an outcome.
    pub fn has_outcomes(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// A piece has arrived.
    pub fn note_arrival(&mut self, piece: &Piece<D>) {
        if let Some(packet) = self.alive(piece) {
            packet.on_lines -= 1;
            packet.has_arrived = true;
        }
    }

    /// A piece will not arrive. Unless it is sent again, its packet ends with `outcome`.
    pub fn note_loss(&mut self, piece: &Piece<D>, outcome: Outcome) {
        let is_copied = self.scheduler == Scheduler::Redundant;
        let Some(packet) = self.alive(piece) else { return };
        packet.on_lines -= 1;
        if !(is_copied && (packet.on_lines > 0 || packet.has_arrived)) {
            self.doom(piece.packet, outcome);
        }
    }

    /// The packet of a bundle without sequence numbers has arrived.
    pub fn note_delivery(&mut self, piece: &Piece<D>) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Delivered);
        }
    }

    /// The receiver has delivered or given up all fragments before the count `settled`, and delivered the packet of a
    /// piece with the last of them, if there is one.
    pub fn note_settled(&mut self, settled: u64, delivered: Option<&Piece<D>>) {
        let complete = delivered.map(|piece| (piece.packet, piece.generation));
        while let Some(&Numbered { slot, generation, .. }) = self.numbered.front().filter(|front| front.end <= settled)
        {
            self.numbered.pop_front();
            let packet = &self.packets[slot as usize];
            if packet.is_alive && packet.generation == generation {
                if complete == Some((slot, generation)) {
                    self.end(slot, Outcome::Delivered);
                } else if self.keeps_numbers() {
                    self.end(slot, Outcome::Lost);
                } else {
                    self.doom(slot, Outcome::Lost);
                }
            }
        }
    }

    /// Ends all packets that have numbers.
    pub(super) fn lose_numbered(&mut self) {
        while let Some(Numbered { slot, generation, .. }) = self.numbered.pop_front() {
            let packet = &self.packets[slot as usize];
            if packet.is_alive && packet.generation == generation {
                self.end(slot, packet.doom.unwrap_or(Outcome::Lost));
            }
        }
    }

    /// The receiver will never complete a packet. It ends, unless what is acknowledged decides; or once all of it was sent, as until
    /// then it may be sent again.
    fn doom(&mut self, slot: u32, outcome: Outcome) {
        let packet = &mut self.packets[slot as usize];
        match self.confirmation {
            Some(Confirmation::Acknowledged) => {}
            Some(Confirmation::Sent) if packet.unconfirmed > 0 => packet.doom = packet.doom.or(Some(outcome)),
            _ => self.end(slot, outcome),
        }
    }

    pub(super) fn alive(&mut self, piece: &Piece<D>) -> Option<&mut Packet<D>> {
        self.packets
            .get_mut(piece.packet as usize)
            .filter(|packet| packet.is_alive && packet.generation == piece.generation)
    }

    pub(super) fn end(&mut self, slot: u32, outcome: Outcome) {
        let keeps_numbers = self.keeps_numbers();
        let packet = &mut self.packets[slot as usize];
        packet.is_alive = false;
        packet.generation = packet.generation.wrapping_add(1);
        if !keeps_numbers {
            packet.unconfirmed = 0;
        }
        self.outcomes.push_back((slot, outcome));
    }

    /// Frees the slot of a packet that the queue had no room for.
    pub(super) fn release(&mut self, slot: u32) {
        self.packets[slot as usize].is_alive = false;
        self.free.push(slot);
    }
}
