//! Handshakes that this end answers, and hellos that it cannot take.

use farlink_core::Time;
use farlink_core::wire::aerotp::sealed::Cover;

use crate::mux::agreed;
use crate::seal::cookie::{self, CookieMaker, CookieSeal};
use crate::seal::hello::{Checked, INITIATION_CONTENT_BYTES, Protocol, RESPONSE_CONTENT_BYTES, Responder, Response};
use crate::seal::mac::Mac;
use crate::seal::versions::{VERSION, VersionMac};

use super::address::Place;
use super::keys::Keys;
use super::{Event, Fault, MOST_AGREEMENTS, Session, packet};

/// The last initiation that was answered, and how.
pub(super) struct Answered {
    code: Mac,
    peer_id: u32,
    content: Vec<u8>,
}

/// Whether a content has the length of a hello: what is anything else names no key.
fn is_like_a_hello(content: &[u8]) -> bool {
    [INITIATION_CONTENT_BYTES, RESPONSE_CONTENT_BYTES].contains(&content.len())
}

impl Session {
    /// A hello of any version has come. `[J12]`
    pub(super) fn on_hello(
        &mut self,
        now: Time,
        from: Place,
        (path, version, to): (u8, u8, u32),
        content: &[u8],
        datagram: &[u8],
    ) {
        if version == 0 {
            return self.on_versions(content);
        }
        if version != VERSION {
            if let Some(content) = VersionMac::of(&self.config.key.public()).answer(datagram) {
                self.note(Event::Fault(Fault::OtherVersion(vec![version])));
                self.queue(from, packet::hello(path, 0, 0, &content));
            }
            return;
        }
        if let Some(code) = cookie::code_of(content) {
            return self.on_cookie(now, &code, content);
        }
        let Some(checked) = Checked::read(&self.own_code, content) else {
            if !is_like_a_hello(content) {
                self.counts.stray += 1;
                return;
            }
            self.counts.refused_hellos += 1;
            return self.note(Event::Fault(Fault::OtherKey(from.remote)));
        };
        match (checked.is_initiation(), self.config.calls) {
            (true, false) => self.answer(now, from, path, &checked),
            (true, true) => self.note(Event::Fault(Fault::BothCall(from.remote))),
            (false, _) => self.on_response(now, path, to, &checked),
        }
    }

    /// Answers an initiation. A repeated one, or a copy that came over another path, gets the same answer again. `[J2]`, `[J3]`
    fn answer(&mut self, now: Time, from: Place, path: u8, checked: &Checked<'_>) {
        if let Some(answered) = self.answered.as_ref().filter(|it| it.code == checked.code) {
            let bytes = packet::own_hello(path, answered.peer_id, &answered.content);
            return self.queue(from, bytes);
        }
        if !self.may_agree(now, from, path, checked) {
            return;
        }
        let Some(responder) = Responder::of(Protocol::Bundle, &self.config.key, &self.config.shared, checked) else {
            self.counts.refused_hellos += 1;
            return self.note(Event::Fault(Fault::OtherSecret(from.remote)));
        };
        if responder.peer != self.config.peer {
            self.counts.refused_hellos += 1;
            return self.note(Event::Fault(Fault::OtherPeer(from.remote, responder.peer)));
        }
        match self.counters.take(&responder.peer, responder.initiation.counter, &mut *self.store) {
            Ok(true) => {}
            Ok(false) => {
                self.counts.refused_hellos += 1;
                return;
            }
            Err(error) => return self.note(Event::Fault(Fault::Store(error.to_string()))),
        }
        let own_id = self.new_id();
        let response = Response {
            connection_id: own_id,
            reset_token: self.reset.token(own_id),
            algorithm: agreed(responder.initiation.algorithm),
            takes_early: false,
            cover: Cover::Seal,
        };
        let (peer_id, peer_token) = (responder.initiation.connection_id, responder.initiation.reset_token);
        let (content, keys) = responder.answer(&response);
        self.pending = Some(Keys::new(now, (own_id, peer_id), peer_token, keys));
        self.queue(from, packet::own_hello(path, peer_id, &content));
        self.answered = Some(Answered { code: checked.code, peer_id, content });
    }

    /// Whether an initiation may cost key agreements; if not, a cookie goes back (as `[Y15]` of sessions).
    fn may_agree(&mut self, now: Time, from: Place, path: u8, checked: &Checked<'_>) -> bool {
        if self.load(now).0 >= MOST_AGREEMENTS {
            let cookies = self.cookies.get_or_insert_with(|| CookieMaker::new(now));
            if !checked.has_cookie(&cookies.taken(now, &from.remote)) {
                let cookie = cookies.cookie(now, &from.remote);
                let content = CookieSeal::of(&self.config.key.public()).seal(&checked.code, &cookie);
                self.queue(from, packet::own_hello(path, 0, &content));
                return false;
            }
        }
        self.load.1 += 1;
        true
    }
}
