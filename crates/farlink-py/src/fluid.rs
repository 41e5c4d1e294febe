//! Operating points of the fluid engine as arrays, simulated without a scenario.

use farlink_core::ConfigError;
use farlink_core::Rng;
use farlink_sim::fluid::{Constants, Growth, Point, Repair, Rule, Timeouts, simulate};
use farlink_sim::{Options, Progress, RunError, thread_pool};
use rayon::prelude::*;
use serde::Deserialize;

/// The parameters that all points share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Common {
    growth: GrowthName,
    repair: RepairName,
    segments_per_ack: f64,
    duplicate_acks: f64,
    multiple_losses: bool,
    own_buffers: bool,
    /// Shortest timeout, in s and in round trips; `None` without timeouts.
    timeout: Option<(f64, f64)>,
    seed: u64,
    bound: f64,
    level: f64,
    max_time_s: f64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GrowthName {
    Reno,
    Cubic,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RepairName {
    Reno,
    NewReno,
    Sack,
    Rack,
}

/// One point.
pub(crate) struct Row {
    pub(crate) rate: f64,
    pub(crate) round_trip_s: f64,
    pub(crate) buffer: f64,
    pub(crate) loss: f64,
    pub(crate) flows: usize,
    pub(crate) max_window: f64,
}

/// Goodput of all flows as a fraction of the link's rate, its half-width, and whether that is as small as requested.
pub(crate) struct Found {
    pub(crate) goodput: Vec<f64>,
    pub(crate) half_width: Vec<f64>,
    pub(crate) is_precise: Vec<bool>,
}

impl Common {
    pub(crate) fn parse(json: &str) -> Result<Self, ConfigError> {
        let refused = |error| ConfigError::new("fluid", format_args!("{error}"), "see farlink.engines.fluid.goodput");
        serde_json::from_str(json).map_err(refused)
    }

    fn point(&self, row: &Row) -> Point {
        let point = Point {
            segments_per_ack: self.segments_per_ack,
            counts_bytes: false,
            growth: match self.growth {
                GrowthName::Reno => Growth::Reno,
                GrowthName::Cubic => Growth::Cubic(Constants::default()),
            },
            max_window: row.max_window,
            repair: match self.repair {
                RepairName::Reno => Repair::Reno,
                RepairName::NewReno => Repair::NewReno,
                RepairName::Sack => Repair::Sack,
                RepairName::Rack => Repair::Rack,
            },
            duplicate_acks: self.duplicate_acks,
            multiple_losses: self.multiple_losses,
            timeouts: self.timeout.map(|(least_s, round_trips)| Timeouts { least_s, round_trips, most_s: 60.0 }),
            ..Point::new(row.rate, row.round_trip_s, row.buffer, row.loss, row.flows)
        };
        // Separate shares are equal, so that one of them represents all.
        if self.own_buffers { point.share(0) } else { point }
    }

    /// Simulates all rows; `None` if it was stopped.
    pub(crate) fn run(
        &self,
        rows: &[Row],
        options: &Options,
        progress: Progress<'_>,
    ) -> Result<Option<Found>, RunError> {
        let rule = Rule { bound: self.bound, level: self.level, max_time_s: self.max_time_s };
        let done = std::sync::atomic::AtomicU64::new(0);
        let report = || progress(done.load(std::sync::atomic::Ordering::Relaxed), rows.len() as u64).is_break();
        let one = |(number, row): (usize, &Row)| {
            let point = self.point(row);
            let rng = Rng::for_component(self.seed, number as u64, "fluid");
            let outcome = simulate(&point, &rule, rng, &report);
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            (outcome.goodput.mean / point.rate, outcome.goodput.half_width / point.rate, outcome.is_precise)
        };
        let pool = thread_pool(options.threads)?;
        let all: Vec<(f64, f64, bool)> = pool.install(|| {
            rows.par_iter().enumerate().map(|at| if report() { (f64::NAN, f64::NAN, false) } else { one(at) }).collect()
        });
        if report() {
            return Ok(None);
        }
        Ok(Some(Found {
            goodput: all.iter().map(|found| found.0).collect(),
            half_width: all.iter().map(|found| found.1).collect(),
            is_precise: all.iter().map(|found| found.2).collect(),
        }))
    }
}
