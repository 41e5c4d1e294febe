//! Keyed BLAKE2s (RFC 7693): the check of a hello that costs no key agreement, and the tokens of stateless resets.

use blake2::Blake2s256;
use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{Digest, KeyInit, Mac as _};

use super::identity::{PublicKey, StaticKey};

/// Bytes of a code.
pub(crate) const MAC_BYTES: usize = 16;

/// A message authentication code.
pub(crate) type Mac = [u8; MAC_BYTES];

/// The key of the codes in hellos to one receiver, as WireGuard's `mac1`: whoever sends one knows the receiver's public key.
#[derive(Clone, Debug)]
pub(crate) struct HelloMac([u8; 32]);

impl HelloMac {
    pub(crate) fn to(receiver: &PublicKey) -> Self {
        HelloMac(Blake2s256::new_with_prefix(b"farlink hello").chain_update(receiver.as_bytes()).finalize().into())
    }

    pub(crate) fn of(&self, message: &[u8]) -> Mac {
        mac(&self.0, message)
    }

    /// Whether the code is right, in constant time.
    pub(crate) fn is_right(&self, message: &[u8], code: &Mac) -> bool {
        are_equal(&self.of(message), code)
    }
}

/// Key of a side's reset tokens. It is the same after a restart, so a restarted side can end sessions that it has forgotten.
#[derive(Clone)]
pub(crate) struct ResetSecret(zeroize::Zeroizing<[u8; 32]>);

impl ResetSecret {
    pub(crate) fn of(own: &StaticKey) -> Self {
        let mut secret = zeroize::Zeroizing::new([0; 32]);
        super::packet_key::expand(own.private_bytes(), b"farlink reset", &mut *secret);
        ResetSecret(secret)
    }

    /// The token of a connection id that this side has chosen.
    pub(crate) fn token(&self, connection_id: u32) -> Mac {
        mac(&self.0, &connection_id.to_be_bytes())
    }
}

/// Compares in constant time.
pub(crate) fn are_equal(one: &Mac, other: &Mac) -> bool {
    subtle::ConstantTimeEq::ct_eq(&one[..], &other[..]).into()
}

/// The keyed hash of a message.
pub(crate) fn mac(key: &[u8; 32], message: &[u8]) -> Mac {
    let keyed = <Blake2sMac<U16> as KeyInit>::new_from_slice(key).expect("BLAKE2s takes keys up to 32 bytes");
    keyed.chain_update(message).finalize().into_bytes().into()
}
