//! Seeded random numbers for simulations.

/// A random stream: with the same seed and number, the same draws on every machine.
///
/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a counter and a
/// mixing function, so that many words are computed at once. A stream is a position in the one sequence of 2^64 words. Among 10^7
/// streams of 100 words, the probability that two overlap is 10^-3.
#[derive(Clone, Debug)]
pub struct Noise {
    counter: u64,
}

impl Noise {
    /// Stream `number` of a seed. Streams of neighbouring seeds and numbers are unrelated.
    pub fn stream(seed: u64, number: u64) -> Noise {
        Noise { counter: split_mix64(split_mix64(seed) ^ split_mix64(number).rotate_left(32)) }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [word] = self.words();
        word
    }

    /// `N` words, the same as from `N` calls of [`bits`](Noise::bits).
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&mut self) -> [u64; N] {
        let first = self.counter;
        self.counter = first.wrapping_add(GAMMA.wrapping_mul(N as u64));
        std::array::from_fn(|at| split_mix64(first.wrapping_add(GAMMA.wrapping_mul(at as u64))))
    }

    /// Uniform in [0, 1), with 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform over 0..n; the bias is below n / 2^64.
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "an empty range has no member");
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for chunk in &mut words {
            chunk.copy_from_slice(&self.bits().to_le_bytes());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            rest.copy_from_slice(&self.bits().to_le_bytes()[..rest.len()]);
        }
    }

    /// Number of failures before the first success in trials of probability `p`: `u64::MAX` if p is 0.
    pub fn failures_before_success(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 0;
        }
        // Inversion; libm gives the same bits on every machine. 1 - u lies in (0, 1].
        (libm::log(1.0 - self.uniform()) / libm::log1p(-p)) as u64
    }
}

/// The increment of SplitMix64's counter: 2^64 over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The word of SplitMix64 for a counter (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a
/// bijection of 64 bits whose results show no trace of the order of its arguments.
#[inline(always)]
pub fn split_mix64(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, number| Noise::stream(seed, number).bits();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(3, 7));
    }

    #[test]
    fn words_are_those_of_splitmix64() {
        // The reference implementation (S. Vigna, splitmix64.c) from state 0.
        let mut noise = Noise { counter: 0 };
        assert_eq!(noise.words(), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_eq!(noise.bits(), 0xf88b_b8a8_724c_81ec);
    }

    #[test]
    fn failures_have_the_mean_of_a_geometric_variable() {
        let mut noise = Noise::stream(1, 0);
        let mean = (0..100_000).map(|_| noise.failures_before_success(0.02) as f64).sum::<f64>() / 1e5;
        assert!((mean - 49.0).abs() < 4.0 * 49.5 / 316.0, "{mean}");
    }
}
