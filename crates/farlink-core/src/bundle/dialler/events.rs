//! Events that an operator observes, and their effects in each state.

use super::Dialler;
use super::state::{Alert, CallState, Order, Reaction, Reason};
use crate::time::Time;

/// Something that was observed at a line, or that someone wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// The modem is connected.
    Carrier,
    /// The link over it is up.
    LinkUp,
    /// The modem could not be connected, or the link did not come up.
    DialFailed,
    /// A link that was up is lost. Whether the driver dropped it itself, as a test.
    Dropped {
        /// It is no drop in the history of the line then.
        injected: bool,
    },
    /// A probe over the link was not answered.
    ProbeLost,
    /// A probe over the link was answered.
    ProbeAnswered,
    /// A reading of the signal; none if the modem does not know it.
    Signal(Option<u64>),
    /// Someone calls.
    Ring,
    /// The caller has given up.
    RingEnded,
    /// The modem is of no use.
    ModemFailed,
    /// The port of the modem is gone.
    PortGone,
    /// It is there again.
    PortBack,
    /// Take the line out of use.
    Hold,
    /// Use it again.
    Release,
    /// Dial it now, whatever the pause or the signal.
    Redial,
    /// Drop its call, as a test.
    Inject,
}

/// Something that is about the bundle as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BundleEvent {
    /// Dial, and answer, from now on.
    Start,
    /// Hang up, and dial no more.
    Stop,
    /// The bundle's interface is gone although lines seem to be up.
    BundleLost,
    /// The time of day, for budgets.
    WallClock {
        /// Seconds since 1970-01-01 UTC.
        unix_s: f64,
        /// How far the zone of the budgets is ahead of UTC, in seconds.
        zone_s: f64,
    },
}

impl Dialler {
    /// Handles an event of a line. An event that is not possible in the state of the line is counted, and changes nothing.
    pub fn handle(&mut self, index: usize, event: LineEvent, at: Time, out: &mut Reaction) {
        self.charge(index, at);
        match event {
            LineEvent::Carrier => self.on_carrier(index, at, out),
            LineEvent::LinkUp => self.on_link_up(index, at, out),
            LineEvent::DialFailed => self.on_end(index, false, at, out),
            LineEvent::Dropped { injected } => self.on_end(index, injected, at, out),
            LineEvent::ProbeLost => self.on_probe_lost(index, at, out),
            LineEvent::ProbeAnswered => self.on_probe_answered(index, at, out),
            LineEvent::Signal(level) => self.on_signal(index, level, at),
            LineEvent::Ring => self.on_ring(index, at, out),
            LineEvent::RingEnded if self.lines[index].reason == Reason::Answering => self.on_end(index, false, at, out),
            LineEvent::RingEnded => {}
            LineEvent::ModemFailed => self.on_modem_failed(index, at, out),
            LineEvent::PortGone => self.on_port_gone(index, at, out),
            LineEvent::PortBack => self.lines[index].has_port = true,
            LineEvent::Hold => self.hold(index, at, out),
            LineEvent::Release => self.release(index, at, out),
            LineEvent::Redial => self.redial(index, at, out),
            LineEvent::Inject => self.inject(index, at, out),
        }
        self.settle(at, out);
    }

    /// Handles an event of the bundle.
    pub fn handle_bundle(&mut self, event: BundleEvent, at: Time, out: &mut Reaction) {
        match event {
            BundleEvent::Start => self.start(at, out),
            BundleEvent::Stop => self.stop(at, out),
            BundleEvent::BundleLost => self.on_bundle_lost(at, out),
            BundleEvent::WallClock { unix_s, zone_s } => self.set_calendar(at, unix_s, zone_s, out),
        }
        self.settle(at, out);
    }

    pub(super) fn ignore(&mut self) {
        self.ignored = self.ignored.saturating_add(1);
    }

    /// A call that nobody knows of must not stay up.
    fn hang_up_unknown(&mut self, index: usize, out: &mut Reaction) {
        self.ignore();
        out.orders.push(Order::HangUp(index));
    }

    fn on_carrier(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &self.lines[index];
        match (line.state, line.reason) {
            (CallState::Connecting, Reason::Dialling | Reason::Answering) => {}
            (CallState::Connecting | CallState::Connected | CallState::Silent, _) => return self.ignore(),
            // A modem that answers by itself.
            _ if self.may_answer(index, at) => self.begin_call(index, Reason::Answering, at, out),
            _ => return self.hang_up_unknown(index, out),
        }
        self.begin_charging(index, at);
        self.enter(index, CallState::Connecting, Reason::StartingLink, at, at + self.policy.link, out);
        out.orders.push(Order::StartLink(index));
    }

    fn on_link_up(&mut self, index: usize, at: Time, out: &mut Reaction) {
        match self.lines[index].state {
            CallState::Connecting => {
                self.begin_charging(index, at);
                self.on_connected(index, at, out);
            }
            CallState::Connected | CallState::Silent => {}
            _ => self.hang_up_unknown(index, out),
        }
    }

    /// An attempt or a call has ended by itself.
    fn on_end(&mut self, index: usize, injected: bool, at: Time, out: &mut Reaction) {
        match self.lines[index].state {
            CallState::Connecting => self.end_attempt(index, at, out),
            CallState::Connected | CallState::Silent if injected => self.drop_injected(index, at, out),
            CallState::Connected | CallState::Silent => self.drop_and_follow(index, at, out),
            _ => self.ignore(),
        }
    }

    fn on_probe_lost(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        if line.state != CallState::Connected {
            return;
        }
        line.probes_lost += 1;
        if line.probes_lost >= self.policy.probes {
            self.on_silence(index, at, out);
        }
    }

    fn on_probe_answered(&mut self, index: usize, at: Time, out: &mut Reaction) {
        let line = &mut self.lines[index];
        line.probes_lost = 0;
        if line.state == CallState::Silent {
            line.recover(at);
            out.changes.push(super::Change { at, line: index, state: CallState::Connected, reason: Reason::Up });
        }
    }

    fn on_signal(&mut self, index: usize, level: Option<u64>, at: Time) {
        let least = self.policy.lines[index].least_signal;
        let line = &mut self.lines[index];
        line.signal = level.map(|level| (at, level));
        match level.zip(least) {
            Some((level, least)) if level < least => line.low_since = line.low_since.or(Some(at)),
            _ => line.low_since = None,
        }
    }

    /// Whether a call that comes in is answered now. A line that answers has no pauses: the caller has paid for its own.
    fn may_answer(&self, index: usize, at: Time) -> bool {
        let is_free = matches!(self.lines[index].state, CallState::Waiting | CallState::Dropped | CallState::Failed);
        is_free && !self.dials(index) && self.bar(index, at).is_none()
    }

    fn on_ring(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if self.may_answer(index, at) {
            self.begin_call(index, Reason::Answering, at, out);
            out.orders.push(Order::Answer(index));
        } else if !self.lines[index].has_call() {
            self.ignore();
        }
    }

    /// A modem that fails has the pauses of an attempt that fails, also if it was not dialling.
    fn on_modem_failed(&mut self, index: usize, at: Time, out: &mut Reaction) {
        match self.lines[index].state {
            CallState::Held | CallState::Blocked => return self.ignore(),
            CallState::Connected | CallState::Silent => {
                out.orders.push(Order::HangUp(index));
                self.drop_and_follow(index, at, out);
            }
            CallState::Connecting => {
                out.orders.push(Order::HangUp(index));
                self.fail(index, at, out);
            }
            CallState::Waiting | CallState::Dropped | CallState::Failed => self.fail(index, at, out),
        }
        self.alert(Alert::ModemFailed(index), out);
    }

    fn on_port_gone(&mut self, index: usize, at: Time, out: &mut Reaction) {
        if !self.lines[index].has_port {
            return;
        }
        self.lines[index].has_port = false;
        self.lines[index].signal = None;
        self.alert(Alert::PortGone(index), out);
        if self.lines[index].has_call() {
            out.orders.push(Order::HangUp(index));
            self.on_end(index, false, at, out);
        }
    }

    fn on_bundle_lost(&mut self, at: Time, out: &mut Reaction) {
        if !(0..self.lines.len()).any(|line| self.seems_up(line)) {
            return self.ignore();
        }
        self.end_calls(at, out);
        if self.policy.rule.goes_first() {
            self.begin_bundle(at, out);
        }
    }
}
