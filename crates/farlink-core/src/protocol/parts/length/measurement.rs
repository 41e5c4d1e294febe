//! The bit error rate as the far end measures it: sampled, and late by the time that the report takes.

use std::collections::VecDeque;

use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// The reports that are under way.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    /// From a sample to the sender's use of it.
    delay: Time,
    /// Between two samples.
    interval: Time,
    /// Samples are so much before whole intervals, if the origin of the clock has moved.
    ahead: Time,
    /// When each change is known, and the bit error rate from then on.
    reports: VecDeque<(Time, f64)>,
}

impl MoveOrigin for Measurement {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { ahead, reports, delay: _, interval } = self;
        *ahead = Time::from_ps((by.unmoved_ps(*ahead) % u128::from(interval.as_ps().max(1))) as u64);
        reports.iter_mut().for_each(|(known, _)| known.move_origin(by));
    }
}

impl Measurement {
    pub(super) fn new(delay: Time, interval: Time) -> Self {
        Measurement { delay, interval, ahead: Time::ZERO, reports: VecDeque::new() }
    }

    /// The link has another bit error rate from now on. The next sample shows it, if it lasts until then.
    pub(super) fn on_ber(&mut self, now: Time, ber: f64) {
        let samples = (now + self.ahead).as_ps().div_ceil(self.interval.as_ps());
        let known = self.interval.times(samples).since(self.ahead) + self.delay;
        match self.reports.back_mut() {
            Some(latest) if latest.0 == known => latest.1 = ber,
            _ => self.reports.push_back((known, ber)),
        }
    }

    /// The latest report that has arrived since the last call.
    pub(super) fn poll(&mut self, now: Time) -> Option<f64> {
        let arrived = self.reports.partition_point(|report| report.0 <= now);
        self.reports.drain(..arrived).next_back().map(|report| report.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_arrive_late_and_skip_what_lies_between_them() {
        let mut measured = Measurement::new(Time::from_millis(8), Time::from_millis(2));
        for (ms, ber) in [(0, 1e-6), (1, 1e-5), (2, 1e-4), (3, 1e-3), (4, 1e-2), (5, 1e-1)] {
            measured.on_ber(Time::from_millis(ms), ber);
        }
        // Samples at 0, 2, 4 and 6 ms.
        let known = |measured: &mut Measurement, ms| measured.poll(Time::from_millis(ms));
        assert_eq!([7, 8, 9].map(|ms| known(&mut measured, ms)), [None, Some(1e-6), None]);
        assert_eq!([10, 13, 14].map(|ms| known(&mut measured, ms)), [Some(1e-4), Some(1e-2), Some(1e-1)]);
    }

    #[test]
    fn samples_stay_where_they_are_when_the_origin_moves() {
        let interval = Time::from_millis(700);
        let mut measured = Measurement::new(Time::ZERO, interval);
        measured.move_origin(OriginShift::from_secs(1));
        measured.move_origin(OriginShift::from_secs(5));
        measured.on_ber(Time::from_millis(1), 1e-6);
        // Nine intervals after the origin, which was six seconds before this one.
        assert_eq!([299, 300].map(|ms| measured.poll(Time::from_millis(ms))), [None, Some(1e-6)]);
    }

    #[test]
    fn only_the_latest_report_counts() {
        let mut measured = Measurement::new(Time::from_millis(8), Time::from_millis(2));
        measured.on_ber(Time::ZERO, 1e-6);
        measured.on_ber(Time::from_millis(4), 1e-5);
        assert_eq!((measured.poll(Time::from_secs(1)), measured.poll(Time::from_secs(2))), (Some(1e-5), None));
    }
}
