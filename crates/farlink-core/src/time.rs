//! Time as an argument: one type for instants (since the start of a run) and for durations.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant since the start of a run, or a duration, in whole picoseconds.
///
/// Picoseconds keep the duration of one byte exact to 1e-4 even at 10 Gb/s; 64 bits of them cover 213 days. Arithmetic saturates,
/// and [`Time::NEVER`] stays the same. What runs for longer moves the origin of its clock: [`OriginShift`](crate::OriginShift).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const PER_SECOND: f64 = 1e12;

impl Time {
    /// The start of a run; the empty duration.
    pub const ZERO: Time = Time(0);
    /// Later than every instant, for example of a timer that is not armed.
    pub const NEVER: Time = Time(u64::MAX);

    /// From picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// In picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// From seconds, rounded to the nearest picosecond. Negative or NaN gives zero; too large gives [`Time::NEVER`].
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        // A float-to-integer cast saturates, which is the documented behaviour.
        Time((seconds * PER_SECOND + 0.5) as u64)
    }

    /// In seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PER_SECOND
    }

    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Time(seconds * 1_000_000_000_000)
    }

    /// `self - earlier`, zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// The duration times a factor; saturates.
    #[inline]
    pub const fn times(self, factor: u64) -> Time {
        Time(self.0.saturating_mul(factor))
    }

    /// Rounded up to a whole multiple of `tick`; unchanged if `tick` is zero.
    #[inline]
    pub const fn round_up_to(self, tick: Time) -> Time {
        if tick.0 == 0 { self } else { Time(self.0.div_ceil(tick.0).saturating_mul(tick.0)) }
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        self.since(other)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { write!(f, "{:.9} s", self.as_secs_f64()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_trip_to_the_picosecond() {
        assert_eq!(Time::from_secs_f64(0.25), Time::from_millis(250));
        assert_eq!(Time::from_secs_f64(1e-12).as_ps(), 1);
        assert_eq!(Time::from_secs_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_secs_f64(f64::INFINITY), Time::NEVER);
    }

    #[test]
    fn arithmetic_with_never_gives_never() {
        assert_eq!(Time::NEVER + Time::from_secs(1), Time::NEVER);
        assert_eq!(Time::from_secs(1) - Time::from_secs(2), Time::ZERO);
    }

    #[test]
    fn rounds_up_to_a_timer_tick() {
        let tick = Time::from_millis(100);
        assert_eq!(Time::from_millis(201).round_up_to(tick), Time::from_millis(300));
        assert_eq!(Time::from_millis(200).round_up_to(tick), Time::from_millis(200));
        assert_eq!(Time::from_millis(201).round_up_to(Time::ZERO), Time::from_millis(201));
    }
}
