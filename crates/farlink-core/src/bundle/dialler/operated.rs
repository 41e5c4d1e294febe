//! A dialler for an operator of real modems: clocks in seconds that may jump and never end, lines with names, events that come late.

use super::config::{DiallerConfig, Role};
use super::events::{BundleEvent, LineEvent};
use super::history::History;
use super::state::{CallState, Order, Reaction, Reason};
use super::{Dialler, Spent};
use crate::ConfigError;
use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// A [`Dialler`] that an operator drives.
///
/// Times are seconds of a clock that is never set, from any origin. A time before the latest one counts as the latest one, and is
/// counted in [`clock_steps_back`](OperatedDialler::clock_steps_back).
#[derive(Clone, Debug)]
pub struct OperatedDialler {
    dialler: Dialler,
    names: Vec<String>,
    roles: Vec<Role>,
    notes: Vec<Notes>,
    /// The first reading of the clock.
    origin_s: Option<f64>,
    moved: OriginShift,
    latest: Time,
    clock_steps_back: u64,
    reaction: Reaction,
}

/// Remarks on a line for people; no decision depends on them.
#[derive(Clone, Debug, Default)]
struct Notes {
    since_s: Option<f64>,
    cause: String,
    number: String,
}

/// Longest cause and number that are kept, in characters.
const MOST_CHARACTERS: usize = 300;

/// Latest time that a clock may show, in s: 317 years.
const LATEST_S: f64 = 1e10;

/// A time that no clock shows.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is no time; give the reading of a monotonic clock, from 0 to 1e10 s")]
pub struct NotATime(pub f64);

/// Orders to an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Record that a line has another state, or is in it for another reason.
    State(LineStatus),
    /// Carry this out. The number of the call, of the line and of the caller come with it.
    Do {
        /// The order.
        order: Order,
        /// Number of the call of the line that it is about; 0 if it is about none.
        call: u64,
        /// The caller's number or name, of a call that came in.
        number: String,
        /// Why, of an alert.
        cause: String,
    },
}

/// State of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStatus {
    /// Index of the line.
    pub line: usize,
    /// Its state.
    pub state: CallState,
    /// Why it is in it.
    pub reason: Reason,
    /// The same in the words of modem, pppd or person; empty if nobody said anything.
    pub cause: String,
    /// Since when, by the caller's clock; none before the first event.
    pub since_s: Option<f64>,
    /// Until when, if time alone ends it.
    pub until_s: Option<f64>,
    /// Count of the attempt that is made, or will be made next, since the line was up or blocked, from 1.
    pub attempt: u64,
    /// Number of the call that is made or lasts, or of the last one; 0 before the first.
    pub call: u64,
    /// The caller's number or name.
    pub number: String,
    /// Whether it is the primary line.
    pub is_primary: bool,
    /// Whether it is tried beside the lines in use, as it is better than one of them.
    pub is_trial: bool,
    /// Whether it dials or answers.
    pub role: Role,
    /// How long it is expected to stay up, in s: a posterior mean.
    pub expected_up_s: f64,
    /// How long it was connected since the operator began, in s, this call included.
    pub connected_s: f64,
    /// How often it has dropped by itself since then.
    pub drops: u64,
    /// Costs of the day.
    pub today: Spent,
    /// Costs of the month.
    pub month: Spent,
    /// The last reading of the signal.
    pub signal: Option<u64>,
    /// Whether its port is there.
    pub has_port: bool,
}

impl OperatedDialler {
    /// A dialler that knows what an earlier one has kept with [`history`](OperatedDialler::history).
    ///
    /// # Errors
    /// If the bundle or the history is refused.
    pub fn new(config: &DiallerConfig, history: Option<&str>, seed: u64) -> Result<Self, ConfigError> {
        let mut dialler = Dialler::for_operator(config, seed);
        let names: Vec<String> = config.lines.iter().map(|line| line.name.clone()).collect();
        if let Some(text) = history {
            dialler.restore(&names, &History::from_json(text).map_err(|error| error.within("history"))?);
        }
        Ok(OperatedDialler {
            dialler,
            notes: vec![Notes::default(); names.len()],
            roles: config.lines.iter().map(|line| line.role).collect(),
            names,
            origin_s: None,
            moved: OriginShift::default(),
            latest: Time::ZERO,
            clock_steps_back: 0,
            reaction: Reaction::default(),
        })
    }

    /// Names of the lines.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The primary line.
    pub fn primary(&self) -> Option<usize> {
        self.dialler.primary
    }

    /// How often the clock went back.
    pub fn clock_steps_back(&self) -> u64 {
        self.clock_steps_back
    }

    /// How many events were ignored, since they were not possible or about a call that is over.
    pub fn ignored(&self) -> u64 {
        self.dialler.ignored
    }

    /// Handles an event of a line, and what is due. An event of an older `call` than the line's is ignored.
    ///
    /// # Errors
    /// If the time is none.
    pub fn handle(
        &mut self,
        now_s: f64,
        line: usize,
        event: LineEvent,
        call: Option<u64>,
        words: &str,
    ) -> Result<Vec<Action>, NotATime> {
        let now = self.tick(now_s)?;
        if call.is_some_and(|call| call != self.dialler.lines[line].call) {
            self.dialler.ignore();
            return Ok(self.go_on(now));
        }
        let words: String = words.chars().take(MOST_CHARACTERS).collect();
        match event {
            LineEvent::Ring => self.notes[line].number = words,
            LineEvent::Signal(_) | LineEvent::ProbeAnswered => {}
            _ => self.notes[line].cause = words,
        }
        let mut reaction = std::mem::take(&mut self.reaction);
        self.dialler.handle(line, event, now, &mut reaction);
        self.reaction = reaction;
        Ok(self.go_on(now))
    }

    /// Handles an event of the bundle, and what is due.
    ///
    /// # Errors
    /// If the time is none.
    pub fn handle_bundle(&mut self, now_s: f64, event: BundleEvent) -> Result<Vec<Action>, NotATime> {
        let now = self.tick(now_s)?;
        let mut reaction = std::mem::take(&mut self.reaction);
        self.dialler.handle_bundle(event, now, &mut reaction);
        self.reaction = reaction;
        Ok(self.go_on(now))
    }

    /// Does what is due. Early or repeated calls do nothing.
    ///
    /// # Errors
    /// If the time is none.
    pub fn advance(&mut self, now_s: f64) -> Result<Vec<Action>, NotATime> {
        let now = self.tick(now_s)?;
        Ok(self.go_on(now))
    }

    /// When something is due next, by the caller's clock: [`advance`](OperatedDialler::advance) does it then.
    pub fn next_wakeup(&self) -> Option<f64> {
        let due = (0..self.names.len()).map(|line| self.dialler.next_timeout(line)).min()?;
        self.reading(due)
    }

    /// State of each line.
    ///
    /// # Errors
    /// If the time is none.
    pub fn status(&mut self, now_s: f64) -> Result<Vec<LineStatus>, NotATime> {
        let now = self.tick(now_s)?;
        Ok((0..self.names.len()).map(|line| self.line_status(line, now)).collect())
    }

    /// Costs of the calls of all lines today, and this month.
    ///
    /// # Errors
    /// If the time is none.
    pub fn bundle_costs(&mut self, now_s: f64) -> Result<(Spent, Spent), NotATime> {
        let now = self.tick(now_s)?;
        let Dialler { spent, calendar, .. } = &self.dialler;
        Ok((spent.day(calendar.day(now)), spent.month(calendar.month(now))))
    }

    /// State to keep for the next start, as JSON.
    pub fn history(&self) -> String {
        serde_json::to_string(&self.dialler.history(&self.names, self.latest)).expect("numbers and names are JSON")
    }

    /// The time of the dialler.
    fn tick(&mut self, now_s: f64) -> Result<Time, NotATime> {
        if !(0.0..=LATEST_S).contains(&now_s) {
            return Err(NotATime(now_s));
        }
        let origin_s = *self.origin_s.get_or_insert(now_s);
        let mut now = Time::from_secs_f64(now_s - origin_s - self.moved.as_secs() as f64);
        // A clock may jump by years, and one move is no longer than a time.
        while let Some(by) = OriginShift::due(now) {
            self.dialler.move_origin(now, by);
            self.latest.move_origin(by);
            self.moved += by;
            now = Time::from_secs_f64(now_s - origin_s - self.moved.as_secs() as f64);
        }
        self.clock_steps_back += u64::from(now < self.latest);
        self.latest = self.latest.max(now);
        Ok(self.latest)
    }

    /// The earliest reading of the caller's clock at which it is this time for the dialler; none if it never is.
    fn reading(&self, at: Time) -> Option<f64> {
        let (origin_s, moved_s) = (self.origin_s?, self.moved.as_secs() as f64);
        let mut reading_s = origin_s + moved_s + at.as_secs_f64();
        // Sums are rounded: a reading that is too early by a rounding would do nothing.
        for _ in 0..8 {
            if Time::from_secs_f64(reading_s - origin_s - moved_s) >= at {
                break;
            }
            reading_s = reading_s.next_up();
        }
        (at < Time::NEVER).then_some(reading_s)
    }

    /// Does what is due, and gives all that is to be done.
    fn go_on(&mut self, now: Time) -> Vec<Action> {
        let mut reaction = std::mem::take(&mut self.reaction);
        // A timeout may make another one due, of a pause of no length, but not for ever.
        for _ in 0..ROUNDS {
            let mut is_done = true;
            for line in 0..self.names.len() {
                if self.dialler.next_timeout(line) <= now {
                    self.dialler.handle_timeout(line, now, &mut reaction);
                    is_done = false;
                }
            }
            if is_done {
                break;
            }
        }
        let mut actions = Vec::with_capacity(reaction.changes.len() + reaction.orders.len());
        for change in reaction.changes.drain(..) {
            let now_s = self.origin_s.unwrap_or(0.0) + self.moved.as_secs() as f64 + change.at.as_secs_f64();
            let notes = &mut self.notes[change.line];
            notes.since_s = Some(now_s);
            let mut status = self.line_status(change.line, now);
            (status.state, status.reason) = (change.state, change.reason);
            actions.push(Action::State(status));
        }
        for order in reaction.orders.drain(..) {
            let line = match order {
                Order::Dial(line) | Order::Answer(line) | Order::StartLink(line) | Order::HangUp(line) => Some(line),
                Order::Alert(alert) => alert.line(),
                Order::TearDown | Order::Primary(_) => None,
            };
            let call = line.map_or(0, |line| self.dialler.lines[line].call);
            let of = |text: fn(&Notes) -> &String| line.map_or(String::new(), |line| text(&self.notes[line]).clone());
            let (number, cause) = (of(|notes| &notes.number), of(|notes| &notes.cause));
            actions.push(Action::Do { order, call, number, cause });
        }
        self.reaction = reaction;
        actions
    }

    fn line_status(&self, index: usize, now: Time) -> LineStatus {
        let (line, notes) = (&self.dialler.lines[index], &self.notes[index]);
        let (day, month) = (self.dialler.calendar.day(now), self.dialler.calendar.month(now));
        LineStatus {
            line: index,
            state: line.state,
            reason: line.reason,
            cause: notes.cause.clone(),
            since_s: notes.since_s,
            until_s: self.reading(line.until),
            attempt: line.failures + 1,
            call: line.call,
            number: notes.number.clone(),
            is_primary: self.dialler.primary == Some(index),
            is_trial: line.is_trial,
            role: self.roles[index],
            expected_up_s: self.dialler.expected_call_s(index, now),
            connected_s: line.all_connected_s + line.time_connected(now).as_secs_f64(),
            drops: line.all_drops + line.drops,
            today: line.spent.day(day),
            month: line.spent.month(month),
            signal: line.signal.map(|(_, level)| level),
            has_port: line.has_port,
        }
    }
}

/// So many timeouts of a line are handled at one time, at most: with a pause of no length, a drop and a dial.
const ROUNDS: usize = 4;
