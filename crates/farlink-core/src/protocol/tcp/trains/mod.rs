//! A shortcut for the simulator: usual segments one by one, and trains of equally spaced segments in one step.
//!
//! Everything here could go through [`Endpoint`] with the same outcome, and the simulator falls back to that whenever the shortcut
//! says so. It exists because a segment with all its options costs more to build and copy than to handle, and because segments at
//! equal distances mostly have the same effect. A usual segment has no options, except for one block of a selective acknowledgement.
//! Only the feature `trains` compiles this module; a deployed endpoint has no part of it.

mod segment;
mod train;

pub use segment::PlainSegment;
pub use train::{Plain, Train};

use crate::endpoint::{Ecn, Endpoint};
use crate::payload::Virtual;
use crate::time::Time;

use super::congestion::Control;
use super::connection::{State, TcpConnection};
use super::ecn::Stamp;
use super::segment::{Flags, SackBlock};
use super::span::Span;
use super::variant::Reaction;
use super::window::Phase;

impl TcpConnection<Virtual> {
    /// Whether this side's segments are plain. With timestamps every segment has options, and so has an acknowledgement that
    /// reports more than one block.
    #[inline(always)]
    fn speaks_plainly(&self) -> bool {
        let reports_much = self.sizes.uses_sack && self.rx.has_report() && self.rx.only_block().is_none();
        !reports_much && !self.sizes.has_timestamps && self.extensions.is_none()
    }

    /// Whether neither the segment nor the state of the connection has to do with its beginning or end.
    #[inline(always)]
    fn is_usual(&self, plain: &PlainSegment) -> bool {
        let is_marked = plain.ecn == Ecn::Congestion;
        plain.flags == Flags::ACK && !is_marked && self.state == State::Established && !self.rx.has_early_fin()
    }

    #[inline(always)]
    fn plain_segment(&self, start: u64, header_bytes: u16, payload_bytes: u32, stamp: Stamp) -> PlainSegment {
        let sack =
            if self.sizes.uses_sack && self.rx.has_report() { self.report_block() } else { SackBlock::default() };
        let sack_bytes = if sack.is_empty() { 0 } else { 4 + 8 };
        PlainSegment {
            seq: self.initial_seq.wrapping_add(start as u32),
            ack: self.peer_initial_seq.wrapping_add(self.rx.stream.next as u32),
            payload_bytes,
            header_bytes: header_bytes + sack_bytes,
            window: self.window_field(),
            flags: Flags::ACK.with(stamp.flags),
            ecn: stamp.ecn,
            sack,
        }
    }

    /// The block of data that arrived out of order; empty if there is none.
    #[inline(never)]
    fn report_block(&self) -> SackBlock {
        let number = |offset: u64| self.peer_initial_seq.wrapping_add(offset as u32);
        self.rx
            .only_block()
            .map_or_else(SackBlock::default, |(left, right)| SackBlock { left: number(left), right: number(right) })
    }

    /// Handles the packets of a train one by one where there is no shortcut, until one needs more than this endpoint.
    fn walk(&mut self, train: &Train<PlainSegment>, sent: &mut Vec<Train<PlainSegment>>) -> u32 {
        for n in 0..train.count {
            let now = train.time(n);
            if !self.handle_plain(now, &train.first.ahead(train.step, n)) {
                return n;
            }
            loop {
                match self.poll_plain(now) {
                    Plain::Send(plain) => {
                        let one = Train::one(plain, now);
                        if !sent.last_mut().is_some_and(|last| last.couple(&one)) {
                            sent.push(one);
                        }
                    }
                    Plain::Nothing => break,
                    Plain::Ask => return n + 1,
                }
            }
            // Actions that are due before the next packet arrives must come before it.
            if self.poll_timeout().is_some_and(|timeout| timeout < train.time(n + 1)) {
                return n + 1;
            }
        }
        train.count
    }

    /// Handles data: all at once if it is in order, one by one if it follows a gap.
    fn receive_train(&mut self, train: &Train<PlainSegment>, sent: &mut Vec<Train<PlainSegment>>) -> u32 {
        let &Train { ref first, count, at, gap, .. } = train;
        let start = Self::unwrap(first.seq, self.peer_initial_seq, self.rx.stream.next);
        // This side has nothing to send but acknowledgements, so the peer's acknowledgements can only change the window.
        let is_idle = self.window.una == self.window.end
            && Self::unwrap(first.ack, self.initial_seq, self.window.una) == self.window.una;
        if is_idle && start > self.rx.stream.next {
            return self.receive_early_train(train, start, sent);
        }
        if !is_idle || start != self.rx.stream.next || self.rx.stream.has_gaps() || self.window.needs_look {
            return 0;
        }
        let next = self.rx.stream.next;
        let Some(taken) = self.rx.on_data_train(at, gap, first.payload_bytes, count) else { return 0 };
        self.handle_acknowledgement(at, &first.ack_fields());
        if taken.acks > 0 {
            let every = u32::from(self.rx.ack_every);
            let ack = next + u64::from(taken.first + 1) * u64::from(first.payload_bytes);
            let mut acknowledgement = self.plain_segment(self.window.max, self.sizes.ack_header_bytes, 0, self.stamp());
            acknowledgement.ack = self.peer_initial_seq.wrapping_add(ack as u32);
            sent.push(Train {
                first: acknowledgement,
                step: every * first.payload_bytes,
                count: taken.acks,
                at: train.time(taken.first),
                gap: gap.times(u64::from(every)),
            });
        }
        taken.count
    }

    /// Handles data after a gap. Nothing can be read until the gap is filled, and every segment is acknowledged.
    #[inline(never)]
    fn receive_early_train(
        &mut self,
        train: &Train<PlainSegment>,
        start: u64,
        sent: &mut Vec<Train<PlainSegment>>,
    ) -> u32 {
        let &Train { ref first, count, at, gap, .. } = train;
        let (len, end) = (first.payload_bytes, self.rx.stream.early_end());
        if start > end && count > 1 {
            // The first segment of a block; the following ones extend it.
            return self.walk(&Train { count: 1, ..*train }, sent);
        }
        let is_quiet =
            !self.window.needs_look && self.poll_timeout().is_none_or(|timeout| timeout > train.time(count - 1));
        let all = len.checked_mul(count).filter(|_| start == end && is_quiet && first.sack.is_empty());
        if !all.is_some_and(|all| self.rx.on_early_train(start, len, count, Virtual(all))) {
            return self.walk(train, sent);
        }
        self.handle_acknowledgement(at, &first.ack_fields());
        let mut report = self.plain_segment(self.window.max, self.sizes.ack_header_bytes, 0, self.stamp());
        let mut step = 0;
        if !report.sack.is_empty() {
            step = len;
            report.sack.right = self.peer_initial_seq.wrapping_add((start + u64::from(len)) as u32);
        }
        sent.push(Train { first: report, step, count, at, gap });
        count
    }

    /// Sends all full segments of new data below `end` that may be sent without further checks; returns their number.
    #[inline(always)]
    fn release(&mut self, end: u64) -> u32 {
        let window = &mut self.window;
        let mut count = 0;
        while let Some(span) = window.next_clear()
            && span.start + u64::from(span.len) <= end
        {
            window.nxt += u64::from(span.len);
            count += 1;
        }
        window.max = window.max.max(window.nxt);
        count
    }

    /// Handles acknowledgements: of new data while no loss is being repaired all at once, others one by one.
    fn acknowledge_train(&mut self, train: &Train<PlainSegment>, sent: &mut Vec<Train<PlainSegment>>) -> u32 {
        let mut ack = Self::unwrap(train.first.ack, self.initial_seq, self.window.una);
        // Steps that involve the application or the last segment are left to the usual path.
        let limit = self.window.max.min(self.writable_at);
        let is_usual = train.first.sack.is_empty()
            && self.window.phase == Phase::Open
            && self.window.nxt == self.window.max
            && !self.window.needs_look
            && !self.window.retransmit_first
            && ack > self.window.una
            && train.step > 0
            && ack < limit
            && !self.rx.ack_now
            && self.rx.ack_deadline == Time::NEVER
            && !self.window.records.is_kept()
            && !self.paces
            && !self.window.is_probing
            && !self.pacer.is_holding(train.at)
            && !(self.window.has_reduced && self.notification.is_agreed())
            && self.running.only_grows();
        if !is_usual {
            return self.walk(train, sent);
        }
        let offered = u64::from(train.first.window) << self.sizes.window_shift;
        let solid_end = self.buffer_start + self.buffer.front_len() as u64;
        let (mut now, mut count) = (train.at, 0);
        let stamp = self.data_stamp(self.window.nxt); // new data, but not the first after a reduction
        // The first acknowledgement ends a series of duplicates and their limited transmit.
        (self.window.dup_acks, self.window.extra) = (0, 0);
        // The previous acknowledgement released one segment, so that another one makes a train.
        let mut continues = false;
        while count < train.count && ack < limit {
            now = train.time(count);
            self.window.peer_end = self.window.peer_end.max(ack + offered);
            let acked = ack - self.window.una;
            self.window.now = now;
            self.window.advance_open(ack);
            self.time_round_trip(now, ack);
            self.control.on_acknowledged(&mut self.window, acked);
            self.window.update_open(self.written_end);
            let nxt = self.window.nxt;
            let released = self.release(solid_end);
            if released > 0 {
                // The bookkeeping of all variants for new data outside recovery; see `note_sent`.
                if self.timed.is_none() {
                    self.timed = Some((nxt + u64::from(self.window.mss), now));
                }
                self.last_sent = now;
                self.peak_in_flight = self.peak_in_flight.max(self.window.max - ack);
            }
            if released == 1
                && continues
                && let Some(last) = sent.last_mut()
            {
                last.count += 1;
                last.gap = train.gap;
            } else if released > 0 {
                let first = self.plain_segment(nxt, self.sizes.data_header_bytes, self.window.mss, stamp);
                sent.push(Train { first, step: self.window.mss, count: released, at: now, gap: Time::ZERO });
            }
            continues = released == 1;
            count += 1;
            ack += u64::from(train.step);
            if self.window.needs_look || self.window.next_clear().is_some() {
                break;
            }
        }
        self.timeouts_in_a_row = 0;
        self.timer.on_acknowledged(now, false);
        let una = self.window.una;
        self.buffer.advance((una - self.buffer_start) as usize);
        self.buffer_start = una;
        if !sent.is_empty() {
            self.rx.on_ack_sent();
        }
        count
    }
}

impl TcpConnection<Virtual> {
    /// As [`Endpoint::handle_packet`], for an intact segment. Returns `false`, without any effect, if `handle_packet` is to be used.
    #[inline(always)]
    pub fn handle_plain(&mut self, now: Time, plain: &PlainSegment) -> bool {
        if !self.is_usual(plain) || self.sizes.has_timestamps || self.extensions.is_some() {
            return false;
        }
        self.handle_acknowledgement(now, &plain.ack_fields());
        if plain.payload_bytes > 0 {
            let start = Self::unwrap(plain.seq, self.peer_initial_seq, self.rx.stream.next);
            self.rx.on_data(now, start, &Virtual(plain.payload_bytes));
        }
        true
    }

    /// As [`Endpoint::poll_transmit`].
    #[inline(always)]
    pub fn poll_plain(&mut self, now: Time) -> Plain<PlainSegment> {
        if !self.speaks_plainly() {
            return Plain::Ask;
        }
        if self.window.una == self.window.max {
            self.restart_if_idle(now);
        }
        let is_held_back = self.is_holding_back(now);
        let mut span = if is_held_back { None } else { self.window.next_clear() };
        if span.is_none() && self.window.needs_look && !is_held_back {
            // Neither a SYN nor a FIN may be sent now.
            let is_data =
                self.state == State::Established && self.window.end == self.written_end && self.window.una > 0;
            if !is_data {
                return Plain::Ask;
            }
            span = self.next_span_by_variant(now);
        }
        let plain = if let Some(span) = span {
            let payload = self.buffer.slice((span.start - self.buffer_start) as usize, span.len as usize);
            let stamp = self.data_stamp(span.start);
            self.note_sent(now, Span { start: span.start, len: payload.0 });
            self.plain_segment(span.start, self.sizes.data_header_bytes, payload.0, stamp)
        } else if self.rx.ack_now {
            self.plain_segment(self.window.max, self.sizes.ack_header_bytes, 0, self.stamp())
        } else {
            return if self.events.is_empty() { Plain::Nothing } else { Plain::Ask };
        };
        self.rx.on_ack_sent();
        Plain::Send(plain)
    }

    /// Handles as many of a train's first segments as it can, each at its own time: [`handle_plain`](Self::handle_plain), then
    /// reading all data, then [`poll_plain`](Self::poll_plain) until there is nothing more to send. Appends the segments to send
    /// to `sent`, in order.
    ///
    /// Returns the number of segments handled. After the last of them, something may be left to send. The caller guarantees that
    /// nothing else happens to the endpoint meanwhile: no timeout, no write.
    pub fn handle_train(&mut self, train: &Train<PlainSegment>, sent: &mut Vec<Train<PlainSegment>>) -> u32 {
        if !self.is_usual(&train.first) || !self.speaks_plainly() || !self.events.is_empty() {
            0
        } else if train.first.payload_bytes > 0 {
            self.receive_train(train, sent)
        } else {
            self.acknowledge_train(train, sent)
        }
    }
}
