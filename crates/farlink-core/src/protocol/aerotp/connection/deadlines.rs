//! Deadlines of a connection: for an answer, for its end, for keep-alives, and for answers after its end.

use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
#[cfg(test)]
use super::model;
use crate::protocol::aerotp::clock::span;
use crate::protocol::aerotp::sending::Timing;

impl<D: Payload> Connection<D> {
    /// When the sender next checks for overdue acknowledgements, including that of the end of the stream. `[R5]`
    #[inline]
    pub(super) fn sending_deadline(&self) -> Time {
        #[cfg(test)]
        if self.is_without_afin_timer() {
            return Time::NEVER;
        }
        self.sending.deadline()
    }

    /// The earliest of all deadlines of the connection, apart from those of the receiving half, and when the sending half has something to
    /// send.
    #[inline]
    pub(super) fn next_deadline(&self) -> (Time, Time) {
        let next = self.answers_until().min(self.confirm_at());
        if !self.may_send() {
            return (next, Time::NEVER);
        }
        let Timing { deadline, ready_at, awaits_since } = self.sending.timing();
        #[cfg(test)]
        let deadline = if self.is_without_afin_timer() { Time::NEVER } else { deadline };
        let given_up = self.give_up_since(awaits_since);
        (next.min(deadline).min(given_up).min(self.close_by()).min(self.keep_alive_at()), ready_at)
    }

    #[cfg(test)]
    fn is_without_afin_timer(&self) -> bool {
        self.without == Some(model::Without::AfinTimer) && self.end_sent.is_some()
    }

    /// When the connection is given up unless a segment arrives. `[C16]`
    pub(super) fn give_up_at(&self) -> Time {
        self.give_up_since(self.sending.awaits_since())
    }

    /// As [`give_up_at`](Self::give_up_at), if the sending half awaits an answer since then.
    #[inline]
    fn give_up_since(&self, awaits_since: Time) -> Time {
        if self.rate.is_unanswered() {
            return Time::ZERO;
        }
        let asked = self.asked.unwrap_or(Time::NEVER);
        let awaited = awaits_since.min(asked).min(self.held_since());
        if awaited == Time::NEVER { Time::NEVER } else { awaited + self.constants.give_up_after }
    }

    /// Since when data or a question waits for the proof of the peer's address, which only a segment of the peer can bring. `[G1]`
    #[inline]
    fn held_since(&self) -> Time {
        let is_held = self.waits_for_proof() && (self.is_question_due || self.sending.ready_at() < Time::NEVER);
        if is_held { self.last_received } else { Time::NEVER }
    }

    /// CLOSE_TO: when the connection is given up unless both streams have ended. `[C17]`
    #[inline]
    pub(super) fn close_by(&self) -> Time {
        match (self.end_sent, self.config.close_timeout_s) {
            (Some(sent), Some(timeout)) => sent + timeout.time(),
            _ => Time::NEVER,
        }
    }

    /// When the peer is probed for being alive. `[C9]`
    #[inline]
    pub(super) fn keep_alive_at(&self) -> Time {
        match self.config.keep_alive_s {
            Some(idle) if self.may_send() && !self.is_link_down => self.last_sign + idle.time(),
            _ => Time::NEVER,
        }
    }

    /// When an idle opener asks whether its peer waits for the proof of its address. `[G4]`
    #[inline]
    pub(super) fn confirm_at(&self) -> Time {
        let Some(wait) = self.confirmation.wait() else { return Time::NEVER };
        // After its end too, because the peer's end may wait for the proof.
        let has_ended = self.is_alive() && self.lifecycle.is_over();
        let awaits_nothing = has_ended || (self.may_send() && self.sending.awaits_since() == Time::NEVER);
        let is_idle = awaits_nothing && !self.is_link_down;
        let at = self.last_sign + wait;
        // A peer that has been silent for longer is gone.
        let heard = self.last_received.max(span(self.first_sent.unwrap_or(0)));
        if is_idle && at < heard + self.constants.give_up_after { at } else { Time::NEVER }
    }

    /// LISTEN_TO: until when a closed connection answers a peer that does not know that it is closed. `[C18]`
    #[inline]
    pub(in super::super) fn answers_until(&self) -> Time {
        let is_done = self.lifecycle.is_over() && self.pending_events.has_told_closed;
        if is_done { self.last_received + self.config.listen_timeout() } else { Time::NEVER }
    }
}
