//! Decides when each line of a bundle is dialled: events in, orders out, no random draw (Zaghloul, sections 7.2 and
//! 7.3, figures 7.2, 7.6 and 7.7).
//!
//! A driver reports events of calls to a [`Dialler`] and carries out its [`Order`]s. It is an emulated network that
//! draws the events ([`Calls`](super::Calls)), or an operator of real modems.

use super::calls_config::{CallsConfig, Primary};
use crate::time::Time;
use crate::units::{Count, PositiveSeconds};

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

/// An order for the driver, to be carried out at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Dial this line.
    Dial(usize),
    /// End the call of this line, or the attempt to dial it.
    HangUp(usize),
}

/// The answer of a [`Dialler`] to an event: changes of state and orders, each in order.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    /// Changes of lines' states, for observers.
    pub changes: Vec<Change>,
    /// Orders for the driver.
    pub orders: Vec<Order>,
}

/// Decides when lines are dialled.
///
/// Calls of [`handle_timeout`](Dialler::handle_timeout) are due at [`next_timeout`](Dialler::next_timeout). Every other
/// event names the line and the time; times do not decrease.
#[derive(Clone, Debug)]
pub struct Dialler {
    idle: Time,
    retry: Time,
    attempts: u64,
    blocked: Time,
    rule: Primary,
    pub(super) lines: Vec<Line>,
    pub(super) primary: Option<usize>,
}

/// The dialler's state of a line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) state: CallState,
    /// When the dialler next acts on the line; never while a call is made or lasts.
    until: Time,
    failures: u64,
    since: Time,
    pub(super) connected: Time,
    /// Calls that dropped by themselves; those that the bundle ended do not count.
    pub(super) drops: u64,
}

/// How long a line is not dialled after too many failures, unless the configuration says something else.
const BLOCKED_S: u64 = 3600;

/// Assumed mean length of a call before the first drop: one drop per line in 50 minutes (Zaghloul, section 5.3).
const FIRST_GUESS_S: f64 = 3000.0;

impl Dialler {
    /// A dialler for this many lines, all connected. The first is the primary line, if the rule has one.
    pub fn new(config: &CallsConfig, lines: usize) -> Self {
        let line = Line {
            state: CallState::Connected,
            until: Time::NEVER,
            failures: 0,
            since: Time::ZERO,
            connected: Time::ZERO,
            drops: 0,
        };
        Dialler {
            idle: config.idle_s.time(),
            retry: config.retry_s.time(),
            attempts: config.attempts.map_or(u64::MAX, Count::whole),
            blocked: config.blocked_s.map_or(Time::from_secs(BLOCKED_S), PositiveSeconds::time),
            rule: config.primary,
            lines: vec![line; lines],
            primary: (config.primary != Primary::None).then_some(0),
        }
    }

    /// A line's state.
    pub fn state(&self, line: usize) -> CallState {
        self.lines[line].state
    }

    /// Whether a line is connected.
    pub fn is_up(&self, line: usize) -> bool {
        self.lines[line].state == CallState::Connected
    }

    /// Whether at least one end still believes that a line is connected.
    pub fn seems_up(&self, line: usize) -> bool {
        matches!(self.lines[line].state, CallState::Connected | CallState::Silent)
    }

    /// Estimated drops per second of connected time. The estimate starts from one drop in the time `prior`, to which
    /// the line's own drops and connected time are added.
    pub fn drop_rate(&self, line: usize, now: Time, prior: Time) -> f64 {
        let line = &self.lines[line];
        (line.drops + 1) as f64 / (line.time_connected(now) + prior).as_secs_f64()
    }

    /// When the dialler next acts on a line by itself.
    pub fn next_timeout(&self, line: usize) -> Time {
        self.lines[line].until
    }

    /// Handles the timeout of a line.
    pub fn handle_timeout(&mut self, line: usize, at: Time, out: &mut Reaction) {
        match self.lines[line].state {
            CallState::Blocked if self.rule != Primary::None && self.primary.is_none() => {
                // The line may be chosen as primary again; while another one is being dialled, it waits.
                self.enter(line, CallState::Waiting, at, Time::NEVER, out);
                if !self.is_primary_dialled() {
                    self.dial_primary(at, out);
                }
            }
            CallState::Dropped | CallState::Failed | CallState::Blocked => self.dial(line, at, out),
            CallState::Waiting | CallState::Connecting | CallState::Connected | CallState::Silent => {}
        }
    }

    /// An attempt to dial a line has failed.
    pub fn on_failure(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        line.failures += 1;
        let is_blocked = line.failures >= self.attempts;
        line.failures = if is_blocked { 0 } else { line.failures };
        let (state, pause) =
            if is_blocked { (CallState::Blocked, self.blocked) } else { (CallState::Failed, self.retry) };
        self.enter(index, state, at, at + pause, out);
        if is_blocked && self.rule != Primary::None && self.primary.is_none() {
            self.dial_primary(at, out); // another line becomes the candidate for primary
        }
    }

    /// A line is connected.
    pub fn on_connected(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.lines[index].failures = 0;
        self.enter(index, CallState::Connected, at, Time::NEVER, out);
        if self.rule != Primary::None && self.primary.is_none() {
            self.primary = Some(index);
            for other in 0..self.lines.len() {
                if self.lines[other].state == CallState::Waiting {
                    self.dial(other, at, out);
                }
            }
        }
    }

    /// The call of a line has dropped, but not both ends have noticed. The dialler does not act yet.
    pub fn on_silence(&mut self, line: usize, at: Time, out: &mut Reaction) {
        self.enter(line, CallState::Silent, at, Time::NEVER, out);
    }

    /// The call of a line has dropped, and both ends know it.
    pub fn on_drop(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.drop_call(index, at, out);
        match self.rule {
            Primary::EndsBundle if self.primary == Some(index) => {
                for other in 0..self.lines.len() {
                    if self.seems_up(other) {
                        self.lines[other].hang_up(at);
                        out.orders.push(Order::HangUp(other));
                        self.drop_call(other, at, out);
                    }
                }
                self.begin_bundle(at, out);
            }
            Primary::StaysLost if !(0..self.lines.len()).any(|line| self.seems_up(line)) => {
                self.begin_bundle(at, out);
            }
            Primary::StaysLost if self.primary == Some(index) => {
                self.enter(index, CallState::Waiting, at, Time::NEVER, out);
            }
            _ => {}
        }
    }

    fn enter(&mut self, index: usize, state: CallState, at: Time, until: Time, out: &mut Reaction) {
        self.lines[index].enter(state, at, until);
        out.changes.push(Change { at, line: index, state });
    }

    fn drop_call(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.enter(index, CallState::Dropped, at, at + self.idle, out);
    }

    /// Records a change of a line's state that the dialler did not cause.
    pub(super) fn note(&mut self, line: usize, state: CallState, at: Time, out: &mut Reaction) {
        self.enter(line, state, at, Time::NEVER, out);
    }

    fn dial(&mut self, line: usize, at: Time, out: &mut Reaction) {
        self.enter(line, CallState::Connecting, at, Time::NEVER, out);
        out.orders.push(Order::Dial(line));
    }

    /// Begins to dial when no line is connected. With a primary line, only that one is dialled, after the pause;
    /// without, all are.
    pub fn begin_bundle(&mut self, at: Time, out: &mut Reaction) {
        self.primary = None;
        if self.rule == Primary::None {
            for index in 0..self.lines.len() {
                self.dial(index, at, out);
            }
            return;
        }
        for index in 0..self.lines.len() {
            if self.lines[index].state == CallState::Connecting {
                out.orders.push(Order::HangUp(index));
            }
            if self.lines[index].state != CallState::Blocked {
                self.enter(index, CallState::Waiting, at, Time::NEVER, out);
            }
        }
        let begin = if at > Time::ZERO { at + self.idle } else { at };
        self.dial_primary_from(at, begin, out);
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

    pub(super) fn dial_primary(&mut self, at: Time, out: &mut Reaction) {
        self.dial_primary_from(at, at, out);
    }

    /// Dials, from `begin` on, the waiting line with the longest expected call.
    fn dial_primary_from(&mut self, at: Time, begin: Time, out: &mut Reaction) {
        let usual_s = self.usual_call_s();
        let waiting = (0..self.lines.len()).filter(|&index| self.lines[index].state == CallState::Waiting);
        let expected_s = |index: usize| self.lines[index].expected_call_s(usual_s);
        let best = waiting.min_by(|&a, &b| expected_s(b).total_cmp(&expected_s(a)));
        match best {
            Some(index) if begin > at => self.enter(index, CallState::Dropped, at, begin, out),
            Some(index) => self.dial(index, at, out),
            None => {} // all are blocked: the first whose block ends is dialled
        }
    }
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

    /// The bundle ends the line's call. Its length counts as connected time but not as a drop, because the call would
    /// have lasted longer.
    fn hang_up(&mut self, at: Time) {
        if self.state == CallState::Connected {
            self.connected += at.since(self.since);
            self.state = CallState::Dropped;
        }
    }

    /// Expected length of the line's next call, in s, if calls of all lines last `usual_s` on average. Calls are
    /// assumed to drop at a constant rate, whose prior is a gamma distribution of shape 1 (worth one call of length
    /// `usual_s`). After n drops in a connected time T, the posterior mean of the rate is (n + 1) / (T + `usual_s`);
    /// this is its reciprocal. A line that was never called therefore counts as an average one.
    fn expected_call_s(&self, usual_s: f64) -> f64 {
        (self.connected.as_secs_f64() + usual_s) / (self.drops + 1) as f64
    }
}
