//! Costs of calls: accounted for while they last, and calls ended when their budget is spent.

use super::Dialler;
use super::budget::{LEAST_S, Left, Spent, Usage, period_of};
use super::calendar::Period;
use super::state::{Alert, CallState, Order, Reaction};
use crate::time::Time;

impl Dialler {
    /// How long a line may be in a call, and which budget ends it; none without a limit. The bundle's budget is used up by all
    /// calls that last.
    pub(super) fn budget_left(&self, index: usize, at: Time, is_incoming: bool) -> Option<Left> {
        let budget = &self.policy.lines[index].budget;
        let (own, shared) = (budget.caps(), self.policy.budget.caps());
        if !own.is_limited() && !shared.is_limited() {
            return None;
        }
        let (day, month) = (self.calendar.day(at), self.calendar.month(at));
        let usage = Usage { airtime: 1.0, money: budget.money_per_s(is_incoming) };
        let shared = shared.left(&self.spent, day, month, self.usage_with(index, usage));
        Left::tightest(own.left(&self.lines[index].spent, day, month, usage).chain(shared))
    }

    /// How fast all calls use the bundle's budget up, with one of this line. Who pays nothing is not ended for money.
    fn usage_with(&self, index: usize, own: Usage) -> Usage {
        let mut all = own;
        for (other, line) in self.lines.iter().enumerate() {
            if other != index && line.charged.is_some() {
                all.airtime += 1.0;
                all.money += self.policy.lines[other].budget.money_per_s(line.is_incoming);
            }
        }
        if own.money == 0.0 { Usage { money: 0.0, ..all } } else { all }
    }

    /// Accounts for the airtime of a line up to now, day by day; that of all lines where they share a budget.
    pub(super) fn charge(&mut self, index: usize, now: Time) {
        if self.policy.shares_budget {
            for other in 0..self.lines.len() {
                self.charge_line(other, now);
            }
        } else {
            self.charge_line(index, now);
        }
    }

    fn charge_line(&mut self, index: usize, now: Time) {
        let line = &mut self.lines[index];
        let Some(mut from) = line.charged else { return };
        line.charged = Some(now);
        let price = self.policy.lines[index].budget.money_per_s(line.is_incoming);
        while from < now {
            let to = self.calendar.next(Period::Day, from).min(now);
            let (day, month) = (self.calendar.day(from), self.calendar.month(from));
            let airtime_s = to.since(from).as_secs_f64();
            let spent = Spent { airtime_s, money: airtime_s * price };
            line.spent.charge(day, month, spent);
            self.spent.charge(day, month, spent);
            from = to;
        }
    }

    /// Begins to account for a call, unless that has begun. A shared budget is used up faster from now on.
    pub(super) fn begin_charging(&mut self, index: usize, at: Time) {
        if !self.tells {
            return;
        }
        self.lines[index].charged.get_or_insert(at);
        for other in 0..self.lines.len() {
            if other == index || self.policy.shares_budget && self.lines[other].charged.is_some() {
                self.arm_budget(other, at);
            }
        }
    }

    /// Sets when the budget of a call is looked at next: when it will be spent, or when the next day begins.
    fn arm_budget(&mut self, index: usize, at: Time) {
        let is_incoming = self.lines[index].is_incoming;
        if let Some(Left { left_s, .. }) = self.budget_left(index, at, is_incoming) {
            let spent = at + Time::from_secs_f64(left_s.max(LEAST_S));
            let line = &mut self.lines[index];
            line.check = line.check.min(spent).min(self.calendar.next(Period::Day, at));
        }
    }

    /// Looks at the limits of a line's call: it is ended if its budget is spent.
    pub(super) fn check_call(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.lines[index].check = Time::NEVER;
        if self.lines[index].charged.is_none() {
            return;
        }
        let is_incoming = self.lines[index].is_incoming;
        let Some(Left { left_s, reason, .. }) = self.budget_left(index, at, is_incoming) else { return };
        if left_s >= LEAST_S {
            return self.arm_budget(index, at);
        }
        let until = self.calendar.next(period_of(reason), at);
        self.end_call(index, (CallState::Waiting, reason, until), at, out);
        out.orders.push(Order::Alert(Alert::BudgetSpent(index)));
    }

    /// The clock of budgets is set.
    pub(super) fn set_calendar(&mut self, at: Time, unix_s: f64, zone_s: f64, out: &mut Reaction) {
        for index in 0..self.lines.len() {
            self.charge(index, at);
        }
        self.calendar.set(at, unix_s, zone_s);
        for index in 0..self.lines.len() {
            self.check_call(index, at, out);
        }
    }
}
