//! From coded bits to the symbols that the demodulator passes to the decoder.

use std::fmt;

use crate::modulation::{Decision, Demapper, Modulation, q};
use crate::{Soft, bits};

use super::discrete::Sampler;
use super::normal::Normal;
use super::{Noise, ratio};

/// A modulator, Gaussian noise and a demodulator.
///
/// Each bit of BPSK and QPSK passes a memoryless channel with 255 outputs (2 with hard decisions), whose probabilities are
/// computed once and sampled from a table. 8PSK and 16QAM draw Gaussian numbers and demap them ([`Demapper`]).
#[derive(Clone)]
pub struct Channel {
    modulation: Modulation,
    kind: Kind,
    bit_error_rate: f64,
}

#[derive(Clone)]
enum Kind {
    Table(Box<Sampler>),
    Points { points: Vec<[f64; 2]>, demapper: Box<Demapper>, normal: Box<Normal>, deviation: f64 },
}

impl Channel {
    /// A channel at an Es/N0 in dB.
    pub fn new(modulation: Modulation, decision: Decision, es_n0_db: f64) -> Channel {
        let es_n0 = ratio(es_n0_db);
        let kind = if modulation.is_antipodal() {
            Kind::Table(Box::new(Sampler::new(&Antipodal::new(modulation, decision, es_n0_db).sent)))
        } else {
            Kind::Points {
                points: (0..1 << modulation.bits_per_symbol()).map(|label| modulation.point(label)).collect(),
                demapper: Box::new(Demapper::new(modulation, decision, es_n0)),
                normal: Box::new(Normal::new()),
                deviation: (0.5 / es_n0).sqrt(),
            }
        };
        let bit_error_rate = modulation.bit_error_rate(es_n0 / f64::from(modulation.bits_per_symbol()));
        Channel { modulation, kind, bit_error_rate }
    }

    /// Share of coded bits that hard decisions decide wrongly.
    pub fn bit_error_rate(&self) -> f64 {
        self.bit_error_rate
    }

    /// Sends the first `count` packed bits and appends the received symbols, one per bit. The last constellation point is filled
    /// up with zeros.
    ///
    /// # Panics
    /// If there are fewer bits.
    pub fn carry(&self, sent: &[u8], count: usize, noise: &mut Noise, received: &mut Vec<Soft>) {
        let from = received.len();
        received.resize(from + count, 0);
        let out = &mut received[from..];
        match &self.kind {
            Kind::Table(sampler) => {
                assert!(sent.len() * 8 >= count, "fewer bits than are to be sent");
                sampler.fill(noise, out);
                let mut groups = out.chunks_exact_mut(8);
                for (group, &byte) in groups.by_ref().zip(sent) {
                    negate(group.try_into().expect("chunks of 8"), byte);
                }
                for (place, symbol) in groups.into_remainder().iter_mut().enumerate() {
                    if bits::get(sent, count / 8 * 8 + place) {
                        *symbol = -*symbol;
                    }
                }
            }
            Kind::Points { points, demapper, normal, deviation } => {
                let bits_per_symbol = self.modulation.bits_per_symbol() as usize;
                for (symbol, out) in out.chunks_mut(bits_per_symbol).enumerate() {
                    let first = symbol * bits_per_symbol;
                    let label = (first..first + bits_per_symbol)
                        .fold(0, |label, at| label << 1 | usize::from(at < count && bits::get(sent, at)));
                    let [i, q] = points[label];
                    let i = i + deviation * normal.sample(noise);
                    let q = q + deviation * normal.sample(noise);
                    demapper.symbols(i, q, out);
                }
            }
        }
    }
}

/// For each byte of sent bits, -1 at the positions of its ones.
static SIGNS: [[i8; 8]; 256] = {
    let mut signs = [[0; 8]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        signs[at / 8][at % 8] = -((((at / 8) >> (7 - at % 8)) & 1) as i8);
        at += 1;
    }
    signs
};

/// Changes the sign of received symbols where a 1 was sent.
#[inline]
fn negate(symbols: &mut [Soft; 8], sent: u8) {
    for (symbol, sign) in symbols.iter_mut().zip(SIGNS[usize::from(sent)]) {
        *symbol = (*symbol ^ sign).wrapping_sub(sign);
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("modulation", &self.modulation).field("ber", &self.bit_error_rate).finish()
    }
}

/// The memoryless channel of a bit of BPSK or QPSK, and the same channel with its noise biased to the decision boundary.
pub(crate) struct Antipodal {
    /// Probability of each received symbol -127..=127 if a 0 was sent.
    pub(crate) sent: [f64; 255],
    /// The same if the mean is 0, so that both bits are equally likely.
    pub(crate) silent: [f64; 255],
}

impl Antipodal {
    /// # Panics
    /// If the modulation is neither BPSK nor QPSK.
    pub(crate) fn new(modulation: Modulation, decision: Decision, es_n0_db: f64) -> Antipodal {
        assert!(modulation.is_antipodal(), "{modulation} has no channel per bit");
        let es_n0 = ratio(es_n0_db);
        // In units of the amplitude of a bit.
        let deviation = (0.5 * f64::from(modulation.bits_per_symbol()) / es_n0).sqrt();
        let demapper = Demapper::new(modulation, Decision::Soft, es_n0);
        let output = |mean: f64| -> [f64; 255] {
            let mut p = [0.0; 255];
            if decision == Decision::Hard {
                (p[126], p[128]) = (q(mean / deviation), q(-mean / deviation));
                return p;
            }
            for (at, p) in p.iter_mut().enumerate() {
                let step = at as i32 - 127;
                let above = if step == 127 { f64::INFINITY } else { demapper.antipodal_boundary(step) };
                let below = if step == -127 { f64::NEG_INFINITY } else { demapper.antipodal_boundary(step - 1) };
                let (above, below) = ((above - mean) / deviation, (below - mean) / deviation);
                // The difference of two small numbers, on either side.
                *p = if below > 0.0 { q(below) - q(above) } else { q(-above) - q(-below) };
            }
            p
        };
        Antipodal { sent: output(1.0), silent: output(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(channel: &Channel, bits_sent: usize) -> f64 {
        let mut noise = Noise::stream(3, 1);
        let mut sent = vec![0; bits_sent / 8];
        noise.fill(&mut sent);
        let mut received = Vec::new();
        channel.carry(&sent, bits_sent, &mut noise, &mut received);
        // A soft 0 counts as half an error.
        let halves: u32 = received
            .iter()
            .enumerate()
            .map(|(at, &symbol)| if symbol == 0 { 1 } else { 2 * u32::from((symbol < 0) != bits::get(&sent, at)) })
            .sum();
        f64::from(halves) / 2.0 / bits_sent as f64
    }

    #[test]
    fn wrong_bits_are_as_many_as_the_closed_form_says() {
        for modulation in [Modulation::Bpsk, Modulation::Qpsk, Modulation::Psk8, Modulation::Qam16] {
            for decision in [Decision::Hard, Decision::Soft] {
                let channel = Channel::new(modulation, decision, 7.0);
                const BITS: usize = 960_000;
                let (seen, p) = (wrong(&channel, BITS), channel.bit_error_rate());
                // Bits of a constellation point are not independent, so the interval is wider than that of a binomial variable.
                let deviation = (2.0 * p / BITS as f64).sqrt();
                assert!((seen - p).abs() < 4.0 * deviation, "{modulation} {decision}: {seen} {p}");
            }
        }
    }

    #[test]
    fn a_last_point_may_be_short() {
        let channel = Channel::new(Modulation::Qam16, Decision::Hard, 30.0);
        let mut received = vec![7];
        channel.carry(&[0b1010_1100], 7, &mut Noise::stream(0, 0), &mut received);
        assert_eq!(received, [7, -1, 1, -1, 1, -1, -1, 1]);
    }

    #[test]
    fn probabilities_add_up() {
        for es_n0_db in [-10.0, 0.0, 12.0] {
            let bit = Antipodal::new(Modulation::Qpsk, Decision::Soft, es_n0_db);
            for p in [&bit.sent, &bit.silent] {
                assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
            assert!((bit.silent[0] - bit.silent[254]).abs() < 1e-15);
        }
    }
}
