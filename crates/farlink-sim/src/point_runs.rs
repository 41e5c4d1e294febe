//! Runs of one grid point on all threads of a pool, and the rule when there are enough.

use std::ops::Range;

use farlink_core::scenario::{Precision, Scenario, quantity};
use rayon::prelude::*;

use crate::engine::{NoTrace, Setup, simulate};
use crate::layout::Layout;
use crate::notes::{self, FirstLowered};
use crate::rows::{Row, rows};
use crate::stats::Quantiles;
use crate::tally::{Place, Tally};
use crate::watch::Watch;

/// The name of this engine in tables.
pub(crate) const ENGINE: &str = "packet";

/// About this many rows are collected before they are added up, which is enough for all threads even with short runs.
const ROWS_AT_A_TIME: usize = 1 << 15;

/// Smallest number of runs at a time.
const LEAST_RUNS_AT_A_TIME: usize = 64;

/// A grid point that is ready to run, and the rows of its runs.
pub(crate) struct PointRuns<'a> {
    pub(crate) place: Place,
    scenario: &'a Scenario,
    setup: &'a Setup,
    pub(crate) layout: Layout,
}

impl<'a> PointRuns<'a> {
    pub(crate) fn new(point: u64, scenario: &'a Scenario, setup: &'a Setup) -> Self {
        let place = Place { point, seed: scenario.seed.whole() };
        PointRuns { place, scenario, setup, layout: Layout::of(setup) }
    }

    /// The point, for remarks.
    pub(crate) fn remarked(&self) -> notes::Point<'a> {
        notes::Point { scenario: self.scenario, setup: self.setup }
    }

    /// Runs until there are enough runs. If it is interrupted, the tally has the finished ones.
    pub(crate) fn run_all(&self, keeps_rows: bool, watch: &Watch<'_>) -> Tally {
        let mut tally = Tally::new(self.layout.rows.len(), keeps_rows);
        let mut expected = least_runs(self.scenario);
        let mut done = 0;
        while let Some(runs) = self.next_runs(done, &tally) {
            watch.expect(runs.end.saturating_sub(expected));
            expected = expected.max(runs.end);
            done = runs.end;
            self.run(&mut tally, runs, watch);
            if watch.is_stopped() {
                break;
            }
        }
        tally
    }

    /// Performs these runs and no others. If it is interrupted, the tally has the finished ones.
    pub(crate) fn run_some(&self, runs: Range<u64>, keeps_rows: bool, watch: &Watch<'_>) -> Tally {
        let mut tally = Tally::new(self.layout.rows.len(), keeps_rows);
        self.run(&mut tally, runs, watch);
        tally
    }

    /// The runs that the study needs after the first `done`, which are in the tally; `None` if there are enough.
    ///
    /// The rule `precision` is evaluated after 25 % more runs each time, in the order of the runs. Therefore it does not depend
    /// on the timing of threads, and is rarely enough that a random deviation does not end the study.
    pub(crate) fn next_runs(&self, done: u64, tally: &Tally) -> Option<Range<u64>> {
        let least = least_runs(self.scenario);
        let Some(precision) = &self.scenario.precision else { return (done < least).then_some(done..least) };
        let most = precision.max_runs.whole();
        if done >= most {
            return None;
        }
        let after = |asked: u64| (asked + asked.div_ceil(4)).min(most);
        let mut asked = least;
        while asked < done {
            asked = after(asked);
        }
        if done < asked {
            return Some(done..asked);
        }
        (!is_precise(precision, tally)).then(|| done..after(done))
    }

    /// Performs some runs at the same time and adds them up in order.
    pub(crate) fn run(&self, tally: &mut Tally, runs: Range<u64>, watch: &Watch<'_>) {
        let at_a_time = (ROWS_AT_A_TIME / self.layout.rows.len()).max(LEAST_RUNS_AT_A_TIME) as u64;
        let simulate_run = |run: u64| {
            // Short runs end before they check for a stop.
            if watch.is_stopped() {
                return None;
            }
            let result = simulate(self.setup, self.place.seed, run, &mut NoTrace, &|| watch.is_stopped())?;
            watch.finish_one();
            Some((run, rows(&self.layout, self.setup, &result), FirstLowered::of(run, &result)))
        };
        let mut first = runs.start;
        while first < runs.end {
            let some = first..first.saturating_add(at_a_time).min(runs.end);
            first = some.end;
            let finished: Vec<(u64, Vec<Row>, FirstLowered)> = some.into_par_iter().filter_map(simulate_run).collect();
            for (run, rows, lowered) in &finished {
                tally.add(&self.layout.rows, self.place, *run, rows);
                tally.lowered.add(lowered);
            }
            if watch.is_stopped() {
                break;
            }
        }
    }
}

/// Smallest number of runs of a point.
pub(crate) fn least_runs(scenario: &Scenario) -> u64 {
    match (&scenario.precision, scenario.runs) {
        (Some(precision), _) => precision.min_runs.whole(),
        (None, runs) => runs.map_or(1, |runs| runs.whole()),
    }
}

/// Whether the interval over all flows is narrow enough.
fn is_precise(precision: &Precision, tally: &Tally) -> bool {
    let Some(index) = quantity::names().position(|name| name == precision.quantity) else { return true };
    tally
        .of_all(index, &mut Quantiles::new(precision.level.get()))
        .is_some_and(|found| found.half_width <= precision.ci.get() * found.mean.abs())
}
