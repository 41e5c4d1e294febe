//! Scales a power series to a long-term bit error rate.

use super::Receiver;

/// Why no factor of the power gives the requested error rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The probability of a bit error is at most 1/2.
    #[error("a long-term bit error rate of {ber} cannot be reached; allowed: above 0 and below 0.5")]
    OutOfRange {
        /// The requested rate.
        ber: f64,
    },
    /// Every sample is blocked.
    #[error("all {samples} samples are blocked, so that nothing is left to scale")]
    AllBlocked {
        /// Number of samples.
        samples: usize,
    },
    /// Samples without power have an error rate of 1/2 at any scale.
    #[error(
        "a long-term bit error rate of {ber:e} cannot be reached: {dark} samples (the first is sample {first}) are without \
         power and not marked as blocked, and they alone give {floor:e}"
    )]
    Dark {
        /// The requested rate.
        ber: f64,
        /// Number of samples without power.
        dark: usize,
        /// Index of the first of them.
        first: usize,
        /// The error rate that they cause.
        floor: f64,
    },
}

/// Share of wrong bits over all samples that are not blocked, with the power multiplied by `gain`; each sample has the same
/// number of bits. `blocked` is empty if no sample is blocked. NaN if all are.
pub fn mean_ber(receiver: &Receiver, power_w: &[f64], blocked: &[bool], gain: f64) -> f64 {
    let mut sum = 0.0;
    let mut count = 0usize;
    for (at, power) in power_w.iter().enumerate() {
        if !is_blocked(blocked, at) {
            sum += receiver.ber(power * gain);
            count += 1;
        }
    }
    sum / count as f64
}

/// The factor of the power with which the long-term bit error rate over all samples that are not blocked is `ber`.
///
/// Scaling represents another transmit power and does not change the fading. B. Epple, section 2.3.
///
/// # Errors
/// If there is no such factor.
pub fn gain_for_ber(receiver: &Receiver, power_w: &[f64], blocked: &[bool], ber: f64) -> Result<f64, CalibrationError> {
    if !(ber > 0.0 && ber < 0.5) {
        return Err(CalibrationError::OutOfRange { ber });
    }
    let bins = Bins::new(power_w, blocked);
    if bins.samples == 0 {
        return Err(CalibrationError::AllBlocked { samples: power_w.len() });
    }
    let floor = 0.5 * bins.dark as f64 / bins.samples as f64;
    if floor >= ber {
        let is_dark = |at: &usize| power_w[*at] == 0.0 && !is_blocked(blocked, *at);
        let first = (0..power_w.len()).find(is_dark).unwrap_or(0);
        return Err(CalibrationError::Dark { ber, dark: bins.dark, first, floor });
    }
    let mut gain = bins.gain_for_ber(receiver, ber);
    // The bins are accurate to about 1e-4. A few secant steps over all samples follow, in logarithms, where the function is
    // nearly linear.
    let miss = |gain: f64| libm::log(mean_ber(receiver, power_w, blocked, gain) / ber);
    let (mut before, mut wrong) = (gain, miss(gain));
    gain *= if wrong > 0.0 { 1.0 + 1e-4 } else { 1.0 - 1e-4 };
    for _ in 0..20 {
        let now = miss(gain);
        let slope = (now - wrong) / libm::log(gain / before);
        if now.abs() < 1e-13 || !slope.is_finite() || slope == 0.0 {
            break;
        }
        (before, wrong) = (gain, now);
        gain *= libm::exp(-now / slope);
    }
    Ok(gain)
}

fn is_blocked(blocked: &[bool], at: usize) -> bool {
    blocked.get(at).copied().unwrap_or(false)
}

/// Samples grouped by their power: thousands of steps instead of millions.
struct Bins {
    /// Representative power, W, and number of samples.
    powers: Vec<(f64, f64)>,
    samples: usize,
    dark: usize,
}

impl Bins {
    const PER_OCTAVE: f64 = 64.0;

    fn new(power_w: &[f64], blocked: &[bool]) -> Self {
        let mut counts = std::collections::BTreeMap::new();
        let (mut samples, mut dark) = (0, 0);
        for (at, &power) in power_w.iter().enumerate() {
            if is_blocked(blocked, at) {
                continue;
            }
            samples += 1;
            if power == 0.0 {
                dark += 1;
            } else {
                *counts.entry(bin(power)).or_insert(0usize) += 1;
            }
        }
        let power = |bin: i32| libm::exp2((f64::from(bin) + 0.5) / Self::PER_OCTAVE);
        let powers = counts.into_iter().map(|(bin, count)| (power(bin), count as f64)).collect();
        Bins { powers, samples, dark }
    }

    fn mean_ber(&self, receiver: &Receiver, gain: f64) -> f64 {
        let sum: f64 = self.powers.iter().map(|(power, count)| receiver.ber(power * gain) * count).sum();
        (sum + 0.5 * self.dark as f64) / self.samples as f64
    }

    /// By bisection of the logarithm between a power that is too weak and one that is too strong for all samples.
    fn gain_for_ber(&self, receiver: &Receiver, ber: f64) -> f64 {
        let wanted = receiver.power_w(ber);
        let weakest = self.powers.first().map_or(wanted, |(power, _)| *power);
        let strongest = self.powers.last().map_or(wanted, |(power, _)| *power);
        // Beyond both ends every sample is better, or worse, than requested; above, dark samples compensate for a part.
        let (mut low, mut high) = (wanted / strongest / 4.0, receiver.power_w(1e-300) / weakest * 4.0);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if self.mean_ber(receiver, middle) > ber { low = middle } else { high = middle }
        }
        (low * high).sqrt()
    }
}

/// The bin of a power above zero.
fn bin(power: f64) -> i32 {
    (libm::log2(power) * Bins::PER_OCTAVE).floor() as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Rng;
    use crate::optics::ReceiverSetting;

    fn reference() -> Receiver {
        ReceiverSetting::default().receiver()
    }

    #[test]
    fn constant_power_is_scaled_to_the_target_error_rate() {
        let gain = gain_for_ber(&reference(), &[3e-3; 10], &[], 1e-6).unwrap();
        assert!((gain * 3e-3 / reference().power_w(1e-6) - 1.0).abs() < 1e-12, "{gain}");
    }

    #[test]
    fn unreachable_error_rates_are_reported() {
        let gain = |power_w: &[f64], blocked: &[bool], ber| gain_for_ber(&reference(), power_w, blocked, ber);
        assert_eq!(gain(&[1.0], &[], 0.5), Err(CalibrationError::OutOfRange { ber: 0.5 }));
        assert!(matches!(gain(&[1.0], &[], f64::NAN), Err(CalibrationError::OutOfRange { .. })));
        assert_eq!(gain(&[1.0, 2.0], &[true, true], 1e-6), Err(CalibrationError::AllBlocked { samples: 2 }));
        let dark = CalibrationError::Dark { ber: 1e-6, dark: 1, first: 2, floor: 1.0 / 6.0 };
        assert_eq!(gain(&[1.0, 2.0, 0.0], &[], 1e-6), Err(dark));
        assert!(gain(&[1.0, 2.0, 0.0], &[false, false, true], 1e-6).is_ok(), "a blockage counts for nothing");
        assert!(gain(&[1.0, 2.0, 0.0], &[], 0.2).is_ok(), "the dark sample alone gives less");
    }

    proptest! {
        #[test]
        fn the_error_rate_is_met(seed in 0u64..1000, exponent in -12.0..-0.4f64, spread in 0.0..3.0f64, scale in -20.0..3.0f64) {
            let mut rng = Rng::for_component(seed, 0, "power");
            let power_w: Vec<f64> =
                (0..500).map(|_| 10f64.powf(scale) * libm::exp(-spread * rng.exponential(1.0))).collect();
            let blocked: Vec<bool> = (0..500).map(|_| rng.chance(0.1)).collect();
            let ber = 10f64.powf(exponent);
            let gain = gain_for_ber(&reference(), &power_w, &blocked, ber).unwrap();
            let met = mean_ber(&reference(), &power_w, &blocked, gain);
            prop_assert!((met / ber - 1.0).abs() < 1e-9, "{met} instead of {ber}");
        }
    }
}
