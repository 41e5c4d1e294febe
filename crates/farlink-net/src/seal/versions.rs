//! The message between hosts without a common version: the only one that every version reads. `[Y23]`

use blake2::Blake2s256;
use blake2::digest::Digest;

use super::identity::PublicKey;
use super::mac::{MAC_BYTES, Mac, are_equal, mac};

/// The version that this host has.
pub(crate) const VERSION: u8 = 1;
/// Where a hello of any version has bytes that nobody guesses, and in versions from 2 on the code behind them.
const PROOF: std::ops::Range<usize> = 14..46;
const CODE_END: usize = PROOF.end + MAC_BYTES;
/// A hello that opens a session is at least so long.
pub(crate) const LEAST_HELLO_BYTES: usize = 64;

/// Bytes that nobody guesses who has not seen the hello.
pub(crate) type Proof = [u8; 32];

/// The key of the codes in what one host and those that begin sessions with it say about versions.
#[derive(Clone, Debug)]
pub(crate) struct VersionMac([u8; 32]);

impl VersionMac {
    /// Of the host that is called.
    pub(crate) fn of(called: &PublicKey) -> Self {
        VersionMac(Blake2s256::new_with_prefix(b"farlink version").chain_update(called.as_bytes()).finalize().into())
    }

    /// The content of an answer to a hello of a version that this host does not have; `None` if the sender does not know the public key
    /// of this host.
    pub(crate) fn answer(&self, hello: &[u8]) -> Option<Vec<u8>> {
        let code: &Mac = hello.get(PROOF.end..CODE_END)?.try_into().ok()?;
        if hello.len() < LEAST_HELLO_BYTES || !are_equal(&mac(&self.0, &hello[..PROOF.end]), code) {
            return None;
        }
        let mut content = [&hello[PROOF], &[VERSION]].concat();
        content.extend(mac(&self.0, &content));
        Some(content)
    }

    /// The versions in an answer, behind the proof; `None` if its code is not that of the called host.
    pub(crate) fn read<'a>(&self, content: &'a [u8]) -> Option<&'a [u8]> {
        let (said, code) = content.split_last_chunk()?;
        let (_, versions) = said.split_first_chunk::<{ PROOF.end - PROOF.start }>()?;
        are_equal(&mac(&self.0, said), code).then_some(versions)
    }
}

/// The proof of a hello.
pub(crate) fn proof_of(hello: &[u8]) -> Option<&Proof> {
    hello.get(PROOF)?.try_into().ok()
}

/// A hello of another version, as far as this one knows it.
#[cfg(test)]
pub(crate) fn foreign_hello(called: &PublicKey, proof: Proof, header: &[u8; 14]) -> Vec<u8> {
    let mut hello = [&header[..], &proof].concat();
    hello.extend(code(called, &hello));
    hello.resize(LEAST_HELLO_BYTES, 0);
    hello
}

/// The code in a hello of another version, or in an answer to one.
#[cfg(test)]
pub(crate) fn code(called: &PublicKey, before: &[u8]) -> Mac {
    mac(&VersionMac::of(called).0, before)
}
