//! Timeouts for answers, and what happens when they expire.

use crate::payload::Payload;
use crate::time::Time;

use super::super::super::clock::{span, ticks};
use super::{Sender, Transmission};

/// Number of timeouts of silence after which the path counts as down.
const SILENT_TIMEOUTS: u64 = 3;

impl<D: Payload> Sender<D> {
    /// The timeout for answers.
    pub(super) fn patience(&self) -> Time {
        self.round_trip.timeout().unwrap_or(self.opening.wait)
    }

    pub(in super::super::super) fn on_timeout(&mut self, now: Time) {
        self.give_up(now);
        if self.is_link_down {
            return;
        }
        if now >= self.closes_at() {
            self.close_last(now);
        }
        match self.round_trip.timeout() {
            Some(timeout) => {
                let before = ticks(now).saturating_sub(ticks(timeout));
                let mut has_expired = now >= self.report_due;
                while self.by_time.get(self.expired).is_some_and(|transmission| transmission.sent < before) {
                    self.expire();
                    has_expired = true;
                }
                // Segments that may have been lost in an outage do not count in the loss rate.
                let long_before = before.saturating_sub(ticks(timeout));
                while self.expired > 0 && self.by_time.front().is_some_and(|oldest| oldest.sent < long_before) {
                    self.by_time.pop_front();
                    self.expired -= 1;
                }
                if has_expired {
                    self.settle_all(now);
                }
                let is_waiting = !self.blocks.is_empty() || self.forward.is_awaited();
                self.is_silent = is_waiting && now.since(self.silent_since) > timeout.times(SILENT_TIMEOUTS);
            }
            None if now >= self.opening.at => {
                // Without any answer so far, one segment at a time probes the path.
                self.opening.wait = self.opening.wait.times(2).min(self.opening.longest);
                self.opening.at = now + self.opening.wait;
                self.expire();
                self.close_last(now);
                if let Some(block) = self.blocks.front_mut()
                    && block.owed == 0
                {
                    block.owed = 1;
                    self.owed += 1;
                }
            }
            None => {}
        }
    }

    /// Declares the oldest transmission lost.
    pub(super) fn expire(&mut self) {
        let Some(&Transmission { start, .. }) = self.by_time.get(self.expired) else { return };
        self.expired += 1;
        if let Some(block) = self.block(start) {
            block.in_flight -= 1;
            self.account.timeouts += 1;
        }
    }

    pub(in super::super::super) fn on_link(&mut self, now: Time, is_up: bool) {
        self.is_link_down = !is_up;
        if is_up {
            // Segments that may have been lost in the outage are replaced now.
            self.probe = now;
            self.is_silent = false;
            self.forward.on_link_up();
        }
    }

    #[inline]
    pub(in super::super::super) fn deadline(&self) -> Time {
        let too_old = self.forward.next_due();
        if self.is_link_down {
            return too_old;
        }
        let overdue = match (self.round_trip.timeout(), self.by_time.get(self.expired)) {
            (Some(timeout), Some(oldest)) => span(oldest.sent + ticks(timeout) + 1),
            _ => Time::NEVER,
        };
        overdue.min(self.opening.at).min(self.closes_at()).min(self.report_due).min(too_old)
    }
}
