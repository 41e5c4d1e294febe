//! Congestion avoidance of RFC 5681.

use super::Slope;
use crate::fluid::flow::Flow;
use crate::fluid::point::Point;

/// Largest growth in a step, as a share of the window: the deviation of the slope from 1/b then changes by a few per cent.
const LONGEST_STEP: f64 = 0.25;

/// Each acknowledgement adds 1/window, and a round trip has (segments in flight)/b of them; if bytes are counted, each segment
/// adds 1/window.
#[inline]
pub(super) fn slope(flow: &Flow, in_flight: f64, point: &Point) -> Slope {
    let per_round = in_flight / flow.window / point.segments_per_increase();
    Slope { per_round, rounds: LONGEST_STEP * flow.window }
}
