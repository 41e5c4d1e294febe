//! Seeded random numbers for simulations.

use rand::Rng as _;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// A random stream: same seed and number, same draws, on every machine.
#[derive(Clone, Debug)]
pub struct Noise(Pcg64Mcg);

impl Noise {
    /// Stream `number` of a seed. Streams of neighbouring seeds and numbers are unrelated.
    pub fn stream(seed: u64, number: u64) -> Noise {
        let low = mix(mix(seed) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let high = mix(low ^ mix(number));
        Noise(Pcg64Mcg::from_seed((u128::from(high) << 64 | u128::from(low)).to_le_bytes()))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
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
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
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

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
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
    fn failures_have_the_mean_of_a_geometric_variable() {
        let mut noise = Noise::stream(1, 0);
        let mean = (0..100_000).map(|_| noise.failures_before_success(0.02) as f64).sum::<f64>() / 1e5;
        assert!((mean - 49.0).abs() < 4.0 * 49.5 / 316.0, "{mean}");
    }
}
