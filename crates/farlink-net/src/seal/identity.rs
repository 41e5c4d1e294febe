//! Identity of a host: its static key pair, the public keys of others, and the pre-shared key.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

/// Bytes of every key here.
pub const KEY_BYTES: usize = 32;

/// A text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no key; a key is 32 bytes in base64, as \"farlink keygen\" prints them")]
pub struct NoKey;

/// A public key of X25519 (RFC 7748), by which a host is known. As text it is base64, as WireGuard's keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// From its bytes.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        PublicKey(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        parse(text).map(|key| PublicKey(*key))
    }
}

/// The private key of a host with its public key. It is overwritten when it is dropped, and never shown.
#[derive(Clone)]
pub struct StaticKey {
    private: Zeroizing<[u8; KEY_BYTES]>,
    public: PublicKey,
}

impl StaticKey {
    /// A new key of the system's random numbers.
    pub fn generate() -> Self {
        let mut private = Zeroizing::new([0; KEY_BYTES]);
        super::random::fill(&mut *private);
        Self::from_private(private)
    }

    /// From the private key.
    pub fn from_private(private: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut pair = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with X25519");
        pair.set(&*private);
        let public = PublicKey(pair.pubkey().try_into().expect("keys of X25519 have 32 bytes"));
        StaticKey { private, public }
    }

    /// Reads the private key in base64.
    ///
    /// # Errors
    /// If the text is none.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        parse(text).map(Self::from_private)
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The private key in base64, for a key file.
    pub fn to_private_text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.private))
    }

    pub(crate) fn private_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.private
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticKey(of {})", self.public)
    }
}

/// A key that both sides have beside their own ones; zero unless one is given. A handshake with it stays secret even from someone who
/// breaks X25519 later, as a quantum computer might.
#[derive(Clone, Default)]
pub struct PresharedKey(Zeroizing<[u8; KEY_BYTES]>);

impl PresharedKey {
    /// From its bytes.
    pub fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        PresharedKey(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Whether both are the same key.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey")
    }
}

impl FromStr for PresharedKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        parse(text).map(PresharedKey)
    }
}

fn parse(text: &str) -> Result<Zeroizing<[u8; KEY_BYTES]>, NoKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| NoKey)?);
    let key = <[u8; KEY_BYTES]>::try_from(&bytes[..]).map_err(|_| NoKey)?;
    Ok(Zeroizing::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748, section 6.1: Alice's keys.
    #[test]
    fn the_public_key_is_that_of_rfc_7748() {
        let key = StaticKey::parse("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=").unwrap();
        assert_eq!(key.public().to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
        assert_eq!(key.to_private_text().as_str(), "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=");
    }

    #[test]
    fn only_32_bytes_in_base64_are_a_key() {
        for text in ["", "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC", "AAAA", "not base64 at all!", "\u{e9}"] {
            assert_eq!(text.parse::<PublicKey>(), Err(NoKey), "{text:?}");
        }
    }

    #[test]
    fn debug_output_shows_no_private_key() {
        let key = StaticKey::generate();
        assert!(!format!("{key:?}").contains(key.to_private_text().as_str()));
        let shared: PresharedKey = key.to_private_text().parse().unwrap();
        assert_eq!(format!("{shared:?}"), "PresharedKey");
    }
}
