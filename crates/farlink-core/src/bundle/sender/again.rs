//! Retransmission: fragments that a line was given and that are not confirmed.
//!
//! The sender knows what a real end knows. farlink's own receiver acknowledges fragments, so what is not acknowledged is sent again,
//! under its old number; the receiver filters what it gets twice. PPP acknowledges nothing: there the driver of a line reports what
//! has left it, and only what it still held when the line went down is sent again, under new numbers (RFC 1990, section 4.1).

use super::super::fragment::Fragment;
use super::super::lines::Lines;
use super::super::piece::Piece;
use super::super::schedule::Scheduler;
use super::{Outcome, Sender};
use crate::payload::Payload;
use crate::time::Time;

/// A fragment that is not confirmed.
#[derive(Clone, Debug)]
pub(super) struct Unconfirmed<D> {
    /// How many fragments were made before it.
    pub(super) count: u64,
    pub(super) fragment: Fragment<Piece<D>>,
}

impl<D: Payload> Sender<D> {
    /// The peer has acknowledged the fragment of this number that a line was given. A line delivers in order, so what it was given
    /// before is lost and sent again. An acknowledgement of anything else has no effect.
    pub fn on_ack(&mut self, line: usize, number: u32) {
        let Some(given) = self.given.get_mut(line).filter(|_| self.confirmation.is_some()) else { return };
        let Some(at) = given.unconfirmed.iter().position(|sent| sent.fragment.number == number) else { return };
        let lost: Vec<_> = given.unconfirmed.drain(..at).collect();
        if let Some(confirmed) = given.unconfirmed.pop_front() {
            self.confirm(&confirmed.fragment.payload);
        }
        self.send_again(lost);
    }

    /// The acknowledgement of the first fragment that a line was given and that is not acknowledged is overdue: it is sent again.
    pub fn on_overdue_ack(&mut self, line: usize) {
        let lost = self.given.get_mut(line).and_then(|given| given.unconfirmed.pop_front());
        self.send_again(lost);
    }

    /// The driver of a line has sent the next fragment that it was given.
    pub fn on_sent(&mut self, line: usize) {
        if let Some(sent) = self.given.get_mut(line).and_then(|given| given.unconfirmed.pop_front()) {
            self.confirm(&sent.fragment.payload);
        }
    }

    /// Gives a fragment to a line.
    pub(super) fn put(
        &mut self,
        now: Time,
        line: usize,
        sent: Unconfirmed<D>,
        on_line: u32,
        lines: &mut impl Lines<D>,
    ) {
        let Unconfirmed { count, fragment } = sent;
        self.counts.fragments += 1;
        self.given[line].is_any = true;
        if let Some(packet) = self.alive(&fragment.payload) {
            packet.on_lines += 1;
        }
        if self.confirmation.is_some() {
            let fragment = fragment.clone();
            if let Some(packet) = self.packets.get_mut(fragment.payload.packet as usize) {
                packet.unconfirmed += 1;
            }
            self.given[line].unconfirmed.push_back(Unconfirmed { count, fragment });
        }
        lines.take(line, now, fragment, on_line);
    }

    /// A fragment need not be sent again.
    fn confirm(&mut self, piece: &Piece<D>) {
        let keeps_numbers = self.keeps_numbers();
        let Some(packet) = self.packets.get_mut(piece.packet as usize) else { return };
        if keeps_numbers || packet.generation == piece.generation {
            packet.is_confirmed = true;
            self.forget(piece);
        }
    }

    /// A fragment is unconfirmed no longer.
    fn forget(&mut self, piece: &Piece<D>) {
        let Some(packet) = self.packets.get_mut(piece.packet as usize) else { return };
        packet.unconfirmed -= 1;
        if packet.unconfirmed > 0 {
            return;
        }
        if let Some(outcome) = packet.doom.take().filter(|_| packet.is_alive) {
            self.end(piece.packet, outcome);
        } else if packet.is_polled {
            packet.is_polled = false;
            self.free.push(piece.packet);
        }
    }

    /// Puts fragments that are not confirmed, and their packets, in front of the queue, in their order.
    pub(super) fn send_again(&mut self, lost: impl IntoIterator<Item = Unconfirmed<D>>) {
        match self.confirmation {
            None => {}
            Some(_) if self.keeps_numbers() => self.resend_later(lost),
            Some(_) => self.renumber(lost),
        }
    }

    /// Fragments are sent again under their old numbers, unless another copy of the packet is under way or has arrived.
    fn resend_later(&mut self, lost: impl IntoIterator<Item = Unconfirmed<D>>) {
        let mut packets: Vec<u32> = Vec::new();
        for sent in lost {
            let piece = &sent.fragment.payload;
            let packet = &self.packets[piece.packet as usize];
            if self.scheduler == Scheduler::Redundant && (packet.unconfirmed > 1 || packet.is_confirmed) {
                self.forget(&sent.fragment.payload);
                continue;
            }
            packets.push(piece.packet);
            self.queue_bytes += u64::from(piece.bytes());
            self.to_resend.push_back(sent);
        }
        packets.sort_unstable();
        packets.dedup();
        if !packets.is_empty() {
            self.counts.requeued += packets.len() as u64;
            self.to_resend.make_contiguous().sort_by_key(|sent| sent.count);
        }
    }

    /// Packets are sent again under new numbers, unless another copy was sent.
    fn renumber(&mut self, lost: impl IntoIterator<Item = Unconfirmed<D>>) {
        let mut packets = Vec::new();
        for Unconfirmed { fragment: Fragment { payload: piece, .. }, .. } in lost {
            let is_copied = self.scheduler == Scheduler::Redundant;
            let Some(packet) = self.alive(&piece) else { continue };
            if is_copied && (packet.unconfirmed > 1 || packet.is_confirmed) {
                self.forget(&piece);
                continue;
            }
            packet.generation = packet.generation.wrapping_add(1);
            (packet.on_lines, packet.has_arrived, packet.doom) = (0, false, None);
            (packet.unconfirmed, packet.is_confirmed) = (0, false);
            packets.push(piece.packet);
        }
        for slot in packets.into_iter().rev() {
            self.queue.push_front(slot);
            self.queue_bytes += u64::from(self.packets[slot as usize].bytes());
            self.counts.requeued += 1;
        }
    }

    /// Whether a number is so old that the receiver would take it for a later one.
    pub(super) fn is_too_old(&self, count: u64) -> bool {
        self.splitter.count() - count >= self.framing.numbering.round() / 2
    }

    /// Gives up a fragment that waits to be sent again.
    pub(super) fn give_up(&mut self, piece: &Piece<D>) {
        if self.alive(piece).is_some() {
            self.end(piece.packet, Outcome::Lost);
        }
        self.forget(piece);
    }

    /// A fragment that waits to be sent again goes to a line, where it counts again.
    pub(super) fn takes_again(&mut self, piece: &Piece<D>) {
        self.packets[piece.packet as usize].unconfirmed -= 1;
    }

    /// Sends a fragment without a packet over each line that is up, so that the receiver learns at once that lower numbers will
    /// never arrive (RFC 1990, section 4.1): an empty packet. Linux throws a fragment without content away before it reads the
    /// number (`ppp_receive_mp_frame`), so it gets the first byte of a packet that never ends.
    pub(super) fn push_numbers(&mut self, now: Time, which: std::ops::Range<usize>, lines: &mut impl Lines<D>) {
        let content = if self.ignores_empty { vec![0] } else { Vec::new() };
        let on_line = self.framing.line_bytes(content.len() as u32, true);
        for line in which.filter(|&line| lines.is_up(line)).collect::<Vec<_>>() {
            let payload = D::with_content(content.len(), || content.clone());
            let mut nothing = Piece { packet: u32::MAX, generation: 0, payload };
            let count = self.splitter.count();
            let mut fragment = self.splitter.cut(&mut nothing, usize::MAX, true);
            fragment.is_end = !self.ignores_empty;
            self.put(now, line, Unconfirmed { count, fragment }, on_line, lines);
        }
    }
}
