//! Which line is the primary one: that with the longest expected call (sections 7.2 and 7.3).

use super::Dialler;
use super::config::PrimaryRule;
use super::line::Line;
use super::state::{Alert, CallState, Order, Reaction, Reason};
use crate::time::Time;

/// Assumed mean length of a call before the first drop: one drop per line in 50 minutes (Zaghloul, section 5.3).
const FIRST_GUESS_S: f64 = 3000.0;

/// A line is better than the primary one of the same rank if its expected call is longer by this factor: without it, the role would
/// go back and forth between lines that are alike.
const BETTER_BY: f64 = 1.25;

impl Dialler {
    /// Mean length of the calls of all lines so far, in s, counting one assumed call of [`FIRST_GUESS_S`].
    fn usual_call_s(&self, now: Time, with_calls: bool) -> f64 {
        let half_life_s = self.policy.half_life_s;
        let histories = self.lines.iter().map(|line| line.history(now, half_life_s, with_calls));
        let (connected_s, drops) = histories.fold((0.0, 0.0), |sum, line| (sum.0 + line.0, sum.1 + line.1));
        (connected_s + FIRST_GUESS_S) / (drops + 1.0)
    }

    /// Expected length of the line's next call, in s, if calls of all lines last `usual_s` on average. Calls are
    /// assumed to drop at a constant rate, whose prior is a gamma distribution of shape 1 (worth one call of length
    /// `usual_s`). After n drops in a connected time T, the posterior mean of the rate is (n + 1) / (T + `usual_s`);
    /// this is its reciprocal. A line that was never called therefore counts as an average one.
    fn expected_s(&self, line: &Line, now: Time, usual_s: f64, with_calls: bool) -> f64 {
        let (connected_s, drops) = line.history(now, self.policy.half_life_s, with_calls);
        (connected_s + usual_s) / (drops + 1.0)
    }

    /// Expected length of a line's call, in s: the posterior mean of how long it stays up.
    pub fn expected_call_s(&self, line: usize, now: Time) -> f64 {
        self.expected_s(&self.lines[line], now, self.usual_call_s(now, true), true)
    }

    /// The best of some lines: of the lowest rank, that with the longest expected call, the first of equals.
    pub(super) fn best(&self, lines: impl Iterator<Item = usize>, now: Time, with_calls: bool) -> Option<usize> {
        let usual_s = self.usual_call_s(now, with_calls);
        let rated = lines.map(|index| {
            let expected_s = self.expected_s(&self.lines[index], now, usual_s, with_calls);
            (index, self.policy.lines[index].rank, expected_s)
        });
        rated.min_by(|a, b| a.1.cmp(&b.1).then(b.2.total_cmp(&a.2))).map(|(index, ..)| index)
    }

    /// Whether the other lines wait for a primary line.
    pub(super) fn lacks_primary(&self) -> bool {
        self.policy.rule.goes_first() && self.primary.is_none()
    }

    /// Whether a line other than this one is dialled as primary, or pauses before it is.
    pub(super) fn is_other_tried(&self, index: usize) -> bool {
        (0..self.lines.len()).any(|other| other != index && self.is_tried(other))
    }

    fn is_tried(&self, index: usize) -> bool {
        let is_idle = matches!(self.lines[index].state, CallState::Waiting | CallState::Blocked | CallState::Held);
        self.dials(index) && !is_idle
    }

    /// Dials a line as primary if the rule has one, none is connected and none is being tried.
    pub(super) fn seek_primary(&mut self, at: Time, out: &mut Reaction) {
        if self.lacks_primary() && !(0..self.lines.len()).any(|index| self.is_tried(index)) {
            self.dial_primary(at, out);
        }
    }

    pub(in crate::bundle) fn dial_primary(&mut self, at: Time, out: &mut Reaction) {
        self.dial_primary_from(at, at, out);
    }

    /// Dials, from `begin` on, the waiting line with the longest expected call.
    pub(super) fn dial_primary_from(&mut self, at: Time, begin: Time, out: &mut Reaction) {
        let is_ready =
            |&index: &usize| self.lines[index].state == CallState::Waiting && self.own_obstacle(index, at).is_none();
        match self.best((0..self.lines.len()).filter(is_ready), at, false) {
            Some(index) if begin > at => self.enter(index, CallState::Dropped, Reason::BundleEnded, at, begin, out),
            Some(index) => self.dial(index, at, out),
            None => {} // all are blocked or barred: the first that is free again is dialled
        }
    }

    /// Gives the role to the best line that is up. A better line gets it once it was up for long enough.
    pub(super) fn appoint(&mut self, at: Time, out: &mut Reaction) {
        if self.policy.rule == PrimaryRule::PassesOn {
            let up = |line: &Line| line.state == CallState::Connected;
            let connected: Vec<usize> = (0..self.lines.len()).filter(|&index| up(&self.lines[index])).collect();
            match self.primary {
                Some(primary) if up(&self.lines[primary]) => self.prefer_better(primary, &connected, at, out),
                // A silent line keeps the role only if there is no other.
                Some(primary) if connected.is_empty() && self.seems_up(primary) => {}
                _ => self.primary = self.best(connected.into_iter(), at, true),
            }
        }
        if self.tells && self.told_primary != self.primary {
            self.told_primary = self.primary;
            out.orders.push(Order::Primary(self.primary));
        }
    }

    fn prefer_better(&mut self, primary: usize, connected: &[usize], at: Time, out: &mut Reaction) {
        if connected.len() < 2 {
            return;
        }
        let usual_s = self.usual_call_s(at, true);
        let rated =
            |index: usize| (self.policy.lines[index].rank, self.expected_s(&self.lines[index], at, usual_s, true));
        let (rank, expected_s) = rated(primary);
        let is_better = |&index: &usize| {
            let (other_rank, other_s) = rated(index);
            index != primary && (other_rank < rank || other_rank == rank && other_s > BETTER_BY * expected_s)
        };
        let better: Vec<usize> = connected.iter().copied().filter(is_better).collect();
        let proven = |&index: &usize| self.lines[index].since + self.policy.fail_back <= at;
        if let Some(best) = self.best(better.iter().copied().filter(proven), at, true) {
            self.primary = Some(best);
            out.orders.push(Order::Alert(Alert::Demoted(primary)));
            return;
        }
        for index in better {
            let line = &mut self.lines[index];
            line.check = line.check.min(line.since + self.policy.fail_back);
        }
    }
}
