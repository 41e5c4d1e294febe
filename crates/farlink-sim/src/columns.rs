//! The two tables of every engine: a row per run, and a row per point.

use farlink_core::scenario::quantity::{self, QUANTITIES};

use crate::table::{Column, Table};

/// The table of runs, as it grows.
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

/// The table of points, as it grows.
pub(crate) struct PointColumns {
    pub(crate) point: Vec<u64>,
    pub(crate) flow: Vec<String>,
    pub(crate) transport: Vec<String>,
    pub(crate) runs: Vec<u64>,
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
            values: vec![Default::default(); QUANTITIES.len()],
        }
    }
}

impl PointColumns {
    pub(crate) fn into_table(self, engine: &str) -> Table {
        let engine = vec![engine.to_owned(); self.point.len()];
        let mut columns: Vec<(String, Column)> = vec![
            ("point".into(), Column::Integer(self.point)),
            ("engine".into(), Column::Text(engine)),
            ("flow".into(), Column::Text(self.flow)),
            ("transport".into(), Column::Text(self.transport)),
            ("runs".into(), Column::Integer(self.runs)),
        ];
        for (name, (means, half_widths)) in quantity::names().zip(self.values) {
            columns.push((name.to_owned(), Column::Real(means)));
            columns.push((format!("{name}_ci95"), Column::Real(half_widths)));
        }
        Table { columns }
    }
}
