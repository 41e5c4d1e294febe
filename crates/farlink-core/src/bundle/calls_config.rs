//! The keys of a scenario that describe the calls of a bundle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::bundle::line_config::LineConfig;
use crate::bundle::ppp::{EchoConfig, PppConfig};
use crate::channel::random_duration::RandomDuration;
use crate::units::{Count, PositiveSeconds, Probability, Seconds};

/// How the lines of a bundle are dialled, and when their calls drop. Give either `up` and `redial`, or `schedule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallsConfig {
    /// How long a call lasts until it drops, for lines without an `up` of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<RandomDuration>,
    /// How long dialling takes, until the line is connected or the attempt has failed, for lines without a `redial` of their own.
    /// With `ppp`, until the modem is connected, which by default it is at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redial: Option<RandomDuration>,
    /// PPP's own set-up of a line after its modem is connected, instead of a time at random. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppp: Option<PppConfig>,
    /// Detection of drops by PPP's own echoes. If `detection` is given too, each end notices by what comes first. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo: Option<EchoConfig>,
    /// How long both ends take to notice that a call has dropped. Packets given to the line until then are lost as well. By
    /// default both notice at once, or with `echo` by their echoes; Zaghloul (section 5.2) reports 10 to 30 s. With `schedule`, both
    /// have noticed at the latest when the line is connected again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection: Option<RandomDuration>,
    /// How long the near end takes to notice a drop; the forward direction begins there. Defaults to `detection`; if only
    /// `detection_far` is given, the near end notices at once, or with `echo` by its echoes. A line is dialled again once both ends have noticed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection_near: Option<RandomDuration>,
    /// How long the far end takes to notice a drop. Defaults to `detection`; if only `detection_near` is given, the far end
    /// notices at once, or with `echo` by its echoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection_far: Option<RandomDuration>,
    /// Pause between noticing a drop and dialling again, in seconds.
    pub idle_s: Seconds,
    /// Probability that an attempt to dial fails. With `ppp`, that of the modem's part. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMaximum" = 1))]
    pub failure: Option<Probability>,
    /// Pause between a failed attempt and the next one, in seconds.
    pub retry_s: Seconds,
    /// Number of failed attempts in a row after which a line is blocked. By default a line is never blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Count>,
    /// How long a line stays blocked, in seconds. Defaults to an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_s: Option<PositiveSeconds>,
    /// What happens when the primary line, the first that was connected, drops.
    pub primary: Primary,
    /// Whether all lines are dialled at the start of the run. By default all are connected at the start.
    pub starts_dialling: bool,
    /// Recorded down times, instead of `up` and `redial`: for each line a list of `[start_s, end_s]`, ascending, without overlap.
    /// `farlink bundle fit` writes them from a log. Of the other keys, only `detection` and those of one end go with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Vec<Vec<[Seconds; 2]>>>,
}

/// What happens when the primary line drops. The primary line is dialled first, and the others only once it is connected. The
/// line with the longest expected call is chosen as primary, which is (T + U) / (n + 1) for a line that was connected for a time
/// T and dropped n times, where U is the mean call of all lines so far (3000 s before the first drop). A line that was never
/// called therefore counts as an average one. Calls that the bundle itself ended count as connected time, but not as drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Primary {
    /// There is no primary line: each line is dialled by itself.
    #[default]
    None,
    /// If the primary line drops, the whole bundle drops.
    EndsBundle,
    /// The other lines stay up, but the primary line is not dialled again before they have dropped as well, as in pppd 2.3.4
    /// (Zaghloul, figure 7.7).
    StaysLost,
}

/// Least median time between drops. It keeps the number of events in proportion to the length of the run.
const SHORTEST_CYCLE_S: f64 = 1e-6;

impl CallsConfig {
    /// Checks the rules between keys that the types of single keys cannot express, for the lines of a bundle.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn check(&self, lines: &[LineConfig]) -> Result<(), ConfigError> {
        match (&self.schedule, self.up, self.redial) {
            (Some(schedule), None, None) => self.check_schedule(schedule, lines.len()),
            (Some(_), ..) => Err(ConfigError::new(
                "schedule",
                "calls are recorded and drawn at random",
                "keep schedule, or up and redial",
            )),
            (None, ..) => {
                if self.failure_rate() >= 1.0 {
                    return Err(ConfigError::new("failure", "with 1 no attempt ever connects", "give less than 1"));
                }
                if self.blocked_s.is_some() && self.attempts.is_none() {
                    return Err(ConfigError::new("blocked_s", "no line is ever blocked", "give attempts too"));
                }
                lines.iter().try_for_each(|line| self.check_line(line))
            }
        }
    }

    fn check_line(&self, line: &LineConfig) -> Result<(), ConfigError> {
        let Some(up) = line.up else {
            return Err(ConfigError::new("up", "it is missing", "say how long a call lasts, or give schedule"));
        };
        if line.redial.is_none() && self.ppp.is_none() {
            let remedy = "say how long it takes to connect again, or give ppp or schedule";
            return Err(ConfigError::new("redial", "it is missing", remedy));
        }
        let redial_s = line.redial.map_or(0.0, |redial| redial.median_s());
        let set_up_s = self.ppp.as_ref().map_or(0.0, |ppp| ppp.quickest(line).as_secs_f64());
        if up.median_s() + redial_s + set_up_s + self.idle_s.get() < SHORTEST_CYCLE_S {
            return Err(ConfigError::new("", "more than one drop per microsecond", "give up and redial longer times"));
        }
        if self.failure_rate() > 0.0 && redial_s + self.retry_s.get() < SHORTEST_CYCLE_S {
            let what = "more than one attempt per microsecond";
            return Err(ConfigError::new("", what, "give redial and retry_s longer times"));
        }
        let failed_s = self.ppp.as_ref().map(|ppp| ppp.quickest_failure().as_secs_f64());
        if failed_s.is_some_and(|failed_s| redial_s + failed_s + self.retry_s.get() < SHORTEST_CYCLE_S) {
            let what = "more than one attempt per microsecond";
            return Err(ConfigError::new("", what, "give redial, retry_s or the timers of ppp longer times"));
        }
        self.echo.as_ref().map_or(Ok(()), |echo| echo.check(line)).map_err(|unfit| unfit.within("echo"))
    }

    /// Probability that an attempt to dial fails.
    pub(super) fn failure_rate(&self) -> f64 {
        self.failure.map_or(0.0, Probability::get)
    }

    fn check_schedule(&self, schedule: &[Vec<[Seconds; 2]>], lines: usize) -> Result<(), ConfigError> {
        if schedule.len() != lines {
            let what = format!("down times of {} lines, and the bundle has {lines}", schedule.len());
            return Err(ConfigError::new("schedule", what, "give one list a line, [] for one that never drops"));
        }
        for (line, downs) in schedule.iter().enumerate() {
            let mut last = 0.0;
            for [start, end] in downs {
                if start >= end || start.get() < last {
                    let (start, end) = (start.get(), end.get());
                    let what = format!("[{start}, {end}] of line {line} is empty or out of order");
                    let remedy = "give [start_s, end_s] with start_s < end_s, ascending, without overlap";
                    return Err(ConfigError::new("schedule", what, remedy));
                }
                last = end.get();
            }
        }
        let idle_keys = [
            ("ppp", self.ppp.is_some()),
            ("echo", self.echo.is_some()),
            ("idle_s", self.idle_s.get() > 0.0),
            ("failure", self.failure.is_some()),
            ("retry_s", self.retry_s.get() > 0.0),
            ("attempts", self.attempts.is_some()),
            ("blocked_s", self.blocked_s.is_some()),
            ("primary", self.primary != Primary::None),
            ("starts_dialling", self.starts_dialling),
        ];
        match idle_keys.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => {
                let remedy = format!("remove {key}, or give up and redial instead of schedule");
                Err(ConfigError::new(key, "a recording says when lines are down, whatever the rest", remedy))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    const FIELD: &str = r#"{"up": {"distribution": "exponential", "mean_s": 3000},
        "redial": {"distribution": "constant", "value_s": 53}"#;

    #[test]
    fn contradictions_are_refused() {
        for (json, key) in [
            ("{}", "up"),
            (r#"{"up": {"distribution": "constant", "value_s": 1}}"#, "redial"),
            (&format!(r#"{FIELD}, "schedule": []}}"#), "schedule"),
            (r#"{"schedule": [[]]}"#, "schedule"),
            (r#"{"schedule": [[[2, 1]], []]}"#, "schedule"),
            (r#"{"schedule": [[[0, 2], [1, 3]], []]}"#, "schedule"),
            (r#"{"schedule": [[], []], "primary": "ends-bundle"}"#, "primary"),
            (&format!(r#"{FIELD}, "failure": 1}}"#), "failure"),
            (r#"{"up": {"distribution": "constant", "value_s": 1}, "ppp": {"lcp_restart_s": 1e-7}}"#, ""),
            (&format!(r#"{FIELD}, "echo": {{"interval_s": 0.5}}}}"#), "echo.interval_s"),
            (&format!(r#"{FIELD}, "echo": {{"failures": 1e6}}}}"#), "echo.failures"),
            (r#"{"schedule": [[], []], "ppp": {}}"#, "ppp"),
            (r#"{"schedule": [[], []], "echo": {}}"#, "echo"),
            (&format!(r#"{FIELD}, "blocked_s": 10}}"#), "blocked_s"),
        ] {
            let calls: CallsConfig = serde_json::from_str(json).unwrap();
            let line = LineConfig::new(BitRate::new(2400.0).unwrap(), Seconds::new(0.5).unwrap());
            let line = LineConfig { up: calls.up, redial: calls.redial, ..line };
            assert_eq!(calls.check(&[line.clone(), line]).unwrap_err().path, key, "{json}");
        }
    }
}
