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
/// Largest number of parity bits of a Hamming code; its codeword has 65,535 bits.
const MOST_HAMMING: u64 = 16;
/// Largest number of byte errors that a codeword corrects.
const MOST_SYMBOLS: u64 = (CODEWORD_BYTES as u64 - 1) / 2;

/// A code around each packet, headers included, that corrects wrong bits or wrong bytes.
///
/// One of three: `bits`, a binary BCH code over the packet; `hamming`, as many Hamming codewords as the packet needs, interleaved
/// bit by bit; or `symbols`, as many Reed-Solomon codewords over GF(256) as it needs, interleaved byte by byte. A packet with more
/// errors than the code corrects is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Correction {
    /// Bit errors that are corrected in a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = MOST_BITS))]
    pub bits: Option<Count>,
    /// Parity bits r of a Hamming code with codewords of n = 2^r - 1 bits, of which each corrects one wrong bit: 3 is the (7, 4)
    /// code, 4 the (15, 11) code, 7 the (127, 120) code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 2, "maximum" = MOST_HAMMING))]
    pub hamming: Option<Count>,
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
    /// Corrects one wrong bit in each of the interleaved Hamming codewords with this number of parity bits.
    Hamming(u16),
    /// Corrects up to this number of wrong bytes in each of the interleaved codewords.
    Symbols(u16),
}

impl Correction {
    /// Checks rules that the types cannot express, for packets of up to `largest_bytes`; paths are relative to the correction's
    /// table.
    ///
    /// # Errors
    /// If not exactly one of `bits`, `hamming` and `symbols` is given, or there is no such code.
    pub(crate) fn check(&self, largest_bytes: u64) -> Result<(), ConfigError> {
        const FORMS: &str =
            "give one of bits = 1 (a BCH code), hamming = 3 (the (7, 4) code) and symbols = 8 (Reed-Solomon)";
        let forms = [
            ("bits", self.bits, 1, MOST_BITS),
            ("hamming", self.hamming, 2, MOST_HAMMING),
            ("symbols", self.symbols, 1, MOST_SYMBOLS),
        ];
        let mut given = forms.iter().filter_map(|&(key, value, least, most)| Some((key, value?.whole(), least, most)));
        let Some((key, t, least, most)) = given.next() else {
            return Err(ConfigError::new("", "none of bits, hamming and symbols is given", FORMS));
        };
        if let Some((other, ..)) = given.next() {
            return Err(ConfigError::new("", format!("{key} and {other} are both given"), FORMS));
        }
        if t < least || t > most {
            let what = format!("{t} is not allowed; allowed: a whole number from {least} to {most}");
            let remedy = match key {
                "hamming" => "give the parity bits of a codeword: 3 for the (7, 4) code, 4 for the (15, 11) code",
                _ => "correct fewer errors in each packet, or use a code on the link",
            };
            return Err(ConfigError::new(key, what, remedy));
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
        match (self.bits, self.hamming, self.symbols) {
            (Some(bits), ..) => PacketCode::Bits(t(bits)),
            (None, Some(parity), _) => PacketCode::Hamming(t(parity)),
            (None, None, Some(symbols)) => PacketCode::Symbols(t(symbols)),
            (None, None, None) => PacketCode::None,
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
    /// Costello, Error Control Coding, section 6.1); a Hamming codeword of 2^r - 1 bits has r (section 4.1 there); a Reed-Solomon
    /// codeword that corrects t symbols has 2 t.
    pub fn parity_bytes(self, bytes: u32) -> u32 {
        match self {
            PacketCode::None => 0,
            PacketCode::Bits(t) => {
                let (t, bits) = (u64::from(t), u64::from(bytes) * 8);
                let degree = (3..64).find(|m| bits + m * t < 1 << m).unwrap_or(64);
                (degree * t).div_ceil(8) as u32
            }
            PacketCode::Hamming(r) => {
                let data = (1_u64 << r) - 1 - u64::from(r);
                let codewords = (u64::from(bytes) * 8).div_ceil(data);
                u32::try_from((codewords * u64::from(r)).div_ceil(8)).unwrap_or(u32::MAX)
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
            PacketCode::Hamming(r) => {
                let codewords = (wire_bytes.saturating_mul(8)).div_ceil((1 << r) - 1).max(1);
                have_one_each(wrong_bits, codewords)
            }
            PacketCode::Symbols(t) => {
                let codewords = wire_bytes.div_ceil(CODEWORD_BYTES).max(1);
                (0..codewords).all(|codeword| wrong_bytes(wrong_bits, codeword, codewords) <= u32::from(t))
            }
        };
        is_mended.then(|| u16::try_from(wrong_bits.len()).unwrap_or(u16::MAX))
    }
}

/// Whether no two wrong bits lie in the same of the interleaved codewords.
fn have_one_each(wrong_bits: &[u32], codewords: u32) -> bool {
    match wrong_bits {
        [] | [_] => true,
        // Neighbours in the packet lie in different codewords, so that a burst is often no longer than their number.
        [first, .., last] if last - first < codewords => true,
        _ => {
            let mut codeword_of: Vec<u32> = wrong_bits.iter().map(|bit| bit % codewords).collect();
            codeword_of.sort_unstable();
            codeword_of.windows(2).all(|pair| pair[0] != pair[1])
        }
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
    fn a_hamming_code_corrects_one_bit_in_each_codeword() {
        // 1,000 bits of data, 4 in each codeword of 7 bits: 250 codewords with 750 parity bits.
        let code = PacketCode::Hamming(3);
        assert_eq!((code.parity_bytes(125), PacketCode::Hamming(4).parity_bytes(11)), (94, 4));
        assert_eq!(
            code.mends(219, &(0..250).collect::<Vec<_>>()),
            Some(250),
            "each bit of a burst in another codeword"
        );
        // 1,752 bits on the wire are 251 codewords with the padding.
        assert_eq!(code.mends(219, &[3, 254]), None);
        assert_eq!(code.mends(219, &[3, 255]), Some(2));
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
        fn hamming_agrees_with_a_model_of_sets(
            wire_bytes in 1u32..2000,
            r in 2u16..17,
            bits in proptest::collection::btree_set(0u32..16_000, 0..20),
        ) {
            let bits: Vec<u32> = bits.into_iter().filter(|&bit| bit < wire_bytes * 8).collect();
            let codewords = (wire_bytes * 8).div_ceil((1 << r) - 1);
            let hit: BTreeSet<u32> = bits.iter().map(|bit| bit % codewords).collect();
            let mended = PacketCode::Hamming(r).mends(wire_bytes, &bits);
            prop_assert_eq!(mended.is_some(), hit.len() == bits.len());
        }

        /// The data and the parity fit in the codewords, and in no fewer.
        #[test]
        fn hamming_codewords_fit(bytes in 1u32..60_000, r in 2u16..17) {
            let (n, r_bits) = ((1_u64 << r) - 1, u64::from(r));
            let parity = u64::from(PacketCode::Hamming(r).parity_bytes(bytes));
            let codewords = (u64::from(bytes) * 8).div_ceil(n - r_bits);
            prop_assert!(u64::from(bytes) * 8 + codewords * r_bits <= codewords * n);
            prop_assert!(parity * 8 >= codewords * r_bits && parity * 8 < codewords * r_bits + 8);
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
