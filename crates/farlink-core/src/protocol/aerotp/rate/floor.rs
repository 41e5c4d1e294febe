//! The rate that CUBIC would have in this place. `[P15]`

use crate::origin::instants;
use crate::time::Time;

/// How fast the curve rises, in packets per cubic second (RFC 9438, section 5.1).
const C: f64 = 0.4;
/// The smallest window, packets.
const LEAST_WINDOW: f64 = 2.0;

/// The window of a flow of CUBIC that does not exist. It would have sent some of the packets that were sent, and takes every loss
/// among these for congestion. Between losses the window is a function of time (RFC 9438).
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    /// Share of the window that remains after a loss.
    beta: f64,
    /// Packets.
    window: f64,
    /// The window at which the curve is flat.
    most: f64,
    /// Time from the loss to that point, s.
    k: f64,
    /// Time since the recovery from the loss during which the window was used, s; below 0 until then.
    since: f64,
    /// Reno's window.
    reno: f64,
    /// When the latest reduction was made, in ticks: packets sent earlier do not cause another one.
    reduced: u64,
    /// The time after which losses show, s.
    feedback_s: f64,
    /// Its round trip over the time after which its losses show.
    share: f64,
    /// Parts of losses of its packets that are not a loss yet.
    lost: f64,
}

instants! { Floor: ; ticks: reduced; fixed: beta, window, most, k, since, reno, feedback_s, share, lost }

impl Floor {
    /// `packets` is its first window.
    pub(super) fn new(beta: f64, packets: f64) -> Self {
        let window = packets.max(LEAST_WINDOW);
        Floor {
            beta,
            window,
            most: window,
            k: 0.0,
            since: 0.0,
            reno: window,
            reduced: 0,
            feedback_s: 0.0,
            share: 1.0,
            lost: 0.0,
        }
    }

    /// Its window in packets.
    pub(super) fn packets(&self) -> f64 {
        self.window
    }

    /// Time has passed in which the rate was used. Losses show after `feedback`, a round trip or more: a flow with a round trip of that length
    /// has a window as much longer at the same rate, and this one grows by as much less. `[P18]`
    pub(super) fn advance(&mut self, time: Time, round_trip: Time, feedback: Time) {
        self.share = (round_trip.as_secs_f64() / feedback.as_secs_f64().max(1e-4)).min(1.0);
        let round_trip_s = feedback.as_secs_f64().max(1e-4);
        self.feedback_s = round_trip_s;
        let mut left = time.as_secs_f64().min(64.0 * round_trip_s);
        // While it recovers, its window does not grow; the curve begins with congestion avoidance (RFC 9438, section 4.2).
        let recovering = left.min(-self.since.min(0.0));
        (self.since, left) = (self.since + recovering, left - recovering);
        while left > 0.0 {
            let step = left.min(round_trip_s / 4.0);
            self.step(step, round_trip_s);
            left -= step;
        }
    }

    fn step(&mut self, seconds: f64, round_trip_s: f64) {
        self.since += seconds;
        // Additive increase that gives Reno's average window (RFC 9438, section 4.3).
        self.reno += 3.0 * (1.0 - self.beta) / (1.0 + self.beta) * self.share * seconds / round_trip_s;
        // The curve a round trip ahead, and no more than half of the window in a round trip (RFC 9438, section 4.2).
        let ahead = self.since + round_trip_s - self.k;
        let target = (C * self.share * ahead * ahead * ahead + self.most).clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) * (seconds / round_trip_s).min(1.0);
        self.window = self.window.max(self.reno);
    }

    /// A share of a packet sent at `sent` was lost, or marked, of `in_flight` packets that are sent in a round trip.
    pub(super) fn on_lost(&mut self, now: u64, sent: u64, lost: f64, in_flight: f64) {
        self.lost += lost * (self.window / in_flight.max(1.0)).min(1.0);
        if self.lost >= 1.0 {
            self.lost = 0.0;
            if sent > self.reduced {
                self.reduce(now);
            }
        }
    }

    /// It is as at the beginning, with a window of so many packets.
    pub(super) fn begin_again(&mut self, now: u64, packets: f64) {
        let Floor { beta, feedback_s, share, .. } = *self;
        *self = Floor { reduced: now, since: -feedback_s, feedback_s, share, ..Floor::new(beta, packets) };
    }

    fn reduce(&mut self, now: u64) {
        // Fast convergence (RFC 9438, section 4.7).
        self.most = if self.window < self.most { self.window * (1.0 + self.beta) / 2.0 } else { self.window };
        self.window = (self.beta * self.window).max(LEAST_WINDOW);
        self.k = libm::cbrt((self.most - self.window).max(0.0) / (C * self.share));
        (self.since, self.reno, self.reduced) = (-self.feedback_s, self.window, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::aerotp::clock::ticks;

    /// With a round trip longer than the curve takes to the last window, a flow that grew while it recovers would never become slower.
    #[test]
    fn a_window_that_is_lost_from_in_each_round_trip_only_falls() {
        for round_trip_s in [0.01, 0.5, 6.0] {
            let round_trip = Time::from_secs_f64(round_trip_s);
            let (mut floor, mut now) = (Floor::new(0.7, 150.0), Time::ZERO);
            floor.advance(Time::ZERO, round_trip, round_trip);
            for _ in 0..8 {
                let before = floor.packets();
                now += round_trip;
                floor.on_lost(ticks(now), ticks(now), 1.0, before);
                assert!((floor.packets() - 0.7 * before).abs() < 1e-9);
                floor.advance(round_trip, round_trip, round_trip);
                assert!((floor.packets() - 0.7 * before).abs() < 1e-9, "{round_trip_s} s: {}", floor.packets());
            }
            let before = floor.packets();
            floor.advance(round_trip, round_trip, round_trip);
            assert!(floor.packets() > before, "it has recovered");
        }
    }
}
