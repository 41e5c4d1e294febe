//! Studies: all runs of all grid points on all cores, with a table that does not depend on their number; or any part of a study,
//! with the rows that the whole study has.

use std::borrow::Cow;
use std::ops::Range;

use farlink_core::ConfigError;
use farlink_core::path::Channels;
use farlink_core::scenario::{Expanded, Scenario};
use farlink_core::trace::TraceSource;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::columns::{PointColumns, RunColumns};
use crate::engine::Setup;
use crate::error_events::{Asked, Sources, WORK_PER_POINT};
use crate::estimate::{Estimate, of_study};
use crate::notes::{self, lowered_rates, notes};
use crate::options::{Announce, Options, Output, RunError, thread_pool};
use crate::point_runs::{ENGINE, PointRuns, least_runs};
use crate::resolve::resolve_with;
use crate::runs_table::{RunsTable, RunsTableError};
use crate::table::Table;
use crate::tally::Tally;
use crate::watch::{Progress, Watch};

/// A scenario that is ready to run: as a whole, or piece by piece in any order and on several threads at once. A run always has
/// the same rows, because its random numbers depend only on seed and run number.
///
/// A study in pieces: for each point, [`next_runs`](Self::next_runs) of the rows so far says which runs are needed;
/// [`run`](Self::run) returns their rows; [`summarise`] of all rows returns the summary of [`run`](run()).
pub struct Study<'a> {
    points: Cow<'a, Expanded>,
    setups: Vec<Setup>,
    sources: Sources,
    pool: ThreadPool,
    keeps_rows: bool,
    runs: Option<Range<u64>>,
}

impl std::fmt::Debug for Study<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Study").field("points", &self.setups.len()).finish_non_exhaustive()
    }
}

impl<'a> Study<'a> {
    /// Reads the files that the scenario names and collects the error events that its channels need. The limits of the cost,
    /// `[limits]`, apply to each piece: a whole study in pieces may take longer.
    ///
    /// # Errors
    /// If the scenario, or a file that it names, is not usable, or if it was stopped.
    pub fn new(points: Cow<'a, Expanded>, options: &Options, progress: Progress<'_>) -> Result<Self, RunError> {
        Self::prepare(points, options, &Watch::new(progress), |_, _, _| Ok(()))
    }

    fn prepare(
        points: Cow<'a, Expanded>,
        options: &Options,
        watch: &Watch<'_>,
        check: Check,
    ) -> Result<Self, RunError> {
        let sources = Sources::new(options.codes.clone());
        let pool = thread_pool(options.threads)?;
        let scenarios: Vec<&Scenario> = points.points.iter().map(|point| &point.scenario).collect();
        let setups = pool.install(|| setups(&scenarios, (&sources, options), watch, check))?;
        let (keeps_rows, runs) = (!options.without_rows, options.runs.clone());
        Ok(Study { points, setups, sources, pool, keeps_rows, runs })
    }

    /// Number of grid points.
    pub fn points(&self) -> usize {
        self.setups.len()
    }

    /// Performs some runs of a grid point: their rows are those of the whole study, the summary is of these runs only. If it is
    /// interrupted, it returns the finished ones.
    ///
    /// # Errors
    /// If there is no such point, or these runs are estimated to cost more than `[limits]` allows.
    pub fn run(&self, point: usize, runs: Range<u64>, progress: Progress<'_>) -> Result<Output, RunError> {
        let of_point = self.point(point)?;
        let count = runs.end.saturating_sub(runs.start);
        let setup = &self.setups[point..=point];
        let expected = of_study(setup.iter().zip([count]), self.pool.current_num_threads(), true);
        expected.check(self.points.points[point].scenario.limits, setup)?;
        let watch = Watch::new(progress);
        watch.expect(count);
        let mut tally = Tally::new(of_point.layout.rows.len(), true);
        self.pool.install(|| of_point.run(&mut tally, runs, &watch));
        let lowered = std::mem::take(&mut tally.lowered);
        let (summary, rows) = tally.finish(&of_point.layout.rows, of_point.place);
        Ok(Output {
            rows: rows.unwrap_or_default().into_table(ENGINE),
            summary: summary.into_table(ENGINE),
            interrupted: watch.is_stopped(),
            notes: lowered_rates(std::iter::once((of_point.remarked(), lowered))),
        })
    }

    /// The runs that the whole study would do next at a grid point with these rows; `None` if they are enough. Rows of other
    /// points are ignored.
    ///
    /// Without `precision`, these are the rest of `runs`. With it, the rule is evaluated at certain numbers of runs only, so that
    /// it ends where the whole study ends, in whatever pieces the runs are done.
    ///
    /// # Errors
    /// If there is no such point, or the rows are not those of its first runs.
    pub fn next_runs(&self, point: usize, rows: &Table) -> Result<Option<Range<u64>>, StudyError> {
        let of_point = self.point(point)?;
        let table = RunsTable::read(rows)?;
        let runs = table.first_runs(point as u64)?;
        let mut tally = Tally::new(of_point.layout.rows.len(), false);
        for run in &runs {
            table.check(run, &of_point.layout.rows, of_point.place.seed)?;
            tally.add(&of_point.layout.rows, of_point.place, run.run, &table.rows_of(run));
        }
        Ok(of_point.next_runs(runs.len() as u64, &tally))
    }

    /// Remarks for the user on the study as a whole.
    pub fn notes(&self) -> Vec<String> {
        let scenarios = self.points.points.iter().map(|point| &point.scenario);
        let remarked: Vec<notes::Point<'_>> =
            scenarios.zip(&self.setups).map(|(scenario, setup)| notes::Point { scenario, setup }).collect();
        self.sources.notes().into_iter().chain(notes(&remarked)).collect()
    }

    fn point(&self, point: usize) -> Result<PointRuns<'_>, ConfigError> {
        let (Some(of), Some(setup)) = (self.points.points.get(point), self.setups.get(point)) else {
            let what = format!("there is no point {point}");
            return Err(ConfigError::new("point", what, format!("give 0 to {}", self.setups.len() - 1)));
        };
        Ok(PointRuns::new(point as u64, &of.scenario, setup))
    }

    fn run_all(&self, watch: &Watch<'_>) -> Output {
        let points: Vec<PointRuns<'_>> = (0..self.points()).filter_map(|point| self.point(point).ok()).collect();
        let finished = |point: &PointRuns<'_>| {
            let mut tally = match &self.runs {
                Some(runs) => point.run_some(runs.clone(), self.keeps_rows, watch),
                None => point.run_all(self.keeps_rows, watch),
            };
            let lowered = std::mem::take(&mut tally.lowered);
            (tally.finish(&point.layout.rows, point.place), lowered)
        };
        let results: Vec<_> = self.pool.install(|| points.par_iter().map(finished).collect());
        let (mut summary, mut rows, mut all_lowered) = (PointColumns::default(), None, Vec::new());
        for ((of_point, kept), lowered) in results {
            all_lowered.push(lowered);
            summary.append(of_point);
            if let Some(kept) = kept {
                rows.get_or_insert_with(RunColumns::default).append(kept);
            }
        }
        let remarked = points.iter().map(PointRuns::remarked);
        Output {
            rows: rows.map(|rows| rows.into_table(ENGINE)).unwrap_or_default(),
            summary: summary.into_table(ENGINE),
            interrupted: watch.is_stopped(),
            notes: self.notes().into_iter().chain(lowered_rates(remarked.zip(all_lowered))).collect(),
        }
    }
}

/// Why a part of a study cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// There is no such point.
    #[error(transparent)]
    Scenario(#[from] ConfigError),
    /// The rows are not usable.
    #[error(transparent)]
    Rows(#[from] RunsTableError),
}

/// Runs every point of a scenario.
///
/// # Errors
/// If the scenario, or a file that it names, is not usable.
pub fn run(points: &Expanded, options: &Options, progress: Progress<'_>) -> Result<Output, RunError> {
    let watch = Watch::new(progress);
    watch.expect(points.points.iter().map(|point| expected_runs(&point.scenario, options)).sum());
    Ok(Study::prepare(Cow::Borrowed(points), options, &watch, check_whole)?.run_all(&watch))
}

/// The summary of rows: of each point and flow, over its runs in their order. Rows of several pieces may be given in any order;
/// the summary is the same to the bit as that of the whole study.
///
/// # Errors
/// If a column is missing, a run occurs twice or has other flows than another, or the rows belong to an engine whose summary is
/// not made from rows.
pub fn summarise(rows: &Table) -> Result<Table, RunsTableError> {
    let table = RunsTable::read(rows)?;
    let mut summary = PointColumns::default();
    for runs in table.points()? {
        let (layout, place) = (table.layout_of(&runs[0]), runs[0].place());
        let mut tally = Tally::new(layout.len(), false);
        for run in &runs {
            table.check(run, &layout, place.seed)?;
            tally.add(&layout, place, run.run, &table.rows_of(run));
        }
        summary.append(tally.finish(&layout, place).0);
    }
    Ok(summary.into_table(ENGINE))
}

/// Resolves all points. The error events that they need are collected together, after everything else was checked.
fn setups(
    scenarios: &[&Scenario],
    (sources, options): (&Sources, &Options),
    watch: &Watch<'_>,
    check: Check,
) -> Result<Vec<Setup>, RunError> {
    let resolve_all = |traces: &dyn TraceSource| -> Result<Vec<Setup>, ConfigError> {
        let mut channels = Channels::default();
        scenarios.iter().map(|scenario| resolve_with(scenario, traces, &mut channels)).collect()
    };
    let asked = Asked::new(sources);
    let setups = resolve_all(&asked)?;
    check(scenarios, &setups, options)?;
    let wanted = asked.into_points();
    if wanted.is_empty() {
        return Ok(setups);
    }
    let work = WORK_PER_POINT * wanted.len() as u64;
    watch.expect(work);
    if sources.collect_all(&wanted, &|done| watch.report(done)).is_break() {
        return Err(RunError::Stopped);
    }
    watch.finish(work);
    Ok(resolve_all(sources)?)
}

/// Checks the estimated cost of resolved points before anything long begins.
type Check = fn(&[&Scenario], &[Setup], &Options) -> Result<(), ConfigError>;

/// Refuses a study that costs more than the limits allow; announces one that will take long.
fn check_whole(scenarios: &[&Scenario], setups: &[Setup], options: &Options) -> Result<(), ConfigError> {
    let threads = rayon::current_num_threads();
    let expected = estimate_of(scenarios, setups, threads, options);
    if let Some(scenario) = scenarios.first() {
        expected.check(scenario.limits, setups)?;
    }
    if let (Some(Announce(tell)), Some(text)) = (&options.announce, expected.announcement(setups, threads)) {
        tell(&text);
    }
    Ok(())
}

fn estimate_of(scenarios: &[&Scenario], setups: &[Setup], threads: usize, options: &Options) -> Estimate {
    let runs = scenarios.iter().map(|scenario| expected_runs(scenario, options));
    of_study(setups.iter().zip(runs), threads, !options.without_rows)
}

/// How many runs of a point there are at least.
fn expected_runs(scenario: &Scenario, options: &Options) -> u64 {
    options.runs.as_ref().map_or_else(|| least_runs(scenario), |runs| runs.end.saturating_sub(runs.start))
}

/// The estimated cost of a study.
///
/// # Errors
/// If the scenario, or a file that it names, is not usable.
pub fn estimate(points: &Expanded, options: &Options) -> Result<Estimate, RunError> {
    let sources = Sources::new(options.codes.clone());
    let asked = Asked::new(&sources);
    let mut channels = Channels::default();
    let scenarios: Vec<&Scenario> = points.points.iter().map(|point| &point.scenario).collect();
    let setups: Result<Vec<Setup>, _> =
        scenarios.iter().map(|scenario| resolve_with(scenario, &asked, &mut channels)).collect();
    Ok(estimate_of(&scenarios, &setups?, options.threads.unwrap_or(1), options))
}
