//! Names and secrets, and what proves them.

use std::fmt;

use md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::lcp::Proof;

/// A secret that two ends share. It is cleared from memory with its last copy, and shown nowhere.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// From its bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Secret(Zeroizing::new(bytes.into()))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is this password; takes as long whatever the answer is.
    pub(super) fn is(&self, password: &[u8]) -> bool {
        // Digests have one length, so that the time does not tell that of the secret.
        digest(&[self.as_bytes()]).ct_eq(&digest(&[password])).into()
    }

    /// Whether a response answers a challenge with it.
    pub(super) fn answers(&self, id: u8, challenge: &[u8], response: &[u8]) -> bool {
        chap_response(id, self, challenge).ct_eq(response).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The response of CHAP (RFC 1994, section 4.1): the MD5 of identifier, secret and challenge.
pub(super) fn chap_response(id: u8, secret: &Secret, challenge: &[u8]) -> [u8; 16] {
    digest(&[&[id], secret.as_bytes(), challenge])
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// A name, and the secret that proves it.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The name, up to 255 bytes.
    pub name: Vec<u8>,
    /// The secret, up to 255 bytes.
    pub secret: Secret,
}

/// Identities of both ends.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// This end, if it can prove itself.
    pub own: Option<Credentials>,
    /// Peers that are known.
    pub peers: Vec<Credentials>,
    /// How a peer has to prove itself, the best way first; empty: anybody may join.
    pub demands: Vec<Proof>,
    /// Whether this end shows its password in the clear to a peer that asks for that (PAP).
    pub shows_password: bool,
}

impl Identities {
    /// How this end can prove itself, the best way first.
    pub(super) fn offers(&self) -> Vec<Proof> {
        match (&self.own, self.shows_password) {
            (None, _) => Vec::new(),
            (Some(_), false) => vec![Proof::ChapMd5],
            (Some(_), true) => vec![Proof::ChapMd5, Proof::Pap],
        }
    }

    /// Whether somebody of this name is known and `proves` holds for its secret. A name that is not known takes as long.
    pub(super) fn is_proven(&self, name: &[u8], proves: impl Fn(&Secret) -> bool) -> bool {
        // Somebody who returns our own answers has our own name.
        let is_own = self.own.as_ref().is_some_and(|own| own.name == name);
        match self.peers.iter().find(|peer| peer.name == name) {
            Some(peer) => proves(&peer.secret) && !is_own,
            None => {
                proves(&Secret::new(*b"nobody"));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let one = Credentials { name: b"ship".to_vec(), secret: Secret::new(*b"canary") };
        let all = Identities { own: Some(one.clone()), peers: vec![one], ..Identities::default() };
        let canary = b"canary".map(|byte| byte.to_string()).join(", ");
        assert!(!format!("{all:?}").contains("canary") && !format!("{all:?}").contains(&canary));
    }

    /// RFC 1321, A.5: MD5 ("abc"), with the identifier "a", the secret "b" and the challenge "c".
    #[test]
    fn the_response_is_the_md5_of_identifier_secret_and_challenge() {
        let response = chap_response(b'a', &Secret::new(*b"b"), b"c");
        assert_eq!(response, 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128.to_be_bytes());
        assert!(Secret::new(*b"b").answers(b'a', b"c", &response));
        assert!(
            !Secret::new(*b"b").answers(b'a', b"c", &response[..15])
                && !Secret::new(*b"x").answers(b'a', b"c", &response)
        );
    }

    #[test]
    fn nobody_is_known_by_a_wrong_name_or_by_ours() {
        let known = |name: &[u8]| Credentials { name: name.to_vec(), secret: Secret::new(*b"secret") };
        let all = Identities {
            own: Some(known(b"vps")),
            peers: vec![known(b"ship"), known(b"vps")],
            ..Identities::default()
        };
        assert!(all.is_proven(b"ship", |secret| secret.is(b"secret")));
        assert!(!all.is_proven(b"ship", |secret| secret.is(b"secret ")));
        assert!(!all.is_proven(b"nobody", |secret| secret.is(b"nobody")));
        assert!(!all.is_proven(b"vps", |secret| secret.is(b"secret")));
    }
}
