//! All points of a scenario, on all cores; the table does not depend on their number.

use std::borrow::Cow;
use std::ops::Range;

use farlink_core::scenario::quantity::QUANTITIES;
use farlink_core::scenario::{Expanded, Scenario};
use farlink_core::{ConfigError, Rng};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::outcome::{FlowOutcome, Outcome};
use super::resolve::{Setup, resolve};
use super::simulation::simulate;
use crate::columns::{Missed, PointColumns, RunColumns};
use crate::error_events::Sources;
use crate::estimate::of_fluid;
use crate::layout::{ALL, Layout, Name, RowOf};
use crate::options::{Options, Output, RunError, thread_pool};
use crate::table::Table;
use crate::watch::{Progress, Watch};

/// The name of this engine in tables, and of its stream of random numbers.
const ENGINE: &str = "fluid";

/// A scenario that is ready to run with this engine: as a whole, or point by point in any order and on several threads at once.
/// Each point has one run.
pub struct Study<'a> {
    points: Cow<'a, Expanded>,
    setups: Vec<Setup>,
    pool: ThreadPool,
}

impl std::fmt::Debug for Study<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Study").field("points", &self.setups.len()).finish_non_exhaustive()
    }
}

impl<'a> Study<'a> {
    /// Reads the files that the scenario names.
    ///
    /// # Errors
    /// If the scenario, or a file that it names, is not usable by this engine.
    pub fn new(points: Cow<'a, Expanded>, options: &Options) -> Result<Self, RunError> {
        let sources = Sources::new(options.codes.clone());
        let resolved = points.points.iter().map(|point| resolve(&point.scenario, &sources));
        let setups: Vec<Setup> = resolved.collect::<Result<_, ConfigError>>()?;
        let pool = thread_pool(options.threads)?;
        let flows = setups.iter().map(|setup| setup.point.round_trips_s.len());
        if let Some(point) = points.points.first() {
            of_fluid(flows, pool.current_num_threads()).check(point.scenario.limits, &[])?;
        }
        Ok(Study { points, setups, pool })
    }

    /// Number of grid points.
    pub fn points(&self) -> usize {
        self.setups.len()
    }

    /// Runs one grid point: its rows and its summary are those of the whole study. If it is interrupted, it returns none.
    ///
    /// # Errors
    /// If there is no such point.
    pub fn run(&self, point: usize, progress: Progress<'_>) -> Result<Output, RunError> {
        if point >= self.points() {
            let what = format!("there is no point {point}");
            return Err(ConfigError::new("point", what, format!("give 0 to {}", self.points() - 1)).into());
        }
        let watch = Watch::new(progress);
        Ok(self.run_points(point..point + 1, true, &watch))
    }

    fn run_points(&self, points: Range<usize>, keeps_rows: bool, watch: &Watch<'_>) -> Output {
        watch.expect(points.len() as u64);
        let study: Vec<(&Scenario, &Setup)> =
            points.clone().map(|point| (&self.points.points[point].scenario, &self.setups[point])).collect();
        let outcomes = || study.par_iter().map(|(scenario, setup)| outcome(scenario, setup, watch)).collect();
        let results: Vec<Option<Outcome>> = self.pool.install(outcomes);
        let mut tables = Tables { keeps_rows, ..Tables::default() };
        for ((point, (scenario, setup)), result) in points.zip(&study).zip(&results) {
            if let Some(result) = result {
                tables.add(point as u64, scenario, setup, result);
            }
        }
        Output {
            rows: if tables.keeps_rows { tables.runs.into_table(ENGINE) } else { Table::default() },
            summary: tables.points.into_table(ENGINE),
            interrupted: watch.is_stopped(),
            notes: notes(&study, &results),
        }
    }
}

/// Runs every point of a scenario, each once, until its goodput is known as accurately as `precision` requests: within 1 % at 99
/// % unless given.
///
/// # Errors
/// If the scenario, or a file that it names, is not usable by this engine.
pub fn run(points: &Expanded, options: &Options, progress: Progress<'_>) -> Result<Output, RunError> {
    let study = Study::new(Cow::Borrowed(points), options)?;
    Ok(study.run_points(0..study.points(), !options.without_rows, &Watch::new(progress)))
}

/// The outcome of one point; `None` if it was stopped before its end.
fn outcome(scenario: &Scenario, setup: &Setup, watch: &Watch<'_>) -> Option<Outcome> {
    if watch.is_stopped() {
        return None;
    }
    let rng = Rng::for_component(scenario.seed.whole(), 0, ENGINE);
    let outcome = setup.simulate(rng, &|| watch.is_stopped());
    (!outcome.is_stopped).then(|| {
        watch.finish_one();
        outcome
    })
}

impl Setup {
    /// Simulates it: all flows together, or one by one if each has its own share of the bottleneck.
    fn simulate(&self, mut rng: Rng, is_stopped: &dyn Fn() -> bool) -> Outcome {
        if !self.has_own_buffers {
            return simulate(&self.point, &self.rule, rng, is_stopped);
        }
        let outcomes: Vec<Outcome> = (0..self.point.round_trips_s.len())
            .map(|flow| simulate(&self.point.share(flow), &self.rule, rng.detach(), is_stopped))
            .collect();
        Outcome::together(outcomes)
    }
}

/// Remarks on points whose goodput is not as accurate as requested.
fn notes(study: &[(&Scenario, &Setup)], results: &[Option<Outcome>]) -> Vec<String> {
    let imprecise = study.iter().zip(results).filter_map(|((_, setup), result)| {
        result.as_ref().filter(|result| !result.is_precise).map(|result| (setup, result))
    });
    let worst = imprecise.clone().map(|(setup, result)| {
        let reached = result.goodput.half_width / result.goodput.mean;
        (if reached.is_nan() { f64::INFINITY } else { reached }, setup)
    });
    let Some((reached, setup)) = worst.max_by(|one, other| one.0.total_cmp(&other.0)) else { return Vec::new() };
    let known = if reached.is_finite() { format!("within {:.2} %", 100.0 * reached) } else { "not at all".to_owned() };
    vec![format!(
        "at {} of {} points the goodput is not known within {} % at a level of {} %: the worst {known} after fluid.max_time_s = {} s",
        imprecise.count(),
        study.len(),
        100.0 * setup.rule.bound,
        100.0 * setup.rule.level,
        setup.rule.max_time_s,
    )]
}

#[derive(Default)]
struct Tables {
    keeps_rows: bool,
    runs: RunColumns,
    points: PointColumns,
}

impl Tables {
    fn add(&mut self, point: u64, scenario: &Scenario, setup: &Setup, outcome: &Outcome) {
        let layout = Layout::new(setup.kinds.iter().map(|kind| Name {
            name: &kind.name,
            transport: &kind.transport,
            count: kind.count as u64,
            connections: Some(kind.count as u64),
            is_together: false,
        }));
        let rows = setup.kinds.iter().enumerate().flat_map(|(name, kind)| {
            let layout = &layout;
            (0..kind.count as u64).map(move |number| layout.row_of(name, number))
        });
        // The flows of a row are adjacent.
        let rows: Vec<usize> = rows.collect();
        let mut first = 0;
        for flows in rows.chunk_by(|one, other| one == other) {
            let last = first + flows.len();
            self.row(point, scenario, setup, &layout.rows[flows[0]], (outcome, &outcome.flows[first..last]));
            first = last;
        }
        self.row(point, scenario, setup, &layout.rows[layout.all()], (outcome, &outcome.flows));
    }

    fn row(
        &mut self,
        point: u64,
        scenario: &Scenario,
        setup: &Setup,
        of: &RowOf,
        (outcome, flows): (&Outcome, &[FlowOutcome]),
    ) {
        let values = values(setup, outcome, flows, of.flow == ALL);
        if self.keeps_rows {
            let runs = &mut self.runs;
            runs.point.push(point);
            runs.flow.push(of.flow.clone());
            runs.transport.push(of.transport.clone());
            runs.run.push(0);
            runs.seed.push(scenario.seed.whole());
            runs.status.push("ok".to_owned());
            runs.reason.push(String::new());
            runs.values.iter_mut().zip(&values).for_each(|(column, (value, _))| column.push(*value));
        }
        let points = &mut self.points;
        points.point.push(point);
        points.flow.push(of.flow.clone());
        points.transport.push(of.transport.clone());
        points.runs.push(1);
        points.unfinished.push(Missed::default());
        points.stalled.push(Missed::default());
        for ((means, half_widths), (value, half_width)) in points.values.iter_mut().zip(values) {
            means.push(value);
            half_widths.push(half_width);
        }
    }
}

/// The quantities of some flows, each with its half-width at 95 %; NaN where unknown.
fn values(setup: &Setup, outcome: &Outcome, flows: &[FlowOutcome], is_all: bool) -> Vec<(f64, f64)> {
    let sum = |of: fn(&FlowOutcome) -> f64| flows.iter().map(of).sum::<f64>();
    let payload_bits = 8.0 * setup.payload_bytes;
    let goodput_bps = sum(|flow| flow.goodput) * payload_bits;
    let ci95_bps = payload_bits
        * match flows {
            _ if is_all => outcome.ci95,
            [only] => only.ci95,
            // They depend on each other, so that nothing is known about their sum.
            _ => f64::NAN,
        };
    let (carried, lost, dropped) = (sum(|flow| flow.carried), sum(|flow| flow.lost), sum(|flow| flow.dropped));
    let value = |name: &str| match name {
        "goodput_bps" => (goodput_bps, ci95_bps),
        "goodput_fraction" => (goodput_bps / setup.rate_bps, ci95_bps / setup.rate_bps),
        "delivered_bytes" => ((carried - lost) * setup.payload_bytes, f64::NAN),
        "delivered_packets" => (carried - lost, f64::NAN),
        "sent_bytes" => ((carried + dropped) * setup.packet_bytes, f64::NAN),
        "retransmitted_bytes" => ((lost + dropped) * setup.payload_bytes, f64::NAN),
        "overhead_bytes" => {
            let headers = (carried + dropped) * (setup.packet_bytes - setup.payload_bytes);
            (headers + (lost + dropped) * setup.payload_bytes, f64::NAN)
        }
        "loss_fraction" => ((lost + dropped) / (carried + dropped), f64::NAN),
        "timeouts" => (sum(|flow| flow.timeouts), f64::NAN),
        "duration_s" => (outcome.time_s, f64::NAN),
        "peak_queue_bytes" if is_all => (outcome.peak_queue * setup.packet_bytes, f64::NAN),
        _ => (f64::NAN, f64::NAN),
    };
    QUANTITIES.iter().map(|quantity| value(quantity.name)).collect()
}
