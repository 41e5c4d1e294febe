//! The number of symbols to send so that enough of them arrive.

/// The fewest symbols of which at least `missing` arrive with the probability `completion`, each lost independently with the
/// probability `loss`: a quantile of the negative binomial distribution.
pub(super) fn needed(missing: u32, loss: f64, completion: f64) -> u32 {
    if missing == 0 || loss <= 0.0 {
        return missing;
    }
    let (m, arrives) = (f64::from(missing), 1.0 - loss);
    // The sum begins where the probability below is negligible: j losses before the last of the m arrives have the probability
    // C(m - 1 + j, j) (1 - p)^m p^j.
    let mean = m * loss / arrives;
    let deviation = libm::sqrt(mean / arrives);
    let mut j = libm::floor((mean - TAIL_DEVIATIONS * deviation).max(0.0));
    let mut term = libm::exp(
        libm::lgamma(m + j) - libm::lgamma(j + 1.0) - libm::lgamma(m) + m * libm::log(arrives) + j * libm::log(loss),
    );
    let mut sum = term;
    let last = mean + MOST_DEVIATIONS * (deviation + 1.0);
    while sum < completion && j < last {
        term *= loss * (m + j) / (j + 1.0);
        sum += term;
        j += 1.0;
    }
    missing.saturating_add(j as u32)
}

/// The probability this many standard deviations below the mean is negligible.
const TAIL_DEVIATIONS: f64 = 8.0;
/// Upper end of the sum, so that rounding cannot make it endless.
const MOST_DEVIATIONS: f64 = 40.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    /// Probability that at least m of n arrive.
    fn completes(n: u32, m: u32, loss: f64) -> f64 {
        let mut probability = 0.0;
        for k in m..=n {
            let choose = libm::lgamma(f64::from(n) + 1.0)
                - libm::lgamma(f64::from(k) + 1.0)
                - libm::lgamma(f64::from(n - k) + 1.0);
            probability += libm::exp(choose + f64::from(k) * libm::log1p(-loss) + f64::from(n - k) * libm::log(loss));
        }
        probability
    }

    proptest! {
        #[test]
        fn the_number_of_symbols_is_the_least_that_suffices(m in 1..400_u32, loss in 0.001..0.9_f64, completion in 0.3..0.999_f64) {
            let n = needed(m, loss, completion);
            prop_assert!(completes(n, m, loss) >= completion - 1e-9);
            prop_assert!(n == m || completes(n - 1, m, loss) < completion + 1e-9);
        }

        #[test]
        fn more_loss_and_more_certainty_need_more(m in 0..3000_u32, loss in 0.0..0.95_f64, completion in 0.1..0.9_f64) {
            let n = needed(m, loss, completion);
            prop_assert!(n >= m);
            prop_assert!(needed(m, (loss + 0.01).min(0.95), completion) >= n);
            prop_assert!(needed(m, loss, completion + 0.09) >= n);
            prop_assert!(needed(m + 1, loss, completion) > n);
        }
    }

    #[test]
    fn a_single_missing_symbol_needs_enough_transmissions() {
        assert_eq!(needed(1, 0.5, 0.95), 5, "1 - 2^-5 = 0.969");
        assert_eq!(needed(1, 0.01, 0.95), 1);
        assert_eq!((needed(0, 0.5, 0.95), needed(700, 0.0, 0.95)), (0, 700));
    }

    #[test]
    fn blocks_complete_with_the_requested_probability() {
        let mut rng = Rng::for_component(1, 0, "needed");
        let n = needed(700, 0.7, 0.95);
        let complete = (0..2000).filter(|_| (0..n).filter(|_| !rng.chance(0.7)).count() >= 700).count();
        // Three standard deviations of 2000 trials are 0.015.
        assert!((complete as f64 / 2000.0 - 0.95).abs() < 0.02, "{complete} of 2000");
    }
}
