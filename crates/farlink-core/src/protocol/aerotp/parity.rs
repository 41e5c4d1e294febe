//! How much parity segments carry: a number of words in each, or a share of their data.

use super::fec::MOST_WORDS;
use super::segment::FEC_BYTES;

/// The parity of segments with data. `[F6]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Parity {
    /// So many 32-bit words in each segment, whatever its length.
    Words(u16),
    /// Bytes of parity per byte of payload, rounded up to whole words.
    Share(f64),
}

impl Parity {
    pub(super) const NONE: Parity = Parity::Words(0);

    /// Words of parity of a segment with `payload_bytes` of payload.
    #[inline]
    pub(super) fn words(self, payload_bytes: u32) -> u16 {
        match self {
            _ if payload_bytes == 0 => 0,
            Parity::Words(words) => words,
            Parity::Share(share) => {
                let words = libm::ceil(share * f64::from(payload_bytes) / 4.0);
                words.clamp(1.0, f64::from(MOST_WORDS)) as u16
            }
        }
    }

    /// Words of parity of a MACK's list of `list_bytes`: as many for its length as a full segment has for `full_bytes` of payload.
    /// `[F8]`
    pub(super) fn words_of_list(self, list_bytes: u32, full_bytes: u32) -> u16 {
        match self {
            Parity::Words(words) => {
                let words = (u32::from(words) * list_bytes).div_ceil(full_bytes.max(1));
                words.min(u32::from(MOST_WORDS)) as u16
            }
            Parity::Share(_) => self.words(list_bytes),
        }
    }

    /// The longest payload that fits into `room_bytes` together with its parity and the field that says how much there is.
    #[inline]
    pub(super) fn payload_bytes(self, room_bytes: u32) -> u32 {
        match self {
            Parity::Words(words) => room_bytes.saturating_sub(parity_bytes(words)),
            Parity::Share(_) => {
                // A longer payload never has less parity.
                let (mut low, mut high) = (0, room_bytes);
                while low < high {
                    let middle = low + (high - low).div_ceil(2);
                    if middle + parity_bytes(self.words(middle)) <= room_bytes {
                        low = middle;
                    } else {
                        high = middle - 1;
                    }
                }
                low
            }
        }
    }
}

/// Bytes of a packet that `words` words of parity take.
fn parity_bytes(words: u16) -> u32 {
    if words == 0 { 0 } else { u32::from(FEC_BYTES) + 4 * u32::from(words) }
}

/// The most words of parity that fit into `room_bytes`.
pub(super) fn words_within(room_bytes: u32) -> u16 {
    (room_bytes.saturating_sub(u32::from(FEC_BYTES)) / 4).min(u32::from(MOST_WORDS)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_is_rounded_up_to_words() {
        let share = Parity::Share(0.05);
        assert_eq!([0, 1, 80, 81, 1000].map(|bytes| share.words(bytes)), [0, 1, 1, 2, 13]);
        assert_eq!(Parity::Share(0.9).words(60_000), 256, "no code has more");
        assert_eq!(Parity::Words(16).words(1), 16);
        assert_eq!(Parity::Words(16).words(0), 0, "nothing to protect");
    }

    #[test]
    fn a_list_has_its_part_of_the_parity() {
        assert_eq!([0, 1, 4, 16, 256].map(|words| Parity::Words(words).words_of_list(272, 1388)), [0, 1, 1, 4, 51]);
        assert_eq!(Parity::Words(16).words_of_list(16, 1388), 1, "at least one");
        assert_eq!(Parity::Words(256).words_of_list(272, 1), 256, "at most 256");
        assert_eq!([16, 272].map(|bytes| Parity::Share(0.05).words_of_list(bytes, 1388)), [1, 4]);
    }

    proptest! {
        #[test]
        fn the_longest_payload_fits_and_a_longer_one_does_not(
            (room, share, words) in (0_u32..66_000, 1e-4..0.999_f64, 0_u16..=256)
        ) {
            let taken = |parity: Parity, bytes: u32| bytes + parity_bytes(parity.words(bytes));
            for parity in [Parity::Share(share), Parity::Words(words)] {
                let bytes = parity.payload_bytes(room);
                prop_assert!(bytes == 0 || taken(parity, bytes) <= room);
                prop_assert!(taken(parity, bytes + 1) > room);
            }
        }

        #[test]
        fn words_that_fit_leave_no_room_for_another(room in 0_u32..1100) {
            let words = words_within(room);
            prop_assert!(words == 0 || parity_bytes(words) <= room);
            prop_assert!(words == MOST_WORDS || parity_bytes(words + 1) > room);
        }
    }
}
