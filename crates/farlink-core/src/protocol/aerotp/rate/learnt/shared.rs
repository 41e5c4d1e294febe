//! A learnt rate on a path that others share. `[P15]`, `[P16]`

use crate::time::Time;

use super::Learnt;

impl Learnt {
    /// Whether losses are congestion, so that the rate is CUBIC's. `[P16]`
    pub(super) fn is_gated(&self) -> bool {
        self.floor.is_some() && (self.least_loss.has_quiet_blocks() || self.least_loss.is_exceeded())
    }

    /// Bytes per second of the window of [`Floor`].
    pub(super) fn floor_rate(&self) -> f64 {
        let seconds = self.round_trip.as_secs_f64().max(1e-6);
        self.floor.as_ref().map_or(0.0, |floor| floor.packets() * self.packet_bytes / seconds)
    }

    pub(super) fn advance_floor(&mut self, now: Time) {
        // While no answers come, CUBIC would have no acknowledgements to grow with. `[P15]`
        let until = now.min(self.answered + self.round_trip + self.answer_delay);
        let took = until.since(std::mem::replace(&mut self.advanced, now));
        let feedback = self.feedback();
        if let Some(floor) = self.floor.as_mut().filter(|_| self.is_used) {
            floor.advance(took, self.round_trip, feedback);
        }
    }

    /// The rate follows the window of [`Floor`] and the round trip at once. `[P15]`, `[P16]`
    pub(super) fn follow_floor(&mut self, now: Time) {
        if self.floor.is_some() {
            self.advance_floor(now);
            let floor = self.floor_rate();
            if self.is_gated() {
                self.base = self.bounded(floor * self.excess, self.round_trip);
            }
            self.rate = self.bounded(self.base.max(floor) * self.gain, self.round_trip);
        }
    }
}
