//! Modulations: their constellation points and the output of a demodulator.

mod demapper;
mod error_rate;

use std::fmt;

pub use demapper::Demapper;
pub use error_rate::q;

/// A modulation, Gray-labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Modulation {
    /// Binary phase-shift keying, 1 bit a symbol.
    Bpsk,
    /// Quaternary phase-shift keying, 2 bits a symbol.
    Qpsk,
    /// Phase-shift keying with 8 phases, 3 bits a symbol.
    Psk8,
    /// Quadrature amplitude modulation with 16 points, 4 bits a symbol.
    Qam16,
}

impl Modulation {
    /// Number of bits per symbol.
    pub fn bits_per_symbol(self) -> u32 {
        match self {
            Modulation::Bpsk => 1,
            Modulation::Qpsk => 2,
            Modulation::Psk8 => 3,
            Modulation::Qam16 => 4,
        }
    }

    /// The point of a label, in phase and in quadrature; the mean energy of all points is 1.
    ///
    /// A label has the bits of a symbol, the first in its most significant position; higher bits of `label` are ignored. Labels
    /// of neighbours differ in one bit. The first bit of BPSK and QPSK is in phase, positive for a 0; QPSK's second bit is in
    /// quadrature; 16QAM carries two bits in phase, then two in quadrature.
    pub fn point(self, label: u32) -> [f64; 2] {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let sign = |bit: u32| if bit & 1 == 0 { 1.0 } else { -1.0 };
        match self {
            Modulation::Bpsk => [sign(label), 0.0],
            Modulation::Qpsk => [half * sign(label >> 1), half * sign(label)],
            Modulation::Psk8 => {
                let index = gray_index(label & 7);
                let angle = f64::from(index) * std::f64::consts::FRAC_PI_4;
                [libm::cos(angle), libm::sin(angle)]
            }
            Modulation::Qam16 => [amplitude(label >> 2), amplitude(label)],
        }
    }

    /// Whether every bit has the same channel with its own real noise: BPSK and QPSK.
    pub(crate) fn is_antipodal(self) -> bool {
        matches!(self, Modulation::Bpsk | Modulation::Qpsk)
    }
}

impl fmt::Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Modulation::Bpsk => "BPSK",
            Modulation::Qpsk => "QPSK",
            Modulation::Psk8 => "8PSK",
            Modulation::Qam16 => "16QAM",
        })
    }
}

/// The step of the phase circle with a Gray label.
fn gray_index(label: u32) -> u32 {
    label ^ label >> 1 ^ label >> 2
}

/// One axis of 16QAM: labels 00, 01, 11, 10 from the most positive amplitude down, mean energy 1/2.
fn amplitude(label: u32) -> f64 {
    let step = 1.0 / 10f64.sqrt();
    match label & 3 {
        0 => 3.0 * step,
        1 => step,
        3 => -step,
        _ => -3.0 * step,
    }
}

/// The output of the demodulator for the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// One bit.
    Hard,
    /// Eight bits.
    Soft,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decision::Hard => "hard",
            Decision::Soft => "soft",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Modulation; 4] = [Modulation::Bpsk, Modulation::Qpsk, Modulation::Psk8, Modulation::Qam16];

    #[test]
    fn points_have_mean_energy_one() {
        for modulation in ALL {
            let labels = 1 << modulation.bits_per_symbol();
            let energy: f64 = (0..labels).map(|label| modulation.point(label)).map(|[i, q]| i * i + q * q).sum();
            assert!((energy / f64::from(labels) - 1.0).abs() < 1e-12, "{modulation}");
        }
    }

    #[test]
    fn nearest_neighbours_differ_in_one_bit() {
        for modulation in ALL {
            let labels = 1u32 << modulation.bits_per_symbol();
            let distance = |a: u32, b: u32| {
                let ([ai, aq], [bi, bq]) = (modulation.point(a), modulation.point(b));
                (ai - bi).hypot(aq - bq)
            };
            let pairs = || (0..labels).flat_map(|a| (0..a).map(move |b| (a, b)));
            let least = pairs().map(|(a, b)| distance(a, b)).fold(f64::INFINITY, f64::min);
            for (a, b) in pairs().filter(|&(a, b)| distance(a, b) < 1.001 * least) {
                assert_eq!((a ^ b).count_ones(), 1, "{modulation} {a:04b} {b:04b}");
            }
        }
    }
}
