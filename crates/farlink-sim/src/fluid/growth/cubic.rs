//! CUBIC (RFC 9438): a cubic function of the time since the last loss, and Reno's window where that is larger.

use super::Slope;
use crate::fluid::flow::Flow;
use crate::fluid::law::{Constants, Curve};

/// Longest step, as a share of the time to or from the plateau of the curve.
const SHARE_OF_CURVE: f64 = 1.0 / 12.0;
/// Shortest step, in round trips.
const SHORTEST_STEP: f64 = 1.0;

impl Constants {
    /// Sets up the curve when congestion avoidance begins.
    pub(in crate::fluid) fn begin(&self, flow: &mut Flow, now_s: f64) {
        let (curve, window) = (&mut flow.curve, flow.window);
        curve.epoch_s = now_s;
        curve.w_est = window;
        if curve.prior == 0.0 {
            curve.prior = window;
        }
        if curve.w_max <= window {
            curve.w_max = window;
            curve.k_s = 0.0;
        } else {
            curve.k_s = libm::cbrt((curve.w_max - window) / self.c);
        }
    }

    fn at(&self, curve: &Curve, now_s: f64) -> f64 {
        let since_flat = now_s - curve.epoch_s - curve.k_s;
        curve.w_max + self.c * since_flat * since_flat * since_flat
    }

    /// Reno's growth with this beta (RFC 9438, section 4.3). Acknowledged segments count, not acknowledgements.
    fn friendly(&self, flow: &Flow, in_flight: f64) -> f64 {
        let alpha =
            if flow.curve.w_est >= flow.curve.prior { 1.0 } else { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) };
        alpha * in_flight / flow.window
    }

    pub(super) fn slope(&self, flow: &Flow, in_flight: f64, now_s: f64, round_trip_s: f64) -> Slope {
        let curve = &flow.curve;
        let from_flat_s = (now_s - curve.epoch_s - curve.k_s).abs();
        let rounds = SHORTEST_STEP.max(SHARE_OF_CURVE * from_flat_s / round_trip_s);
        let cubic = self.at(curve, now_s + rounds * round_trip_s);
        let reno = curve.w_est + self.friendly(flow, in_flight) * rounds;
        let ahead = if self.reno_friendly { cubic.max(reno) } else { cubic };
        // The limit of RFC 9438, section 4.2: half a window per round trip.
        let per_round = ((ahead - flow.window) / rounds).clamp(0.0, 0.5 * flow.window);
        Slope { per_round, rounds }
    }

    pub(super) fn advance(&self, flow: &mut Flow, in_flight: f64, rounds: f64) {
        flow.curve.w_est += self.friendly(flow, in_flight) * rounds;
    }

    pub(super) fn reduce(&self, flow: &mut Flow, flight: f64) -> f64 {
        let window = flow.window;
        let is_below_last = self.fast_convergence && window < flow.curve.w_max;
        let w_max = if is_below_last { window * (1.0 + self.beta) / 2.0 } else { window };
        flow.curve = Curve { w_max, prior: window, ..Curve::default() };
        flight * self.beta
    }
}
