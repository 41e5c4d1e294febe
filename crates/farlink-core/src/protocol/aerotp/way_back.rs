//! The queue of acknowledgements on the way back, and the rate at which they may be sent.

use crate::origin::instants;
use crate::protocol::parts::recent::RecentLeast;
use crate::time::Time;

use super::clock::{span, ticks};
use super::peer::Latest;

/// Share of what the way back carries that acknowledgements may take.
const SHARE: f64 = 0.75;
/// After this many round trips without a queue the limit grows by this factor.
const CLEAR_ROUND_TRIPS: u64 = 16;
const GROWTH: f64 = 1.25;
/// Fewer acknowledgements, or less time, tell no rate, and all of them may be late by chance.
const LEAST_COUNT: u32 = 8;
const LEAST_PERIOD: Time = Time::from_millis(500);
/// A peer heeds the limit if its acknowledgements arrive at no more than this multiple of it.
const HEEDED: f64 = 1.1;
/// Then a queue shrinks by a quarter of the time; by less than this share of it, it does not, and after so many round trips in a row the
/// path has become longer.
const SLOW: f64 = 0.05;
const LONGER_PATH_AFTER: u32 = 4;
/// The least limit, bytes per second: a MACK with a long list in three seconds.
const LEAST_LIMIT: f64 = 100.0;
/// A limit is told at once if it changes by this share, and else after so many round trips.
const TOLD_CHANGE: f64 = 0.1;
const TELL_AGAIN: u32 = 4;
/// The shortest delay is that of the last one to two times so many round trips, and seconds.
const MEMORY_ROUND_TRIPS: u64 = 16;
const MEMORY: Time = Time::from_secs(10);
/// After this time two clocks have run equally fast to within this share, queues included, unless their ticks have other lengths.
const LIKE_AFTER: Time = Time::from_secs(200);
const LIKE_CLOCKS: f64 = 0.25;
/// Times are counted from the latest acknowledgement again before their numbers come round.
const LONGEST: Time = Time::from_secs(1_000);

/// The way back, as the timestamps of acknowledgements show it to the sender of the data. `[M1]` to `[M3]`
///
/// An acknowledgement takes its arrival less its timestamp, apart from a constant that is not known. What it takes longer than the fastest
/// one is the time for which it waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// An acknowledgement from which times are counted: its timestamp and arrival.
    origin: Option<Latest>,
    /// The shortest delay, in microseconds more than that of the origin.
    least: RecentLeast<i32>,
    /// Whether the timestamps of the peer are no microseconds.
    is_unlike: bool,
    period: Period,
    /// Bytes of acknowledgements per second that the peer may send; `None` if they never waited.
    limit: Option<f64>,
    /// Since when they have not waited at this limit.
    clear_since: Option<Time>,
    /// Periods in a row in which they waited for as long as before, although the peer heeds the limit.
    longer_periods: u32,
    last_wait: Time,
    told: f64,
    periods_since_told: u32,
    is_due: bool,
}

instants! {
    WayBack: origin, least, period, clear_since;
    fixed: is_unlike, limit, longer_periods, last_wait, told, periods_since_told, is_due
}

/// Findings of a period.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    since: Time,
    bytes: f64,
    count: u32,
    /// The shortest time that an acknowledgement waited.
    least_wait: Option<Time>,
}

instants! { Period: since; fixed: bytes, count, least_wait }

impl WayBack {
    /// Takes an acknowledgement of `bytes` bytes with this timestamp and the round trip that it shows. Returns how long it waited on the
    /// way back.
    pub(super) fn on_mack(&mut self, now: Time, stamp: u32, bytes: u32, round_trip: Time) -> Time {
        // After a long silence the numbers may have come round.
        if self.origin.is_some_and(|origin| now.since(origin.at) > LONGEST.times(2)) {
            (self.origin, self.least, self.period) = (None, RecentLeast::default(), Period::default());
        }
        let &mut origin = self.origin.get_or_insert(Latest::new(now, stamp));
        let (took, advanced) = (ticks(now.since(origin.at)), stamp.wrapping_sub(origin.stamp) as i32);
        let delay = (took as i64 - i64::from(advanced)).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        if now.since(origin.at) > LIKE_AFTER && f64::from(delay.unsigned_abs()) > LIKE_CLOCKS * took as f64 {
            (self.is_unlike, self.is_due) = (true, self.limit.take().is_some());
        }
        if self.is_unlike {
            return Time::ZERO;
        }
        self.least.turn(now, round_trip.times(MEMORY_ROUND_TRIPS).max(MEMORY));
        self.least.add(delay);
        let wait = span(self.least.get().map_or(0, |least| delay.abs_diff(least).into()));
        if now.since(origin.at) > LONGEST {
            self.origin = Some(Latest::new(now, stamp));
            self.least.map(|least| least.saturating_sub(delay));
        }
        self.watch(now, bytes, wait, round_trip.since(wait));
        wait
    }

    /// Sets the limit once in a period, most often a round trip. While acknowledgements wait, they arrive at the rate that the way back
    /// has for them.
    fn watch(&mut self, now: Time, bytes: u32, wait: Time, round_trip: Time) {
        let Period { since, bytes: before, count, least_wait } = self.period;
        let took = now.since(since);
        let sum = before + f64::from(bytes);
        let least_wait = least_wait.map_or(wait, |least| least.min(wait));
        self.period = Period { since, bytes: sum, count: count + 1, least_wait: Some(least_wait) };
        if took < round_trip.max(LEAST_PERIOD) || count < LEAST_COUNT {
            return;
        }
        self.period = Period { since: now, ..Period::default() };
        self.periods_since_told += 1;
        // A long acknowledgement takes longer to send than a short one, which is no queue.
        let spacing = Time::from_ps(took.as_ps() / u64::from(count + 1));
        let tolerated = Time::from_ps(round_trip.as_ps() / 16).max(Time::from_millis(5)).max(spacing.times(2));
        let shrank = self.last_wait.as_secs_f64() - least_wait.as_secs_f64();
        self.last_wait = least_wait;
        if least_wait > tolerated {
            self.clear_since = None;
            self.on_queue(sum / took.as_secs_f64(), shrank / took.as_secs_f64(), least_wait > tolerated.times(2));
        } else {
            self.longer_periods = 0;
            let since = *self.clear_since.get_or_insert(since);
            if now.since(since) > round_trip.times(CLEAR_ROUND_TRIPS) {
                self.limit = self.limit.map(|limit| limit * GROWTH);
                self.clear_since = Some(now);
            }
        }
        let Some(limit) = self.limit else { return };
        let has_changed = (limit - self.told).abs() > TOLD_CHANGE * self.told;
        self.is_due |= has_changed || self.periods_since_told >= TELL_AGAIN;
    }

    /// `[M3]` Acknowledgements waited while they arrived at `rate` bytes per second, and the wait shrank by so much in a second.
    fn on_queue(&mut self, rate: f64, shrank: f64, is_long: bool) {
        let share = if is_long { SHARE * SHARE } else { SHARE };
        let is_heeded = self.limit.is_some_and(|limit| rate <= HEEDED * limit);
        if !is_heeded || shrank < -SLOW {
            self.limit = Some((share * rate).max(LEAST_LIMIT));
            self.longer_periods = 0;
        } else if shrank < SLOW {
            // A queue would shrink.
            self.longer_periods += 1;
            if self.longer_periods == LONGER_PATH_AFTER {
                (self.least, self.limit, self.longer_periods) = (RecentLeast::default(), None, 0);
                self.is_due = true;
            }
        } else {
            self.longer_periods = 0;
        }
    }

    /// The limit to be told now, in bytes per second; 0 for none.
    pub(super) fn take(&mut self) -> Option<u32> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        self.periods_since_told = 0;
        self.told = self.limit.unwrap_or(0.0);
        Some(self.told as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Time = Time::from_millis(500);

    /// Acknowledgements of 100 bytes over a way back with a queue.
    struct Line {
        way_back: WayBack,
        sent_ms: f64,
        free_ms: f64,
        extra_ms: f64,
    }

    impl Line {
        fn new() -> Self {
            Line { way_back: WayBack::default(), sent_ms: 1000.0, free_ms: 0.0, extra_ms: 0.0 }
        }

        fn send(&mut self, count: u32, apart_ms: f64, bytes_per_s: f64) -> (Time, Option<u32>) {
            let mut last = (Time::ZERO, None);
            for _ in 0..count {
                self.sent_ms += apart_ms;
                self.free_ms = self.free_ms.max(self.sent_ms) + 1e5 / bytes_per_s;
                let arrived = Time::from_secs_f64((self.free_ms + self.extra_ms + 250.0) / 1e3);
                // The peer's clock has another origin, and its numbers come round.
                let stamp = ((self.sent_ms * 1e3) as u64 as u32).wrapping_sub(77_000_000);
                let wait = self.way_back.on_mack(arrived, stamp, 100, ANSWER);
                last = (wait, self.way_back.take().or(last.1));
            }
            last
        }
    }

    #[test]
    fn acknowledgements_that_wait_get_three_quarters_of_what_the_way_back_carries() {
        let mut line = Line::new();
        assert_eq!(line.send(200, 90.0, 1250.0), (Time::ZERO, None), "80 ms each");
        let (wait, told) = line.send(50, 40.0, 1250.0);
        assert!((1.9..2.1).contains(&wait.as_secs_f64()), "{wait}");
        assert!(told.is_some_and(|told| (600..=940).contains(&told)), "{told:?}");
        // It follows the limit, and the queue drains.
        let (wait, _) = line.send(60, 1e5 / f64::from(told.unwrap()), 1250.0);
        assert_eq!(wait, Time::ZERO);
        let before = line.way_back.limit.unwrap();
        line.send(100, 1e5 / before, 1250.0);
        assert!(line.way_back.limit.unwrap() > 1.2 * before, "is there more?");
    }

    #[test]
    fn a_path_that_becomes_longer_limits_for_a_few_round_trips() {
        let mut line = Line::new();
        line.send(200, 10.0, 1e6);
        line.extra_ms = 200.0;
        let mut told = Vec::new();
        for _ in 0..300 {
            let apart_ms = line.way_back.limit.map_or(10.0, |limit| (1e5 / limit).max(10.0));
            told.extend(line.send(1, apart_ms, 1e6).1);
        }
        assert!(told.iter().all(|&rate| rate == 0 || rate > 4_000), "{told:?}");
        assert_eq!((told.last(), line.way_back.limit), (Some(&0), None));
    }

    #[test]
    fn a_peer_with_longer_ticks_is_not_limited() {
        let mut way_back = WayBack::default();
        let mut told = None;
        for n in 0..4_000_u32 {
            let wait = way_back.on_mack(Time::from_millis(u64::from(n) * 100), n * 50_000, 100, ANSWER);
            told = way_back.take().or(told);
            assert!(n < 2_500 || wait == Time::ZERO);
        }
        assert_eq!(told, Some(0), "the limit that this looked like is taken back");
    }

    #[test]
    fn timestamps_may_come_round_in_a_silence() {
        let mut line = Line::new();
        for hours in [0.5, 1.0, 1.2, 30.0] {
            line.send(20, 100.0, 1e6);
            line.sent_ms += hours * 3.6e6;
            assert_eq!(line.send(1, 100.0, 1e6).0, Time::ZERO, "{hours} h");
            assert!(!line.way_back.is_unlike);
        }
    }

    #[test]
    fn the_fastest_one_stays_known_when_the_origin_moves() {
        let mut line = Line::new();
        line.send(1_000, 1_000.0, 1e6);
        line.sent_ms += 10.0;
        let (wait, _) = line.send(100, 100.0, 1e6);
        assert!(wait < Time::from_millis(1));
        line.free_ms += 300.0 + 100.0;
        let (wait, _) = line.send(1, 100.0, 1e6);
        assert!((0.29..0.41).contains(&wait.as_secs_f64()), "{wait}");
    }
}
