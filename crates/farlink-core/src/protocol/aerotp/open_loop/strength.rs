//! The strength of the code in a packet: its residual loss in closed form, and the least parity that suffices.

use super::super::fec::{Fec, MOST_WORDS};

impl Fec {
    /// Probability that the code cannot correct a packet with an intact header, if each bit after the header is wrong with
    /// probability `ber`, independently.
    ///
    /// Each codeword of n bytes fails if more than t of them are wrong, which a byte is with probability 1 - (1 - ber)^8; the
    /// packet needs all of them. Without parity, any wrong bit loses it.
    pub fn residual_loss(&self, ber: f64) -> f64 {
        let byte_error = -libm::expm1(8.0 * libm::log1p(-ber));
        let codewords = self.codewords();
        let mends = if self.parity_of_each() < 2 { 0 } else { self.mends_of_each() };
        let data_bytes = self.payload_bytes + self.check_bytes;
        // The first `longer` codewords have one byte more than the others.
        let (shortest, longer) = (data_bytes / codewords, data_bytes % codewords);
        let fine = |bytes: u32| libm::log1p(-binomial_tail(bytes + self.parity_of_each(), mends, byte_error).min(1.0));
        let all = f64::from(longer) * fine(shortest + 1) + f64::from(codewords - longer) * fine(shortest);
        -libm::expm1(all)
    }
}

/// Probability that more than `most` of `n` independent events happen, each with probability `p`.
pub(super) fn binomial_tail(n: u32, most: u32, p: f64) -> f64 {
    if most >= n || p <= 0.0 {
        return 0.0;
    }
    let odds = p / (1.0 - p);
    let mut term = libm::exp(f64::from(n) * libm::log1p(-p));
    let mut tail = 0.0;
    if term == 0.0 {
        return 1.0; // the mean is so large that hardly any code has enough parity
    }
    for k in 0..n {
        term *= odds * f64::from(n - k) / f64::from(k + 1);
        if k + 1 > most {
            tail += term;
        }
    }
    tail
}

/// The least number of 32-bit words of parity with which the residual loss is at most `target`; `most` if even that does not
/// suffice. `room_bytes` is the room for payload and parity together.
pub(super) fn smallest_words(ber: f64, target: f64, room_bytes: u32, most: u16) -> u16 {
    let is_enough = |words: u16| {
        let parity = 4 * u32::from(words);
        Fec::new(room_bytes.saturating_sub(parity), words).residual_loss(ber) <= target
    };
    // More parity in a packet of the same length never corrects less, so a binary search finds the least.
    let (mut low, mut high) = (0, most.min(MOST_WORDS));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six interleaved codewords of 1,456 bytes after the header at a bit error rate of 1e-4.
    #[test]
    fn residual_loss_of_each_strength() {
        let loss = |words: u16| Fec::new(1452 - 4 * u32::from(words), words).residual_loss(1e-4);
        assert!((loss(0) - (1.0 - (1.0 - 1e-4_f64).powi(8 * 1456))).abs() < 1e-12);
        for (words, about) in [(4, 0.10), (8, 7e-3), (16, 4e-7)] {
            assert!((loss(words) / about - 1.0).abs() < 0.35, "{words} words leave {}", loss(words));
        }
        assert!(loss(96) < 1e-30);
    }

    #[test]
    fn binomial_tails_of_a_fair_coin() {
        for (most, expected) in [(0, 15.0 / 16.0), (1, 11.0 / 16.0), (3, 1.0 / 16.0), (4, 0.0)] {
            assert!((binomial_tail(4, most, 0.5) - expected).abs() < 1e-12);
        }
        assert_eq!(binomial_tail(255, 10, 0.9999), 1.0);
    }

    #[test]
    fn the_chosen_strength_is_the_least_that_suffices() {
        for ber in [1e-6, 1e-5, 1e-4, 1e-3] {
            for target in [1e-2, 1e-3, 1e-6] {
                let words = smallest_words(ber, target, 1452, 256);
                let loss = |words: u16| Fec::new(1452 - 4 * u32::from(words), words).residual_loss(ber);
                assert!(loss(words) <= target, "{words} at {ber}");
                assert!(words == 0 || loss(words - 1) > target, "{words} at {ber}: {}", loss(words - 1));
            }
        }
        assert_eq!(smallest_words(0.4, 1e-3, 1452, 200), 200, "nothing is enough");
        assert_eq!(smallest_words(0.0, 1e-3, 1452, 200), 0);
    }
}
