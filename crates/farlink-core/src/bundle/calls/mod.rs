//! The calls of an emulated bundle: how long dialling and PPP's set-up take, whether they succeed, how long calls last
//! and how late their drops are noticed. Which line is dialled when is decided by the [`Dialler`].

use super::calls_config::CallsConfig;
use super::dialler::{CallState, Change, Dialler, Order, Reaction};
use super::line_config::LineConfig;
use super::ppp::{Echo, Ppp, SetUpOutcome};
use crate::channel::random_duration::RandomDuration;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::Seconds;

/// The calls of all lines in one run. They depend only on the configuration and on the random stream that they are
/// drawn from, not on traffic.
#[derive(Clone, Debug)]
pub struct Calls {
    plan: Plan,
    lines: Vec<Line>,
    dialler: Dialler,
    reaction: Reaction,
    /// Whether the lines are a bundle for PPP, so that only the first negotiates a network protocol.
    is_multilink: bool,
}

#[derive(Clone, Debug)]
enum Plan {
    /// Random events: how drops are noticed, and the probability that dialling fails.
    Random { detection: Option<Detection>, failure: f64 },
    /// The times at which each line is down, and how drops are noticed.
    Recorded { schedule: Vec<Vec<[Time; 2]>>, detection: Option<Detection> },
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

    /// Draws when the near end and the far end notice a drop that happens at `at`; `None` for an end of which nothing is said.
    fn draw(self, at: Time, rng: &mut Rng) -> [Option<Time>; 2] {
        match self {
            Detection::Both(duration) => [Some(at + duration.draw(rng)); 2],
            Detection::Each(durations) => durations.map(|duration| duration.map(|duration| at + duration.draw(rng))),
        }
    }
}

/// The random events of a line.
#[derive(Clone, Debug)]
struct Line {
    up: Option<RandomDuration>,
    redial: Option<RandomDuration>,
    /// When the attempt to dial ends, the call drops, or both ends have noticed the drop; never if none of these is
    /// awaited.
    until: Time,
    rng: Rng,
    /// Number of recorded down times that have begun.
    begun: usize,
    /// When the near end and the far end notice the last drop.
    noticed: [Time; 2],
    /// PPP's set-up, after which the line is connected.
    ppp: Option<Ppp>,
    stage: Stage,
    echo: Option<Echo>,
    /// When LCP opened at each end, and how long before.
    opened: [Time; 2],
    age: [Time; 2],
}

/// The event that a line waits for while it is being dialled.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Its modem.
    Modem,
    /// PPP, up to authentication.
    Link(SetUpOutcome),
    /// The network protocol, until `end`.
    Network { end: Time, succeeds: bool, opened: [Time; 2] },
}

impl Line {
    /// How long the ends take to notice a drop at `at` by their echoes.
    fn echoes_end(&self, at: Time) -> Option<[Time; 2]> {
        let echo = self.echo?;
        Some([0, 1].map(|end: usize| at + echo.noticed_after(at.since(self.opened[end]) + self.age[end])))
    }
}

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
                Plan::Recorded { schedule: schedule.iter().map(times).collect(), detection: Detection::of(self) }
            }
            None => Plan::Random { detection: Detection::of(self), failure: self.failure_rate() },
        };
        let line = |config: &LineConfig| Line {
            up: config.up,
            redial: config.redial,
            until: Time::NEVER,
            rng: rng.detach(),
            begun: 0,
            noticed: [Time::ZERO; 2],
            ppp: self.ppp.as_ref().map(|ppp| Ppp::new(ppp, config)),
            stage: Stage::Modem,
            echo: self.echo.as_ref().map(|echo| Echo::new(echo, echo.terminate(self.ppp.as_ref()), config)),
            opened: [Time::ZERO; 2],
            age: [Time::ZERO; 2],
        };
        let dialler = Dialler::new(self, lines.len());
        let lines = lines.iter().map(line).collect();
        let mut calls = Calls { plan, lines, dialler, reaction: Reaction::default(), is_multilink: true };
        calls.begin(self.starts_dialling);
        calls
    }
}

impl Calls {
    fn begin(&mut self, dials: bool) {
        match &self.plan {
            Plan::Recorded { schedule, .. } => {
                for (line, downs) in self.lines.iter_mut().zip(schedule) {
                    line.until = downs.first().map_or(Time::NEVER, |[start, _]| *start);
                }
            }
            Plan::Random { .. } if dials => {
                self.dialler.begin_bundle(Time::ZERO, &mut self.reaction);
                self.carry_out_orders(Time::ZERO);
                self.reaction.changes.clear();
            }
            Plan::Random { .. } => {
                for line in &mut self.lines {
                    line.until = draw(line.up, &mut line.rng);
                    if let Some(echo) = line.echo {
                        line.age = [(); 2].map(|()| echo.age(line.rng.uniform()));
                    }
                }
            }
        }
    }

    /// The same calls of lines side by side, each with a network protocol of its own.
    pub(super) fn without_multilink(mut self) -> Self {
        self.is_multilink = false;
        self
    }

    /// Whether a line is connected.
    pub fn is_up(&self, line: usize) -> bool {
        self.dialler.is_up(line)
    }

    /// Whether at least one end still believes that a line is connected.
    pub fn seems_up(&self, line: usize) -> bool {
        self.dialler.seems_up(line)
    }

    /// A line's state.
    pub fn state(&self, line: usize) -> CallState {
        self.dialler.state(line)
    }

    /// When the near end and the far end notice the last drop that did not become known at once.
    pub fn noticed(&self, line: usize) -> [Time; 2] {
        self.lines[line].noticed
    }

    /// Number of connected lines.
    pub fn lines_up(&self) -> usize {
        (0..self.lines.len()).filter(|&line| self.is_up(line)).count()
    }

    /// Estimated drops per second of connected time: [`Dialler::drop_rate`].
    pub fn drop_rate(&self, line: usize, now: Time, prior: Time) -> f64 {
        self.dialler.drop_rate(line, now, prior)
    }

    /// When the next change of a line's state happens.
    pub fn next_change(&self) -> Time {
        (0..self.lines.len()).map(|line| self.due(line)).min().unwrap_or(Time::NEVER)
    }

    /// When a line's state changes: by what happens to its call, or because it is to be dialled.
    fn due(&self, line: usize) -> Time {
        self.lines[line].until.min(self.dialler.next_timeout(line))
    }

    /// Makes the next change if it is due at `now`, and appends all changes of that instant to `changes`. Returns
    /// whether there was one.
    pub fn advance(&mut self, now: Time, changes: &mut Vec<Change>) -> bool {
        let due = (0..self.lines.len()).map(|line| (line, self.due(line)));
        let Some((index, at)) = due.min_by_key(|&(_, at)| at).filter(|&(_, at)| at <= now && at < Time::NEVER) else {
            return false;
        };
        match self.plan {
            Plan::Recorded { detection, .. } => self.follow_recording(index, at, detection),
            Plan::Random { detection, failure } => self.go_on(index, at, (detection, failure)),
        }
        self.carry_out_orders(at);
        changes.append(&mut self.reaction.changes);
        true
    }

    /// Handles the next event of a recorded line: its call drops, both ends have noticed that, or it is connected again.
    fn follow_recording(&mut self, index: usize, at: Time, detection: Option<Detection>) {
        let Plan::Recorded { schedule, .. } = &self.plan else { return };
        let (line, downs) = (&mut self.lines[index], &schedule[index]);
        let state = match self.dialler.state(index) {
            CallState::Connected => {
                line.begun += 1;
                let [_, up_again] = downs[line.begun - 1];
                let drawn = detection.map_or([None; 2], |detection| detection.draw(at, &mut line.rng));
                line.noticed = drawn.map(|noticed| noticed.unwrap_or(at).min(up_again));
                let by_both = line.noticed[0].max(line.noticed[1]);
                line.until = if by_both > at { by_both } else { up_again };
                if by_both > at { CallState::Silent } else { CallState::Dropped }
            }
            CallState::Silent => {
                line.until = downs[line.begun - 1][1];
                CallState::Dropped
            }
            _ => {
                line.until = downs.get(line.begun).map_or(Time::NEVER, |[start, _]| *start);
                CallState::Connected
            }
        };
        self.dialler.note(index, state, at, &mut self.reaction);
    }

    /// Handles the next event of a line: of its call, or of its dialling.
    fn go_on(&mut self, index: usize, at: Time, (detection, failure): (Option<Detection>, f64)) {
        if self.dialler.state(index) == CallState::Connecting && self.lines[index].until == at {
            return self.go_on_dialling(index, at, failure);
        }
        let Calls { lines, dialler, reaction, .. } = self;
        let line = &mut lines[index];
        if line.until != at {
            return dialler.handle_timeout(index, at, reaction);
        }
        line.until = Time::NEVER;
        if dialler.is_up(index) && (detection.is_some() || line.echo.is_some()) {
            let by_echo = line.echoes_end(at);
            let drawn = detection.map_or([None; 2], |detection| detection.draw(at, &mut line.rng));
            line.noticed = [0, 1].map(|end: usize| {
                let found = drawn[end].into_iter().chain(by_echo.map(|by_echo| by_echo[end])).min();
                found.unwrap_or(at)
            });
            line.until = line.noticed[0].max(line.noticed[1]);
            return dialler.on_silence(index, at, reaction);
        }
        dialler.on_drop(index, at, reaction);
    }

    /// Handles the end of a stage of dialling.
    fn go_on_dialling(&mut self, index: usize, at: Time, failure: f64) {
        let joins = self.is_multilink && (0..self.lines.len()).any(|line| line != index && self.dialler.seems_up(line));
        let network = self.network_under_way(index).filter(|_| self.is_multilink);
        let Calls { lines, dialler, reaction, .. } = self;
        let line = &mut lines[index];
        line.until = Time::NEVER;
        let stage = std::mem::replace(&mut line.stage, Stage::Modem);
        let opened = match (stage, &line.ppp) {
            (Stage::Modem, _) if line.rng.chance(failure) => None,
            (Stage::Modem, None) => Some([at; 2]),
            (Stage::Modem, Some(ppp)) => {
                let set_up = ppp.set_up(at, &mut line.rng);
                line.stage = Stage::Link(set_up);
                line.until = set_up.established.min(set_up.end);
                return;
            }
            (Stage::Link(set_up), _) if set_up.established == Time::NEVER => None,
            (Stage::Link(set_up), _) if joins => Some(set_up.opened),
            (Stage::Link(set_up), _) => {
                let (end, succeeds) = network.unwrap_or((set_up.end, set_up.has_network));
                line.stage = Stage::Network { end, succeeds, opened: set_up.opened };
                line.until = end;
                return;
            }
            (Stage::Network { succeeds, opened, .. }, _) => succeeds.then_some(opened),
        };
        let Some(opened) = opened else { return dialler.on_failure(index, at, reaction) };
        (line.opened, line.age) = (opened, [Time::ZERO; 2]);
        line.until = at + draw(line.up, &mut line.rng);
        dialler.on_connected(index, at, reaction);
    }

    /// The end of a negotiation of the network protocol over another line, and whether it succeeds.
    fn network_under_way(&self, index: usize) -> Option<(Time, bool)> {
        let of = |(other, line): (usize, &Line)| match line.stage {
            Stage::Network { end, succeeds, .. } if other != index => Some((end, succeeds)),
            _ => None,
        };
        self.lines.iter().enumerate().find_map(of)
    }

    /// Carries out the dialler's orders.
    fn carry_out_orders(&mut self, at: Time) {
        for order in self.reaction.orders.drain(..) {
            match order {
                Order::Dial(index) => {
                    let line = &mut self.lines[index];
                    line.stage = Stage::Modem;
                    line.until = at + line.redial.map_or(Time::ZERO, |redial| redial.draw(&mut line.rng));
                }
                Order::HangUp(index) => {
                    self.lines[index].until = Time::NEVER;
                    self.lines[index].stage = Stage::Modem;
                }
                // Orders for people and modems, which simulated calls do not get.
                Order::Answer(_) | Order::StartLink(_) | Order::TearDown | Order::Primary(_) | Order::Alert(_) => {}
            }
        }
    }
}

/// Draws a duration; without a distribution it never ends.
fn draw(duration: Option<RandomDuration>, rng: &mut Rng) -> Time {
    duration.map_or(Time::NEVER, |duration| duration.draw(rng))
}

#[cfg(test)]
mod tests;
