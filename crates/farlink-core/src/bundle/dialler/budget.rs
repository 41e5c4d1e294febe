//! Budgets of a line and of all lines, by day and by month, and what their calls have cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calendar::Period;
use super::state::Reason;
use crate::ConfigError;
use crate::units::{PositiveSeconds, Seconds};

/// What the calls of a line may cost. No limit by default. Money is in a currency of the owner's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Airtime of a day, in seconds.
    pub airtime_s_per_day: Option<PositiveSeconds>,
    /// Airtime of a month, in seconds.
    pub airtime_s_per_month: Option<PositiveSeconds>,
    /// What a minute costs of a call that the line has dialled. Calls that it answers cost nothing.
    pub money_per_min: Option<Seconds>,
    /// Money of a day.
    pub money_per_day: Option<Seconds>,
    /// Money of a month.
    pub money_per_month: Option<Seconds>,
}

/// Airtime and money of a day or a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// In seconds.
    pub airtime_s: f64,
    /// In the owner's currency.
    pub money: f64,
}

/// What the calls of all lines of a bundle together may cost, beside what each line may. No limit by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BundleBudget {
    /// Airtime of a day, in seconds: two calls at a time use it up twice as fast.
    pub airtime_s_per_day: Option<PositiveSeconds>,
    /// Airtime of a month, in seconds.
    pub airtime_s_per_month: Option<PositiveSeconds>,
    /// Money of a day. What a minute costs is said by each line.
    pub money_per_day: Option<Seconds>,
    /// Money of a month.
    pub money_per_month: Option<Seconds>,
}

/// The limits of a budget, those of the month first: of two that are reached, the one with the longest wait is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps([(Kind, Option<f64>, Reason); 4]);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Airtime,
    Money,
}

/// How fast calls use a budget up: airtime and money of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) airtime: f64,
    pub(super) money: f64,
}

impl Budget {
    /// # Errors
    /// If keys contradict each other.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, limit) in [("money_per_day", self.money_per_day), ("money_per_month", self.money_per_month)] {
            if limit.is_some() && self.money_per_min.is_none() {
                let remedy = "say what a minute costs with money_per_min, or limit the airtime";
                return Err(ConfigError::new(key, "what a minute costs is not known", remedy));
            }
        }
        Ok(())
    }

    /// What a second of airtime costs.
    pub(super) fn money_per_s(&self, is_incoming: bool) -> f64 {
        if is_incoming { 0.0 } else { self.money_per_min.map_or(0.0, |price| price.get() / 60.0) }
    }

    pub(super) fn caps(&self) -> Caps {
        Caps([
            (Kind::Airtime, self.airtime_s_per_month.map(PositiveSeconds::get), Reason::AirtimeMonth),
            (Kind::Money, self.money_per_month.map(Seconds::get), Reason::MoneyMonth),
            (Kind::Airtime, self.airtime_s_per_day.map(PositiveSeconds::get), Reason::AirtimeDay),
            (Kind::Money, self.money_per_day.map(Seconds::get), Reason::MoneyDay),
        ])
    }
}

impl BundleBudget {
    /// The first limit of money, by its key.
    pub(super) fn money_key(&self) -> Option<&'static str> {
        let limits = [("money_per_day", self.money_per_day), ("money_per_month", self.money_per_month)];
        limits.into_iter().find(|(_, limit)| limit.is_some()).map(|(key, _)| key)
    }

    pub(super) fn caps(&self) -> Caps {
        Caps([
            (Kind::Airtime, self.airtime_s_per_month.map(PositiveSeconds::get), Reason::BundleAirtimeMonth),
            (Kind::Money, self.money_per_month.map(Seconds::get), Reason::BundleMoneyMonth),
            (Kind::Airtime, self.airtime_s_per_day.map(PositiveSeconds::get), Reason::BundleAirtimeDay),
            (Kind::Money, self.money_per_day.map(Seconds::get), Reason::BundleMoneyDay),
        ])
    }
}

impl Caps {
    pub(super) fn is_limited(&self) -> bool {
        self.0.iter().any(|(_, cap, _)| cap.is_some())
    }

    /// How long calls may go on, by each limit that they use up.
    pub(super) fn left(&self, spent: &Ledger, day: i64, month: i64, usage: Usage) -> impl Iterator<Item = Left> {
        let (day, month) = (spent.day(day), spent.month(month));
        self.0.into_iter().filter_map(move |(kind, cap, reason)| {
            let spent = if period_of(reason) == Period::Month { month } else { day };
            let (spent, per_s) = match kind {
                Kind::Airtime => (spent.airtime_s, usage.airtime),
                Kind::Money => (spent.money, usage.money),
            };
            let whole_s = cap.filter(|_| per_s > 0.0)? / per_s;
            Some(Left { left_s: whole_s - spent / per_s, whole_s, reason })
        })
    }
}

/// The period whose end gives a budget back.
pub(super) fn period_of(reason: Reason) -> Period {
    match reason {
        Reason::AirtimeMonth | Reason::MoneyMonth | Reason::BundleAirtimeMonth | Reason::BundleMoneyMonth => {
            Period::Month
        }
        _ => Period::Day,
    }
}

/// The rest of a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// How long calls may still last, in s.
    pub(super) left_s: f64,
    /// The same at the beginning of the day or month.
    pub(super) whole_s: f64,
    /// Which limit it is.
    pub(super) reason: Reason,
}

impl Left {
    /// Of all limits the one that ends calls first; of several that are reached, that with the longest wait.
    pub(super) fn tightest(all: impl Iterator<Item = Left>) -> Option<Left> {
        let is_month = |left: &Left| period_of(left.reason) == Period::Month;
        let rank = |left: &Left| if left.left_s < LEAST_S { (0, !is_month(left)) } else { (1, false) };
        all.min_by(|a, b| rank(a).cmp(&rank(b)).then(a.left_s.total_cmp(&b.left_s)))
    }
}

/// A budget with less left than this, in s, is spent: sums of seconds are exact to far less.
pub(super) const LEAST_S: f64 = 1e-3;

/// So many days, and so many months, are remembered: those that the clock showed last.
const REMEMBERED: usize = 64;

/// Costs of calls, by day and by month. A clock that is set back shows a day again whose costs are known, so that
/// no budget is spent twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    days: Remembered,
    months: Remembered,
}

impl Ledger {
    /// Adds costs of one day.
    pub(super) fn charge(&mut self, day: i64, month: i64, spent: Spent) {
        self.days.add(day, spent);
        self.months.add(month, spent);
    }

    pub(super) fn day(&self, day: i64) -> Spent {
        self.days.of(day)
    }

    pub(super) fn month(&self, month: i64) -> Spent {
        self.months.of(month)
    }

    pub(super) fn all(&self, period: Period) -> impl Iterator<Item = (i64, Spent)> {
        let remembered = match period {
            Period::Day => &self.days,
            Period::Month => &self.months,
        };
        remembered.by_number.iter().map(|(&number, &(spent, _))| (number, spent))
    }

    /// Takes over what an earlier run has spent.
    pub(super) fn restore(&mut self, period: Period, number: i64, spent: Spent) {
        match period {
            Period::Day => self.days.add(number, spent),
            Period::Month => self.months.add(number, spent),
        }
    }
}

/// The costs of the days, or months, that were used last.
#[derive(Clone, Debug, Default, PartialEq)]
struct Remembered {
    /// Number of the day or month -> its costs, and when they were used last.
    by_number: BTreeMap<i64, (Spent, u64)>,
    uses: u64,
}

impl Remembered {
    fn add(&mut self, number: i64, more: Spent) {
        self.uses += 1;
        let (spent, used) = self.by_number.entry(number).or_default();
        spent.airtime_s += more.airtime_s;
        spent.money += more.money;
        *used = self.uses;
        if self.by_number.len() > REMEMBERED {
            let oldest = self.by_number.iter().min_by_key(|(_, (_, used))| *used).map(|(&number, _)| number);
            self.by_number.remove(&oldest.expect("there are some"));
        }
    }

    fn of(&self, number: i64) -> Spent {
        self.by_number.get(&number).map_or(Spent::default(), |&(spent, _)| spent)
    }
}
