//! Sources of random numbers: seeded streams for simulations, one per component of a run and equal across grid points, and the
//! trait through which a live host gives the numbers of its operating system.

use farlink_fec::awgn::split_mix64;
use rand::Rng as _;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// A random stream. The same seed, run and component give the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The stream of one component ("hop.space.forward.channel") in one run.
    pub fn for_component(seed: u64, run: u64, component: &str) -> Self {
        // FNV-1a over the name, then a finaliser (SplitMix64) between the parts, so that neighbouring seeds and runs
        // give unrelated streams.
        let name = component.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let low = split_mix64(split_mix64(seed) ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name.rotate_left(17));
        let high = split_mix64(low ^ split_mix64(name ^ run));
        Rng(Pcg64Mcg::from_seed((u128::from(high) << 64 | u128::from(low)).to_le_bytes()))
    }

    /// Splits the stream: returns the rest of this stream, for a component with draw times of its own, and continues
    /// with an unrelated one.
    pub fn detach(&mut self) -> Rng {
        let given = self.clone();
        let [low, high] = [split_mix64(self.0.next_u64()), split_mix64(self.0.next_u64())];
        self.0 = Pcg64Mcg::from_seed((u128::from(high) << 64 | u128::from(low)).to_le_bytes());
        given
    }

    /// Uniform in [0, 1), with 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Uniform over 0..n.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "an empty range has no member");
        // Multiply-shift; the bias is below n / 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Number of failures before the first success in trials of probability `p`: 0 if p is 1, `u64::MAX` if p is 0.
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

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.uniform()) * mean
    }
}

/// Random numbers for what a peer must not be able to guess: identifiers, first sequence numbers.
///
/// Protocols take them as an argument. A simulation passes a seeded stream; a live host passes the source of its operating system.
pub trait RandomSource {
    /// The next 64 bits, each of them random.
    fn next_u64(&mut self) -> u64;
}

impl RandomSource for Rng {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014) for simulations. Its state is one counter, so that every
/// endpoint can own one. One number reveals all others, so it protects nothing on a real network.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

/// Step of the counter: 2^64 divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }
}

impl RandomSource for SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        let next = split_mix64(self.0);
        self.0 = self.0.wrapping_add(GOLDEN_STEP);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation (Vigna, splitmix64.c) for the seed 1234567.
    #[test]
    fn split_mix_is_the_published_generator() {
        let mut stream = SplitMix64::new(1_234_567);
        assert_eq!([stream.next_u64(), stream.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn streams_differ_by_every_part_of_their_name() {
        let first = |seed, run, component| Rng::for_component(seed, run, component).uniform();
        let one = first(1, 0, "a");
        assert_eq!(one, first(1, 0, "a"));
        assert!(one != first(2, 0, "a") && one != first(1, 1, "a") && one != first(1, 0, "b"));
    }

    #[test]
    fn a_detached_stream_continues_unchanged() {
        let mut whole = Rng::for_component(1, 0, "a");
        let mut rest = whole.clone();
        let mut given = rest.detach();
        let mut differ = 0;
        for _ in 0..100 {
            let next = whole.uniform();
            assert_eq!(given.uniform(), next);
            differ += usize::from(rest.uniform() != next);
        }
        assert_eq!(differ, 100);
    }

    #[test]
    fn geometric_has_the_right_mean_and_edges() {
        let mut rng = Rng::for_component(1, 0, "geometric");
        assert_eq!(rng.failures_before_success(1.0), 0);
        assert_eq!(rng.failures_before_success(0.0), u64::MAX);
        let mean = (0..100_000).map(|_| rng.failures_before_success(0.02) as f64).sum::<f64>() / 1e5;
        // (1 - p) / p = 49, standard error 0.157: five of them.
        assert!((mean - 49.0).abs() < 0.8, "mean {mean}");
    }

    #[test]
    fn rare_events_keep_their_resolution() {
        let mut rng = Rng::for_component(1, 0, "rare");
        let mean = (0..10_000).map(|_| rng.failures_before_success(1e-12) as f64).sum::<f64>() / 1e4;
        assert!((mean / 1e12 - 1.0).abs() < 0.05, "mean {mean}");
    }
}
