//! State of a bundle that outlives its operator's restarts: how its calls went, and what they have cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Dialler;
use super::budget::Spent;
use super::calendar::Period;
use crate::ConfigError;
use crate::scenario::{self, read::read};
use crate::time::Time;

/// The history of the lines of a bundle, by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    farlink_history: u32,
    /// Costs of all lines, those included that do not exist any more. Version 1 had none.
    #[serde(default)]
    bundle: Option<Costs>,
    lines: BTreeMap<String, LineHistory>,
}

/// Airtime and money by number of the day and of the month since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Costs {
    days: Vec<(i64, Spent)>,
    months: Vec<(i64, Spent)>,
}

/// The history of a line: connected time in s, and drops, as they count now; airtime and money by number of the day and of the
/// month since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineHistory {
    connected_s: f64,
    drops: f64,
    days: Vec<(i64, Spent)>,
    months: Vec<(i64, Spent)>,
}

/// The version of the form.
const VERSION: u32 = 2;

impl History {
    /// # Errors
    /// If the text is none that [`Dialler::history`] has given.
    pub(super) fn from_json(text: &str) -> Result<Self, ConfigError> {
        let history: History = read(&scenario::from_json(text)?)?;
        let remedy = "give what history() has returned, or begin without";
        if !(1..=VERSION).contains(&history.farlink_history) {
            let what = format!("version {} is not known, only 1 to {VERSION}", history.farlink_history);
            return Err(ConfigError::new("farlink_history", what, remedy));
        }
        for (name, line) in &history.lines {
            let costs = numbers_of(&line.days).chain(numbers_of(&line.months));
            check(&format!("lines.{name}"), costs.chain([line.connected_s, line.drops]), remedy)?;
        }
        if let Some(costs) = &history.bundle {
            check("bundle", numbers_of(&costs.days).chain(numbers_of(&costs.months)), remedy)?;
        }
        Ok(history)
    }
}

fn numbers_of(costs: &[(i64, Spent)]) -> impl Iterator<Item = f64> {
    costs.iter().flat_map(|(_, spent)| [spent.airtime_s, spent.money])
}

fn check(key: &str, mut numbers: impl Iterator<Item = f64>, remedy: &str) -> Result<(), ConfigError> {
    match numbers.find(|number| !(0.0..=MOST).contains(number)) {
        Some(wrong) => Err(ConfigError::new(key, format!("{wrong} is not from 0 to {MOST}"), remedy)),
        None => Ok(()),
    }
}

/// More than any line has of seconds, drops or money.
const MOST: f64 = 1e15;

impl Dialler {
    /// State to keep for the next start, as of now. Calls that last count as if they ended now, without a drop.
    pub(super) fn history(&self, names: &[String], now: Time) -> History {
        let line = |(index, name): (usize, &String)| {
            let line = &self.lines[index];
            let (connected_s, drops) = line.history(now, self.policy.half_life_s, true);
            let of = |period| line.spent.all(period).collect();
            (name.clone(), LineHistory { connected_s, drops, days: of(Period::Day), months: of(Period::Month) })
        };
        let of = |period| self.spent.all(period).collect();
        let bundle = Some(Costs { days: of(Period::Day), months: of(Period::Month) });
        History { farlink_history: VERSION, bundle, lines: names.iter().enumerate().map(line).collect() }
    }

    /// Takes over what an earlier run has kept. Of lines that do not exist any more only their part of the bundle's costs is.
    pub(super) fn restore(&mut self, names: &[String], history: &History) {
        let of_lines = || history.lines.values().map(|line| (&line.days, &line.months));
        let of_bundle = history.bundle.iter().map(|costs| (&costs.days, &costs.months));
        let all: Vec<_> = if history.bundle.is_some() { of_bundle.collect() } else { of_lines().collect() };
        for (days, months) in all {
            for (period, costs) in [(Period::Day, days), (Period::Month, months)] {
                for &(number, spent) in costs {
                    self.spent.restore(period, number, spent);
                }
            }
        }
        for (line, name) in self.lines.iter_mut().zip(names) {
            let Some(kept) = history.lines.get(name) else { continue };
            (line.memory.connected_s, line.memory.drops) = (kept.connected_s, kept.drops);
            for (period, all) in [(Period::Day, &kept.days), (Period::Month, &kept.months)] {
                for &(number, spent) in all {
                    line.spent.restore(period, number, spent);
                }
            }
        }
    }
}
