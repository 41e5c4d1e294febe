//! Times when nothing gets through.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::random_duration::RandomDuration;
use super::{Channel, ChannelConfig, ChannelError, ChannelState, Fate, Frame, Prepared, Quiet, Site};
use crate::ConfigError;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{EventRate, PositiveSeconds, Seconds};

/// A link that is down for some of the time: a frame is lost if any part of it is sent while the link is down.
///
/// Give the down times in one of three ways: `schedule`, a list of `[start_s, end_s]`; `period_s` and `down_s`, if the link is
/// down for `down_s` at `offset_s`, `offset_s + period_s` and so on; or `rate_per_s` and `down_s`, if each up time is exponential
/// with mean 1 / `rate_per_s` and each down time is `down_s`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Down times as `[start_s, end_s]`, in seconds, ascending, without overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Vec<[Seconds; 2]>>,
    /// Time from the start of an outage to the start of the next, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<PositiveSeconds>,
    /// When the first periodic outage starts, in seconds (default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_s: Option<Seconds>,
    /// Outages per second of up time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<EventRate>,
    /// How long an outage lasts, in seconds (with `period_s` and `rate_per_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_s: Option<PositiveSeconds>,
}

/// Least time between outages (the mean if they are random). It keeps the number of events in proportion to the length of the
/// run.
const SHORTEST_CYCLE_S: f64 = 1e-6;
const TOO_DENSE: &str = "more than one outage per microsecond";

impl ChannelConfig for Outage {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let plan = match (&self.schedule, self.period_s, self.rate_per_s) {
            (Some(schedule), None, None) if self.down_s.is_none() && self.offset_s.is_none() => {
                Plan::Schedule(check_schedule(schedule)?)
            }
            (None, Some(period), None) => {
                let down = self.down_s.ok_or_else(|| keys("down_s is missing", "say how long each outage lasts"))?;
                if down >= period {
                    let message = format!("down_s = {} leaves no up time in period_s = {}", down.get(), period.get());
                    return Err(keys(message, "make down_s shorter than period_s"));
                }
                if period.get() < SHORTEST_CYCLE_S {
                    return Err(keys(TOO_DENSE, "raise period_s, or use a gilbert-elliott channel"));
                }
                let first = self.offset_s.map_or(Time::ZERO, Seconds::time);
                Plan::Periodic { first, period: period.time(), down: down.time() }
            }
            (None, None, Some(rate)) if self.offset_s.is_none() => {
                let down = self.down_s.ok_or_else(|| keys("down_s is missing", "say how long each outage lasts"))?;
                let mean_up_s = 1.0 / rate.get();
                if mean_up_s + down.get() < SHORTEST_CYCLE_S {
                    return Err(keys(TOO_DENSE, "lower rate_per_s or raise down_s, or use a gilbert-elliott channel"));
                }
                Plan::Random { mean_up_s, down: down.time() }
            }
            _ => {
                return Err(keys(
                    "an outage needs exactly one of: schedule; period_s, down_s and perhaps offset_s; rate_per_s and \
                     down_s",
                    "keep the keys of one of them",
                ));
            }
        };
        Ok(Arc::new(plan))
    }
}

fn keys(message: impl std::fmt::Display, remedy: &str) -> ChannelError {
    ChannelError::Key(ConfigError::new("", message, remedy))
}

fn check_schedule(schedule: &[[Seconds; 2]]) -> Result<Arc<[Down]>, ChannelError> {
    let mut last = Seconds::new(0.0).expect("zero is allowed");
    for [start, end] in schedule {
        if start >= end || *start < last {
            let message = format!("the outage [{}, {}] of schedule is empty or out of order", start.get(), end.get());
            return Err(keys(message, "give [start_s, end_s] with start_s < end_s, ascending, without overlap"));
        }
        last = *end;
    }
    Ok(schedule.iter().map(|[start, end]| Down { start: start.time(), end: end.time() }).collect())
}

#[derive(Debug, Clone)]
pub(super) enum Plan {
    Schedule(Arc<[Down]>),
    Periodic { first: Time, period: Time, down: Time },
    Random { mean_up_s: f64, down: Time },
    Calls { up: RandomDuration, redial: RandomDuration },
}

/// A link that is down at the given times `(start, end)`, which ascend; the last one may never end.
pub(crate) fn scheduled(downs: impl IntoIterator<Item = (Time, Time)>) -> Arc<dyn Prepared> {
    Arc::new(Plan::Schedule(downs.into_iter().map(|(start, end)| Down { start, end }).collect()))
}

/// A link that is down for `down` at `first` and every `period` after.
pub(crate) fn periodic(first: Time, period: Time, down: Time) -> Arc<dyn Prepared> {
    Arc::new(Plan::Periodic { first, period, down })
}

impl Prepared for Plan {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let rng = match self {
            // A stream of its own keeps the outages at the same times, whatever the number of frames and of queries of
            // the state, in a chain of channels as well.
            Plan::Random { .. } | Plan::Calls { .. } => rng.detach(),
            Plan::Schedule(_) | Plan::Periodic { .. } => rng.clone(), // never drawn from
        };
        let mut walk = Walk { plan: self.clone(), rng, outages: 0, next: Down { start: Time::ZERO, end: Time::ZERO } };
        walk.advance(Time::ZERO);
        Box::new(State { frames: walk.clone(), asked: walk })
    }
}

/// One outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Down {
    start: Time,
    end: Time,
}

impl Down {
    const NEVER: Down = Down { start: Time::NEVER, end: Time::NEVER };
}

/// The position of a walk through the outages.
#[derive(Clone)]
struct Walk {
    plan: Plan,
    rng: Rng,
    /// Number of outages of the schedule that were reached.
    outages: usize,
    /// The present outage, or the next one.
    next: Down,
}

impl Walk {
    /// Goes to the first outage that is not over at `now`.
    fn advance(&mut self, now: Time) {
        while self.next.end <= now && self.next.start != Time::NEVER {
            self.next = match &self.plan {
                Plan::Schedule(downs) => {
                    self.outages += 1;
                    downs.get(self.outages - 1).copied().unwrap_or(Down::NEVER)
                }
                Plan::Periodic { first, period, down } => {
                    let begun = if now < *first { 0 } else { now.since(*first).as_ps() / period.as_ps() };
                    let start = *first + period.times(begun);
                    let start = if start + *down <= now { start + *period } else { start };
                    Down { start, end: start + *down }
                }
                Plan::Random { mean_up_s, down } => {
                    let start = self.next.end + Time::from_secs_f64(self.rng.exponential(*mean_up_s));
                    Down { start, end: start + *down }
                }
                Plan::Calls { up, redial } => {
                    let start = self.next.end + up.draw(&mut self.rng);
                    Down { start, end: start + redial.draw(&mut self.rng) }
                }
            };
        }
    }
}

/// Frames may be sent ahead of the time of queries, so each has its own walk through the outages.
struct State {
    frames: Walk,
    asked: Walk,
}

impl Channel for State {
    fn quiet(&self) -> Quiet {
        let next = self.frames.next;
        if next.start == Time::NEVER {
            return Quiet::FOREVER;
        }
        if next.start == Time::ZERO {
            return Quiet::NONE;
        }
        // A frame of no duration (sent whole at one delivery opportunity) at the very start of an outage is lost.
        Quiet { frames: u64::MAX, bits: u64::MAX, until: next.start - Time::from_ps(1) }
    }

    fn carry(&mut self, frame: &Frame, _rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        self.frames.advance(frame.start);
        let end = frame.end.max(frame.start + Time::from_ps(1));
        if end > self.frames.next.start { Fate::Lost } else { Fate::Delivered }
    }

    fn state(&mut self, now: Time) -> ChannelState {
        self.asked.advance(now);
        ChannelState { up: self.asked.next.start > now, ..ChannelState::UP }
    }

    fn next_change(&mut self, now: Time) -> Time {
        self.asked.advance(now);
        let Down { start, end } = self.asked.next;
        if start > now { start } else { end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{ChannelKind, SettingId};
    use crate::trace::MemoryTraces;

    fn prepare(json: &str) -> Result<Arc<dyn Prepared>, ChannelError> {
        serde_json::from_str::<ChannelKind>(json).unwrap().prepare(&Site::anywhere(&MemoryTraces::default()))
    }

    fn fates(json: &str, frames: &[(u64, u64)]) -> Vec<bool> {
        let mut rng = Rng::for_component(1, 0, "outage");
        let mut channel = prepare(json).unwrap().start(&mut rng);
        let lost = |&(start, end): &(u64, u64)| {
            let frame = Frame {
                start: Time::from_millis(start),
                end: Time::from_millis(end),
                bits: 8,
                setting: SettingId::default(),
            };
            channel.carry(&frame, &mut rng, &mut Vec::new()) == Fate::Lost
        };
        frames.iter().map(lost).collect()
    }

    #[test]
    fn a_frame_that_touches_a_down_time_is_lost() {
        let frames = [(0, 1000), (999, 1001), (1200, 1300), (1499, 1501), (1500, 1600), (2500, 3500), (4000, 4001)];
        let expected = [false, true, true, true, false, true, false];
        assert_eq!(fates(r#"{"kind": "outage", "schedule": [[1, 1.5], [3, 3.2]]}"#, &frames), expected);
        let instants = [(999, 999), (1000, 1000), (1499, 1499), (1500, 1500)];
        assert_eq!(fates(r#"{"kind": "outage", "schedule": [[1, 1.5]]}"#, &instants), [false, true, true, false]);
    }

    #[test]
    fn periods_start_at_the_offset() {
        let json = r#"{"kind": "outage", "period_s": 10, "down_s": 1, "offset_s": 3}"#;
        let frames = [(0, 1), (3000, 3001), (3999, 4000), (4000, 4001), (12_999, 13_000), (13_999, 14_001)];
        assert_eq!(fates(json, &frames), [false, true, true, false, false, true]);
        assert_eq!(fates(json, &[(1_000_000_500, 1_000_000_501), (1_000_003_500, 1_000_003_501)]), [false, true]);
    }

    #[test]
    fn random_outages_have_the_configured_share_of_time() {
        // Down 0.2 s after up times of mean 0.8 s: 20 % of the time. Over 100,000 s of frames a second apart.
        let frames: Vec<_> = (0..100_000).map(|i| (i * 1000, i * 1000)).collect();
        let lost = fates(r#"{"kind": "outage", "rate_per_s": 1.25, "down_s": 0.2}"#, &frames);
        let share = lost.iter().filter(|&&lost| lost).count() as f64 / 1e5;
        // Standard error of independent samples 0.0013, and neighbours are nearly so: five of them.
        assert!((share - 0.2).abs() < 0.0065, "down {share}");
    }

    /// Up at the start, then the first instants at which that changes, in milliseconds.
    fn changes(json: &str, count: usize) -> (bool, Vec<f64>) {
        let mut channel = prepare(json).unwrap().start(&mut Rng::for_component(1, 0, "outage"));
        let is_up = channel.state(Time::ZERO).up;
        let (mut now, mut before) = (Time::ZERO, is_up);
        let mut all = Vec::new();
        while all.len() < count {
            now = channel.next_change(now);
            if now == Time::NEVER {
                break;
            }
            if std::mem::replace(&mut before, channel.state(now).up) != before {
                all.push(now.as_secs_f64() * 1e3);
            }
        }
        (is_up, all)
    }

    #[test]
    fn the_state_follows_a_schedule_to_its_end() {
        let json = r#"{"kind": "outage", "schedule": [[1, 1.5], [3, 3.25], [3.25, 4]]}"#;
        assert_eq!(changes(json, 9), (true, vec![1000.0, 1500.0, 3000.0, 4000.0]));
        assert_eq!(changes(r#"{"kind": "outage", "schedule": [[0, 1]]}"#, 9), (false, vec![1000.0]));
        assert_eq!(changes(r#"{"kind": "outage", "schedule": []}"#, 9), (true, vec![]));
    }

    #[test]
    fn the_state_follows_periods_without_end() {
        let json = r#"{"kind": "outage", "period_s": 10, "down_s": 1, "offset_s": 3}"#;
        assert_eq!(changes(json, 4), (true, vec![3000.0, 4000.0, 13_000.0, 14_000.0]));
        let mut channel = prepare(json).unwrap().start(&mut Rng::for_component(1, 0, "outage"));
        let late = Time::from_secs(1_000_003);
        assert!(!channel.state(late).up);
        assert_eq!(channel.next_change(late), Time::from_secs(1_000_004));
    }

    #[test]
    fn random_outages_have_the_configured_mean_duration() {
        let (is_up, changes) = changes(r#"{"kind": "outage", "rate_per_s": 1.25, "down_s": 0.25}"#, 2000);
        assert!(is_up);
        assert!(changes.chunks(2).all(|outage| (outage[1] - outage[0] - 250.0).abs() < 1e-6));
        let ups = changes[1..].chunks_exact(2).map(|up| up[1] - up[0]);
        let mean_ms = ups.sum::<f64>() / 999.0;
        // Exponential: standard error 800 / sqrt(999) = 25; five of them.
        assert!((mean_ms - 800.0).abs() < 127.0, "mean up time {mean_ms} ms");
    }

    #[test]
    fn two_random_outages_of_one_chain_are_independent() {
        let plan = prepare(r#"{"kind": "outage", "rate_per_s": 1, "down_s": 0.1}"#).unwrap();
        let mut rng = Rng::for_component(1, 0, "outage");
        let (mut one, mut other) = (plan.start(&mut rng), plan.start(&mut rng));
        assert_ne!(one.next_change(Time::ZERO), other.next_change(Time::ZERO));
    }

    #[test]
    fn keys_of_different_plans_are_refused() {
        for json in [
            r#"{"kind": "outage"}"#,
            r#"{"kind": "outage", "schedule": [], "down_s": 1}"#,
            r#"{"kind": "outage", "schedule": [], "period_s": 1}"#,
            r#"{"kind": "outage", "period_s": 1}"#,
            r#"{"kind": "outage", "period_s": 1, "down_s": 1}"#,
            r#"{"kind": "outage", "period_s": 1, "down_s": 0.1, "rate_per_s": 1}"#,
            r#"{"kind": "outage", "rate_per_s": 1}"#,
            r#"{"kind": "outage", "rate_per_s": 1, "down_s": 1, "offset_s": 1}"#,
            r#"{"kind": "outage", "rate_per_s": 1e9, "down_s": 1e-9}"#,
            r#"{"kind": "outage", "schedule": [[2, 1]]}"#,
            r#"{"kind": "outage", "schedule": [[1, 2], [1.5, 3]]}"#,
        ] {
            assert!(matches!(prepare(json), Err(ChannelError::Key(_))), "{json}");
        }
    }
}
