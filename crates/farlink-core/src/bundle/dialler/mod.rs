//! Decides when each line of a bundle is dialled: events in, orders out, no clock (Zaghloul, sections 7.2 and 7.3, figures 7.2, 7.6
//! and 7.7).
//!
//! A driver reports events of calls to a [`Dialler`] and carries out its [`Order`]s. It is an emulated network that
//! draws the events ([`Calls`](super::Calls)), or an operator of real modems, through [`OperatedDialler`].

mod budget;
mod calendar;
mod config;
mod costs;
mod events;
mod fail_back;
mod hand;
mod history;
mod line;
mod obstacles;
mod operated;
mod pauses;
mod policy;
mod primary;
mod progress;
mod state;

use self::budget::Ledger;
use self::calendar::Calendar;
use self::line::Line;
use self::policy::Policy;
use super::calls_config::CallsConfig;
use crate::origin::{MoveOrigin, OriginShift};
use crate::rng::Rng;
use crate::time::Time;

pub use budget::{Budget, BundleBudget, Spent};
pub use config::{DiallerConfig, Limits, LineRules, PrimaryRule, Role};
pub use events::{BundleEvent, LineEvent};
pub use operated::{Action, LineStatus, NotATime, OperatedDialler};
pub use state::{Alert, CallState, Change, Order, Reaction, Reason};

/// Decides when lines are dialled.
///
/// Calls of [`handle_timeout`](Dialler::handle_timeout) are due at [`next_timeout`](Dialler::next_timeout). Every other
/// event names the line and the time; times do not decrease.
#[derive(Clone, Debug)]
pub struct Dialler {
    policy: Policy,
    pub(super) lines: Vec<Line>,
    pub(super) primary: Option<usize>,
    /// Whether a person or an operator is told of what simulated calls have no use for: alerts, answered calls, costs.
    tells: bool,
    is_running: bool,
    /// Why lines are not dialled while the bundle does not run.
    idle_reason: Reason,
    told_primary: Option<usize>,
    told_up: bool,
    calendar: Calendar,
    /// Costs of the calls of all lines.
    spent: Ledger,
    rng: Rng,
    /// Number of calls so far.
    calls: u64,
    /// Number of events that were not possible, or came too late.
    ignored: u64,
}

impl Dialler {
    /// A dialler for the simulated calls of this many lines, all connected. The first is the primary line, if the rule has one.
    pub fn new(config: &CallsConfig, lines: usize) -> Self {
        let policy = Policy::of_calls(config, lines);
        let primary = policy.rule.goes_first().then_some(0);
        let line = Line::new(CallState::Connected, Reason::Up);
        Dialler { tells: false, is_running: true, primary, ..Dialler::of(policy, vec![line; lines], 0) }
    }

    /// A dialler for a bundle that is operated. Nothing is dialled before [`BundleEvent::Start`]. The seed is that of the pauses'
    /// random part.
    pub fn for_operator(config: &DiallerConfig, seed: u64) -> Self {
        let line = Line::new(CallState::Waiting, Reason::NotStarted);
        Dialler::of(Policy::of_operator(config), vec![line; config.lines.len()], seed)
    }

    fn of(policy: Policy, lines: Vec<Line>, seed: u64) -> Self {
        Dialler {
            policy,
            lines,
            primary: None,
            tells: true,
            is_running: false,
            idle_reason: Reason::NotStarted,
            told_primary: None,
            told_up: false,
            calendar: Calendar::default(),
            spent: Ledger::default(),
            rng: Rng::for_component(seed, 0, "dialler"),
            calls: 0,
            ignored: 0,
        }
    }

    /// A line's state.
    pub fn state(&self, line: usize) -> CallState {
        self.lines[line].state
    }

    /// Why a line is in its state.
    pub fn reason(&self, line: usize) -> Reason {
        self.lines[line].reason
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

    fn dials(&self, line: usize) -> bool {
        self.policy.lines[line].role == Role::Dial
    }

    /// When the dialler next acts on a line by itself.
    pub fn next_timeout(&self, line: usize) -> Time {
        self.lines[line].until.min(self.lines[line].check)
    }

    fn enter(&mut self, index: usize, state: CallState, reason: Reason, at: Time, until: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        line.enter(state, reason, at, until);
        if !line.has_call() {
            self.charge(index, at);
            let line = &mut self.lines[index];
            line.charged = None;
            if self.policy.half_life_s.is_some() && (line.drops > 0 || line.connected > Time::ZERO) {
                line.remember(at, self.policy.half_life_s);
            }
        }
        out.changes.push(Change { at, line: index, state, reason });
    }

    /// Does what follows from an event for the bundle as a whole.
    fn settle(&mut self, at: Time, out: &mut Reaction) {
        if self.is_running {
            self.seek_primary(at, out);
        }
        self.fill(at, out);
        self.fail_back(at, out);
        self.appoint(at, out);
        let is_up = (0..self.lines.len()).any(|line| self.seems_up(line));
        if self.tells && is_up != self.told_up {
            self.told_up = is_up;
            out.orders.push(Order::Alert(if is_up { Alert::BundleUp } else { Alert::BundleDown }));
        }
    }
}

impl Dialler {
    /// The clock reads less from now on. What was connected is put where it cannot overflow.
    fn move_origin(&mut self, now: Time, by: OriginShift) {
        for line in self.lines.iter_mut().filter(|line| line.state != CallState::Silent) {
            line.count_call(now);
            line.remember(now, self.policy.half_life_s);
        }
        self.lines.move_origin(by);
        self.calendar.move_origin(by);
    }
}
