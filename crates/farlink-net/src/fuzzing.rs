//! For the fuzzer: what reads handshakes of strangers, and random numbers that repeat. Not compiled otherwise.

pub use crate::custody::fuzzing::{custody_frames, custody_store};
pub use crate::files::frames;
pub use crate::gateway::fuzzing::{gateway_config, gateway_frames, gateway_messages, gateway_socks};
use crate::seal::cookie::{self, CookieSeal};
use crate::seal::hello::{Checked, INITIATION_CONTENT_BYTES, Responder};
use crate::seal::mac::{HelloMac, MAC_BYTES};
use crate::seal::renewal::{Answer, Renewal};
pub use crate::seal::repeatable::restart;
use crate::seal::{PresharedKey, StaticKey};

/// The keys of two hosts that the fuzzer plays against.
pub struct Hosts([StaticKey; 2]);

impl Hosts {
    /// Keys that are the same each time.
    pub fn new() -> Self {
        Hosts([1, 2].map(|byte| StaticKey::from_private(zeroize::Zeroizing::new([byte; 32]))))
    }

    /// Reads the content of a hello: as it is, and with a code that is right, so that it gets as far as the key agreement. What is random
    /// opens nothing.
    pub fn hello(&self, content: &[u8]) {
        let [own, peer] = &self.0;
        let (code, shared) = (HelloMac::to(&own.public()), PresharedKey::default());
        let mut whole = content.to_vec();
        whole.resize(INITIATION_CONTENT_BYTES, 0);
        whole[0] = 1;
        let before = whole.len() - 2 * MAC_BYTES;
        let right = code.of(&whole[..before]);
        whole[before..before + MAC_BYTES].copy_from_slice(&right);
        for content in [content, &whole] {
            if let Some(code) = cookie::code_of(content) {
                assert!(CookieSeal::of(&peer.public()).open(&code, content).is_none());
            }
            if let Some(checked) = Checked::read(&code, content) {
                assert!(Responder::read(own, &shared, &checked).is_none());
            }
        }
    }

    /// Reads messages of a handshake for new keys.
    pub fn renewal(&self, message: &[u8]) {
        use farlink_core::wire::aerotp::sealed::{Algorithm, KeyPhase};
        let ([own, peer], shared) = (&self.0, PresharedKey::default());
        let phases = (Algorithm::Aes256Gcm, KeyPhase::new(1));
        assert!(Answer::to(message, own, &peer.public(), &shared, phases).is_none());
        let (mut renewal, _) = Renewal::begin(own, &peer.public(), &shared, KeyPhase::new(1));
        assert!(renewal.finish(message, Algorithm::Aes256Gcm).is_none());
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self::new()
    }
}
