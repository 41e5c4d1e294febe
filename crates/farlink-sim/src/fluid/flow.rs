//! One flow: its window, and the phase of its reaction to losses.

use super::law::Curve;
use super::point::Point;

/// Mean difference between the window and the whole segments that it allows.
const FRACTION: f64 = 0.5;
/// The same for half of a window of whole segments, which exceeds whole segments by half a segment in half of the cases.
const FRACTION_OF_HALF: f64 = 0.25;
/// Least threshold (RFC 5681, section 3.1: 2 segments).
pub(super) const LEAST_THRESHOLD: f64 = 2.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The window grows, in slow start below the threshold.
    Open,
    /// Duplicate acknowledgements arrive, not enough of them yet.
    Duplicates,
    /// A retransmission is in flight; the window is constant.
    Recovery,
    /// Nothing is sent until the timer expires.
    Silent,
}

#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Congestion window, segments.
    pub(super) window: f64,
    /// Slow-start threshold, segments.
    pub(super) threshold: f64,
    pub(super) phase: Phase,
    pub(super) curve: Curve,
    /// When the phase ends or a loss is detected; infinite if neither will happen.
    pub(super) alarm_s: f64,
    /// Losses that the next detection covers.
    pub(super) losses: u32,
    /// Later losses, which the detection after it covers.
    pub(super) later_losses: u32,
    /// Whether the recovery will end with a timeout, before all losses are repaired.
    pub(super) will_expire: bool,
    /// Back-off factor of the timeout.
    pub(super) backoff: f64,
    /// Whether the flow has lost a segment since the queue filled.
    pub(super) is_hit: bool,
    /// Round trip without queueing, s.
    pub(super) round_trip_s: f64,
}

impl Flow {
    pub(super) fn new(window: f64, round_trip_s: f64) -> Self {
        Flow {
            window,
            threshold: window,
            phase: Phase::Open,
            curve: Curve::default(),
            alarm_s: f64::INFINITY,
            losses: 0,
            later_losses: 0,
            will_expire: false,
            backoff: 1.0,
            is_hit: false,
            round_trip_s,
        }
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    pub(super) fn grows(&self, point: &Point) -> bool {
        self.phase == Phase::Open && self.window < point.max_window
    }

    /// Segments sent per round trip; a window allows only whole segments.
    #[inline]
    pub(super) fn in_flight(&self, point: &Point) -> f64 {
        let above = |fraction: f64| (self.window - fraction).max(self.window.min(LEAST_THRESHOLD));
        match self.phase {
            Phase::Silent => 0.0,
            Phase::Open if self.window >= point.max_window => point.max_window,
            Phase::Open if self.is_in_slow_start() => self.window,
            // Of b segments that share an acknowledgement, (b - 1) / 2 wait at the receiver on average.
            Phase::Open => above(FRACTION * point.segments_per_ack),
            // With limited transmit, two of the first three duplicates send a segment; otherwise none does.
            Phase::Duplicates if point.limited_transmit => above(FRACTION) * (2.0 / point.duplicate_acks).min(1.0),
            Phase::Duplicates => 0.0,
            Phase::Recovery => above(FRACTION_OF_HALF),
        }
    }

    /// Segments in flight when a loss is detected.
    pub(super) fn flight_at_loss(&self) -> f64 {
        (self.window - FRACTION).max(1.0)
    }
}
