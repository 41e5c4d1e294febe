//! The event loop of one operating point.

use farlink_core::Rng;

use super::batches::Batches;
use super::flow::{Flow, Phase};
use super::link::{Pace, Regime, Sums};
use super::outcome::{FlowOutcome, Outcome};
use super::point::{Point, Rule, Span};
use crate::stats::Interval;

/// Number of reactions to losses per flow in a batch, at first.
const REACTIONS_PER_BATCH: u64 = 4;
/// Number of batches that are discarded at the start.
const WARM_UP_BATCHES: usize = 3;
/// Relative distance at which a limit counts as reached.
pub(super) const CLOSE: f64 = 1e-9;
/// Length of a step, in rounds, while the queue changes and round trips differ.
const UNEVEN_ROUNDS: f64 = 0.25;
/// Number of steps between two checks whether to stop.
const STEPS_PER_LOOK: u64 = 4096;

/// Simulates a point until the rule is met, or `is_stopped`.
pub fn simulate(point: &Point, rule: &Rule, rng: Rng, is_stopped: &dyn Fn() -> bool) -> Outcome {
    let mut simulation = Simulation::new(point, rng);
    let mut batches = Batches::new(simulation.flows.len());
    let (longest_s, reactions) = simulation.batch_size();
    let (mut left_to_warm, mut measured_s) = (WARM_UP_BATCHES, 0.0);
    let (mut is_precise, mut stopped) = (false, false);
    while !stopped && !is_precise && measured_s < rule.max_time_s {
        let scale = batches.merged as f64;
        let start_s = simulation.now_s;
        let last_s = start_s + (longest_s * scale).min(rule.max_time_s - measured_s);
        stopped = !simulation.run_batch(last_s, reactions * batches.merged, is_stopped);
        let seconds = simulation.now_s - start_s;
        let carried = std::mem::replace(&mut simulation.carried, vec![0.0; simulation.flows.len()]);
        let lost = std::mem::replace(&mut simulation.lost, vec![0.0; simulation.flows.len()]);
        if left_to_warm > 0 {
            left_to_warm -= 1;
            simulation.restart_counts();
            continue;
        }
        measured_s += seconds;
        for (counts, (carried, lost)) in simulation.counts.iter_mut().zip(carried.iter().zip(&lost)) {
            counts.carried += carried;
            counts.lost += lost;
        }
        let delivered: Vec<f64> = carried.iter().zip(&lost).map(|(carried, lost)| carried - lost).collect();
        if !stopped && batches.push(&delivered, seconds) {
            is_precise = batches.all(rule.level).is_some_and(|found| found.half_width <= rule.bound * found.mean);
        }
    }
    simulation.outcome(&batches, rule, measured_s, (is_precise, stopped))
}

/// The state between two events.
pub(super) struct Simulation<'a> {
    pub(super) point: &'a Point,
    pub(super) flows: Vec<Flow>,
    pub(super) rng: Rng,
    pub(super) now_s: f64,
    /// Segments until the channel loses one.
    pub(super) until_loss: f64,
    /// Segments in excess of the full buffer.
    pub(super) excess: f64,
    /// The excess at which the next segment is dropped.
    pub(super) next_drop: f64,
    pub(super) is_full: bool,
    /// Number of reactions to losses.
    pub(super) reactions: u64,
    pub(super) counts: Vec<FlowOutcome>,
    /// Segments in flight of each flow, at the start of the step.
    pub(super) in_flight: Vec<f64>,
    /// Slope of each flow's window, in segments per round trip.
    pub(super) slopes: Vec<f64>,
    /// Rounds of the shortest round trip, in round trips of each flow.
    pub(super) weights: Vec<f64>,
    pub(super) shortest_s: f64,
    pub(super) is_even: bool,
    /// Present rate, in segments per second.
    pub(super) rate: f64,
    /// Present loss.
    pub(super) loss: f64,
    span: usize,
    /// When the present rate and loss end.
    span_end_s: f64,
    /// Time in the queue, s.
    pub(super) wait_s: f64,
    peak_queue: f64,
    /// Segments carried in this batch, for each flow.
    carried: Vec<f64>,
    /// Mean number of those that the channel loses.
    lost: Vec<f64>,
}

/// The event that ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The longest step was reached.
    None,
    /// A flow's alarm.
    Alarm,
    /// The channel loses a segment.
    Loss,
    /// The full buffer drops one.
    Drop,
    /// The rate changes.
    Span,
    /// The batch is complete.
    End,
}

impl<'a> Simulation<'a> {
    fn new(point: &'a Point, mut rng: Rng) -> Self {
        let shortest_s = point.round_trips_s.iter().copied().fold(f64::INFINITY, f64::min);
        let is_even = point.round_trips_s.iter().all(|&round_trip_s| round_trip_s == shortest_s);
        let count = point.round_trips_s.len();
        let share = (mean_rate(point) * shortest_s + point.buffer.min(1e9)) / count as f64;
        let typical = (0.75 * share).min(1.3 / point.loss.sqrt()).min(point.max_window);
        let mut flow = |&round_trip_s: &f64| {
            let window = (typical * (0.7 + 0.6 * rng.uniform())).max(2.0).min(point.max_window);
            Flow::new(window, round_trip_s)
        };
        let flows: Vec<Flow> = point.round_trips_s.iter().map(&mut flow).collect();
        let whole = Span { seconds: f64::INFINITY, rate: point.rate, loss: point.loss };
        let &Span { seconds: span_end_s, rate, loss } = point.spans.first().unwrap_or(&whole);
        let mut simulation = Simulation {
            point,
            rng,
            now_s: 0.0,
            until_loss: 0.0,
            excess: 0.0,
            next_drop: 0.0,
            is_full: false,
            reactions: 0,
            counts: vec![FlowOutcome::default(); count],
            in_flight: vec![0.0; count],
            slopes: vec![0.0; count],
            weights: vec![1.0; count],
            shortest_s,
            is_even,
            rate,
            loss,
            span: 0,
            span_end_s,
            wait_s: 0.0,
            peak_queue: 0.0,
            carried: vec![0.0; count],
            lost: vec![0.0; count],
            flows,
        };
        simulation.draw_loss();
        simulation
    }

    /// Longest time of a batch, in s, and its number of reactions; either is enough to make batches nearly independent.
    fn batch_size(&self) -> (f64, u64) {
        let point = self.point;
        let count = self.flows.len() as f64;
        let longest_s = point.round_trips_s.iter().copied().fold(0.0, f64::max);
        let rate = mean_rate(point);
        let buffer = if point.buffer.is_finite() { point.buffer } else { 0.0 };
        let window = ((rate * longest_s + buffer) / count).min(point.max_window);
        let cycle_s = (longest_s + buffer / rate) * (64.0 + window * point.segments_per_ack);
        // A batch does not wait for losses that are too rare to matter.
        let loss_s = if point.loss * window * window > 1e-4 {
            count / point.loss / rate.min(count * window / longest_s)
        } else {
            0.0
        };
        let span_s: f64 = point.spans.iter().map(|span| span.seconds).sum();
        (REACTIONS_PER_BATCH as f64 * cycle_s.max(loss_s).max(span_s), REACTIONS_PER_BATCH * self.flows.len() as u64)
    }

    /// Runs until `last_s`, or for `reactions` reactions; returns `false` if it was stopped.
    fn run_batch(&mut self, last_s: f64, reactions: u64, is_stopped: &dyn Fn() -> bool) -> bool {
        let until = self.reactions + reactions;
        // If the rate changes, only batches of equal duration are comparable.
        let by_reactions = self.point.spans.is_empty();
        let mut steps = 0_u64;
        while self.now_s < last_s && !(by_reactions && self.reactions >= until) {
            self.step(last_s);
            steps += 1;
            if steps.is_multiple_of(STEPS_PER_LOOK) && is_stopped() {
                return false;
            }
        }
        true
    }

    fn step(&mut self, last_s: f64) {
        let (pace, mut rounds) = self.pace();
        let mut event = Event::None;
        let mut alarm_s = f64::INFINITY;
        self.flows.iter().for_each(|flow| alarm_s = alarm_s.min(flow.alarm_s));
        if pace.regime == Regime::Down {
            // While the link is down nothing happens, and pending events are delayed.
            alarm_s = f64::INFINITY;
        }
        for (at_s, of_time) in [(alarm_s, Event::Alarm), (self.span_end_s, Event::Span), (last_s, Event::End)] {
            let until = pace.rounds((at_s - self.now_s).max(0.0));
            if until <= rounds {
                (rounds, event) = (until, of_time);
            }
        }
        let until = pace.rounds_until(self.until_loss);
        if until < rounds {
            (rounds, event) = (until, Event::Loss);
        }
        if pace.regime == Regime::Full {
            let increments: f64 = self.slopes.iter().zip(&self.weights).map(|(slope, weight)| slope * weight).sum();
            let until = (self.next_drop - self.excess).max(0.0) / increments;
            if until < rounds {
                (rounds, event) = (until, Event::Drop);
            }
            self.excess += increments * rounds.min(until);
        }
        self.advance(&pace, rounds);
        match event {
            Event::None | Event::End => {}
            Event::Alarm => self.now_s = self.now_s.max(alarm_s),
            Event::Span => self.now_s = self.span_end_s,
            Event::Loss => self.lose(),
            Event::Drop => self.drop_one(),
        }
        match event {
            Event::Alarm => self.alarms(),
            Event::Span => self.next_span(),
            Event::End => self.now_s = last_s,
            _ => {}
        }
    }

    /// Computes slopes, sums and regime at this instant, and the longest step for which they hold.
    fn pace(&mut self) -> (Pace, f64) {
        let point = self.point;
        if self.rate <= 0.0 {
            let pace = Pace {
                regime: Regime::Down,
                sums: Sums::default(),
                rate: 0.0,
                round_s: self.shortest_s,
                is_even: self.is_even,
            };
            return (pace, f64::INFINITY);
        }
        self.wait_s = self.measured_wait();
        let most_wait_s = self.most_wait();
        let round_s = self.shortest_s + self.wait_s;
        let (mut sums, mut squares, mut rounds) = (Sums::default(), 0.0, f64::INFINITY);
        for (at, flow) in self.flows.iter_mut().enumerate() {
            let weight = if self.is_even { 1.0 } else { round_s / (flow.round_trip_s + self.wait_s) };
            let segments = self.in_flight[at] * weight;
            sums.segments += segments;
            squares += segments * weight;
            self.weights[at] = weight;
            self.slopes[at] = 0.0;
            if flow.grows(point) {
                point.growth.prepare(flow, self.now_s);
                let round_trip_s = flow.round_trip_s + self.wait_s;
                let slope = point.growth.slope(flow, self.in_flight[at], point, (self.now_s, round_trip_s));
                self.slopes[at] = slope.per_round;
                sums.growth += slope.per_round * weight * weight;
                rounds = rounds.min(slope.rounds / weight);
            }
        }
        let pipe = self.rate * round_s;
        let is_full = self.wait_s >= most_wait_s - CLOSE * (most_wait_s + self.shortest_s);
        let regime = if is_full {
            Regime::Full
        } else if self.wait_s > 0.0 || sums.segments >= pipe * (1.0 - CLOSE) {
            Regime::Busy
        } else {
            Regime::Idle
        };
        if is_full && !self.is_full {
            self.begin_overflow();
        }
        self.is_full = is_full;
        self.peak_queue = self.peak_queue.max(self.rate * self.wait_s.min(most_wait_s));
        match regime {
            Regime::Idle => rounds = rounds.min(positive((pipe - sums.segments) / sums.growth)),
            Regime::Busy => {
                let wait_per_round = round_s * sums.growth / squares;
                rounds = rounds.min(positive((most_wait_s - self.wait_s) / wait_per_round));
                if !self.is_even {
                    rounds = rounds.min(UNEVEN_ROUNDS);
                }
            }
            Regime::Full | Regime::Down => {}
        }
        (Pace { regime, sums, rate: self.rate, round_s, is_even: self.is_even }, rounds)
    }

    fn advance(&mut self, pace: &Pace, rounds: f64) {
        let seconds = pace.seconds(rounds);
        self.now_s += seconds;
        if pace.regime == Regime::Down {
            return;
        }
        let segments = pace.segments(rounds);
        self.until_loss -= segments;
        let offered = pace.offered(rounds);
        let share = if offered > 0.0 { segments / offered } else { 0.0 };
        let point = self.point;
        for (at, flow) in self.flows.iter_mut().enumerate() {
            if flow.phase == Phase::Silent {
                continue;
            }
            let own = rounds * self.weights[at];
            let slope = self.slopes[at];
            let carried = share * (self.in_flight[at] + 0.5 * slope * own) * own;
            self.carried[at] += carried;
            self.lost[at] += carried * self.loss;
            if slope > 0.0 {
                let was_slow = flow.is_in_slow_start();
                flow.window += slope * own;
                if was_slow {
                    let is_there = flow.window >= flow.threshold * (1.0 - CLOSE);
                    flow.window = if is_there { flow.threshold } else { flow.window };
                } else {
                    point.growth.advance(flow, self.in_flight[at], own);
                }
                if flow.window > point.max_window * (1.0 - CLOSE) {
                    flow.window = point.max_window;
                }
            }
        }
    }

    fn next_span(&mut self) {
        let spans = &self.point.spans;
        let was_down_s = if self.rate <= 0.0 { spans[self.span].seconds } else { 0.0 };
        self.span = (self.span + 1) % spans.len();
        self.rate = spans[self.span].rate;
        self.span_end_s += spans[self.span].seconds;
        if self.loss != spans[self.span].loss {
            // Losses are memoryless: draw a new distance to the next one.
            self.loss = spans[self.span].loss;
            self.draw_loss();
        }
        if was_down_s > 0.0 {
            self.link_is_back(was_down_s);
        }
    }

    fn restart_counts(&mut self) {
        self.counts = vec![FlowOutcome::default(); self.flows.len()];
        self.peak_queue = 0.0;
    }

    fn outcome(&self, batches: &Batches, rule: &Rule, time_s: f64, (is_precise, is_stopped): (bool, bool)) -> Outcome {
        let count = self.flows.len();
        let of_flow = |(at, counts): (usize, &FlowOutcome)| {
            let found = batches.interval(at, 0.95);
            let goodput = (counts.carried - counts.lost) / time_s;
            FlowOutcome { goodput, ci95: found.half_width, ..counts.clone() }
        };
        let delivered: f64 = self.counts.iter().map(|counts| counts.carried - counts.lost).sum();
        Outcome {
            time_s,
            goodput: Interval { mean: delivered / time_s, half_width: batches.interval(count, rule.level).half_width },
            ci95: batches.interval(count, 0.95).half_width,
            flows: self.counts.iter().enumerate().map(of_flow).collect(),
            is_precise,
            is_stopped,
            peak_queue: self.peak_queue,
        }
    }
}

/// The rate over all spans, segments per second.
fn mean_rate(point: &Point) -> f64 {
    let seconds: f64 = point.spans.iter().map(|span| span.seconds).sum();
    if seconds > 0.0 {
        point.spans.iter().map(|span| span.rate * span.seconds).sum::<f64>() / seconds
    } else {
        point.rate
    }
}

/// A time that is not positive, or NaN, means never.
fn positive(rounds: f64) -> f64 {
    if rounds > 0.0 { rounds } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::Timeouts;

    #[test]
    fn no_loss_is_detected_while_the_link_is_down() {
        let timeouts = Some(Timeouts { least_s: 1.0, round_trips: 1.5, most_s: 60.0 });
        let spans = [500.0, 0.0].map(|rate| Span { seconds: 5.0, rate, loss: 0.02 }).to_vec();
        let point = Point { spans, timeouts, ..Point::new(250.0, 0.5, 100.0, 0.02, 3) };
        let mut simulation = Simulation::new(&point, Rng::for_component(1, 0, "test"));
        let mut waited_for = 0;
        while simulation.now_s < 1000.0 {
            let is_down = simulation.rate <= 0.0;
            waited_for +=
                u32::from(is_down && simulation.flows.iter().any(|flow| flow.alarm_s < simulation.span_end_s));
            simulation.step(2000.0);
            assert!(!is_down || simulation.rate > 0.0, "nothing happens before the link is back");
        }
        assert!(waited_for > 20, "{waited_for} outages found a flow that waited");
    }
}
