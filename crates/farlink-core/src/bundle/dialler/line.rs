//! A line as its dialler sees it, and what is remembered of its calls.

use std::collections::VecDeque;

use super::budget::Ledger;
use super::state::{CallState, Reason};
use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// The dialler's state of a line.
#[derive(Clone, Debug)]
pub(in crate::bundle) struct Line {
    pub(in crate::bundle) state: CallState,
    pub(super) reason: Reason,
    /// When the state ends by itself; never while a call is made or lasts without a limit of time.
    pub(super) until: Time,
    /// When a limit of the call is looked at: of its costs, or that it is long enough.
    pub(super) check: Time,
    pub(super) failures: u64,
    pub(super) since: Time,
    /// How long the line was connected, and how often it dropped by itself, in calls that are not yet in `memory`. Calls that the
    /// bundle ended are no drops.
    pub(in crate::bundle) connected: Time,
    pub(in crate::bundle) drops: u64,
    pub(super) memory: Memory,
    /// Connected time in s and drops of the calls in `memory`, none forgotten.
    pub(super) all_connected_s: f64,
    pub(super) all_drops: u64,
    /// Number of the call that is made or lasts, or of the last one.
    pub(super) call: u64,
    pub(super) is_incoming: bool,
    /// Until when the airtime of this call is accounted for; none if the modem is not connected.
    pub(super) charged: Option<Time>,
    pub(super) spent: Ledger,
    pub(super) has_port: bool,
    /// The last reading of the signal.
    pub(super) signal: Option<(Time, u64)>,
    /// Since when it has been too low without an attempt.
    pub(super) low_since: Option<Time>,
    pub(super) probes_lost: u64,
    /// The last drops, at most as many as are damped.
    pub(super) recent_drops: VecDeque<Time>,
    /// Someone wants the line dialled, whatever the signal.
    pub(super) is_urged: bool,
    /// The line is tried beside those in use, as it is better than one of them.
    pub(super) is_trial: bool,
}

/// History of calls: how long they lasted together, and how many dropped. Older ones count less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Memory {
    pub(super) connected_s: f64,
    pub(super) drops: f64,
    pub(super) at: Time,
}

impl MoveOrigin for Memory {
    fn move_origin(&mut self, by: OriginShift) {
        self.at.move_origin(by);
    }
}

impl Memory {
    /// The same at a later time.
    fn faded(self, now: Time, half_life_s: Option<f64>) -> Self {
        let Some(half_life_s) = half_life_s else { return self };
        let kept = libm::exp2(-now.since(self.at).as_secs_f64() / half_life_s);
        Memory { connected_s: self.connected_s * kept, drops: self.drops * kept, at: now }
    }
}

impl Line {
    pub(super) fn new(state: CallState, reason: Reason) -> Self {
        Line {
            state,
            reason,
            until: Time::NEVER,
            check: Time::NEVER,
            failures: 0,
            since: Time::ZERO,
            connected: Time::ZERO,
            drops: 0,
            memory: Memory::default(),
            all_connected_s: 0.0,
            all_drops: 0,
            call: 0,
            is_incoming: false,
            charged: None,
            spent: Ledger::default(),
            has_port: true,
            signal: None,
            low_since: None,
            probes_lost: 0,
            recent_drops: VecDeque::new(),
            is_urged: false,
            is_trial: false,
        }
    }

    pub(super) fn enter(&mut self, state: CallState, reason: Reason, at: Time, until: Time) {
        if self.state == CallState::Connected && state != CallState::Connected {
            self.connected += at.since(self.since);
            self.drops += 1;
        }
        (self.state, self.reason, self.since, self.until) = (state, reason, at, until);
        if !self.has_call() {
            self.check = Time::NEVER;
        }
    }

    /// Whether a call is made, or lasts.
    pub(super) fn has_call(&self) -> bool {
        matches!(self.state, CallState::Connecting | CallState::Connected | CallState::Silent)
    }

    pub(super) fn time_connected(&self, now: Time) -> Time {
        let in_call = if self.state == CallState::Connected { now.since(self.since) } else { Time::ZERO };
        self.connected + in_call
    }

    /// The bundle ends the line's call. Its length counts as connected time but not as a drop, because the call would
    /// have lasted longer.
    pub(super) fn hang_up(&mut self, at: Time) {
        if self.state == CallState::Connected {
            self.connected += at.since(self.since);
            self.state = CallState::Dropped;
        }
    }

    /// Counts the call that lasts up to now.
    pub(super) fn count_call(&mut self, now: Time) {
        if self.state == CallState::Connected {
            self.connected += now.since(self.since);
            self.since = now;
        }
    }

    /// The line was not silent after all: the call goes on, and there was no drop.
    pub(super) fn recover(&mut self, at: Time) {
        self.connected += at.since(self.since);
        self.drops = self.drops.saturating_sub(1);
        (self.state, self.reason, self.since, self.until) = (CallState::Connected, Reason::Up, at, Time::NEVER);
    }

    /// Puts the calls that have ended into the memory, in which older calls count less.
    pub(super) fn remember(&mut self, now: Time, half_life_s: Option<f64>) {
        let faded = self.memory.faded(now, half_life_s);
        self.memory = Memory {
            connected_s: faded.connected_s + self.connected.as_secs_f64(),
            drops: faded.drops + self.drops as f64,
            at: now,
        };
        self.all_connected_s += self.connected.as_secs_f64();
        self.all_drops += self.drops;
        (self.connected, self.drops) = (Time::ZERO, 0);
    }

    /// Connected time in s, the call that lasts included if `with_call`, and drops, as they count now.
    pub(super) fn history(&self, now: Time, half_life_s: Option<f64>, with_call: bool) -> (f64, f64) {
        let old = self.memory.faded(now, half_life_s);
        let connected = if with_call { self.time_connected(now) } else { self.connected };
        (old.connected_s + connected.as_secs_f64(), old.drops + self.drops as f64)
    }
}

impl MoveOrigin for Line {
    fn move_origin(&mut self, by: OriginShift) {
        self.recent_drops.retain(|at| *at > by.time()); // no window of damping looks back so far
        for at in [&mut self.until, &mut self.check, &mut self.since] {
            at.move_origin(by);
        }
        self.charged.move_origin(by);
        self.low_since.move_origin(by);
        self.recent_drops.move_origin(by);
        self.memory.move_origin(by);
        if let Some((at, _)) = &mut self.signal {
            at.move_origin(by);
        }
    }
}
