//! Delayed fail-back: a line of a lower rank that is free again is tried beside those in use, and takes the place of the worst of
//! them once it was up for long enough.

use super::Dialler;
use super::state::{CallState, Reaction, Reason};
use crate::time::Time;

impl Dialler {
    /// Looks for a line to fail back to, and for the end of a trial.
    pub(super) fn fail_back(&mut self, at: Time, out: &mut Reaction) {
        if !self.tells || self.policy.use_lines >= self.lines.len() {
            return;
        }
        match (0..self.lines.len()).find(|&index| self.lines[index].is_trial) {
            Some(index) if !self.lines[index].has_call() => self.lines[index].is_trial = false,
            // A place became free: it is no trial any more.
            Some(index) if self.in_use(index) < self.policy.use_lines => self.lines[index].is_trial = false,
            Some(index) => return self.judge(index, at, out),
            None => {}
        }
        self.begin_trial(at, out);
    }

    fn begin_trial(&mut self, at: Time, out: &mut Reaction) {
        let Some(worst) = self.worst(|index| self.seems_up(index)) else { return };
        let rank = |index: usize| self.policy.lines[index].rank;
        let is_better = |&index: &usize| {
            let line = &self.lines[index];
            (line.state, line.reason) == (CallState::Waiting, Reason::Spare) && rank(index) < rank(worst)
        };
        if let Some(index) = self.best((0..self.lines.len()).filter(is_better), at, false) {
            self.lines[index].is_trial = true;
            self.dial(index, at, out);
        }
    }

    /// Ends a trial once the line was up for long enough.
    fn judge(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        let proven = line.since + self.policy.fail_back;
        if line.state != CallState::Connected {
            return;
        }
        if at < proven {
            line.check = line.check.min(proven);
            return;
        }
        line.is_trial = false;
        if let Some(worst) = self.worst(|other| other != index) {
            self.end_call(worst, (CallState::Waiting, Reason::Spare, Time::NEVER), at, out);
        }
    }

    /// Of some lines in use, that which would be missed least: of the highest rank, that with the shortest expected call.
    fn worst(&self, of: impl Fn(usize) -> bool) -> Option<usize> {
        let lines = || (0..self.lines.len()).filter(|&index| self.holds_place(index) && of(index));
        let rank = |index: usize| self.policy.lines[index].rank;
        let highest = lines().map(rank).max()?;
        let expected_s = |index: usize| self.expected_call_s(index, self.lines[index].since);
        let worst = lines().filter(|&index| rank(index) == highest);
        worst.min_by(|&a, &b| expected_s(a).total_cmp(&expected_s(b)))
    }
}
