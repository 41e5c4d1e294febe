//! Speed of the block-parallel Viterbi decoder on one core: `cargo run --release --example speed_viterbi [seconds [which]]`.
//!
//! Megabits of data for each second and level of SIMD, the median of several runs and the best; noisy symbols at the Eb/N0 given.

use std::hint::black_box;
use std::time::{Duration, Instant};

use farlink_fec::Soft;
use farlink_fec::bits::bytes_for;
use farlink_fec::convolutional::parallel::{Decision, FrameDecoder, StreamDecoder};
use farlink_fec::convolutional::{Code, Ending};
use farlink_fec::simd::Simd;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

const FRAME_BITS: usize = 8192;
const FRAMES: usize = 64;
const EBN0_DB: f64 = 4.0;

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.5);
    let only = std::env::args().nth(2).unwrap_or_default();
    let cases: [(&str, u32, &[u32], Decision); 9] = [
        ("K=7 r=1/2 soft", 7, &[0o171, 0o133], Decision::Soft),
        ("K=7 r=1/2 hard", 7, &[0o171, 0o133], Decision::Hard),
        ("K=7 r=1/3 soft", 7, &[0o171, 0o165, 0o133], Decision::Soft),
        ("K=4 r=1/2 soft", 4, &[0o17, 0o15], Decision::Soft),
        ("K=9 r=1/2 soft", 9, &[0o753, 0o561], Decision::Soft),
        ("K=10 r=1/2 soft", 10, &[0o1167, 0o1545], Decision::Soft),
        ("K=11 r=1/2 soft", 11, &[0o2335, 0o3661], Decision::Soft),
        ("K=12 r=1/2 soft", 12, &[0o4335, 0o5723], Decision::Soft),
        ("K=15 r=1/2 soft", 15, &[0o63057, 0o44735], Decision::Soft),
    ];
    for (name, constraint_length, generators, decision) in cases {
        let code = Code::new(constraint_length, generators).expect("a code of the literature");
        let frames = FRAMES;
        let symbols = received(&code, frames * (FRAME_BITS + constraint_length as usize - 1), decision);
        for simd in Simd::available() {
            if !format!("{name} {simd:?}").contains(&only) {
                continue;
            }
            let mut decoder = FrameDecoder::new(&code, Ending::Terminated, FRAME_BITS, decision, simd);
            let mut data = vec![0; frames * bytes_for(FRAME_BITS)];
            let frames_mbps = megabits_per_second(seconds, frames * FRAME_BITS, || {
                decoder.decode(black_box(&symbols), &mut data).expect("whole frames");
                black_box(&data);
            });
            let mut decoder = StreamDecoder::new(&code, decision, simd);
            let bits = symbols.len() / code.outputs();
            let mut data = vec![0; bytes_for(bits)];
            let stream_mbps = megabits_per_second(seconds, bits, || {
                decoder.decode(black_box(&symbols), &mut data).expect("whole steps");
                black_box(&data);
            });
            println!("{name:16} {simd:?}: frames {frames_mbps:.0?} Mb/s, stream {stream_mbps:.0?} Mb/s");
        }
    }
}

/// The all-zero word's symbols in noise, 1.0 being a size of 50: the time does not depend on the data.
fn received(code: &Code, steps: usize, decision: Decision) -> Vec<Soft> {
    let mut rng = Pcg64Mcg::new(1);
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let esn0 = 10f64.powf(EBN0_DB / 10.0) / code.outputs() as f64;
    let sigma = (0.5 / esn0).sqrt();
    (0..steps * code.outputs())
        .map(|_| {
            let noise = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
            let value = 1.0 + sigma * noise;
            match decision {
                Decision::Hard => value.signum() as Soft,
                _ => (50.0 * value).round().clamp(-127.0, 127.0) as Soft,
            }
        })
        .collect()
}

/// The median and the best of at least five calls and so many seconds.
fn megabits_per_second(seconds: f64, bits: usize, mut run: impl FnMut()) -> (f64, f64) {
    run();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || begin.elapsed() < Duration::from_secs_f64(seconds) {
        let begin = Instant::now();
        run();
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let speed = |time: f64| bits as f64 / time / 1e6;
    (speed(times[times.len() / 2]), speed(times[0]))
}
