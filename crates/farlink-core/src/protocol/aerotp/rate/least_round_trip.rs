//! The round trip without a queue.

use crate::time::Time;

/// Number of cycles after which an older shortest round trip is forgotten.
const MEMORY_CYCLES: u32 = 10;
/// Number of cycles in a row with a queue after which the path counts as longer.
const LONGER_PATH_AFTER: u32 = 4;
/// Factors on the rate of the bottleneck with a long and a short queue, so that it drains.
const LONG_QUEUE: f64 = 0.9;
pub(super) const QUEUE: f64 = 0.95;
/// Packets in a queue that may be taken for delays that vary.
const MOST_BY_CHANCE: u64 = 4;

/// The round trips of some packets: the shortest shows the least queue, if there are enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    shortest: Time,
    answers: u32,
}

impl Default for RoundTrips {
    fn default() -> Self {
        RoundTrips { shortest: Time::NEVER, answers: 0 }
    }
}

impl RoundTrips {
    #[inline]
    pub(super) fn add(&mut self, round_trip: Time) {
        (self.shortest, self.answers) = (self.shortest.min(round_trip), self.answers.saturating_add(1));
    }

    pub(super) fn join(&mut self, others: RoundTrips) {
        self.shortest = self.shortest.min(others.shortest);
        self.answers = self.answers.saturating_add(others.answers);
    }
}

/// The shortest recent round trip, over enough cycles to distinguish a longer path from a queue. `[P5]`
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastRoundTrip {
    present: Time,
    before: Time,
    /// The latest round trip, and how much two in a row differ, smoothed.
    latest: Time,
    change: Time,
    cycles: u32,
    /// Number of cycles in a row with a queue, and the shortest round trip of the first of them.
    waiting: (u32, Time),
}

impl Default for LeastRoundTrip {
    fn default() -> Self {
        LeastRoundTrip {
            present: Time::NEVER,
            before: Time::NEVER,
            latest: Time::NEVER,
            change: Time::ZERO,
            cycles: 0,
            waiting: (0, Time::ZERO),
        }
    }
}

impl LeastRoundTrip {
    pub(super) fn add(&mut self, round_trip: Time) {
        self.present = self.present.min(round_trip);
        if self.latest != Time::NEVER {
            let change = round_trip.since(self.latest) + self.latest.since(round_trip);
            let sixteenth = |time: Time| time.as_ps() / 16;
            self.change = Time::from_ps(self.change.as_ps() - sixteenth(self.change) + sixteenth(change));
        }
        self.latest = round_trip;
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

    /// The share of the bottleneck's rate at which a queue drains, if the round trips of some packets show one. `[P6]`
    /// A packet takes `packet_time` at their rate.
    pub(super) fn drain(&self, seen: RoundTrips, packet_time: Time) -> Option<f64> {
        let queueing = seen.shortest.since(self.get());
        let tolerated = tolerated(self.get()).max(self.chance(seen.answers).min(packet_time.times(MOST_BY_CHANCE)));
        let is_waiting = seen.shortest != Time::NEVER && queueing > tolerated;
        is_waiting.then_some(if queueing > tolerated.times(2) { LONG_QUEUE } else { QUEUE })
    }

    /// By how much the shortest of so few round trips may exceed the least without a queue, where delays vary. `[P5]`
    ///
    /// Of `n` delays that are equally likely over a span, the shortest is the span over `n + 1` above the least on average, and more
    /// than three times that once in twenty. Two of them differ by a third of the span on average.
    fn chance(&self, answers: u32) -> Time {
        Time::from_ps(self.change.as_ps() / u64::from(answers.saturating_add(1)) * 9)
    }

    /// A queue shrinks when less is sent than the bottleneck carries. If the round trip stays as long for several such cycles,
    /// it is not due to a queue: the path has become longer. `[P7]`
    pub(super) fn watch(&mut self, is_waiting: bool, seen: RoundTrips) {
        let shortest = seen.shortest;
        self.waiting.0 = if is_waiting { self.waiting.0 + 1 } else { 0 };
        if self.waiting.0 == 1 {
            self.waiting.1 = shortest;
        }
        if self.waiting.0 == LONGER_PATH_AFTER {
            if shortest >= self.waiting.1 {
                let LeastRoundTrip { latest, change, .. } = *self;
                *self = LeastRoundTrip { present: shortest, latest, change, ..LeastRoundTrip::default() };
            }
            self.waiting.0 = 0;
        }
    }
}

/// Largest queueing delay that does not count as congestion.
pub(super) fn tolerated(round_trip: Time) -> Time {
    Time::from_ps(round_trip.as_ps() / 16).max(Time::from_millis(5)).min(Time::from_millis(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(millis: &[u64]) -> RoundTrips {
        let mut seen = RoundTrips::default();
        millis.iter().for_each(|&one| seen.add(Time::from_millis(one)));
        seen
    }

    /// Where delays vary by half a round trip, a rate of few packets in a round trip once stayed at its first value for good: the
    /// shortest of each few looked like a queue.
    #[test]
    fn the_shortest_of_few_round_trips_is_no_queue_where_delays_vary() {
        let mut least = LeastRoundTrip::default();
        // Between 100 and 150 ms: two in a row differ by 23 ms on average.
        (0..200_u64).for_each(|n| least.add(Time::from_ps((100_000 + n * 31_415 % 50_000) * 1_000_000)));
        assert_eq!(least.drain(seen(&[130, 140]), Time::from_millis(20)), None, "one of six pairs has none below");
        assert_eq!(
            least.drain(seen(&[130; 20]), Time::from_millis(20)),
            Some(LONG_QUEUE),
            "twenty never have none below"
        );
        assert_eq!(
            least.drain(seen(&[130, 140]), Time::from_millis(2)),
            Some(LONG_QUEUE),
            "so many packets are a queue"
        );
        let mut steady = LeastRoundTrip::default();
        steady.add(Time::from_millis(100));
        assert_eq!(steady.drain(seen(&[130]), Time::from_millis(20)), Some(LONG_QUEUE), "delays that do not vary");
    }
}
