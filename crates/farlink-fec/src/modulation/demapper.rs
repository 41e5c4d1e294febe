//! From received points to bits.

use crate::Soft;

use super::{Decision, Modulation};

/// Converts received points to binary symbols.
///
/// Soft: the bit-wise max-log likelihood ratio, (least squared distance to a point with a 1 - least with a 0) / N0, scaled such
/// that [`full scale`](Demapper::full_scale) is 127, rounded to the nearest integer and clipped. Full scale is two standard
/// deviations above the largest ratio without noise. For BPSK the loss is less than 0.001 dB of Eb/N0 for Es/N0 from -1 to 10 dB,
/// and 0.005 dB at -6 dB. The 31 levels that the fast decoder for K = 7, rate 1/2 uses lose 0.017 to 0.026 dB at -1 to 5 dB and
/// 0.04 dB at 8 dB (by the exponent of pairwise errors; by capacity no more). Hard: the sign, +1 or -1.
#[derive(Clone, Debug)]
pub struct Demapper {
    /// The points; a modulation with fewer points is filled up with zeros.
    points: [[f64; 2]; 16],
    bits: u32,
    decision: Decision,
    /// Steps of soft output per unit of squared distance.
    steps: f64,
    full_scale: f64,
}

impl Demapper {
    /// A demapper for points of mean energy 1 ([`Modulation::point`]) and noise of power N0 = 1 / `es_n0`.
    pub fn new(modulation: Modulation, decision: Decision, es_n0: f64) -> Demapper {
        let bits = modulation.bits_per_symbol();
        let mut points = [[0.0; 2]; 16];
        for (label, point) in (0..1 << bits).zip(&mut points) {
            *point = modulation.point(label);
        }
        let mut demapper = Demapper { points, bits, decision, steps: 1.0, full_scale: 1.0 };
        let mut greatest = 0.0f64;
        let mut slope = 0.0f64;
        for &[i, q] in &points[..1 << bits] {
            for &ratio in &demapper.ratios(i, q)[..bits as usize] {
                if ratio.abs() > greatest {
                    // Twice the distance to the nearest point of the other value: the change of the ratio per unit of noise.
                    (greatest, slope) = (ratio.abs(), 2.0 * ratio.abs().sqrt());
                }
            }
        }
        let deviation = slope * (0.5 / es_n0).sqrt();
        let full = greatest + 2.0 * deviation;
        demapper.steps = 127.0 / full;
        demapper.full_scale = full * es_n0;
        demapper
    }

    /// The log-likelihood ratio of a soft symbol of 127.
    pub fn full_scale(&self) -> f64 {
        self.full_scale
    }

    /// The symbols of a received point, one per bit of a label.
    #[inline]
    pub fn symbols(&self, i: f64, q: f64, symbols: &mut [Soft]) {
        for (symbol, ratio) in symbols.iter_mut().zip(self.ratios(i, q)).take(self.bits as usize) {
            *symbol = match self.decision {
                Decision::Hard if ratio < 0.0 => -1,
                Decision::Hard => 1,
                Decision::Soft => nearest((ratio * self.steps).clamp(-127.0, 127.0)),
            };
        }
    }

    /// Least squared distance to a 1 less the least to a 0, for each bit.
    #[inline(always)]
    fn ratios(&self, i: f64, q: f64) -> [f64; 4] {
        match self.bits {
            1 => self.ratios_of::<1>(i, q),
            2 => self.ratios_of::<2>(i, q),
            3 => self.ratios_of::<3>(i, q),
            _ => {
                // 16QAM: the quadrature component adds the same to the distances for both values of an in-phase bit.
                let [first, second] = axis_ratios(i, [0, 4, 8, 12].map(|label| self.points[label][0]));
                let [third, fourth] = axis_ratios(q, [0, 1, 2, 3].map(|label| self.points[label][1]));
                [first, second, third, fourth]
            }
        }
    }

    #[inline(always)]
    fn ratios_of<const BITS: usize>(&self, i: f64, q: f64) -> [f64; 4] {
        let mut least = [[f64::INFINITY; 2]; BITS];
        for (label, point) in self.points[..1 << BITS].iter().enumerate() {
            let (di, dq) = (i - point[0], q - point[1]);
            let distance = di * di + dq * dq;
            for (bit, least) in least.iter_mut().enumerate() {
                let least = &mut least[label >> (BITS - 1 - bit) & 1];
                *least = if distance < *least { distance } else { *least };
            }
        }
        let mut ratios = [0.0; 4];
        for (ratio, least) in ratios.iter_mut().zip(least) {
            *ratio = least[1] - least[0];
        }
        ratios
    }

    /// The boundary between soft steps `step` and `step` + 1 of a BPSK or QPSK symbol, in units of its noise-free amplitude.
    pub(crate) fn antipodal_boundary(&self, step: i32) -> f64 {
        let amplitude_squared = self.points[0][0] * self.points[0][0];
        (f64::from(step) + 0.5) / (self.steps * 4.0 * amplitude_squared)
    }
}

/// Least squared distance to a 1 less the least to a 0, for both bits of an axis with these amplitudes for 00, 01, 10 and 11.
#[inline]
fn axis_ratios(x: f64, amplitudes: [f64; 4]) -> [f64; 2] {
    let [a, b, c, d] = amplitudes.map(|amplitude| (x - amplitude) * (x - amplitude));
    let least = |a: f64, b: f64| if a < b { a } else { b };
    [least(c, d) - least(a, b), least(b, d) - least(a, c)]
}

/// The nearest whole number to one between -127 and 127, halves to even.
#[inline]
fn nearest(x: f64) -> Soft {
    // It is so large that the last bit of the sum has the weight 1, and the low byte is the number.
    const LARGE: f64 = 1.5 * (1u64 << 52) as f64;
    (x + LARGE).to_bits() as Soft
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Modulation; 4] = [Modulation::Bpsk, Modulation::Qpsk, Modulation::Psk8, Modulation::Qam16];

    #[test]
    fn points_without_noise_demap_to_their_labels() {
        for modulation in ALL {
            for decision in [Decision::Hard, Decision::Soft] {
                let demapper = Demapper::new(modulation, decision, 4.0);
                let bits = modulation.bits_per_symbol();
                for label in 0..1 << bits {
                    let [i, q] = modulation.point(label);
                    let mut symbols = [0; 4];
                    demapper.symbols(i, q, &mut symbols);
                    let back = symbols[..bits as usize].iter().fold(0, |back, &s| back << 1 | u32::from(s < 0));
                    assert_eq!(back, label, "{modulation} {decision}");
                }
            }
        }
    }

    #[test]
    fn axes_of_16qam_are_independent() {
        let demapper = Demapper::new(Modulation::Qam16, Decision::Soft, 4.0);
        for at in 0..400 {
            let (i, q) = (f64::from(at % 20) / 7.0 - 1.4, f64::from(at / 20) / 7.0 - 1.3);
            let all = demapper.ratios_of::<4>(i, q);
            let apart = demapper.ratios(i, q);
            assert!(all.iter().zip(apart).all(|(all, apart)| (all - apart).abs() < 1e-12), "{all:?} {apart:?}");
        }
    }

    #[test]
    fn halves_round_to_even() {
        for quarters in -508..=508 {
            let x = f64::from(quarters) / 4.0;
            assert_eq!(f64::from(nearest(x)), x.round_ties_even(), "{x}");
        }
    }

    #[test]
    fn full_scale_is_two_deviations_above_the_amplitude() {
        let demapper = Demapper::new(Modulation::Bpsk, Decision::Soft, 2.0);
        // Amplitude 1, deviation sqrt(N0 / 2) = 0.5: full scale at 2, a likelihood ratio of 4 Es/N0 times that.
        assert!((demapper.full_scale() - 16.0).abs() < 1e-12);
        let mut symbol = [0];
        demapper.symbols(1.0, 0.0, &mut symbol);
        assert_eq!(symbol, [64]);
        demapper.symbols(-100.0, 0.0, &mut symbol);
        assert_eq!(symbol, [-127]);
        assert!((demapper.antipodal_boundary(126) - 2.0 * 126.5 / 127.0).abs() < 1e-12);
    }
}
