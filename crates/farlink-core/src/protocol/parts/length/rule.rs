//! The best length of a frame for a rate of independent errors (Epple, equation (11)).

/// Data of the frame with the largest goodput of selective repeat, in bits: l_opt = l'/2 (sqrt(1 - 4/(l' ln(1 - BEP))) - 1).
///
/// `hazard` is -ln(1 - BEP) per bit; the result is infinite without errors. It does not depend on whether errors in the header
/// lose a frame.
pub(super) fn best_bits(hazard: f64, header_bits: f64) -> f64 {
    header_bits / 2.0 * (libm::sqrt(1.0 + 4.0 / (header_bits * hazard)) - 1.0)
}

/// The error rate for which a length is best: the inverse of [`best_bits`].
pub(super) fn hazard_of(best_bits: f64, header_bits: f64) -> f64 {
    header_bits / (best_bits * (best_bits + header_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Epple's l' = 20 bytes and BER 1e-6 give 1571 bytes.
    #[test]
    fn the_paper_s_example() {
        let bits = best_bits(-libm::log1p(-1e-6), 160.0);
        assert!((bits - 12_569.4).abs() < 0.05, "{bits}");
        assert_eq!(best_bits(0.0, 160.0), f64::INFINITY);
        assert_eq!(best_bits(f64::INFINITY, 160.0), 0.0);
    }

    fn goodput(bits: f64, hazard: f64, header_bits: f64) -> f64 {
        libm::exp(-hazard * (bits + header_bits)) * bits / (bits + header_bits)
    }

    proptest! {
        #[test]
        fn no_other_length_has_more_goodput(log_ber in -9.0..-2.0_f64, header in 1.0..200.0_f64) {
            let (hazard, header_bits) = (-libm::log1p(-libm::pow(10.0, log_ber)), header * 8.0);
            let best = best_bits(hazard, header_bits);
            for factor in [0.5, 0.9, 1.1, 2.0] {
                prop_assert!(goodput(best, hazard, header_bits) >= goodput(best * factor, hazard, header_bits));
            }
            prop_assert!((hazard_of(best, header_bits) / hazard - 1.0).abs() < 1e-6);
        }
    }
}
