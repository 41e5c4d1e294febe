//! What a scenario says about a retransmission timer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::ScenarioError;
use crate::time::Time;
use crate::units::{Count, Factor, PositiveSeconds, Probability, Seconds, Whole};

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
    /// As Linux has it: the least RTO is one of the variation, which grows fast, and shrinks once a round trip.
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
    pub initial_s: PositiveSeconds,
    /// Least RTO; 1 s (RFC 6298, section 2.4), with `linux` 0.2 s, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_s: Option<Seconds>,
    /// Largest RTO (RFC 6298, section 2.5: at least 60 s).
    pub maximum_s: PositiveSeconds,
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
    /// Largest factor that back-off may reach; 64, with `fixed` 1, unless given (RFC 6298, section 5.5, doubles without
    /// limit but for `maximum_s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Count>,
    /// Forget the round-trip estimate once the back-off factor exceeds this (RFC 6298, section 5, allows it; BSD and ns-2 do
    /// so at 8).
    pub forget_above_backoff: Option<Count>,
}

impl Default for RtoConfig {
    fn default() -> Self {
        let positive = |s| PositiveSeconds::new(s).expect("a constant within its range");
        RtoConfig {
            algorithm: RtoAlgorithm::default(),
            initial_s: positive(1.0),
            minimum_s: None,
            maximum_s: positive(60.0),
            granularity_s: Seconds::new(0.001).expect("a constant within its range"),
            alpha: None,
            beta: None,
            k: None,
            factor: None,
            backoff_limit: None,
            forget_above_backoff: Some(Count::new(8.0).expect("a constant within its range")),
        }
    }
}

impl RtoConfig {
    /// Checks what the types cannot; paths are relative to the timer's table.
    pub(in crate::protocol) fn check(&self) -> Result<(), ScenarioError> {
        let maximum = self.maximum_s.get();
        for (key, value) in [("minimum_s", self.least_s()), ("initial_s", self.initial_s.get())] {
            if value > maximum {
                let what = format!("{value} is above maximum_s = {maximum}");
                return Err(ScenarioError::new(key, what, "give at most maximum_s, or raise maximum_s"));
            }
        }
        if self.algorithm == RtoAlgorithm::Fixed {
            let estimator = [
                ("alpha", self.alpha.is_some()),
                ("beta", self.beta.is_some()),
                ("k", self.k.is_some()),
                ("factor", self.factor.is_some()),
                ("minimum_s", self.minimum_s.is_some()),
            ];
            if let Some((key, _)) = estimator.into_iter().find(|(_, is_given)| *is_given) {
                let what = "a fixed timeout is not computed from round-trip times";
                return Err(ScenarioError::new(key, what, "leave it out, or choose another algorithm"));
            }
        }
        Ok(())
    }

    /// Least RTO, or with `linux` least variation, in seconds.
    pub(super) fn least_s(&self) -> f64 {
        let default = match self.algorithm {
            RtoAlgorithm::Linux => 0.2,
            RtoAlgorithm::Fixed => 0.0,
            _ => 1.0,
        };
        self.minimum_s.map_or(default, Seconds::get)
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

    /// The longest that the timer ever waits, and the key that says so; relative to the timer's table.
    pub(in crate::protocol) fn longest(&self) -> (&'static str, Time) {
        if self.algorithm == RtoAlgorithm::Fixed && self.most_backoff() == 1 {
            ("initial_s", self.initial_s.time())
        } else {
            ("maximum_s", self.maximum_s.time())
        }
    }

    pub(super) fn most_backoff(&self) -> u64 {
        let default = if self.algorithm == RtoAlgorithm::Fixed { 1 } else { 64 };
        self.backoff_limit.map_or(default, Count::whole)
    }
}
