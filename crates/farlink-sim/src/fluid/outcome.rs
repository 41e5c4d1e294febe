//! The result of a point.

use crate::stats::Interval;

/// The result of the flows of a point, after a warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Simulated time, s.
    pub time_s: f64,
    /// Segments per second delivered to all receivers together, and the interval at the level of the rule.
    pub goodput: Interval,
    /// The same at 95 %.
    pub ci95: f64,
    /// The result of each flow.
    pub flows: Vec<FlowOutcome>,
    /// Whether the interval is as narrow as the rule requires.
    pub is_precise: bool,
    /// Whether it was stopped from outside.
    pub is_stopped: bool,
    /// Largest queue, in segments.
    pub peak_queue: f64,
}

/// The result of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Segments per second delivered.
    pub goodput: f64,
    /// Half-width of its interval at 95 %.
    pub ci95: f64,
    /// Segments that passed the link.
    pub carried: f64,
    /// Segments that the channel lost.
    pub lost: f64,
    /// Segments that the full buffer dropped.
    pub dropped: f64,
    /// Expiries of the retransmission timer.
    pub timeouts: f64,
}

impl Outcome {
    /// Combines the outcomes of independent flows.
    pub(super) fn together(outcomes: Vec<Outcome>) -> Outcome {
        let count = outcomes.len() as f64;
        let root = |of: fn(&Outcome) -> f64| outcomes.iter().map(|outcome| of(outcome).powi(2)).sum::<f64>().sqrt();
        let (half_width, ci95) = (root(|outcome| outcome.goodput.half_width), root(|outcome| outcome.ci95));
        // Each has its own simulated time, so counts are scaled to the mean.
        let time_s = outcomes.iter().map(|outcome| outcome.time_s).sum::<f64>() / count;
        let over_mean = |outcome: Outcome| {
            let scale = time_s / outcome.time_s;
            outcome.flows.into_iter().map(move |flow| flow.scaled(scale))
        };
        Outcome {
            time_s,
            goodput: Interval { mean: outcomes.iter().map(|outcome| outcome.goodput.mean).sum(), half_width },
            ci95,
            is_precise: outcomes.iter().all(|outcome| outcome.is_precise),
            is_stopped: outcomes.iter().any(|outcome| outcome.is_stopped),
            peak_queue: outcomes.iter().map(|outcome| outcome.peak_queue).fold(0.0, f64::max),
            flows: outcomes.into_iter().flat_map(over_mean).collect(),
        }
    }
}

impl FlowOutcome {
    fn scaled(self, scale: f64) -> FlowOutcome {
        FlowOutcome {
            carried: self.carried * scale,
            lost: self.lost * scale,
            dropped: self.dropped * scale,
            timeouts: self.timeouts * scale,
            ..self
        }
    }
}
