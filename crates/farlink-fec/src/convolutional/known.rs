//! Known good codes from the literature.

/// A code from the literature with its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCode {
    /// Generators for [`Code::from_octal`](super::Code::from_octal).
    pub octal: &'static str,
    /// Its free distance.
    pub free_distance: u32,
    /// Its publication, or the system that uses it.
    pub source: &'static str,
}

const fn known(octal: &'static str, free_distance: u32, source: &'static str) -> KnownCode {
    KnownCode { octal, free_distance, source }
}

/// K. J. Larsen, "Short convolutional codes with maximal free distance for rates 1/2, 1/3, and 1/4", IEEE Trans. Inform.
/// Theory IT-19, 1973.
const LARSEN: &str = "Larsen 1973";
/// J. P. Odenwalder, "Optimal decoding of convolutional codes", dissertation, UCLA, 1970.
const ODENWALDER: &str = "Odenwalder 1970";

/// Codes that are in use or the best of their rate and constraint length.
pub const KNOWN: &[KnownCode] = &[
    known("7,5", 5, ODENWALDER),
    known("17,15", 6, LARSEN),
    known("15,13", 6, "constituent code of 3GPP TS 25.212, without feedback"),
    known("23,35", 7, LARSEN),
    known("53,75", 8, LARSEN),
    known("171,133", 10, "Odenwalder 1970; CCSDS 131.0-B, EN 300 421, IEEE 802.11"),
    known("247,371", 10, LARSEN),
    known("753,561", 12, "Larsen 1973; TIA IS-95"),
    known("2335,3661", 14, LARSEN),
    known("4335,5723", 15, LARSEN),
    known("10533,17661", 16, LARSEN),
    known("7,7,5", 8, LARSEN),
    known("13,15,17", 10, LARSEN),
    known("25,33,37", 12, LARSEN),
    known("133,145,175", 15, LARSEN),
    known("171,133,145", 14, "Hagenauer 1988; mother code of EN 300 401"),
    known("557,663,711", 18, "Larsen 1973; TIA IS-95"),
    known("46321,51271,63667,70535", 35, "Galileo; Dolinar 1988, TDA Progress Report 42-95"),
];
