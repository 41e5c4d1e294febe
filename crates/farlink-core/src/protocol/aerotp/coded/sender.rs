//! Sends what was written, block by block, until each is complete at the receiver.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::length::Length;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::super::config::AerotpConfig;
use super::super::forward::Forward;
use super::super::round_trip::RoundTrip;
use super::super::segment::{CRC_BYTES, OPENING_BYTES, REPAIR_BYTES};
use super::super::sending::{Account, Heard, Outgoing};
use super::loss::Loss;
use super::needed::needed;
use super::outbound::Outbound;

/// The sending half of a coded stream.
#[derive(Clone, Debug)]
pub(in super::super) struct Sender<D> {
    pub(super) unsent: VecDeque<D>,
    pub(super) unsent_bytes: u64,
    /// What may be written ahead of what was sent.
    room_bytes: u64,
    /// Since when what is unsent waits for more, too little for a symbol.
    waiting_since: Time,
    is_closing: bool,
    /// Some block says where the stream ends.
    has_end: bool,
    /// In order, without gaps, from the first one that is not acknowledged.
    pub(super) blocks: VecDeque<Outbound>,
    /// What is too old, where there is a deadline.
    pub(super) forward: Forward,
    /// What was sent, the oldest first; of so many the answer is overdue.
    by_time: VecDeque<Transmission>,
    expired: usize,
    /// When a report on a block is overdue.
    report_due: Time,
    /// Of all blocks.
    pub(super) owed: u64,
    pub(super) first: u64,
    /// First position not sent.
    pub(super) next: u64,
    window_end: u64,
    round_trip: RoundTrip,
    opening: Opening,
    /// When something was heard last, or the wait for it began.
    heard: Time,
    /// While the peer is silent, nothing goes out before.
    probe: Time,
    /// When to ask what has arrived, if nothing else would tell.
    ask: Time,
    /// Segments were seen to overtake each other: so long they may.
    reordering: u64,
    latest_echo: u64,
    /// Segments that had arrived when something was heard last.
    arrived: u32,
    is_link_down: bool,
    is_silent: bool,
    is_full: bool,
    loss: Loss,
    length: Option<Length>,
    shape: Shape,
    pub(in super::super) account: Account,
}

/// How blocks are cut. `[K2]`
#[derive(Clone, Copy, Debug)]
struct Shape {
    header_bytes: u64,
    most_symbol_bytes: u32,
    /// Of the next block.
    symbol_bytes: u32,
    block_symbols: u64,
    /// A block has at most so many bytes, so that the peer's buffer holds several.
    block_bytes: u64,
    completion: f64,
    /// So long what makes no symbol waits for more data.
    linger: Time,
}

/// Repetition before the round trip is known.
#[derive(Clone, Copy, Debug)]
struct Opening {
    at: Time,
    wait: Time,
    first: Time,
    longest: Time,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent: u64,
    /// Of its block.
    start: u64,
    payload_bytes: u32,
}

/// Silence for so many timeouts means that nothing gets through.
const SILENT_TIMEOUTS: u64 = 3;
/// While the peer is silent, so many segments go out in each timeout.
const PROBES_PER_TIMEOUT: u64 = 8;
/// Repetitions before the first answer are at most so many times as far apart as the first two.
const LONGEST_OPENING: u64 = 8;
/// Blocks that the receiver's buffer holds at least.
const LEAST_BLOCKS: u64 = 4;
/// Of a block of which nothing has been heard although all of it was sent, so many symbols go out to find out.
const MOST_UNTOLD: u32 = 32;
/// A block is closed when it has been open for this part of a round trip: what was lost of it waits no longer.
const OPEN_PER_ROUND_TRIP: u64 = 4;
/// `[K9]` What makes good what a block still wants is so much surer to suffice than all of a block: it costs less, and others wait.
const SURER_AGAIN: f64 = 8.0;
/// While more data waits, a block is as likely to want more as not.
const EVEN: f64 = 0.5;

impl<D: Payload> Sender<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let coded = config.coded.unwrap_or_default();
        let wait = config.initial_rto_s.time();
        let most_symbol_bytes = config.symbol_bytes() as u32;
        let header_bytes = config.header_bytes.whole() + u64::from(CRC_BYTES + u32::from(REPAIR_BYTES));
        let length = config.length(header_bytes, u64::from(most_symbol_bytes));
        let mut sender = Sender {
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            room_bytes: u64::from(u32::MAX),
            waiting_since: Time::ZERO,
            is_closing: false,
            has_end: false,
            blocks: VecDeque::new(),
            forward: Forward::new(config),
            by_time: VecDeque::new(),
            expired: 0,
            report_due: Time::NEVER,
            owed: 0,
            first: 0,
            next: 0,
            window_end: config.half_open(),
            round_trip: RoundTrip::new(config.mack_timeout_s.time()),
            opening: Opening { at: Time::NEVER, wait, first: wait, longest: wait.times(LONGEST_OPENING) },
            heard: Time::ZERO,
            probe: Time::ZERO,
            ask: Time::ZERO,
            reordering: 0,
            latest_echo: 0,
            arrived: 0,
            is_link_down: false,
            is_silent: false,
            is_full: false,
            loss: Loss::new(coded.expected_loss.get(), length.is_some()),
            length,
            shape: Shape {
                header_bytes: header_bytes + u64::from(OPENING_BYTES),
                most_symbol_bytes,
                symbol_bytes: most_symbol_bytes,
                block_symbols: coded.block_symbols.whole(),
                block_bytes: config.receive_buffer_bytes.whole() / LEAST_BLOCKS,
                completion: coded.completion.get(),
                linger: config.mack_timeout_s.time(),
            },
            account: Account::default(),
        };
        sender.follow_length(Time::ZERO);
        sender
    }

    pub(in super::super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        if self.is_closing || data.is_empty() {
            return 0;
        }
        let room = self.room_bytes.saturating_sub(self.unsent_bytes);
        let n = (data.len() as u64).min(room) as usize;
        self.is_full |= n < data.len();
        if n > 0 {
            if self.unsent_bytes == 0 {
                self.waiting_since = now;
            }
            let taken = data.split_to(n);
            self.unsent_bytes += n as u64;
            let joined = match self.unsent.back_mut() {
                Some(last) => last.try_join(taken),
                None => Err(taken),
            };
            if let Err(taken) = joined {
                self.unsent.push_back(taken);
            }
            let begun = self.blocks.back().map_or(self.next, Outbound::end);
            self.forward.on_written(now, begun + self.unsent_bytes);
        }
        n
    }

    pub(in super::super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// From when on data goes out that was never sent; never if there is none, or no room.
    #[inline]
    fn source_at(&self) -> Time {
        let (planned_end, open_symbol) = match self.blocks.back() {
            Some(block) if block.has_unsent() => return Time::ZERO,
            Some(block) => (block.end(), (!block.is_closed).then_some(block.symbol_bytes)),
            None => (self.next, None),
        };
        if self.unsent_bytes == 0 {
            return Time::NEVER;
        }
        let symbol_bytes = u64::from(open_symbol.unwrap_or(self.shape.symbol_bytes));
        if self.window_end < planned_end + self.unsent_bytes.min(symbol_bytes) {
            Time::NEVER
        } else if self.unsent_bytes >= symbol_bytes || self.is_closing || self.is_flight_empty() {
            Time::ZERO
        } else {
            self.waiting_since + self.shape.linger
        }
    }

    /// Whether the end of the stream has to go out by itself; the peer has to have gone on to there. `[V9]`
    fn is_end_due(&self) -> bool {
        let has_sent_all = self.unsent_bytes == 0 && self.blocks.back().is_none_or(|b| !b.has_unsent());
        self.is_closing && has_sent_all && !self.has_end && self.next <= self.window_end
    }

    /// Whether no answer to anything is awaited.
    fn is_flight_empty(&self) -> bool {
        self.by_time.len() == self.expired && self.report_due == Time::NEVER
    }

    /// Whether nothing would be sent or heard any more if the peer were not asked.
    fn is_stuck(&self) -> bool {
        let has_more = self.unsent_bytes > 0 || !self.blocks.is_empty();
        let waits_for_data = self.blocks.back().is_some_and(|block| !block.is_closed);
        has_more
            && self.is_flight_empty()
            && self.owed == 0
            && !waits_for_data
            && !self.is_end_due()
            && self.source_at() == Time::NEVER
    }

    #[inline]
    pub(in super::super) fn next(&mut self, now: Time, _most_bytes: u32) -> Option<Outgoing<D>> {
        self.give_up(now);
        if self.ready_at() > now {
            return None;
        }
        if self.is_flight_empty() && !self.forward.is_awaited() {
            self.heard = self.heard.max(now); // the wait for an answer begins now
            self.opening.at = if self.round_trip.smoothed().is_none() { now + self.opening.wait } else { Time::NEVER };
        }
        if self.is_stuck() {
            self.ask = now + self.patience();
            self.note_probe(now);
            return Some(Outgoing { position: self.next, payload: D::default(), is_end: false, repair: None });
        }
        let out = if self.is_silent || self.forward.is_wanted(now) {
            self.note_probe(now);
            if self.forward.is_wanted(now) {
                return Some(self.forward_alone());
            }
            self.close_last(now);
            let first = self.blocks.iter().position(|block| block.missing() > 0)?;
            self.repair(first, now)
        } else if self.owed > 0 {
            let first = self.blocks.iter().position(|block| block.owed > 0)?;
            self.repair(first, now)
        } else if self.is_end_due() {
            self.close_last(now);
            self.has_end = true;
            self.blocks.push_back(Outbound::end_only(self.next, now));
            self.next += 1;
            let last = self.blocks.len() - 1;
            let out = self.repair(last, now);
            self.settle(last, now);
            out
        } else if self.source_at() <= now {
            self.source(now)
        } else {
            return Some(self.forward_alone());
        };
        self.account.in_flight_bytes = (self.by_time.len() - self.expired) as u64 * u64::from(self.shape.symbol_bytes);
        self.account.peak_bytes = self.account.peak_bytes.max(self.next - self.forward.kept_from(self.first));
        Some(out)
    }

    /// While the peer is silent, the next segment waits for a while.
    fn note_probe(&mut self, now: Time) {
        self.probe = now + Time::from_ps(self.patience().as_ps() / PROBES_PER_TIMEOUT);
    }

    /// The next data that was never sent.
    fn source(&mut self, now: Time) -> Outgoing<D> {
        if !self.blocks.back().is_some_and(Outbound::has_unsent) {
            self.extend(now);
        }
        let last = self.blocks.len() - 1;
        let block = &mut self.blocks[last];
        let (position, payload, repair) = block.next_source::<D>();
        block.in_flight += 1;
        block.last_sent = ticks(now);
        let is_end = block.is_end && !block.has_unsent();
        let payload_bytes = payload.len() as u32;
        self.next = position + u64::from(payload_bytes) + u64::from(is_end);
        self.by_time.push_back(Transmission { sent: ticks(now), start: block.start, payload_bytes });
        if !block.has_unsent() {
            self.settle(last, now);
        }
        Outgoing { position, payload, is_end, repair }
    }

    /// Takes what was written into the open block, or begins one.
    fn extend(&mut self, now: Time) {
        if self.blocks.back().is_none_or(|block| block.is_closed) {
            let symbol_bytes = self.shape.symbol_bytes;
            let symbols = (self.shape.block_bytes / u64::from(symbol_bytes)).clamp(1, self.shape.block_symbols);
            let start = self.blocks.back().map_or(self.next, Outbound::end);
            self.blocks.push_back(Outbound::new(start, symbol_bytes, symbols, now));
        }
        let Some(block) = self.blocks.back_mut() else { return };
        let room = self.window_end - block.end();
        let symbol_bytes = u64::from(block.symbol_bytes);
        let mut take = self.unsent_bytes.min(room).min(block.most_bytes - block.bytes);
        let is_all = take == self.unsent_bytes;
        let is_last = is_all && self.is_closing;
        let is_partial = is_all && take < symbol_bytes;
        if !is_last && !is_partial {
            take -= take % symbol_bytes;
        }
        if is_last && block.bytes == 0 {
            // All of the block is known: its symbols are of equal length, and none is filled up.
            block.symbol_bytes = take.div_ceil(take.div_ceil(symbol_bytes)) as u32;
        }
        self.unsent_bytes -= take;
        self.waiting_since = now;
        while take > 0
            && let Some(data) = self.unsent.front_mut()
        {
            let n = data.len().min(take as usize);
            block.append(&data.split_to(n));
            take -= n as u64;
            if data.is_empty() {
                self.unsent.pop_front();
            }
        }
        block.is_end = is_last;
        self.has_end |= is_last;
        // What is coded has to stand still: a block is described once no more comes.
        block.is_closed = is_last || is_partial || block.bytes == block.most_bytes;
    }

    /// The next symbol that makes good what a block lost.
    fn repair(&mut self, index: usize, now: Time) -> Outgoing<D> {
        let block = &mut self.blocks[index];
        block.in_flight += 1;
        block.last_sent = ticks(now);
        self.owed -= u64::from(block.owed.min(1));
        block.owed = block.owed.saturating_sub(1);
        let (start, is_end) = (block.start, block.is_end);
        let (payload, repair) = if block.bytes == 0 {
            (D::default(), None)
        } else {
            let (payload, repair) = block.next_repair::<D>();
            (payload, Some(repair))
        };
        let payload_bytes = payload.len() as u32;
        self.by_time.push_back(Transmission { sent: ticks(now), start, payload_bytes });
        Outgoing { position: start, payload, is_end, repair }
    }

    /// No more data comes into the last block.
    fn close_last(&mut self, now: Time) {
        if let Some(block) = self.blocks.back_mut()
            && !block.is_closed
        {
            block.is_closed = true;
            let last = self.blocks.len() - 1;
            self.settle(last, now);
        }
    }

    /// Decides how many symbols a block is owed. `[K7]`, `[K9]`
    fn settle(&mut self, index: usize, now: Time) {
        // Nothing else would use the link.
        let is_idle = self.source_at() == Time::NEVER;
        let bits = (u64::from(self.blocks[index].symbol_bytes) + self.shape.header_bytes) * 8;
        let patience = self.patience();
        let block = &mut self.blocks[index];
        let mut is_untold = block.told.is_none() && block.is_again;
        if block.unreported > 0 {
            // It took as long as a symbol and a second one would: the report is lost.
            let due = span(block.last_sent) + patience.times(2);
            if now >= due {
                (block.unreported, is_untold) = (0, true);
            } else {
                self.report_due = self.report_due.min(due);
            }
        }
        self.owed -= u64::from(block.owed);
        if !block.is_closed || block.has_unsent() {
            block.owed = 0;
            return;
        }
        let is_answered = block.in_flight + block.unreported == 0;
        let is_first = !std::mem::replace(&mut block.is_again, true);
        let decides = is_first || is_answered || is_idle;
        if decides {
            block.completion = match (is_first, is_idle) {
                (true, false) => EVEN,
                (true, true) => self.shape.completion,
                (false, _) => 1.0 - (1.0 - self.shape.completion) / SURER_AGAIN,
            };
        }
        if decides || block.owed > 0 {
            let all = needed(block.missing(), self.loss.of(bits as f64), block.completion);
            let mut more = all.saturating_sub(block.in_flight + block.unreported);
            if is_untold {
                more = more.min(MOST_UNTOLD.saturating_sub(block.in_flight));
            }
            block.owed = if decides { more } else { more.min(block.owed) };
        }
        self.owed += u64::from(block.owed);
    }

    pub(super) fn settle_all(&mut self, now: Time) {
        self.report_due = Time::NEVER;
        for index in 0..self.blocks.len() {
            self.settle(index, now);
        }
    }

    /// New blocks have symbols of the length of the moment.
    fn follow_length(&mut self, now: Time) {
        if let Some(length) = &mut self.length {
            self.shape.symbol_bytes = length.next_bytes(now).min(self.shape.most_symbol_bytes);
        }
    }

    fn block(&mut self, start: u64) -> Option<&mut Outbound> {
        let index = self.blocks.binary_search_by_key(&start, |block| block.start).ok()?;
        self.blocks.get_mut(index)
    }

    pub(in super::super) fn on_mack(&mut self, now: Time, heard: &Heard) {
        self.heard = now;
        self.is_silent = false;
        self.opening.at = Time::NEVER;
        let is_news = heard.echo > self.latest_echo || self.round_trip.smoothed().is_none();
        if is_news {
            self.round_trip.sample(heard.round_trip);
            self.round_trip.answered_after(span(ticks(now).saturating_sub(heard.echo)));
            self.account.latest_round_trip = Some(heard.round_trip);
            self.learn(now, heard);
            self.latest_echo = heard.echo;
        }
        let is_latest = heard.echo >= self.latest_echo;
        for &(start, missing) in heard.deficits() {
            let missing = u32::try_from(missing).unwrap_or(u32::MAX);
            if let Some(block) = self.block(start)
                && block.bytes > 0
            {
                block.told = Some(block.missing().min(missing));
                if is_latest {
                    block.unreported = 0;
                }
            }
        }
        self.window_end = self.window_end.max(heard.window_end);
        self.first = self.first.max(heard.ack);
        self.forward.on_acknowledged(heard.ack, heard.skipped);
        while let Some(block) = self.blocks.front()
            && block.end() <= heard.ack
            && !block.has_unsent()
        {
            self.owed -= u64::from(block.owed);
            self.blocks.pop_front();
        }
        if self.unsent_bytes > 0 && self.source_at() == Time::NEVER {
            self.close_last(now); // the peer has no room before it is complete
        }
        self.settle_all(now);
        if self.is_stuck() {
            self.ask = self.ask.max(now + self.patience());
        }
    }

    /// What was sent before the segment that the peer echoes has arrived or is lost. `[K10]`, `[K11]`
    fn learn(&mut self, now: Time, heard: &Heard) {
        let arrived = u64::from(heard.arrived.wrapping_sub(self.arrived));
        self.arrived = heard.arrived;
        let before = heard.echo.saturating_sub(self.reordering);
        let (mut segments, mut payload_bytes) = (0, 0);
        while let Some(&Transmission { sent, start, payload_bytes: bytes }) = self.by_time.front()
            // The one that is echoed has arrived.
            && (sent < before || (sent == heard.echo && before == heard.echo))
        {
            let is_echoed = sent == heard.echo;
            self.by_time.pop_front();
            let is_in_flight = self.expired == 0;
            self.expired = self.expired.saturating_sub(1);
            if is_in_flight && let Some(block) = self.block(start) {
                block.in_flight -= 1;
                block.unreported += 1;
            }
            if bytes > 0 {
                segments += 1;
                payload_bytes += u64::from(bytes);
            }
            if is_echoed {
                break;
            }
        }
        if arrived > segments + LATE_AT_ONCE && self.reordering == 0 {
            let undecided = self.by_time.iter().take_while(|transmission| transmission.sent <= heard.echo).count();
            if arrived > segments + LATE_AT_ONCE + undecided as u64 {
                self.reordering = ticks(self.round_trip.least) / 4;
            }
        }
        let bits = (payload_bytes + segments * self.shape.header_bytes) * 8;
        self.loss.add(segments, bits, arrived);
        if let Some(length) = &mut self.length {
            let lost = segments.saturating_sub(arrived);
            let mean = payload_bytes.checked_div(segments).unwrap_or(0);
            length.on_acknowledged(now, segments - lost, mean * (segments - lost));
            for _ in 0..lost {
                length.on_lost(now, mean as u32);
            }
        }
        self.follow_length(now);
    }

    /// How long to wait for an answer.
    fn patience(&self) -> Time {
        self.round_trip.timeout().unwrap_or(self.opening.wait)
    }

    /// When the open block is closed, if there is one.
    fn closes_at(&self) -> Time {
        match self.blocks.back() {
            Some(block) if !block.is_closed => {
                let round_trip = self.round_trip.smoothed();
                let span =
                    round_trip.map_or(self.opening.first, |time| Time::from_ps(time.as_ps() / OPEN_PER_ROUND_TRIP));
                block.opened + span.max(self.shape.linger)
            }
            _ => Time::NEVER,
        }
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        self.give_up(now);
        if self.is_link_down {
            return;
        }
        if now >= self.closes_at() {
            self.close_last(now);
        }
        match self.round_trip.timeout() {
            Some(timeout) => {
                let before = ticks(now).saturating_sub(ticks(timeout));
                let mut has_expired = now >= self.report_due;
                while self.by_time.get(self.expired).is_some_and(|transmission| transmission.sent < before) {
                    self.expire();
                    has_expired = true;
                }
                // What may have been swallowed by an outage says nothing about the loss.
                let long_before = before.saturating_sub(ticks(timeout));
                while self.expired > 0 && self.by_time.front().is_some_and(|oldest| oldest.sent < long_before) {
                    self.by_time.pop_front();
                    self.expired -= 1;
                }
                if has_expired {
                    self.settle_all(now);
                }
                let is_waiting = !self.blocks.is_empty() || self.forward.is_awaited();
                self.is_silent = is_waiting && now.since(self.heard) > timeout.times(SILENT_TIMEOUTS);
            }
            None if now >= self.opening.at => {
                // Nothing has ever been answered: one segment at a time finds out whether anything can be.
                self.opening.wait = self.opening.wait.times(2).min(self.opening.longest);
                self.opening.at = now + self.opening.wait;
                self.expire();
                self.close_last(now);
                if let Some(block) = self.blocks.front_mut()
                    && block.owed == 0
                {
                    block.owed = 1;
                    self.owed += 1;
                }
            }
            None => {}
        }
    }

    /// The oldest transmission is taken for lost.
    fn expire(&mut self) {
        let Some(&Transmission { start, .. }) = self.by_time.get(self.expired) else { return };
        self.expired += 1;
        if let Some(block) = self.block(start) {
            block.in_flight -= 1;
            self.account.timeouts += 1;
        }
    }

    pub(in super::super) fn on_link(&mut self, now: Time, is_up: bool) {
        self.is_link_down = !is_up;
        if is_up {
            // What the outage may have swallowed has waited long enough.
            self.probe = now;
            self.is_silent = false;
            self.forward.on_link_up();
        }
    }

    /// The link's bit error rate is this from now on.
    pub(in super::super) fn on_ber(&mut self, now: Time, ber: f64) {
        self.loss.hear(ber);
        if let Some(length) = &mut self.length {
            length.hear(ber);
        }
        self.follow_length(now);
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        let too_old = self.forward.next_due();
        if self.is_link_down {
            return too_old;
        }
        let overdue = match (self.round_trip.timeout(), self.by_time.get(self.expired)) {
            (Some(timeout), Some(oldest)) => span(oldest.sent + ticks(timeout) + 1),
            _ => Time::NEVER,
        };
        overdue.min(self.opening.at).min(self.closes_at()).min(self.report_due).min(too_old)
    }

    #[inline]
    pub(in super::super) fn ready_at(&self) -> Time {
        if self.is_link_down {
            return Time::NEVER;
        }
        if self.is_silent {
            let has_probe = self.blocks.iter().any(|block| block.missing() > 0) || self.forward.is_pending();
            return if has_probe { self.probe } else { Time::NEVER };
        }
        if self.owed > 0 || self.is_end_due() {
            return Time::ZERO;
        }
        let other = if self.is_stuck() { self.ask } else { self.source_at() };
        other.min(self.forward.alone_at(self.patience()))
    }

    pub(in super::super) fn awaits_since(&self) -> Time {
        if self.blocks.is_empty() && !self.is_stuck() && !self.forward.is_awaited() { Time::NEVER } else { self.heard }
    }

    #[inline]
    pub(in super::super) fn limits(&self) -> (u64, u64) {
        (self.first, self.next)
    }

    pub(in super::super) fn is_all_acknowledged(&self) -> bool {
        let is_end = self.blocks.iter().all(|block| block.bytes == 0);
        self.is_closing && self.unsent_bytes == 0 && is_end && !self.forward.is_pending()
    }

    pub(in super::super) fn is_done(&self) -> bool {
        self.has_end && self.blocks.is_empty() && !self.forward.is_pending()
    }

    pub(in super::super) fn take_writable(&mut self) -> bool {
        let is_writable = self.is_full && self.unsent_bytes < self.room_bytes;
        self.is_full &= !is_writable;
        is_writable
    }
}

/// More arrivals at once than were sent by then mean that segments overtake each other; copies that a network makes do not.
const LATE_AT_ONCE: u64 = 2;
