//! A host that has restarted tells so the peers of sessions that it has forgotten. `[Y11]`

use farlink_core::Time;
use farlink_core::endpoint::Ecn;
use farlink_core::event::Abort;
use farlink_core::wire::aerotp::sealed::{KeyPhase, Kind, OUTER_BYTES, OuterHeader};

use crate::seal::mac::MAC_BYTES;

use super::{Batch, Mux, Route};

/// Bytes of the packet of a reset, and how many wait to be sent.
pub(super) const RESET_BYTES: usize = OUTER_BYTES + 4 + MAC_BYTES;
pub(super) const MOST_WAITING_RESETS: usize = 64;

impl Mux {
    /// A packet of a session that this side does not know: perhaps it has restarted. `[Y11]`
    pub(super) fn on_stray(&mut self, now: Time, route: Route, id: u32, bytes: usize) {
        self.counts.stray += 1;
        let is_waiting = |packet: &[u8]| packet[OUTER_BYTES..].starts_with(&id.to_be_bytes());
        let has_room = self.resets.len() < MOST_WAITING_RESETS && !self.resets.iter().any(|it| is_waiting(&it.1));
        if bytes > RESET_BYTES && has_room && self.load.takes_reset(now) {
            self.resets.push_back((route, self.reset_packet(id)));
        }
    }

    pub(super) fn send_reset(&mut self, out: &mut [u8]) -> Option<Batch> {
        let (route, packet) = self.resets.pop_front()?;
        out.get_mut(..packet.len())?.copy_from_slice(&packet);
        Some(Batch { route, ecn: Ecn::NotCapable, bytes: packet.len(), datagram_bytes: packet.len() })
    }

    pub(super) fn reset_packet(&self, id: u32) -> Vec<u8> {
        let content = [&id.to_be_bytes()[..], &self.reset.token(id)].concat();
        let header = OuterHeader {
            kind: Kind::Reset,
            key_phase: KeyPhase::default(),
            parity_words: 0,
            content_bytes: content.len() as u16,
            connection_id: 0,
            number: 0,
        };
        [&header.encode()[..], &content].concat()
    }

    /// The peer has lost a session, if the token is right. `[Y11]`
    pub(super) fn on_reset(&mut self, _route: &Route, content: &[u8]) {
        let parts = content.split_first_chunk::<4>().and_then(|(id, token)| Some((id, token.first_chunk()?)));
        let id = parts.and_then(|(id, _)| self.by_peer_id.get(&u32::from_be_bytes(*id)).copied());
        let is_right = id
            .zip(parts)
            .is_some_and(|(id, (_, token))| self.sessions.get(&id).is_some_and(|session| session.is_reset(token)));
        match id.filter(|_| is_right) {
            Some(id) => self.remove(id, Abort::PeerRestarted),
            None => self.counts.stray += 1,
        }
    }
}
