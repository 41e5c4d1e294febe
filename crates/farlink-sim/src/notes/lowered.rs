//! Set rates that turned out to be more than the path carries, in the runs of a study.

use std::collections::BTreeMap;

use farlink_core::Time;

use super::{Notes, Point, Remark};
use crate::engine::RunResult;

/// The first run of a point in which a circuit breaker lowered the rate of each flow of the scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstLowered(BTreeMap<usize, Lowered>);

#[derive(Clone, Copy, Debug)]
struct Lowered {
    run: u64,
    /// After the flow began.
    after: Time,
    to_bps: u64,
}

impl FirstLowered {
    /// The flows of one run whose rate was lowered.
    pub(crate) fn of(run: u64, result: &RunResult) -> Self {
        let mut all = FirstLowered::default();
        for flow in &result.flows {
            if let Some((at, to_bps)) = flow.lowered {
                let lowered = Lowered { run, after: at.since(flow.start), to_bps };
                all.0.entry(flow.spec).and_modify(|first| *first = first.earlier(lowered)).or_insert(lowered);
            }
        }
        all
    }

    /// Adds those of a later run.
    pub(crate) fn add(&mut self, later: &FirstLowered) {
        for (&spec, &lowered) in &later.0 {
            self.0.entry(spec).or_insert(lowered);
        }
    }
}

impl Lowered {
    fn earlier(self, other: Lowered) -> Lowered {
        if other.after < self.after { other } else { self }
    }
}

/// The remarks on what happened in the runs of points.
pub(crate) fn lowered_rates<'a>(points: impl Iterator<Item = (Point<'a>, FirstLowered)>) -> Vec<String> {
    let mut all = Notes::default();
    for (point, lowered) in points {
        remarks(point, &lowered).into_iter().for_each(|remark| all.add(0, remark));
    }
    all.finish()
}

fn remarks(Point { scenario, .. }: Point<'_>, lowered: &FirstLowered) -> Vec<Remark> {
    let flows: Vec<_> = scenario.flow.iter().collect();
    let remark = |(&spec, &Lowered { run, after, to_bps }): (&usize, &Lowered)| {
        let (name, flow) = flows.get(spec)?;
        let (after_s, to) = (after.as_secs_f64(), megabits(to_bps));
        let rest = format!(
            "is more than the path carries: {after_s:.1} s after flow \"{name}\" began, run {run} lowered it to {to}, as losses fell with the \
             rate (a circuit breaker, RFC 8084); give the rate that the path carries, or alone = true, which keeps a set rate whatever \
             it does to others"
        );
        Some(Remark::new(format!("transport.{}.rate_bps", flow.transport), rest))
    };
    lowered.0.iter().filter_map(remark).collect()
}

fn megabits(rate_bps: u64) -> String {
    if rate_bps < 1_000_000 {
        format!("{:.1} kbit/s", rate_bps as f64 / 1e3)
    } else {
        format!("{:.2} Mbit/s", rate_bps as f64 / 1e6)
    }
}
