//! Which session is served when: deadlines, sessions with something to send, and batches of datagrams.

use farlink_core::Time;
use farlink_core::event::{Abort, Event};

use super::session::Like;
use super::{Batch, ConnectionId, Mux};

impl Mux {
    /// Writes the next datagrams to the start of `out`: up to `most`, all to the same destination and, but for the last, of one
    /// length.
    pub fn poll_transmit(&mut self, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        if let Some(batch) = self.send_cookie(out).or_else(|| self.send_reset(out)) {
            return Some(batch);
        }
        loop {
            // Deadlines that have passed and sessions with something to send take turns, so that neither keeps the other waiting.
            self.is_turn_of_timers = !self.is_turn_of_timers;
            let next = if self.is_turn_of_timers {
                self.next_due(now).or_else(|| self.next_ready())
            } else {
                self.next_ready().or_else(|| self.next_due(now))
            };
            let id = next?;
            self.wake(now, id);
            let batch = self.fill(id, now, most, out);
            self.settle(id, now);
            if batch.is_some() {
                return batch;
            }
        }
    }

    /// The next session that may have something to send.
    fn next_ready(&mut self) -> Option<u32> {
        let id = self.ready.pop_front()?;
        self.is_ready.remove(&id);
        Some(id)
    }

    /// The session of the earliest deadline that has passed.
    fn next_due(&self, now: Time) -> Option<u32> {
        self.timers.first().filter(|(due, _)| *due <= now).map(|&(_, id)| id)
    }

    /// Handles the deadline of a session, if it has passed.
    fn wake(&mut self, now: Time, id: u32) {
        let Some(&due) = self.scheduled.get(&id).filter(|&&due| due <= now) else { return };
        self.timers.remove(&(due, id));
        self.scheduled.remove(&id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.handle_timeout(now);
        }
    }

    /// Writes datagrams of one session.
    fn fill(&mut self, id: u32, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        let session = self.sessions.get_mut(&id)?;
        let first = session.poll_transmit(now, out, None)?;
        let (mut bytes, mut count) = (first.bytes, 1);
        let most = if first.is_probe { 1 } else { most };
        let like = Like { most_bytes: first.bytes, ecn: first.ecn };
        while count < most && out.len() - bytes >= first.bytes {
            let Some(next) = session.poll_transmit(now, &mut out[bytes..], Some(like)) else { break };
            (bytes, count) = (bytes + next.bytes, count + 1);
            if next.bytes < first.bytes {
                break;
            }
        }
        self.mark_ready(id);
        Some(Batch { route: self.sessions[&id].route, ecn: first.ecn, bytes, datagram_bytes: first.bytes })
    }

    /// Something happened to a session: it may have something to send, and other deadlines.
    pub(super) fn touch(&mut self, id: u32) {
        if self.take_events(id) {
            self.mark_ready(id);
        }
    }

    fn mark_ready(&mut self, id: u32) {
        if self.is_ready.insert(id) {
            self.ready.push_back(id);
        }
    }

    /// Takes the events of a session; whether there is such a session.
    pub(super) fn take_events(&mut self, id: u32) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        while let Some((place, event)) = session.connections.poll_event() {
            if matches!(event, Event::Closed | Event::Aborted(_)) {
                session.connections.on_ended(place, event);
            }
            self.events.push_back((ConnectionId { session: id, place }, event));
        }
        true
    }

    /// A session has nothing more to send: takes its events and sets its next deadline.
    fn settle(&mut self, id: u32, now: Time) {
        self.take_events(id);
        let Some(session) = self.sessions.get(&id) else { return };
        let mut due = session.poll_timeout();
        // `[Y12]`
        if session.connections.is_idle() {
            let forget = session.last_opened + self.config.idle;
            if now >= forget {
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
