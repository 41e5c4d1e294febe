//! The loss by quantisation of soft symbols, in dB, by two measures.

use crate::convolutional::Code;
use crate::convolutional::Ending;
use crate::convolutional::parallel::{self, FrameDecoder};
use crate::modulation::{Decision, Modulation};
use crate::simd::Simd;

use super::{Antipodal, db, ratio};

/// Each symbol value and its probability if a 0 was sent.
type Symbols = Vec<(f64, f64)>;

/// The symbols of 8 bits that a [`Channel`](super::Channel) delivers.
fn eight_bits(es_n0_db: f64) -> Symbols {
    let sent = Antipodal::new(Modulation::Bpsk, Decision::Soft, es_n0_db).sent;
    (-127..=127).map(f64::from).zip(sent).collect()
}

/// The costs that the fast decoder derives from them: up to `levels`, with full scale at 1 + 1.5 standard deviations of the
/// noise.
fn costs(es_n0_db: f64, levels: f64) -> Symbols {
    let deviation = (0.5 / ratio(es_n0_db)).sqrt();
    let full = (127.0 * (1.0 + 1.5 * deviation) / (1.0 + 2.0 * deviation)).floor();
    let cost = |symbol: f64| (symbol.abs().min(full) * levels / full).round().copysign(symbol);
    eight_bits(es_n0_db).into_iter().map(|(symbol, p)| (cost(symbol), p)).collect()
}

/// Loss by the exponent of the probability that the sum of `d` symbols is negative, P < exp(-d E) with E = -ln min over s of the
/// mean of exp(-s y) (Chernoff's bound, tight for large d). Without quantisation, E is Es/N0. Therefore this is the loss in Eb/N0
/// of a decoder that adds these symbols, at low error rates; with the best weights it would be that of the cutoff rate R0.
fn loss_by_exponent(es_n0_db: f64, symbols: &Symbols) -> f64 {
    let mean = |s: f64| symbols.iter().map(|(y, p)| p * libm::exp(-s * y)).sum::<f64>();
    let greatest = symbols.iter().map(|(y, _)| *y).fold(0.0, f64::max);
    // Convex in s: by ternary search.
    let (mut low, mut high) = (0.0, 100.0 / greatest);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if mean(a) < mean(b) { high = b } else { low = a }
    }
    es_n0_db - db(-libm::log(mean(low)))
}

/// Loss by capacity: the reduction of Es/N0 with the same capacity without quantisation.
fn loss_by_capacity(es_n0_db: f64, symbols: &Symbols) -> f64 {
    let likelihood = |of: f64| symbols.iter().filter(|(y, _)| *y == of).map(|(_, p)| p).sum::<f64>();
    let capacity = |symbols: &Symbols| {
        let mut values: Vec<f64> = symbols.iter().map(|(y, _)| *y).collect();
        values.dedup();
        let term = |y: f64| (likelihood(y), likelihood(-y));
        let bits = |(p, mirrored): (f64, f64)| if p > 0.0 { p * libm::log2(2.0 * p / (p + mirrored)) } else { 0.0 };
        values.into_iter().map(|y| bits(term(y))).sum::<f64>()
    };
    let wanted = capacity(symbols);
    let (mut low, mut high) = (es_n0_db - 1.0, es_n0_db + 0.1);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if unquantised_capacity(middle) < wanted { low = middle } else { high = middle }
    }
    es_n0_db - low
}

/// Capacity in bits per symbol of BPSK: 1 less the mean of log2(1 + exp(-2 y / variance)), by Simpson's rule.
fn unquantised_capacity(es_n0_db: f64) -> f64 {
    const STEPS: usize = 4000;
    let variance = 0.5 / ratio(es_n0_db);
    let width = 20.0 * variance.sqrt() / STEPS as f64;
    let at = |step: usize| {
        let off = (step as f64 - 0.5 * STEPS as f64) * width;
        libm::exp(-0.5 * off * off / variance) * libm::log1p(libm::exp(-2.0 * (1.0 + off) / variance))
    };
    let inner: f64 = (1..STEPS).map(|step| if step % 2 == 1 { 4.0 } else { 2.0 } * at(step)).sum();
    let mean = (at(0) + inner + at(STEPS)) * width / 3.0 / (2.0 * std::f64::consts::PI * variance).sqrt();
    1.0 - mean / std::f64::consts::LN_2
}

/// Es/N0 in dB, the loss in dB by the exponent and by capacity.
type Loss = (f64, f64, f64);

fn check(losses: &[Loss], symbols: impl Fn(f64) -> Symbols) {
    for &(es_n0_db, by_exponent, by_capacity) in losses {
        let symbols = symbols(es_n0_db);
        let found = (loss_by_exponent(es_n0_db, &symbols), loss_by_capacity(es_n0_db, &symbols));
        assert!((found.0 - by_exponent).abs() < 1e-4 && (found.1 - by_capacity).abs() < 1e-4, "{es_n0_db}: {found:?}");
    }
}

#[test]
fn eight_bits_lose_less_than_a_thousandth_of_a_decibel() {
    // Except at low Es/N0, where one symbol in 6 is clipped.
    let losses = [(-6.0, 0.0053, 0.0008), (-3.0, 0.0020, 0.0003), (-1.0, 0.0009, 0.0003)];
    check(&losses, eight_bits);
    check(&[(0.0, 0.0006, 0.0003), (2.0, 0.0004, 0.0003), (5.0, 0.0005, 0.0005), (10.0, 0.0009, 0.0009)], eight_bits);
}

#[test]
fn the_costs_of_the_fast_decoder_lose_some_hundredths() {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let symbols_are = parallel::Decision::SoftUpTo(90);
    let decoder = FrameDecoder::new(&code, Ending::Truncated, 64, symbols_are, Simd::best());
    let levels = f64::from(decoder.largest_cost());
    assert_eq!(levels, 15.0);
    let losses = [(-6.0, 0.0347, 0.0136), (-3.0, 0.0214, 0.0109), (0.0, 0.0167, 0.0136), (2.0, 0.0182, 0.0171)];
    check(&losses, |es_n0_db| costs(es_n0_db, levels));
    check(&[(5.0, 0.0259, 0.0259), (8.0, 0.0406, 0.0395)], |es_n0_db| costs(es_n0_db, levels));
}
