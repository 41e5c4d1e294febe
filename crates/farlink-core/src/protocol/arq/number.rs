//! Frame numbers: 64 bits inside a station, and a limited number of bits on the wire.

/// Conversion of frame numbers to the bits that they have on the wire and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    mask: u32,
}

impl Numbers {
    /// Numbers of 1 to 32 bits.
    pub(super) fn new(bits: u32) -> Self {
        Numbers { mask: u32::MAX >> (32 - bits.clamp(1, 32)) }
    }

    /// A number as it is sent.
    #[inline(always)]
    pub(super) fn on_wire(self, number: u64) -> u32 {
        number as u32 & self.mask
    }

    /// The distance from `from` to a number on the wire, if the number is ahead.
    #[inline(always)]
    pub(super) fn ahead(self, number: u32, from: u64) -> u64 {
        u64::from(number.wrapping_sub(from as u32) & self.mask)
    }

    /// The frame that a number on the wire refers to: half of all numbers are ahead of `from`, the others behind it.
    #[inline(always)]
    pub(super) fn near(self, number: u32, from: u64) -> Option<u64> {
        let ahead = self.ahead(number, from);
        if ahead <= u64::from(self.mask / 2) {
            Some(from + ahead)
        } else {
            from.checked_sub(u64::from(self.mask) + 1 - ahead)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternating_bit_distinguishes_new_frames_from_repeated_ones() {
        let numbers = Numbers::new(1);
        assert_eq!(numbers.near(numbers.on_wire(7), 7), Some(7));
        assert_eq!(numbers.near(numbers.on_wire(6), 7), Some(6));
    }

    #[test]
    fn numbers_are_found_again_within_half_of_their_space() {
        for (bits, from) in [(3, 100_u64), (7, 5_000_000_000), (32, 1 << 40)] {
            let numbers = Numbers::new(bits);
            let half = 1_u64 << (bits - 1);
            for number in [from - half, from - 1, from, from + 1, from + half - 1] {
                assert_eq!(numbers.near(numbers.on_wire(number), from), Some(number), "{bits} bits");
            }
        }
        assert_eq!(Numbers::new(8).near(255, 0), None, "before the first frame");
    }
}
