//! Whether a set rate is more than the path carries. `[P17]`

use crate::origin::{MoveOrigin, MoveTicks, OriginShift, instants};
use crate::time::Time;

use super::super::clock::ticks;
use super::packets::{Packets, deviation};
use super::phases::{Phase, Phases};

/// Lost share above which a rate is in doubt, and for how many round trips in a row.
const TOO_MUCH: f64 = 0.2;
const DOUBTFUL_ROUND_TRIPS: u32 = 10;
/// The rate of a trial, over what arrives.
const TRIAL: f64 = 1.1;
/// Round trips of a trial that must be known.
const TRIAL_ROUND_TRIPS: u32 = 3;
/// The part of the lost share that must go in a trial, if the loss is congestion.
const FELL: f64 = 0.2;
/// It must have gone by so many standard deviations. Few packets may do so by chance: up to the second number the trial goes on, for
/// so many round trips at most.
const SEEMS: f64 = 3.0;
const SURE: f64 = 5.0;
const LONGEST_TRIAL: u32 = 32;
/// Round trips to the next trial, at first; each trial without effect doubles them.
const FIRST_REST: u32 = 256;
const LONGEST_REST: u32 = 1 << 16;

/// A circuit breaker (RFC 8084) of a set rate: after ten round trips with much loss it tries a lower rate. Loss that falls with the
/// rate was congestion, and the rate stays low; other loss is the channel's, and the rate returns.
#[derive(Clone, Debug)]
pub(super) struct Breaker {
    /// The set rate, in bytes per second.
    set: f64,
    rate: f64,
    phases: Phases,
    phase_until: Time,
    state: State,
    /// Round trips in which nothing is tried, after a trial without effect, and how many there are after the next one.
    rest: u32,
    next_rest: u32,
    /// Lost and all packets, while the rate is in doubt.
    doubtful: Packets,
    /// Whether it was told that the set rate is too high.
    has_told: bool,
}

instants! {
    Breaker: phases, phase_until, state;
    fixed: set, rate, rest, next_rest, doubtful, has_told
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The number of round trips in a row with much loss.
    Watching(u32),
    /// Since when, in ticks; what the trial has shown so far; and the lost share before.
    Trying { since: u64, shown: Packets, round_trips: u32, before: f64 },
    /// The set rate is too high for the path.
    Open,
}

impl MoveOrigin for State {
    fn move_origin(&mut self, by: OriginShift) {
        match self {
            State::Watching(_) | State::Open => {}
            State::Trying { since, shown: _, round_trips: _, before: _ } => since.move_ticks(by),
        }
    }
}

impl Breaker {
    pub(super) fn new(set_bytes_per_s: f64) -> Self {
        Breaker {
            set: set_bytes_per_s,
            rate: set_bytes_per_s,
            phases: Phases::default(),
            phase_until: Time::NEVER,
            state: State::Watching(0),
            rest: 0,
            next_rest: FIRST_REST,
            doubtful: Packets::default(),
            has_told: false,
        }
    }

    pub(super) fn bytes_per_s(&self) -> f64 {
        self.rate
    }

    /// Whether it has found that the path carries less than the set rate.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// The rate in place of the set one, in bytes per second, if the path carries less; told once.
    pub(super) fn take_lowered(&mut self) -> Option<f64> {
        (self.is_open() && !std::mem::replace(&mut self.has_told, true)).then_some(self.rate)
    }

    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u32, has_data: bool) {
        self.phases.on_sent(bytes, has_data);
    }

    #[inline]
    pub(super) fn on_outcome(&mut self, sent: u64, arrived: f64) {
        self.phases.on_outcome(sent, arrived);
    }

    /// A packet sent at `echo`, in ticks, was answered after `round_trip`.
    pub(super) fn on_answer(&mut self, now: Time, echo: u64, round_trip: Time) {
        if self.phase_until == Time::NEVER || now >= self.phase_until {
            self.phase_until = now + round_trip;
            self.phases.begin(now, 1.0, self.rate);
        }
        let eighth = ticks(round_trip) / 8;
        while let Some(phase) = self.phases.settled(echo.saturating_sub(eighth), ticks(round_trip)) {
            self.on_settled(now, &phase);
        }
    }

    fn on_settled(&mut self, now: Time, phase: &Phase) {
        if phase.packets.known() == 0.0 {
            return;
        }
        match &mut self.state {
            State::Open => {}
            State::Watching(doubtful) => {
                self.rest = self.rest.saturating_sub(1);
                let is_doubtful = phase.packets.lost > TOO_MUCH * phase.packets.known() && phase.is_used();
                if !is_doubtful || self.rest > 0 {
                    (*doubtful, self.doubtful) = (0, Packets::default());
                    return;
                }
                *doubtful += 1;
                self.doubtful.add(phase.packets);
                if *doubtful >= DOUBTFUL_ROUND_TRIPS {
                    let before = self.doubtful.lost_share();
                    self.set_rate(now, (TRIAL * (1.0 - before) * self.set).min(self.set));
                    self.state = State::Trying { since: ticks(now), shown: Packets::default(), round_trips: 0, before };
                }
            }
            State::Trying { since, shown, round_trips, before } => {
                if phase.began() < *since {
                    return; // of the set rate
                }
                shown.add(phase.packets);
                *round_trips += 1;
                if *round_trips < TRIAL_ROUND_TRIPS {
                    return;
                }
                let deviation = deviation(*before, shown.known().max(1.0));
                let fell = *before - shown.lost_share();
                let has_fallen = fell > (FELL * *before).max(SEEMS * deviation);
                if has_fallen && fell < SURE * deviation && *round_trips < LONGEST_TRIAL {
                    return;
                }
                if has_fallen {
                    self.state = State::Open;
                } else {
                    self.state = State::Watching(0);
                    self.doubtful = Packets::default();
                    self.rest = self.next_rest;
                    self.next_rest = (2 * self.next_rest).min(LONGEST_REST);
                    self.set_rate(now, self.set);
                }
            }
        }
    }

    fn set_rate(&mut self, now: Time, rate: f64) {
        self.rate = rate;
        self.phases.begin(now, 1.0, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Time = Time::from_millis(100);

    /// Sends at the breaker's rate for some round trips; a share is lost at each rate.
    fn run(breaker: &mut Breaker, round_trips: u64, lost: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut rates = Vec::new();
        let mut sent: Vec<(u64, f64)> = Vec::new();
        for round in 0..round_trips {
            let begin = ROUND_TRIP.times(round);
            let rate = breaker.bytes_per_s();
            for n in 0..100 {
                let now = begin + Time::from_ps(ROUND_TRIP.as_ps() / 100 * n);
                breaker.on_sent((rate * 0.001) as u32, true);
                sent.push((ticks(now), 1.0 - lost(rate)));
            }
            let now = begin + ROUND_TRIP;
            for (at, arrived) in sent.drain(..) {
                breaker.on_outcome(at, arrived);
            }
            breaker.on_answer(now, ticks(now).saturating_sub(1), ROUND_TRIP);
            rates.push(breaker.bytes_per_s());
        }
        rates
    }

    #[test]
    fn loss_that_falls_with_the_rate_is_congestion() {
        let mut breaker = Breaker::new(1e6);
        let rates = run(&mut breaker, 60, |rate| (1.0 - 1e5 / rate).max(0.0));
        assert!(breaker.is_open());
        assert!((rates.last().unwrap() / 1.1e5 - 1.0).abs() < 0.05, "{rates:?}");
        assert_eq!(rates[5], 1e6, "not before ten round trips");
        assert_eq!((breaker.take_lowered(), breaker.take_lowered()), (rates.last().copied(), None), "told once");
    }

    #[test]
    fn the_losses_of_a_channel_are_tried_seldom() {
        for loss in [0.3, 0.5, 0.7] {
            let mut breaker = Breaker::new(1e6);
            let rates = run(&mut breaker, 300, |_| loss);
            let used = rates.iter().sum::<f64>() / 300.0 / 1e6;
            assert!(breaker.take_lowered().is_none() && used > 0.98, "{used} at {loss}");
            assert!(rates.iter().any(|&rate| rate < 0.9e6), "it was tried");
        }
    }

    #[test]
    fn little_loss_is_never_tried() {
        let mut breaker = Breaker::new(1e6);
        assert!(run(&mut breaker, 100, |_| 0.15).iter().all(|&rate| rate == 1e6));
    }
}
