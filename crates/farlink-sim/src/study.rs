//! All runs of all grid points, on all cores; the same table on any number of them.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farlink_core::ConfigError;
use farlink_core::scenario::quantity;
use farlink_core::scenario::{Expanded, Precision, Scenario};
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
use crate::stats::Quantiles;
use crate::table::Table;
use crate::tally::{Place, Tally};

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads; as many as there are cores unless given.
    pub threads: Option<usize>,
    /// Where error events are kept; see [`Sources::new`].
    pub codes: Option<PathBuf>,
    /// Told before it begins that a study will take long.
    pub announce: Option<Announce>,
    /// Keep no rows of single runs, so that memory does not grow with their number; the summary is the same.
    pub without_rows: bool,
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
    /// A row per point, engine, flow and run; nothing if none were wanted.
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
    Scenario(#[from] ConfigError),
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

/// The name of this engine in tables.
const ENGINE: &str = "packet";

/// About so many rows are collected before they are added up: enough for all threads, however short the runs.
const ROWS_AT_A_TIME: usize = 1 << 15;

/// So many runs at a time at least.
const LEAST_RUNS_AT_A_TIME: usize = 64;

/// A grid point, ready to run, and the rows that its runs have.
struct Point<'a> {
    place: Place,
    scenario: &'a Scenario,
    setup: &'a Setup,
    layout: Layout,
    keeps_rows: bool,
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
    let points: Vec<Point<'_>> = study
        .iter()
        .zip(0..)
        .map(|(&(scenario, setup), point)| Point {
            place: Place { point, seed: scenario.seed.whole() },
            scenario,
            setup,
            layout: Layout::of(setup),
            keeps_rows: !options.without_rows,
        })
        .collect();
    let results: Vec<_> = pool.install(|| points.par_iter().map(|point| point_runs(point, &watch)).collect());
    let (mut summary, mut rows) = (PointColumns::default(), None);
    for (of_point, kept) in results {
        summary.append(of_point);
        if let Some(kept) = kept {
            rows.get_or_insert_with(RunColumns::default).append(kept);
        }
    }
    let remarked: Vec<notes::Point<'_>> =
        study.iter().map(|&(scenario, setup)| notes::Point { scenario, setup }).collect();
    Ok(Output {
        rows: rows.map(|rows| rows.into_table(ENGINE)).unwrap_or_default(),
        summary: summary.into_table(ENGINE),
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
    let resolve_all = |traces: &dyn TraceSource| -> Result<Vec<Setup>, ConfigError> {
        let mut channels = Channels::default();
        scenarios.iter().map(|scenario| resolve_with(scenario, traces, &mut channels)).collect()
    };
    let asked = Asked::new(sources);
    let setups = resolve_all(&asked)?;
    let threads = rayon::current_num_threads();
    let expected = estimate_of(scenarios, &setups, threads, !options.without_rows);
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

fn estimate_of(scenarios: &[&Scenario], setups: &[Setup], threads: usize, keeps_rows: bool) -> Estimate {
    of_study(setups.iter().zip(scenarios.iter().map(|scenario| least_runs(scenario))), threads, keeps_rows)
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
    Ok(estimate_of(&scenarios, &setups?, options.threads.unwrap_or(1), !options.without_rows))
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

/// All runs of one point; interrupted, those that were finished. An entry of the summary for each row, and the rows.
fn point_runs(point: &Point<'_>, watch: &Watch<'_>) -> (PointColumns, Option<RunColumns>) {
    let mut tally = Tally::new(&point.layout, point.keeps_rows);
    let mut done = least_runs(point.scenario);
    batch(point, &mut tally, 0..done, watch);
    if let Some(precision) = &point.scenario.precision {
        let most = precision.max_runs.whole();
        // The rule is asked after 25 % more runs each time, in the order of the runs: never at a moment that a thread picks,
        // and seldom enough that a lucky streak does not end it.
        while !watch.is_stopped() && done < most && !is_precise(precision, &point.layout, &tally) {
            let next = (done + done.div_ceil(4)).min(most);
            watch.expect(next - done);
            batch(point, &mut tally, done..next, watch);
            done = next;
        }
    }
    tally.finish(&point.layout, point.place)
}

/// Some runs, at the same time, added up in their order.
fn batch(point: &Point<'_>, tally: &mut Tally, runs: std::ops::Range<u64>, watch: &Watch<'_>) {
    let at_a_time = (ROWS_AT_A_TIME / point.layout.rows.len()).max(LEAST_RUNS_AT_A_TIME);
    let simulate_run = |run: u64| {
        // Short runs end before they ask.
        if watch.is_stopped() {
            return None;
        }
        let result = simulate(point.setup, point.place.seed, run, &mut NoTrace, &|| watch.is_stopped())?;
        watch.finish_one();
        Some((run, rows(&point.layout, point.setup, &result)))
    };
    for first in runs.clone().step_by(at_a_time) {
        let some = first..(first + at_a_time as u64).min(runs.end);
        let finished: Vec<(u64, Vec<Row>)> = some.into_par_iter().filter_map(simulate_run).collect();
        finished.iter().for_each(|(run, rows)| tally.add(&point.layout, point.place, *run, rows));
        if watch.is_stopped() {
            break;
        }
    }
}

/// Whether the interval of the aggregate is narrow enough.
fn is_precise(precision: &Precision, layout: &Layout, tally: &Tally) -> bool {
    let Some(index) = quantity::names().position(|name| name == precision.quantity) else { return true };
    tally
        .of_all(layout, index, &mut Quantiles::new(precision.level.get()))
        .is_some_and(|found| found.half_width <= precision.ci.get() * found.mean.abs())
}
