//! The rules that a dialler obeys: those of a simulated bundle, or those of one that is operated.

use super::super::calls_config::{CallsConfig, Primary};
use super::budget::{Budget, BundleBudget};
use super::config::{DiallerConfig, PrimaryRule, Role};
use crate::time::Time;
use crate::units::{Count, PositiveSeconds};

/// The rules of a bundle. A rule that is not wanted is [`Time::NEVER`], `u64::MAX` or `None`.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) rule: PrimaryRule,
    pub(super) use_lines: usize,
    /// T_d.
    pub(super) dropped: Time,
    /// T_f, after the first failed attempt; each further one doubles it, if `grows`, until `longest_failed`.
    pub(super) failed: Time,
    pub(super) grows: bool,
    pub(super) longest_failed: Time,
    /// Max_Attempts.
    pub(super) attempts: u64,
    pub(super) blocked: Time,
    pub(super) flaps: usize,
    pub(super) flap_window: Time,
    pub(super) fail_back: Time,
    pub(super) least_call_s: f64,
    pub(super) dial: Time,
    pub(super) link: Time,
    pub(super) probes: u64,
    pub(super) silent: Time,
    pub(super) jitter: f64,
    pub(super) signal_stale: Time,
    /// None: nothing is forgotten.
    pub(super) half_life_s: Option<f64>,
    /// Of all lines together.
    pub(super) budget: BundleBudget,
    pub(super) shares_budget: bool,
    pub(super) lines: Vec<LinePolicy>,
}

/// The rules of one line.
#[derive(Clone, Debug, Default)]
pub(super) struct LinePolicy {
    pub(super) role: Role,
    pub(super) rank: u64,
    pub(super) least_signal: Option<u64>,
    pub(super) budget: Budget,
}

/// How long a line is not dialled after too many failures, unless the configuration says something else.
const BLOCKED_S: u64 = 3600;

impl Policy {
    /// The rules of simulated calls: figure 7.2 alone.
    pub(super) fn of_calls(config: &CallsConfig, lines: usize) -> Self {
        Policy {
            rule: match config.primary {
                Primary::None => PrimaryRule::None,
                Primary::EndsBundle => PrimaryRule::EndsBundle,
                Primary::StaysLost => PrimaryRule::StaysLost,
            },
            use_lines: lines,
            dropped: config.idle_s.time(),
            failed: config.retry_s.time(),
            grows: false,
            longest_failed: Time::NEVER,
            attempts: config.attempts.map_or(u64::MAX, Count::whole),
            blocked: config.blocked_s.map_or(Time::from_secs(BLOCKED_S), PositiveSeconds::time),
            flaps: usize::MAX,
            flap_window: Time::ZERO,
            fail_back: Time::NEVER,
            least_call_s: 0.0,
            dial: Time::NEVER,
            link: Time::NEVER,
            probes: u64::MAX,
            silent: Time::NEVER,
            jitter: 0.0,
            signal_stale: Time::NEVER,
            half_life_s: None,
            budget: BundleBudget::default(),
            shares_budget: false,
            lines: vec![LinePolicy::default(); lines],
        }
    }

    /// The rules of a bundle that is operated.
    pub(super) fn of_operator(config: &DiallerConfig) -> Self {
        let limits = &config.limits;
        let line = |rules: &super::config::LineRules| LinePolicy {
            role: rules.role,
            rank: rules.rank.whole(),
            least_signal: rules.least_signal.map(|least| least.whole()),
            budget: rules.budget,
        };
        Policy {
            rule: config.primary,
            use_lines: config.use_lines.map_or(usize::MAX, |wanted| wanted.whole() as usize),
            dropped: limits.dropped_s.time(),
            failed: limits.failed_s.time(),
            grows: true,
            longest_failed: limits.longest_failed_s.time(),
            attempts: limits.attempts.whole(),
            blocked: limits.blocked_s.time(),
            flaps: limits.flaps.whole() as usize,
            flap_window: limits.flap_window_s.time(),
            fail_back: limits.fail_back_s.time(),
            least_call_s: limits.least_call_s.get(),
            dial: limits.dial_s.time(),
            link: limits.link_s.time(),
            probes: limits.probes.whole(),
            silent: limits.silent_s.time(),
            jitter: limits.jitter.get(),
            signal_stale: limits.signal_stale_s.time(),
            half_life_s: Some(limits.half_life_s.get()),
            budget: config.budget,
            shares_budget: config.budget.caps().is_limited(),
            lines: config.lines.iter().map(line).collect(),
        }
    }
}
