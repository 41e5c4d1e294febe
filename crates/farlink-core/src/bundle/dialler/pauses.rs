//! How long a line is not dialled: after drops and failed attempts, longer after each, and at random.

use super::Dialler;
use super::state::Reason;
use crate::time::Time;

impl Dialler {
    /// A pause with its random part, which keeps lines that failed together from dialling together.
    pub(super) fn jittered(&mut self, pause: Time) -> Time {
        if self.policy.jitter == 0.0 {
            return pause;
        }
        let factor = 1.0 + self.policy.jitter * (2.0 * self.rng.uniform() - 1.0);
        Time::from_secs_f64(pause.as_secs_f64() * factor)
    }

    /// The pause after so many failed attempts in a row: T_f, doubled with each, but never longer than its limit.
    pub(super) fn failed_pause(&mut self, failures: u64) -> Time {
        let doublings = if self.policy.grows { failures.saturating_sub(1).min(40) } else { 0 };
        let pause = self.policy.failed.times(1 << doublings);
        self.jittered(pause.min(self.policy.longest_failed)).min(self.policy.longest_failed)
    }

    /// Why and until when a line is not dialled that has dropped now: T_d, or longer if it drops too often.
    pub(super) fn drop_pause(&mut self, index: usize, at: Time) -> (Reason, Time) {
        let until = at + self.jittered(self.policy.dropped);
        if self.policy.flaps < usize::MAX && self.dials(index) {
            let recent = &mut self.lines[index].recent_drops;
            recent.push_back(at);
            if recent.len() > self.policy.flaps {
                recent.pop_front();
            }
        }
        match self.damped_until(index) {
            Some(damped) if damped > until => (Reason::Flapping, damped),
            _ => (Reason::Drop, until),
        }
    }

    /// A line that has dropped so often in the window of `flaps` is not dialled before the first of these drops is out of it, so that
    /// no window has more.
    pub(super) fn damped_until(&self, index: usize) -> Option<Time> {
        let recent = &self.lines[index].recent_drops;
        let first = recent.front().filter(|_| recent.len() >= self.policy.flaps)?;
        Some(*first + self.policy.flap_window)
    }
}
