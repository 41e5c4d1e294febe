//! The ends of a line: when each notices that a call has dropped or was connected, and how it reacts.

use super::super::config::Confirmation;
use super::super::dialler::{CallState, Change};
use super::super::sender::Outcome;
use super::EmulatedBundle;
use crate::payload::Payload;
use crate::time::Time;

/// The two ends of a line in this direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Whether the receiver believes that the line is up.
    pub(super) seems_up: bool,
    /// When the sender and the receiver notice that the call has dropped.
    pub(super) noticed: [Time; 2],
}

impl Ends {
    pub(super) const UP: Ends = Ends { seems_up: true, noticed: [Time::NEVER; 2] };
    pub(super) const DOWN: Ends = Ends { seems_up: false, ..Ends::UP };
}

impl<D: Payload> EmulatedBundle<D> {
    /// Applies all changes of calls up to `now`.
    pub(super) fn follow_calls(&mut self) {
        let Some(mut calls) = self.lines.calls.take() else { return };
        let lines = self.ends.len();
        while calls.next_change() <= self.now {
            self.availability.note(calls.next_change(), lines, calls.lines_up());
            self.changes.clear();
            if !calls.advance(self.now, &mut self.changes) {
                break;
            }
            let changes = std::mem::take(&mut self.changes);
            for &Change { at, line, state, .. } in &changes {
                match state {
                    CallState::Connected => self.bring_up(line, at),
                    CallState::Silent => {
                        self.availability.drops += 1;
                        self.lines.lines[line].fall_silent();
                        let [near, far] = calls.noticed(line);
                        self.ends[line].noticed = if self.is_reverse { [far, near] } else { [near, far] };
                    }
                    CallState::Dropped | CallState::Waiting => {
                        let was_up = self.lines.lines[line].is_up || self.ends[line].seems_up;
                        let is_silent =
                            self.ends[line].noticed != Ends::UP.noticed || self.lines.lines[line].is_silent();
                        self.availability.drops += u64::from(was_up && !is_silent);
                        self.hang_up(line);
                        self.stop_waiting(line, at);
                    }
                    _ => {}
                }
            }
            self.changes = changes;
        }
        self.lines.calls = Some(calls);
    }

    fn bring_up(&mut self, line: usize, at: Time) {
        if self.lines.lines[line].is_up {
            return;
        }
        if self.restarts && !self.ends.iter().enumerate().any(|(at, end)| end.seems_up || self.lines.lines[at].is_up) {
            self.sender.restart();
            self.receiver.restart();
        }
        self.ends[line] = Ends::UP;
        self.lines.lines[line].bring_up(at);
        self.receiver.set_up(at, line, true);
        self.sender.line_up(self.now, line, &mut self.lines);
    }

    /// Handles the ends that notice by now that a call has dropped.
    pub(super) fn notice(&mut self) {
        for line in 0..self.ends.len() {
            let [by_sender, by_receiver] = self.ends[line].noticed;
            if by_sender <= self.now {
                self.hang_up(line);
            }
            if by_receiver <= self.now {
                self.stop_waiting(line, self.now);
            }
        }
    }

    /// The sender learns that a line is down, and sends again what it does not know to have been sent or to have arrived.
    fn hang_up(&mut self, line: usize) {
        self.ends[line].noticed[0] = Time::NEVER;
        if !self.lines.lines[line].is_up {
            return;
        }
        let sent = self.lines.lines[line].sent(self.now);
        let not_arrived: Vec<_> = self.lines.lines[line].take_down().map(|sent| sent.fragment.payload).collect();
        if self.confirmation == Some(Confirmation::Sent) {
            (0..sent).for_each(|_| self.sender.on_sent(line));
        }
        self.sender.line_down(self.now, line, &mut self.lines);
        for piece in &not_arrived {
            self.sender.note_loss(piece, Outcome::Cut);
        }
    }

    /// The receiver learns that a line is down, and no longer waits for it.
    fn stop_waiting(&mut self, line: usize, at: Time) {
        self.ends[line].noticed[1] = Time::NEVER;
        if self.ends[line].seems_up {
            self.ends[line].seems_up = false;
            self.receiver.set_up(at, line, false);
            self.read();
        }
    }
}
