//! A dialler's configuration for a bundle that is operated: limits and lines of `bundle.toml`.

use serde::{Deserialize, Serialize};

use super::budget::{Budget, BundleBudget};
use crate::ConfigError;
use crate::scenario::{self, read::read};
use crate::units::{Count, LineCount, PositiveSeconds, Probability, Seconds, Whole};

/// A bundle as its dialler knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiallerConfig {
    /// How many of the dialled lines are in use at a time. All by default.
    #[serde(default, rename = "use")]
    pub use_lines: Option<LineCount>,
    /// Which line is the primary one.
    #[serde(default)]
    pub primary: PrimaryRule,
    /// Times and counts.
    #[serde(default)]
    pub limits: Limits,
    /// What the calls of all lines together may cost.
    #[serde(default)]
    pub budget: BundleBudget,
    /// The lines, the first that which is tried first while none has a history.
    pub lines: Vec<LineRules>,
}

/// Which line is the primary one, and what happens when it drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimaryRule {
    /// Lines are dialled without waiting for one of them. The best that is up is the primary one, as with pppd 2.4.9, whose bundle
    /// survives the loss of any line.
    #[default]
    PassesOn,
    /// There is none.
    None,
    /// The primary line is dialled first. If it drops, the whole bundle drops.
    EndsBundle,
    /// The primary line is dialled first. If it drops, it is not dialled again while other lines are up (pppd 2.3.4, section 7.3).
    StaysLost,
}

impl PrimaryRule {
    /// Whether the other lines wait until the primary one is connected (figure 7.6).
    pub(super) const fn goes_first(self) -> bool {
        matches!(self, PrimaryRule::EndsBundle | PrimaryRule::StaysLost)
    }
}

/// Times and counts of the state machine (figure 7.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Pause after a drop, T_d, in seconds.
    pub dropped_s: Seconds,
    /// Pause after the first failed attempt, T_f, in seconds. It doubles with each further one.
    pub failed_s: PositiveSeconds,
    /// The longest that the pause after a failed attempt grows to, in seconds.
    pub longest_failed_s: PositiveSeconds,
    /// Failed attempts in a row until a line is blocked, Max_Attempts.
    pub attempts: Count,
    /// How long it is blocked, in seconds: "approximately for one hour".
    pub blocked_s: PositiveSeconds,
    /// A line that has dropped so often in `flap_window_s` is not dialled before the first of these drops is as long ago.
    pub flaps: Count,
    /// In seconds.
    pub flap_window_s: PositiveSeconds,
    /// How long a better line must be up before it is preferred again, in seconds.
    pub fail_back_s: Seconds,
    /// With less left of a budget no call is begun, unless the whole budget is less: set-up is paid for. In seconds.
    pub least_call_s: Seconds,
    /// How long a modem may take to connect, in seconds.
    pub dial_s: PositiveSeconds,
    /// How long a link may take to come up over a connected modem, in seconds.
    pub link_s: PositiveSeconds,
    /// Probes without an answer, in a row, until a line counts as silent.
    pub probes: Count,
    /// How long a line may be silent until it is given up, in seconds.
    pub silent_s: PositiveSeconds,
    /// By what share pauses are longer or shorter, at random, so that lines that failed together do not dial together. At most 0.5.
    pub jitter: Probability,
    /// How long a reading of the signal holds, in seconds.
    pub signal_stale_s: PositiveSeconds,
    /// After so many seconds, what is remembered of a line's drops counts half: a line that has become worse is found out.
    pub half_life_s: PositiveSeconds,
}

impl Default for Limits {
    fn default() -> Self {
        let positive = |value| PositiveSeconds::new(value).expect("it is in range");
        let seconds = |value| Seconds::new(value).expect("it is in range");
        let count = |value| Count::new(value).expect("it is in range");
        Limits {
            dropped_s: seconds(5.0),
            failed_s: positive(20.0),
            longest_failed_s: positive(600.0),
            attempts: count(5.0),
            blocked_s: positive(3600.0),
            flaps: count(5.0),
            flap_window_s: positive(600.0),
            fail_back_s: seconds(60.0),
            least_call_s: seconds(60.0),
            dial_s: positive(90.0),
            link_s: positive(90.0),
            probes: count(3.0),
            silent_s: positive(30.0),
            jitter: Probability::new(0.2).expect("it is in range"),
            signal_stale_s: positive(60.0),
            half_life_s: positive(14.0 * 86_400.0),
        }
    }
}

/// A line as its dialler knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineRules {
    /// Its name in journal, alerts and commands.
    pub name: String,
    /// Whether it dials or answers.
    #[serde(default)]
    pub role: Role,
    /// Lines of a lower rank are preferred, whatever their history.
    #[serde(default = "no_rank")]
    pub rank: Whole,
    /// Below it the line is not dialled, on the scale of its modem. No limit by default.
    #[serde(default)]
    pub least_signal: Option<Whole>,
    /// What its calls may cost.
    #[serde(default)]
    pub budget: Budget,
}

fn no_rank() -> Whole {
    Whole::new(0.0).expect("it is in range")
}

/// Which end of a call a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It dials.
    #[default]
    Dial,
    /// It answers.
    Answer,
}

impl DiallerConfig {
    /// Reads a bundle from JSON text, and checks what single keys cannot express.
    ///
    /// # Errors
    /// If the text is not JSON, a key is unknown, or a value is not allowed.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: DiallerConfig = read(&scenario::from_json(text)?)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.lines.is_empty() || self.lines.len() > LineCount::MOST as usize {
            let remedy = format!("give 1 to {}", LineCount::MOST);
            return Err(ConfigError::new("lines", format!("{} lines", self.lines.len()), remedy));
        }
        for (at, line) in self.lines.iter().enumerate() {
            if self.lines[..at].iter().any(|other| other.name == line.name) {
                let what = format!("{:?} is the name of two lines", line.name);
                return Err(ConfigError::new(format!("lines[{at}].name"), what, "give each line a name of its own"));
            }
            line.budget.check().map_err(|error| error.within(&format!("lines[{at}].budget")))?;
        }
        if self.use_lines.is_some_and(|wanted| wanted.whole() > self.lines.len() as u64) {
            let remedy = format!("give 1 to {}", self.lines.len());
            return Err(ConfigError::new("use", "more lines than there are", remedy));
        }
        let has_price = |line: &LineRules| line.role == Role::Dial && line.budget.money_per_min.is_some();
        if let Some(key) = self.budget.money_key().filter(|_| !self.lines.iter().any(has_price)) {
            let remedy = "say what a minute of a line costs with its money_per_min, or limit the airtime";
            return Err(ConfigError::new(format!("budget.{key}"), "no line that dials has a price", remedy));
        }
        self.limits.check().map_err(|error| error.within("limits"))
    }
}

impl Limits {
    fn check(&self) -> Result<(), ConfigError> {
        if self.failed_s > self.longest_failed_s {
            let what = format!("{} is less than failed_s", self.longest_failed_s.get());
            return Err(ConfigError::new(
                "longest_failed_s",
                what,
                "the pause grows from failed_s to longest_failed_s",
            ));
        }
        if self.jitter.get() > 0.5 {
            let what = format!("{} is more than 0.5", self.jitter.get());
            return Err(ConfigError::new("jitter", what, "give 0 to 0.5"));
        }
        let shortest = [("failed_s", self.failed_s), ("dial_s", self.dial_s), ("link_s", self.link_s)];
        for (key, value) in shortest.into_iter().chain([("blocked_s", self.blocked_s), ("silent_s", self.silent_s)]) {
            if value.get() < SHORTEST_S {
                return Err(ConfigError::new(key, format!("{} is too short", value.get()), "give 0.01 s or more"));
            }
        }
        Ok(())
    }
}

/// Shortest time limit of an attempt: it bounds how often a line is dialled.
const SHORTEST_S: f64 = 0.01;
