//! The queueing delay, computed from the windows.

use super::simulation::{CLOSE, Simulation};

/// Windows are whole numbers: on average a buffer overflows half a segment later than with a continuous window. Each additional
/// segment per acknowledgement makes it overflow a segment earlier.
const HALF_A_SEGMENT: f64 = 0.5;

impl Simulation<'_> {
    /// Queueing delay that results from the windows, in s, limited by the buffer.
    pub(super) fn measured_wait(&mut self) -> f64 {
        let point = self.point;
        self.in_flight.iter_mut().zip(&self.flows).for_each(|(segments, flow)| *segments = flow.in_flight(point));
        let most_s = self.most_wait();
        if self.is_even {
            let segments: f64 = self.in_flight.iter().sum();
            return (segments / self.rate - self.shortest_s).clamp(0.0, most_s);
        }
        // The arrival rate falls with the delay and is convex, so that Newton's method from below never overshoots the point at
        // which it equals the link's rate.
        let mut wait_s = 0.0;
        for _ in 0..50 {
            let (mut arrivals, mut slope) = (-self.rate, 0.0);
            for (flow, segments) in self.flows.iter().zip(&self.in_flight) {
                let round_trip_s = flow.round_trip_s + wait_s;
                arrivals += segments / round_trip_s;
                slope += segments / (round_trip_s * round_trip_s);
            }
            if arrivals <= CLOSE * CLOSE * self.rate {
                break;
            }
            let next = arrivals / slope;
            wait_s += next;
            if wait_s >= most_s {
                return most_s;
            }
            if next <= 1e-12 * (wait_s + self.shortest_s) {
                break;
            }
        }
        wait_s
    }

    /// Delay of a full queue, in s.
    pub(super) fn most_wait(&self) -> f64 {
        let burst = self.point.segments_per_ack - 1.0;
        (self.point.buffer + HALF_A_SEGMENT - burst).max(0.0) / self.rate
    }

    /// The round trip of a flow with the present queue, in s.
    pub(super) fn round_trip(&mut self, flow: usize) -> f64 {
        self.flows[flow].round_trip_s + self.measured_wait()
    }
}
