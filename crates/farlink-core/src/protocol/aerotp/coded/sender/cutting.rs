//! Cutting of written data into blocks, and of blocks into symbols.

use crate::payload::Payload;
use crate::time::Time;

use super::super::super::clock::ticks;
use super::super::super::outgoing::Outgoing;
use super::super::outbound::Outbound;
use super::{Sender, Transmission};

/// A block is closed after it has been open for this part of a round trip, so that its losses need not wait longer for repair.
const OPEN_PER_ROUND_TRIP: u64 = 4;

impl<D: Payload> Sender<D> {
    /// When unsent data can be sent; never if there is none, or the window is full.
    #[inline]
    pub(super) fn source_at(&self) -> Time {
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

    /// Whether the end of the stream has to be sent in a segment of its own; the peer must have skipped all abandoned data before
    /// it. `[V9]`
    pub(super) fn is_end_due(&self) -> bool {
        let has_sent_all = self.unsent_bytes == 0 && self.blocks.back().is_none_or(|b| !b.has_unsent());
        self.is_closing && has_sent_all && !self.has_end && self.next <= self.window_end
    }

    /// The next unsent data.
    pub(super) fn source(&mut self, now: Time) -> Outgoing<D> {
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

    /// Adds written data to the open block, or opens one.
    pub(super) fn extend(&mut self, now: Time) {
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
            // The whole block is known, so all its symbols get equal lengths and none is padded.
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
        // Coding needs fixed data: a block is described once no more data is added.
        block.is_closed = is_last || is_partial || block.bytes == block.most_bytes;
    }

    /// Closes the last block.
    pub(super) fn close_last(&mut self, now: Time) {
        if let Some(block) = self.blocks.back_mut()
            && !block.is_closed
        {
            block.is_closed = true;
            let last = self.blocks.len() - 1;
            self.settle(last, now);
        }
    }

    /// When the open block is closed, if there is one.
    pub(super) fn closes_at(&self) -> Time {
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

    /// Sets the symbol length of new blocks to the present length of packets.
    pub(super) fn follow_length(&mut self, now: Time) {
        if let Some(length) = &mut self.length {
            self.shape.symbol_bytes = length.next_bytes(now).min(self.shape.most_symbol_bytes);
        }
    }
}
