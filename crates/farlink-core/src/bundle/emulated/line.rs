//! One emulated line of a bundle in one direction: the fragments in its modem and those in flight.

use std::collections::VecDeque;

use super::super::LinkArq;
use super::super::arq::{Quality, airtime};
use super::super::fragment::Fragment;
use super::super::line_config::LineConfig;
use super::super::linux::Tty;
use super::super::piece::Piece;
use super::acks::Acks;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{BitRate, Count};

/// A fragment that a line has taken.
#[derive(Clone, Debug)]
pub(super) struct Sent<D> {
    pub(super) fragment: Fragment<Piece<D>>,
    bytes: u32,
    /// When its first bit leaves the modem.
    begin: Time,
    /// When its last bit leaves the modem.
    end: Time,
    /// When its last bit has left the serial port, if the modem has room.
    serial_end: Time,
    /// When it arrives at the far host.
    pub(super) arrival: Time,
    /// Whether the line's ARQ gave it up.
    pub(super) is_lost: bool,
}

/// A line: a serial port, a modem, and the path to the other modem.
#[derive(Debug)]
pub(super) struct Line<D> {
    ps_per_byte: f64,
    delay: Time,
    serial_ps_per_byte: f64,
    /// Behaviour of its ARQ, from each time on; empty without ARQ.
    qualities: Vec<Quality>,
    most_fragments: usize,
    most_bytes: u64,
    /// Bytes that the modem itself holds; the near end counts them as sent.
    modem_bytes: u64,
    /// The acknowledgements of the peer, if it acknowledges.
    acks: Option<Acks>,
    /// The serial port as Linux fills it, instead of the limits `most_fragments` and `most_bytes`.
    tty: Option<Tty>,
    /// Bytes of the fragments that have arrived since the line was connected.
    arrived_bytes: u64,
    pub(super) is_up: bool,
    /// The call has dropped, but the sender has not noticed: the modem goes on sending, and nothing arrives.
    is_silent: bool,
    /// When the modem has sent everything that it holds.
    free_at: Time,
    /// When the serial port has sent everything that it holds.
    serial_free_at: Time,
    /// Fragments that have not arrived yet, in order.
    sent: VecDeque<Sent<D>>,
    rng: Rng,
}

impl<D> Line<D> {
    pub(super) fn new(line: &LineConfig, line_packets: usize, rng: Rng) -> Self {
        let room = |bytes: Option<Count>| bytes.map(Count::whole);
        Line {
            ps_per_byte: line.rate.ps_per_byte(),
            delay: line.delay.time(),
            serial_ps_per_byte: line.serial_bps.map_or(0.0, BitRate::ps_per_byte),
            qualities: line.arq.as_ref().map_or_else(Vec::new, LinkArq::qualities),
            most_fragments: line_packets,
            most_bytes: room(line.modem_bytes).map_or(u64::MAX, |modem| modem + room(line.serial_bytes).unwrap_or(0)),
            modem_bytes: room(line.modem_bytes).unwrap_or(0),
            acks: None,
            tty: None,
            arrived_bytes: 0,
            is_up: true,
            is_silent: false,
            free_at: Time::ZERO,
            serial_free_at: Time::ZERO,
            sent: VecDeque::new(),
            rng,
        }
    }

    /// A line behind a serial port as Linux fills it.
    pub(super) fn with_tty(mut self, bytes: u64) -> Self {
        self.tty = Some(Tty::new(bytes));
        self
    }

    /// A line whose peer acknowledges what arrives, over the way back of this line.
    pub(super) fn with_acks(mut self, line: &LineConfig) -> Self {
        self.acks = Some(Acks::new(line));
        self
    }

    /// Whether Linux gives this line a fragment of the next packet.
    pub(super) fn is_free(&self) -> bool {
        self.is_up && self.tty.as_ref().is_none_or(Tty::is_free)
    }

    /// Bytes that have left the modem since the line was connected.
    fn gone_bytes(&self, now: Time) -> u64 {
        let departed = self.departed(now);
        let whole: u64 = self.sent.range(..departed).map(|sent| u64::from(sent.bytes)).sum();
        let part = self.sent.get(departed).filter(|sent| sent.begin < now).map_or(0.0, |sent| {
            f64::from(sent.bytes) * now.since(sent.begin).as_secs_f64() / sent.end.since(sent.begin).as_secs_f64()
        });
        self.arrived_bytes + whole + part as u64
    }

    /// When the serial port takes more of the fragments that wait for it.
    pub(super) fn next_wake(&self) -> Time {
        let Some(gone) = self.tty.as_ref().and_then(Tty::wakes_at) else { return Time::NEVER };
        let mut before = self.arrived_bytes;
        for sent in &self.sent {
            let bytes = u64::from(sent.bytes);
            if gone <= before + bytes {
                let share = gone.saturating_sub(before) as f64 / bytes as f64;
                // A byte has left once its last bit has.
                let after = Time::from_secs_f64(share * sent.end.since(sent.begin).as_secs_f64() + 1e-9);
                return (sent.begin + after).min(sent.end);
            }
            before += bytes;
        }
        Time::ZERO // everything left within one instant, which is possible at very high rates
    }

    /// Refills the buffer of the serial port if it has run low.
    pub(super) fn wake(&mut self, now: Time) {
        if self.next_wake() > now {
            return;
        }
        let gone = self.gone_bytes(now);
        if let Some(tty) = &mut self.tty {
            tty.wake(gone.max(tty.wakes_at().unwrap_or(gone)));
        }
    }

    /// When the next fragment arrives.
    pub(super) fn next_arrival(&self) -> Time {
        if self.is_silent { Time::NEVER } else { self.sent.front().map_or(Time::NEVER, |sent| sent.arrival) }
    }

    /// When the line has sent the next fragment that it holds, after `now`.
    pub(super) fn next_departure(&self, now: Time) -> Time {
        self.sent.get(self.departed(now)).map_or(Time::NEVER, |sent| sent.end)
    }

    fn departed(&self, now: Time) -> usize {
        self.sent.partition_point(|sent| sent.end <= now)
    }

    /// Bytes that have not left the modem yet.
    pub(super) fn waiting_bytes(&self, now: Time) -> u64 {
        self.sent.range(self.departed(now)..).map(|sent| u64::from(sent.bytes)).sum()
    }

    /// Whether the line takes a fragment that needs `bytes` bytes on it. An idle line takes a fragment of any length.
    pub(super) fn has_room(&self, now: Time, bytes: u32) -> bool {
        let waiting = self.sent.len() - self.departed(now);
        let has_bytes = || self.most_bytes == u64::MAX || self.waiting_bytes(now) + u64::from(bytes) <= self.most_bytes;
        self.is_up && (waiting == 0 || waiting < self.most_fragments && has_bytes())
    }

    /// The time from which the line takes a fragment that needs `bytes` bytes on it; never if it is down.
    pub(super) fn room_at(&self, now: Time, bytes: u32) -> Time {
        if !self.is_up {
            return Time::NEVER;
        }
        let waiting = self.sent.range(self.departed(now)..);
        let ends = std::iter::once(now).chain(waiting.map(|sent| sent.end));
        ends.into_iter().find(|&at| self.has_room(at, bytes)).unwrap_or(Time::NEVER)
    }

    /// Whether the line is up and has nothing to send.
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.is_up && self.departed(now) == self.sent.len()
    }

    /// When a fragment that the line is given at `now` would begin to arrive.
    pub(super) fn ready(&self, now: Time) -> Time {
        now.max(self.free_at) + self.delay
    }

    /// When a fragment that needs `bytes` bytes on the line would arrive if it were given at `now`.
    pub(super) fn arrival(&self, now: Time, bytes: u32) -> Time {
        let begin = now.max(self.free_at);
        begin + airtime(bytes.into(), self.ps_per_byte_at(begin)) + self.delay
    }

    /// Time for a byte of a fragment that begins at `begin`.
    fn ps_per_byte_at(&self, begin: Time) -> f64 {
        Quality::at(&self.qualities, begin).map_or(self.ps_per_byte, |quality| self.ps_per_byte / quality.rate_factor)
    }

    pub(super) fn bytes_per_s(&self) -> f64 {
        1e12 / self.ps_per_byte
    }

    /// Takes a fragment that needs `bytes` bytes on the line.
    pub(super) fn take(&mut self, now: Time, fragment: Fragment<Piece<D>>, bytes: u32) {
        if self.tty.is_some() {
            let gone = self.gone_bytes(now);
            self.tty.iter_mut().for_each(|tty| tty.take(bytes, gone));
        }
        let serial = airtime(bytes.into(), self.serial_ps_per_byte);
        self.serial_free_at = now.max(self.serial_free_at) + serial;
        let begin = now.max(self.free_at);
        let ps_per_byte = self.ps_per_byte_at(begin);
        let (spent, is_whole) = match Quality::at(&self.qualities, begin) {
            None => (u64::from(bytes), true),
            Some(quality) => {
                let passage = quality.arq.send(bytes, &mut self.rng);
                (passage.bytes, passage.is_whole)
            }
        };
        self.free_at = (begin + airtime(spent, ps_per_byte)).max(self.serial_free_at);
        let (end, serial_end) = (self.free_at, self.serial_free_at);
        let arrival = end + self.delay + serial;
        if let Some(acks) = &mut self.acks {
            acks.expect(fragment.number, end, arrival);
        }
        self.sent.push_back(Sent { fragment, bytes, begin, end, serial_end, arrival, is_lost: !is_whole });
    }

    /// The next fragment that has arrived by `now`.
    pub(super) fn pop_arrived(&mut self, now: Time) -> Option<Sent<D>> {
        if self.next_arrival() > now {
            return None;
        }
        let sent = self.sent.pop_front()?;
        self.arrived_bytes += u64::from(sent.bytes);
        if let Some(acks) = self.acks.as_mut().filter(|_| !sent.is_lost) {
            acks.send(sent.arrival, sent.fragment.number);
        }
        Some(sent)
    }

    /// The acknowledgements of the peer, if it acknowledges.
    pub(super) fn acks(&mut self) -> Option<&mut Acks> {
        self.acks.as_mut()
    }

    /// When an acknowledgement arrives or is overdue.
    pub(super) fn next_ack(&self) -> Time {
        self.acks.as_ref().map_or(Time::NEVER, Acks::next)
    }

    /// How many of the fragments that have not arrived have left the near end, as far as that knows: those that have left the
    /// modem, and those in the room that the modem has of its own.
    pub(super) fn sent(&self, now: Time) -> usize {
        let departed = self.departed(now);
        if self.modem_bytes == 0 {
            return departed;
        }
        let part = self.sent.get(departed).filter(|sent| sent.begin < now).map_or(0, |sent| {
            let share = now.since(sent.begin).as_secs_f64() / sent.end.since(sent.begin).as_secs_f64();
            (f64::from(sent.bytes) * share) as u64
        });
        let mut room = self.modem_bytes + part;
        let in_modem = self.sent.range(departed..).take_while(|sent| {
            let fits = sent.serial_end <= now && u64::from(sent.bytes) <= room;
            room -= if fits { u64::from(sent.bytes) } else { 0 };
            fits
        });
        departed + in_modem.count()
    }

    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The call drops, but the sender does not notice yet.
    pub(super) fn fall_silent(&mut self) {
        self.is_silent = true;
        self.acks.iter_mut().for_each(Acks::lose);
    }

    /// The sender notices that the call has dropped. Returns the fragments that had not arrived; they are lost.
    pub(super) fn take_down(&mut self) -> impl Iterator<Item = Sent<D>> + '_ {
        self.is_up = false;
        self.is_silent = false;
        self.arrived_bytes = 0;
        self.tty.iter_mut().for_each(Tty::clear);
        self.acks.iter_mut().for_each(Acks::clear);
        self.sent.drain(..)
    }

    /// The line is connected.
    pub(super) fn bring_up(&mut self, now: Time) {
        self.is_up = true;
        self.free_at = now;
        self.serial_free_at = now;
    }

    /// Whether no fragment is in flight, and no acknowledgement is awaited.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.acks.as_ref().is_none_or(Acks::is_empty)
    }
}
