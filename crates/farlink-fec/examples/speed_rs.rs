//! Speed of Reed-Solomon decoding and encoding on one core, in Mb/s of user data; each figure is the best of several runs.
//!
//! `cargo run --release -p farlink-fec --example speed_rs [n k]`

use std::time::Instant;

use farlink_fec::reed_solomon::{Basis, BatchDecoder, BatchEncoder, Code, Outcome};
use farlink_fec::simd::Simd;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const WORDS: usize = 2048;
const RUNS: usize = 25;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).map(|size| size.parse().expect("a number")).collect();
    let (n, k) = if let [n, k] = sizes[..] { (n, k) } else { (255, 223) };
    let code = Code::conventional(n, k).unwrap_or_else(|error| panic!("{error}"));
    let levels = Simd::available();
    println!("({n}, {k}), Mb/s of user data{}", levels.iter().map(|level| format!("{level:>14?}")).collect::<String>());
    row("encode", &levels, |simd| encode_mbps(&code, simd));
    for errors in [0, 1, 2, 4, 8, 12, 16].into_iter().filter(|&errors| errors <= code.t()) {
        row(&format!("decode, {errors} errors"), &levels, |simd| decode_mbps(&code, simd, |_| errors));
    }
    row("decode, 8 errors in 1/64", &levels, |simd| {
        decode_mbps(&code, simd, |word| if word % 64 == 5 { code.t().min(8) } else { 0 })
    });
    row("decode, 0 to t errors", &levels, |simd| decode_mbps(&code, simd, |word| word * 7 % (code.t() + 1)));
    if n - k == 32 {
        let ccsds = Code::ccsds(n, k, Basis::Dual).unwrap_or_else(|error| panic!("{error}"));
        row("CCSDS dual, encode", &levels, |simd| encode_mbps(&ccsds, simd));
        row("CCSDS dual, 0 errors", &levels, |simd| decode_mbps(&ccsds, simd, |_| 0));
        row("CCSDS dual, 8 errors", &levels, |simd| decode_mbps(&ccsds, simd, |_| 8));
    }
}

fn row(name: &str, levels: &[Simd], mbps: impl Fn(Simd) -> f64) {
    let figures: String = levels.iter().map(|&level| format!("{:>14.0}", mbps(level))).collect();
    println!("{name:<30}{figures}");
}

fn random_words(code: &Code, rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut words: Vec<u8> = (0..WORDS * code.n()).map(|_| rng.random()).collect();
    BatchEncoder::new(code, Simd::best()).encode(&mut words);
    words
}

fn encode_mbps(code: &Code, simd: Simd) -> f64 {
    let mut words = random_words(code, &mut Pcg64Mcg::seed_from_u64(1));
    let mut encoder = BatchEncoder::new(code, simd);
    best_mbps(code, || {
        let start = Instant::now();
        encoder.encode(&mut words);
        start.elapsed().as_secs_f64()
    })
}

fn decode_mbps(code: &Code, simd: Simd, errors_of: impl Fn(usize) -> usize) -> f64 {
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    let words = random_words(code, &mut rng);
    let mut received = words.clone();
    for (at, word) in received.chunks_exact_mut(code.n()).enumerate() {
        let mut left = errors_of(at);
        let mut is_wrong = [false; 255];
        while left > 0 {
            let symbol = rng.random_range(0..code.n());
            if !std::mem::replace(&mut is_wrong[symbol], true) {
                word[symbol] ^= rng.random_range(1..=255u8);
                left -= 1;
            }
        }
    }
    let mut decoder = BatchDecoder::new(code, simd);
    let mut outcomes = vec![Outcome::TooManyErrors; WORDS];
    let mut decoded = received.clone();
    best_mbps(code, || {
        decoded.copy_from_slice(&received);
        let start = Instant::now();
        decoder.decode(&mut decoded, &mut outcomes);
        let elapsed_s = start.elapsed().as_secs_f64();
        assert!(decoded == words, "all errors lie within the bound");
        elapsed_s
    })
}

fn best_mbps(code: &Code, mut run: impl FnMut() -> f64) -> f64 {
    let best_s = (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min);
    (WORDS * code.k() * 8) as f64 / best_s / 1e6
}
