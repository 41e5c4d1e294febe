//! The progress of calls, as figure 7.2 has it: dialled, connected, dropped or failed, and dialled again.

use super::Dialler;
use super::config::PrimaryRule;
use super::state::{Alert, CallState, Order, Reaction, Reason};
use crate::time::Time;

impl Dialler {
    /// Handles the timeout of a line. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if at >= self.lines[index].check {
            self.charge(index, at);
            self.check_call(index, at, out);
        }
        if at >= self.lines[index].until {
            self.end_wait(index, at, out);
        }
        self.settle(at, out);
    }

    /// The time of a line's state is over.
    fn end_wait(&mut self, index: usize, at: Time, out: &mut Reaction) {
        match self.lines[index].state {
            CallState::Blocked if self.lacks_primary() => {
                // The line may be chosen as primary again; while another one is being dialled, it waits.
                self.enter(index, CallState::Waiting, Reason::Primary, at, Time::NEVER, out);
            }
            CallState::Dropped | CallState::Failed if self.lacks_primary() && !self.is_other_tried(index) => {
                match self.own_obstacle(index, at) {
                    Some(obstacle) => self.wait(index, obstacle, at, out),
                    None => self.dial(index, at, out),
                }
            }
            CallState::Dropped | CallState::Failed | CallState::Blocked => self.try_dial(index, at, out),
            CallState::Connecting => {
                out.orders.push(Order::HangUp(index));
                self.end_attempt(index, at, out);
            }
            CallState::Silent => {
                out.orders.push(Order::HangUp(index));
                self.drop_and_follow(index, at, out);
            }
            // Whether a waiting line is dialled is decided for all of them.
            CallState::Waiting => self.lines[index].until = Time::NEVER,
            CallState::Connected | CallState::Held => {}
        }
    }

    /// An attempt has failed. Who answers has no pause: a caller who comes to nothing must not keep the next one out.
    pub(super) fn end_attempt(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if self.dials(index) {
            self.fail(index, at, out);
        } else {
            self.enter(index, CallState::Waiting, Reason::Listening, at, Time::NEVER, out);
        }
    }

    /// An attempt to dial a line has failed.
    pub fn on_failure(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.fail(index, at, out);
        self.settle(at, out);
    }

    pub(super) fn fail(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        line.failures += 1;
        let failures = line.failures;
        let is_blocked = failures >= self.policy.attempts;
        line.failures = if is_blocked { 0 } else { failures };
        if !is_blocked {
            let pause = self.failed_pause(failures);
            return self.enter(index, CallState::Failed, Reason::AttemptFailed, at, at + pause, out);
        }
        let pause = self.jittered(self.policy.blocked);
        self.enter(index, CallState::Blocked, Reason::Attempts, at, at + pause, out);
        self.alert(Alert::Blocked(index), out);
        self.seek_primary(at, out); // another line becomes the candidate for primary
    }

    /// A line is connected.
    pub fn on_connected(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.lines[index].failures = 0;
        self.lines[index].probes_lost = 0;
        self.enter(index, CallState::Connected, Reason::Up, at, Time::NEVER, out);
        if self.policy.rule.goes_first() && self.primary.is_none() {
            self.primary = Some(index);
        }
        self.settle(at, out);
    }

    /// The call of a line has dropped, but not both ends have noticed. The dialler does not act yet.
    pub fn on_silence(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.enter(index, CallState::Silent, Reason::Probes, at, at + self.policy.silent, out);
        self.alert(Alert::Silent(index), out);
        self.settle(at, out);
    }

    /// The call of a line has dropped, and both ends know it.
    pub fn on_drop(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.drop_and_follow(index, at, out);
        self.settle(at, out);
    }

    pub(super) fn drop_and_follow(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let (reason, until) = self.drop_pause(index, at);
        self.enter(index, CallState::Dropped, reason, at, until, out);
        if reason == Reason::Flapping {
            self.alert(Alert::Flapping(index), out);
        }
        self.follow_loss(index, at, out);
    }

    /// The effect of a line's loss on the bundle, by the rule of its primary line.
    pub(super) fn follow_loss(&mut self, index: usize, at: Time, out: &mut Reaction) {
        match self.policy.rule {
            PrimaryRule::EndsBundle if self.primary == Some(index) => {
                self.end_calls(at, out);
                self.begin_bundle(at, out);
            }
            PrimaryRule::StaysLost if !(0..self.lines.len()).any(|line| self.seems_up(line)) => {
                self.begin_bundle(at, out);
            }
            PrimaryRule::StaysLost if self.primary == Some(index) && self.lines[index].state == CallState::Dropped => {
                self.enter(index, CallState::Waiting, Reason::LostPrimary, at, Time::NEVER, out);
            }
            _ => {}
        }
    }

    /// Ends the calls of all lines that seem to be up.
    pub(super) fn end_calls(&mut self, at: Time, out: &mut Reaction) {
        for other in 0..self.lines.len() {
            if self.seems_up(other) {
                self.lines[other].hang_up(at);
                out.orders.push(Order::HangUp(other));
                let pause = self.jittered(self.policy.dropped);
                self.enter(other, CallState::Dropped, Reason::BundleEnded, at, at + pause, out);
            }
        }
        if self.tells {
            out.orders.push(Order::TearDown);
        }
    }

    /// The bundle ends a call, or an attempt: it is neither a drop nor a failure.
    pub(super) fn end_call(
        &mut self,
        index: usize,
        (state, reason, until): (CallState, Reason, Time),
        at: Time,
        out: &mut Reaction,
    ) {
        if self.lines[index].has_call() {
            self.lines[index].hang_up(at);
            out.orders.push(Order::HangUp(index));
        }
        self.enter(index, state, reason, at, until, out);
        self.follow_loss(index, at, out);
    }

    /// Records a change of a line's state that the dialler did not cause.
    pub(in crate::bundle) fn note(&mut self, line: usize, state: CallState, at: Time, out: &mut Reaction) {
        let reason = if state == CallState::Connected { Reason::Up } else { Reason::Drop };
        self.enter(line, state, reason, at, Time::NEVER, out);
    }

    pub(super) fn dial(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.begin_call(index, Reason::Dialling, at, out);
        out.orders.push(Order::Dial(index));
    }

    /// Begins a call, which is limited in time.
    pub(super) fn begin_call(&mut self, index: usize, reason: Reason, at: Time, out: &mut Reaction) {
        self.calls += 1;
        let line = &mut self.lines[index];
        (line.call, line.is_incoming) = (self.calls, reason == Reason::Answering);
        (line.is_urged, line.probes_lost) = (false, 0);
        line.low_since = line.signal.map(|_| at); // a signal that stays low keeps it from the next call
        self.enter(index, CallState::Connecting, reason, at, at + self.policy.dial, out);
    }

    /// Begins to dial when no line is connected. With a primary line, only that one is dialled, after the pause;
    /// without, all are.
    pub fn begin_bundle(&mut self, at: Time, out: &mut Reaction) {
        self.primary = None;
        if !self.policy.rule.goes_first() {
            for index in 0..self.lines.len() {
                self.dial(index, at, out);
            }
            return;
        }
        for index in 0..self.lines.len() {
            if self.lines[index].state == CallState::Connecting {
                out.orders.push(Order::HangUp(index));
            }
            if !matches!(self.lines[index].state, CallState::Blocked | CallState::Held) {
                self.enter(index, CallState::Waiting, Reason::Primary, at, Time::NEVER, out);
            }
        }
        let begin = if at > Time::ZERO { at + self.policy.dropped } else { at };
        self.dial_primary_from(at, begin, out);
    }

    pub(super) fn alert(&self, alert: Alert, out: &mut Reaction) {
        if self.tells {
            out.orders.push(Order::Alert(alert));
        }
    }
}
