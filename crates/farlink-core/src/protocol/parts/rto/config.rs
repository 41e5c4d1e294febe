//! The configuration of a retransmission timer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::protocol::{Idle, LongestTimeout};
use crate::time::Time;
use crate::units::{Count, Factor, OrNever, PositiveSeconds, Probability, Seconds, Whole};

/// With a timer that expires more often than every microsecond, runs would not end; light takes this long for 300 m.
const LEAST_INITIAL_S: f64 = 1e-6;

/// How the retransmission timeout (RTO) is computed from the measured round-trip times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoAlgorithm {
    /// Twice the smoothed round-trip time (RFC 793, section 3.7, with its beta = 2).
    Rfc793,
    /// The smoothed round-trip time plus twice its mean deviation (Jacobson and Karels 1988).
    JacobsonKarels,
    /// The smoothed round-trip time plus four times its variation.
    #[default]
    Rfc6298,
    /// As in Linux (`tcp_rtt_estimator` in net/ipv4/tcp_input.c, version 6.1). The least RTO applies to the variation, which
    /// grows at once, and falls by a quarter when all data in flight a round before is acknowledged. Only `maximum_s` limits
    /// back-off, and the estimate is never forgotten. With TCP and records of segments (`rack`), a report of data that was sent
    /// before the oldest segment restarts the timer as well, and RACK takes a report that comes a least round trip after a
    /// retransmission for one of it, whatever the echoed timestamp (`tcp_rack_advance`).
    Linux,
    /// A multiple (`factor`) of the RTO of RFC 6298.
    Conservative,
    /// Always `initial_s`, without back-off unless `backoff_limit` is given.
    Fixed,
}

/// The retransmission timer (RFC 6298 unless another algorithm is chosen).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtoConfig {
    /// How the RTO is computed from the measured round-trip times; it sets the defaults of the keys below.
    pub algorithm: RtoAlgorithm,
    /// RTO before the first sample (RFC 6298, section 2.1).
    #[schemars(extend("minimum" = LEAST_INITIAL_S))]
    pub initial_s: PositiveSeconds,
    /// Least RTO; 1 s (RFC 6298, section 2.4), with `linux` 0.2 s, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_s: Option<Seconds>,
    /// Largest RTO; 60 s (the least that RFC 6298, section 2.5, allows), with `linux` 120 s, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_s: Option<PositiveSeconds>,
    /// Clock granularity G: samples are a whole number of ticks, at least one. 0 is a perfect clock.
    pub granularity_s: Seconds,
    /// Gain of the smoothed round-trip time; 1/8 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Probability>,
    /// Gain of its variation; 1/4 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<Probability>,
    /// Number of variations added to the smoothed round-trip time; 4, with `jacobson-karels` 2, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<Whole>,
    /// Factor by which the computed RTO is multiplied; 2 with `rfc793` and `conservative`, otherwise 1, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Factor>,
    /// Largest factor that back-off may reach; 64, with `fixed` 1, with `linux` no limit, unless given (RFC 6298, section
    /// 5.5, doubles without limit but for `maximum_s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Count>,
    /// Forget the round-trip estimate once the back-off factor exceeds this (RFC 6298, section 5, allows it; BSD and ns-2 do
    /// so at 8); `"never"` keeps it. 8, with `linux` `"never"`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OrNever<Count>")]
    pub forget_above_backoff: Option<OrNever<Count>>,
}

impl Default for RtoConfig {
    fn default() -> Self {
        let positive = |s| PositiveSeconds::new(s).expect("a constant within its range");
        RtoConfig {
            algorithm: RtoAlgorithm::default(),
            initial_s: positive(1.0),
            minimum_s: None,
            maximum_s: None,
            granularity_s: Seconds::new(0.001).expect("a constant within its range"),
            alpha: None,
            beta: None,
            k: None,
            factor: None,
            backoff_limit: None,
            forget_above_backoff: None,
        }
    }
}

impl RtoConfig {
    /// Checks rules that the types cannot express; paths are relative to the timer's table.
    pub(in crate::protocol) fn check(&self) -> Result<(), ConfigError> {
        let (initial, maximum) = (self.initial_s.get(), self.most_s());
        if initial < LEAST_INITIAL_S {
            let what =
                format!("{initial:e} s is too short: something would be sent again more than a million times a second");
            return Err(ConfigError::new("initial_s", what, format!("give at least {LEAST_INITIAL_S:e}")));
        }
        for (key, value) in [("minimum_s", self.least_s()), ("initial_s", initial)] {
            if value > maximum {
                let what = format!("{value} is above maximum_s = {maximum}");
                return Err(ConfigError::new(key, what, "give at most maximum_s, or raise maximum_s"));
            }
        }
        Ok(())
    }

    /// Keys that the algorithm does not use; relative to the timer's table.
    pub(in crate::protocol) fn idle(&self) -> Vec<Idle> {
        let is_fixed = self.algorithm == RtoAlgorithm::Fixed;
        let is_mean_alone = self.algorithm == RtoAlgorithm::Rfc793;
        let fixed = "a fixed timeout is not computed from round-trip times";
        let mean_alone = "rfc793 uses only the smoothed round-trip time";
        let other = "another algorithm";
        let computed = |key| Idle::when(is_fixed, key, fixed, other);
        let of_variation = |key| computed(key).or_else(|| Idle::when(is_mean_alone, key, mean_alone, other));
        let largest = self.largest_backoff();
        let is_never_forgotten = match self.forget_above_backoff {
            Some(OrNever::Value(factor)) => largest <= factor.whole(),
            Some(OrNever::Never) | None => false,
        };
        let back_off = "the timer never backs off so far";
        [
            computed("alpha"),
            of_variation("beta"),
            of_variation("k"),
            computed("factor"),
            computed("minimum_s"),
            Idle::when(is_fixed && largest == 1, "maximum_s", "a fixed timeout never grows", "a backoff_limit"),
            Idle::when(is_never_forgotten, "forget_above_backoff", back_off, "a larger backoff_limit"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Least RTO, or with `linux` least variation, in seconds.
    pub fn least_s(&self) -> f64 {
        let default = match self.algorithm {
            RtoAlgorithm::Linux => 0.2,
            RtoAlgorithm::Fixed => 0.0,
            _ => 1.0,
        };
        self.minimum_s.map_or(default, Seconds::get)
    }

    /// Largest RTO, in seconds.
    pub fn most_s(&self) -> f64 {
        let default = if self.algorithm == RtoAlgorithm::Linux { 120.0 } else { 60.0 };
        self.maximum_s.map_or(default, PositiveSeconds::get)
    }

    /// The back-off factor above which the estimate is forgotten.
    pub(super) fn forgets_above(&self) -> u64 {
        let default = if self.algorithm == RtoAlgorithm::Linux { u64::MAX } else { 8 };
        match self.forget_above_backoff {
            Some(OrNever::Value(factor)) => factor.whole(),
            Some(OrNever::Never) => u64::MAX,
            None => default,
        }
    }

    pub(super) fn gains(&self) -> (f64, f64) {
        (self.alpha.map_or(1.0 / 8.0, Probability::get), self.beta.map_or(1.0 / 4.0, Probability::get))
    }

    /// Number of variations added to the smoothed round-trip time.
    pub(super) fn variations(&self) -> f64 {
        let default = match self.algorithm {
            RtoAlgorithm::Rfc793 | RtoAlgorithm::Fixed => 0.0,
            // As in the paper of 1988; four came with its revision.
            RtoAlgorithm::JacobsonKarels => 2.0,
            _ => 4.0,
        };
        self.k.map_or(default, Whole::get)
    }

    pub(super) fn multiple(&self) -> f64 {
        let default = match self.algorithm {
            RtoAlgorithm::Rfc793 | RtoAlgorithm::Conservative => 2.0,
            _ => 1.0,
        };
        self.factor.map_or(default, Factor::get)
    }

    /// The longest time for which the timer waits; relative to the timer's table. `measures_repeats` says whether the answer to a
    /// retransmission gives a round-trip time (with Karn's algorithm it does not).
    pub(in crate::protocol) fn longest(&self, measures_repeats: bool, otherwise: &'static str) -> LongestTimeout {
        let maximum = Time::from_secs_f64(self.most_s());
        let unanswered = self.initial_s.time().times(self.largest_backoff()).min(maximum);
        let is_initial = self.algorithm == RtoAlgorithm::Fixed || !measures_repeats;
        let (key, value, ever) = if is_initial && unanswered < maximum {
            ("initial_s", self.initial_s.time(), unanswered)
        } else {
            ("maximum_s", maximum, maximum)
        };
        LongestTimeout { key: key.to_owned(), value, first: self.initial_s.time(), ever, unanswered, otherwise }
    }

    /// The largest back-off factor: it doubles until it reaches or exceeds its limit.
    fn largest_backoff(&self) -> u64 {
        self.most_backoff().min(1 << 32).next_power_of_two()
    }

    pub(super) fn most_backoff(&self) -> u64 {
        let default = match self.algorithm {
            RtoAlgorithm::Fixed => 1,
            RtoAlgorithm::Linux => 1 << 31,
            _ => 64,
        };
        self.backoff_limit.map_or(default, Count::whole)
    }
}
