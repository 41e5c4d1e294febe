//! Days and months of budgets, by a clock that its owner may set.

use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// Period of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Day,
    Month,
}

/// The time of day, as it was told last. Without it days are of 24 hours since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calendar {
    told: Time,
    /// Seconds since 1970-01-01 in the zone of the budgets, at `told`.
    local_s: i64,
}

/// The time of day goes on from the new origin if it was told before it.
impl MoveOrigin for Calendar {
    fn move_origin(&mut self, by: OriginShift) {
        self.local_s += by.time().since(self.told).as_secs_f64() as i64;
        self.told.move_origin(by);
    }
}

const DAY_S: i64 = 86_400;
/// Years 1 to 9999, in s since 1970.
const RANGE_S: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl Calendar {
    /// The clock shows this time now. Times that no calendar has are moved to the nearest that it has.
    pub(super) fn set(&mut self, now: Time, unix_s: f64, zone_s: f64) {
        let local_s = (unix_s + zone_s).floor() as i64; // saturates; NaN gives 0
        *self = Calendar { told: now, local_s: local_s.clamp(*RANGE_S.start(), *RANGE_S.end()) };
    }

    fn local_s(&self, at: Time) -> i64 {
        self.local_s + at.since(self.told).as_secs_f64() as i64
    }

    /// The number of the day, from 1970-01-01.
    pub(super) fn day(&self, at: Time) -> i64 {
        self.local_s(at).div_euclid(DAY_S)
    }

    /// The number of the month, from January 1970.
    pub(super) fn month(&self, at: Time) -> i64 {
        month_of(self.day(at))
    }

    /// When the next day or month begins.
    pub(super) fn next(&self, period: Period, at: Time) -> Time {
        let day = match period {
            Period::Day => self.day(at) + 1,
            Period::Month => first_day(self.month(at) + 1),
        };
        self.told + Time::from_secs((day * DAY_S - self.local_s).max(0) as u64)
    }
}

/// Month of a day. The algorithm `civil_from_days` of Howard Hinnant, "chrono-compatible low-level date algorithms", 2013: years
/// begin in March, so that the leap day is the last one.
fn month_of(day: i64) -> i64 {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    (era * 400 + year - 1970) * 12 + from_march + 2
}

/// First day of a month: `days_from_civil` of the same source.
fn first_day(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, from_march) = (1970 + from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn month(year: i64, month: i64) -> i64 {
        (year - 1970) * 12 + month - 1
    }

    #[test]
    fn months_begin_on_their_first_day() {
        // Days since 1970: 2000-03-01 is 11017, 2026-11-01 is 20758, 1900-03-01 is -25508.
        for (day, of) in
            [(0, month(1970, 1)), (11_017, month(2000, 3)), (20_758, month(2026, 11)), (-25_508, month(1900, 3))]
        {
            assert_eq!((first_day(of), month_of(day), month_of(day - 1)), (day, of, of - 1));
        }
        for day in -800_000..800_000 {
            let of = month_of(day);
            assert!(first_day(of) <= day && day < first_day(of + 1), "{day}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight_of_the_zone() {
        let mut calendar = Calendar::default();
        let now = Time::from_secs(100);
        calendar.set(now, 1_796_083_200.0 - 3600.0, 3600.0); // 2026-12-01 00:00 in a zone one hour ahead
        assert_eq!(calendar.month(now), month(2026, 12));
        assert_eq!(calendar.next(Period::Day, now), now + Time::from_secs(86_400));
        assert_eq!(calendar.next(Period::Month, now), now + Time::from_secs(31 * 86_400));
        let last = now + Time::from_secs(86_399);
        assert_eq!(calendar.day(last) + 1, calendar.day(last + Time::from_secs(1)));
    }

    #[test]
    fn no_time_of_day_is_out_of_range() {
        for unix_s in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0] {
            let mut calendar = Calendar::default();
            calendar.set(Time::ZERO, unix_s, unix_s);
            let now = Time::NEVER;
            let (day, month) = (calendar.next(Period::Day, Time::ZERO), calendar.next(Period::Month, Time::ZERO));
            assert!(day > Time::ZERO && day <= month && month <= Time::from_secs(31 * 86_400), "{unix_s}");
            assert!(calendar.day(now) >= calendar.day(Time::ZERO));
        }
    }
}
