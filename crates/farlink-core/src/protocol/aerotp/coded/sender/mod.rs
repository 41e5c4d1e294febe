//! Sends a stream block by block, until each block is complete at the receiver.

mod abandon;
mod answers;
mod cutting;
mod owing;
mod waiting;

use std::collections::VecDeque;

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::length::Length;
use crate::time::Time;

use super::super::config::{AerotpConfig, LARGEST_HALF_OPEN};
use super::super::fec::CRC_BYTES;
use super::super::forward::Forward;
use super::super::loss::Loss;
use super::super::outgoing::{Account, Outgoing, ROOM_BYTES};
use super::super::packet_size::PacketSize;
use super::super::rate::Outcomes;
use super::super::reordering::Reordering;
use super::super::round_trip::RoundTrip;
use super::super::segment::{OPENING_BYTES, REPAIR_BYTES};
use super::super::window_requests::RemainingWindow;
use super::outbound::Outbound;

/// The sending half of a coded stream.
#[derive(Clone, Debug)]
pub(in super::super) struct Sender<D> {
    unsent: VecDeque<D>,
    unsent_bytes: u64,
    /// How much data may be written ahead of the sent data.
    room_bytes: u64,
    /// Since when unsent data, too little for a symbol, has waited for more.
    waiting_since: Time,
    is_closing: bool,
    /// Whether a block has the end of the stream.
    has_end: bool,
    /// Contiguous blocks from the first unacknowledged one on.
    blocks: VecDeque<Outbound>,
    /// Data that is too old, where there is a deadline.
    forward: Forward,
    /// Transmissions, the oldest first; the answer to the first `expired` of them is overdue.
    by_time: VecDeque<Transmission>,
    expired: usize,
    /// When a report on a block is overdue.
    report_due: Time,
    /// Number of symbols owed to all blocks together.
    owed: u64,
    first: u64,
    /// First unsent position.
    next: u64,
    window_end: u64,
    round_trip: RoundTrip,
    opening: Opening,
    /// When the last segment arrived, or the wait for one began.
    silent_since: Time,
    /// Earliest time of the next segment while the peer is silent.
    probe: Time,
    /// When to ask the peer for a report, if no other segment would bring one.
    ask: Time,
    reordering: Reordering,
    latest_echo: u64,
    /// Number of segments that had arrived by the last report.
    arrived: u32,
    is_link_down: bool,
    is_silent: bool,
    is_full: bool,
    loss: Loss,
    length: Option<Length>,
    shape: Shape,
    /// Outcomes of transmissions.
    pub(in super::super) outcomes: Outcomes,
    /// When the segments were sent that an answer tells of.
    sent_times: Vec<u64>,
    pub(in super::super) account: Account,
}

instants! {
    Sender<D>: waiting_since, blocks, forward, by_time, report_due, opening, silent_since, probe, ask, reordering, length, outcomes;
    ticks: latest_echo, sent_times;
    fixed: unsent, unsent_bytes, room_bytes, is_closing, has_end, expired, owed, first, next, window_end, round_trip, arrived,
    is_link_down, is_silent, is_full, loss, shape, account
}

/// How blocks are cut. `[K2]`
#[derive(Clone, Copy, Debug)]
struct Shape {
    header_bytes: u64,
    most_symbol_bytes: u32,
    /// Length of a symbol of the next block.
    symbol_bytes: u32,
    block_symbols: u64,
    /// Largest length of a block, such that the peer's buffer holds several.
    block_bytes: u64,
    completion: f64,
    /// How long data that does not fill a symbol waits for more.
    linger: Time,
}

/// Retransmission before the round-trip time is known.
#[derive(Clone, Copy, Debug)]
struct Opening {
    at: Time,
    wait: Time,
    first: Time,
    longest: Time,
}

instants! { Opening: at; fixed: wait, first, longest }

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent: u64,
    /// Of its block.
    start: u64,
    payload_bytes: u32,
}

instants! { Transmission: ; ticks: sent; fixed: start, payload_bytes }

/// Least number of blocks that the receiver's buffer holds.
const LEAST_BLOCKS: u64 = 4;

impl<D: Payload> Sender<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let coded = config.coded.unwrap_or_default();
        let wait = config.initial_rto_s.time();
        let most_symbol_bytes = config.packet_size().symbol_bytes() as u32;
        let header_bytes = config.header_bytes.whole() + u64::from(CRC_BYTES + u32::from(REPAIR_BYTES));
        let length = config.length(header_bytes, u64::from(most_symbol_bytes));
        let mut sender = Sender {
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            room_bytes: ROOM_BYTES,
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
            opening: Opening { at: Time::NEVER, wait, first: wait, longest: config.longest_repetition() },
            silent_since: Time::ZERO,
            probe: Time::ZERO,
            ask: Time::ZERO,
            reordering: Reordering::default(),
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
                block_bytes: config.receive_buffer_bytes.map_or(LARGEST_HALF_OPEN, |bytes| bytes.whole())
                    / LEAST_BLOCKS,
                completion: coded.completion.get(),
                linger: config.mack_timeout_s.time(),
            },
            outcomes: Outcomes::default(),
            sent_times: Vec::new(),
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
                if self.blocks.is_empty() {
                    self.silent_since = self.silent_since.max(now); // the peer's window is full: questions begin now
                }
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

    pub(in super::super) fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    pub(in super::super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Whether no answer is due.
    fn is_flight_empty(&self) -> bool {
        self.by_time.len() == self.expired && self.report_due == Time::NEVER
    }

    /// Whether the connection would stall without a request for a report.
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
        if self.is_flight_empty() && !self.forward.is_awaited() && !self.is_stuck() {
            self.silent_since = self.silent_since.max(now); // the wait for an answer begins now
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

    /// Delays the next segment while the peer is silent.
    fn note_probe(&mut self, now: Time) {
        self.probe = now + RoundTrip::probe_interval(self.patience());
    }

    fn block(&mut self, start: u64) -> Option<&mut Outbound> {
        let index = self.blocks.binary_search_by_key(&start, |block| block.start).ok()?;
        self.blocks.get_mut(index)
    }

    /// Packets have another size from the next block on: the symbols of a block have one length. `[S3]`
    pub(in super::super) fn set_packet_size(&mut self, now: Time, size: PacketSize) {
        self.shape.most_symbol_bytes = size.symbol_bytes() as u32;
        self.shape.symbol_bytes = self.shape.most_symbol_bytes;
        if let Some(length) = &mut self.length {
            length.set_most_bytes(size.symbol_bytes());
        }
        self.follow_length(now);
        self.close_last(now);
    }

    /// Takes a report of the link's bit error rate.
    pub(in super::super) fn on_ber(&mut self, now: Time, ber: f64) {
        self.loss.set_link_ber(ber);
        if let Some(length) = &mut self.length {
            length.set_link_ber(now, ber);
        }
        self.follow_length(now);
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
        if self.blocks.is_empty() && !self.is_stuck() && !self.forward.is_awaited() {
            Time::NEVER
        } else {
            self.silent_since
        }
    }

    #[inline]
    pub(in super::super) fn limits(&self) -> (u64, u64) {
        (self.first, self.next)
    }

    /// The rest of the peer's window, if there is data for it and the round-trip time is known.
    pub(in super::super) fn left(&self) -> Option<RemainingWindow> {
        let answer = self.round_trip.smoothed().filter(|_| self.unsent_bytes > 0)?;
        Some(RemainingWindow { bytes: self.window_end.saturating_sub(self.next), answer })
    }

    pub(in super::super) fn is_all_acknowledged(&self) -> bool {
        let is_end = self.blocks.iter().all(|block| block.bytes == 0);
        self.is_closing && self.unsent_bytes == 0 && is_end && !self.forward.is_pending()
    }

    pub(in super::super) fn is_done(&self) -> bool {
        self.has_end && self.blocks.is_empty() && !self.forward.is_pending()
    }

    pub(in super::super) fn take_writable(&mut self) -> bool {
        let is_writable = self.is_full && self.unsent_bytes <= self.room_bytes / 2;
        self.is_full &= !is_writable;
        is_writable
    }
}
