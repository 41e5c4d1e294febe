//! Hosts that have no version of the protocol in common learn it at once, and no stranger learns anything. `[Y23]`

use farlink_core::Time;
use farlink_core::event::Abort;
use farlink_core::wire::aerotp::sealed::{Kind, OUTER_BYTES, foreign};
use tracing::warn;

use crate::seal::versions::{VERSION, VersionMac, proof_of};

use super::resets::MOST_WAITING_RESETS;
use super::session::{Session, hello_header};
use super::{Mux, Route};

/// The version of answers about versions, in which nothing else is sent.
const NO_VERSION: u8 = 0;

impl Mux {
    /// A packet of another version has come, or none at all.
    pub(super) fn on_foreign(&mut self, now: Time, route: Route, datagram: &[u8]) {
        match foreign(datagram) {
            Some((NO_VERSION, Kind::Hello)) => self.on_versions(&datagram[OUTER_BYTES..]),
            Some((version, Kind::Hello)) if version != VERSION => self.answer_versions(now, route, datagram),
            _ => self.counts.unreadable += 1,
        }
    }

    fn answer_versions(&mut self, now: Time, route: Route, hello: &[u8]) {
        self.counts.other_versions += 1;
        let content = self.versions.answer(hello).filter(|_| self.resets.len() < MOST_WAITING_RESETS);
        let Some(content) = content.filter(|_| self.load.takes_reset(now)) else { return };
        let packet = [&hello_header(content.len(), 0).encode_as(NO_VERSION)[..], &content].concat();
        if packet.len() <= hello.len() {
            self.resets.push_back((route, packet));
        }
    }

    /// The called host has other versions.
    fn on_versions(&mut self, content: &[u8]) {
        // Only sessions that wait for an answer, and of them the one whose hello is repeated: a stranger's answer costs no hash.
        let called = self.asked.values().filter_map(|id| self.sessions.get(id));
        let is_repeated = |session: &&Session| {
            session.hello.as_ref().is_some_and(|hello| proof_of(hello).is_some_and(|proof| content.starts_with(proof)))
        };
        let right = called.into_iter().find(is_repeated).and_then(|session| {
            let versions = VersionMac::of(&session.peer).read(content)?;
            (!versions.contains(&VERSION)).then(|| (session.own_id, versions.to_vec()))
        });
        let Some((id, versions)) = right else {
            self.counts.stray += 1;
            return;
        };
        if let Some(session) = self.sessions.get(&id) {
            warn!(parent: &session.span, ?versions, own = VERSION, "the peer has other versions of the protocol");
        }
        self.remove(id, Abort::OtherVersion);
    }
}
