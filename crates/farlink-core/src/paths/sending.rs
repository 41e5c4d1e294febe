//! Choice of the next packet, and of its path.

use super::bundle::{Event, PathBundle};
use super::config::{CLASSES, Policy};
use super::flight::Content;
use super::packet::{DATA_BYTES, Frame, HEADER_BYTES, LANES, NUMBER_BITS, PIECE_BYTES, Packet, Stamp, low};
use super::path::{Cause, PathEnd, PathId, PathState};
use super::queue::Waiting;
use super::repeats::Chunk;
use crate::payload::Payload;
use crate::time::Time;

/// Most counts of an acknowledgement that is sent along with data.
const COUNTS_BESIDE_DATA: usize = 16;

/// Most counts of an acknowledgement in a packet of its own.
const COUNTS: usize = 64;

/// Length of a frame with advice to the receiver.
const ADVICE_BYTES: usize = 4;

/// Which path a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// These, bit by bit.
    Now(u16),
    /// None before this time, unless something changes.
    Later(Time),
}

fn members(mask: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |index| mask >> index & 1 == 1)
}

impl<D: Payload> PathBundle<D> {
    /// The next packet to send now, and its path. Call it until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(PathId, Packet<D>)> {
        (self.wake, self.traffic_class) = (Time::NEVER, 0);
        if let Some(packet) = self.next_control(now) {
            return Some(packet);
        }
        if let Some((index, chunk)) = self.copies.pop_front() {
            if self.path(index).is_some_and(|end| end.state != PathState::NoCarrier) {
                return Some(self.transmit(now, index, chunk));
            }
            // Its path went away meanwhile.
            let fate = self.repeats.lost(chunk, true);
            self.count(fate);
        }
        self.outlook.refresh(now, &mut self.paths, self.config.latency, self.config.shortest_piece);
        if !self.repeats.is_empty() {
            let oldest = now.since(self.config.repeat_within);
            self.stats.lost += self.repeats.expire(Time::ZERO + oldest);
        }
        let mut is_waiting = false;
        for class in 0..CLASSES {
            if let Some(packet) = self.next_data(now, class) {
                return Some(packet);
            }
            is_waiting |= self.has_data(class);
        }
        self.outlook.note_waiting(now, is_waiting);
        if is_waiting {
            self.wake = self.wake.min(self.outlook.helps_at(now)).min(self.spills_at(now));
        }
        for end in self.paths.iter_mut().flatten() {
            if end.has_window() && end.paced_at() <= now {
                end.flight.limit();
            }
            end.note_awaited(is_waiting && end.paced_at() > now);
        }
        None
    }

    fn has_data(&mut self, class: usize) -> bool {
        self.staged[class].is_some() || !self.queues[class].is_empty() || self.repeats.first(class as u8).is_some()
    }

    /// Packets without data: acknowledgements, probes, and notices of closed paths.
    fn next_control(&mut self, now: Time) -> Option<(PathId, Packet<D>)> {
        while let Some((via, path)) = self.closes.pop_front() {
            if self.path(via).is_some_and(|end| end.state == PathState::Up) {
                let (index, content) = (via, Content::Probe { is_trial: false });
                return Some(self.finish(now, index, vec![Frame::Close { path }], Some(content)));
            }
        }
        for step in 0..self.paths.len() {
            let index = (self.turn + step) % self.paths.len();
            let Some(end) = self.paths[index].as_mut() else { continue };
            if end.state == PathState::NoCarrier {
                continue;
            }
            if let Some(is_good) = end.take_verdict(now) {
                self.end_trial(now, index, is_good);
            }
            let Some(end) = self.paths[index].as_mut() else { continue };
            end.forget_old(now);
            if end.takes_probe(now) {
                self.turn = index + 1;
                let content = end.probe();
                let frame = Frame::Probe { padding: 0 };
                return Some(self.finish(now, index, vec![frame], Some(content)));
            }
            if end.received.due() <= now {
                self.turn = index + 1;
                if end.probes_along() {
                    let content = end.probe();
                    return Some(self.finish(now, index, vec![Frame::Probe { padding: 0 }], Some(content)));
                }
                return Some(self.finish(now, index, Vec::new(), None));
            }
        }
        None
    }

    fn end_trial(&mut self, now: Time, index: usize, is_good: bool) {
        let is_late = self.is_too_slow(index);
        let Some(end) = self.path_mut(index) else { return };
        if is_good && !is_late {
            end.take_back(now);
            let id = end.id;
            self.tell(Event::Up(id));
            self.outlook.expire();
        } else {
            end.leave_out(now);
        }
    }

    /// Makes a packet of frames, an acknowledgement if one is pending, and notes that it is sent.
    fn finish(
        &mut self,
        now: Time,
        index: usize,
        mut frames: Vec<Frame<D>>,
        content: Option<Content<D>>,
    ) -> (PathId, Packet<D>) {
        let (from, to) = (self.own, self.peer);
        let end = self.paths[index].as_mut().expect("the caller found it");
        if end.received.is_pending() || content.is_none() {
            let has_data = matches!(content, Some(Content::Chunk(_)));
            let most = if has_data { COUNTS_BESIDE_DATA } else { COUNTS };
            let acknowledgement = end.received.acknowledge(now, index as u8, most);
            frames.splice(0..0, acknowledgement.map(Frame::Acknowledgement));
        }
        let number = low(end.flight.next_number(), NUMBER_BITS);
        let packet = Packet { path: index as u8, from, to, number, sent: Stamp::at(now), frames };
        let bytes = packet.wire_bytes() as u32 + end.rules.overhead_bytes;
        match content {
            Some(content) => end.sent(now, bytes, content),
            None => end.sent_unanswered(bytes),
        }
        (PathId(index as u8), packet)
    }

    fn transmit(&mut self, now: Time, index: usize, chunk: Chunk<D>) -> (PathId, Packet<D>) {
        let mut frames = Vec::with_capacity(3);
        frames.extend(self.outlook.advice(now).map(Frame::Hold));
        frames.push(Frame::Data(chunk.frame()));
        self.flight_bytes += chunk.data.len();
        self.traffic_class = chunk.traffic_class;
        self.finish(now, index, frames, Some(Content::Chunk(chunk)))
    }

    /// The next packet of a class.
    fn next_data(&mut self, now: Time, class: usize) -> Option<(PathId, Packet<D>)> {
        let is_repeat = self.repeats.first(class as u8).is_some();
        if !is_repeat && self.staged[class].is_none() && self.queues[class].is_empty() {
            return None;
        }
        let candidates = self.candidates(now, class);
        if candidates == 0 {
            return None;
        }
        if !is_repeat && !self.stage(now, class, candidates) {
            return None;
        }
        let (length, is_bulk) = match (self.repeats.first(class as u8), &self.staged[class]) {
            (Some(chunk), _) => (chunk.data.len(), true),
            (None, Some((waiting, has_more))) => (waiting.data.len(), *has_more),
            (None, None) => return None,
        };
        let paths = match self.choose(now, class, candidates, length, is_bulk) {
            Choice::Now(paths) => paths,
            Choice::Later(at) => {
                self.wake = self.wake.min(at);
                return None;
            }
        };
        let most = members(paths).map(|index| self.piece_bytes(now, index)).min()?;
        let mut chunk = self.take(now, class, most)?;
        let first = paths.trailing_zeros() as usize;
        let copies = paths.count_ones() as u8;
        if copies > 1 {
            if !chunk.has_copies || copies > 1 {
                self.repeats.copied(chunk.key(), copies);
            }
            chunk.has_copies = true;
            for index in members(paths).skip(1) {
                self.copies.push_back((index, chunk.clone()));
            }
        }
        if !self.has_data(class) {
            // Nothing waits: the path could carry more.
            self.path_mut(first)?.flight.limit();
        }
        Some(self.transmit(now, first, chunk))
    }

    /// Takes the next packet out of its queue, if a path might take it now.
    fn stage(&mut self, now: Time, class: usize, candidates: u16) -> bool {
        if self.staged[class].is_some() {
            return true;
        }
        if self.flight_bytes + self.repeats.bytes() >= self.config.flight_bytes {
            return false;
        }
        let is_redundant = self.is_redundant(class);
        let mut wake = Time::NEVER;
        let is_any_ready = members(candidates).filter_map(|index| self.path(index)).any(|end| {
            let has_room = if is_redundant { end.has_room_for_copy() } else { end.has_window() };
            if has_room && !is_redundant && end.paced_at() > now {
                wake = wake.min(end.paced_at());
                return false;
            }
            has_room
        });
        if !is_any_ready {
            self.wake = self.wake.min(wake);
            return false;
        }
        let waiting = self.queues[class].pop_or_mark(now, self.outlook.pressure, self.mark);
        self.staged[class] = waiting.map(|waiting| {
            let has_more = self.queues[class].has_more(&waiting);
            (waiting, has_more)
        });
        self.staged[class].is_some()
    }

    fn is_redundant(&self, class: usize) -> bool {
        matches!(self.config.classes[class].policy, Policy::Redundant | Policy::RedundantOnAll)
    }

    /// Bytes of the user that fit into the next packet of a path.
    fn piece_bytes(&self, now: Time, index: usize) -> usize {
        let Some(end) = self.path(index) else { return 1 };
        let mut header = HEADER_BYTES + DATA_BYTES + PIECE_BYTES;
        if self.outlook.has_advice(now) {
            header += ADVICE_BYTES;
        }
        if end.received.is_pending() {
            header += super::packet::acknowledgement_bytes(COUNTS_BESIDE_DATA);
        }
        end.piece_bytes(self.config.latency, self.config.shortest_piece, header)
    }

    /// Takes the next piece, at most so long.
    fn take(&mut self, now: Time, class: usize, most: usize) -> Option<Chunk<D>> {
        let piece = |length: usize| length.div_ceil(length.div_ceil(most));
        if let Some(mut chunk) = self.repeats.pop(class as u8) {
            let length = chunk.data.len();
            if length > most {
                self.repeats.forget_copies(&mut chunk);
                let first = chunk.cut(piece(length));
                self.repeats.put_back(chunk);
                return Some(first);
            }
            return Some(chunk);
        }
        let (waiting, _) = self.staged[class].take()?;
        let lane = class * usize::from(LANES) + usize::from(waiting.lane);
        let is_first = waiting.begun.is_none();
        let traffic_class = if is_first { (self.class_of)(&waiting.data) } else { waiting.traffic_class };
        let (sequence, offset) = waiting.begun.unwrap_or_else(|| {
            self.sequences[lane] += 1;
            (self.sequences[lane] - 1, 0)
        });
        let length = waiting.data.len();
        let mut chunk = Chunk {
            class: class as u8,
            lane: waiting.lane,
            sequence,
            offset,
            is_last: true,
            data: waiting.data.clone(),
            traffic_class,
            since: now,
            losses: 0,
            has_copies: false,
        };
        if length <= most {
            return Some(chunk);
        }
        let first = chunk.cut(piece(length));
        let rest = Waiting { data: chunk.data, begun: Some((sequence, chunk.offset)), traffic_class, ..waiting };
        self.queues[class].put_back(rest);
        Some(first)
    }

    /// The paths that may carry a class now, bit by bit: the best kind of which there is one.
    fn candidates(&mut self, now: Time, class: usize) -> u16 {
        let mut kinds = [0u16; 4];
        for end in self.paths.iter_mut().flatten() {
            if end.rules.classes >> class & 1 == 0 || !end.budget.allows_data(now, &end.rules) {
                continue;
            }
            let kind = match (end.state, end.rules.is_standby) {
                (PathState::Up, false) => 0,
                (PathState::Up, true) => 1,
                (PathState::LeftOut, _) => 2,
                (PathState::Suspect, _) => 3,
                (PathState::NoCarrier | PathState::Probing, _) => continue,
            };
            kinds[kind] |= 1 << end.id.0;
        }
        let best = kinds.iter().copied().find(|&kind| kind != 0).unwrap_or(0);
        match self.config.classes[class].policy {
            // A copy more does no harm, wherever it goes.
            Policy::Redundant | Policy::RedundantOnAll if kinds[0] != 0 => kinds[0] | kinds[2] | kinds[3],
            Policy::Cheapest => self.cheapest(now, class, best),
            _ => best,
        }
    }

    /// The cheapest of these paths, and as many dearer ones as the longest wait of a packet is times the bound.
    fn cheapest(&self, now: Time, class: usize, mut left: u16) -> u16 {
        let staged = self.staged[class].as_ref().map(|(waiting, _)| waiting.since);
        let since = staged.into_iter().chain(self.queues[class].waiting_since()).min().unwrap_or(now);
        let steps = now.since(since).as_ps() / self.config.spill.as_ps().max(1);
        let cost = |index: usize| self.path(index).map_or(f64::INFINITY, |end| end.rules.cost);
        let mut chosen = 0;
        for _ in 0..=steps {
            let least = members(left).map(cost).fold(f64::INFINITY, f64::min);
            chosen |= members(left).filter(|&index| cost(index) <= least).fold(0, |mask, index| mask | 1 << index);
            left &= !chosen;
            if left == 0 {
                break;
            }
        }
        chosen
    }

    /// When packets will have waited for a cheap path long enough that a dearer one helps.
    fn spills_at(&self, now: Time) -> Time {
        let is_cheapest = |class: &usize| self.config.classes[*class].policy == Policy::Cheapest;
        let since = |class: usize| self.queues[class].waiting_since();
        let due = |since: Time| {
            let spill = self.config.spill;
            since + spill.times(now.since(since).as_ps() / spill.as_ps().max(1) + 1)
        };
        (0..CLASSES).filter(is_cheapest).filter_map(since).map(due).min().unwrap_or(Time::NEVER)
    }

    /// Seconds until a packet has arrived over a path, by this end's clock up to an offset that all paths share.
    fn arrival(&self, now: Time, end: &PathEnd<D>, length: usize) -> f64 {
        let bytes = (length + HEADER_BYTES + DATA_BYTES) as f64 + f64::from(end.rules.overhead_bytes);
        end.available_at(now, bytes).since(now).as_secs_f64() + end.transit(bytes)
    }

    fn choose(&self, now: Time, class: usize, candidates: u16, length: usize, is_bulk: bool) -> Choice {
        let mut by_arrival: [(f64, usize); 16] = [(f64::INFINITY, 0); 16];
        let mut count = 0;
        for index in members(candidates) {
            let Some(end) = self.path(index) else { continue };
            by_arrival[count] = (self.arrival(now, end, length), index);
            count += 1;
        }
        let by_arrival = &mut by_arrival[..count];
        by_arrival.sort_by(|a, b| a.0.total_cmp(&b.0));
        match self.config.classes[class].policy {
            Policy::Redundant => self.choose_copies(by_arrival, 2),
            Policy::RedundantOnAll => self.choose_copies(by_arrival, by_arrival.len()),
            Policy::EarliestDelivery | Policy::Cheapest => self.choose_earliest(now, class, by_arrival, is_bulk),
        }
    }

    /// The best paths that have room for a copy. A path that is suspect or left out comes after all others.
    fn choose_copies(&self, by_arrival: &[(f64, usize)], copies: usize) -> Choice {
        let is_good = |index: usize| self.path(index).is_some_and(|end| end.state == PathState::Up);
        let good = by_arrival.iter().filter(|(_, index)| is_good(*index));
        let rest = by_arrival.iter().filter(|(_, index)| !is_good(*index));
        let mask = good
            .chain(rest)
            .take(copies)
            .filter(|(_, index)| self.path(*index).is_some_and(PathEnd::has_room_for_copy))
            .fold(0, |mask, (_, index)| mask | 1 << index);
        if mask == 0 { Choice::Later(Time::NEVER) } else { Choice::Now(mask) }
    }

    /// The path that delivers first, if it has room. Otherwise a path with room that delivers before the paths without could deliver
    /// all that waits; and if packets keep waiting, any path with room that is worth it.
    fn choose_earliest(&self, now: Time, class: usize, by_arrival: &[(f64, usize)], is_bulk: bool) -> Choice {
        let mut rate_before = 0.0;
        let mut wake = Time::NEVER;
        let backlog = self.queues[class].bytes() as f64 + self.repeats.bytes() as f64;
        let best = by_arrival.first().map_or(0.0, |(arrival, _)| *arrival);
        let is_short = is_bulk && self.outlook.is_short_of_rate(now);
        for &(arrival, index) in by_arrival {
            let Some(end) = self.path(index) else { continue };
            if end.has_window() {
                let helps = is_short && self.outlook.helpers >> index & 1 == 1;
                let drained = if rate_before > 0.0 { best + backlog / rate_before } else { f64::INFINITY };
                if arrival <= drained || helps {
                    if end.paced_at() <= now {
                        let explored = if is_short { self.explore(now, by_arrival) } else { 0 };
                        return Choice::Now(1 << index | explored);
                    }
                    wake = wake.min(end.paced_at());
                }
            }
            rate_before += end.control.sending_rate();
        }
        Choice::Later(wake)
    }

    /// A path whose rate is not known, for a copy of a packet that another one carries: should it be slow, nobody waits for it.
    fn explore(&self, now: Time, by_arrival: &[(f64, usize)]) -> u16 {
        let is_unknown = |index: usize| {
            self.path(index).is_some_and(|end| {
                !end.control.is_explored() && end.has_window() && end.paced_at() <= now && end.state == PathState::Up
            })
        };
        by_arrival.iter().map(|&(_, index)| index).find(|&index| is_unknown(index)).map_or(0, |index| 1 << index)
    }

    /// Whether a path is so much slower than the fastest one that it does harm.
    fn is_too_slow(&self, index: usize) -> bool {
        let Some(end) = self.path(index).filter(|end| end.delays.is_known()) else { return false };
        let others = self.ends().filter(|other| other.state == PathState::Up && other.id != end.id);
        let Some(fastest) = others.map(|other| other.delays.one_way()).min_by(f64::total_cmp) else { return false };
        let packet = 1500.0_f64.min(f64::from(end.rules.mtu)) / end.control.rate().max(1.0);
        end.delays.one_way() > fastest + self.config.most_lag.as_secs_f64() + 3.0 * packet
    }

    /// Leaves out paths that make things worse.
    pub(super) fn judge(&mut self, now: Time, index: usize) {
        let Some(end) = self.path(index).filter(|end| end.state == PathState::Up) else { return };
        let loss = end.control.loss();
        let is_lossy = end.control.knows_loss() && loss > self.config.most_loss;
        let is_better = |other: &&PathEnd<D>| {
            other.state == PathState::Up && other.id != end.id && other.control.loss() < loss / 2.0
        };
        // A path that carries most of the bundle is used all the same: its losses are sent again.
        let better: f64 = self.ends().filter(is_better).map(|other| other.control.rate()).sum();
        let cause = if is_lossy && better > 0.5 * end.control.rate() {
            Cause::Loss
        } else if self.is_too_slow(index) {
            Cause::Lag
        } else {
            return;
        };
        let id = end.id;
        self.path_mut(index).expect("it was found").leave_out(now);
        self.outlook.expire();
        self.tell(Event::LeftOut(id, cause));
    }
}
