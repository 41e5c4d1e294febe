//! The reference decoder's bit error rates on random data, against those of another implementation.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::convolutional::Encoder;
use crate::convolutional::test_codes::{random_bits, symbols};

/// Wrong bits, their squared deviation summed over frames, and frames.
struct Counted {
    bit_error_rate: f64,
    /// Its standard deviation, from how the frames differ.
    deviation: f64,
    events: usize,
}

fn gaussian_pair(rng: &mut Pcg64Mcg) -> [f64; 2] {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - u));
    let angle = 2.0 * std::f64::consts::PI * v;
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

/// Counts the errors of the code 171, 133 with BPSK over AWGN.
fn count(ebn0_db: f64, is_hard: bool, traceback: usize, frames: usize) -> Counted {
    const DATA_BITS: usize = 8000;
    let code = Code::from_octal("171,133").unwrap();
    let (encoder, mut viterbi) = (Encoder::new(&code), Viterbi::new(&code, traceback));
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let deviation = libm::sqrt(1.0 / (2.0 * 0.5 * libm::pow(10.0, ebn0_db / 10.0)));
    let amplitude = 32.0;
    let (mut wrong, mut squares, mut events) = (0.0, 0.0, 0);
    for _ in 0..frames {
        let data = random_bits(&mut rng, DATA_BITS);
        let coded = encoder.encode(&data, DATA_BITS, Ending::Terminated);
        let mut received = symbols(&coded, encoder.coded_bits(DATA_BITS, Ending::Terminated), 1);
        for pair in received.chunks_exact_mut(2) {
            for (symbol, noise) in pair.iter_mut().zip(gaussian_pair(&mut rng)) {
                let level = f64::from(*symbol) + deviation * noise;
                *symbol = match is_hard {
                    true => {
                        if level < 0.0 {
                            -1
                        } else {
                            1
                        }
                    }
                    false => libm::round(amplitude * level).clamp(-127.0, 127.0) as Soft,
                };
            }
        }
        let mut decoded = vec![0; data.len()];
        viterbi.decode(&received, Ending::Terminated, &mut decoded).unwrap();
        let positions: Vec<usize> = bits::differences(&data, &decoded, DATA_BITS).collect();
        events +=
            usize::from(!positions.is_empty()) + positions.windows(2).filter(|pair| pair[1] - pair[0] > 6).count();
        wrong += positions.len() as f64;
        squares += (positions.len() * positions.len()) as f64;
    }
    let (frames, bits) = (frames as f64, frames as f64 * DATA_BITS as f64);
    let variance = squares / frames - (wrong / frames) * (wrong / frames);
    Counted { bit_error_rate: wrong / bits, deviation: libm::sqrt(variance * frames) / bits, events }
}

#[test]
fn the_error_rate_is_that_of_other_decoders() {
    let hard = count(5.0, true, 35, 1200);
    assert!(hard.events >= 1000, "{}", hard.events);
    assert!((hard.bit_error_rate - 5.8e-4).abs() < 3.0 * hard.deviation, "{:e}", hard.bit_error_rate);
}
