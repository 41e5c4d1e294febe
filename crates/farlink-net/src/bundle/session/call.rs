//! Handshakes that this end begins: the first one, after a reset or a silence, and for new keys.

use farlink_core::Time;

use crate::mux::preferred;
use crate::seal::cookie::CookieSeal;
use crate::seal::hello::{Checked, Initiation, Initiator, Protocol, set_cookie};
use crate::seal::mac::{HelloMac, Mac};
use crate::seal::versions::{VersionMac, proof_of};
use crate::seal::{Secret, random};

use super::keys::Keys;
use super::{Event, Fault, MOST_PATHS, Session, packet};

/// An initiation that waits for its answer.
#[derive(Debug)]
pub(super) struct Call {
    initiator: Initiator,
    content: Vec<u8>,
    code: Mac,
    own_id: u32,
    is_renewal: bool,
    sent: u32,
    pub(super) due: Time,
}

/// The time between the first two hellos; later ones are twice as far apart, up to the longest.
const FIRST_WAIT: Time = Time::from_secs(1);
const LONGEST_WAIT: Time = Time::from_secs(10);
/// So many hellos take only the paths that are no last resort, those of new keys only the path that brought something last.
const ON_GOOD_PATHS: u32 = 2;
/// After so many hellos somebody is told, and
const MOST_UNANSWERED: u32 = 4;
/// after so many another handshake begins.
const MOST_SENT: u32 = 8;
/// A key that has sealed less lives up to an hour. `[J6]`
const IDLE_BYTES: u64 = 1_000_000;
const LONGEST_LIFE: Time = Time::from_secs(3600);

impl Session {
    /// Begins a handshake.
    pub(super) fn begin(&mut self, now: Time, is_renewal: bool) {
        let own_id = self.new_id();
        let counter = match self.counters.next_own((self.unix_us)(), &mut *self.store) {
            Ok(counter) => counter,
            Err(error) => {
                self.retry = now + LONGEST_WAIT;
                return self.note(Event::Fault(Fault::Store(error.to_string())));
            }
        };
        let mut early = Secret::default();
        random::fill(&mut *early);
        let initiation = Initiation {
            counter,
            early,
            connection_id: own_id,
            reset_token: self.reset.token(own_id),
            algorithm: preferred(),
            permits_clear: false,
        };
        let (key, peer, shared) = (&self.config.key, &self.config.peer, &self.config.shared);
        let (initiator, content) = Initiator::of(Protocol::Bundle, key, peer, shared, &initiation);
        let code = Checked::read(&HelloMac::to(peer), &content).expect("it was just written").code;
        self.call = Some(Call { initiator, content, code, own_id, is_renewal, sent: 0, due: now });
    }

    /// Whether there is a way to the peer.
    pub(super) fn has_way(&self) -> bool {
        self.paths.iter().any(|path| path.is_there)
    }

    /// Sends hellos if they are due. `[J2]`
    pub(super) fn send_hellos(&mut self, now: Time) {
        if !self.has_way() {
            return;
        }
        let Some(call) = self.call.as_mut().filter(|call| now >= call.due) else { return };
        let wait = FIRST_WAIT.times(1 << call.sent.min(4));
        call.due = now + if wait < LONGEST_WAIT { wait } else { LONGEST_WAIT };
        call.sent += 1;
        let (sent, is_renewal, content) = (call.sent, call.is_renewal, call.content.clone());
        let is_early = sent <= ON_GOOD_PATHS;
        let is_only_last = self.paths.iter().all(|path| path.is_last_resort || !path.is_there);
        for path in 0..MOST_PATHS as u8 {
            let own = &self.paths[usize::from(path)];
            let is_last_one = is_renewal && self.paths[usize::from(self.last_path)].is_there;
            let is_spared =
                is_early && if is_last_one { path != self.last_path } else { own.is_last_resort && !is_only_last };
            if let Some(to) = own.address.proven().filter(|_| own.is_there && !is_spared) {
                self.queue(to, packet::own_hello(path, 0, &content));
            }
        }
        if sent == MOST_UNANSWERED {
            self.note(Event::Fault(Fault::Unanswered));
        }
        if sent >= MOST_SENT {
            let due = self.call.as_ref().map_or(now, |call| call.due);
            self.begin(now, false);
            if let Some(call) = &mut self.call {
                (call.sent, call.due) = (ON_GOOD_PATHS, due);
            }
        }
    }

    pub(super) fn on_response(&mut self, now: Time, path: u8, to: u32, checked: &Checked<'_>) {
        let Some(call) = self.call.as_mut().filter(|call| call.own_id == to) else {
            self.counts.stray += 1;
            return;
        };
        let Some((response, keys)) = call.initiator.finish(checked) else {
            self.counts.refused_hellos += 1;
            return;
        };
        let is_renewal = call.is_renewal && self.current.is_some();
        let keys = Keys::new(now, (call.own_id, response.connection_id), response.reset_token, keys);
        self.call = None;
        self.install(now, Some(keys));
        // The peer has to hear something under the new keys before it uses them; on each path, if it may have forgotten where this end is.
        for (number, own) in (0..).zip(&mut self.paths) {
            if own.is_there && (!is_renewal || number == path) {
                own.address.ask_again(now);
            }
        }
    }

    /// A busy peer has sent a cookie for the initiation.
    pub(super) fn on_cookie(&mut self, now: Time, code: &Mac, content: &[u8]) {
        let opened = self.call.as_mut().filter(|call| call.code == *code);
        let opened = opened.and_then(|call| Some((CookieSeal::of(&self.config.peer).open(code, content)?, call)));
        let Some((cookie, call)) = opened else {
            self.counts.stray += 1;
            return;
        };
        set_cookie(&mut call.content, &cookie);
        call.due = now;
    }

    /// A host of another version has answered: the proof shows that it has read the initiation.
    pub(super) fn on_versions(&mut self, content: &[u8]) {
        let Some(call) = &self.call else { return };
        let own = packet::own_hello(0, 0, &call.content);
        let versions = VersionMac::of(&self.config.peer).read(content);
        if let (Some(versions), Some(proof)) = (versions, proof_of(&own))
            && content.starts_with(proof)
        {
            self.note(Event::Fault(Fault::OtherVersion(versions.to_vec())));
        }
    }

    /// When the present keys should be followed by others.
    pub(super) fn renewal_due(&self) -> Time {
        let Some(keys) = &self.current else { return Time::NEVER };
        if keys.are_worn() {
            return Time::ZERO;
        }
        let is_idle = keys.sealed_bytes < IDLE_BYTES;
        keys.since + if is_idle && self.config.key_life < LONGEST_LIFE { LONGEST_LIFE } else { self.config.key_life }
    }
}
