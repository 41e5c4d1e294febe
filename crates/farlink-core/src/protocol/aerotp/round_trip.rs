//! The round-trip time, and the timeout for answers.

use crate::time::Time;

/// Mean and variation of the time that answers take (RFC 6298, section 2, without back-off). `[R4]`
///
/// An acknowledgement of many segments answers the first of them later than the last, and if an acknowledgement is lost, the next
/// one answers its segments too. The timeout therefore uses the time until the first segment of each acknowledgement is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// In seconds; 0 before the first sample.
    smoothed: f64,
    variation: f64,
    /// Values that follow from the two: every segment asks for them, and only acknowledgements change them. `None` before the first sample.
    answer: Option<AnswerTimes>,
    pub(super) least: Time,
    pub(super) latest: Option<Time>,
    /// Margin for the time that the peer delays acknowledgements.
    margin: Time,
}

/// How long answers take.
#[derive(Clone, Copy, Debug)]
struct AnswerTimes {
    usual: Time,
    timeout: Time,
}

impl RoundTrip {
    pub(super) fn new(margin: Time) -> Self {
        RoundTrip { smoothed: 0.0, variation: 0.0, answer: None, least: Time::NEVER, latest: None, margin }
    }

    /// Takes a sample of the round-trip time, without the time for which the peer delayed its answer.
    pub(super) fn sample(&mut self, round_trip: Time) {
        self.latest = Some(round_trip);
        self.least = self.least.min(round_trip);
    }

    /// Takes the time since the first segment was sent that an acknowledgement covers.
    pub(super) fn answered_after(&mut self, time: Time) {
        let sample = time.as_secs_f64().max(LEAST_S); // never zero, which means that there is no sample
        if self.smoothed == 0.0 {
            (self.smoothed, self.variation) = (sample, sample / 4.0);
        } else {
            self.variation += ((self.smoothed - sample).abs() - self.variation) / 4.0;
            self.smoothed += (sample - self.smoothed) / 8.0;
        }
        let usual = Time::from_secs_f64(self.smoothed);
        let variation = (4.0 * self.variation).max(self.smoothed * LEAST_VARIATION).max(LEAST_MARGIN_S);
        self.answer = Some(AnswerTimes { usual, timeout: usual + Time::from_secs_f64(variation) + self.margin });
    }

    /// The usual time of an answer; `None` before the first one.
    #[inline]
    pub(super) fn smoothed(&self) -> Option<Time> {
        self.answer.map(|answer| answer.usual)
    }

    /// The timeout, after which an answer is overdue.
    #[inline]
    pub(super) fn timeout(&self) -> Option<Time> {
        self.answer.map(|answer| answer.timeout)
    }

    /// How long after one probe of a silent path the next one follows: an eighth of a timeout, or 50 ms if that is sooner, but not
    /// sooner than a sixteenth. `[C20]`
    pub(super) fn probe_interval(timeout: Time) -> Time {
        let part = |n| Time::from_ps(timeout.as_ps() / n);
        part(8).min(part(16).max(Time::from_millis(50)))
    }
}

/// The timeout exceeds the round trip by at least this fraction, and by a least time, so that one more packet in a queue does not
/// look like a loss.
const LEAST_VARIATION: f64 = 0.005;
const LEAST_MARGIN_S: f64 = 0.001;
/// The resolution of timestamps.
const LEAST_S: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_round_trip_leaves_a_small_margin() {
        let mut round_trip = RoundTrip::new(Time::from_millis(50));
        assert_eq!(round_trip.timeout(), None);
        for _ in 0..50 {
            round_trip.sample(Time::from_secs(19));
            round_trip.answered_after(Time::from_secs(20));
        }
        assert_eq!(round_trip.timeout(), Some(Time::from_millis(20_150)));
        assert_eq!(round_trip.least, Time::from_secs(19));
    }
}
