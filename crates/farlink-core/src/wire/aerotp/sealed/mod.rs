//! Sealed segments: encrypted and authenticated, behind an outer header (`docs/aerotp.md`, section 10).
//!
//! | bytes | field |
//! |---|---|
//! | 0-1 | version (2 bits, 1), [`Kind`] (2 bits), [`KeyPhase`] (3 bits), words of parity (9 bits) |
//! | 2-3 | bytes of ciphertext and tag |
//! | 4-7 | connection id, which the receiver chose |
//! | 8-11 | packet number, its low 32 bits |
//! | 12-13 | CRC-16 over bytes 0 to 11 |
//! | then | ciphertext, tag of the AEAD (16 bytes), Reed-Solomon parity over both |
//!
//! A [`Sealer`] has the key and the packet numbers of what a side sends, an [`Unsealer`] keys and replay window of what
//! it receives. Order of calls for a datagram that arrives: [`OuterPacket::read`]; the host finds the connection of its
//! [`connection_id`](OuterHeader::connection_id); [`Unsealer::open`].
//!
//! Hosts that both permit it send packets in the clear instead ([`Cover::Clear`]), so that damaged payload can be delivered.
//!
//! Nothing here encrypts: the AEAD is an argument, [`PacketKey`]. Nor is there a handshake, which gives keys and
//! connection ids.

mod algorithm;
mod clear;
mod keys;
mod number;
mod outer;
mod replay;
mod sealer;
mod unsealer;

pub use algorithm::{Algorithm, NONCE_BYTES, Nonce, PacketKey, TAG_BYTES, Tag, nonce};
pub use keys::{KeyPhase, MOST_PHASES_AHEAD};
pub use number::{MOST_NUMBER, expand};
pub use outer::{Kind, OUTER_BYTES, OuterHeader, OuterPacket, foreign};
pub use replay::{ReplayWindow, Stale, WINDOW_NUMBERS};
pub use sealer::{SealError, Sealer, packet_bytes, sealed_bytes};
pub use unsealer::{NotOpened, Opened, Unsealer};

use crate::protocol::aerotp::Fec;

use super::Form;

/// Protection of the content of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cover {
    /// An AEAD. `[O14]`
    #[default]
    Seal,
    /// Checks against damage, and nothing against people. `[O26]`
    Clear,
}

impl Cover {
    fn form(self) -> Form {
        match self {
            Cover::Seal => Form::Sealed,
            Cover::Clear => Form::Clear,
        }
    }

    /// Bytes behind a segment.
    fn tag_bytes(self) -> usize {
        match self {
            Cover::Seal => TAG_BYTES,
            Cover::Clear => 0,
        }
    }
}

/// The code over ciphertext and tag, which has no check of its own: the tag tells whether it was corrected rightly.
/// `[O14]`
fn code(content_bytes: usize, words: u16) -> Fec {
    Fec { payload_bytes: content_bytes as u32, parity_bytes: u32::from(words) * 4, check_bytes: 0 }
}

/// Whether a content is a message of the session: where a segment has its version, it has 0 or ends before. `[O24]`
fn is_message(content: &[u8]) -> bool {
    !content.is_empty() && content.get(VERSION_PLACE).is_none_or(|byte| byte >> 6 == 0)
}

/// The byte of a segment that begins with its version.
const VERSION_PLACE: usize = 12;

#[cfg(test)]
mod tests;
