//! The configuration of the length of frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::protocol::Idle;
use crate::units::{Count, Factor, PositiveSeconds, Seconds};

/// Largest number of measurements that are under way to the sender at once.
const MOST_REPORTS: f64 = 1e6;

/// Source of the bit error rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// Estimated from acknowledged and lost frames, and therefore a round trip old. A lost acknowledgement counts as a lost frame
    /// if the frame is sent again because of it.
    #[default]
    Acknowledged,
    /// The true short-term bit error rate of the sender's own link at the time of sending, which is the most that a real sender
    /// could know. If the link has no bit error rate (only `coding` and the channels `fading` and `ber-trace` have one), frames
    /// keep `segment_bytes`.
    Genie,
    /// The bit error rate that the receiver computes from its measured power (Epple, section 3.3.3), sampled each
    /// `measurement_interval_s` and known to the sender `measurement_delay_s` later. The link must have a bit error rate, as for
    /// `genie`.
    Measured,
}

/// How the length depends on the bit error rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LengthRule {
    /// The length with the largest goodput for independent errors at the estimated rate: equation (11) of Epple.
    Optimal,
    /// The length l of equation (11), changed by a power law around the header's length l': `scale` x l' x (l / l')^`exponent`.
    #[default]
    Power,
    /// `min_bytes` until `memory_s` has passed without a loss, then `segment_bytes`.
    TwoLengths,
}

/// The data in new frames follows the bit error rate, between `min_bytes` and `segment_bytes`; the header in the rule is
/// `header_bytes` and timestamps. With selective repeat, a retransmitted frame keeps its length; while it is too long for the
/// present error rate, other frames are sent before it. Without selective repeat, it is divided into shorter frames, unless
/// `max_transmissions` is given.
///
/// A retransmission timer must allow for the longest frame, or it expires on long frames that follow short ones. B. Epple,
/// "Performance optimization of free-space optical communication protocols based on results from FSO demonstrations",
/// section 3.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveLength {
    /// Source of the bit error rate.
    pub estimate: Estimate,
    /// How the length depends on it.
    pub rule: LengthRule,
    /// Data of the shortest full frame; `segment_bytes` is that of the longest.
    pub min_bytes: Count,
    /// Frames count less with age: after this time, 1/e of their initial weight.
    pub memory_s: PositiveSeconds,
    /// Number of losses assumed at the start, at the bit error rate for which `segment_bytes` is best, because no loss in memory
    /// does not mean a bit error rate of zero.
    pub prior_losses: Factor,
    /// Delay of a measurement until the sender uses it, in seconds; at least the one-way delay of the way back, since reports
    /// travel over it. Reports are not packets of the simulation, and none is lost.
    pub measurement_delay_s: Seconds,
    /// Time between two measurements, in seconds.
    pub measurement_interval_s: PositiveSeconds,
    /// Factor of the rule "power". The defaults of it and of the exponent were found by a search over synthetic fading.
    pub scale: Factor,
    /// Exponent of the rule "power"; if it and the scale are 1, this is the rule "optimal".
    pub exponent: Factor,
}

impl Default for AdaptiveLength {
    fn default() -> Self {
        let factor = |value| Factor::new(value).expect("a constant within its range");
        AdaptiveLength {
            estimate: Estimate::default(),
            rule: LengthRule::default(),
            min_bytes: Count::new(100.0).expect("a constant within its range"),
            memory_s: PositiveSeconds::new(0.001).expect("a constant within its range"),
            prior_losses: factor(0.001),
            measurement_delay_s: Seconds::new(0.0).expect("a constant within its range"),
            measurement_interval_s: PositiveSeconds::new(0.001).expect("a constant within its range"),
            scale: factor(4.47),
            exponent: factor(0.5),
        }
    }
}

impl AdaptiveLength {
    /// Checks it against the longest frame; paths are relative to its table.
    pub(in crate::protocol) fn check(&self, segment_bytes: Count) -> Result<(), ConfigError> {
        if self.min_bytes > segment_bytes {
            let what = format!(
                "{} is above segment_bytes, {}, which is the longest frame's data",
                self.min_bytes.get(),
                segment_bytes.get()
            );
            return Err(ConfigError::new("min_bytes", what, "give at most segment_bytes, or longer segments"));
        }
        if self.rule == LengthRule::TwoLengths && self.is_told() {
            let what = "\"two-lengths\" waits for losses, and a known bit error rate is not one";
            let remedy = "choose rule = \"optimal\" or \"power\", or estimate = \"acknowledged\"";
            return Err(ConfigError::new("rule", what, remedy));
        }
        self.check_measurement()
    }

    /// Checks how many measurements are under way; paths are relative to its table.
    pub(in crate::protocol) fn check_measurement(&self) -> Result<(), ConfigError> {
        let under_way = self.measurement_delay_s.get() / self.measurement_interval_s.get();
        if under_way > MOST_REPORTS {
            let what = format!("{under_way:.0} measurements are under way at once; allowed are {MOST_REPORTS}");
            return Err(ConfigError::new("measurement_interval_s", what, "measure less often"));
        }
        Ok(())
    }

    /// Whether the bit error rate is known, not estimated.
    fn is_told(&self) -> bool {
        self.estimate != Estimate::Acknowledged
    }

    /// Keys of its table that have no effect.
    pub(in crate::protocol) fn idle(&self) -> Vec<Idle> {
        let is_told = self.is_told();
        let has_two = self.rule == LengthRule::TwoLengths;
        let told = "the bit error rate is known, not estimated";
        let is_measured = self.estimate == Estimate::Measured;
        let (unmeasured, measured) = ("nothing is measured", "estimate = \"measured\"");
        let (prior, prior_needs) = if has_two {
            ("\"two-lengths\" asks for no bit error rate", "rule = \"optimal\" or \"power\"")
        } else {
            (told, "estimate = \"acknowledged\"")
        };
        let unbent = "it belongs to the rule \"power\"";
        let bent = "rule = \"power\"";
        let power = self.rule == LengthRule::Power;
        [
            Idle::when(is_told, "memory_s", told, "estimate = \"acknowledged\""),
            Idle::when(is_told || has_two, "prior_losses", prior, prior_needs),
            Idle::when(!is_measured, "measurement_delay_s", unmeasured, measured),
            Idle::when(!is_measured, "measurement_interval_s", unmeasured, measured),
            Idle::when(!power, "scale", unbent, bent),
            Idle::when(!power, "exponent", unbent, bent),
        ]
        .into_iter()
        .flatten()
        .map(|idle| idle.within("adaptive_length"))
        .collect()
    }
}
