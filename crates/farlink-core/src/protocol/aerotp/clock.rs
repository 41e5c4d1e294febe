//! Timestamps: ticks in 32 bits, of a microsecond or, where answers may take more than an hour, of several.

use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

const PS_PER_MICROSECOND: u64 = 1_000_000;

/// Half of the range of timestamps in microseconds, 35.8 minutes: a segment that was received longer ago is older than any that
/// arrives now. `[L8]`
pub(super) const HALF_ROUND: Time = Time::from_ps((u32::MAX / 2) as u64 * PS_PER_MICROSECOND);

/// Ticks are 2^5 microseconds at most.
const MOST_SHIFT: u32 = 5;
/// Longest age of an echoed timestamp, in ticks; one that seems older was never sent. `[L8]`
const LONGEST_TICKS: u64 = (1 << 32) - (1 << 24);
/// Bits of the mantissa and of the exponent of a holding time. `[A3]`
const HELD_BITS: u32 = 24;
const MOST_HELD_SHIFT: u32 = 15;

/// The clock that a side stamps its segments with. `[L8]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    shift: u32,
    /// By how many ticks the timestamps lag behind, modulo 2^32: so that they cannot be guessed `[G2]`, less those by which the origin
    /// of the clock has moved.
    lag: u32,
}

/// Timestamps continue as if the origin had not moved. Whole seconds are whole ticks. `[L15]`
impl MoveOrigin for Clock {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { shift, lag } = self;
        *lag = lag.wrapping_sub((by.microseconds() >> *shift) as u32);
    }
}

impl Clock {
    /// The longest round trip that any clock can measure.
    pub(super) const LONGEST: Time = span(LONGEST_TICKS << MOST_SHIFT);

    /// The finest clock that can measure round trips up to `longest`; the coarsest one if none can.
    pub(super) fn for_answers_within(longest: Time) -> Self {
        let is_enough = |&shift: &u32| span(LONGEST_TICKS << shift) >= longest;
        Clock { shift: (0..MOST_SHIFT).find(is_enough).unwrap_or(MOST_SHIFT), lag: 0 }
    }

    /// The same clock, whose timestamps lag behind by so many ticks.
    pub(super) fn behind(self, lag: u16) -> Self {
        Clock { lag: lag.into(), ..self }
    }

    /// Duration of a tick.
    fn tick(self) -> Time {
        span(1 << self.shift)
    }

    /// The sending time of a segment that is sent now: the next tick, or now if ticks are microseconds.
    #[inline]
    pub(super) fn sending(self, now: Time) -> Time {
        if self.shift == 0 { now } else { now.round_up_to(self.tick()) }
    }

    /// The timestamp of a segment that is sent now.
    #[inline]
    pub(super) fn stamp(self, now: Time) -> u32 {
        (self.round(now) as u32).wrapping_sub(self.lag)
    }

    /// The latest instant up to now, in microseconds, that a timestamp can mean. `None` if no answer takes that long,
    /// or if it would be before time zero: then this side did not send it, or the origin has moved past it.
    #[inline]
    pub(super) fn instant(self, now: Time, stamp: u32) -> Option<u64> {
        let now = self.round(now);
        let age = u64::from((now as u32).wrapping_sub(self.lag).wrapping_sub(stamp));
        let ticks = if age > LONGEST_TICKS { None } else { now.checked_sub(age) };
        ticks.map(|ticks| ticks << self.shift)
    }

    /// Whether its ticks are microseconds.
    pub(super) fn is_fine(self) -> bool {
        self.shift == 0
    }

    /// So many ticks in microseconds.
    pub(super) fn microseconds(self, ticks: u32) -> u64 {
        u64::from(ticks) << self.shift
    }

    #[inline]
    fn round(self, now: Time) -> u64 {
        ticks(self.sending(now)) >> self.shift
    }
}

/// An instant as whole microseconds.
#[inline]
pub(super) fn ticks(now: Time) -> u64 {
    now.as_ps() / PS_PER_MICROSECOND
}

/// A span of this many microseconds.
#[inline]
pub(super) const fn span(ticks: u64) -> Time {
    Time::from_ps(ticks.saturating_mul(PS_PER_MICROSECOND))
}

/// The holding time of a segment as a MACK encodes it, rounded down, and at most 6.4 days: no echo counts for so long. `[A3]`
#[inline]
pub(super) fn held(since: Time, now: Time) -> u32 {
    let microseconds = ticks(now).saturating_sub(ticks(since));
    let shift = (u64::BITS - microseconds.leading_zeros()).saturating_sub(HELD_BITS).min(MOST_HELD_SHIFT);
    (shift << HELD_BITS) | (microseconds >> shift).min((1 << HELD_BITS) - 1) as u32
}

/// Decodes the holding time of a MACK. `[A3]`
#[inline]
pub(super) fn held_span(field: u32) -> Time {
    let shift = field >> HELD_BITS & MOST_HELD_SHIFT;
    span(u64::from(field & ((1 << HELD_BITS) - 1)) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FINE: Clock = Clock { shift: 0, lag: 0 };

    #[test]
    fn timestamps_wrap() {
        let now = Time::from_secs(5_000);
        assert_eq!(FINE.instant(now, FINE.stamp(Time::from_secs(4_000))), Some(4_000_000_000));
        assert_eq!(FINE.instant(now, FINE.stamp(Time::from_secs(800))), Some(800_000_000), "70 minutes ago");
        assert_eq!(FINE.instant(now, FINE.stamp(Time::from_secs(5_001))), None, "from the future");
        let early = FINE.stamp(Time::from_secs(2)).wrapping_sub(3_000_000);
        assert_eq!(FINE.instant(Time::from_secs(1), early), None, "before time");
    }

    #[test]
    fn ticks_are_the_shortest_that_cover_the_longest_answer() {
        let micros = |seconds| Clock::for_answers_within(Time::from_secs(seconds)).tick().as_ps() / 1_000_000;
        assert_eq!([1, 3_600, 4_278, 4_279, 86_400, 1_000_000].map(micros), [1, 1, 1, 2, 32, 32]);
        assert_eq!(Clock::LONGEST.as_secs_f64().floor(), 136_902.0);
    }

    #[test]
    fn holding_times_of_seconds_are_exact_to_the_microsecond() {
        let told = |microseconds: u64| held(Time::from_secs(1), Time::from_secs(1) + span(microseconds));
        assert_eq!([0, 1, 50_000, (1 << 24) - 1].map(told), [0, 1, 50_000, (1 << 24) - 1]);
        assert_eq!([1 << 24, (1 << 24) + 1].map(told), [0x0180_0000; 2]);
        assert_eq!(held(Time::ZERO, Time::NEVER), (1 << 28) - 1);
    }

    proptest! {
        /// An echoed timestamp gives the time of sending, and the measured round trip is never shorter than the true one.
        #[test]
        fn an_echoed_timestamp_gives_the_time_of_sending(
            sent in 0..1_000_000_000_000_u64, share in 0.0..1.0_f64, shift in 0..=MOST_SHIFT, lag: u32,
        ) {
            let clock = Clock { shift, lag };
            let sent = span(sent);
            let took = span(((LONGEST_TICKS << shift) as f64 * share * 0.999_999) as u64);
            let found = clock.instant(clock.sending(sent) + took, clock.stamp(sent));
            prop_assert_eq!(found, Some(ticks(clock.sending(sent))));
        }

        /// `[L15]`
        #[test]
        fn timestamps_continue_when_the_origin_moves(
            seconds in 0..1_000_000_u64, by in 0..1_000_000_u64, micros in 0..1_000_000_u64, shift in 0..=MOST_SHIFT, lag: u32,
            stamp: u32,
        ) {
            let (before, by) = (Clock { shift, lag }, OriginShift::from_secs(by));
            let mut after = before;
            after.move_origin(by);
            let kept = Time::from_secs(seconds) + span(micros) + Clock::LONGEST;
            let now = kept + by.time();
            prop_assert_eq!(after.stamp(kept), before.stamp(now));
            let moved = before.instant(now, stamp).map(|ticks| ticks - by.microseconds());
            prop_assert_eq!(after.instant(kept, stamp), moved);
        }

        #[test]
        fn holding_times_are_encoded_within_a_part_in_eight_million(since in 0..1_000_000_000_000_u64, exponent in 0.0..11.7_f64) {
            let (since, took) = (span(since), 10_f64.powf(exponent) as u64);
            let told = ticks(held_span(held(since, since + span(took))));
            prop_assert!(told <= took && took - told <= took >> 23);
        }
    }
}
