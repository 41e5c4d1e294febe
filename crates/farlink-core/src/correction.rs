//! A code in each packet that corrects bit errors.
//!
//! A channel passes on which bits of a packet are wrong. A packet with a code survives if the code corrects them:
//! [`PacketCode::mends`] counts errors, and no decoder runs. That is exact for codes that are used up to their guaranteed bound
//! if the decoder gives up beyond it. The few packets that a decoder would turn into another codeword would fail the packet's
//! checksum, so that they are lost as well.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{Count, Whole};

/// Largest number of symbols of a Reed-Solomon codeword over GF(256).
const CODEWORD_BYTES: u32 = 255;
/// Largest number of bit errors that a BCH code corrects in a packet.
const MOST_BITS: u64 = 1000;
/// Largest number of byte errors that a codeword corrects.
const MOST_SYMBOLS: u64 = (CODEWORD_BYTES as u64 - 1) / 2;

/// A code around each packet, headers included, that corrects wrong bits or wrong bytes.
///
/// Either `bits`, a binary BCH code over the packet, or `symbols`, as many Reed-Solomon codewords over GF(256) as the packet
/// needs, interleaved byte by byte. A packet with more errors than the code corrects is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Correction {
    /// Bit errors that are corrected in a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_BITS))]
    pub bits: Option<Count>,
    /// Byte errors that are corrected in each codeword of up to 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_SYMBOLS))]
    pub symbols: Option<Count>,
    /// Bytes that the code adds to a packet on the wire; as many as the code needs unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity_bytes: Option<Whole>,
}

/// The capability of a packet's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketCode {
    /// There is no code.
    #[default]
    None,
    /// Corrects up to this number of wrong bits in the packet.
    Bits(u16),
    /// Corrects up to this number of wrong bytes in each of the interleaved codewords.
    Symbols(u16),
}

impl Correction {
    /// Checks rules that the types cannot express, for packets of up to `largest_bytes`; paths are relative to the correction's
    /// table.
    ///
    /// # Errors
    /// If not exactly one of `bits` and `symbols` is given, or there is no such code.
    pub(crate) fn check(&self, largest_bytes: u64) -> Result<(), ConfigError> {
        const FORMS: &str = "give bits = 1 (a BCH code) or symbols = 8 (Reed-Solomon), and not both";
        let (key, t, most) = match (self.bits, self.symbols) {
            (Some(_), Some(_)) => return Err(ConfigError::new("", "bits and symbols are both given", FORMS)),
            (None, None) => return Err(ConfigError::new("", "neither bits nor symbols is given", FORMS)),
            (Some(bits), None) => ("bits", bits.whole(), MOST_BITS),
            (None, Some(symbols)) => ("symbols", symbols.whole(), MOST_SYMBOLS),
        };
        if t > most {
            let what = format!("{t} is not allowed; allowed: a whole number from 1 to {most}");
            return Err(ConfigError::new(key, what, "correct fewer errors in each packet, or use a code on the link"));
        }
        let bytes = largest_bytes + u64::from(self.parity_bytes(u32::try_from(largest_bytes).unwrap_or(u32::MAX)));
        if bytes > crate::packet_size::LARGEST_PACKET {
            let key = if self.parity_bytes.is_some() { "parity_bytes" } else { key };
            let what = format!("packets have {bytes} bytes with their parity");
            let remedy = format!("packets have at most {} bytes; shorten them", crate::packet_size::LARGEST_PACKET);
            return Err(ConfigError::new(key, what, remedy));
        }
        Ok(())
    }

    /// The capability of the code.
    pub fn code(&self) -> PacketCode {
        let t = |count: Count| u16::try_from(count.whole()).unwrap_or(u16::MAX);
        match (self.bits, self.symbols) {
            (Some(bits), _) => PacketCode::Bits(t(bits)),
            (None, Some(symbols)) => PacketCode::Symbols(t(symbols)),
            (None, None) => PacketCode::None,
        }
    }

    /// Bytes that it adds to a packet of `bytes`.
    pub fn parity_bytes(&self, bytes: u32) -> u32 {
        match self.parity_bytes {
            Some(given) => u32::try_from(given.whole()).unwrap_or(u32::MAX),
            None => self.code().parity_bytes(bytes),
        }
    }
}

impl PacketCode {
    /// Bytes that the code needs for a packet of `bytes`.
    ///
    /// A binary BCH code that corrects t bits has at most m t parity bits, where the whole codeword fits in 2^m - 1 bits (Lin and
    /// Costello, Error Control Coding, section 6.1); a Reed-Solomon codeword that corrects t symbols has 2 t.
    pub fn parity_bytes(self, bytes: u32) -> u32 {
        match self {
            PacketCode::None => 0,
            PacketCode::Bits(t) => {
                let (t, bits) = (u64::from(t), u64::from(bytes) * 8);
                let degree = (3..64).find(|m| bits + m * t < 1 << m).unwrap_or(64);
                (degree * t).div_ceil(8) as u32
            }
            PacketCode::Symbols(t) => {
                let parity = 2 * u32::from(t);
                bytes.div_ceil(CODEWORD_BYTES.saturating_sub(parity).max(1)).saturating_mul(parity)
            }
        }
    }

    /// Number of corrected bits if `wrong_bits` are wrong in a packet of `wire_bytes`, parity included; `None` if the code does
    /// not correct them.
    pub fn mends(self, wire_bytes: u32, wrong_bits: &[u32]) -> Option<u16> {
        let is_mended = match self {
            PacketCode::None => wrong_bits.is_empty(),
            PacketCode::Bits(t) => wrong_bits.len() <= usize::from(t),
            PacketCode::Symbols(t) => {
                let codewords = wire_bytes.div_ceil(CODEWORD_BYTES).max(1);
                (0..codewords).all(|codeword| wrong_bytes(wrong_bits, codeword, codewords) <= u32::from(t))
            }
        };
        is_mended.then(|| u16::try_from(wrong_bits.len()).unwrap_or(u16::MAX))
    }
}

/// Number of wrong bytes in one of the interleaved codewords.
fn wrong_bytes(wrong_bits: &[u32], codeword: u32, codewords: u32) -> u32 {
    let mut last = None;
    let mut count = 0;
    for byte in wrong_bits.iter().map(|bit| bit / 8).filter(|byte| byte % codewords == codeword) {
        count += u32::from(last != Some(byte));
        last = Some(byte);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn parity_matches_the_codes() {
        // [2047, 2036, 3], shortened; [16383, 16369, 3]; two blocks of RS(255, 239).
        assert_eq!(PacketCode::Bits(1).parity_bytes(250), 2);
        assert_eq!(PacketCode::Bits(1).parity_bytes(1040), 2);
        assert_eq!(PacketCode::Bits(3).parity_bytes(1040), 6);
        assert_eq!(PacketCode::Symbols(8).parity_bytes(478), 32);
        assert_eq!(PacketCode::Symbols(8).parity_bytes(479), 48);
        assert_eq!(PacketCode::None.parity_bytes(1500), 0);
    }

    #[test]
    fn a_given_parity_counts_on_the_wire() {
        let correction = Correction { parity_bytes: Some(Whole::new(0.0).unwrap()), ..one_bit() };
        assert_eq!((correction.parity_bytes(1000), one_bit().parity_bytes(1000)), (0, 2));
    }

    #[test]
    fn a_single_error_code_corrects_one_bit_but_not_two() {
        let code = one_bit().code();
        assert_eq!(code.mends(1000, &[]), Some(0));
        assert_eq!(code.mends(1000, &[17]), Some(1));
        assert_eq!(code.mends(1000, &[17, 18]), None);
    }

    #[test]
    fn a_burst_within_a_byte_is_one_wrong_symbol() {
        let code = PacketCode::Symbols(1);
        assert_eq!(code.mends(200, &[8, 9, 15]), Some(3));
        assert_eq!(code.mends(200, &[7, 8]), None);
        assert_eq!(code.mends(300, &[7, 8]), Some(2), "neighbouring bytes lie in different codewords");
        assert_eq!(code.mends(300, &[0, 16]), None, "every second byte, in the same");
    }

    proptest! {
        #[test]
        fn correction_of_symbols_agrees_with_a_model_of_sets(
            wire_bytes in 1u32..2000,
            t in 1u16..5,
            bits in proptest::collection::btree_set(0u32..16_000, 0..20),
        ) {
            let bits: Vec<u32> = bits.into_iter().filter(|&bit| bit < wire_bytes * 8).collect();
            let codewords = wire_bytes.div_ceil(255);
            let bytes: BTreeSet<u32> = bits.iter().map(|bit| bit / 8).collect();
            let worst = (0..codewords).map(|c| bytes.iter().filter(|&byte| byte % codewords == c).count()).max();
            let is_mended = worst.unwrap_or(0) <= usize::from(t);
            prop_assert_eq!(PacketCode::Symbols(t).mends(wire_bytes, &bits).is_some(), is_mended);
        }

        #[test]
        fn interleaved_codewords_fit(bytes in 1u32..60_000, t in 1u16..100) {
            let total = bytes + PacketCode::Symbols(t).parity_bytes(bytes);
            let codewords = total.div_ceil(255);
            prop_assert_eq!(total - bytes, codewords * 2 * u32::from(t));
        }
    }

    fn one_bit() -> Correction {
        Correction { bits: Some(Count::new(1.0).unwrap()), ..Correction::default() }
    }
}
