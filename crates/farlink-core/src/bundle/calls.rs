//! The calls of a bundle's lines: when each line is dialled, connected and dropped (Zaghloul, sections 7.2 and 7.3, figures 7.2,
//! 7.6 and 7.7).

mod config;

use super::line_config::LineConfig;
use crate::channel::random_duration::RandomDuration;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{Count, PositiveSeconds, Seconds};

pub use config::{CallsConfig, Primary};

/// State of a line (Zaghloul, figure 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// The line is not dialled yet, because no primary line is connected.
    Waiting,
    /// The line is being dialled.
    Connecting,
    /// The line carries packets.
    Connected,
    /// The call has dropped, but not both ends have noticed yet.
    Silent,
    /// The call has dropped, and both ends know it.
    Dropped,
    /// The last attempt to dial failed.
    Failed,
    /// Too many attempts failed in a row; the line is not dialled for a while.
    Blocked,
}

/// A change of a line's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it happens.
    pub at: Time,
    /// Index of the line.
    pub line: usize,
    /// The new state.
    pub state: CallState,
}

/// The calls of all lines in one run. They depend only on the configuration and on the random stream that they are drawn from,
/// not on traffic.
#[derive(Clone, Debug)]
pub struct Calls {
    plan: Plan,
    lines: Vec<Line>,
    primary: Option<usize>,
}

#[derive(Clone, Debug)]
enum Plan {
    Random(Box<Random>),
    Recorded(Vec<Vec<[Time; 2]>>),
}

#[derive(Clone, Debug)]
struct Random {
    detection: Option<Detection>,
    idle: Time,
    failure: f64,
    retry: Time,
    attempts: u64,
    blocked: Time,
    primary: Primary,
}

/// How long the ends take to notice a drop.
#[derive(Clone, Copy, Debug)]
enum Detection {
    /// Both ends notice at the same time.
    Both(RandomDuration),
    /// The near end and the far end notice at different times.
    Each([Option<RandomDuration>; 2]),
}

impl Detection {
    fn of(config: &CallsConfig) -> Option<Self> {
        let CallsConfig { detection, detection_near, detection_far, .. } = config;
        match (detection, detection_near, detection_far) {
            (both, None, None) => both.map(Detection::Both),
            (both, near, far) => Some(Detection::Each([near.or(*both), far.or(*both)])),
        }
    }

    /// Draws when the near end and the far end notice a drop that happens at `at`.
    fn draw(self, at: Time, rng: &mut Rng) -> [Time; 2] {
        match self {
            Detection::Both(duration) => [at + duration.draw(rng); 2],
            Detection::Each(durations) => {
                durations.map(|duration| at + duration.map_or(Time::ZERO, |duration| duration.draw(rng)))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Line {
    up: Option<RandomDuration>,
    redial: Option<RandomDuration>,
    state: CallState,
    /// When the line leaves its present state by itself.
    until: Time,
    failures: u64,
    since: Time,
    connected: Time,
    /// Calls that dropped by themselves; those that the bundle ended do not count.
    drops: u64,
    rng: Rng,
    /// Number of recorded down times that have begun.
    begun: usize,
    /// When the near end and the far end notice the last drop.
    noticed: [Time; 2],
}

const BLOCKED_S: u64 = 3600;

/// Assumed mean length of a call before the first drop: one drop per line in 50 minutes (Zaghloul, section 5.3).
const FIRST_GUESS_S: f64 = 3000.0;

impl CallsConfig {
    /// Begins a run. The same random stream gives the same calls.
    ///
    /// # Panics
    /// If the configuration does not pass [`check`](CallsConfig::check).
    pub fn start(&self, lines: &[LineConfig], rng: &Rng) -> Calls {
        let mut rng = rng.clone();
        let plan = match &self.schedule {
            Some(schedule) => {
                let times = |downs: &Vec<[Seconds; 2]>| downs.iter().map(|down| down.map(Seconds::time)).collect();
                Plan::Recorded(schedule.iter().map(times).collect())
            }
            None => Plan::Random(Box::new(Random {
                detection: Detection::of(self),
                idle: self.idle_s.time(),
                failure: self.failure_rate(),
                retry: self.retry_s.time(),
                attempts: self.attempts.map_or(u64::MAX, Count::whole),
                blocked: self.blocked_s.map_or(Time::from_secs(BLOCKED_S), PositiveSeconds::time),
                primary: self.primary,
            })),
        };
        let line = |config: &LineConfig| Line {
            up: config.up,
            redial: config.redial,
            state: CallState::Connected,
            until: Time::NEVER,
            failures: 0,
            since: Time::ZERO,
            connected: Time::ZERO,
            drops: 0,
            rng: rng.detach(),
            begun: 0,
            noticed: [Time::ZERO; 2],
        };
        let lines = lines.iter().map(line).collect();
        let mut calls = Calls { plan, lines, primary: None };
        calls.begin(self.starts_dialling);
        calls
    }
}

impl Calls {
    fn begin(&mut self, dials: bool) {
        match &self.plan {
            Plan::Recorded(schedule) => {
                for (line, downs) in self.lines.iter_mut().zip(schedule) {
                    line.until = downs.first().map_or(Time::NEVER, |[start, _]| *start);
                }
            }
            Plan::Random(random) if dials => {
                let random = random.clone();
                self.begin_bundle(&random, Time::ZERO, &mut Vec::new());
            }
            Plan::Random(random) => {
                for line in &mut self.lines {
                    line.until = draw(line.up, &mut line.rng);
                }
                self.primary = (random.primary != Primary::None).then_some(0);
            }
        }
    }

    /// Whether a line is connected.
    pub fn is_up(&self, line: usize) -> bool {
        self.lines[line].state == CallState::Connected
    }

    /// Whether at least one end still believes that a line is connected.
    pub fn seems_up(&self, line: usize) -> bool {
        matches!(self.lines[line].state, CallState::Connected | CallState::Silent)
    }

    /// A line's state.
    pub fn state(&self, line: usize) -> CallState {
        self.lines[line].state
    }

    /// When the near end and the far end notice the last drop that did not become known at once.
    pub fn noticed(&self, line: usize) -> [Time; 2] {
        self.lines[line].noticed
    }

    /// Number of connected lines.
    pub fn lines_up(&self) -> usize {
        self.lines.iter().filter(|line| line.state == CallState::Connected).count()
    }

    /// Estimated drops per second of connected time. The estimate starts from one drop in the time `prior`, to which the line's
    /// own drops and connected time are added.
    pub fn drop_rate(&self, line: usize, now: Time, prior: Time) -> f64 {
        let line = &self.lines[line];
        (line.drops + 1) as f64 / (line.time_connected(now) + prior).as_secs_f64()
    }

    /// When the next change of a line's state happens.
    pub fn next_change(&self) -> Time {
        self.lines.iter().map(|line| line.until).min().unwrap_or(Time::NEVER)
    }

    /// Makes the next change if it is due at `now`, and appends all changes of that instant to `changes`. Returns whether there
    /// was one.
    pub fn advance(&mut self, now: Time, changes: &mut Vec<Change>) -> bool {
        let Some((index, at)) = self.lines.iter().map(|line| line.until).enumerate().min_by_key(|&(_, until)| until)
        else {
            return false;
        };
        if at > now || at == Time::NEVER {
            return false;
        }
        match &self.plan {
            Plan::Recorded(schedule) => {
                let line = &mut self.lines[index];
                let (state, until) = if line.state == CallState::Connected {
                    line.begun += 1;
                    (CallState::Dropped, schedule[index][line.begun - 1][1])
                } else {
                    let next = schedule[index].get(line.begun);
                    (CallState::Connected, next.map_or(Time::NEVER, |[start, _]| *start))
                };
                line.enter(state, at, until);
                changes.push(Change { at, line: index, state });
            }
            Plan::Random(random) => {
                let random = random.clone();
                self.go_on(&random, index, at, changes);
            }
        }
        true
    }

    fn enter(&mut self, index: usize, state: CallState, at: Time, until: Time, changes: &mut Vec<Change>) {
        self.lines[index].enter(state, at, until);
        changes.push(Change { at, line: index, state });
    }

    /// Moves a line on whose time in its state is over.
    fn go_on(&mut self, random: &Random, index: usize, at: Time, changes: &mut Vec<Change>) {
        let line = &mut self.lines[index];
        match line.state {
            CallState::Connecting if line.rng.chance(random.failure) => {
                line.failures += 1;
                let is_blocked = line.failures >= random.attempts;
                line.failures = if is_blocked { 0 } else { line.failures };
                let (state, pause) =
                    if is_blocked { (CallState::Blocked, random.blocked) } else { (CallState::Failed, random.retry) };
                self.enter(index, state, at, at + pause, changes);
                if is_blocked && random.primary != Primary::None && self.primary.is_none() {
                    self.dial_primary(at, changes); // another line becomes the candidate for primary
                }
            }
            CallState::Connecting => {
                line.failures = 0;
                let until = at + draw(line.up, &mut line.rng);
                self.enter(index, CallState::Connected, at, until, changes);
                if random.primary != Primary::None && self.primary.is_none() {
                    self.primary = Some(index);
                    for other in 0..self.lines.len() {
                        if self.lines[other].state == CallState::Waiting {
                            self.dial(other, at, changes);
                        }
                    }
                }
            }
            CallState::Connected => match random.detection {
                Some(detection) => {
                    line.noticed = detection.draw(at, &mut line.rng);
                    let until = line.noticed[0].max(line.noticed[1]);
                    self.enter(index, CallState::Silent, at, until, changes);
                }
                None => self.notice_drop(random, index, at, changes),
            },
            CallState::Silent => self.notice_drop(random, index, at, changes),
            CallState::Blocked if random.primary != Primary::None && self.primary.is_none() => {
                // The line may be chosen as primary again; while another one is being dialled, it waits.
                self.enter(index, CallState::Waiting, at, Time::NEVER, changes);
                if !self.is_primary_dialled() {
                    self.dial_primary(at, changes);
                }
            }
            CallState::Dropped | CallState::Failed | CallState::Blocked => self.dial(index, at, changes),
            CallState::Waiting => {}
        }
    }

    /// Handles a drop once both ends know of it.
    fn notice_drop(&mut self, random: &Random, index: usize, at: Time, changes: &mut Vec<Change>) {
        self.drop_call(random, index, at, changes);
        match random.primary {
            Primary::EndsBundle if self.primary == Some(index) => {
                for other in 0..self.lines.len() {
                    if self.seems_up(other) {
                        self.lines[other].hang_up(at);
                        self.drop_call(random, other, at, changes);
                    }
                }
                self.begin_bundle(random, at, changes);
            }
            Primary::StaysLost if !(0..self.lines.len()).any(|line| self.seems_up(line)) => {
                self.begin_bundle(random, at, changes);
            }
            Primary::StaysLost if self.primary == Some(index) => {
                self.enter(index, CallState::Waiting, at, Time::NEVER, changes);
            }
            _ => {}
        }
    }

    fn drop_call(&mut self, random: &Random, index: usize, at: Time, changes: &mut Vec<Change>) {
        self.enter(index, CallState::Dropped, at, at + random.idle, changes);
    }

    fn dial(&mut self, index: usize, at: Time, changes: &mut Vec<Change>) {
        let line = &mut self.lines[index];
        let takes = draw(line.redial, &mut line.rng);
        self.enter(index, CallState::Connecting, at, at + takes, changes);
    }

    /// Begins to dial when no line is connected. With a primary line, only that one is dialled, after the pause; without, all
    /// are.
    fn begin_bundle(&mut self, random: &Random, at: Time, changes: &mut Vec<Change>) {
        self.primary = None;
        if random.primary == Primary::None {
            for index in 0..self.lines.len() {
                self.dial(index, at, changes);
            }
            return;
        }
        for index in 0..self.lines.len() {
            if self.lines[index].state != CallState::Blocked {
                self.enter(index, CallState::Waiting, at, Time::NEVER, changes);
            }
        }
        let begin = if at > Time::ZERO { at + random.idle } else { at };
        self.dial_primary_from(at, begin, changes);
    }

    /// Mean length of the calls of all lines so far, in s, counting one assumed call of [`FIRST_GUESS_S`].
    fn usual_call_s(&self) -> f64 {
        let connected_s: f64 = self.lines.iter().map(|line| line.connected.as_secs_f64()).sum();
        let drops: u64 = self.lines.iter().map(|line| line.drops).sum();
        (connected_s + FIRST_GUESS_S) / (drops + 1) as f64
    }

    fn is_primary_dialled(&self) -> bool {
        let is_tried = |line: &Line| !matches!(line.state, CallState::Waiting | CallState::Blocked);
        self.lines.iter().any(is_tried)
    }

    fn dial_primary(&mut self, at: Time, changes: &mut Vec<Change>) {
        self.dial_primary_from(at, at, changes);
    }

    /// Dials, from `begin` on, the waiting line with the longest expected call.
    fn dial_primary_from(&mut self, at: Time, begin: Time, changes: &mut Vec<Change>) {
        let usual_s = self.usual_call_s();
        let waiting = (0..self.lines.len()).filter(|&index| self.lines[index].state == CallState::Waiting);
        let expected_s = |index: usize| self.lines[index].expected_call_s(usual_s);
        let best = waiting.min_by(|&a, &b| expected_s(b).total_cmp(&expected_s(a)));
        match best {
            Some(index) if begin > at => self.enter(index, CallState::Dropped, at, begin, changes),
            Some(index) => self.dial(index, at, changes),
            None => {} // all are blocked: the first whose block ends is dialled
        }
    }
}

/// Draws a duration; without a distribution it never ends.
fn draw(duration: Option<RandomDuration>, rng: &mut Rng) -> Time {
    duration.map_or(Time::NEVER, |duration| duration.draw(rng))
}

impl Line {
    fn enter(&mut self, state: CallState, at: Time, until: Time) {
        if self.state == CallState::Connected && state != CallState::Connected {
            self.connected += at.since(self.since);
            self.drops += 1;
        }
        self.state = state;
        self.since = at;
        self.until = until;
    }

    fn time_connected(&self, now: Time) -> Time {
        let in_call = if self.state == CallState::Connected { now.since(self.since) } else { Time::ZERO };
        self.connected + in_call
    }

    /// The bundle ends the line's call. Its length counts as connected time but not as a drop, because the call would have lasted
    /// longer.
    fn hang_up(&mut self, at: Time) {
        if self.state == CallState::Connected {
            self.connected += at.since(self.since);
            self.state = CallState::Dropped;
        }
    }

    /// Expected length of the line's next call, in s, if calls of all lines last `usual_s` on average. Calls are assumed to drop
    /// at a constant rate, whose prior is a gamma distribution of shape 1 (worth one call of length `usual_s`). After n drops in
    /// a connected time T, the posterior mean of the rate is (n + 1) / (T + `usual_s`); this is its reciprocal. A line that was
    /// never called therefore counts as an average one.
    fn expected_call_s(&self, usual_s: f64) -> f64 {
        (self.connected.as_secs_f64() + usual_s) / (self.drops + 1) as f64
    }
}

#[cfg(test)]
mod tests;
