//! Collects the runs of a grid point: their means and spreads, and their rows if requested.

use farlink_core::scenario::quantity::QUANTITIES;

use crate::columns::{Missed, PointColumns, RunColumns};
use crate::layout::RowOf;
use crate::notes::FirstLowered;
use crate::rows::Row;
use crate::stats::{Interval, Moments, Quantiles};
use crate::verdict::Verdict;

/// The level of the intervals in the summary.
const SUMMARY_LEVEL: f64 = 0.95;

/// Identifies a point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) point: u64,
    pub(crate) seed: u64,
}

/// The runs of one grid point so far. They are added in order, so that sums do not depend on threads.
pub(crate) struct Tally {
    runs: u64,
    /// For each row of the layout.
    rows: Vec<RowTally>,
    /// All rows of all runs.
    kept: Option<RunColumns>,
    /// Rates that were lowered under way.
    pub(crate) lowered: FirstLowered,
}

#[derive(Clone, Default)]
struct RowTally {
    /// For each quantity.
    moments: Vec<Moments>,
    unfinished: Missed,
    stalled: Missed,
}

impl Tally {
    /// For points with `rows` rows per run.
    pub(crate) fn new(rows: usize, keeps_rows: bool) -> Self {
        let row = RowTally { moments: vec![Moments::default(); QUANTITIES.len()], ..RowTally::default() };
        Tally {
            runs: 0,
            rows: vec![row; rows],
            kept: keeps_rows.then(RunColumns::default),
            lowered: FirstLowered::default(),
        }
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, layout: &[RowOf], place: Place, run: u64, rows: &[Row]) {
        self.runs += 1;
        for (tally, row) in self.rows.iter_mut().zip(rows) {
            tally.moments.iter_mut().zip(&row.values).for_each(|(moments, &value)| moments.add(value));
            match &row.verdict {
                Verdict::Ok => {}
                Verdict::Unfinished(reason) => tally.unfinished.add(reason),
                Verdict::Stalled(reason) => tally.stalled.add(reason),
            }
        }
        let Some(columns) = &mut self.kept else { return };
        for (of, row) in layout.iter().zip(rows) {
            columns.point.push(place.point);
            columns.flow.push(of.flow.clone());
            columns.transport.push(of.transport.clone());
            columns.run.push(run);
            columns.seed.push(place.seed);
            columns.status.push(row.verdict.status().to_owned());
            columns.reason.push(row.verdict.reason().to_owned());
            columns.values.iter_mut().zip(&row.values).for_each(|(column, &value)| column.push(value));
        }
    }

    /// The mean of a quantity over all flows so far.
    pub(crate) fn of_all(&self, quantity: usize, quantiles: &mut Quantiles) -> Option<Interval> {
        self.rows.last()?.moments[quantity].interval(quantiles)
    }

    /// Ends the tally: returns an entry of the summary for each row, and the rows.
    pub(crate) fn finish(self, layout: &[RowOf], place: Place) -> (PointColumns, Option<RunColumns>) {
        let mut columns = PointColumns::default();
        let mut quantiles = Quantiles::new(SUMMARY_LEVEL);
        for (of, row) in layout.iter().zip(self.rows).filter(|_| self.runs > 0) {
            columns.point.push(place.point);
            columns.flow.push(of.flow.clone());
            columns.transport.push(of.transport.clone());
            columns.runs.push(self.runs);
            columns.unfinished.push(row.unfinished);
            columns.stalled.push(row.stalled);
            for ((means, half_widths), moments) in columns.values.iter_mut().zip(row.moments) {
                let found = moments.interval(&mut quantiles);
                means.push(found.map_or(f64::NAN, |found| found.mean));
                half_widths.push(found.map_or(f64::NAN, |found| found.half_width));
            }
        }
        (columns, self.kept)
    }
}
