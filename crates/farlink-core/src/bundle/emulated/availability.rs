//! How long the lines of a bundle were up.

use super::super::calls::Calls;
use crate::time::Time;

/// Up times since the measurement began, after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Availability {
    /// Time with all lines up, in s.
    pub all_s: f64,
    /// Time with at least one line up, in s.
    pub any_s: f64,
    /// Sum of the up times of all lines, in s.
    pub lines_s: f64,
    /// Number of calls that dropped.
    pub drops: u64,
    since: Time,
}

impl Availability {
    /// Adds the time up to `at`, in which `up` of `lines` lines were connected.
    pub(crate) fn note(&mut self, at: Time, lines: usize, up: usize) {
        let span_s = at.since(self.since).as_secs_f64();
        self.all_s += if up == lines { span_s } else { 0.0 };
        self.any_s += if up > 0 { span_s } else { 0.0 };
        self.lines_s += up as f64 * span_s;
        self.since = at;
    }

    /// Restarts the measurement: all times and counts begin at 0.
    pub(crate) fn begin(&mut self, now: Time) {
        *self = Availability { since: now, ..Availability::default() };
    }

    /// Up times of a bundle whose lines are always up.
    pub(super) fn always(lines: usize, since: Time, now: Time) -> Self {
        let mut all = Availability { since, ..Availability::default() };
        all.note(now, lines, lines);
        all
    }

    /// A copy that includes the time from the last change up to `now`.
    pub(super) fn until(mut self, now: Time, calls: &Calls, lines: usize) -> Self {
        self.note(now, lines, calls.lines_up());
        self
    }
}
