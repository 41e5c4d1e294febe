//! Failure probability of a bounded-distance decoder for independent symbol errors.
//!
//! Sklar 2001, section 8.1 (Reed-Solomon codes): the tail of the binomial distribution, and symbol to bit errors as for
//! orthogonal signalling, 2^(m-1) / (2^m - 1) with m = 8.

use libm::{exp, lgamma, log, log1p};

/// Probability that more than (n - k)/2 of n symbols are wrong, so that the decoder gives up or decodes wrongly: the tail of a
/// binomial distribution.
///
/// The symbol error rate must lie in [0, 1]; otherwise the result is NaN.
pub fn word_error_rate(n: usize, k: usize, symbol_error_rate: f64) -> f64 {
    (n.saturating_sub(k) / 2 + 1..=n).map(|wrong| binomial(n, wrong, symbol_error_rate)).sum::<f64>()
}

/// Share of wrong symbols after decoding, if a word that fails keeps its errors.
///
/// For n - k of 16 or more the decoder almost never finds another code word (about 1 failure in t!, McEliece and Swanson 1986),
/// so that this assumption holds.
pub fn symbol_error_rate_after(n: usize, k: usize, symbol_error_rate: f64) -> f64 {
    let kept = |wrong: usize| wrong as f64 / n as f64 * binomial(n, wrong, symbol_error_rate);
    (n.saturating_sub(k) / 2 + 1..=n).map(kept).sum()
}

/// Share of wrong bits after decoding, if the bits of a wrong symbol are random: 128/255 of the symbol error rate.
pub fn bit_error_rate_after(n: usize, k: usize, symbol_error_rate: f64) -> f64 {
    symbol_error_rate_after(n, k, symbol_error_rate) * 128.0 / 255.0
}

/// Error rate of 8-bit symbols for independent bit errors: 1 - (1 - p)^8.
pub fn symbol_error_rate(bit_error_rate: f64) -> f64 {
    -libm::expm1(8.0 * log1p(-bit_error_rate))
}

/// Probability of exactly `wrong` wrong symbols.
fn binomial(n: usize, wrong: usize, rate: f64) -> f64 {
    if !(0.0..=1.0).contains(&rate) {
        return f64::NAN;
    }
    // 0 * log(0) counts as 0.
    let power = |base_log: f64, times: usize| if times == 0 { 0.0 } else { base_log * times as f64 };
    let choices = lgamma(n as f64 + 1.0) - lgamma(wrong as f64 + 1.0) - lgamma((n - wrong) as f64 + 1.0);
    exp(choices + power(log(rate), wrong) + power(log1p(-rate), n - wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_codes_by_hand() {
        // (3, 1) corrects one of three.
        let p = 0.1;
        assert!((word_error_rate(3, 1, p) - (3.0 * p * p * (1.0 - p) + p * p * p)).abs() < 1e-15);
        let after = (2.0 * 3.0 * p * p * (1.0 - p) + 3.0 * p * p * p) / 3.0;
        assert!((symbol_error_rate_after(3, 1, p) - after).abs() < 1e-15);
        assert!((symbol_error_rate(0.1) - (1.0 - 0.9f64.powi(8))).abs() < 1e-15);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(word_error_rate(255, 223, 0.0), 0.0);
        assert!((word_error_rate(255, 223, 1.0) - 1.0).abs() < 1e-12);
        assert!(word_error_rate(255, 223, 1.5).is_nan());
        // Without correction every symbol error remains.
        assert!((symbol_error_rate_after(255, 254, 1e-3) - 1e-3).abs() < 1e-12);
    }
}
