//! Congestion avoidance of RFC 5681.

use super::Slope;
use crate::fluid::flow::Flow;
use crate::fluid::point::Point;

/// So much of its window may a flow grow in a step: the slope then changes by a few per cent of what it differs from 1/b.
const LONGEST_STEP: f64 = 0.25;

/// Each acknowledgement adds 1/window, and there are (segments under way)/b of them in a round trip; with bytes counted, each
/// segment does.
#[inline]
pub(super) fn slope(flow: &Flow, in_flight: f64, point: &Point) -> Slope {
    let per_round = in_flight / flow.window / point.segments_per_increase();
    Slope { per_round, rounds: LONGEST_STEP * flow.window }
}
