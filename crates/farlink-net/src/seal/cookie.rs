//! Cookies: under load, who asks for key agreements has to show first that it receives at its address (WireGuard, section 5.4.7).
//! `[Y15]`

use std::net::{IpAddr, SocketAddr};

use blake2::Blake2s256;
use blake2::digest::Digest;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use farlink_core::Time;

use super::identity::PublicKey;
use super::mac::{MAC_BYTES, Mac, mac};
use super::random;

/// The first byte of the content of such a hello.
pub(crate) const COOKIE: u8 = 3;
const NONCE_BYTES: usize = 24;
const SEALED_BYTES: usize = MAC_BYTES + 16;
const CONTENT_BYTES: usize = 1 + MAC_BYTES + NONCE_BYTES + SEALED_BYTES;

/// A secret makes cookies for this long, and they are taken for as long again.
const LIFETIME: Time = Time::from_secs(120);

/// Secret of a host's cookies. It keeps no state for those that it gave one.
#[derive(Debug)]
pub(crate) struct CookieMaker {
    secret: [u8; 32],
    before: [u8; 32],
    since: Time,
}

impl CookieMaker {
    pub(crate) fn new(now: Time) -> Self {
        let mut maker = CookieMaker { secret: [0; 32], before: [0; 32], since: now };
        random::fill(&mut maker.secret);
        random::fill(&mut maker.before);
        maker
    }

    /// The cookie of an address and port.
    pub(crate) fn cookie(&mut self, now: Time, remote: &SocketAddr) -> Mac {
        self.renew(now);
        of(&self.secret, remote)
    }

    /// The cookies that are taken from an address and port.
    pub(crate) fn taken(&mut self, now: Time, remote: &SocketAddr) -> [Mac; 2] {
        self.renew(now);
        [of(&self.secret, remote), of(&self.before, remote)]
    }

    fn renew(&mut self, now: Time) {
        if now >= self.since + LIFETIME {
            self.before = self.secret;
            random::fill(&mut self.secret);
            self.since = now;
        }
    }

    /// The clock reads less from now on.
    pub(crate) fn move_origin(&mut self, by: Time) {
        self.since = self.since.since(by);
    }
}

fn of(secret: &[u8; 32], remote: &SocketAddr) -> Mac {
    let ip = match remote.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    mac(secret, &[&ip.octets()[..], &remote.port().to_be_bytes()].concat())
}

/// Seals cookies with the public key of the host that gives them, so that who sees no hello cannot read them.
pub(crate) struct CookieSeal(XChaCha20Poly1305);

impl std::fmt::Debug for CookieSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieSeal")
    }
}

impl CookieSeal {
    pub(crate) fn of(giver: &PublicKey) -> Self {
        let key: [u8; 32] =
            Blake2s256::new_with_prefix(b"farlink cookie").chain_update(giver.as_bytes()).finalize().into();
        CookieSeal(XChaCha20Poly1305::new(&key.into()))
    }

    /// The content of a hello with the cookie, for the initiation with this code.
    pub(crate) fn seal(&self, code: &Mac, cookie: &Mac) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        random::fill(&mut nonce);
        let sealed = self.0.encrypt(XNonce::from_slice(&nonce), Payload { msg: cookie, aad: code });
        [&[COOKIE][..], code, &nonce, &sealed.expect("a cookie is short")].concat()
    }

    /// The cookie for the initiation with this code.
    pub(crate) fn open(&self, code: &Mac, content: &[u8]) -> Option<Mac> {
        let rest = content.get(1 + MAC_BYTES..)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let cookie = self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: code }).ok()?;
        cookie.try_into().ok()
    }
}

/// The code of the initiation that a hello with a cookie answers; `None` if it is no such hello.
pub(crate) fn code_of(content: &[u8]) -> Option<Mac> {
    (content.len() == CONTENT_BYTES && content[0] == COOKIE).then(|| content[1..].first_chunk().copied())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::StaticKey;

    #[test]
    fn a_cookie_is_for_one_address_and_a_while() {
        let (one, other) = (SocketAddr::from(([127, 0, 0, 1], 1)), SocketAddr::from(([127, 0, 0, 1], 2)));
        let mut maker = CookieMaker::new(Time::ZERO);
        let cookie = maker.cookie(Time::ZERO, &one);
        assert!(!maker.taken(Time::ZERO, &other).contains(&cookie));
        for (seconds, is_taken) in [(0, true), (119, true), (121, true), (230, true), (242, false)] {
            assert_eq!(maker.taken(Time::from_secs(seconds), &one).contains(&cookie), is_taken, "{seconds} s");
        }
    }

    #[test]
    fn only_who_sent_the_hello_opens_its_cookie() {
        let key = StaticKey::generate().public();
        let content = CookieSeal::of(&key).seal(&[1; 16], &[2; 16]);
        assert_eq!(code_of(&content), Some([1; 16]));
        assert_eq!(CookieSeal::of(&key).open(&[1; 16], &content), Some([2; 16]));
        assert_eq!(CookieSeal::of(&key).open(&[3; 16], &content), None);
        assert_eq!(CookieSeal::of(&StaticKey::generate().public()).open(&[1; 16], &content), None);
        for bytes in 0..content.len() {
            assert_eq!(code_of(&content[..bytes]), None);
            assert_eq!(CookieSeal::of(&key).open(&[1; 16], &content[..bytes]), None);
        }
    }
}
