//! The keys that seal packets: the AEADs of the crate `ring`, and keys derived with HKDF (RFC 5869).

use std::fmt;

use farlink_core::wire::aerotp::sealed::{Algorithm, NONCE_BYTES, Nonce, PacketKey, Tag};
use ring::aead::{self, Aad, LessSafeKey, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

/// Bytes of a secret, from which key, IV and the next secret are derived.
pub(crate) const SECRET_BYTES: usize = 32;

/// A secret that is overwritten when it is dropped.
pub(crate) type Secret = Zeroizing<[u8; SECRET_BYTES]>;

/// A key for the packets of one direction.
pub(crate) struct SealingKey {
    algorithm: Algorithm,
    key: LessSafeKey,
    iv: Nonce,
    secret: Secret,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({:?})", self.algorithm)
    }
}

impl SealingKey {
    /// Derives key and IV from a secret.
    pub(crate) fn new(algorithm: Algorithm, secret: Secret) -> Self {
        let mut key = Zeroizing::new([0; SECRET_BYTES]);
        let mut iv = [0; NONCE_BYTES];
        expand(&secret, b"farlink key", &mut *key);
        expand(&secret, b"farlink iv", &mut iv);
        let aead = match algorithm {
            Algorithm::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
            Algorithm::Aes256Gcm => &aead::AES_256_GCM,
        };
        let key = LessSafeKey::new(UnboundKey::new(aead, &*key).expect("both take keys of 32 bytes"));
        SealingKey { algorithm, key, iv, secret }
    }
}

impl PacketKey for SealingKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn iv(&self) -> &Nonce {
        &self.iv
    }

    fn seal(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8]) -> Tag {
        #[cfg(test)]
        nonces::note(&self.secret, &self.iv, nonce);
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(associated), content);
        tag.expect("a datagram is shorter than the limit of either AEAD")
            .as_ref()
            .try_into()
            .expect("tags have 16 bytes")
    }

    fn open(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8], tag: &Tag) -> bool {
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let tag = aead::Tag::from(*tag);
        self.key.open_in_place_separate_tag(nonce, Aad::from(associated), tag, content, 0..).is_ok()
    }

    fn next(&self) -> Self {
        let mut secret = Secret::default();
        expand(&self.secret, b"farlink next", &mut *secret);
        SealingKey::new(self.algorithm, secret)
    }
}

/// Derives as many bytes from a secret as `out` has. The secrets are uniformly random, so HKDF's first step is not needed.
pub(crate) fn expand(secret: &[u8; SECRET_BYTES], label: &[u8], out: &mut [u8]) {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
    let derived = secret.expand(&[label], Length(out.len())).and_then(|derived| derived.fill(out));
    derived.expect("HKDF gives up to 8160 bytes");
}

/// Whether a thread has used a nonce twice.
#[cfg(test)]
pub(crate) mod nonces {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::{NONCE_BYTES, Nonce, SECRET_BYTES};

    thread_local! {
        /// The last number that each key has sealed, while they are watched.
        static LAST: RefCell<Option<HashMap<[u8; SECRET_BYTES], u128>>> = const { RefCell::new(None) };
    }

    /// From now on each key has to seal ever higher numbers.
    pub(crate) fn watch() {
        LAST.set(Some(HashMap::new()));
    }

    /// How many keys have sealed something since.
    pub(crate) fn keys() -> usize {
        LAST.with_borrow(|last| last.as_ref().map_or(0, HashMap::len))
    }

    pub(super) fn note(secret: &[u8; SECRET_BYTES], iv: &Nonce, nonce: &Nonce) {
        let mut number = [0; 16];
        (0..NONCE_BYTES).for_each(|place| number[16 - NONCE_BYTES + place] = iv[place] ^ nonce[place]);
        let number = u128::from_be_bytes(number);
        LAST.with_borrow_mut(|last| {
            let before = last.as_mut().and_then(|last| last.insert(*secret, number));
            assert!(before < Some(number) || before.is_none(), "a key seals {number} after {before:?}");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(algorithm: Algorithm, byte: u8) -> SealingKey {
        SealingKey::new(algorithm, Zeroizing::new([byte; SECRET_BYTES]))
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_only() {
        for algorithm in [Algorithm::ChaCha20Poly1305, Algorithm::Aes256Gcm] {
            let (own, other) = (key(algorithm, 1), key(algorithm, 2));
            let mut content = *b"content";
            let tag = own.seal(&[3; 12], b"header", &mut content);
            assert_ne!(content, *b"content");
            for (other, nonce, associated) in
                [(&other, [3; 12], b"header"), (&own, [4; 12], b"header"), (&own, [3; 12], b"Header")]
            {
                assert!(!other.open(&nonce, associated, &mut content.clone(), &tag));
            }
            assert!(own.open(&[3; 12], b"header", &mut content, &tag));
            assert_eq!(content, *b"content");
        }
    }

    #[test]
    fn each_phase_has_another_key_and_both_sides_the_same() {
        let phases = |mut key: SealingKey| {
            let mut tags = Vec::new();
            for _ in 0..4 {
                tags.push(key.seal(&[0; 12], b"", &mut [0; 5]));
                key = key.next();
            }
            tags
        };
        let tags = phases(key(Algorithm::Aes256Gcm, 1));
        assert_eq!(tags, phases(key(Algorithm::Aes256Gcm, 1)));
        for (place, tag) in tags.iter().enumerate() {
            assert!(!tags[..place].contains(tag));
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        assert_eq!(format!("{:?}", key(Algorithm::Aes256Gcm, 1)), "SealingKey(Aes256Gcm)");
    }
}
