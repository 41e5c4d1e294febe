//! When a side that hears nothing of its connections any more shows where it is. `[Y20]`

use farlink_core::Time;

/// Silence begins to count after half of a round trip, but not before this; until the first round trip is known, after [`UNKNOWN`].
const LEAST: Time = Time::from_millis(50);
const UNKNOWN: Time = Time::from_secs(1);
/// The last question is asked after a wait of no more than this. Longer silence is no matter of addresses: connections have questions
/// of their own for that.
const LONGEST: Time = Time::from_secs(8);
/// Of the longest gap between segments so much remains with each segment.
const MEMORY: (u64, u64) = (7, 8);

#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    round_trip: Option<Time>,
    last: Option<Time>,
    /// The longest gap between segments of late: where it is usual, it is no silence.
    gap: Time,
    wait: Time,
    due: Time,
}

impl Silence {
    pub(super) fn new() -> Self {
        Silence { round_trip: None, last: None, gap: Time::ZERO, wait: UNKNOWN, due: Time::NEVER }
    }

    /// The handshake took so long.
    pub(super) fn set_round_trip(&mut self, round_trip: Time) {
        self.round_trip.get_or_insert(round_trip);
    }

    pub(super) fn round_trip(&self) -> Option<Time> {
        self.round_trip
    }

    /// A segment of a connection has come.
    pub(super) fn on_segment(&mut self, now: Time) {
        let gap = self.last.map_or(Time::ZERO, |last| now.since(last));
        self.gap = gap.max(Time::from_ps(self.gap.as_ps() / MEMORY.1 * MEMORY.0));
        self.last = Some(now);
        let half = self.round_trip.map_or(UNKNOWN, |round_trip| Time::from_ps(round_trip.as_ps() / 2));
        self.wait = half.max(LEAST).max(self.gap.times(2));
        self.due = if self.wait > LONGEST { Time::NEVER } else { now + self.wait };
    }

    /// Whether it is time to show where this side is: again after twice as long each time.
    pub(super) fn is_over(&mut self, now: Time) -> bool {
        if now < self.due {
            return false;
        }
        self.wait = self.wait.times(2);
        self.due = if self.wait > LONGEST { Time::NEVER } else { now + self.wait };
        true
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    pub(super) fn move_origin(&mut self, by: Time) {
        self.last = self.last.map(|last| last.since(by));
        if self.due != Time::NEVER {
            self.due = self.due.since(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_after_half_a_round_trip_and_end() {
        let mut silence = Silence::new();
        assert_eq!(silence.due(), Time::NEVER);
        silence.set_round_trip(Time::from_millis(500));
        silence.on_segment(Time::from_secs(10));
        let mut asked_ms = Vec::new();
        while silence.due() != Time::NEVER {
            let now = silence.due();
            assert!(!silence.is_over(now.since(Time::from_ps(1))) && silence.is_over(now));
            asked_ms.push(now.since(Time::from_secs(10)).as_ps() / 1_000_000_000);
        }
        assert_eq!(asked_ms, [250, 750, 1750, 3750, 7750, 15_750]);
    }

    /// A slow link has a second between its packets: nobody asks in between, and soon after it has become faster.
    #[test]
    fn usual_gaps_are_no_silence() {
        let mut silence = Silence::new();
        silence.set_round_trip(Time::from_millis(100));
        let mut asked = 0;
        for second in 0..100 {
            let now = Time::from_secs(second);
            asked += u32::from(silence.is_over(now));
            silence.on_segment(now);
        }
        assert_eq!(asked, 1, "before the first gap is known");
        let end = Time::from_secs(99);
        (1..=100).for_each(|n| silence.on_segment(end + Time::from_millis(n)));
        assert_eq!(silence.due(), end + Time::from_millis(100) + LEAST);
    }
}
