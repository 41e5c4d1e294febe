//! Packet numbers: 64 bits, of which 32 are sent.

/// The last packet number; nothing is sealed beyond it. `[O6]`
pub const MOST_NUMBER: u64 = (1 << 62) - 1;

/// The packet number with these low 32 bits that is nearest to `expected`, the one after the highest that opened (RFC
/// 9000, appendix A.3). `[O8]`
pub fn expand(low: u32, expected: u64) -> u64 {
    const ROUND: u64 = 1 << 32;
    let ahead = u64::from(low.wrapping_sub(expected as u32));
    let number = expected.saturating_add(ahead);
    if ahead <= ROUND / 2 { number } else { number.checked_sub(ROUND).unwrap_or(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The algorithm as RFC 9000, appendix A.3, prints it, with 32 bits.
    fn as_printed(truncated: u32, expected: u64) -> u64 {
        let (window, half) = (1_i128 << 32, 1_i128 << 31);
        let expected = i128::from(expected);
        let candidate = expected & !(window - 1) | i128::from(truncated);
        let number = if candidate <= expected - half && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        number as u64
    }

    #[test]
    fn numbers_at_the_edges() {
        assert_eq!(expand(0, 0), 0);
        assert_eq!(expand(u32::MAX, 0), u64::from(u32::MAX), "nothing lies before the first packet");
        assert_eq!(expand(u32::MAX, 1 << 32), u64::from(u32::MAX));
        assert_eq!(expand(0, u64::from(u32::MAX)), 1 << 32);
        assert_eq!(expand(1 << 31, 1 << 32), (1 << 32) + (1 << 31), "halfway is ahead");
        assert_eq!(expand((1 << 31) + 1, 1 << 32), (1 << 31) + 1);
        assert_eq!(expand(5, u64::MAX), u64::MAX, "no number overflows");
    }

    proptest! {
        #[test]
        fn expansion_is_that_of_rfc_9000(low: u32, expected in 0..MOST_NUMBER - (1 << 33)) {
            prop_assert_eq!(expand(low, expected), as_printed(low, expected));
        }

        #[test]
        fn numbers_within_half_a_round_are_found(number in 0..=MOST_NUMBER, away in -(1_i64 << 31) + 1..1 << 31) {
            let expected = number.saturating_add_signed(away);
            prop_assert_eq!(expand(number as u32, expected), number);
        }
    }
}
