//! Handshakes that this side begins and answers, and cookies where there are many.

use farlink_core::Time;
use farlink_core::endpoint::Ecn;
use farlink_core::event::Abort;
use farlink_core::wire::aerotp::sealed::{Algorithm, Cover, OuterPacket};
use tracing::{debug, warn};

use crate::seal::cookie::{self, CookieMaker, CookieSeal};
use crate::seal::hello::{Checked, Initiation, Initiator, Responder, Response};
use crate::seal::mac::{HelloMac, Mac};
use crate::seal::{PublicKey, Secret, random};

use super::path_mtu::PathMtu;
use super::renewal::Renewals;
use super::session::{self, Session};
use super::{Batch, Mux, OpenError, Route, Trust};

/// Key agreements in a second from which on cookies are asked for, and how many cookies wait to be sent.
const MOST_AGREEMENTS: u32 = 100;
pub(super) const MOST_GIVEN: usize = 64;

/// Resets in a second: who has restarted tells so many peers within a round trip, and a flood of strays costs no more answers.
pub(super) const MOST_RESETS: u32 = 1000;

/// How many initiations have cost key agreements in the present second, and how many resets were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) since: Time,
    agreements: u32,
    resets: u32,
}

impl Load {
    fn count(&mut self, now: Time) {
        self.renew(now);
        self.agreements += 1;
    }

    fn is_high(&mut self, now: Time) -> bool {
        self.renew(now);
        self.agreements >= MOST_AGREEMENTS
    }

    /// Whether one more reset may be sent.
    pub(super) fn takes_reset(&mut self, now: Time) -> bool {
        self.renew(now);
        self.resets += 1;
        self.resets <= MOST_RESETS
    }

    fn renew(&mut self, now: Time) {
        if now >= self.since + Time::from_secs(1) {
            *self = Load { since: now, agreements: 0, resets: 0 };
        }
    }
}

impl Mux {
    /// Begins a session. `[Y2]`
    pub(super) fn call(&mut self, now: Time, peer: &PublicKey, route: Route) -> Result<u32, OpenError> {
        if self.sessions.len() >= self.config.sessions {
            return Err(OpenError::Full);
        }
        let own_id = self.new_id();
        let mut early = Secret::default();
        random::fill(&mut *early);
        let initiation = Initiation {
            counter: self.counters.next_own((self.unix_us)(), &mut *self.store)?,
            early,
            connection_id: own_id,
            reset_token: self.reset.token(own_id),
            algorithm: preferred(),
            permits_clear: self.config.insecure,
        };
        let begun = Initiator::new(&self.config.key, peer, &self.config.shared, &initiation);
        let code = Checked::read(&HelloMac::to(peer), &begun.1).expect("it was just written").code;
        self.asked.insert(code, own_id);
        let sizes = (PathMtu::new(self.config.packet_bytes), self.renewals(peer), self.moved, self.own_link);
        let mut session = Session::calling((own_id, code), *peer, route, begun, &initiation, sizes);
        (session.last_opened, session.began) = (now, now);
        debug!(parent: &session.span, "handshake begun");
        self.sessions.insert(own_id, session);
        Ok(own_id)
    }

    fn renewals(&self, peer: &PublicKey) -> Renewals {
        Renewals::new(self.own.clone(), *peer, self.config.key_life)
    }

    fn new_id(&self) -> u32 {
        loop {
            let mut bytes = [0; 4];
            random::fill(&mut bytes);
            let id = u32::from_ne_bytes(bytes);
            if id != 0 && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    /// A hello has come. Returns the session whose packet may stand behind it.
    pub(super) fn on_hello(&mut self, now: Time, route: Route, packet: &OuterPacket, bytes: usize) -> Option<u32> {
        if let Some(code) = cookie::code_of(packet.behind()) {
            return self.on_cookie(&code, packet.behind());
        }
        let Some(checked) = Checked::read(&self.own_code, packet.behind()) else {
            self.counts.unasked += 1;
            return None;
        };
        if checked.is_initiation() {
            if let Some(&known) = self.answered.get(&checked.code) {
                self.sessions.get_mut(&known)?.on_repeated_initiation(bytes);
                return Some(known);
            }
            return self.answer(now, route, &checked, bytes);
        }
        let id = packet.header().connection_id;
        let keep = self.config.idle;
        let Some(session) = self.sessions.get_mut(&id) else {
            self.counts.stray += 1;
            return None;
        };
        let span = session.span.clone();
        if !span.in_scope(|| session.on_response(now, route, &checked, keep)) {
            self.counts.untrusted += 1;
            return None;
        }
        if let Some(peer_id) = session.peer_id {
            self.by_peer_id.insert(peer_id, id);
        }
        self.asked.remove(&session.code);
        Some(id)
    }

    /// A busy responder has sent a cookie for an initiation of this side. `[Y15]`
    fn on_cookie(&mut self, code: &Mac, content: &[u8]) -> Option<u32> {
        let session = self.asked.get(code).and_then(|id| self.sessions.get_mut(id));
        let opened = session.and_then(|session| Some((CookieSeal::of(&session.peer).open(code, content)?, session)));
        let Some((cookie, session)) = opened else {
            self.counts.stray += 1;
            return None;
        };
        session.on_cookie(&cookie);
        Some(session.own_id)
    }

    /// Whether an initiation may cost key agreements; if not, a cookie goes back. `[Y15]`
    fn may_agree(&mut self, now: Time, route: Route, checked: &Checked<'_>) -> bool {
        if !self.load.is_high(now) {
            return true;
        }
        let cookies = self.cookies.get_or_insert_with(|| CookieMaker::new(now));
        if checked.has_cookie(&cookies.taken(now, &route.remote)) {
            return true;
        }
        self.counts.without_cookie += 1;
        if self.given.len() < MOST_GIVEN {
            let cookie = cookies.cookie(now, &route.remote);
            self.given.push_back((route, self.cookie_seal.seal(&checked.code, &cookie)));
        }
        false
    }

    pub(super) fn send_cookie(&mut self, out: &mut [u8]) -> Option<Batch> {
        let (route, content) = self.given.pop_front()?;
        let packet = session::hello_packet(&content, 0);
        out.get_mut(..packet.len())?.copy_from_slice(&packet);
        Some(Batch { route, ecn: Ecn::NotCapable, bytes: packet.len(), datagram_bytes: packet.len() })
    }

    /// Answers a new initiation. `[Y3]`, `[Y5]`
    fn answer(&mut self, now: Time, route: Route, checked: &Checked<'_>, bytes: usize) -> Option<u32> {
        if !self.may_agree(now, route, checked) {
            return None;
        }
        if self.sessions.len() >= self.config.sessions || self.half_open() >= self.config.half_open {
            self.make_room(now);
            if self.sessions.len() >= self.config.sessions || self.half_open() >= self.config.half_open {
                self.counts.full += 1;
                return None;
            }
        }
        self.load.count(now);
        let responder = Responder::read(&self.config.key, &self.config.shared, checked);
        let responder = responder.filter(|responder| match &self.config.trust {
            Trust::Anyone => true,
            Trust::Keys(keys) => keys.contains(&responder.peer),
        });
        let Some(responder) = responder else {
            self.counts.untrusted += 1;
            return None;
        };
        let (peer, initiation) = (responder.peer, responder.initiation.clone());
        // Data of a handshake whose counter cannot be kept would be delivered now, and once more if a recording of its early packets came
        // after a restart.
        let takes_early = match &self.config.trust {
            Trust::Anyone => Ok(false),
            Trust::Keys(_) => self.counters.take(&peer, initiation.counter, &mut *self.store),
        };
        let takes_early = takes_early.inspect_err(|error| {
            warn!(%peer, %error, "the counter of a handshake cannot be kept, and it is not answered; free space on the disk of the keys");
            self.counts.full += 1;
        });
        let takes_early = takes_early.ok()?;
        self.counts.repeated_hellos += u64::from(!takes_early);
        let own_id = self.new_id();
        let response = Response {
            connection_id: own_id,
            reset_token: self.reset.token(own_id),
            algorithm: agreed(initiation.algorithm),
            takes_early,
            cover: if self.config.insecure && initiation.permits_clear { Cover::Clear } else { Cover::Seal },
        };
        let answered = responder.answer(&response);
        let (path_mtu, renewals) = (PathMtu::new(self.config.packet_bytes), self.renewals(&peer));
        let sizes = (path_mtu, renewals, self.config.idle, self.moved, self.own_link);
        let mut session =
            Session::answering(now, (own_id, checked.code), peer, route, &initiation, &response, answered, sizes);
        session.on_repeated_initiation(bytes);
        debug!(parent: &session.span, takes_early, "handshake answered");
        self.answered.insert(checked.code, own_id);
        self.by_peer_id.insert(initiation.connection_id, own_id);
        self.sessions.insert(own_id, session);
        Some(own_id)
    }

    fn half_open(&self) -> usize {
        self.sessions.values().filter(|session| session.is_half_open() && !session.is_calling()).count()
    }

    /// Forgets half-open sessions that have been silent for a while.
    fn make_room(&mut self, now: Time) {
        let silent: Vec<u32> = self
            .sessions
            .values()
            .filter(|it| it.is_half_open() && !it.is_calling() && now >= it.last_opened + Time::from_secs(10))
            .map(|it| it.own_id)
            .collect();
        silent.into_iter().for_each(|id| self.remove(id, Abort::NoAnswer));
    }
}

/// AES where the processor has instructions for it, ChaCha20 elsewhere.
pub(crate) fn preferred() -> Algorithm {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    let has_aes = std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    let has_aes = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    let has_aes = false;
    if has_aes { Algorithm::Aes256Gcm } else { Algorithm::ChaCha20Poly1305 }
}

/// That of both directions, by what the initiator prefers.
pub(crate) fn agreed(by_initiator: Algorithm) -> Algorithm {
    if preferred() == by_initiator { by_initiator } else { Algorithm::ChaCha20Poly1305 }
}
