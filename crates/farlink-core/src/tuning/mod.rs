//! Look-up tables of modulation, code and packet size, as `farlink tune` writes them: what a modem is to be set to.
//!
//! A table is read once ([`Table::from_json`]); then [`Table::pick`] is asked with each new measurement, and told what was picked
//! before, so that a modem at the edge between two settings does not swing between them. It is the same as the reader in Python
//! (`farlink.tune.reader`), by the same vectors.

mod row;

use std::fmt;

use serde::Deserialize;

pub use row::{Access, Row, Status};

/// A look-up table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// By share and number of flows, ascending.
    entries: Vec<Entry>,
}

/// Rows of one share and number of flows, ascending by C/N0.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    share: f64,
    flows: u32,
    rows: Vec<Row>,
}

/// What a setting is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Carrier power over noise density, in dBHz.
    pub cn0_dbhz: f64,
    /// Share of the carrier.
    pub share: f64,
    /// TCP connections that the share is divided among.
    pub flows: u32,
}

/// Where a modem stands: what to tell the next [`Table::pick`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Share of the row that was picked.
    pub share: f64,
    /// Its number of flows.
    pub flows: u32,
    /// Its step.
    pub step: u32,
}

/// What to set a modem to.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick<'a> {
    /// The row of the C/N0, or the nearest of the step at which the modem stays.
    pub row: &'a Row,
    /// What lay outside the table.
    pub warnings: Vec<Warning>,
}

impl Pick<'_> {
    /// What to tell the next [`Table::pick`].
    pub fn standing(&self) -> Standing {
        Standing { share: self.row.share, flows: self.row.flows, step: self.row.step }
    }
}

/// What lies outside a table; its nearest end holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// The table has no such number of flows.
    Flows {
        /// Asked for.
        asked: u32,
        /// Taken.
        taken: u32,
    },
    /// A share below the least or above the largest.
    Share {
        /// Asked for.
        asked: f64,
        /// The least there is.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// A C/N0 below the lowest or above the highest.
    CarrierToNoise {
        /// Asked for.
        asked_dbhz: f64,
        /// The lowest there is.
        low_dbhz: f64,
        /// The highest.
        high_dbhz: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Warning::Flows { asked, taken } => write!(f, "{asked} flows are not in the table: {taken} are taken"),
            Warning::Share { asked, low, high } => {
                write!(f, "a share of {asked} is outside the table, {low} to {high}")
            }
            Warning::CarrierToNoise { asked_dbhz, low_dbhz, high_dbhz } => {
                write!(f, "C/N0 of {asked_dbhz} dBHz is outside the table, {low_dbhz} to {high_dbhz} dBHz")
            }
        }
    }
}

/// Why a table is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Not what `farlink tune` writes.
    #[error("no look-up table: {0}; write one with: farlink tune STUDY.toml -o table.json")]
    Json(#[from] serde_json::Error),
    /// No row at all.
    #[error("a look-up table without rows; write one with: farlink tune STUDY.toml -o table.json")]
    Empty,
    /// Two rows for the same condition.
    #[error("share {share}, {flows} flows: {cn0_dbhz} dBHz is there twice; keep one row of each condition")]
    Twice {
        /// Of the rows.
        share: f64,
        /// Of the rows.
        flows: u32,
        /// Of the rows.
        cn0_dbhz: f64,
    },
    /// Steps that fall while C/N0 rises.
    #[error("share {share}, {flows} flows: steps do not ascend with C/N0; write the table anew")]
    Steps {
        /// Of the rows.
        share: f64,
        /// Of the rows.
        flows: u32,
    },
    /// A number that no table has.
    #[error(
        "a row with C/N0 {cn0_dbhz} dBHz, share {share} and {flows} flows; give finite numbers, a share above 0, 1 flow or more"
    )]
    OutOfRange {
        /// Of the row.
        cn0_dbhz: f64,
        /// Of the row.
        share: f64,
        /// Of the row.
        flows: u32,
    },
}

/// A condition that is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "C/N0 of {} dBHz, share {}, {} flows: not a condition; give a C/N0 in dBHz, a share above 0, and 1 or more flows",
    .0.cn0_dbhz, .0.share, .0.flows
)]
pub struct NoCondition(pub Condition);

/// What of a file is read.
#[derive(Deserialize)]
struct File {
    rows: Vec<Row>,
}

impl Table {
    /// Reads a table from the JSON that `farlink tune STUDY.toml -o table.json` writes.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(text: &str) -> Result<Table, TableError> {
        Table::new(serde_json::from_str::<File>(text)?.rows)
    }

    /// A table of these rows, which may come in any order.
    ///
    /// # Errors
    /// If there are none, a condition is there twice, a number is out of range, or steps do not ascend with C/N0.
    pub fn new(mut rows: Vec<Row>) -> Result<Table, TableError> {
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        if let Some(row) =
            rows.iter().find(|row| !(row.cn0_dbhz.is_finite() && is_positive(row.share) && row.flows > 0))
        {
            let Row { cn0_dbhz, share, flows, .. } = *row;
            return Err(TableError::OutOfRange { cn0_dbhz, share, flows });
        }
        rows.sort_by(|a, b| {
            a.share.total_cmp(&b.share).then(a.flows.cmp(&b.flows)).then(a.cn0_dbhz.total_cmp(&b.cn0_dbhz))
        });
        let mut entries: Vec<Entry> = Vec::new();
        for row in rows {
            let (share, flows) = (row.share, row.flows);
            match entries.last_mut().filter(|entry| entry.share == share && entry.flows == flows) {
                Some(entry) => {
                    let below = &entry.rows[entry.rows.len() - 1];
                    if below.cn0_dbhz == row.cn0_dbhz {
                        return Err(TableError::Twice { share, flows, cn0_dbhz: row.cn0_dbhz });
                    }
                    if row.step < below.step {
                        return Err(TableError::Steps { share, flows });
                    }
                    entry.rows.push(row);
                }
                None => entries.push(Entry { share, flows, rows: vec![row] }),
            }
        }
        Ok(Table { entries })
    }

    /// The setting for a condition.
    ///
    /// A modem that has no setting yet takes the highest step whose `down_dbhz` is reached. One that has (`current`) stays at it
    /// until C/N0 falls below its `down_dbhz`, or reaches the `up_dbhz` of a higher one. `current` does not count if it is of
    /// another share or number of flows than the table is entered with now.
    ///
    /// Of shares the nearest in ratio is taken. If the table has no such number of flows and the carrier is shared in time, one
    /// flow on so much smaller a share stands for them (Celandroni, Ferro and Potorti, section V); otherwise the nearest number.
    ///
    /// # Errors
    /// If the C/N0 is no number, the share is not above 0, or there is no flow.
    pub fn pick(&self, condition: Condition, current: Option<Standing>) -> Result<Pick<'_>, NoCondition> {
        let Condition { cn0_dbhz, share, flows } = condition;
        if cn0_dbhz.is_nan() || !is_positive(share) || flows == 0 {
            return Err(NoCondition(condition));
        }
        let mut warnings = Vec::new();
        let entry = self.entry(share, flows, &mut warnings);
        let (low_dbhz, high_dbhz) = (entry.rows[0].cn0_dbhz, entry.rows[entry.rows.len() - 1].cn0_dbhz);
        if !(low_dbhz..=high_dbhz).contains(&cn0_dbhz) {
            warnings.push(Warning::CarrierToNoise { asked_dbhz: cn0_dbhz, low_dbhz, high_dbhz });
        }
        let at = cn0_dbhz.clamp(low_dbhz, high_dbhz);
        let known = current.filter(|known| known.share == entry.share && known.flows == entry.flows);
        let row = entry.nearest(entry.step(at, known.map(|known| known.step)), at);
        Ok(Pick { row, warnings })
    }

    fn entry(&self, share: f64, flows: u32, warnings: &mut Vec<Warning>) -> &Entry {
        let has = |number: u32| self.entries.iter().any(|entry| entry.flows == number);
        let is_shared_in_time = self.entries[0].rows[0].access == Access::Tdma;
        let (share, flows) =
            if !has(flows) && has(1) && is_shared_in_time { (share / f64::from(flows), 1) } else { (share, flows) };
        let number = nearest(f64::from(flows), self.entries.iter().map(|entry| f64::from(entry.flows)));
        let of_number = || self.entries.iter().filter(move |entry| f64::from(entry.flows) == number);
        let taken = of_number().map(|entry| entry.flows).next().unwrap_or(flows);
        if taken != flows {
            warnings.push(Warning::Flows { asked: flows, taken });
        }
        let low = of_number().map(|entry| entry.share).fold(f64::INFINITY, f64::min);
        let high = of_number().map(|entry| entry.share).fold(0.0, f64::max);
        if !(low * (1.0 - CLOSE)..=high * (1.0 + CLOSE)).contains(&share) {
            warnings.push(Warning::Share { asked: share, low, high });
        }
        let chosen = nearest(share, of_number().map(|entry| entry.share));
        of_number().find(|entry| entry.share == chosen).expect("a share of the table was chosen")
    }
}

impl Entry {
    /// The step for a C/N0, of a modem that stands at `known`.
    fn step(&self, at_dbhz: f64, known: Option<u32>) -> u32 {
        let highest = |threshold: fn(&Row) -> Option<f64>| {
            let reached = |row: &&Row| threshold(row).is_none_or(|threshold| at_dbhz >= threshold);
            self.rows.iter().filter(reached).map(|row| row.step).max().unwrap_or(self.rows[0].step)
        };
        let held = highest(|row| row.down_dbhz);
        match known {
            None => held,
            Some(known) => highest(|row| row.up_dbhz).max(known.min(held)),
        }
    }

    /// The row of a step that is nearest below a C/N0; if all are above, the lowest.
    fn nearest(&self, step: u32, at_dbhz: f64) -> &Row {
        let of_step = || self.rows.iter().filter(move |row| row.step == step);
        let below = of_step().rfind(|row| row.cn0_dbhz <= at_dbhz);
        below.or_else(|| of_step().next()).unwrap_or(&self.rows[0])
    }
}

/// Shares that differ by less are the same: a third of a carrier is no decimal fraction.
const CLOSE: f64 = 1e-9;

/// The nearest in ratio, of two as near the smaller one.
fn nearest(value: f64, known: impl Iterator<Item = f64>) -> f64 {
    let off = |one: f64| (libm::log(one / value).abs() / CLOSE).round();
    known.min_by(|&a, &b| off(a).total_cmp(&off(b)).then(a.total_cmp(&b))).unwrap_or(value)
}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}
