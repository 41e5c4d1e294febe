//! Distribution of packets to lines, whole or in fragments.

use super::super::config::Cut;
use super::super::fragment::Fragment;
use super::super::line::Line;
use super::super::linux;
use super::super::piece::Piece;
use super::super::schedule::Scheduler;
use super::super::shares;
use super::{Multilink, Numbered, Outcome, Packet};
use crate::time::Time;

/// Weight of the prior for a line's rate of drops: the line's own drops count for more once it was connected for longer than
/// this.
const PRIOR: Time = Time::from_secs(3000);
/// The protocol field of a packet in its first fragment, compressed as two Linux hosts negotiate it.
const PROTOCOL_BYTES: u32 = 1;

impl Multilink {
    /// Gives waiting packets to lines as long as they have room.
    pub(super) fn dispatch(&mut self) {
        while let Some(&fragment) = self.to_resend.front() {
            if self.alive(fragment.payload).is_some() && !self.resend(fragment) {
                return;
            }
            self.to_resend.pop_front();
            self.queue_bytes -= u64::from(fragment.payload.bytes);
        }
        while let Some(&slot) = self.queue.front() {
            if !self.dispatch_now(slot) {
                return;
            }
            self.queue.pop_front();
            self.queue_bytes -= u64::from(self.packets[slot as usize].bytes);
        }
    }

    /// Gives a packet to lines, if they have room; returns whether they had.
    pub(super) fn dispatch_now(&mut self, slot: u32) -> bool {
        let Packet { bytes, generation, .. } = self.packets[slot as usize];
        let piece = Piece { packet: slot, generation, bytes };
        let is_gone = match self.cut {
            _ if self.linux.is_some() => self.give_as_linux(piece),
            Cut::Whole => self.give_whole(piece),
            Cut::Fragmented => self.give_fragments(piece),
        };
        if is_gone && self.has_numbers {
            self.note_numbered(slot, generation);
        }
        is_gone
    }

    /// Records a packet in the order of numbers, and drops ended packets at the front.
    fn note_numbered(&mut self, slot: u32, generation: u32) {
        while let Some(&Numbered { slot, generation, .. }) = self.numbered.front() {
            let packet = self.packets[slot as usize];
            if packet.is_alive && packet.generation == generation {
                break;
            }
            self.numbered.pop_front();
        }
        self.numbered.push_back(Numbered { slot, generation, end: self.splitter.count() });
    }

    /// Sends a whole packet over one line, or copies over all lines that have room.
    fn give_whole(&mut self, mut piece: Piece) -> bool {
        let on_line = self.line_bytes(piece.bytes, true);
        let Some(first) = self.choose(on_line) else { return false };
        let fragment = self.splitter.cut(&mut piece, usize::MAX, true);
        self.give(fragment, first, on_line);
        true
    }

    /// Sends a fragment again under its old number.
    fn resend(&mut self, fragment: Fragment<Piece>) -> bool {
        let on_line = self.line_bytes(fragment.payload.bytes, fragment.is_beginning);
        let Some(first) = self.choose(on_line) else { return false };
        self.give(fragment, first, on_line);
        true
    }

    /// Gives a fragment to the line `first`, or, with [`Scheduler::Redundant`], to all lines from `first` on that have room.
    fn give(&mut self, fragment: Fragment<Piece>, first: usize, on_line: u32) {
        let (now, slot) = (self.now, fragment.payload.packet as usize);
        self.turn = (first + 1) % self.lines.len();
        let last = if self.scheduler == Scheduler::Redundant { self.lines.len() } else { first + 1 };
        for line in &mut self.lines[first..last] {
            if line.has_room(now, on_line) {
                line.take(now, fragment, on_line);
                self.packets[slot].on_lines += 1;
                self.counts.fragments += 1;
            }
        }
    }

    /// Chooses the line for `bytes` bytes; `None` if the packet has to wait.
    fn choose(&self, bytes: u32) -> Option<usize> {
        let now = self.now;
        let rate = |index| self.calls.as_ref().map_or(0.0, |calls| calls.drop_rate(index, now, PRIOR));
        let first = self.scheduler.begins_with(self.turn);
        let order = (first..self.lines.len()).chain(0..first);
        let all = order.map(|index| (index, &self.lines[index])).filter(|(_, line)| line.is_up);
        let has_room = |line: &Line| line.has_room(now, bytes);
        match self.scheduler {
            Scheduler::EarliestDelivery | Scheduler::DropAware => {
                let candidate = |(index, line): (usize, &Line)| line.candidate(index, now, bytes, rate(index));
                let best = self.scheduler.choose(now, all.clone().map(candidate))?;
                if has_room(&self.lines[best]) {
                    return Some(best);
                }
                // Waiting for a fast line may be better than taking a slow one, as long as no line is idle meanwhile.
                let awaited = candidate((best, &self.lines[best])).later(self.wait_for_full_lines(bytes));
                let idle = all.filter(|(_, line)| line.is_idle(now)).map(candidate);
                let chosen = self.scheduler.choose(now, idle.chain([awaited]));
                chosen.filter(|&chosen| chosen != best)
            }
            Scheduler::RoundRobin | Scheduler::ShortestQueue | Scheduler::Redundant | Scheduler::Linux => {
                let with_room = all.filter(|(_, line)| has_room(line));
                let candidates = with_room.map(|(index, line)| line.candidate(index, now, bytes, 0.0));
                self.scheduler.choose(now, candidates)
            }
        }
    }

    /// How long the lines without room need for the packets in the queue. If a packet waits for a fast line, those behind it wait
    /// as well, although an idle line could carry them. As in ECF (Lim et al., "ECF: An MPTCP path scheduler to manage
    /// heterogeneous paths", 2017), a packet therefore waits for a fast line only if that would deliver the whole queue before
    /// the slow line could deliver the packet.
    fn wait_for_full_lines(&self, bytes: u32) -> Time {
        let waiting_bytes = self.queue_bytes + self.queue.len() as u64 * u64::from(self.line_bytes(0, true));
        let behind_bytes = waiting_bytes.saturating_sub(bytes.into());
        let full = self.lines.iter().filter(|line| line.is_up && !line.has_room(self.now, bytes));
        let bytes_per_s: f64 = full.map(|line| line.as_share(self.now).bytes_per_s).sum();
        if bytes_per_s > 0.0 { Time::from_secs_f64(behind_bytes as f64 / bytes_per_s) } else { Time::ZERO }
    }

    /// Cuts a packet into fragments for the lines that have room.
    fn give_fragments(&mut self, mut piece: Piece) -> bool {
        let now = self.now;
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        self.share(piece.bytes, &mut shares);
        let first = match self.scheduler {
            Scheduler::RoundRobin => self.turn,
            _ => 0,
        };
        let (slot, lines) = (piece.packet as usize, self.lines.len());
        let mut is_beginning = true;
        for index in (first..lines).chain(0..first) {
            let Some(bytes) = shares.get(index).copied().filter(|&bytes| bytes > 0) else { continue };
            let on_line = self.line_bytes(bytes, is_beginning);
            let fragment = self.splitter.cut(&mut piece, bytes as usize, is_beginning);
            self.lines[index].take(now, fragment, on_line);
            self.packets[slot].on_lines += 1;
            self.counts.fragments += 1;
            self.turn = (index + 1) % lines;
            is_beginning = false;
        }
        self.shares = shares;
        !is_beginning
    }

    /// Cuts a packet as Linux does; it is dropped while no line is up.
    fn give_as_linux(&mut self, mut piece: Piece) -> bool {
        let Some(linux) = &mut self.linux else { return false };
        let (now, slot) = (self.now, piece.packet);
        if linux.sender.is_empty() {
            self.end(slot, Outcome::Cut);
            return true;
        }
        let mut fragments = std::mem::take(&mut linux.fragments);
        fragments.clear();
        let (lines, speeds) = (&self.lines, &linux.speeds);
        let channel = |line: usize| linux::Channel { is_free: lines[line].is_free(), speed: speeds[line] };
        let is_cut = linux.sender.cut(piece.bytes + PROTOCOL_BYTES, channel, &mut fragments);
        for (at, &(line, bytes)) in fragments.iter().enumerate() {
            let own = if at == 0 { bytes - PROTOCOL_BYTES } else { bytes };
            let fragment = self.splitter.cut(&mut piece, own as usize, at == 0);
            self.lines[line].take(now, fragment, self.framing.line_bytes(own, at == 0));
            self.packets[slot as usize].on_lines += 1;
            self.counts.fragments += 1;
        }
        self.linux.iter_mut().for_each(|linux| linux.fragments = std::mem::take(&mut fragments));
        is_cut
    }

    /// Computes how many bytes of a packet each line takes.
    fn share(&mut self, bytes: u32, shares: &mut Vec<u32>) {
        if matches!(self.scheduler, Scheduler::EarliestDelivery | Scheduler::DropAware) {
            self.share_so_that_all_arrive_together(bytes, shares);
            return;
        }
        let now = self.now;
        let has_room = |line: &Line| line.has_room(now, self.framing.line_bytes(self.least_fragment.min(bytes), true));
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
                let Some(best) = self.scheduler.choose(now, candidates) else { break };
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

    /// Computes shares for the lines that have room such that all fragments arrive together. There are none if the packet would
    /// arrive sooner by waiting for a full line. While a line is idle, the packet waits only if the full lines would deliver the
    /// whole queue sooner, as with whole packets.
    fn share_so_that_all_arrive_together(&mut self, bytes: u32, shares: &mut Vec<u32>) {
        let now = self.now;
        let whole = self.line_bytes(bytes, true);
        let least = self.line_bytes(self.least_fragment.min(bytes), true);
        let full = self.lines.iter().enumerate().filter(|(_, line)| line.is_up && !line.has_room(now, least));
        let awaited = full.min_by_key(|(index, line)| line.candidate(*index, now, whole, 0.0).arrival);
        let later = match awaited.map(|(_, line)| line.room_at(now, least)) {
            None | Some(Time::NEVER) => Time::NEVER,
            Some(room_at) => {
                let is_any_idle = self.lines.iter().any(|line| line.is_idle(now));
                let behind = if is_any_idle { self.wait_for_full_lines(least) } else { Time::ZERO };
                let together = self.together(room_at, bytes, shares);
                shares.clear();
                together + behind
            }
        };
        if self.together(now, bytes, shares) > later {
            shares.clear();
        }
    }

    /// When the fragments of a packet that is cut at `at` arrive; appends their shares to `shares`.
    fn together(&mut self, at: Time, bytes: u32, shares: &mut Vec<u32>) -> Time {
        let least = self.least_fragment.min(bytes);
        let on_line = self.line_bytes(least, true);
        self.as_shares.clear();
        self.as_shares.extend(self.lines.iter().map(|line| match line.as_share(at) {
            share if line.has_room(at, on_line) => share,
            share => shares::Line { bytes_per_s: 0.0, ..share },
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
