//! All runs of all grid points, on all cores; the same table on any number of them.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farlink_core::scenario::quantity;
use farlink_core::scenario::{Expanded, Precision, Scenario, ScenarioError};
use farlink_core::trace::TraceSource;
use rayon::prelude::*;

use crate::columns::{PointColumns, RunColumns};
use crate::engine::{NoTrace, Setup, simulate};
use crate::error_events::{Asked, Sources, WORK_PER_POINT};
use crate::estimate::{Estimate, of_study};
use crate::layout::Layout;
use crate::notes::{self, notes};
use crate::resolve::{Channels, resolve_with};
use crate::rows::{Row, rows};
use crate::stats::interval;
use crate::table::Table;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads; as many as there are cores unless given.
    pub threads: Option<usize>,
    /// Where error events are kept; see [`Sources::new`].
    pub codes: Option<PathBuf>,
    /// Told before it begins that a study will take long.
    pub announce: Option<Announce>,
}

/// Something to tell before a study begins.
#[derive(Clone)]
pub struct Announce(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Announce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Announce(..)")
    }
}

/// What a scenario gave.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// A row per point, engine, flow and run.
    pub rows: Table,
    /// A row per point, engine and flow.
    pub summary: Table,
    /// Whether it was stopped before its end; the finished runs are there.
    pub interrupted: bool,
    /// What the user should know: kept files that could not be used.
    pub notes: Vec<String>,
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario, or a file that it names, is not usable.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There are no threads to run on.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// It was asked to stop before there was anything to give.
    #[error("stopped before its end")]
    Stopped,
}

/// Told how many runs are done, of how many; asks to stop with `Break`. Collecting the error events of one coding counts as
/// 100 runs.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// The level of the intervals in the summary.
const SUMMARY_LEVEL: f64 = 0.95;

/// The finished runs of one grid point with their numbers, in their order. Each has the rows of the point's layout.
type Runs = Vec<(u64, Vec<Row>)>;

/// A grid point, ready to run, and the rows that its runs have.
struct Point<'a> {
    scenario: &'a Scenario,
    setup: &'a Setup,
    layout: Layout,
}

/// Runs every point of a scenario.
///
/// # Errors
/// If the scenario, or a file that it names, is not usable.
pub fn run(points: &Expanded, options: &Options, progress: Progress<'_>) -> Result<Output, RunError> {
    let sources = Sources::new(options.codes.clone());
    let scenarios: Vec<&Scenario> = points.points.iter().map(|point| &point.scenario).collect();
    let pool = thread_pool(options.threads)?;
    let watch = Watch::new(progress);
    watch.expect(scenarios.iter().map(|scenario| least_runs(scenario)).sum());
    let setups = pool.install(|| setups(&scenarios, (&sources, options), &watch))?;
    let study: Vec<(&Scenario, &Setup)> = scenarios.into_iter().zip(&setups).collect();
    let points: Vec<Point<'_>> =
        study.iter().map(|&(scenario, setup)| Point { scenario, setup, layout: Layout::of(setup) }).collect();
    let results: Vec<Runs> = pool.install(|| points.par_iter().map(|point| point_runs(point, &watch)).collect());
    let remarked: Vec<notes::Point<'_>> =
        study.iter().map(|&(scenario, setup)| notes::Point { scenario, setup }).collect();
    Ok(Output {
        rows: rows_table(&points, &results),
        summary: summary_table(&points, &results),
        interrupted: watch.is_stopped(),
        notes: sources.notes().into_iter().chain(notes(&remarked)).collect(),
    })
}

/// So many threads, or as many as there are cores.
///
/// # Errors
/// If they cannot be started.
pub fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool, RunError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| RunError::Threads(error.to_string()))
}

/// Resolves all points. The error events that they need are collected together, once all else is known to be in order.
fn setups(
    scenarios: &[&Scenario],
    (sources, options): (&Sources, &Options),
    watch: &Watch<'_>,
) -> Result<Vec<Setup>, RunError> {
    let resolve_all = |traces: &dyn TraceSource| -> Result<Vec<Setup>, ScenarioError> {
        let mut channels = Channels::default();
        scenarios.iter().map(|scenario| resolve_with(scenario, traces, &mut channels)).collect()
    };
    let asked = Asked::new(sources);
    let setups = resolve_all(&asked)?;
    let threads = rayon::current_num_threads();
    let expected = estimate_of(scenarios, &setups, threads);
    if let Some(scenario) = scenarios.first() {
        expected.check(scenario.limits, &setups)?;
    }
    if let (Some(Announce(tell)), Some(text)) = (&options.announce, expected.announcement(&setups, threads)) {
        tell(&text);
    }
    let wanted = asked.into_points();
    if wanted.is_empty() {
        return Ok(setups);
    }
    let work = WORK_PER_POINT * wanted.len() as u64;
    watch.expect(work);
    if sources.collect_all(&wanted, &|done| watch.report(done)).is_break() {
        return Err(RunError::Stopped);
    }
    watch.done.fetch_add(work, Ordering::Relaxed);
    Ok(resolve_all(sources)?)
}

fn estimate_of(scenarios: &[&Scenario], setups: &[Setup], threads: usize) -> Estimate {
    of_study(setups.iter().zip(scenarios.iter().map(|scenario| least_runs(scenario))), threads)
}

/// What a study will cost, before it is refused for that or begins.
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
    Ok(estimate_of(&scenarios, &setups?, options.threads.unwrap_or(1)))
}

/// Counts runs, and passes on the wish to stop.
pub(crate) struct Watch<'a> {
    progress: Progress<'a>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(progress: Progress<'a>) -> Self {
        Watch { progress, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    pub(crate) fn expect(&self, runs: u64) {
        self.total.fetch_add(runs, Ordering::Relaxed);
    }

    pub(crate) fn finish_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self, done: u64) -> ControlFlow<()> {
        (self.progress)(done, self.total.load(Ordering::Relaxed))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.report(self.done.load(Ordering::Relaxed)).is_break()
    }
}

fn least_runs(scenario: &Scenario) -> u64 {
    match (&scenario.precision, scenario.runs) {
        (Some(precision), _) => precision.min_runs.whole(),
        (None, runs) => runs.map_or(1, |runs| runs.whole()),
    }
}

/// All runs of one point; interrupted, those that were finished.
fn point_runs(point: &Point<'_>, watch: &Watch<'_>) -> Runs {
    let mut runs = batch(point, 0..least_runs(point.scenario), watch);
    let Some(precision) = &point.scenario.precision else { return runs };
    let most = precision.max_runs.whole();
    // The rule is asked after 25 % more runs each time, in the order of the runs: never at a moment that a thread picks,
    // and seldom enough that a lucky streak does not end it.
    while !watch.is_stopped() && (runs.len() as u64) < most && !is_precise(precision, &point.layout, &runs) {
        let first = runs.len() as u64;
        let next = (first + first.div_ceil(4)).min(most);
        watch.expect(next - first);
        runs.extend(batch(point, first..next, watch));
    }
    runs
}

fn batch(point: &Point<'_>, runs: std::ops::Range<u64>, watch: &Watch<'_>) -> Runs {
    let seed = point.scenario.seed.whole();
    runs.into_par_iter()
        .filter_map(|run| {
            // Short runs end before they ask.
            if watch.is_stopped() {
                return None;
            }
            let result = simulate(point.setup, seed, run, &mut NoTrace, &|| watch.is_stopped())?;
            watch.finish_one();
            Some((run, rows(&point.layout, point.setup, &result)))
        })
        .collect()
}

/// Whether the interval of the aggregate is narrow enough.
fn is_precise(precision: &Precision, layout: &Layout, runs: &Runs) -> bool {
    let Some(index) = quantity::names().position(|name| name == precision.quantity) else { return true };
    let values = runs.iter().map(|(_, rows)| rows[layout.all()].values[index]);
    interval(values, precision.level.get())
        .is_some_and(|found| found.half_width <= precision.ci.get() * found.mean.abs())
}

fn rows_table(points: &[Point<'_>], results: &[Runs]) -> Table {
    let mut columns = RunColumns::default();
    for (index, (point, runs)) in points.iter().zip(results).enumerate() {
        for (run, rows) in runs {
            for (of, row) in point.layout.rows.iter().zip(rows) {
                columns.point.push(index as u64);
                columns.flow.push(of.flow.clone());
                columns.transport.push(of.transport.clone());
                columns.run.push(*run);
                columns.seed.push(point.scenario.seed.whole());
                columns.status.push(if row.stalled.is_empty() { "ok" } else { "stalled" }.to_owned());
                columns.reason.push(row.stalled.clone());
                for (column, &value) in columns.values.iter_mut().zip(&row.values) {
                    column.push(value);
                }
            }
        }
    }
    columns.into_table(ENGINE)
}

/// The name of this engine in tables.
const ENGINE: &str = "packet";

fn summary_table(points: &[Point<'_>], results: &[Runs]) -> Table {
    let mut columns = PointColumns::default();
    for (index, (point, runs)) in points.iter().zip(results).enumerate().filter(|(_, (_, runs))| !runs.is_empty()) {
        for (position, of) in point.layout.rows.iter().enumerate() {
            columns.point.push(index as u64);
            columns.flow.push(of.flow.clone());
            columns.transport.push(of.transport.clone());
            columns.runs.push(runs.len() as u64);
            for (quantity, (means, half_widths)) in columns.values.iter_mut().enumerate() {
                let of_runs = runs.iter().map(|(_, rows)| rows[position].values[quantity]);
                let found = interval(of_runs, SUMMARY_LEVEL);
                means.push(found.map_or(f64::NAN, |found| found.mean));
                half_widths.push(found.map_or(f64::NAN, |found| found.half_width));
            }
        }
    }
    columns.into_table(ENGINE)
}
