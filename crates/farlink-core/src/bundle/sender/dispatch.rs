//! Distribution of packets to lines, whole or in fragments.

use super::super::config::Cut;
use super::super::lines::Lines;
use super::super::linux;
use super::super::piece::Piece;
use super::super::schedule::{Candidate, Scheduler};
use super::super::shares;
use super::again::Unconfirmed;
use super::{Numbered, Outcome, Sender};
use crate::payload::Payload;
use crate::time::Time;

/// The protocol field of a packet in its first fragment, compressed as two Linux hosts negotiate it.
const PROTOCOL_BYTES: u32 = 1;

impl<D: Payload> Sender<D> {
    /// Gives waiting packets to lines as long as they have room.
    pub fn dispatch(&mut self, now: Time, lines: &mut impl Lines<D>) {
        while let Some(sent) = self.to_resend.front().cloned() {
            let piece = sent.fragment.payload.clone();
            if self.is_too_old(sent.count) {
                self.give_up(&piece);
            } else if !self.resend(now, sent, lines) {
                return;
            }
            self.to_resend.pop_front();
            self.queue_bytes -= u64::from(piece.bytes());
        }
        while let Some(&slot) = self.queue.front() {
            if !self.dispatch_now(now, slot, lines) {
                return;
            }
            self.queue.pop_front();
            self.queue_bytes -= u64::from(self.packets[slot as usize].bytes());
        }
    }

    /// Gives a packet to lines, if they have room; returns whether they had.
    pub(super) fn dispatch_now(&mut self, now: Time, slot: u32, lines: &mut impl Lines<D>) -> bool {
        let packet = &self.packets[slot as usize];
        let generation = packet.generation;
        let piece = Piece { packet: slot, generation, payload: packet.payload.clone() };
        let is_gone = match self.cut {
            _ if self.linux.is_some() => self.give_as_linux(now, piece, lines),
            Cut::Whole => self.give_whole(now, piece, lines),
            Cut::Fragmented => self.give_fragments(now, piece, lines),
        };
        if is_gone && self.has_numbers {
            self.note_numbered(slot, generation);
        }
        is_gone
    }

    /// Records a packet in the order of numbers, and drops ended packets at the front.
    fn note_numbered(&mut self, slot: u32, generation: u32) {
        while let Some(&Numbered { slot, generation, .. }) = self.numbered.front() {
            let packet = &self.packets[slot as usize];
            if packet.is_alive && packet.generation == generation {
                break;
            }
            self.numbered.pop_front();
        }
        self.numbered.push_back(Numbered { slot, generation, end: self.splitter.count() });
    }

    /// Sends a whole packet over one line, or copies over all lines that have room.
    fn give_whole(&mut self, now: Time, mut piece: Piece<D>, lines: &mut impl Lines<D>) -> bool {
        let on_line = self.line_bytes(piece.bytes(), true);
        let Some(first) = self.choose(now, on_line, lines) else { return false };
        let sent = self.cut_off(&mut piece, usize::MAX, true);
        self.give(now, &sent, first, on_line, lines);
        true
    }

    /// Cuts the next fragment off a packet.
    fn cut_off(&mut self, piece: &mut Piece<D>, bytes: usize, is_beginning: bool) -> Unconfirmed<D> {
        let count = self.splitter.count();
        Unconfirmed { count, fragment: self.splitter.cut(piece, bytes, is_beginning) }
    }

    /// Sends a fragment again under its old number.
    fn resend(&mut self, now: Time, sent: Unconfirmed<D>, lines: &mut impl Lines<D>) -> bool {
        let on_line = self.line_bytes(sent.fragment.payload.bytes(), sent.fragment.is_beginning);
        let Some(first) = self.choose(now, on_line, lines) else { return false };
        self.takes_again(&sent.fragment.payload);
        self.give(now, &sent, first, on_line, lines);
        true
    }

    /// Gives a fragment to the line `first`, or, with [`Scheduler::Redundant`], to all lines from `first` on that have room.
    fn give(&mut self, now: Time, sent: &Unconfirmed<D>, first: usize, on_line: u32, lines: &mut impl Lines<D>) {
        self.turn = (first + 1) % lines.count();
        let last = if self.scheduler == Scheduler::Redundant { lines.count() } else { first + 1 };
        for line in first..last {
            if lines.has_room(line, now, on_line) {
                self.put(now, line, sent.clone(), on_line, lines);
            }
        }
    }

    /// Chooses the line for `bytes` bytes; `None` if the packet has to wait.
    fn choose(&self, now: Time, bytes: u32, lines: &impl Lines<D>) -> Option<usize> {
        let first = self.scheduler.begins_with(self.turn);
        let all = (first..lines.count()).chain(0..first).filter(|&line| lines.is_up(line));
        match self.scheduler {
            Scheduler::EarliestDelivery | Scheduler::DropAware => {
                let candidate = |line| candidate(line, now, bytes, lines.drop_rate(line, now), lines);
                let best = self.scheduler.choose(now, all.clone().map(candidate))?;
                if lines.has_room(best, now, bytes) {
                    return Some(best);
                }
                // Waiting for a fast line may be better than taking a slow one, as long as no line is idle meanwhile.
                let awaited = candidate(best).later(self.wait_for_full_lines(now, bytes, lines));
                let idle = all.filter(|&line| lines.is_idle(line, now)).map(candidate);
                let chosen = self.scheduler.choose(now, idle.chain([awaited]));
                chosen.filter(|&chosen| chosen != best)
            }
            Scheduler::RoundRobin | Scheduler::ShortestQueue | Scheduler::Redundant | Scheduler::Linux => {
                let with_room = all.filter(|&line| lines.has_room(line, now, bytes));
                let candidates = with_room.map(|line| candidate(line, now, bytes, 0.0, lines));
                self.scheduler.choose(now, candidates)
            }
        }
    }

    /// How long the lines without room need for the packets in the queue. If a packet waits for a fast line, those behind it wait
    /// as well, although an idle line could carry them. As in ECF (Lim et al., "ECF: An MPTCP path scheduler to manage
    /// heterogeneous paths", 2017), a packet therefore waits for a fast line only if that would deliver the whole queue before
    /// the slow line could deliver the packet.
    fn wait_for_full_lines(&self, now: Time, bytes: u32, lines: &impl Lines<D>) -> Time {
        let waiting_bytes = self.queue_bytes + self.queue.len() as u64 * u64::from(self.line_bytes(0, true));
        let behind_bytes = waiting_bytes.saturating_sub(bytes.into());
        let full = (0..lines.count()).filter(|&line| lines.is_up(line) && !lines.has_room(line, now, bytes));
        let bytes_per_s: f64 = full.map(|line| lines.bytes_per_s(line)).sum();
        if bytes_per_s > 0.0 { Time::from_secs_f64(behind_bytes as f64 / bytes_per_s) } else { Time::ZERO }
    }

    /// Cuts a packet into fragments for the lines that have room.
    fn give_fragments(&mut self, now: Time, mut piece: Piece<D>, lines: &mut impl Lines<D>) -> bool {
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        self.share(now, piece.bytes(), &mut shares, lines);
        let first = match self.scheduler {
            Scheduler::RoundRobin => self.turn,
            _ => 0,
        };
        let count = lines.count();
        let mut is_beginning = true;
        for index in (first..count).chain(0..first) {
            let Some(bytes) = shares.get(index).copied().filter(|&bytes| bytes > 0) else { continue };
            let on_line = self.line_bytes(bytes, is_beginning);
            let sent = self.cut_off(&mut piece, bytes as usize, is_beginning);
            self.put(now, index, sent, on_line, lines);
            self.turn = (index + 1) % count;
            is_beginning = false;
        }
        self.shares = shares;
        !is_beginning
    }

    /// Cuts a packet as Linux does; it is dropped while no line is up.
    fn give_as_linux(&mut self, now: Time, mut piece: Piece<D>, lines: &mut impl Lines<D>) -> bool {
        let Some(linux) = &mut self.linux else { return false };
        let slot = piece.packet;
        if linux.sender.is_empty() {
            self.end(slot, Outcome::Cut);
            return true;
        }
        let mut fragments = std::mem::take(&mut linux.fragments);
        fragments.clear();
        let speeds = &linux.speeds;
        let channel = |line: usize| linux::Channel { is_free: lines.is_free(line), speed: speeds[line] };
        let is_cut = linux.sender.cut(piece.bytes() + PROTOCOL_BYTES, channel, &mut fragments);
        for (at, &(line, bytes)) in fragments.iter().enumerate() {
            let own = if at == 0 { bytes - PROTOCOL_BYTES } else { bytes };
            let sent = self.cut_off(&mut piece, own as usize, at == 0);
            self.put(now, line, sent, self.framing.line_bytes(own, at == 0), lines);
        }
        self.linux.iter_mut().for_each(|linux| linux.fragments = std::mem::take(&mut fragments));
        is_cut
    }

    /// Computes how many bytes of a packet each line takes.
    fn share(&mut self, now: Time, bytes: u32, shares: &mut Vec<u32>, lines: &impl Lines<D>) {
        if matches!(self.scheduler, Scheduler::EarliestDelivery | Scheduler::DropAware) {
            self.share_so_that_all_arrive_together(now, bytes, shares, lines);
            return;
        }
        let least = self.framing.line_bytes(self.least_fragment.min(bytes), true);
        let has_room = |line: &usize| lines.has_room(*line, now, least);
        let count = lines.count();
        shares.resize(count, 0);
        let most = (bytes / self.least_fragment.max(1)).max(1);
        let free = (0..count).filter(has_room).count() as u32;
        let used = free.min(most);
        let mut each = shares::equal(bytes, used);
        if self.scheduler == Scheduler::ShortestQueue && used < free {
            for _ in 0..used {
                let candidates = (0..count).filter(|line| shares[*line] == 0 && has_room(line));
                let candidates = candidates.map(|line| candidate(line, now, bytes / used, 0.0, lines));
                let Some(best) = self.scheduler.choose(now, candidates) else { break };
                shares[best] = each.next().unwrap_or(0);
            }
            return;
        }
        for line in (self.turn..count).chain(0..self.turn).filter(has_room) {
            let Some(share) = each.next() else { break };
            shares[line] = share;
        }
    }

    /// Computes shares for the lines that have room such that all fragments arrive together. There are none if the packet would
    /// arrive sooner by waiting for a full line. While a line is idle, the packet waits only if the full lines would deliver the
    /// whole queue sooner, as with whole packets.
    fn share_so_that_all_arrive_together(
        &mut self,
        now: Time,
        bytes: u32,
        shares: &mut Vec<u32>,
        lines: &impl Lines<D>,
    ) {
        let whole = self.line_bytes(bytes, true);
        let least = self.line_bytes(self.least_fragment.min(bytes), true);
        let full = (0..lines.count()).filter(|&line| lines.is_up(line) && !lines.has_room(line, now, least));
        let awaited = full.min_by_key(|&line| lines.arrival(line, now, whole));
        let later = match awaited.map(|line| lines.room_at(line, now, least)) {
            None | Some(Time::NEVER) => Time::NEVER,
            Some(room_at) => {
                let is_any_idle = (0..lines.count()).any(|line| lines.is_idle(line, now));
                let behind = if is_any_idle { self.wait_for_full_lines(now, least, lines) } else { Time::ZERO };
                let together = self.together(room_at, bytes, shares, lines);
                shares.clear();
                together + behind
            }
        };
        if self.together(now, bytes, shares, lines) > later {
            shares.clear();
        }
    }

    /// When the fragments of a packet that is cut at `at` arrive; appends their shares to `shares`.
    fn together(&mut self, at: Time, bytes: u32, shares: &mut Vec<u32>, lines: &impl Lines<D>) -> Time {
        let least = self.least_fragment.min(bytes);
        let on_line = self.line_bytes(least, true);
        self.as_shares.clear();
        self.as_shares.extend((0..lines.count()).map(|line| {
            let bytes_per_s = if lines.has_room(line, at, on_line) { lines.bytes_per_s(line) } else { 0.0 };
            shares::Line { ready: lines.ready(line, at), bytes_per_s }
        }));
        shares::arriving_together(bytes, self.framing.overhead_bytes(false), least, &self.as_shares, shares)
    }

    fn line_bytes(&self, bytes: u32, is_beginning: bool) -> u32 {
        if self.has_numbers {
            self.framing.line_bytes(bytes, is_beginning)
        } else {
            self.framing.plain_line_bytes(bytes)
        }
    }
}

/// A line as a scheduler sees it, for a fragment that needs `bytes` bytes on it.
fn candidate<D>(line: usize, now: Time, bytes: u32, drop_rate: f64, lines: &impl Lines<D>) -> Candidate {
    let (waiting_bytes, arrival) = (lines.waiting_bytes(line, now), lines.arrival(line, now, bytes));
    Candidate { line, waiting_bytes, arrival, drop_rate }
}
