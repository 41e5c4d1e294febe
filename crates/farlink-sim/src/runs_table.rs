//! Reads rows of runs from a table, to be summarised: those of a whole study, or of its pieces in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use farlink_core::scenario::quantity;

use crate::layout::{ALL, RowOf};
use crate::point_runs::ENGINE;
use crate::rows::Row;
use crate::table::{Column, Table};
use crate::tally::Place;
use crate::verdict::Verdict;

/// Why rows cannot be summarised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunsTableError {
    /// A column is missing or of another kind.
    #[error("rows: there is no column {name} of {kind}; give the rows as a run gave them")]
    Column {
        /// Name of the column.
        name: String,
        /// The required type.
        kind: &'static str,
    },
    /// Columns have different lengths.
    #[error("rows: column {name} has {length} entries and column point has {expected}; give whole rows")]
    Uneven {
        /// Name of the column.
        name: String,
        /// Number of its entries.
        length: usize,
        /// Number of entries of the first column.
        expected: usize,
    },
    /// The summary of that engine is not made from rows.
    #[error(
        "rows: row {row} is of the engine {engine}, whose intervals come from within a run; keep the summary that its run gave"
    )]
    Engine {
        /// Number of the row, from 0.
        row: usize,
        /// Engine of the row.
        engine: String,
    },
    /// The status is unknown.
    #[error("rows: row {row} has the unknown status {status}; it is ok, unfinished or stalled")]
    Status {
        /// Number of the row, from 0.
        row: usize,
        /// The status as given.
        status: String,
    },
    /// Rows of a run are missing.
    #[error("rows: run {run} of point {point} is incomplete; its last row is that of the flow all")]
    Cut {
        /// Number of the grid point.
        point: u64,
        /// Number of the run.
        run: u64,
    },
    /// A run occurs twice.
    #[error("rows: run {run} of point {point} occurs twice; give each run once")]
    Twice {
        /// Number of the grid point.
        point: u64,
        /// Number of the run.
        run: u64,
    },
    /// Runs are missing before the last one.
    #[error("rows: run {run} of point {point} is missing; whether runs are enough is asked of all runs from 0 on")]
    Missing {
        /// Number of the grid point.
        point: u64,
        /// Number of the run.
        run: u64,
    },
    /// The rows belong to another study.
    #[error("rows: run {run} of point {point} has other flows or another seed than expected; give rows of one study")]
    Foreign {
        /// Number of the grid point.
        point: u64,
        /// Number of the run.
        run: u64,
    },
}

/// The columns of a table of runs; all are empty for a table without columns.
#[derive(Debug, Default)]
pub(crate) struct RunsTable<'a> {
    point: &'a [u64],
    run: &'a [u64],
    seed: &'a [u64],
    flow: &'a [String],
    transport: &'a [String],
    status: &'a [String],
    reason: &'a [String],
    values: Vec<&'a [f64]>,
}

/// Position of the rows of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRows {
    point: u64,
    seed: u64,
    pub(crate) run: u64,
    rows: Range<usize>,
}

impl RunRows {
    pub(crate) fn place(&self) -> Place {
        Place { point: self.point, seed: self.seed }
    }
}

impl<'a> RunsTable<'a> {
    /// # Errors
    /// If a column is missing, uneven or of another engine.
    pub(crate) fn read(table: &'a Table) -> Result<Self, RunsTableError> {
        if table.columns.is_empty() {
            return Ok(RunsTable::default());
        }
        let point = whole(table, "point")?;
        let even = |name: &str, length: usize| {
            let uneven = RunsTableError::Uneven { name: name.to_owned(), length, expected: point.len() };
            if length == point.len() { Ok(()) } else { Err(uneven) }
        };
        let numbers = |name: &str| whole(table, name).and_then(|column| even(name, column.len()).map(|()| column));
        let texts = |name: &str| text(table, name).and_then(|column| even(name, column.len()).map(|()| column));
        let reals = |name: &str| real(table, name).and_then(|column| even(name, column.len()).map(|()| column));
        if let Some((row, engine)) = texts("engine")?.iter().enumerate().find(|(_, engine)| *engine != ENGINE) {
            return Err(RunsTableError::Engine { row, engine: engine.clone() });
        }
        let status = texts("status")?;
        let is_known = |status: &String| ["ok", "unfinished", "stalled"].contains(&status.as_str());
        if let Some((row, status)) = status.iter().enumerate().find(|(_, status)| !is_known(status)) {
            return Err(RunsTableError::Status { row, status: status.clone() });
        }
        Ok(RunsTable {
            point,
            run: numbers("run")?,
            seed: numbers("seed")?,
            flow: texts("flow")?,
            transport: texts("transport")?,
            status,
            reason: texts("reason")?,
            values: quantity::names().map(reals).collect::<Result<_, _>>()?,
        })
    }

    /// The runs of each point, in the order of points and runs.
    ///
    /// # Errors
    /// If a run is incomplete or occurs twice.
    pub(crate) fn points(&self) -> Result<Vec<Vec<RunRows>>, RunsTableError> {
        let mut points: BTreeMap<u64, Vec<RunRows>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut first = 0;
        for row in 0..self.point.len() {
            let (point, run) = (self.point[first], self.run[first]);
            if (self.point[row], self.run[row], self.seed[row]) != (point, run, self.seed[first]) {
                return Err(RunsTableError::Cut { point, run });
            }
            if self.flow[row] != ALL {
                continue;
            }
            if !known.insert((point, run)) {
                return Err(RunsTableError::Twice { point, run });
            }
            points.entry(point).or_default().push(RunRows { point, seed: self.seed[row], run, rows: first..row + 1 });
            first = row + 1;
        }
        if first < self.point.len() {
            return Err(RunsTableError::Cut { point: self.point[first], run: self.run[first] });
        }
        let sorted = |mut runs: Vec<RunRows>| {
            runs.sort_by_key(|of| of.run);
            runs
        };
        Ok(points.into_values().map(sorted).collect())
    }

    /// The runs of one point, which must be its first ones.
    ///
    /// # Errors
    /// As [`points`](Self::points), and if a run is missing between them.
    pub(crate) fn first_runs(&self, point: u64) -> Result<Vec<RunRows>, RunsTableError> {
        let runs = self.points()?.into_iter().find(|runs| runs[0].point == point).unwrap_or_default();
        match (0..).zip(&runs).find(|(expected, found)| found.run != *expected) {
            Some((run, _)) => Err(RunsTableError::Missing { point, run }),
            None => Ok(runs),
        }
    }

    /// The flows of a run.
    pub(crate) fn layout_of(&self, run: &RunRows) -> Vec<RowOf> {
        let row_of = |row: usize| RowOf {
            flow: self.flow[row].clone(),
            transport: self.transport[row].clone(),
            is_single: false,
        };
        run.rows.clone().map(row_of).collect()
    }

    /// # Errors
    /// If a run has other flows than these, or another seed.
    pub(crate) fn check(&self, run: &RunRows, layout: &[RowOf], seed: u64) -> Result<(), RunsTableError> {
        let is_row = |(row, of): (usize, &RowOf)| self.flow[row] == of.flow && self.transport[row] == of.transport;
        let is_same = run.rows.len() == layout.len() && run.seed == seed && run.rows.clone().zip(layout).all(is_row);
        if is_same { Ok(()) } else { Err(RunsTableError::Foreign { point: run.point, run: run.run }) }
    }

    /// The results of a run.
    pub(crate) fn rows_of(&self, run: &RunRows) -> Vec<Row> {
        let row_of = |row: usize| Row {
            verdict: match self.status[row].as_str() {
                "unfinished" => Verdict::Unfinished(self.reason[row].clone()),
                "stalled" => Verdict::Stalled(self.reason[row].clone()),
                _ => Verdict::Ok,
            },
            values: self.values.iter().map(|column| column[row]).collect(),
        };
        run.rows.clone().map(row_of).collect()
    }
}

fn column<'a>(table: &'a Table, name: &str) -> Option<&'a Column> {
    table.columns.iter().find(|(of, _)| of == name).map(|(_, column)| column)
}

fn whole<'a>(table: &'a Table, name: &str) -> Result<&'a [u64], RunsTableError> {
    match column(table, name) {
        Some(Column::Integer(values)) => Ok(values),
        _ => Err(RunsTableError::Column { name: name.to_owned(), kind: "whole numbers" }),
    }
}

fn text<'a>(table: &'a Table, name: &str) -> Result<&'a [String], RunsTableError> {
    match column(table, name) {
        Some(Column::Text(values)) => Ok(values),
        _ => Err(RunsTableError::Column { name: name.to_owned(), kind: "texts" }),
    }
}

fn real<'a>(table: &'a Table, name: &str) -> Result<&'a [f64], RunsTableError> {
    match column(table, name) {
        Some(Column::Real(values)) => Ok(values),
        _ => Err(RunsTableError::Column { name: name.to_owned(), kind: "numbers" }),
    }
}
