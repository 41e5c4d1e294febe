//! Moves of a clock's origin: a driver that runs for longer than a [`Time`] can tell keeps its clock from ending.
//!
//! A state machine holds instants in many places, and all of them move together. [`instants`] therefore lists *all* fields of a struct,
//! so that the compiler refuses a new one that nobody has thought about.

use std::collections::{BinaryHeap, VecDeque};
use std::ops::AddAssign;

use crate::payload::Payload;
use crate::time::Time;

/// By how much the origin of a clock moves ahead: from then on the clock reads that much less. Whole seconds, which are whole ticks of
/// every protocol's clock.
///
/// A [`Time`] ends after 213 days. A driver that may run for longer asks [`due`](OriginShift::due) in each of its turns, and tells
/// everything that it gives the time to. It keeps the sum of all moves, for its clock and for connections that it makes later.
///
/// ```
/// use farlink_core::protocol::aerotp::{AerotpConfig, Connection};
/// use farlink_core::rng::SplitMix64;
/// use farlink_core::{Endpoint, OriginShift, Stream, Time};
///
/// let (config, mut random) = (AerotpConfig::default(), SplitMix64::new(1));
/// let mut connection = Connection::connect(&config, &mut random);
/// let mut moved = OriginShift::default();
///
/// for day in 0..400 {
///     // A real driver asks its own clock, which does not end: `std::time::Instant`.
///     let elapsed_s = 86_400 * day;
///     let mut now = Time::from_secs(elapsed_s - moved.as_secs());
///     if let Some(by) = OriginShift::due(now) {
///         connection.move_origin(by);
///         moved += by;
///         now = now - by.time();
///     }
///     connection.write(now, &mut vec![7]);
///     while connection.poll_transmit(now).is_some() {}
/// }
/// assert_eq!(moved.as_secs() / 86_400, 300); // fifty days, six times
///
/// // A connection that is made later learns of the moves before it.
/// let mut next = Connection::<Vec<u8>>::connect(&config, &mut random);
/// next.move_origin(moved);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginShift {
    seconds: u64,
}

const DAY_S: u64 = 86_400;
/// A clock that has read this much is moved, which leaves as long again until its end.
const LATEST: Time = Time::from_secs(100 * DAY_S);
/// Its reading then: longer than any timer looks back.
const KEPT_S: u64 = 50 * DAY_S;
const PS_PER_SECOND: u64 = 1_000_000_000_000;
const MICROSECONDS_PER_SECOND: u64 = 1_000_000;

impl OriginShift {
    /// Of so many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        OriginShift { seconds }
    }

    /// The move that is due for a clock that reads `now`: none before it has read 100 days; after it the clock reads 50.
    pub const fn due(now: Time) -> Option<Self> {
        if now.as_ps() < LATEST.as_ps() {
            return None;
        }
        Some(OriginShift::from_secs(now.as_ps() / PS_PER_SECOND - KEPT_S))
    }

    /// In seconds.
    pub const fn as_secs(self) -> u64 {
        self.seconds
    }

    /// As a duration; never for a sum that is longer than any.
    pub const fn time(self) -> Time {
        Time::from_secs(1).times(self.seconds)
    }

    /// In microseconds, saturated.
    pub(crate) const fn microseconds(self) -> u64 {
        self.seconds.saturating_mul(MICROSECONDS_PER_SECOND)
    }

    /// The reading, in picoseconds, of a clock that was never moved, if one moved by this reads `now`.
    pub(crate) fn unmoved_ps(self, now: Time) -> u128 {
        u128::from(now.as_ps()) + u128::from(self.seconds) * u128::from(PS_PER_SECOND)
    }
}

impl AddAssign for OriginShift {
    fn add_assign(&mut self, more: OriginShift) {
        self.seconds = self.seconds.saturating_add(more.seconds);
    }
}

/// Something that holds instants of its caller's clock.
pub(crate) trait MoveOrigin {
    /// The clock reads less from now on: every instant becomes earlier by that much, zero at the earliest. Durations stay.
    fn move_origin(&mut self, by: OriginShift);
}

/// The same of instants that are kept as whole microseconds.
pub(crate) trait MoveTicks {
    fn move_ticks(&mut self, by: OriginShift);
}

/// Implements [`MoveOrigin`] for a struct: `instants! { Name<D>: moved, ...; ticks: moved, ...; fixed: other, ... }`. The lists
/// together have all its fields: those with instants, those with instants as microseconds, and the others.
macro_rules! instants {
    ($name:ident $(<$payload:ident>)?: $($moved:ident),* $(; ticks: $($ticks:ident),+)?
        $(; fixed: $($(#[$when:meta])* $fixed:ident),+)? $(,)?) => {
        impl $(<$payload: $crate::payload::Payload>)? $crate::origin::MoveOrigin for $name $(<$payload>)? {
            fn move_origin(&mut self, by: $crate::origin::OriginShift) {
                let Self { $($moved,)* $($($ticks,)+)? $($($(#[$when])* $fixed: _,)+)? } = self;
                $($crate::origin::MoveOrigin::move_origin($moved, by);)*
                $($($crate::origin::MoveTicks::move_ticks($ticks, by);)+)?
            }
        }
    };
}
pub(crate) use instants;

impl MoveOrigin for Time {
    fn move_origin(&mut self, by: OriginShift) {
        if *self != Time::NEVER {
            *self = self.since(by.time());
        }
    }
}

impl MoveTicks for u64 {
    fn move_ticks(&mut self, by: OriginShift) {
        if *self != u64::MAX {
            *self = self.saturating_sub(by.microseconds());
        }
    }
}

/// The sum of all moves.
impl MoveOrigin for OriginShift {
    fn move_origin(&mut self, by: OriginShift) {
        *self += by;
    }
}

/// A position in a stream, and when.
impl MoveOrigin for (u64, Time) {
    fn move_origin(&mut self, by: OriginShift) {
        self.1.move_origin(by);
    }
}

/// Data, and when it was written.
impl<D: Payload> MoveOrigin for (D, Time) {
    fn move_origin(&mut self, by: OriginShift) {
        self.1.move_origin(by);
    }
}

/// Implements a trait for containers of what has it; `[, const N: usize] [T; N]` is one with a parameter of its own.
macro_rules! containers {
    ($trait:ident, $call:ident: $([$($parameter:tt)*] $container:ty),+ $(,)?) => {$(
        impl<T: $trait $($parameter)*> $trait for $container {
            fn $call(&mut self, by: OriginShift) {
                self.iter_mut().for_each(|it| it.$call(by));
            }
        }
    )+};
}

containers! { MoveOrigin, move_origin: [] Option<T>, [] Vec<T>, [] VecDeque<T>, [, const N: usize] [T; N] }
containers! { MoveTicks, move_ticks: [] Option<T>, [] Vec<T>, [, const N: usize] [T; N] }

impl<T: MoveOrigin> MoveOrigin for Box<T> {
    fn move_origin(&mut self, by: OriginShift) {
        (**self).move_origin(by);
    }
}

/// Ordered anew, because instants that become zero were different before.
impl<T: MoveOrigin + Ord> MoveOrigin for BinaryHeap<T> {
    fn move_origin(&mut self, by: OriginShift) {
        let mut all = std::mem::take(self).into_vec();
        all.move_origin(by);
        *self = all.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: OriginShift = OriginShift::from_secs(10);

    fn moved<T: MoveOrigin>(mut it: T) -> T {
        it.move_origin(BY);
        it
    }

    #[test]
    fn instants_move_to_zero_at_the_earliest_and_never_stays() {
        assert_eq!(moved(Time::from_millis(10_001)), Time::from_millis(1));
        assert_eq!(moved([Time::from_secs(10), Time::from_secs(3), Time::ZERO]), [Time::ZERO; 3]);
        assert_eq!(moved(Some(Time::NEVER)), Some(Time::NEVER));
        let mut ticks = [10_000_001, 3, u64::MAX].map(Some);
        ticks.move_ticks(BY);
        assert_eq!(ticks, [1, 0, u64::MAX].map(Some));
    }

    struct Sample {
        at: Time,
        sent: u64,
        spacing: Time,
    }

    instants! { Sample: at; ticks: sent; fixed: spacing }

    #[test]
    fn durations_stay() {
        let second = Time::from_secs(1);
        let Sample { at, sent, spacing } = moved(Sample { at: second.times(12), sent: 12_000_000, spacing: second });
        assert_eq!((at, sent, spacing), (second.times(2), 2_000_000, second));
    }

    #[test]
    fn a_heap_whose_first_instants_become_equal_keeps_its_order() {
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        struct Dated(Time, u32);
        impl MoveOrigin for Dated {
            fn move_origin(&mut self, by: OriginShift) {
                self.0.move_origin(by);
            }
        }
        let heap = BinaryHeap::from_iter((0..9).map(|n| Dated(Time::from_secs(n), 9 - n as u32)));
        let order: Vec<u32> = moved(heap).into_sorted_vec().into_iter().map(|dated| dated.1).collect();
        assert_eq!(order, Vec::from_iter(1..=9));
    }

    #[test]
    fn a_clock_is_moved_from_a_hundred_days_to_fifty() {
        let day = Time::from_secs(DAY_S);
        assert_eq!(OriginShift::due(Time::from_ps(day.times(100).as_ps() - 1)), None);
        for days in [100, 101, 200] {
            let now = day.times(days) + Time::from_millis(1);
            let by = OriginShift::due(now).unwrap();
            assert_eq!(now - by.time(), day.times(50) + Time::from_millis(1));
        }
        assert!(OriginShift::due(Time::NEVER).is_some());
    }

    #[test]
    fn a_sum_of_moves_may_be_longer_than_any_time() {
        let mut sum = OriginShift::default();
        for _ in 0..8 {
            sum += OriginShift::from_secs(50 * DAY_S);
        }
        assert_eq!((sum.as_secs(), sum.time()), (400 * DAY_S, Time::NEVER));
        assert_eq!(moved(sum).as_secs(), 400 * DAY_S + 10);
        assert_eq!(sum.unmoved_ps(Time::from_secs(1)), 34_560_001_000_000_000_000);
    }
}
