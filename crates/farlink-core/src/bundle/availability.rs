//! How long the lines of a bundle were up.

use super::calls::Calls;
use crate::time::Time;

/// Times since a run began to be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Availability {
    /// All lines up, in s.
    pub all_s: f64,
    /// At least one.
    pub any_s: f64,
    /// Sum over all lines, in s.
    pub lines_s: f64,
    /// Calls that dropped.
    pub drops: u64,
    since: Time,
}

impl Availability {
    /// The lines have been as they are, up to `at`.
    pub(super) fn note(&mut self, at: Time, lines: usize, up: usize) {
        let span_s = at.since(self.since).as_secs_f64();
        self.all_s += if up == lines { span_s } else { 0.0 };
        self.any_s += if up > 0 { span_s } else { 0.0 };
        self.lines_s += up as f64 * span_s;
        self.since = at;
    }

    /// Measures anew.
    pub(super) fn begin(&mut self, now: Time) {
        *self = Availability { since: now, ..Availability::default() };
    }

    /// Shares of a bundle whose lines are always up.
    pub(super) fn always(lines: usize, since: Time, now: Time) -> Self {
        let mut all = Availability { since, ..Availability::default() };
        all.note(now, lines, lines);
        all
    }

    /// With the time from the last change up to `now`.
    pub(super) fn until(mut self, now: Time, calls: &Calls, lines: usize) -> Self {
        self.note(now, lines, calls.lines_up());
        self
    }
}
