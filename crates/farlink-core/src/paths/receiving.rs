//! Packets of the peer, and timers.

use super::bundle::{Event, PathBundle, RETIRED};
use super::flight::Content;
use super::packet::{Acknowledgement, Frame, Packet};
use super::path::{Cause, Change, PathEnd, PathId, PathState};
use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::time::Time;

impl<D: Payload> PathBundle<D> {
    /// Takes a packet that came over a path.
    pub fn handle_packet(&mut self, now: Time, path: PathId, packet: &Packet<D>) {
        self.handle_marked(now, path, packet, Ecn::NotCapable);
    }

    /// As [`handle_packet`](Self::handle_packet), of a datagram with this mark.
    pub fn handle_marked(&mut self, now: Time, path: PathId, packet: &Packet<D>, ecn: Ecn) {
        let index = usize::from(path.0);
        let is_known = self.path(index).is_some() && packet.path == path.0;
        if !is_known || !self.is_of_this_bundle(packet) {
            self.stats.strange += 1;
            return;
        }
        let has_probe = packet.frames.iter().any(|frame| matches!(frame, Frame::Probe { .. }));
        let end = self.paths[index].as_mut().expect("it was found");
        let bytes = packet.wire_bytes() as u32 + end.rules.overhead_bytes;
        if !end.arrived(now, packet.number, bytes, packet.asks_for_acknowledgement(), has_probe) {
            self.stats.strange += 1;
            return;
        }
        for frame in &packet.frames {
            match frame {
                Frame::Data(data) => self.lanes.insert_marked(now, data, ecn),
                Frame::Acknowledgement(acknowledgement) => self.acknowledged(now, acknowledgement),
                Frame::Probe { .. } => {}
                Frame::Hold(hold) => self.lanes.set_hold(hold.time()),
                Frame::Close { path } => self.closed_by_peer(now, usize::from(*path)),
            }
        }
        self.wake = now;
    }

    /// Whether a packet is from the present incarnation of the peer for the present one of this end. The first packet of a new
    /// incarnation begins it.
    fn is_of_this_bundle(&mut self, packet: &Packet<D>) -> bool {
        let is_for_other = packet.to != 0 && packet.to != self.own;
        if is_for_other || packet.from == 0 || self.retired.contains(&packet.from) {
            return false;
        }
        if packet.from != self.peer {
            if self.peer != 0 {
                self.retired.push_back(self.peer);
                if self.retired.len() > RETIRED {
                    self.retired.pop_front();
                }
                self.restart();
            }
            self.peer = packet.from;
        }
        true
    }

    fn acknowledged(&mut self, now: Time, acknowledgement: &Acknowledgement) {
        let index = usize::from(acknowledgement.path);
        let (mut arrived, mut lost) = (std::mem::take(&mut self.arrived), std::mem::take(&mut self.lost));
        let Some(end) = self.path_mut(index) else { return };
        let id = end.id;
        let change = end.acknowledged(now, acknowledgement, &mut arrived, &mut lost);
        for acknowledged in arrived.drain(..) {
            match acknowledged.packet.content {
                Content::Chunk(chunk) => {
                    self.flight_bytes -= chunk.data.len();
                    if chunk.has_copies {
                        self.repeats.arrived(chunk.key());
                    }
                }
                Content::HandedOn(key) => self.repeats.arrived(key),
                Content::Probe { .. } | Content::Lost => {}
            }
        }
        (self.arrived, self.lost) = (arrived, lost);
        self.repeat_lost(now);
        if change == Change::Up {
            self.tell(Event::Up(id));
            self.outlook.expire();
        }
        self.judge(now, index);
    }

    fn closed_by_peer(&mut self, now: Time, index: usize) {
        let Some(end) = self.path(index) else { return };
        if matches!(end.state, PathState::Up | PathState::Suspect | PathState::LeftOut) {
            let id = end.id;
            self.fail(now, index, PathState::Probing);
            self.tell(Event::Down(id, Cause::Peer));
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called, and [`poll_transmit`](Self::poll_transmit) after it.
    pub fn poll_timeout(&self) -> Option<Time> {
        let of_path = |end: &PathEnd<D>| {
            let acknowledgement = if end.state == PathState::NoCarrier { Time::NEVER } else { end.received.due() };
            acknowledgement.min(end.probe_due()).min(end.loss_due()).min(end.overdue_at())
        };
        let paths = self.ends().map(of_path).min().unwrap_or(Time::NEVER);
        let due = paths.min(self.wake).min(self.lanes.due());
        (due != Time::NEVER).then_some(due)
    }

    /// Time has passed. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.lanes.expire(now);
        for index in 0..self.paths.len() {
            let Some(end) = self.paths[index].as_mut() else { continue };
            if end.loss_due() <= now {
                end.find_losses(now, &mut self.lost);
                self.repeat_lost(now);
            }
            let Some(end) = self.path(index) else { continue };
            if end.overdue_at() > now {
                continue;
            }
            let id = end.id;
            match end.state {
                PathState::Up => self.suspect(now, index),
                PathState::LeftOut => self.fail_left_out(now, index),
                _ => {
                    self.fail(now, index, PathState::Probing);
                    self.tell(Event::Down(id, Cause::Unanswered));
                }
            }
        }
        self.wake = now;
    }

    /// Fails the packets of a path that was left out and carried them only because no other did: they are not acknowledged.
    fn fail_left_out(&mut self, now: Time, index: usize) {
        let Some(end) = self.path_mut(index) else { return };
        let held = end.flight.clear();
        self.hand_on_all(held);
        self.wake = now;
    }
}
