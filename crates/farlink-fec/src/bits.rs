//! Bits packed into bytes, first bit in the most significant place, as on a wire.

/// Bit `at` of packed bits.
///
/// # Panics
/// If it lies beyond the bytes.
#[inline]
pub fn get(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] >> (7 - at % 8) & 1 == 1
}

/// Sets bit `at` of packed bits.
///
/// # Panics
/// If it lies beyond the bytes.
#[inline]
pub fn set(bytes: &mut [u8], at: usize, bit: bool) {
    let mask = 0x80 >> (at % 8);
    if bit { bytes[at / 8] |= mask } else { bytes[at / 8] &= !mask }
}

/// Number of bytes that hold `bits` bits.
pub fn bytes_for(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// Positions where the first `bits` bits of two packed strings differ, ascending.
///
/// # Panics
/// If one of them is shorter.
pub fn differences(a: &[u8], b: &[u8], bits: usize) -> impl Iterator<Item = usize> {
    let whole = bytes_for(bits);
    a[..whole].iter().zip(&b[..whole]).enumerate().filter(|(_, (x, y))| x != y).flat_map(move |(byte, (x, y))| {
        let wrong = x ^ y;
        (0..8).filter(move |bit| wrong & (0x80 >> bit) != 0).map(move |bit| byte * 8 + bit).filter(move |&at| at < bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_is_the_most_significant() {
        let mut bytes = [0u8; 2];
        set(&mut bytes, 0, true);
        set(&mut bytes, 9, true);
        assert_eq!(bytes, [0x80, 0x40]);
        assert!(get(&bytes, 9) && !get(&bytes, 8));
    }

    #[test]
    fn differences_stop_at_the_last_bit() {
        assert_eq!(differences(&[0xff, 0x00], &[0x7f, 0x09], 13).collect::<Vec<_>>(), [0, 12]);
    }
}
