//! Bit error rates without a code, in closed form.

use std::f64::consts::PI;

use super::Modulation;

impl Modulation {
    /// Bit error rate over additive white Gaussian noise without a code, hard decisions, from Eb/N0 as a ratio (not in dB).
    ///
    /// Exact for all: BPSK and QPSK (Proakis, *Digital Communications*, eq. 4.3-13), 16QAM (K. Cho, D. Yoon, "On the general
    /// BER expression of one- and two-dimensional amplitude modulations", IEEE Trans. Commun. 50(7), 2002), 8PSK by the
    /// probability of every phase sector (P. J. Lee, "Computation of the bit error rate of coherent M-ary PSK with Gray code
    /// bit mapping", IEEE Trans. Commun. 34(5), 1986), each a finite integral (J. W. Craig, MILCOM 1991).
    pub fn bit_error_rate(self, eb_n0: f64) -> f64 {
        match self {
            Modulation::Bpsk | Modulation::Qpsk => q((2.0 * eb_n0).sqrt()),
            Modulation::Psk8 => psk8(3.0 * eb_n0),
            Modulation::Qam16 => {
                let x = (0.8 * eb_n0).sqrt();
                0.75 * q(x) + 0.5 * q(3.0 * x) - 0.25 * q(5.0 * x)
            }
        }
    }
}

/// Q function: probability that a standard normal number exceeds `x`.
pub fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// From Es/N0: each sector is weighted with the mean number of bits in which its label differs.
fn psk8(es_n0: f64) -> f64 {
    let label = |index: u32| (index % 8) ^ (index % 8) >> 1;
    let differing = |k: u32| (0..8).map(|i| (label(i) ^ label(i + k)).count_ones()).sum::<u32>();
    let edge = |k: u32| phase_beyond((2.0 * f64::from(k) - 1.0) * PI / 8.0, es_n0);
    // Sector 4 is symmetric; the others are covered by both k and 8 - k, whose labels differ in the same number of bits.
    let bits: f64 =
        (1..=4).map(|k| f64::from(differing(k)) / 8.0 * (edge(k) - if k < 4 { edge(k + 1) } else { 0.0 })).sum();
    bits / 3.0
}

/// Probability that noise turns the phase by more than `angle` to either side, 0 < angle < pi.
fn phase_beyond(angle: f64, es_n0: f64) -> f64 {
    const STEPS: usize = 1024;
    let width = (PI - angle) / STEPS as f64;
    let exponent = es_n0 * libm::sin(angle) * libm::sin(angle);
    let at = |step: usize| {
        let sine = libm::sin(step as f64 * width);
        if step == 0 { 0.0 } else { libm::exp(-exponent / (sine * sine)) }
    };
    // Simpson's rule.
    let inner: f64 = (1..STEPS).map(|step| if step % 2 == 1 { 4.0 } else { 2.0 } * at(step)).sum();
    (at(0) + inner + at(STEPS)) * width / (3.0 * PI)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_db(modulation: Modulation, db: f64) -> f64 {
        modulation.bit_error_rate(10f64.powf(db / 10.0))
    }

    #[test]
    fn antipodal_signals_reach_the_textbook_rates() {
        // Proakis, figure 5.2-4: 1e-5 at 9.6 dB; and 0.0786 at 0 dB.
        assert!((at_db(Modulation::Bpsk, 9.5879) / 1e-5 - 1.0).abs() < 1e-3);
        assert!((at_db(Modulation::Qpsk, 0.0) - 0.078_649_6).abs() < 1e-7);
        assert!((at_db(Modulation::Bpsk, 6.7895) / 1e-3 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn psk8_lies_between_its_bounds() {
        for db in [0.0, 4.0, 8.0, 12.0, 15.0] {
            let es_n0 = 3.0 * 10f64.powf(db / 10.0);
            // The union bound on the edges of the two nearest sectors, and the symbol error rate, of which at least a third are
            // bit errors.
            let nearest = q((2.0 * es_n0).sqrt() * (PI / 8.0).sin());
            let symbol = phase_beyond(PI / 8.0, es_n0);
            let bits = at_db(Modulation::Psk8, db);
            assert!(symbol <= 2.0 * nearest * (1.0 + 1e-9) && symbol > nearest, "{db}");
            assert!(bits > symbol / 3.0 * 0.999_999 && bits < symbol / 3.0 * 1.5, "{db}: {bits} {symbol}");
        }
        // 1e-5 needs about 13 dB (Proakis, figure 4.3-6 by symbols).
        assert!((0.9e-5..1.1e-5).contains(&at_db(Modulation::Psk8, 12.97)));
    }

    #[test]
    fn qam16_reaches_the_textbook_rate() {
        // 1e-5 at 13.4 dB.
        assert!((0.9e-5..1.1e-5).contains(&at_db(Modulation::Qam16, 13.43)), "{}", at_db(Modulation::Qam16, 13.43));
    }

    #[test]
    fn a_phase_is_beyond_half_of_nothing_without_signal() {
        for angle in [0.3, 1.0, 2.0] {
            assert!((phase_beyond(angle, 0.0) - (1.0 - angle / PI)).abs() < 1e-3);
        }
    }
}
