//! The AEAD as an argument: two algorithms, their limits, and the nonce.

/// Length of the tag of either AEAD.
pub const TAG_BYTES: usize = 16;
/// Length of the nonce of either AEAD.
pub const NONCE_BYTES: usize = 12;

/// The tag of an AEAD, which stands behind the ciphertext.
pub type Tag = [u8; TAG_BYTES];
/// A nonce: an AEAD takes each one once with one key.
pub type Nonce = [u8; NONCE_BYTES];

/// Packets up to this length are short for the limits of AES-GCM.
const SHORT_BYTES: usize = 1 << 11;

/// The AEADs that seal. `[O10]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 8439, section 2.8.
    ChaCha20Poly1305,
    /// With a key of 256 bits and a tag of 128: RFC 5116, section 5.2.
    Aes256Gcm,
}

impl Algorithm {
    /// How many packets one key may seal of which none has more than `most_bytes` bytes of ciphertext and tag. `[O11]`
    pub const fn most_sealed(self, most_bytes: usize) -> u64 {
        match self {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# For AEAD_CHACHA20_POLY1305, the confidentiality limit is greater than the number of possible packets (2^62)
            Algorithm::ChaCha20Poly1305 => 1 << 62,
            //= https://www.rfc-editor.org/rfc/rfc9001#appendix-B.1
            //# Endpoints that do not send packets larger than 2^11 bytes cannot protect more than 2^28 packets
            Algorithm::Aes256Gcm if most_bytes <= SHORT_BYTES => 1 << 28,
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# For AEAD_AES_128_GCM and AEAD_AES_256_GCM, the confidentiality limit is 2^23 encrypted packets
            Algorithm::Aes256Gcm => 1 << 23,
        }
    }

    /// How many packets with a wrong tag a side may try to open in one connection, over all keys: RFC 9001, section
    /// 6.6, has 2^36 and 2^52. `[O11]`
    pub const fn most_refused(self) -> u64 {
        match self {
            Algorithm::ChaCha20Poly1305 => 1 << 36,
            Algorithm::Aes256Gcm => 1 << 52,
        }
    }
}

/// A key for the packets of one direction, with its AEAD.
///
/// Implemented by the crate that has the AEADs, for example with `encrypt_in_place_detached` of RustCrypto.
pub trait PacketKey {
    /// Its AEAD.
    fn algorithm(&self) -> Algorithm;

    /// Its IV, which the handshake derives beside the key; no part of it is sent.
    fn iv(&self) -> &Nonce;

    /// Encrypts `content` in place and returns the tag of content and `associated` data.
    fn seal(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8]) -> Tag;

    /// Decrypts `content` in place if the tag is right. If this is `false`, `content` may have any value, and nothing
    /// of it is used.
    #[must_use]
    fn open(&self, nonce: &Nonce, associated: &[u8], content: &mut [u8], tag: &Tag) -> bool;

    /// The key of the next phase, derived from this one alone. `[O12]`
    #[must_use]
    fn next(&self) -> Self;
}

/// The nonce of a packet: the IV, its last eight bytes xored with the packet number (as RFC 9001, section 5.3). `[O7]`
pub fn nonce(iv: &Nonce, number: u64) -> Nonce {
    let mut nonce = *iv;
    for (byte, of_number) in nonce[NONCE_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= of_number;
    }
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.5, prints both the IV and the nonce of a packet.
    #[test]
    fn the_nonce_of_rfc_9001_appendix_a_5() {
        let iv = [0xe0, 0x45, 0x9b, 0x34, 0x74, 0xbd, 0xd0, 0xe4, 0x4a, 0x41, 0xc1, 0x44];
        assert_eq!(nonce(&iv, 654_360_564), [0xe0, 0x45, 0x9b, 0x34, 0x74, 0xbd, 0xd0, 0xe4, 0x6d, 0x41, 0x7e, 0xb0]);
    }

    #[test]
    fn long_packets_have_the_lower_limit() {
        assert_eq!(Algorithm::Aes256Gcm.most_sealed(2048), 1 << 28);
        assert_eq!(Algorithm::Aes256Gcm.most_sealed(2049), 1 << 23);
    }
}
