//! How windows grow in congestion avoidance, and what a loss leaves of them. One file each.

mod cubic;
mod reno;

use super::flow::Flow;
use super::law::{Curve, Growth};
use super::point::Point;

/// How far a flow can be followed in one step, and how fast it grows on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    /// Segments per round trip, on average over the step.
    pub(super) per_round: f64,
    /// The longest step, round trips.
    pub(super) rounds: f64,
}

/// In slow start a window is followed for so long at a time: doubling takes eight steps.
const SLOW_START_ROUNDS: f64 = 0.125;

impl Growth {
    /// A flow that grows may have begun to avoid congestion.
    #[inline]
    pub(super) fn prepare(&self, flow: &mut Flow, now_s: f64) {
        if let Growth::Cubic(constants) = self
            && flow.curve.epoch_s.is_nan()
            && !flow.is_in_slow_start()
        {
            constants.begin(flow, now_s);
        }
    }

    /// The slope of a flow that grows and has so many segments under way, at an instant and with a round trip in s.
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

    /// The threshold after a loss that shows while `flight` segments are under way.
    pub(super) fn reduce(&self, flow: &mut Flow, flight: f64) -> f64 {
        match self {
            Growth::Reno => flight / 2.0,
            Growth::Cubic(constants) => constants.reduce(flow, flight),
        }
    }

    /// A timeout: what is remembered of earlier losses is void.
    pub(super) fn forget(&self, flow: &mut Flow) {
        flow.curve = Curve::after(flow.curve.prior);
    }

    /// Time has passed that does not count, such as one without a link.
    pub(super) fn pause(&self, flow: &mut Flow, seconds: f64) {
        flow.curve.epoch_s += seconds;
    }

    /// Windows have been followed over a step of so many round trips.
    #[inline]
    pub(super) fn advance(&self, flow: &mut Flow, in_flight: f64, rounds: f64) {
        if let Growth::Cubic(constants) = self {
            constants.advance(flow, in_flight, rounds);
        }
    }
}

/// A window that every acknowledgement makes a segment longer: times 1 + 1/b in each round trip, twice as long with bytes counted.
fn slow_start(flow: &Flow, point: &Point) -> Slope {
    let rate = libm::log1p(1.0 / point.segments_per_increase());
    let rounds = SLOW_START_ROUNDS.min(libm::log(flow.threshold / flow.window) / rate).max(1e-6);
    Slope { per_round: flow.window * libm::expm1(rate * rounds) / rounds, rounds }
}
