//! Losses, and the reaction of flows.

use super::flow::{Flow, LEAST_THRESHOLD, Phase};
use super::point::{Repair, Timeouts};
use super::simulation::Simulation;

/// Largest number of losses in one window that Reno repairs without a timeout, and the window below which two losses need one
/// (Fall and Floyd 1996, section 3.2).
const MOST_LOSSES_OF_RENO: u32 = 2;
const LEAST_WINDOW_OF_RENO: f64 = 10.0;

impl Simulation<'_> {
    pub(super) fn draw_loss(&mut self) {
        let loss = self.loss;
        self.until_loss = if loss > 0.0 { self.rng.exponential(1.0 / loss) } else { f64::INFINITY };
    }

    /// The channel loses a segment. The flow is drawn in proportion to the segments in flight.
    pub(super) fn lose(&mut self) {
        self.draw_loss();
        let (in_flight, weights) = (&self.in_flight, &self.weights);
        let sent = |at: usize, _: &Flow| in_flight[at] * weights[at];
        let Some(at) = chosen(&self.flows, self.rng.uniform(), sent) else { return };
        // The segment has left the queue, so the gap is detected after the rest of the round trip.
        let delay_s = self.flows[at].round_trip_s;
        self.note(at, delay_s);
    }

    /// The buffer is full: from here on windows lose the segments that they grow by.
    pub(super) fn begin_overflow(&mut self) {
        let (rate, wait_s) = (self.rate, self.wait_s);
        let sent = |(flow, segments): (&Flow, &f64)| segments / (flow.round_trip_s + wait_s);
        let offered: f64 = self.flows.iter().zip(&self.in_flight).map(sent).sum();
        // More than a segment of each flow at once, for example when the rate falls, counts as one.
        self.excess = ((offered - rate) * (self.shortest_s + wait_s)).clamp(0.0, self.flows.len() as f64);
        self.next_drop = 0.0;
        self.flows.iter_mut().for_each(|flow| flow.is_hit = false);
    }

    /// The full buffer drops a segment. It is one by which a window has just grown, because the other segments arrive when there
    /// is room for them. Therefore every flow is hit before one is hit again, unless its window grows by more than a segment per
    /// round trip.
    pub(super) fn drop_one(&mut self) {
        self.next_drop += 1.0;
        let pick = |simulation: &mut Self| {
            let (slopes, weights) = (&simulation.slopes, &simulation.weights);
            let grown = |at: usize, flow: &Flow| {
                let is_spared = flow.is_hit && !flow.is_in_slow_start();
                if is_spared { 0.0 } else { slopes[at] * weights[at] }
            };
            chosen(&simulation.flows, simulation.rng.uniform(), grown)
        };
        let mut at = pick(self);
        if at.is_none() {
            self.flows.iter_mut().for_each(|flow| flow.is_hit = false);
            at = pick(self);
        }
        let Some(at) = at else { return };
        self.flows[at].is_hit = true;
        self.counts[at].dropped += 1.0;
        let delay_s = self.flows[at].round_trip_s + self.most_wait();
        self.note(at, delay_s);
    }

    /// Notes that a flow has lost a segment, which the sender can detect after `delay_s`.
    fn note(&mut self, at: usize, delay_s: f64) {
        let flow = &mut self.flows[at];
        match flow.phase {
            Phase::Open if flow.losses == 0 => {
                flow.losses = 1;
                flow.alarm_s = self.now_s + delay_s;
            }
            Phase::Open | Phase::Duplicates if self.point.multiple_losses => flow.losses += 1,
            Phase::Open | Phase::Duplicates | Phase::Recovery => flow.later_losses += 1,
            Phase::Silent => {}
        }
    }

    /// Handles all alarms that are due.
    pub(super) fn alarms(&mut self) {
        for at in 0..self.flows.len() {
            if self.flows[at].alarm_s > self.now_s {
                continue;
            }
            self.flows[at].alarm_s = f64::INFINITY;
            match self.flows[at].phase {
                Phase::Open if self.point.duplicate_acks > 0.0 => {
                    let round_trip_s = self.round_trip(at);
                    let flow = &mut self.flows[at];
                    flow.phase = Phase::Duplicates;
                    flow.alarm_s = self.now_s + round_trip_s * self.point.duplicate_acks / flow.window.max(1.0);
                }
                Phase::Open | Phase::Duplicates => self.react(at),
                Phase::Recovery => self.end_recovery(at),
                Phase::Silent => self.expire(at),
            }
        }
    }

    /// Reacts to a detected loss.
    fn react(&mut self, at: usize) {
        self.reactions += 1;
        let point = self.point;
        let losses = self.flows[at].losses;
        let flight = self.flows[at].flight_at_loss();
        if let Some(timeouts) = point.timeouts
            && self.waits_for_timer(flight, losses)
        {
            self.flows[at].threshold = point.growth.reduce(&mut self.flows[at], flight).max(LEAST_THRESHOLD);
            self.counts[at].timeouts += 1.0;
            self.silence(at, timeouts);
            return;
        }
        let flow = &mut self.flows[at];
        let halvings = if point.repair == Repair::Reno { losses } else { 1 };
        let rounds = if point.repair == Repair::NewReno { losses } else { halvings };
        let mut left = flight;
        for _ in 0..halvings {
            left = point.growth.reduce(flow, left).max(LEAST_THRESHOLD);
        }
        flow.threshold = left;
        flow.window = left;
        flow.losses = 0;
        flow.phase = Phase::Recovery;
        let round_trip_s = self.round_trip(at);
        let mut recovery_s = f64::from(rounds) * round_trip_s;
        if let Some(timeouts) = point.timeouts
            && point.repair == Repair::NewReno
        {
            // Only the first partial acknowledgement restarts the timer (RFC 6582, section 3.2, step 3).
            let expires_s = round_trip_s + timeouts.after(round_trip_s);
            self.flows[at].will_expire = recovery_s > expires_s;
            recovery_s = recovery_s.min(expires_s);
        }
        self.flows[at].alarm_s = self.now_s + recovery_s;
    }

    /// Whether `losses` in a window of `flight` segments need a timeout, because duplicate acknowledgements cannot reveal them.
    fn waits_for_timer(&mut self, flight: f64, losses: u32) -> bool {
        let point = self.point;
        let duplicates = flight - f64::from(losses);
        // With limited transmit, the first two duplicates send segments that cause further ones.
        let enough = if point.limited_transmit { 1.0 } else { point.duplicate_acks };
        let is_lost_again =
            point.repair != Repair::Rack && self.rng.chance(1.0 - (1.0 - self.loss).powi(losses.min(1000) as i32));
        let is_beyond_reno = point.repair == Repair::Reno
            && (losses > MOST_LOSSES_OF_RENO || losses == MOST_LOSSES_OF_RENO && flight < LEAST_WINDOW_OF_RENO);
        duplicates < enough || is_lost_again || is_beyond_reno
    }

    fn silence(&mut self, at: usize, timeouts: Timeouts) {
        let round_trip_s = self.round_trip(at);
        let flow = &mut self.flows[at];
        let timeout_s = timeouts.after(round_trip_s) * flow.backoff;
        (flow.losses, flow.later_losses) = (0, 0);
        flow.phase = Phase::Silent;
        flow.alarm_s = self.now_s + timeout_s.min(timeouts.most_s.max(timeouts.least_s));
    }

    /// Handles a timeout: the first segment is retransmitted.
    fn expire(&mut self, at: usize) {
        if let Some(timeouts) = self.point.timeouts
            && self.rng.chance(self.loss)
        {
            self.counts[at].timeouts += 1.0;
            self.flows[at].backoff *= 2.0;
            self.silence(at, timeouts);
            return;
        }
        let flow = &mut self.flows[at];
        flow.backoff = 1.0;
        flow.phase = Phase::Open;
        flow.window = 1.0;
        self.point.growth.forget(flow);
    }

    fn end_recovery(&mut self, at: usize) {
        if std::mem::take(&mut self.flows[at].will_expire) {
            self.counts[at].timeouts += 1.0;
            self.flows[at].later_losses = 0;
            self.expire(at);
            return;
        }
        let round_trip_s = self.round_trip(at);
        let flow = &mut self.flows[at];
        flow.phase = Phase::Open;
        if flow.later_losses == 0 {
            return;
        }
        flow.losses = std::mem::take(&mut flow.later_losses);
        flow.alarm_s = self.now_s;
        if !self.point.multiple_losses {
            flow.losses = 1;
            flow.alarm_s += round_trip_s;
        }
    }

    /// Handles the link coming up after `seconds` seconds: all pending events are delayed.
    pub(super) fn link_is_back(&mut self, seconds: f64) {
        let point = self.point;
        for at in 0..self.flows.len() {
            let flow = &mut self.flows[at];
            flow.alarm_s += seconds;
            point.growth.pause(flow, seconds);
            let Some(timeouts) = point.timeouts else { continue };
            let is_over = seconds > timeouts.after(flow.round_trip_s);
            if is_over && flow.phase != Phase::Silent {
                // The timer has expired in the meantime: slow start up to half of the segments in flight.
                let flight = flow.flight_at_loss();
                flow.threshold = point.growth.reduce(flow, flight).max(LEAST_THRESHOLD);
                self.counts[at].timeouts += 1.0;
                self.reactions += 1;
                let flow = &mut self.flows[at];
                (flow.losses, flow.later_losses) = (0, 0);
                flow.alarm_s = f64::INFINITY;
                flow.phase = Phase::Open;
                flow.window = 1.0;
                point.growth.forget(flow);
            }
        }
    }
}

/// Draws a flow with probabilities in proportion to `weight`; `None` if all are 0.
fn chosen(flows: &[Flow], uniform: f64, weight: impl Fn(usize, &Flow) -> f64) -> Option<usize> {
    let total: f64 = flows.iter().enumerate().map(|(at, flow)| weight(at, flow)).sum();
    let mut left = uniform * total;
    let mut last = None;
    for (at, flow) in flows.iter().enumerate() {
        let own = weight(at, flow);
        if own > 0.0 {
            last = Some(at);
            if left < own {
                break;
            }
            left -= own;
        }
    }
    last
}
