//! The reference decoder's bit error rates on random data, compared with other implementations and the union bound.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::*;
use crate::convolutional::test_codes::{random_bits, symbols};
use crate::convolutional::{Encoder, Puncturing, Spectrum, bounds};
use crate::modulation::Decision;

/// Data bits of a frame.
const DATA_BITS: usize = 8000;

/// BPSK over AWGN.
#[derive(Clone)]
struct Link {
    code: Code,
    puncturing: Puncturing,
    decision: Decision,
    ebn0_db: f64,
    traceback: usize,
}

struct Counted {
    bit_error_rate: f64,
    /// Its standard deviation, from the variation between frames.
    deviation: f64,
    /// Runs of wrong bits with K - 1 correct bits between them.
    events: usize,
}

impl Link {
    fn usual(decision: Decision, ebn0_db: f64, traceback: usize) -> Link {
        let code = Code::from_octal("171,133").unwrap();
        Link { code, puncturing: Puncturing::none(2), decision, ebn0_db, traceback }
    }

    fn spectrum(&self) -> Spectrum {
        Spectrum::new(&self.code, &self.puncturing, 20).unwrap()
    }

    fn count(&self, frames: u64) -> Counted {
        let wrong: Vec<(f64, usize)> = (0..frames).into_par_iter().map(|frame| self.frame(frame)).collect();
        let sum: f64 = wrong.iter().map(|(bits, _)| bits).sum();
        let mean = sum / frames as f64;
        let variance = wrong.iter().map(|(bits, _)| (bits - mean) * (bits - mean)).sum::<f64>() / (frames - 1) as f64;
        Counted {
            bit_error_rate: mean / DATA_BITS as f64,
            deviation: libm::sqrt(variance / frames as f64) / DATA_BITS as f64,
            events: wrong.iter().map(|(_, events)| events).sum(),
        }
    }

    /// Number of wrong bits of one frame, and number of runs.
    fn frame(&self, seed: u64) -> (f64, usize) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let data = random_bits(&mut rng, DATA_BITS);
        let steps = Ending::Terminated.steps(DATA_BITS, self.code.constraint_length());
        let coded = Encoder::new(&self.code).encode(&data, DATA_BITS, Ending::Terminated);
        let mut received = symbols(&self.puncturing.puncture(&coded, steps), self.puncturing.sent_bits(steps), 1);
        let deviation = libm::sqrt(0.5 / (self.puncturing.rate() * libm::pow(10.0, self.ebn0_db / 10.0)));
        for pair in received.chunks_mut(2) {
            for (symbol, noise) in pair.iter_mut().zip(gaussian_pair(&mut rng)) {
                let level = f64::from(*symbol) + deviation * noise;
                *symbol = match self.decision {
                    Decision::Hard if level < 0.0 => -1,
                    Decision::Hard => 1,
                    Decision::Soft => libm::round(32.0 * level).clamp(-127.0, 127.0) as Soft,
                };
            }
        }
        let received = self.puncturing.depuncture(&received, steps).unwrap();
        let mut decoded = vec![0; data.len()];
        Viterbi::new(&self.code, self.traceback).decode(&received, Ending::Terminated, &mut decoded).unwrap();
        let wrong: Vec<usize> = bits::differences(&data, &decoded, DATA_BITS).collect();
        let apart = wrong.windows(2).filter(|pair| pair[1] - pair[0] >= self.code.constraint_length() as usize).count();
        (wrong.len() as f64, apart + usize::from(!wrong.is_empty()))
    }
}

fn gaussian_pair(rng: &mut Pcg64Mcg) -> [f64; 2] {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - u));
    let angle = 2.0 * std::f64::consts::PI * v;
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

fn assert_near(counted: &Counted, expected: f64, what: &str) {
    let away = (counted.bit_error_rate - expected) / counted.deviation;
    assert!(away.abs() < 3.0, "{what}: {:e}, {away:.1} deviations from {expected:e}", counted.bit_error_rate);
}

/// A decoder with floating-point metrics has 5.8e-4 with hard decisions at 5 dB, a trace-back of 5 K steps and random data.
#[test]
fn hard_decisions_err_as_often_as_with_another_decoder() {
    let counted = Link::usual(Decision::Hard, 5.0, 35).count(1100);
    assert!(counted.events >= 1000, "{}", counted.events);
    assert_near(&counted, 5.8e-4, "hard, 5 dB");
}

/// That decoder has 5.0e-4 with soft decisions at 3 dB. Here each step of trace-back less costs 4 %: 32 steps, from the newest
/// state to the decided bit, equal its 5 K = 35 as it counts them; 35 steps give 4.4e-4.
#[test]
fn soft_decisions_err_as_often_as_with_another_decoder() {
    let counted = Link::usual(Decision::Soft, 3.0, 32).count(1200);
    assert!(counted.events >= 1000, "{}", counted.events);
    assert_near(&counted, 5.0e-4, "soft, 3 dB");
}

/// Where the bound is tight, the simulated rate lies slightly below it.
#[test]
fn the_union_bound_holds_and_is_tight() {
    let code = Code::from_octal("7,5").unwrap();
    let link = Link { code, puncturing: Puncturing::none(2), decision: Decision::Soft, ebn0_db: 5.2, traceback: 60 };
    let bound = bounds::bit_error_rate_soft(&link.spectrum(), link.ebn0_db);
    let counted = link.count(800);
    assert!((4e-5..8e-5).contains(&bound) && counted.events > 200, "{bound:e} {}", counted.events);
    assert_near(&counted, bound, "soft, 5.2 dB");

    let link = Link { decision: Decision::Hard, ebn0_db: 7.3, ..link };
    let crossover = bounds::pairwise_soft(1, 0.5, link.ebn0_db);
    let bound = bounds::bit_error_rate_hard(&link.spectrum(), crossover);
    let counted = link.count(800);
    assert!(counted.bit_error_rate - 3.0 * counted.deviation < bound, "{:e} {bound:e}", counted.bit_error_rate);
    assert!(counted.bit_error_rate + 3.0 * counted.deviation > bound / 1.6, "{:e} {bound:e}", counted.bit_error_rate);
}

/// At 5e-5 the code of 64 states is still a third below its bound.
#[test]
#[ignore = "half a minute"]
fn the_union_bound_of_the_usual_code_holds_at_one_in_20_000() {
    for (ebn0_db, puncturing) in [(3.65, "1/2"), (4.8, "3/4")] {
        let puncturing = Puncturing::usual(puncturing).unwrap();
        let link = Link { puncturing, ..Link::usual(Decision::Soft, ebn0_db, 105) };
        let bound = bounds::bit_error_rate_soft(&link.spectrum(), ebn0_db);
        let Counted { bit_error_rate, deviation, events } = link.count(3000);
        println!("{ebn0_db} dB: bound {bound:.3e}, simulated {bit_error_rate:.3e} ± {deviation:.1e}, {events} events");
        assert!(bit_error_rate - 3.0 * deviation < bound && bit_error_rate + 3.0 * deviation > bound / 1.5);
    }
}
