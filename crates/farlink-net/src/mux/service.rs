//! Which session is served when: deadlines, sessions with something to send, and batches of datagrams.

use farlink_core::Time;
use farlink_core::event::{Abort, Event};

use super::session::Like;
use super::{Batch, ConnectionId, Mux};

/// Missed deadlines up to this age are caught up one by one, so that a driver that wakes up late does not reduce the rate.
const CATCH_UP: Time = Time::from_millis(5);

impl Mux {
    /// Writes the next datagrams to the start of `out`: up to `most`, all to the same destination and, but for the last, of one
    /// length. Missed deadlines of up to 5 ms are caught up.
    pub fn poll_transmit(&mut self, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        if let Some(batch) = self.send_cookie(out).or_else(|| self.send_reset(out)) {
            return Some(batch);
        }
        loop {
            // Missed deadlines and sessions with something to send take turns, so that neither keeps the other waiting.
            self.is_turn_of_timers = !self.is_turn_of_timers;
            let next = if self.is_turn_of_timers {
                self.wake(now).or_else(|| self.next_ready(now))
            } else {
                self.next_ready(now).or_else(|| self.wake(now))
            };
            let (id, at) = next?;
            let batch = self.fill(id, at, now, most, out);
            self.settle(id, at);
            if batch.is_some() {
                return batch;
            }
        }
    }

    /// The next session that may have something to send, and up to when it has been served.
    fn next_ready(&mut self, now: Time) -> Option<(u32, Time)> {
        let (id, at) = self.ready.pop_front()?;
        self.is_ready.remove(&id);
        let at = at.min(now);
        // What was due before counts from then: what arrives while a driver is late would delay the pacing each time.
        let Some(&due) = self.scheduled.get(&id).filter(|&&due| due < at) else { return Some((id, at)) };
        self.timers.remove(&(due, id));
        self.scheduled.remove(&id);
        let at = due.max(now.since(CATCH_UP)).min(at);
        self.sessions.get_mut(&id)?.handle_timeout(at);
        Some((id, at))
    }

    /// Handles the next deadline that has passed.
    fn wake(&mut self, now: Time) -> Option<(u32, Time)> {
        let &(due, id) = self.timers.first().filter(|(due, _)| *due <= now)?;
        self.timers.remove(&(due, id));
        self.scheduled.remove(&id);
        let at = due.max(now.since(CATCH_UP));
        self.sessions.get_mut(&id)?.handle_timeout(at);
        Some((id, at))
    }

    /// Writes datagrams of one session, also those of deadlines that it has missed since `at`.
    fn fill(&mut self, id: u32, at: Time, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        let session = self.sessions.get_mut(&id)?;
        let first = session.poll_transmit(at, out, None)?;
        let mut bytes = first.bytes;
        let like = Like { most_bytes: first.bytes, ecn: first.ecn };
        let (mut at, mut count) = (at, 1);
        while count < most && out.len() - bytes >= first.bytes {
            let Some(next) = session.poll_transmit(at, &mut out[bytes..], Some(like)) else {
                let due = session.poll_timeout();
                if due <= now && due > at {
                    at = due.max(now.since(CATCH_UP)).max(at);
                    session.handle_timeout(at);
                    if !session.is_holding() {
                        continue;
                    }
                }
                break;
            };
            (bytes, count) = (bytes + next.bytes, count + 1);
            if next.bytes < first.bytes {
                break;
            }
        }
        self.mark_ready(id, at);
        Some(Batch { route: self.sessions[&id].route, ecn: first.ecn, bytes, datagram_bytes: first.bytes })
    }

    /// Something happened to a session: it may have something to send, and other deadlines.
    pub(super) fn touch(&mut self, id: u32, now: Time) {
        if self.sessions.contains_key(&id) {
            self.mark_ready(id, now);
            self.take_events(id);
        }
    }

    fn mark_ready(&mut self, id: u32, at: Time) {
        if self.is_ready.insert(id) {
            self.ready.push_back((id, at));
        }
    }

    pub(super) fn take_events(&mut self, id: u32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        while let Some((place, event)) = session.connections.poll_event() {
            if matches!(event, Event::Closed | Event::Aborted(_)) {
                session.connections.on_ended(place, event);
            }
            self.events.push_back((ConnectionId { session: id, place }, event));
        }
    }

    /// A session has nothing more to send: takes its events and sets its next deadline.
    fn settle(&mut self, id: u32, at: Time) {
        self.take_events(id);
        let Some(session) = self.sessions.get(&id) else { return };
        let mut due = session.poll_timeout();
        // `[Y12]`
        if session.connections.is_idle() {
            let forget = session.last_opened + self.config.idle;
            if at >= forget {
                return self.remove(id, Abort::NoAnswer);
            }
            due = due.min(forget);
        }
        let before = self.scheduled.get(&id).copied();
        if before == Some(due) {
            return;
        }
        if let Some(before) = before {
            self.timers.remove(&(before, id));
        }
        if due == Time::NEVER {
            self.scheduled.remove(&id);
        } else {
            self.scheduled.insert(id, due);
            self.timers.insert((due, id));
        }
    }
}
