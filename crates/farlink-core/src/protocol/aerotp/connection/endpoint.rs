//! The connection as an [`Endpoint`]: input from the network, the clock and the application.

use crate::endpoint::{Class, Counters, Ecn, Endpoint, Integrity, LinkHint, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::express::Express;
use crate::payload::{Payload, Virtual};
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::clock::ticks;
use crate::protocol::aerotp::mode::Mode;
use crate::protocol::aerotp::segment::{Flags, PlainSegment, Segment};

impl<D: Payload> Endpoint for Connection<D> {
    type Packet = Segment<D>;

    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        self.marked = self.marked.wrapping_add(u16::from(rx.ecn == Ecn::Congestion));
        if !matches!(rx.integrity, Integrity::Intact | Integrity::Mended { .. }) {
            let is_data = segment.mack.is_none() && segment.repair.is_none();
            self.damaged = self.damaged.wrapping_add(1);
            // `[B8]`
            if !(self.config.deliver_damaged && is_data && !self.mode.is_acknowledged()) {
                self.dropped.damaged += 1;
                return;
            }
        }
        if (segment.mode == Mode::Datagram) == self.has_states() {
            self.dropped.stray += 1;
            return;
        }
        if !self.has_states() {
            self.on_datagram(now, segment);
            return;
        }
        if segment.flags.has(Flags::RESET) {
            self.on_reset(now, segment);
            return;
        }
        if segment.is_malformed() {
            self.dropped.malformed += 1;
            return;
        }
        if self.is_closed() {
            self.answer_with_reset(segment);
            self.dropped.stray += 1;
            return;
        }
        if !self.admit(now, segment) {
            self.dropped.stray += 1;
            return;
        }
        (self.last_sign, self.last_heard, self.asked) = (now, now, None);
        if let Integrity::Mended { bits } = rx.integrity {
            self.receiving.on_mended(bits);
        }
        match &segment.mack {
            Some(mack) => self.on_mack(now, segment, mack),
            None => self.on_data(now, segment),
        }
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
        if now >= self.answers_until() {
            self.leave();
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
        let mut segment = self.next_segment(now)?;
        self.finish(&mut segment);
        self.first_sent = self.first_sent.or(Some(ticks(now)));
        self.high_water_marks.pass(self.sending.limits().1, ticks(now));
        // Data is paced; segments that only answer are neither delayed nor counted. `[P1]`, `[P2]`
        if !segment.flags.has(Flags(Flags::MACK.0 | Flags::RESET.0)) {
            let wire_bytes = crate::endpoint::Packet::wire_bytes(&segment);
            self.rate.on_sent(now, self.clock, wire_bytes, !segment.payload.is_empty());
        }
        self.last_sign = now;
        // `[P10]`
        let ecn = if self.config.ecn && segment.mack.is_none() { Ecn::Capable0 } else { Ecn::NotCapable };
        Some(Transmit { ecn, class: Class(segment.class), ..Transmit::plain(segment) })
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(earlier) = self.pending_events.earlier.take() {
            return Some(Event::Aborted(earlier));
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
        let mut next = self.receiving.deadline().min(self.answers_until());
        if self.may_send() {
            let patience = self.give_up_at().min(self.close_by()).min(self.keep_alive_at());
            next = next.min(self.sending_deadline()).min(patience);
            let ready = self.sending.ready_at();
            if ready != Time::NEVER {
                next = next.min(ready.max(self.rate.pacer.next()));
            }
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

impl Express for Connection<Virtual> {
    type Plain = PlainSegment;

    #[inline]
    fn handle_plain(&mut self, now: Time, plain: &PlainSegment) -> bool {
        self.handle_packet(now, &Segment::from(plain), Rx::default());
        true
    }
}
