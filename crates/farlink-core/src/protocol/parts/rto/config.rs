//! What a scenario says about a retransmission timer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::protocol::{Idle, LongestTimeout};
use crate::time::Time;
use crate::units::{Count, Factor, OrNever, PositiveSeconds, Probability, Seconds, Whole};

/// A timer that expires more often than every microsecond makes runs that do not end; light needs so long for 300 m.
const LEAST_INITIAL_S: f64 = 1e-6;

/// How the retransmission timeout (RTO) follows from the round-trip times measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoAlgorithm {
    /// Twice the smoothed round-trip time (RFC 793, section 3.7, with its beta = 2).
    Rfc793,
    /// The smoothed round-trip time and twice its mean deviation (Jacobson and Karels 1988).
    JacobsonKarels,
    /// The smoothed round-trip time and four times its variation.
    #[default]
    Rfc6298,
    /// As Linux has it (`tcp_rtt_estimator` in net/ipv4/tcp_input.c, version 6.1): the least RTO is one of the variation,
    /// which grows at once, and falls by a quarter when all that was under way a round before is acknowledged. Back-off has
    /// no limit but `maximum_s`, and the estimate is never forgotten. With TCP and records of segments (`rack`), a report
    /// of what was sent before the oldest segment restarts the timer as well.
    Linux,
    /// A multiple (`factor`) of what RFC 6298 computes.
    Conservative,
    /// Always `initial_s`, without back-off unless `backoff_limit` is given.
    Fixed,
}

/// The retransmission timer (RFC 6298 unless another algorithm is chosen).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtoConfig {
    /// How the RTO follows from the round-trip times measured; the keys below have its values unless given.
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
    /// Clock granularity G: samples are whole ticks of it, at least one. 0 is a perfect clock.
    pub granularity_s: Seconds,
    /// Gain of the smoothed round-trip time; 1/8 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Probability>,
    /// Gain of its variation; 1/4 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<Probability>,
    /// Variations above the smoothed round-trip time; 4, with `jacobson-karels` 2, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<Whole>,
    /// What is computed is multiplied by this; 2 with `rfc793` and `conservative`, otherwise 1, unless given.
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
    /// Checks what the types cannot; paths are relative to the timer's table.
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

    /// Keys that the algorithm does not look at; relative to the timer's table.
    pub(in crate::protocol) fn idle(&self) -> Vec<Idle> {
        let is_fixed = self.algorithm == RtoAlgorithm::Fixed;
        let is_mean_alone = self.algorithm == RtoAlgorithm::Rfc793;
        let fixed = "a fixed timeout is not computed from round-trip times";
        let mean_alone = "rfc793 looks at the smoothed round-trip time alone";
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

    /// Variations above the smoothed round-trip time.
    pub(super) fn variations(&self) -> f64 {
        let default = match self.algorithm {
            RtoAlgorithm::Rfc793 | RtoAlgorithm::Fixed => 0.0,
            // The paper of 1988; "four" came with its revision.
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

    /// The longest that the timer waits; relative to the timer's table. `measures_repeats` says whether the answer to
    /// something sent again gives a round-trip time (Karn's algorithm takes none).
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

    /// The factor that back-off reaches at most: it doubles until it is no less than its limit.
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
