//! Cyclic redundancy checks, by their names in the catalogue of the crate `crc`, and how often they miss an error.
//!
//! CRC-16 is computed by the crate `crc`, CRC-32 by `crc32fast`.

/// CRC-16/IBM-3740, also called CCITT-FALSE: x^16 + x^12 + x^5 + 1, begun with ones; the frame check of CCSDS.
pub fn crc_16_ibm_3740(frame: &[u8]) -> u16 {
    static TABLE: crc::Crc<u16, crc::Table<16>> = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_IBM_3740);
    TABLE.checksum(frame)
}

/// CRC-16/IBM-SDLC, also called X-25: that of HDLC and of PPP (RFC 1662, appendix C.2).
pub fn crc_16_ibm_sdlc(frame: &[u8]) -> u16 {
    static TABLE: crc::Crc<u16, crc::Table<16>> = crc::Crc::<u16, crc::Table<16>>::new(&crc::CRC_16_IBM_SDLC);
    TABLE.checksum(frame)
}

/// CRC-32/ISO-HDLC: that of Ethernet, and of PPP with 32 bits (RFC 1662, appendix C.3).
pub fn crc_32_iso_hdlc(frame: &[u8]) -> u32 {
    crc32fast::hash(frame)
}

/// Probability that a check of `check_bits` bits accepts a frame of random bits: 2^-bits.
///
/// An upper bound for a long frame with many wrong bits. A burst no longer than the check is always found.
pub fn undetected_probability(check_bits: u32) -> f64 {
    libm::exp2(-f64::from(check_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(crc_16_ibm_3740(b"123456789"), 0x29b1);
        assert_eq!(crc_16_ibm_sdlc(b"123456789"), 0x906e);
        assert_eq!(crc_32_iso_hdlc(b"123456789"), 0xcbf43926);
    }

    #[test]
    fn every_burst_no_longer_than_the_check_is_found() {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let frame: Vec<u8> = (0..40).map(|_| rng.random()).collect();
        for start in 0..=40 * 8 - 16 {
            let mut damaged = frame.clone();
            let burst = rng.random::<u16>() | 0x8000;
            for bit in (0..16).filter(|bit| burst >> (15 - bit) & 1 == 1) {
                damaged[(start + bit) / 8] ^= 0x80 >> ((start + bit) % 8);
            }
            assert_ne!(crc_16_ibm_3740(&damaged), crc_16_ibm_3740(&frame));
            assert_ne!(crc_16_ibm_sdlc(&damaged), crc_16_ibm_sdlc(&frame));
            assert_ne!(crc_32_iso_hdlc(&damaged), crc_32_iso_hdlc(&frame));
        }
    }

    /// Frames of noise pass a 16-bit check with probability 2^-16, within four standard deviations.
    #[test]
    fn noise_passes_as_often_as_it_should() {
        let mut rng = Pcg64Mcg::seed_from_u64(4);
        let frames = 1 << 21;
        let passed = (0..frames).filter(|_| crc_16_ibm_3740(&rng.random::<[u8; 8]>()) == rng.random::<u16>()).count();
        let expected = frames as f64 * undetected_probability(16);
        assert!((passed as f64 - expected).abs() < 4.0 * expected.sqrt(), "{passed}, not {expected}");
    }
}
