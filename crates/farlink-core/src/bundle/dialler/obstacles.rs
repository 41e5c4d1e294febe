//! Why a line is not dialled although no pause keeps it from it.

use super::Dialler;
use super::budget::{LEAST_S, period_of};
use super::config::PrimaryRule;
use super::state::{CallState, Reaction, Reason};
use crate::time::Time;

impl Dialler {
    /// The obstacle to dialling a line, and until when it lasts if time alone ends it.
    pub(super) fn obstacle(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        self.own_obstacle(index, at).or_else(|| self.shared_obstacle(index).map(|reason| (reason, Time::NEVER)))
    }

    /// The same, as far as it is one of this line alone.
    pub(super) fn own_obstacle(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        if !self.tells {
            return None; // simulated calls have none
        }
        let bar = self.bar(index, at).or_else(|| self.damped(index, at)).or_else(|| self.low_signal(index, at));
        bar.or_else(|| (!self.dials(index)).then_some((Reason::Listening, Time::NEVER)))
    }

    /// The obstacle to any call of a line, incoming ones included.
    pub(super) fn bar(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        if !self.is_running {
            return Some((self.idle_reason, Time::NEVER));
        }
        if !self.lines[index].has_port {
            return Some((Reason::PortGone, Time::NEVER));
        }
        self.spent_budget(index, at)
    }

    fn spent_budget(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        let left = self.budget_left(index, at, !self.dials(index))?;
        let reason = left.reason;
        (left.left_s < self.policy.least_call_s.min(left.whole_s).max(LEAST_S))
            .then(|| (reason, self.calendar.next(period_of(reason), at)))
    }

    fn damped(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        let until = self.damped_until(index)?;
        (at < until).then_some((Reason::Flapping, until))
    }

    /// A low signal keeps a line from being dialled, because its set-up is paid for. A modem that reports a low signal for
    /// ever is dialled once in the time of a block.
    fn low_signal(&self, index: usize, at: Time) -> Option<(Reason, Time)> {
        let line = &self.lines[index];
        let ((read, level), least) = line.signal.zip(self.policy.lines[index].least_signal)?;
        let until = (read + self.policy.signal_stale).min(line.low_since.unwrap_or(read) + self.policy.blocked);
        (level < least && at < until && !line.is_urged).then_some((Reason::Signal, until))
    }

    fn shared_obstacle(&self, index: usize) -> Option<Reason> {
        match self.policy.rule {
            _ if self.lacks_primary() => return Some(Reason::Primary),
            PrimaryRule::StaysLost if self.primary == Some(index) => return Some(Reason::LostPrimary),
            _ => {}
        }
        (self.in_use(index) >= self.policy.use_lines).then_some(Reason::Spare)
    }

    /// How many other lines are in use.
    pub(super) fn in_use(&self, index: usize) -> usize {
        (0..self.lines.len()).filter(|&other| other != index && self.holds_place(other)).count()
    }

    /// Whether a line counts among those in use. One that has just dropped does until it was dialled again; one that flaps or
    /// could not be dialled makes room for another.
    pub(super) fn holds_place(&self, index: usize) -> bool {
        let line = &self.lines[index];
        let is_wanted = line.has_call() || line.state == CallState::Dropped && line.reason != Reason::Flapping;
        is_wanted && !line.is_trial && self.dials(index)
    }

    /// Dials a line, or lets it wait.
    pub(super) fn try_dial(&mut self, index: usize, at: Time, out: &mut Reaction) {
        match self.obstacle(index, at) {
            Some(obstacle) => self.wait(index, obstacle, at, out),
            None => self.dial(index, at, out),
        }
    }

    pub(super) fn wait(&mut self, index: usize, (reason, until): (Reason, Time), at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        if line.state == CallState::Waiting && line.reason == reason {
            line.until = until;
            return;
        }
        self.enter(index, CallState::Waiting, reason, at, until, out);
    }

    /// Dials the waiting lines that nothing keeps from it any more, the best first if not all are wanted.
    pub(super) fn fill(&mut self, at: Time, out: &mut Reaction) {
        loop {
            let mut ready = Vec::new();
            for index in 0..self.lines.len() {
                if self.lines[index].state == CallState::Waiting {
                    match self.obstacle(index, at) {
                        Some(obstacle) if self.tells => self.wait(index, obstacle, at, out),
                        Some(_) => {}
                        None => ready.push(index),
                    }
                }
            }
            let all_wanted = self.policy.use_lines >= self.lines.len();
            let first = ready.first().copied();
            let next = if all_wanted { first } else { self.best(ready.into_iter(), at, false) };
            let Some(index) = next else { return };
            self.dial(index, at, out);
        }
    }
}
