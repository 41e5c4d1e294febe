//! How long acknowledgements are delayed.

use farlink_fec::awgn::split_mix64;

use crate::time::Time;

use super::super::config::{AckTimeout, UniformSeconds};

/// The delay of an acknowledgement: constant, or a function of the position in the stream that looks random.
///
/// Where the position decides and not the number of draws before, a train of segments may skip the timers that a second segment
/// stops, and later delays remain the same.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol::tcp) enum AckDelay {
    /// The same for every acknowledgement.
    Fixed(Time),
    /// Uniform between two times.
    Uniform {
        /// Shortest delay.
        least: Time,
        /// Range of the delays above it, in picoseconds.
        range_ps: u64,
        /// Decides, together with the position, on the delay.
        seed: u64,
    },
}

impl AckDelay {
    /// The delays of a configured timer.
    pub(in crate::protocol::tcp) fn new(timeout: AckTimeout, seed: u64) -> Self {
        match timeout {
            AckTimeout::Fixed(fixed) => AckDelay::Fixed(fixed.time()),
            AckTimeout::Uniform(drawn) => AckDelay::uniform(drawn, seed),
        }
    }

    fn uniform(drawn: UniformSeconds, seed: u64) -> Self {
        let [least, most] = drawn.bounds();
        AckDelay::Uniform { least, range_ps: most.since(least).as_ps(), seed }
    }

    /// The delay of the acknowledgement whose timer starts when the stream is complete up to `next`.
    #[inline(always)]
    pub(super) fn at(self, next: u64) -> Time {
        match self {
            AckDelay::Fixed(delay) => delay,
            AckDelay::Uniform { least, range_ps, seed } => {
                // SplitMix64 (Steele, Lea and Flood 2014) over the position, then a number below the range.
                let random = split_mix64(seed ^ split_mix64(next));
                least + Time::from_ps(((u128::from(random) * u128::from(range_ps)) >> 64) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of U(a, b) are (a + b) / 2 and (b - a)² / 12. The segments have equal lengths, the seeds follow each
    /// other.
    #[test]
    fn drawn_delays_are_uniform_and_independent() {
        for (least_s, most_s) in [(0.0, 0.2), (0.1, 0.2), (0.0, 0.5)] {
            let drawn = UniformSeconds::new(least_s, most_s).unwrap();
            for seed in 0..3 {
                let delay = AckDelay::uniform(drawn, seed);
                let delays: Vec<f64> = (1..=100_000).map(|n| delay.at(n * 2920).as_secs_f64()).collect();
                assert!(delays.iter().all(|delay| (least_s..most_s).contains(delay)));
                // On the unit interval: the standard errors are 0.0009 for the mean and 0.0003 for variance and covariance.
                let unit: Vec<f64> = delays.iter().map(|delay| (delay - least_s) / (most_s - least_s)).collect();
                let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / 1e5;
                let mean = mean_of(&mut unit.iter().copied());
                let variance = mean_of(&mut unit.iter().map(|x| (x - 0.5) * (x - 0.5)));
                let neighbours = mean_of(&mut unit.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)));
                assert!((mean - 0.5).abs() < 0.004, "{mean}");
                assert!((variance - 1.0 / 12.0).abs() < 0.0012, "{variance}");
                assert!(neighbours.abs() < 0.0012, "{neighbours}");
                let tenths = (0..10).map(|tenth| unit.iter().filter(|&&x| (x * 10.0) as u32 == tenth).count());
                assert!(
                    tenths.into_iter().all(|count| count.abs_diff(10_000) < 450),
                    "a tenth is over- or underrepresented"
                );
                let other = AckDelay::uniform(drawn, seed + 1);
                let equal = (1..1000).filter(|&n| delay.at(n * 2920) == other.at(n * 2920)).count();
                assert_eq!(equal, 0, "seeds give different delays");
            }
        }
    }
}
