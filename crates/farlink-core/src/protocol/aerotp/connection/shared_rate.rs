//! A connection that shares its rate with others to the same peer. `[P21]`

use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::rate::Rate;

impl<D: Payload> Connection<D> {
    pub(in super::super) fn exchange_rate(&mut self, rate: &mut Rate) {
        std::mem::swap(&mut self.rate, rate);
    }

    /// Whether it has something to send for which it needs the rate that it [shares](Self::share_rate).
    pub fn wants_rate(&self, now: Time) -> bool {
        self.wants_rate_at() <= now
    }

    /// When it will have something to send for which it needs the rate that it shares; never if nothing, or if the rate is its own.
    pub fn wants_rate_at(&self) -> Time {
        if !self.rate.is_lent() || !self.is_alive() || !self.may_send() || self.is_link_down {
            return Time::NEVER;
        }
        if self.is_question_due || self.is_proof_due { Time::ZERO } else { self.sending.ready_at() }
    }
}
