//! The two tables of every engine: a row per run, and a row per point.

use farlink_core::scenario::quantity::{self, QUANTITIES};

use crate::table::{Column, Table};

/// Runs that did not reach their end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    pub(crate) runs: u64,
    /// The reason of the first.
    pub(crate) reason: String,
}

impl Missed {
    pub(crate) fn add(&mut self, reason: &str) {
        if self.runs == 0 {
            reason.clone_into(&mut self.reason);
        }
        self.runs += 1;
    }
}

/// The table of runs while it is filled.
pub(crate) struct RunColumns {
    pub(crate) point: Vec<u64>,
    pub(crate) flow: Vec<String>,
    pub(crate) transport: Vec<String>,
    pub(crate) run: Vec<u64>,
    pub(crate) seed: Vec<u64>,
    pub(crate) status: Vec<String>,
    pub(crate) reason: Vec<String>,
    /// A column for each of [`QUANTITIES`].
    pub(crate) values: Vec<Vec<f64>>,
}

impl Default for RunColumns {
    fn default() -> Self {
        RunColumns {
            point: Vec::new(),
            flow: Vec::new(),
            transport: Vec::new(),
            run: Vec::new(),
            seed: Vec::new(),
            status: Vec::new(),
            reason: Vec::new(),
            values: vec![Vec::new(); QUANTITIES.len()],
        }
    }
}

impl RunColumns {
    /// Appends the rows of another table.
    pub(crate) fn append(&mut self, mut other: Self) {
        if self.point.is_empty() {
            *self = other;
            return;
        }
        for (column, more) in
            [(&mut self.point, &mut other.point), (&mut self.run, &mut other.run), (&mut self.seed, &mut other.seed)]
        {
            column.append(more);
        }
        for (column, more) in [
            (&mut self.flow, &mut other.flow),
            (&mut self.transport, &mut other.transport),
            (&mut self.status, &mut other.status),
            (&mut self.reason, &mut other.reason),
        ] {
            column.append(more);
        }
        self.values.iter_mut().zip(&mut other.values).for_each(|(column, more)| column.append(more));
    }

    pub(crate) fn into_table(self, engine: &str) -> Table {
        let engine = vec![engine.to_owned(); self.point.len()];
        let mut columns: Vec<(String, Column)> = vec![
            ("point".into(), Column::Integer(self.point)),
            ("engine".into(), Column::Text(engine)),
            ("flow".into(), Column::Text(self.flow)),
            ("transport".into(), Column::Text(self.transport)),
            ("run".into(), Column::Integer(self.run)),
            ("seed".into(), Column::Integer(self.seed)),
            ("status".into(), Column::Text(self.status)),
            ("reason".into(), Column::Text(self.reason)),
        ];
        columns.extend(quantity::names().zip(self.values).map(|(name, values)| (name.into(), Column::Real(values))));
        Table { columns }
    }
}

/// The table of points while it is filled.
pub(crate) struct PointColumns {
    pub(crate) point: Vec<u64>,
    pub(crate) flow: Vec<String>,
    pub(crate) transport: Vec<String>,
    pub(crate) runs: Vec<u64>,
    /// Runs that ended before the flow did.
    pub(crate) unfinished: Vec<Missed>,
    /// Runs in which the flow stalled.
    pub(crate) stalled: Vec<Missed>,
    /// Means and half-widths at 95 % for each of [`QUANTITIES`].
    pub(crate) values: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Default for PointColumns {
    fn default() -> Self {
        PointColumns {
            point: Vec::new(),
            flow: Vec::new(),
            transport: Vec::new(),
            runs: Vec::new(),
            unfinished: Vec::new(),
            stalled: Vec::new(),
            values: vec![Default::default(); QUANTITIES.len()],
        }
    }
}

impl PointColumns {
    /// Appends the entries of another table.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.point.append(&mut other.point);
        self.flow.append(&mut other.flow);
        self.transport.append(&mut other.transport);
        self.runs.append(&mut other.runs);
        self.unfinished.append(&mut other.unfinished);
        self.stalled.append(&mut other.stalled);
        for ((means, half_widths), (more_means, more_widths)) in self.values.iter_mut().zip(&mut other.values) {
            means.append(more_means);
            half_widths.append(more_widths);
        }
    }

    pub(crate) fn into_table(self, engine: &str) -> Table {
        let engine = vec![engine.to_owned(); self.point.len()];
        let mut columns: Vec<(String, Column)> = vec![
            ("point".into(), Column::Integer(self.point)),
            ("engine".into(), Column::Text(engine)),
            ("flow".into(), Column::Text(self.flow)),
            ("transport".into(), Column::Text(self.transport)),
            ("runs".into(), Column::Integer(self.runs)),
        ];
        for (name, missed) in [("unfinished", self.unfinished), ("stalled", self.stalled)] {
            let (runs, reasons) = missed.into_iter().map(|missed| (missed.runs, missed.reason)).unzip();
            columns.push((format!("{name}_runs"), Column::Integer(runs)));
            columns.push((format!("{name}_reason"), Column::Text(reasons)));
        }
        for (name, (means, half_widths)) in quantity::names().zip(self.values) {
            columns.push((name.to_owned(), Column::Real(means)));
            columns.push((format!("{name}_ci95"), Column::Real(half_widths)));
        }
        Table { columns }
    }
}
