//! The round trip without a queue.

use crate::time::Time;

/// Number of cycles after which an older shortest round trip is forgotten.
const MEMORY_CYCLES: u32 = 10;
/// Number of cycles in a row with a queue after which the path counts as longer.
const LONGER_PATH_AFTER: u32 = 4;
/// Factors on the rate of the bottleneck with a long and a short queue, so that it drains.
const LONG_QUEUE: f64 = 0.9;
pub(super) const QUEUE: f64 = 0.95;

/// The shortest recent round trip, over enough cycles to distinguish a longer path from a queue. `[P5]`
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastRoundTrip {
    present: Time,
    before: Time,
    cycles: u32,
    /// Number of cycles in a row with a queue, and the shortest round trip of the first of them.
    waiting: (u32, Time),
}

impl Default for LeastRoundTrip {
    fn default() -> Self {
        LeastRoundTrip { present: Time::NEVER, before: Time::NEVER, cycles: 0, waiting: (0, Time::ZERO) }
    }
}

impl LeastRoundTrip {
    pub(super) fn add(&mut self, round_trip: Time) {
        self.present = self.present.min(round_trip);
    }

    pub(super) fn get(&self) -> Time {
        self.present.min(self.before)
    }

    pub(super) fn next_cycle(&mut self) {
        self.cycles += 1;
        if self.cycles == MEMORY_CYCLES {
            (self.before, self.present, self.cycles) = (self.present, Time::NEVER, 0);
        }
    }

    /// The share of the bottleneck's rate at which a queue drains, if the shortest round trip of some packets shows one. `[P6]`
    pub(super) fn drain(&self, shortest: Time) -> Option<f64> {
        let (queueing, tolerated) = (shortest.since(self.get()), tolerated(self.get()));
        let is_waiting = shortest != Time::NEVER && queueing > tolerated;
        is_waiting.then_some(if queueing > tolerated.times(2) { LONG_QUEUE } else { QUEUE })
    }

    /// A queue shrinks when less is sent than the bottleneck carries. If the round trip stays as long for several such cycles,
    /// it is not due to a queue: the path has become longer. `[P7]`
    pub(super) fn watch(&mut self, is_waiting: bool, shortest: Time) {
        self.waiting.0 = if is_waiting { self.waiting.0 + 1 } else { 0 };
        if self.waiting.0 == 1 {
            self.waiting.1 = shortest;
        }
        if self.waiting.0 == LONGER_PATH_AFTER {
            if shortest >= self.waiting.1 {
                *self = LeastRoundTrip { present: shortest, ..LeastRoundTrip::default() };
            }
            self.waiting.0 = 0;
        }
    }
}

/// Largest queueing delay that does not count as congestion.
pub(super) fn tolerated(round_trip: Time) -> Time {
    Time::from_ps(round_trip.as_ps() / 16).max(Time::from_millis(5)).min(Time::from_millis(100))
}
