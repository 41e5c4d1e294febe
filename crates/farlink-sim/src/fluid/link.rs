//! The bottleneck between two events: conversion between segments, round trips and seconds.
//!
//! A step is measured in rounds, the round trips of the flow with the shortest one. In that unit windows grow linearly, so the
//! segments of a step are a quadratic in it; and while a queue keeps the link busy, its seconds are too (Lakshman and Madhow
//! 1997, section III).

/// The present limit of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regime {
    /// The windows: no queue.
    Idle,
    /// The link: a queue grows.
    Busy,
    /// The buffer: the excess over the link's rate is dropped.
    Full,
    /// The link is down.
    Down,
}

/// The sums over all flows that a step needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Segments sent in a round: those in flight of each flow, times its weight.
    pub(super) segments: f64,
    /// Growth of that number in a round.
    pub(super) growth: f64,
}

/// The rates that hold during one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) regime: Regime,
    pub(super) sums: Sums,
    /// Segments per second.
    pub(super) rate: f64,
    /// Length of a round at the start of the step, s.
    pub(super) round_s: f64,
    /// Whether all flows have the same round trip: then the queue has a closed form.
    pub(super) is_even: bool,
}

impl Pace {
    /// Duration of `rounds` rounds, in s.
    pub(super) fn seconds(&self, rounds: f64) -> f64 {
        match self.regime {
            Regime::Busy if self.is_even => (self.sums.segments + 0.5 * self.sums.growth * rounds) * rounds / self.rate,
            _ => rounds * self.round_s,
        }
    }

    /// Number of rounds in `seconds` seconds.
    pub(super) fn rounds(&self, seconds: f64) -> f64 {
        match self.regime {
            Regime::Busy if self.is_even => self.rounds_for(seconds * self.rate),
            _ => seconds / self.round_s,
        }
    }

    /// Segments that pass the link in `rounds` rounds.
    pub(super) fn segments(&self, rounds: f64) -> f64 {
        match self.regime {
            Regime::Down => 0.0,
            Regime::Idle => self.offered(rounds),
            Regime::Busy | Regime::Full => self.rate * self.seconds(rounds),
        }
    }

    /// Rounds until `segments` segments have passed the link.
    pub(super) fn rounds_until(&self, segments: f64) -> f64 {
        match self.regime {
            Regime::Down => f64::INFINITY,
            Regime::Idle => self.rounds_for(segments),
            Regime::Busy | Regime::Full => self.rounds(segments / self.rate),
        }
    }

    /// Segments that the windows allow in `rounds` rounds.
    pub(super) fn offered(&self, rounds: f64) -> f64 {
        (self.sums.segments + 0.5 * self.sums.growth * rounds) * rounds
    }

    fn rounds_for(&self, segments: f64) -> f64 {
        let Sums { segments: first, growth } = self.sums;
        2.0 * segments / (first + (first * first + 2.0 * growth * segments).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_rounds_are_inverse() {
        for regime in [Regime::Idle, Regime::Busy, Regime::Full] {
            let sums = Sums { segments: 120.0, growth: 3.0 };
            let pace = Pace { regime, sums, rate: 100.0, round_s: 1.2, is_even: true };
            for rounds in [1e-6, 0.3, 7.0] {
                assert!((pace.rounds(pace.seconds(rounds)) / rounds - 1.0).abs() < 1e-9);
                assert!((pace.rounds_until(pace.segments(rounds)) / rounds - 1.0).abs() < 1e-9);
            }
        }
    }
}
