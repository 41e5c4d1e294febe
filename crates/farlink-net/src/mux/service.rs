//! Which session is served when: deadlines, sessions with something to send, and batches of datagrams.

use farlink_core::Time;
use farlink_core::event::{Abort, Event};
use tracing::{debug, warn};

use super::session::Like;
use super::{Batch, ConnectionId, Mux};

impl Mux {
    /// Writes the next datagrams to the start of `out`: up to `most`, all to the same destination and, but for the last, of one
    /// length.
    pub fn poll_transmit(&mut self, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        if let Some(batch) = self.send_cookie(out).or_else(|| self.send_reset(out)) {
            return Some(batch);
        }
        self.ask_left_behind(now);
        while let Some(id) = self.agenda.take_due(now) {
            if let Some(session) = self.sessions.get_mut(&id) {
                let span = session.span.clone();
                span.in_scope(|| session.handle_timeout(now));
            }
        }
        while let Some(id) = self.agenda.after(self.turn) {
            self.turn = Some(id);
            let batch = self.fill(id, now, most, out);
            self.take_events(id);
            if batch.is_some() {
                return batch;
            }
            self.settle(id, now);
        }
        None
    }

    /// Writes datagrams of one session.
    fn fill(&mut self, id: u32, now: Time, most: usize, out: &mut [u8]) -> Option<Batch> {
        let session = self.sessions.get_mut(&id)?;
        let span = session.span.clone();
        let _entered = span.enter();
        let first = session.poll_transmit(now, out, None)?;
        let (mut bytes, mut count) = (first.bytes, 1);
        let most = if first.is_probe { 1 } else { most };
        // In one go no more than a millisecond of the rate, or two packets.
        let most_bytes = session.connections.bytes_at_once().max(2 * first.bytes as u64);
        let like = Like { most_bytes: first.bytes, ecn: first.ecn };
        while count < most && out.len() - bytes >= first.bytes && (bytes + first.bytes) as u64 <= most_bytes {
            let Some(next) = session.poll_transmit(now, &mut out[bytes..], Some(like)) else { break };
            (bytes, count) = (bytes + next.bytes, count + 1);
            if next.bytes < first.bytes {
                break;
            }
        }
        Some(Batch { route: self.sessions[&id].route, ecn: first.ecn, bytes, datagram_bytes: first.bytes })
    }

    /// Something happened to a session: it may have something to send, and other deadlines.
    pub(super) fn touch(&mut self, id: u32) {
        if self.take_events(id) {
            self.agenda.touch(id);
        }
    }

    /// Takes the events of a session; whether there is such a session.
    pub(super) fn take_events(&mut self, id: u32) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        self.agenda.has_told(id);
        self.counts.dropped_datagrams += std::mem::take(&mut session.connections.dropped_datagrams);
        let proven = session.proven();
        if proven != session.told {
            session.told = proven;
            self.paths.push_back((id, proven));
        }
        while let Some((place, event)) = session.connections.poll_event() {
            if matches!(event, Event::Connected | Event::Closed | Event::Aborted(_)) {
                debug!(parent: &session.span, ?place, ?event, "connection");
            }
            if let Event::RateLowered(rate_bps) = event {
                warn!(
                    parent: &session.span, rate_bps,
                    "the path carries less than the rate that was set: more than a fifth was lost, and less of it at a lower rate"
                );
            }
            if matches!(event, Event::Closed | Event::Aborted(_)) {
                session.connections.on_ended(place, event);
            }
            self.events.push_back((ConnectionId { session: id, place }, event));
        }
        true
    }

    /// A session has nothing more to send: sets its next deadline.
    fn settle(&mut self, id: u32, now: Time) {
        let Some(session) = self.sessions.get(&id) else { return self.agenda.remove(id) };
        if !session.connections.has_datagrams() {
            self.with_datagrams.remove(&id);
        }
        let mut due = session.poll_timeout();
        // `[Y12]`
        if session.connections.is_idle() && !session.connections.has_datagrams() {
            let forget = session.last_opened.max(session.last_datagram) + self.config.idle;
            if now >= forget {
                return self.remove(id, Abort::NoAnswer);
            }
            due = due.min(forget);
        }
        self.agenda.settle(id, due);
    }
}
