//! The connection as an [`Endpoint`]: input from the network, the clock and the application.

use crate::endpoint::{Class, Counters, Ecn, Endpoint, Integrity, LinkHint, Packet, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use super::identity::Admission;
use crate::protocol::aerotp::admission::{Screened, Verdict, is_readable, judge, screen};
use crate::protocol::aerotp::clock::ticks;
use crate::protocol::aerotp::config::Opens;
use crate::protocol::aerotp::segment::{Flags, Segment};

/// Result of handling a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Arrival {
    /// It was handled, or dropped.
    Done,
    /// Another peer sent it. A passive connection leaves it to its owner, which creates connections.
    Foreign,
}

impl<D: Payload> Connection<D> {
    /// Handles a segment, unless it may open another connection.
    #[inline]
    pub(in super::super) fn handle(&mut self, now: Time, segment: &Segment<D>, rx: Rx) -> Arrival {
        let screened = screen(&self.config, segment, rx);
        if screened != Screened::Passed {
            self.dropped.count(screened);
            if screened == Screened::Damaged && self.peer.is_some_and(|peer| peer.has_sent(segment)) {
                self.count_faults(rx);
            }
        } else if !self.has_states() {
            self.on_datagram(now, segment);
        } else if segment.flags.has(Flags::RESET) {
            self.on_reset(now, segment);
        } else if self.is_closed() {
            if self.is_passive && !self.peer.is_some_and(|peer| peer.has_sent(segment)) {
                return Arrival::Foreign;
            }
            self.refuse(segment);
        } else {
            match self.admit(now, segment, rx) {
                Admission::Here => self.take(now, segment, rx),
                Admission::Dropped => self.drop_stray(),
                Admission::Foreign => return Arrival::Foreign,
            }
        }
        Arrival::Done
    }

    /// Whether one side waits for the other to open. `[G4]`
    pub(super) fn may_confirm(&self) -> bool {
        self.config.opens == Opens::Sender && self.has_states()
    }

    /// Counts the congestion mark and the damage of a segment of the peer. Those of strangers do not count, as the peer's rate and
    /// parity depend on them. `[A2]`
    fn count_faults(&mut self, rx: Rx) {
        self.marked = self.marked.wrapping_add(u16::from(rx.ecn == Ecn::Congestion));
        self.damaged = self.damaged.wrapping_add(u16::from(!is_readable(rx)));
    }

    /// Whether there may be an event. In the middle of a stream there is none.
    #[inline]
    fn may_have_event(&self) -> bool {
        let pending = &self.pending_events;
        !self.has_states()
            || (!pending.has_told_connected && self.lifecycle.has_peer())
            || pending.aborted.is_some()
            || (!pending.has_told_closed && self.lifecycle.is_over())
            || self.receiving.may_have_event()
            || self.sending.may_have_event()
            || self.rate.is_lowered()
    }

    /// Takes a segment that belongs to the connection.
    pub(super) fn take(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        (self.last_sign, self.last_received, self.asked) = (now, now, None);
        self.count_faults(rx);
        // Every segment has a header, however it was counted.
        self.allowance.on_received(u64::from(segment.wire_bytes()).max(self.constants.header_bytes));
        if !self.is_passive && self.may_confirm() {
            self.confirmation.on_segment(segment.flags.has(Flags::ASYN), self.config.initial_rto_s.time());
        }
        // The count tells the sender of data how strong the parity of data should be. `[U5]`
        if let Integrity::Mended { bits } = rx.integrity
            && segment.mack.is_none()
        {
            self.receiving.on_mended(bits);
        }
        match &segment.mack {
            Some(mack) => self.on_mack(now, segment, mack),
            None => self.on_data(now, segment),
        }
    }
}

impl<D: Payload> Endpoint for Connection<D> {
    type Packet = Segment<D>;

    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        if self.handle(now, segment, rx) == Arrival::Done {
            return;
        }
        let is_waiting = self.lifecycle.is_listening();
        if is_waiting && judge(None, now, segment) == Verdict::Opens {
            self.open(now, segment, rx);
            return;
        }
        if self.may_send() {
            self.abort(Abort::PeerRestarted); // no owner creates the next connection
        }
        self.refuse(segment);
    }

    fn wants_hints(&self) -> bool {
        true
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        match hint {
            LinkHint::Up => self.is_link_down = false,
            LinkHint::Down => self.is_link_down = true,
            LinkHint::Rate(rate) => return self.rate.on_hint(rate),
            LinkHint::Ber(ber) => {
                if let Some(errors) = &mut self.errors {
                    errors.on_hint(ber);
                    self.adapt();
                }
                return self.sending.on_ber(now, ber);
            }
            _ => return,
        }
        self.sending.on_link(now, !self.is_link_down);
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.is_alive() {
            return;
        }
        self.receiving.on_timeout(now);
        if now < self.next_deadline().0 {
            return;
        }
        if now >= self.answers_until() {
            self.lifecycle.end();
        }
        if now >= self.confirm_at() {
            self.confirmation.on_asked(self.config.longest_repetition());
            self.last_sign = now;
            self.is_proof_due = true;
        }
        if !self.may_send() {
            return;
        }
        if now >= self.sending_deadline() {
            self.sending.on_timeout(now);
        }
        if now >= self.give_up_at() {
            self.abort(Abort::NoAnswer);
        } else if now >= self.close_by() {
            self.abort(Abort::NotClosed);
        } else if now >= self.keep_alive_at() {
            self.last_sign = now;
            self.is_question_due = true;
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment<D>>> {
        if self.is_link_down {
            return None; // the link is down: a segment sent now would be lost `[C19]`
        }
        let (segment, wire_bytes) = loop {
            let mut segment = self.next_segment(now)?;
            self.finish(&mut segment);
            let wire_bytes = segment.wire_bytes();
            // A RESET is no longer than what it answers.
            if u64::from(wire_bytes) <= self.allowance.left() || segment.flags.has(Flags::RESET) {
                break (segment, wire_bytes);
            }
            self.allowance.on_short(); // it counts as lost on the way `[G1]`
        };
        if !segment.flags.has(Flags::RESET) {
            self.allowance.on_sent(u64::from(wire_bytes), segment.timestamp, segment.mack.is_none());
        }
        self.first_sent = self.first_sent.or(Some(ticks(now)));
        self.high_water_marks.pass(self.sending.limits().1, ticks(now));
        if segment.mack.is_some() {
            self.mack_pacer.on_sent(now, wire_bytes);
            self.confirmation.on_acknowledged();
        } else if !self.is_passive
            && self.peer.is_none()
            && (!self.mode.is_acknowledged() || self.sending.awaits_since() == Time::NEVER)
            && self.may_confirm()
        {
            // Nothing else repeats an opening without data, and in modes without acknowledgements none.
            self.confirmation.on_segment(true, self.config.initial_rto_s.time());
        }
        // Data is paced; segments that only answer are neither delayed nor counted. `[P1]`, `[P2]`
        if !segment.flags.has(Flags(Flags::MACK.0 | Flags::RESET.0)) {
            self.rate.on_sent(now, self.clock, wire_bytes, !segment.payload.is_empty());
        }
        self.last_sign = now;
        // `[P10]`
        let ecn = if self.config.ecn && segment.mack.is_none() { Ecn::Capable0 } else { Ecn::NotCapable };
        Some(Transmit { ecn, class: Class(segment.class), ..Transmit::plain(segment) })
    }

    fn poll_event(&mut self) -> Option<Event> {
        if !self.may_have_event() {
            return None;
        }
        if !self.pending_events.has_told_connected && self.lifecycle.has_peer() {
            self.pending_events.has_told_connected = true;
            return Some(Event::Connected);
        }
        if let Some(bytes) = self.receiving.take_skipped() {
            if self.receiving.is_complete() {
                self.lifecycle.on_peer_ended();
            }
            return Some(Event::Skipped(bytes));
        }
        if !self.pending_events.has_told_finished && self.receiving.is_read() {
            self.pending_events.has_told_finished = true;
            return Some(Event::Finished);
        }
        if let Some(why) = self.pending_events.aborted {
            return (!std::mem::replace(&mut self.pending_events.has_told_aborted, true))
                .then_some(Event::Aborted(why));
        }
        let expired = self.sending.take_expired();
        if expired > 0 {
            return Some(Event::Expired(expired));
        }
        if self.sending.take_writable() {
            return Some(Event::Writable);
        }
        if let Some(rate_bps) = self.rate.take_lowered() {
            return Some(Event::RateLowered(rate_bps));
        }
        if !self.pending_events.has_told_closed && self.is_over() {
            self.pending_events.has_told_closed = true;
            return Some(Event::Closed);
        }
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        if !self.is_alive() {
            return None;
        }
        let (next, ready) = self.next_deadline();
        let mut next = self.receiving.deadline().min(next);
        if self.mack_pacer.is_on() && !self.is_link_down && self.receiving.is_mack_due() {
            next = next.min(self.mack_pacer.next());
        }
        if ready != Time::NEVER && !self.waits_for_proof() {
            next = next.min(ready.max(self.rate.pacer.next()));
        }
        (next != Time::NEVER).then_some(next)
    }

    fn counters(&self) -> Counters {
        let account = self.sending.account();
        Counters {
            timeouts: account.timeouts,
            fast_retransmits: account.overtaken,
            peak_reorder_bytes: self.receiving.peak_bytes(),
            peak_send_buffer_bytes: account.peak_bytes,
        }
    }

    fn probe(&self) -> Probe {
        let account = self.sending.account();
        Probe {
            rtt: account.latest_round_trip,
            in_flight_bytes: Some(account.in_flight_bytes),
            acknowledged_bytes: self.mode.is_acknowledged().then(|| self.sending.limits().0),
            pacing_bps: self.rate.pacer.bytes_per_s().map(|rate| rate * 8.0),
            ..Probe::default()
        }
    }
}

impl<D: Payload> Stream<D> for Connection<D> {
    fn write(&mut self, now: Time, data: &mut D) -> usize {
        if self.is_alive() { self.sending.write(now, data) } else { 0 }
    }

    fn read(&mut self) -> Option<D> {
        self.receiving.read()
    }

    fn close(&mut self, _now: Time) {
        self.sending.close();
    }

    fn settled_bytes(&self) -> u64 {
        self.sending.settled_bytes()
    }
}
