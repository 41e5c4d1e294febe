//! Detection of lost frames, and their retransmission.

use crate::payload::Payload;
use crate::time::Time;

use super::super::config::{Mode, TimerSide};
use super::{Kind, Sender, State};

impl<D: Payload> Sender<D> {
    /// When the retransmission timer expires.
    #[inline]
    pub(in crate::protocol::arq) fn deadline(&self) -> Time {
        let rto = self.rto.rto();
        if self.timer_side == TimerSide::Receiver {
            let is_silent = self.unacknowledged > 0 && !self.is_enquiry_due && !self.wants_to_send();
            return if is_silent { self.last_activity + rto } else { Time::NEVER };
        }
        if self.mode == Mode::SelectiveRepeat {
            return self.transmissions.front().map_or(Time::NEVER, |&(_, sent)| sent + rto);
        }
        let first = self.slots.front().filter(|_| self.cursor > self.una);
        first.map_or(Time::NEVER, |slot| slot.sent + rto)
    }

    pub(in crate::protocol::arq) fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline() {
            return;
        }
        if self.timer_side == TimerSide::Receiver {
            self.is_enquiry_due = true;
            self.note_timeout(now, now);
            return;
        }
        if self.mode != Mode::SelectiveRepeat {
            let sent = self.slots.front().map_or(now, |slot| slot.sent);
            self.lose(now, self.una, false);
            self.note_timeout(now, sent);
            return;
        }
        let rto = self.rto.rto();
        while let Some(&(number, sent)) = self.transmissions.front()
            && sent + rto <= now
        {
            self.transmissions.pop_front();
            if self.is_current(number, sent) {
                self.lose(now, number, false);
                self.note_timeout(now, sent);
            }
        }
        self.drop_stale_transmissions();
    }

    pub(super) fn note_timeout(&mut self, now: Time, sent: Time) {
        self.timeouts += 1;
        // Frames that were lost together are one event: the timer is backed off once for all of them.
        if self.backed_off.is_none_or(|at| sent >= at) {
            self.timeouts_in_a_row += 1;
            self.rto.back_off();
            self.backed_off = Some(now);
        }
    }

    /// Declares a frame lost: it is retransmitted, in go-back-N with all later frames.
    pub(super) fn lose(&mut self, now: Time, number: u64, wants_parity: bool) {
        let max_losses = self.max_losses;
        let Some(slot) = self.slot(number) else { return };
        slot.losses = slot.losses.saturating_add(1);
        slot.wants_parity = wants_parity;
        let lost_bytes = (slot.kind == Kind::Data).then_some(slot.len);
        let mut given_up = 0;
        if slot.kind == Kind::Data && slot.losses >= max_losses {
            slot.kind = Kind::Skip;
            given_up = u64::from(slot.len);
        }
        slot.state = State::Waiting;
        self.given_up_bytes += given_up;
        if let (Some(length), Some(bytes)) = (&mut self.length, lost_bytes) {
            length.on_lost(now, bytes);
        }
        if self.mode == Mode::SelectiveRepeat {
            self.repeats.push_back(number);
        } else {
            self.cursor = self.cursor.min(number);
        }
    }

    /// Handles a negative acknowledgement, which requests frames.
    pub(in crate::protocol::arq) fn handle_nak(&mut self, now: Time, first: u32, count: u16, is_held: bool) {
        let first = self.una + self.numbers.ahead(first, self.una);
        let end = (first + u64::from(count)).min(self.next());
        // The receiver cannot mean a frame that was sent less than a round trip ago.
        let recent = self.rto.smoothed().map_or(Time::ZERO, |rtt| Time::from_ps(rtt.as_ps() / 8 * 7));
        for number in first..end {
            if self.mode != Mode::SelectiveRepeat && self.cursor <= number {
                return; // already retransmitted
            }
            let Some(slot) = self.slot(number) else { return };
            let is_answered = slot.transmissions > 1 && now.since(slot.sent) < recent;
            if slot.state != State::UnderWay || is_answered {
                continue;
            }
            self.lose(now, number, is_held);
            self.asked_again += 1;
            if self.mode != Mode::SelectiveRepeat {
                return; // all later frames are retransmitted with it
            }
        }
        self.last_activity = now;
        self.drop_stale_transmissions();
    }

    /// Whether this was the latest transmission of a frame that is not acknowledged.
    pub(super) fn is_current(&self, number: u64, sent: Time) -> bool {
        let index = number.checked_sub(self.una).and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.slots.get(index));
        slot.is_some_and(|slot| slot.state == State::UnderWay && slot.sent == sent)
    }

    #[inline]
    pub(super) fn drop_stale_transmissions(&mut self) {
        while let Some(&(number, sent)) = self.transmissions.front()
            && !self.is_current(number, sent)
        {
            self.transmissions.pop_front();
        }
    }

    #[inline]
    pub(super) fn drop_stale_repeats(&mut self) {
        while let Some(&number) = self.repeats.front()
            && self.state(number) != Some(State::Waiting)
        {
            self.repeats.pop_front();
        }
        while let Some(&number) = self.held_back.front()
            && self.state(number) != Some(State::Waiting)
        {
            self.held_back.pop_front();
        }
    }

    /// The next frame to be retransmitted. These go before new ones, except frames that are too long at present.
    #[inline]
    pub(super) fn next_repeat(&mut self, now: Time) -> Option<u64> {
        if self.length.is_none() {
            return self.repeats.pop_front();
        }
        if let Some(&number) = self.held_back.front()
            && !self.is_too_long(now, number)
        {
            return self.held_back.pop_front();
        }
        while let Some(number) = self.repeats.pop_front() {
            if self.state(number) != Some(State::Waiting) {
                continue; // acknowledged meanwhile
            }
            if !self.is_too_long(now, number) {
                return Some(number);
            }
            self.held_back.push_back(number);
        }
        if self.has_room() { None } else { self.held_back.pop_front() }
    }

    pub(super) fn is_too_long(&mut self, now: Time, number: u64) -> bool {
        let bytes = self.slot(number).map_or(0, |slot| slot.len);
        self.length.as_mut().is_some_and(|length| length.is_too_long(now, bytes))
    }
}
