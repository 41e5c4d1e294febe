//! Growth of windows in congestion avoidance, and their reduction after a loss. One file for each law.

mod cubic;
mod reno;

use super::flow::Flow;
use super::law::{Curve, Growth};
use super::point::Point;

/// The growth rate of a flow, and the longest step for which it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    /// Segments per round trip, on average over the step.
    pub(super) per_round: f64,
    /// The longest step, round trips.
    pub(super) rounds: f64,
}

/// Length of a step in slow start, in round trips: doubling takes eight steps.
const SLOW_START_ROUNDS: f64 = 0.125;

impl Growth {
    /// Prepares a flow that may have just entered congestion avoidance.
    #[inline]
    pub(super) fn prepare(&self, flow: &mut Flow, now_s: f64) {
        if let Growth::Cubic(constants) = self
            && flow.curve.epoch_s.is_nan()
            && !flow.is_in_slow_start()
        {
            constants.begin(flow, now_s);
        }
    }

    /// The slope of a growing flow with `in_flight` segments in flight, at an instant and with a round trip in s.
    #[inline]
    pub(super) fn slope(&self, flow: &Flow, in_flight: f64, point: &Point, (now_s, round_trip_s): (f64, f64)) -> Slope {
        if flow.is_in_slow_start() {
            return slow_start(flow, point);
        }
        let slope = match self {
            Growth::Reno => reno::slope(flow, in_flight, point),
            Growth::Cubic(constants) => constants.slope(flow, in_flight, now_s, round_trip_s),
        };
        let room = point.max_window - flow.window;
        if slope.per_round * slope.rounds > room {
            return Slope { rounds: (room / slope.per_round).max(1e-6), ..slope };
        }
        slope
    }

    /// The threshold after a loss that is detected while `flight` segments are in flight.
    pub(super) fn reduce(&self, flow: &mut Flow, flight: f64) -> f64 {
        match self {
            Growth::Reno => flight / 2.0,
            Growth::Cubic(constants) => constants.reduce(flow, flight),
        }
    }

    /// Resets the state of earlier losses after a timeout.
    pub(super) fn forget(&self, flow: &mut Flow) {
        flow.curve = Curve::after(flow.curve.prior);
    }

    /// Leaves out a time in which windows do not grow, such as one with the link down.
    pub(super) fn pause(&self, flow: &mut Flow, seconds: f64) {
        flow.curve.epoch_s += seconds;
    }

    /// Advances the state of the law over a step of `rounds` round trips.
    #[inline]
    pub(super) fn advance(&self, flow: &mut Flow, in_flight: f64, rounds: f64) {
        if let Growth::Cubic(constants) = self {
            constants.advance(flow, in_flight, rounds);
        }
    }
}

/// Slow start: each acknowledgement adds a segment, so the window grows by the factor 1 + 1/b per round trip, and doubles if
/// bytes are counted.
fn slow_start(flow: &Flow, point: &Point) -> Slope {
    let rate = libm::log1p(1.0 / point.segments_per_increase());
    let rounds = SLOW_START_ROUNDS.min(libm::log(flow.threshold / flow.window) / rate).max(1e-6);
    Slope { per_round: flow.window * libm::expm1(rate * rounds) / rounds, rounds }
}
