//! The code within a packet: Reed-Solomon over the bytes after the header, in interleaved codewords.

/// Length of the checksum of the payload, where there is one, in bytes.
pub(super) const CRC_BYTES: u32 = 4;

/// Longest codeword over GF(256), in bytes.
const CODEWORD_BYTES: u32 = 255;

/// Largest number of 32-bit parity words (Pathapati, section IV.F). `[F1]`
pub(super) const MOST_WORDS: u16 = 256;

/// How the code protects the bytes after a header: payload, parity and payload checksum, in this order.
///
/// With n bytes in all, there are ceil(n / 255) codewords. Byte i of payload and checksum together belongs to codeword i modulo
/// their number, and so does byte i of the parity. Parity bytes that do not divide evenly among the codewords are zero. `[F2]`,
/// `[F3]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fec {
    /// Payload bytes.
    pub payload_bytes: u32,
    /// Parity bytes in the trailer.
    pub parity_bytes: u32,
    /// Length of the payload's checksum, 0 or 4 bytes.
    pub check_bytes: u32,
}

impl Fec {
    /// The code of a payload with a checksum and `words` 32-bit words of parity.
    pub fn new(payload_bytes: u32, words: u16) -> Self {
        Fec { payload_bytes, parity_bytes: u32::from(words) * 4, check_bytes: CRC_BYTES }
    }

    /// Interleaved codewords.
    pub fn codewords(&self) -> u32 {
        (self.payload_bytes + self.parity_bytes + self.check_bytes).div_ceil(CODEWORD_BYTES).max(1)
    }

    /// Parity bytes of each codeword.
    pub fn parity_of_each(&self) -> u32 {
        self.parity_bytes / self.codewords()
    }

    /// Number of wrong bytes that each codeword corrects.
    pub fn mends_of_each(&self) -> u32 {
        self.parity_of_each() / 2
    }

    /// The codeword of a byte after the header; `None` for the rest of the parity, which belongs to none.
    pub fn codeword_of(&self, byte: u32) -> Option<u32> {
        let codewords = self.codewords();
        if byte < self.payload_bytes {
            return Some(byte % codewords);
        }
        match byte - self.payload_bytes {
            parity if parity < self.parity_of_each() * codewords => Some(parity % codewords),
            parity if parity < self.parity_bytes => None,
            _ => Some((byte - self.parity_bytes) % codewords),
        }
    }

    /// Whether all codewords can be corrected if these bits after the header are wrong, given in ascending order.
    pub(super) fn mends(&self, wrong_bits: impl Iterator<Item = u32> + Clone) -> bool {
        let most = self.mends_of_each();
        if most == 0 {
            return wrong_bits.into_iter().all(|bit| self.codeword_of(bit / 8).is_none());
        }
        (0..self.codewords()).all(|codeword| {
            let mut last = None;
            let mut count = 0;
            for byte in wrong_bits.clone().map(|bit| bit / 8).filter(|&byte| self.codeword_of(byte) == Some(codeword)) {
                count += u32::from(last != Some(byte));
                last = Some(byte);
            }
            count <= most
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strengths_of_a_full_packet() {
        // 1,460 bytes after the header: six codewords.
        let each = |words: u16| Fec::new(1456 - u32::from(words) * 4, words);
        assert_eq!([4, 8, 16, 96, 256].map(|words| each(words).mends_of_each()), [1, 2, 5, 32, 85]);
        assert_eq!(each(96).codewords(), 6);
    }

    #[test]
    fn each_codeword_mends_its_own() {
        let fec = Fec::new(100, 1);
        assert_eq!((fec.codewords(), fec.mends_of_each()), (1, 2));
        assert!(fec.mends([0, 7, 800].into_iter()), "two bytes");
        assert!(!fec.mends([0, 8, 863].into_iter()), "three, one in the check");
        assert!(!Fec::new(100, 0).mends([3].into_iter()));
    }

    proptest! {
        #[test]
        fn codewords_fit_and_are_interleaved(payload in 0_u32..60_000, words in 0_u16..=256) {
            let fec = Fec::new(payload, words);
            let data = (payload + CRC_BYTES).div_ceil(fec.codewords());
            prop_assert!(data + fec.parity_of_each() <= CODEWORD_BYTES);
            let of_parity = (payload..payload + fec.parity_bytes).filter(|&byte| fec.codeword_of(byte).is_some());
            prop_assert_eq!(of_parity.count() as u32, fec.parity_of_each() * fec.codewords());
        }
    }
}
