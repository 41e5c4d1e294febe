//! The round-trip time and how long to wait for an answer.

use crate::time::Time;

/// How long answers take and how that varies (RFC 6298, section 2, without back-off). `[R4]`
///
/// An acknowledgement of many segments answers the first of them later than the last, and one that was lost leaves all that it
/// would have told to the next: so it is the wait of the first that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// Seconds; no sample yet while it is zero.
    smoothed: f64,
    variation: f64,
    pub(super) least: Time,
    pub(super) latest: Option<Time>,
    /// What is added for the time that the peer holds acknowledgements back.
    margin: Time,
}

impl RoundTrip {
    pub(super) fn new(margin: Time) -> Self {
        RoundTrip { smoothed: 0.0, variation: 0.0, least: Time::NEVER, latest: None, margin }
    }

    /// A round trip took so long, without the time for which the peer held its answer back.
    pub(super) fn sample(&mut self, round_trip: Time) {
        self.latest = Some(round_trip);
        self.least = self.least.min(round_trip);
    }

    /// Of what an acknowledgement tells of, the first was sent so long ago.
    pub(super) fn answered_after(&mut self, time: Time) {
        let sample = time.as_secs_f64().max(LEAST_S); // none is zero: that means that there was none
        if self.smoothed == 0.0 {
            (self.smoothed, self.variation) = (sample, sample / 4.0);
        } else {
            self.variation += ((self.smoothed - sample).abs() - self.variation) / 4.0;
            self.smoothed += (sample - self.smoothed) / 8.0;
        }
    }

    /// How long an answer usually takes, once one has come.
    pub(super) fn smoothed(&self) -> Option<Time> {
        (self.smoothed > 0.0).then(|| Time::from_secs_f64(self.smoothed))
    }

    /// After this an answer is overdue.
    pub(super) fn timeout(&self) -> Option<Time> {
        let variation = (4.0 * self.variation).max(self.smoothed * LEAST_VARIATION).max(LEAST_MARGIN_S);
        self.smoothed().map(|smoothed| smoothed + Time::from_secs_f64(variation) + self.margin)
    }
}

/// The timeout exceeds the round trip by this share at least, and by so many seconds: one packet more in a queue is no loss.
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
