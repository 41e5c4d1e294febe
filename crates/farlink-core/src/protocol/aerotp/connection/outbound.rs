//! Choice of the next segment, and its header.

use crate::endpoint::Packet;
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::config::LARGEST_BUFFER;
use crate::protocol::aerotp::outgoing::Outgoing;
use crate::protocol::aerotp::parity::{Parity, words_within};
use crate::protocol::aerotp::segment::{FEC_BYTES, FORWARD_BYTES, Flags, OPENING_BYTES, REPAIR_BYTES, Repair, Segment};

impl<D: Payload> Connection<D> {
    /// The next segment, without its headers.
    pub(super) fn next_segment(&mut self, now: Time) -> Option<Segment<D>> {
        self.follow_mode_changes(now);
        if self.reset.is_some()
            && let Some(reset) = self.reset.take()
        {
            return Some(reset.segment(&self.config));
        }
        if self.challenge.is_some()
            && let Some(question) = self.challenge_segment(now)
        {
            return Some(question);
        }
        if !self.is_alive() {
            return None;
        }
        // Before MACKs, which may use up what is left.
        if self.allowance.is_short() && self.may_send() && self.wants_proof(now) && self.may_ask_for_proof() {
            return Some(self.proof_question(now));
        }
        if self.receiving.is_mack_due()
            && !self.mack_pacer.is_holding(now)
            && let Some(mack) = self.mack(now)
        {
            return Some(mack);
        }
        if !self.may_send() {
            let is_asking = self.has_states() && std::mem::take(&mut self.is_proof_due);
            return is_asking.then(|| self.plain_question(now));
        }
        let may_ask = self.allowance.left() >= self.constants.question_bytes;
        if may_ask {
            if self.rate.ask() {
                // Only modes that repeat what was not answered rely on an answer. `[C16]`
                let is_awaited = self.mode.is_acknowledged();
                return Some(if is_awaited { self.question(now) } else { self.plain_question(now) });
            }
            if let Some(wanted) = self.window_requests.take() {
                // Its sequence number says how far the window should extend beyond the sent data. `[W2]`
                let sequence = self.number(self.sending.limits().1 + wanted.min(LARGEST_BUFFER - 1));
                self.asked = self.asked.or(Some(now));
                return Some(Segment { sequence, ..self.blank(now) });
            }
            if let Some(rate) = self.way_back.as_mut().and_then(|way_back| way_back.take()) {
                return Some(Segment { mack_bytes_per_s: Some(rate), ..self.plain_question(now) });
            }
        }
        if self.rate.pacer.is_holding(now) {
            let pacer = &mut self.rate.pacer;
            if pacer.catches_up() {
                pacer.set_waited_for(self.sending.ready_at() <= pacer.next());
            }
            return None;
        }
        if self.sending.ready_at() <= now {
            self.allowance.on_short(); // from the first such segment on, which may be the only one to arrive `[G3]`
        } else if self.sending.only_waits() {
            if self.allowance.is_proven() {
                return self.next_empty(now, may_ask);
            }
            if !self.is_question_due && !self.is_proof_due && !self.rate.pacer.catches_up() {
                return None;
            }
        }
        let Some(most) = self.allowed_room() else { return self.ask_for_proof(now) };
        if let Some(Outgoing { position, payload, is_end, repair }) = self.sending.next(self.clock.sending(now), most) {
            let mut flags = Flags::default();
            if is_end {
                flags = flags.with(Flags::AFIN);
                self.lifecycle.on_end_sent();
                self.end_sent = self.end_sent.or(Some(now));
            }
            if repair.is_some() {
                flags = flags.with(Flags::REPAIR);
            }
            let taken = payload.len() as u32 + if repair.is_some() { u32::from(REPAIR_BYTES) } else { 0 };
            let room = if taken == 0 { u32::from(FORWARD_BYTES) } else { most.saturating_sub(taken) };
            let forward = self.forward(now, room);
            // The sequence number of an empty segment has no meaning, except to prove that the sender knows its
            // position in the stream. `[V7]`
            let is_free = forward.is_some() && payload.is_empty() && !is_end;
            let sequence = self.number(if is_free { self.sending.limits().0 } else { position });
            let repair = repair.map(|repair| Repair { start: self.initial.wrapping_add(repair.start), ..repair });
            let class = self.sending.class();
            return Some(Segment { sequence, class, flags, repair, forward, payload, ..self.blank(now) });
        }
        self.next_empty(now, may_ask)
    }

    /// The acknowledgement that is due.
    fn mack(&mut self, now: Time) -> Option<Segment<D>> {
        let initial = self.peer.as_ref()?.initial;
        let (ack, mut mack) = self.receiving.next_mack(now, |position| initial.wrapping_add(position as u32))?;
        let sequence = initial.wrapping_add(ack as u32);
        let most = self.most_unknown().saturating_sub(ack);
        mack.window = mack.window.min(u32::try_from(most).unwrap_or(u32::MAX));
        (mack.marked, mack.damaged) = (self.marked, self.damaged);
        // `[A11]` Where MACKs are limited, each byte counts.
        mack.has_distances = self.mack_pacer.is_on() && !mack.counts_symbols;
        let (skipped, overtaken_by) = (self.receiving.skipped(), self.receiving.take_overtaken());
        let flags = Flags::MACK;
        Some(Segment { sequence, flags, mack: Some(mack), skipped, overtaken_by, ..self.blank(now) })
    }

    /// A segment without data, where no data is to be sent.
    #[inline]
    fn next_empty(&mut self, now: Time, may_ask: bool) -> Option<Segment<D>> {
        self.rate.pacer.set_waited_for(false);
        if may_ask && std::mem::take(&mut self.is_question_due) {
            self.is_proof_due = false;
            return Some(self.question(now));
        }
        // Its answer is not awaited. `[G4]`
        (may_ask && std::mem::take(&mut self.is_proof_due)).then(|| self.plain_question(now))
    }

    /// An empty segment, which the peer answers at once. `[C9]`
    pub(super) fn question(&mut self, now: Time) -> Segment<D> {
        self.asked = self.asked.or(Some(now));
        self.plain_question(now)
    }

    fn plain_question(&mut self, now: Time) -> Segment<D> {
        let forward = self.forward(now, u32::from(FORWARD_BYTES));
        let (first, next) = self.sending.limits();
        let sequence = self.number(if forward.is_some() { first } else { next });
        Segment { sequence, forward, ..self.blank(now) }
    }

    /// The sequence number at which the stream continues after skipped data, if the peer has to be told and `room`
    /// bytes suffice. `[V5]`
    #[inline]
    fn forward(&mut self, now: Time, room: u32) -> Option<u32> {
        self.sending.tell_forward(now, room).map(|position| self.number(position))
    }

    /// A segment of this connection without content.
    pub(super) fn blank(&self, now: Time) -> Segment<D> {
        Segment { tag: self.tag, mode: self.mode, timestamp: self.clock.stamp(now), ..Segment::default() }
    }

    /// Fills in the fields that depend on the rest of the segment.
    pub(super) fn finish(&self, segment: &mut Segment<D>) {
        segment.header_bytes = self.constants.header_bytes as u16;
        if self.carries_asyn() && !segment.flags.has(Flags::RESET) {
            segment.flags = segment.flags.with(Flags::ASYN);
            segment.opening = self.initial;
            segment.header_bytes += OPENING_BYTES;
        }
        if segment.mack.is_some() || !segment.payload.is_empty() {
            segment.flags = segment.flags.with(Flags::CRC);
        }
        let extended_bytes = segment.extended_bytes();
        if extended_bytes > 0 {
            segment.flags = segment.flags.with(Flags::EXTENDED);
            segment.header_bytes += extended_bytes;
        }
        if segment.repair.is_some() {
            segment.header_bytes += REPAIR_BYTES;
        }
        let words = self.parity_of(segment);
        if words > 0 {
            segment.flags = segment.flags.with(Flags::FEC);
            segment.fec_words = words;
            segment.header_bytes += FEC_BYTES;
        }
    }

    /// Words of parity of a segment that has everything else, with data or a list. Data that was cut for less parity than
    /// there is now keeps its length, and has the parity that fits. `[F6]`, `[F8]`
    #[inline]
    fn parity_of(&self, segment: &Segment<D>) -> u16 {
        if let Some(mack) = &segment.mack {
            let is_protected = self.size.parity != Parity::NONE && self.config.has_mack_parity();
            let full = if is_protected { self.size.data_bytes() as u32 } else { 0 };
            return if is_protected {
                self.size.parity.words_of_list(mack.body_bytes(segment.sequence), full)
            } else {
                0
            };
        }
        let wanted = self.size.parity.words(segment.payload.len() as u32);
        if wanted == 0 || !self.mode.is_acknowledged() {
            return wanted;
        }
        let room = (self.size.packet_bytes as u32).saturating_sub(segment.wire_bytes());
        wanted.min(words_within(room))
    }
}
