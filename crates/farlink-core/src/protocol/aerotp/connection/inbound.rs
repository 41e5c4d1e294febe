//! Handling of received segments: acknowledgements are checked against the sent data, and data gets its position in the
//! stream.

use crate::endpoint::Packet;
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
#[cfg(test)]
use super::model;
use crate::protocol::aerotp::clock::{held_span, span, ticks};
use crate::protocol::aerotp::config::LARGEST_BUFFER;
use crate::protocol::aerotp::fec::Fec;
use crate::protocol::aerotp::incoming::Incoming;
use crate::protocol::aerotp::mack_fields::MackFields;
use crate::protocol::aerotp::mode::Mode;
use crate::protocol::aerotp::parity::Parity;
use crate::protocol::aerotp::rate::{Answer, Told};
use crate::protocol::aerotp::segment::{FEC_BYTES, Flags, MOST_EDGES, Mack, Repair, Segment};

impl<D: Payload> Connection<D> {
    pub(super) fn on_mack(&mut self, now: Time, segment: &Segment<D>, mack: &Mack) {
        match self.checked_mack_fields(now, segment, mack) {
            Some(fields) => {
                self.adapt_to(now, &fields);
                self.sending.on_mack(now, &fields);
                let MackFields { echo, round_trip, .. } = fields;
                let waited = self.wait_on_way_back(now, segment, round_trip);
                let round_trip = round_trip.since(waited);
                let held = held_span(mack.held);
                let arrived_bytes = fields.arrived_bytes(self.size.data_bytes());
                let has_gaps = fields.has_gaps();
                if let Some(outcomes) = self.sending.outcomes() {
                    outcomes.is_wanted = self.rate.wants_outcomes();
                    self.rate.on_outcomes(now, outcomes);
                }
                let Told { marked, arrived_bytes } = self.rate.add(&mut self.told, mack.marked, arrived_bytes);
                let answer = Answer { echo, round_trip, waited, held, marked, arrived_bytes, has_gaps };
                self.rate.on_answer(now, &answer);
                let (left, rate) = (self.sending.left(), self.rate.pacer.bytes_per_s());
                self.window_requests.on_window(now, u64::from(mack.window), left, rate);
                self.allowance.on_echo(mack.echo);
                self.lifecycle.on_mack(self.sending.is_done());
            }
            None => self.dropped.forged += 1,
        }
    }

    /// How long a MACK waited on the way back, which is no queue of the data. `[M1]`
    fn wait_on_way_back(&mut self, now: Time, segment: &Segment<D>, round_trip: Time) -> Time {
        if !self.clock.is_fine() {
            return Time::ZERO;
        }
        self.way_back.get_or_insert_default().on_mack(now, segment.timestamp, segment.wire_bytes(), round_trip)
    }

    /// Adapts the parity to a report of errors.
    fn adapt_to(&mut self, now: Time, fields: &MackFields) {
        let fec = Fec::new(self.size.payload_bytes() as u32, self.fec_words());
        if let Some(errors) = &mut self.errors
            && errors.is_due(now)
            && errors.on_report(fields.ack, fields.window, fields.damaged, fec.mends_of_each() + 1)
        {
            self.adapt();
        }
    }

    /// Chooses the parity that suffices for the estimated errors. `[U8]`
    pub(super) fn adapt(&mut self) {
        // The room for parity and payload together, in a segment without the opening field.
        let room = (self.size.payload_bytes() as u32).saturating_sub(u32::from(FEC_BYTES));
        let words = self.errors.and_then(|errors| errors.words(room, self.size.most_fec_words()));
        if let Some(words) = words.filter(|_| self.mode == Mode::QuasiReliable) {
            self.size.parity = Parity::Words(words);
        }
    }

    /// Checks an acknowledgement: it must refer to sent data and echo a timestamp that was sent. `[A8]`
    pub(super) fn checked_mack_fields(&self, now: Time, segment: &Segment<D>, mack: &Mack) -> Option<MackFields> {
        let (first, next) = self.sending.limits();
        let base = self.number(first);
        let position = |number: u32| {
            let ahead = i64::from(number.wrapping_sub(base) as i32);
            first.checked_add_signed(ahead).filter(|&position| position <= next)
        };
        let ack = position(segment.sequence)?;
        // The segment arrived at the peer before the peer held it for that time.
        let arrived = Time::from_ps(now.as_ps().checked_sub(held_span(mack.held).as_ps())?);
        let echo = self
            .clock
            .instant(arrived, mack.echo)
            .filter(|&echo| self.first_sent.is_some_and(|first| echo >= first))?;
        if self.high_water_marks.oldest().is_some_and(|mark| echo < mark) {
            return None; // of a past cycle of the sequence numbers `[R8]`
        }
        let mut fields = MackFields {
            ack: ack.max(first),
            echo,
            round_trip: span(ticks(arrived).saturating_sub(echo)),
            window_end: ack + u64::from(mack.window).min(LARGEST_BUFFER),
            blocks: [(0, 0); MOST_EDGES / 2],
            block_count: 0,
            is_from_start: mack.is_from_start,
            is_to_end: mack.is_to_end,
            window: mack.window,
            damaged: mack.damaged,
            deficits: [(0, 0); MOST_EDGES / 2],
            deficit_count: 0,
            counts_segments: mack.counts_symbols,
            arrived: 0,
            skipped: segment.skipped,
            overtaken_by: segment.overtaken_by.map(|ticks| self.clock.microseconds(ticks)),
        };
        if mack.counts_symbols {
            let mut pairs = mack.edges.blocks();
            fields.arrived = pairs.next()?.0;
            for (start, missing) in pairs {
                fields.deficits[fields.deficit_count] = (position(start)?, u64::from(missing));
                fields.deficit_count += 1;
            }
            return Some(fields);
        }
        let mut last = ack;
        for (start, end) in mack.edges.blocks() {
            let (start, end) = (position(start)?, position(end)?);
            if start < last || end < start {
                return None;
            }
            last = end;
            fields.blocks[fields.block_count] = (start, end);
            fields.block_count += 1;
        }
        Some(fields)
    }

    pub(super) fn on_data(&mut self, now: Time, segment: &Segment<D>) {
        let Some(peer) = &self.peer else { return };
        let initial = peer.initial;
        if peer.is_of_past_round(now, segment.timestamp) {
            self.dropped.stray += 1;
            return;
        }
        self.go_forward(initial, segment);
        if let Some(rate) = segment.mack_bytes_per_s {
            self.mack_pacer.set_bytes_per_s(f64::from(rate));
        }
        let base = self.receiving.next_position();
        let is_end = segment.flags.has(Flags::AFIN);
        let is_question = segment.payload.is_empty() && !is_end;
        let ahead = segment.sequence.wrapping_sub(initial.wrapping_add(base as u32)) as i32;
        // A peer that has received segments of this side may request a longer window. `[W1]`
        if is_question && ahead > 0 && segment.forward.is_none() && !segment.flags.has(Flags::ASYN) {
            self.receiving.make_room(ahead as u64);
        }
        // An idle opener asks until its address is proven. `[G3]`
        if is_question
            && ahead <= 1 // its end takes one number
            && self.is_passive
            && !self.allowance.is_proven()
            && !segment.flags.has(Flags::ASYN)
        {
            self.allowance.on_short();
            self.is_proof_due = true;
        }
        // An empty segment asks about data that has arrived; its own position has no meaning. `[C9]`
        let position = if is_question { Some(base) } else { base.checked_add_signed(i64::from(ahead)) };
        #[cfg(test)]
        let position = match self.without {
            Some(model::Without::DuplicateFilter) => position.map(|position| position.max(base)),
            _ => position,
        };
        // The description of a block requests room for the whole block. `[B7]`
        let described = segment.repair.map_or(0, |repair| {
            i64::from(repair.bytes) - i64::from(segment.sequence.wrapping_sub(repair.start) as i32)
        });
        let asked = described.max(segment.payload.len() as i64);
        let most = self.most_unknown();
        let Some(position) =
            position.filter(|position| position.checked_add_signed(asked).is_some_and(|end| end <= most))
        else {
            self.dropped.outside += 1;
            return;
        };
        let incoming = Incoming {
            position,
            payload: segment.payload.clone(),
            is_end,
            repair: segment.repair.map(|repair| Repair { start: repair.start.wrapping_sub(initial), ..repair }),
            timestamp: segment.timestamp,
            is_opening: segment.flags.has(Flags::ASYN),
        };
        if !self.receiving.on_segment(now, incoming) {
            self.dropped.outside += 1;
        }
        self.note_progress();
    }

    fn note_progress(&mut self) {
        if let Some(peer) = &mut self.peer {
            peer.on_progress(self.receiving.next_position());
        }
        if self.receiving.is_complete() {
            self.lifecycle.on_peer_ended();
        }
    }

    /// Skips data that the peer has given up. An attacker who does not see the peer's segments would have to guess the
    /// tag and the position in the stream. `[V7]`
    #[inline]
    fn go_forward(&mut self, initial: u32, segment: &Segment<D>) {
        let Some(number) = segment.forward else { return };
        let next = self.receiving.next_position();
        let base = initial.wrapping_add(next as u32);
        let ahead = i64::from(number.wrapping_sub(base) as i32);
        if ahead <= 0 {
            return; // already past that position
        }
        let own = (segment.sequence.wrapping_sub(base) as i32).unsigned_abs();
        let is_near = u64::from(own) <= self.receiving.buffer_bytes();
        let is_right = is_near && ahead as u64 <= LARGEST_BUFFER && self.receiving.go_forward(next + ahead as u64);
        self.dropped.outside += u64::from(!is_right);
        self.note_progress();
    }

    /// Handles a datagram. `[D1]`
    pub(super) fn on_datagram(&mut self, now: Time, segment: &Segment<D>) {
        let incoming = Incoming {
            position: 0,
            payload: segment.payload.clone(),
            is_end: false,
            repair: None,
            timestamp: segment.timestamp,
            is_opening: false,
        };
        if !self.receiving.on_segment(now, incoming) {
            self.dropped.outside += 1;
        }
    }
}
