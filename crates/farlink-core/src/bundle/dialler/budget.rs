//! What calls of a line may cost in a day and in a month, and what they have cost.

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

    /// Whether anything is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.airtime_s_per_day.is_some()
            || self.airtime_s_per_month.is_some()
            || self.money_per_day.is_some()
            || self.money_per_month.is_some()
    }

    /// What a second of airtime costs.
    fn money_per_s(&self, is_incoming: bool) -> f64 {
        if is_incoming { 0.0 } else { self.money_per_min.map_or(0.0, |price| price.get() / 60.0) }
    }

    /// How long a call may go on, and which limit ends it; none without a limit.
    pub(super) fn left(&self, spent: &Ledger, day: i64, month: i64, is_incoming: bool) -> Option<Left> {
        let (day, month) = (spent.day(day), spent.month(month));
        let price = self.money_per_s(is_incoming);
        let left = |whole_s: f64, spent_s: f64, reason| Left { left_s: whole_s - spent_s, whole_s, reason };
        let airtime = |limit: Option<PositiveSeconds>, spent: Spent, reason| {
            limit.map(|limit| left(limit.get(), spent.airtime_s, reason))
        };
        let money = |limit: Option<Seconds>, spent: Spent, reason| {
            limit.filter(|_| price > 0.0).map(|limit| left(limit.get() / price, spent.money / price, reason))
        };
        // The longest wait first: of two limits that are reached, the one of the month is named.
        let all = [
            airtime(self.airtime_s_per_month, month, Reason::AirtimeMonth),
            money(self.money_per_month, month, Reason::MoneyMonth),
            airtime(self.airtime_s_per_day, day, Reason::AirtimeDay),
            money(self.money_per_day, day, Reason::MoneyDay),
        ];
        let reached = all.iter().flatten().find(|left| left.left_s < LEAST_S);
        reached.or_else(|| all.iter().flatten().min_by(|a, b| a.left_s.total_cmp(&b.left_s))).copied()
    }
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// How long calls may still last, in s.
    pub(super) left_s: f64,
    /// The same at the beginning of the day or month.
    pub(super) whole_s: f64,
    /// Which limit it is.
    pub(super) reason: Reason,
}

/// A budget with less left than this, in s, is spent: sums of seconds are exact to far less.
pub(super) const LEAST_S: f64 = 1e-3;

/// So many days, and so many months, are remembered: those that the clock showed last.
const REMEMBERED: usize = 64;

/// What calls of a line have cost, by day and by month. A clock that is set back shows a day again whose costs are known, so that
/// no budget is spent twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    days: Remembered,
    months: Remembered,
}

impl Ledger {
    /// Adds airtime of one day.
    pub(super) fn charge(&mut self, budget: &Budget, is_incoming: bool, day: i64, month: i64, airtime_s: f64) {
        let money = airtime_s * budget.money_per_s(is_incoming);
        self.days.add(day, Spent { airtime_s, money });
        self.months.add(month, Spent { airtime_s, money });
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
