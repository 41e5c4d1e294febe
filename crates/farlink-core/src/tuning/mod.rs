//! Look-up tables of modulation, code and packet size for a modem, as `farlink tune` writes them.
//!
//! A table is read once ([`Table::from_json`]). Then [`Table::pick`] is called with each new measurement and the previous choice,
//! so that a modem at the boundary of two settings does not switch back and forth. Its behaviour is that of the reader in Python
//! (`farlink.tune.reader`), tested with the same vectors.
//!
//! A table over several round trips and buffers is a [`PathTable`], of which [`PathTable::on_path`] makes the [`Table`] of a path.

mod path;
mod row;

use std::fmt;

use serde::Deserialize;

pub use path::{Axis, NoPath, OutsideTable, Path, PathTable};
pub use row::{Access, Row, Status};

/// A look-up table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In ascending order of share and number of flows.
    entries: Vec<Entry>,
}

/// The rows of one share and number of flows, in ascending order of C/N0.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    share: f64,
    flows: u32,
    rows: Vec<Row>,
}

/// The condition for which a setting is requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Carrier power over noise density, in dBHz.
    pub cn0_dbhz: f64,
    /// Share of the carrier.
    pub share: f64,
    /// Number of TCP connections that the share is divided among.
    pub flows: u32,
}

/// The present setting of a modem, for the next [`Table::pick`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Share of the row that was chosen.
    pub share: f64,
    /// Its number of flows.
    pub flows: u32,
    /// Its round trip, in a table that [`PathTable::on_path`] has made.
    pub round_trip_s: Option<f64>,
    /// Its buffer; likewise.
    pub buffer_bdp: Option<f64>,
    /// Its step.
    pub step: i32,
}

/// The setting for a modem.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick<'a> {
    /// The row for the C/N0, or the nearest row of the step at which the modem stays.
    pub row: &'a Row,
    /// The parts of the condition that lay outside the table.
    pub warnings: Vec<Warning>,
}

impl Pick<'_> {
    /// The present setting, for the next [`Table::pick`].
    pub fn standing(&self) -> Standing {
        let Row { share, flows, round_trip_s, buffer_bdp, step, .. } = *self.row;
        Standing { share, flows, round_trip_s, buffer_bdp, step }
    }
}

/// A part of a condition that lies outside the table; the nearest end of the table is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// The table does not have this number of flows.
    Flows {
        /// The requested number.
        asked: u32,
        /// The number that is used.
        taken: u32,
    },
    /// The share is below the smallest or above the largest.
    Share {
        /// The requested share.
        asked: f64,
        /// The smallest share of the table.
        low: f64,
        /// The largest share of the table.
        high: f64,
    },
    /// The C/N0 is below the lowest or above the highest.
    CarrierToNoise {
        /// The requested C/N0.
        asked_dbhz: f64,
        /// The lowest C/N0 of the table.
        low_dbhz: f64,
        /// The highest C/N0 of the table.
        high_dbhz: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Warning::Flows { asked, taken } => write!(f, "{asked} flows are not in the table: {taken} are used"),
            Warning::Share { asked, low, high } => {
                write!(f, "a share of {asked} is outside the table, {low} to {high}")
            }
            Warning::CarrierToNoise { asked_dbhz, low_dbhz, high_dbhz } => {
                write!(f, "C/N0 of {asked_dbhz} dBHz is outside the table, {low_dbhz} to {high_dbhz} dBHz")
            }
        }
    }
}

/// Why a table is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The text is not the output of `farlink tune`.
    #[error("no look-up table: {0}; write one with: farlink tune STUDY.toml -o table.json")]
    Json(#[from] serde_json::Error),
    /// There is no row.
    #[error("a look-up table without rows; write one with: farlink tune STUDY.toml -o table.json")]
    Empty,
    /// There are two rows for the same condition.
    #[error("share {share}, {flows} flows: {cn0_dbhz} dBHz occurs twice; keep one row for each condition")]
    Twice {
        /// Share of the rows.
        share: f64,
        /// Number of flows of the rows.
        flows: u32,
        /// C/N0 of the rows.
        cn0_dbhz: f64,
    },
    /// The steps decrease while C/N0 increases.
    #[error("share {share}, {flows} flows: steps do not ascend with C/N0; write the table again with farlink tune")]
    Steps {
        /// Share of the rows.
        share: f64,
        /// Number of flows of the rows.
        flows: u32,
    },
    /// The rows are of several paths.
    #[error("a look-up table over several round trips or buffers; read it as a PathTable")]
    SeveralPaths,
    /// The rows are of one path.
    #[error("a look-up table of one path; read it as a Table")]
    OnePath,
    /// Paths differ in their conditions.
    #[error(
        "share {share}, {flows} flows: a path lacks a condition that another one has; write the table again with farlink tune"
    )]
    Grid {
        /// Share of the rows.
        share: f64,
        /// Number of flows of the rows.
        flows: u32,
    },
    /// A setting has no goodput to interpolate.
    #[error(
        "share {share}, {flows} flows, {cn0_dbhz} dBHz: a setting without a goodput above 0; write the table again with farlink tune"
    )]
    Goodput {
        /// Share of the row.
        share: f64,
        /// Number of flows of the row.
        flows: u32,
        /// C/N0 of the row.
        cn0_dbhz: f64,
    },
    /// A step begins between paths where no row of the table says its thresholds.
    #[error(
        "share {share}, {flows} flows, {cn0_dbhz} dBHz: a step begins there that has no thresholds; write the table again with farlink tune"
    )]
    Thresholds {
        /// Share of the row.
        share: f64,
        /// Number of flows of the row.
        flows: u32,
        /// C/N0 of the row.
        cn0_dbhz: f64,
    },
    /// A number is out of its range.
    #[error(
        "a row with C/N0 {cn0_dbhz} dBHz, share {share} and {flows} flows; give finite numbers, a share above 0, 1 flow or more"
    )]
    OutOfRange {
        /// C/N0 of the row.
        cn0_dbhz: f64,
        /// Share of the row.
        share: f64,
        /// Number of flows of the row.
        flows: u32,
    },
}

/// An invalid condition.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "C/N0 of {} dBHz, share {}, {} flows: not a condition; give a C/N0 in dBHz, a share above 0, and 1 or more flows",
    .0.cn0_dbhz, .0.share, .0.flows
)]
pub struct NoCondition(pub Condition);

/// Why a bandwidth is no share of the carrier.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoShare {
    /// The bandwidth is not above 0.
    #[error("a bandwidth of {0}; give symbols per second, above 0")]
    OutOfRange(f64),
    /// The table has not one symbol rate.
    #[error("a bandwidth, and the table has settings of {0:?} symbol/s, not of one symbol rate; give a share")]
    SymbolRates(Vec<f64>),
}

/// The part of a file that is used.
#[derive(Deserialize)]
struct File {
    rows: Vec<Row>,
}

impl Table {
    /// Reads a table from the JSON that `farlink tune STUDY.toml -o table.json` writes.
    ///
    /// # Errors
    /// If the table is invalid.
    pub fn from_json(text: &str) -> Result<Table, TableError> {
        Table::new(serde_json::from_str::<File>(text)?.rows)
    }

    /// A table of these rows, in any order.
    ///
    /// # Errors
    /// If there are none, a condition occurs twice, a number is out of range, or steps do not ascend with C/N0.
    pub fn new(mut rows: Vec<Row>) -> Result<Table, TableError> {
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        if rows.iter().any(|row| row.path() != rows[0].path()) {
            return Err(TableError::SeveralPaths);
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
    /// A modem without a setting gets the highest step whose `down_dbhz` is reached. A modem with a setting (`current`) keeps it
    /// until C/N0 falls below its `down_dbhz`, or reaches the `up_dbhz` of a higher step. `current` is ignored if it belongs to
    /// another share, number of flows or path than those now used.
    ///
    /// The share used is the nearest in ratio. If the table does not have the number of flows and the carrier is shared in time,
    /// one flow on a correspondingly smaller share is used instead (Celandroni, Ferro and Potorti, section V); otherwise the
    /// nearest number of flows.
    ///
    /// # Errors
    /// If the C/N0 is NaN, the share is not above 0, or there is no flow.
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
        let path = (entry.rows[0].round_trip_s, entry.rows[0].buffer_bdp);
        let is_of = |known: &Standing| {
            (known.share, known.flows, known.round_trip_s, known.buffer_bdp)
                == (entry.share, entry.flows, path.0, path.1)
        };
        let known = current.filter(is_of);
        let row = entry.nearest(entry.step(at, known.map(|known| known.step)), at);
        Ok(Pick { row, warnings })
    }

    /// The share of the carrier that an allotted bandwidth is, for [`Condition::share`]. Celandroni's section V enters the table so.
    ///
    /// The bandwidth is in symbols per second; that of a carrier with a roll-off `a` is the occupied bandwidth over 1 + `a`.
    ///
    /// # Errors
    /// If the bandwidth is not above 0, or the table's settings do not all have the same symbol rate.
    pub fn share_of_bandwidth(&self, bandwidth_hz: f64) -> Result<f64, NoShare> {
        if !is_positive(bandwidth_hz) {
            return Err(NoShare::OutOfRange(bandwidth_hz));
        }
        let mut rates: Vec<f64> =
            self.entries.iter().flat_map(|entry| &entry.rows).filter_map(|row| row.symbol_rate_hz).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        match rates[..] {
            [rate] => Ok(bandwidth_hz / rate),
            _ => Err(NoShare::SymbolRates(rates)),
        }
    }

    /// The rows from which [`Table::pick`] takes one for exactly this share and number of flows, by C/N0; none if it has not got them.
    pub fn rows(&self, share: f64, flows: u32) -> impl Iterator<Item = &Row> {
        let entries = self.entries.iter().filter(move |entry| entry.share == share && entry.flows == flows);
        entries.flat_map(|entry| &entry.rows)
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
    /// The step for a C/N0, for a modem whose present step is `known`.
    fn step(&self, at_dbhz: f64, known: Option<i32>) -> i32 {
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

    /// The row of a step that is nearest below a C/N0; the lowest one if all are above.
    fn nearest(&self, step: i32, at_dbhz: f64) -> &Row {
        let of_step = || self.rows.iter().filter(move |row| row.step == step);
        let below = of_step().rfind(|row| row.cn0_dbhz <= at_dbhz);
        below.or_else(|| of_step().next()).unwrap_or(&self.rows[0])
    }
}

/// Shares that differ by less count as equal, because a third of a carrier has no exact decimal fraction.
const CLOSE: f64 = 1e-9;

/// The nearest in ratio; of two equally near ones the smaller.
fn nearest(value: f64, known: impl Iterator<Item = f64>) -> f64 {
    let off = |one: f64| (libm::log(one / value).abs() / CLOSE).round();
    known.min_by(|&a, &b| off(a).total_cmp(&off(b)).then(a.total_cmp(&b))).unwrap_or(value)
}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}
