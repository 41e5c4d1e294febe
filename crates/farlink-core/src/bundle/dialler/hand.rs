//! Commands of people for a line or for the bundle: hold, release, redial, drop as a test, start, stop.

use super::Dialler;
use super::state::{CallState, Order, Reaction, Reason};
use crate::time::Time;

impl Dialler {
    pub(super) fn hold(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if self.lines[index].state != CallState::Held {
            self.end_call(index, (CallState::Held, Reason::ByHand, Time::NEVER), at, out);
        }
    }

    pub(super) fn release(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if self.lines[index].state == CallState::Held {
            self.lines[index].failures = 0;
            self.try_dial(index, at, out);
        }
    }

    /// Ends the call of a line and dials it again, without the pauses of drops and failures.
    pub(super) fn redial(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if self.lines[index].state == CallState::Held {
            return self.ignore();
        }
        let line = &mut self.lines[index];
        line.failures = 0;
        line.recent_drops.clear();
        line.is_urged = true;
        if line.has_call() {
            self.end_call(index, (CallState::Dropped, Reason::ByHand, at), at, out);
        }
        // With a bundle that ends with its primary line, the line may be dialled already.
        if self.lines[index].state != CallState::Waiting && !self.lines[index].has_call() {
            self.try_dial(index, at, out);
        }
    }

    /// Drops the call of a line, as a test: neither its history nor the damping of flaps counts it.
    pub(super) fn inject(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if !self.seems_up(index) {
            return self.ignore();
        }
        out.orders.push(Order::HangUp(index));
        self.drop_injected(index, at, out);
    }

    /// The call of a line was dropped as a test.
    pub(super) fn drop_injected(&mut self, index: usize, at: Time, out: &mut Reaction) {
        self.lines[index].hang_up(at);
        let until = at + self.jittered(self.policy.dropped);
        self.enter(index, CallState::Dropped, Reason::Injected, at, until, out);
        self.follow_loss(index, at, out);
    }

    pub(super) fn start(&mut self, at: Time, out: &mut Reaction) {
        if self.is_running {
            return self.ignore();
        }
        self.is_running = true;
        for index in 0..self.lines.len() {
            if self.lines[index].state == CallState::Waiting {
                self.lines[index].failures = 0;
            }
        }
        self.settle(at, out);
    }

    pub(super) fn stop(&mut self, at: Time, out: &mut Reaction) {
        (self.is_running, self.idle_reason, self.primary) = (false, Reason::Stopped, None);
        for index in 0..self.lines.len() {
            let line = &mut self.lines[index];
            line.is_urged = false;
            if line.has_call() {
                line.hang_up(at);
                out.orders.push(Order::HangUp(index));
            }
            if line.state != CallState::Held {
                self.wait(index, (Reason::Stopped, Time::NEVER), at, out);
            }
        }
        out.orders.push(Order::TearDown);
    }
}
