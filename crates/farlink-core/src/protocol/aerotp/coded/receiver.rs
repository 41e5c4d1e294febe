//! Reorders a coded stream and reports how many symbols each block needs.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;
use crate::time::Time;

use super::super::config::AerotpConfig;
use super::super::echo::Echo;
use super::super::incoming::{Incoming, most_pieces};
use super::super::reliable::Pace;
use super::super::room::Room;
use super::super::segment::Mack;
use super::super::skipped_data::SkippedData;
use super::inbound::{Inbound, Place};

/// The receiving half of a coded stream.
///
/// It keeps at most `receive_buffer_bytes` of the stream, in order and out of order. For incomplete blocks it also keeps up to as
/// much data that may already have been read, and repair symbols for the missing data.
#[derive(Clone, Debug)]
pub(in super::super) struct Receiver<D> {
    data: Reorder<D>,
    /// Data that the sender gave up.
    skipped_data: SkippedData,
    end: Option<u64>,
    /// Blocks that are known and not complete, ascending.
    blocks: Vec<Inbound<D>>,
    /// Data of unknown blocks, in the order of arrival; the description may arrive later.
    loose: VecDeque<(u64, D)>,
    loose_bytes: u64,
    /// Starts of recently completed blocks.
    done: [Option<u64>; MOST_DONE],
    repair_bytes: u64,
    repair_count: usize,
    peak_repair_bytes: u64,
    room: Room,
    /// Buffer for a peer that has not yet shown that it receives the answers. `[B7]`
    half_open_bytes: u64,
    echo: Echo,
    /// Number of data segments received; wraps.
    arrived: u32,
    pace: Pace,
    /// Number of segments that no acknowledgement has covered yet.
    untold: u64,
    deadline: Time,
    is_due: bool,
    repeats: u32,
    told_window_end: u64,
}

instants! {
    Receiver<D>: echo, pace, deadline;
    fixed: data, skipped_data, end, blocks, loose, loose_bytes, done, repair_bytes, repair_count, peak_repair_bytes, room,
    half_open_bytes, arrived, untold, is_due, repeats, told_window_end
}

/// Number of repetitions of an acknowledgement that may be the last for some time.
const REPEATS: u32 = 2;
/// Largest number of blocks in an acknowledgement: the first ones, those for which symbols have arrived, and those that were
/// completed. `[K6]`
const MOST_INCOMPLETE: usize = 12;
const MOST_FIRST: usize = 3;
const MOST_DONE: usize = 3;
/// Number of acknowledgements after each arrival that list its block; all but one may be lost.
const REPORTS_PER_ARRIVAL: u32 = 3;
/// Largest number of blocks that are kept; a sender has no reason to have more of them in flight. `[K8]`
const MOST_BLOCKS: usize = 1024;
/// Largest number of unread gaps; they are at least a symbol apart.
const MOST_SKIPS: usize = 4096;

impl<D: Payload> Receiver<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let room = Room::new(config);
        Receiver {
            data: Reorder::default(),
            skipped_data: SkippedData::default(),
            end: None,
            blocks: Vec::new(),
            loose: VecDeque::new(),
            loose_bytes: 0,
            done: [None; MOST_DONE],
            repair_bytes: 0,
            repair_count: 0,
            peak_repair_bytes: 0,
            room,
            half_open_bytes: config.half_open(),
            echo: Echo::default(),
            arrived: 0,
            pace: Pace::new(config),
            untold: 0,
            deadline: Time::NEVER,
            is_due: false,
            repeats: 0,
            told_window_end: room.bytes(),
        }
    }

    pub(in super::super) fn on_segment(&mut self, now: Time, incoming: Incoming<D>) -> bool {
        let Incoming { position, payload, is_end, repair, timestamp, is_opening } = incoming;
        let place = match &repair {
            Some(repair) => match Place::of(position, repair) {
                Some(place) => Some(place),
                None => return false,
            },
            None => None,
        };
        let is_repair = matches!((&place, &repair), (Some(place), Some(repair)) if place.is_repair(repair));
        let own_end = position + payload.len() as u64;
        let end = if is_repair { place.map_or(own_end, |place| place.end()) } else { own_end };
        if !self.is_within(end.max(place.map_or(0, |place| place.end())), is_end.then_some(end)) {
            return false;
        }
        // Small pieces take much more memory than their bytes. Pieces beyond the limit are dropped and recovered by repair
        // symbols. `[B6]`
        let most = most_pieces(if is_opening { self.half_open_bytes } else { self.room.bytes() });
        let is_source = !is_repair && !payload.is_empty();
        if is_source && position > self.data.next && self.data.piece_count() >= most {
            return false;
        }
        if let Some(place) = place
            && (is_repair && (!place.fits_repair(payload.len()) || position != place.start) || !self.announce(place))
        {
            return false;
        }
        if is_end {
            self.end = Some(end);
        }
        let overtaken_by = self.echo.on_segment(now, timestamp);
        let is_question = payload.is_empty() && !is_end;
        self.arrived = self.arrived.wrapping_add(u32::from(!payload.is_empty()));
        let was_complete = self.is_complete();
        let has_news = match (repair, payload.is_empty()) {
            (_, true) => is_end,
            (Some(repair), false) if is_repair => self.put_repair(position, repair.index, payload),
            (_, false) => self.put_source(position, payload, overtaken_by, most),
        };
        self.pace.on_segment(now);
        self.untold += 1;
        // The sender should learn at once that a block is complete and needs no more symbols.
        if is_question || has_news || (self.is_complete() && !was_complete) || self.untold >= self.pace.wanted() {
            self.is_due = true;
        } else if self.deadline == Time::NEVER || self.untold == 1 {
            self.deadline = now + self.pace.timeout;
        }
        let is_waiting = self.data.has_gaps() || !self.blocks.is_empty() || self.end.is_some();
        self.repeats = if is_waiting { REPEATS } else { 0 };
        true
    }

    /// Whether a segment that reaches `furthest`, and perhaps the end of the stream, is consistent with earlier ones.
    fn is_within(&self, furthest: u64, end: Option<u64>) -> bool {
        let is_beyond_end = self.end.is_some_and(|known| furthest > known || end.is_some_and(|end| end != known));
        let described = self.blocks.last().map_or(0, |block| block.place.end());
        let least_end = self.data.early_end().max(self.data.next).max(described);
        furthest <= self.window_end() && !is_beyond_end && end.is_none_or(|end| end >= furthest.max(least_end))
    }

    /// Takes the description of a block. Returns whether it is consistent with the other blocks and with the room. `[K4]`
    fn announce(&mut self, place: Place) -> bool {
        if self.is_here(place.start, place.end()) {
            return true;
        }
        let at = self.blocks.partition_point(|block| block.place.start < place.start);
        if let Some(block) = self.blocks.get(at)
            && block.place.start < place.end()
        {
            return block.place == place;
        }
        if at.checked_sub(1).is_some_and(|before| self.blocks[before].place.end() > place.start)
            || self.blocks.len() == MOST_BLOCKS
            || place.bytes > self.room.bytes()
        {
            return false;
        }
        let mut block = Inbound::new(place);
        let next = self.data.next;
        let mut kept_bytes = 0;
        self.loose.retain(|(position, payload)| {
            let end = position + payload.len() as u64;
            block.add_source(*position, payload);
            // Data before a block that has begun in order belongs to no incomplete block.
            let is_loose = (*position < place.start && next < place.start) || end > place.end();
            kept_bytes += if is_loose { payload.len() as u64 } else { 0 };
            is_loose
        });
        self.loose_bytes = kept_bytes;
        self.blocks.insert(at, block);
        true
    }

    /// Whether this part of the stream has arrived.
    fn is_here(&self, start: u64, end: u64) -> bool {
        end <= self.data.next || self.data.block_around(start.max(self.data.next)).is_some_and(|block| block.1 >= end)
    }

    /// Takes data of a segment that was overtaken by so many ticks; returns whether it completes a block.
    fn put_source(&mut self, position: u64, payload: D, overtaken_by: u32, most_pieces: usize) -> bool {
        let end = position + payload.len() as u64;
        if self.is_here(position, end) {
            return false;
        }
        if overtaken_by > 0 {
            self.echo.on_overtaken_data(overtaken_by);
        }
        let at = self.blocks.partition_point(|block| block.place.end() <= position);
        match self.blocks.get_mut(at).filter(|block| block.place.start < end) {
            Some(block) => {
                block.add_source(position, &payload);
                block.tellings = REPORTS_PER_ARRIVAL;
            }
            None => {
                self.loose_bytes += payload.len() as u64;
                self.loose.push_back((position, payload.clone()));
            }
        }
        self.data.put(position, payload);
        self.forget_loose(most_pieces);
        self.complete(at)
    }

    /// Takes a repair symbol; returns whether it completes its block.
    fn put_repair(&mut self, start: u64, index: u32, payload: D) -> bool {
        let Ok(at) = self.blocks.binary_search_by_key(&start, |block| block.place.start) else { return false };
        let bytes = payload.len() as u64;
        self.blocks[at].tellings = REPORTS_PER_ARRIVAL;
        // The first block always has room, so that it completes some time and the next one becomes the first. `[K8]`
        let has_room =
            self.repair_bytes + bytes <= self.room.bytes() && self.repair_count < most_pieces(self.room.bytes());
        if (at == 0 || has_room) && self.blocks[at].add_repair(index, payload) {
            self.repair_bytes += bytes;
            self.repair_count += 1;
            self.peak_repair_bytes = self.peak_repair_bytes.max(self.repair_bytes);
        }
        self.complete(at)
    }

    /// Delivers a block if it can be decoded now; returns whether it could.
    fn complete(&mut self, at: usize) -> bool {
        let Some(block) = self.blocks.get_mut(at) else { return false };
        let place = block.place;
        let is_covered = place.end() <= self.data.next
            || self.data.block_around(place.start.max(self.data.next)).is_some_and(|around| around.1 >= place.end());
        if !is_covered {
            match block.decode() {
                Some(data) if place.end() > self.data.next => {
                    self.data.put(place.start, data);
                }
                Some(_) => {}
                None => return false,
            }
        }
        self.repair_bytes -= self.blocks[at].repair_bytes();
        self.repair_count -= self.blocks[at].repair_count();
        self.blocks.remove(at);
        self.check_account();
        self.done.rotate_right(1);
        self.done[0] = Some(place.start);
        true
    }

    /// Checks in debug builds that no symbols are kept without blocks.
    fn check_account(&self) {
        debug_assert!(!self.blocks.is_empty() || (self.repair_bytes, self.repair_count) == (0, 0));
    }

    /// Drops data that was read long ago, because the description of its block may never arrive.
    fn forget_loose(&mut self, most_pieces: usize) {
        while (self.loose_bytes > self.room.bytes() || self.loose.len() > most_pieces)
            && let Some((_, payload)) = self.loose.pop_front()
        {
            self.loose_bytes -= payload.len() as u64;
        }
    }

    /// The sender has given up missing data before a position, so no symbols for it are requested any more. Returns whether that
    /// position is possible. `[V7]`
    pub(in super::super) fn go_forward(&mut self, to: u64) -> bool {
        let is_within = self.end.is_none_or(|end| to <= end);
        if is_within && self.skipped_data.skip_to(&mut self.data, to, MOST_SKIPS) {
            self.is_due = true;
            let next = self.data.next;
            for block in self.blocks.extract_if(.., |block| block.place.end() <= next) {
                self.repair_bytes -= block.repair_bytes();
                self.repair_count -= block.repair_count();
            }
            self.check_account();
        }
        is_within
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        if now >= self.deadline {
            self.deadline = Time::NEVER;
            self.is_due = true;
            if self.untold == 0 {
                self.repeats = self.repeats.saturating_sub(1);
            }
        }
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// The sender requests a window of `bytes` beyond the received data. `[W1]`
    pub(in super::super) fn make_room(&mut self, bytes: u64) {
        self.is_due |= self.room.grow(bytes, self.data.unread_bytes);
    }

    /// The length of the window when all data was read.
    pub(in super::super) fn buffer_bytes(&self) -> u64 {
        self.room.bytes()
    }

    /// Position after the last byte that the buffer has room for.
    fn window_end(&self) -> u64 {
        self.data.next + self.room.bytes().saturating_sub(self.data.unread_bytes)
    }

    /// Whether an acknowledgement is due.
    pub(in super::super) fn is_mack_due(&self) -> bool {
        self.is_due && self.echo.is_known()
    }

    pub(in super::super) fn next_mack(&mut self, now: Time, number: impl Fn(u64) -> u32) -> Option<(u64, Box<Mack>)> {
        if !self.is_due {
            return None;
        }
        let mut mack = self.echo.mack(now)?;
        (self.is_due, self.untold) = (false, 0);
        self.deadline = if self.repeats > 0 { now + self.pace.timeout } else { Time::NEVER };
        let ack = self.data.next + u64::from(self.is_complete());
        let window_end = self.window_end();
        self.told_window_end = window_end;
        mack.window = u32::try_from(window_end.saturating_sub(ack)).unwrap_or(u32::MAX);
        mack.counts_symbols = true;
        mack.edges.push(self.arrived, 0);
        for start in self.done.into_iter().flatten().filter(|&start| start >= self.data.next) {
            mack.edges.push(number(start), 0);
        }
        let is_told = |(index, block): &(usize, &mut Inbound<D>)| *index < MOST_FIRST || block.tellings > 0;
        for (_, block) in self.blocks.iter_mut().enumerate().filter(is_told).take(MOST_INCOMPLETE) {
            block.tellings = block.tellings.saturating_sub(1);
            mack.edges.push(number(block.place.start), block.missing());
        }
        Some((ack, mack))
    }

    pub(in super::super) fn read(&mut self) -> Option<D> {
        let data = self.skipped_data.read(&mut self.data)?;
        // A sender that was blocked by the window must learn of the new room.
        let grown = self.window_end().saturating_sub(self.told_window_end);
        let was_small = self.told_window_end.saturating_sub(self.data.next) < self.room.bytes() / 4;
        if was_small && grown >= self.room.bytes() / 2 && self.echo.is_known() {
            self.is_due = true;
            self.repeats = REPEATS;
        }
        Some(data)
    }

    pub(in super::super) fn take_skipped(&mut self) -> Option<u64> {
        self.skipped_data.take(&self.data)
    }

    /// The next acknowledgement's report on overtaken segments. `[A10]`
    pub(in super::super) fn take_overtaken(&mut self) -> Option<u32> {
        self.echo.take_overtaken()
    }

    pub(in super::super) fn skipped(&self) -> Option<u32> {
        self.skipped_data.number()
    }

    #[inline]
    pub(in super::super) fn next_position(&self) -> u64 {
        self.data.next
    }

    pub(in super::super) fn is_complete(&self) -> bool {
        self.end == Some(self.data.next)
    }

    pub(in super::super) fn is_read(&self) -> bool {
        self.is_complete() && self.data.unread_bytes == 0 && self.skipped_data.is_empty()
    }

    pub(in super::super) fn peak_bytes(&self) -> u64 {
        self.data.peak_early_bytes + self.peak_repair_bytes
    }
}
