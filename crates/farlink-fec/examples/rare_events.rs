//! Importance sampling beside plain simulation where bit error rates are near 1e-6, for some minutes on one core:
//! `cargo run --release -p farlink-fec --example rare_events [billions of bits [seed [dB less [steps of trace-back]]]]`.

use std::time::Instant;

use farlink_fec::convolutional::{Code, Puncturing};
use farlink_fec::events::{Library, LibraryError, importance_sampled, simulated};
use farlink_fec::modulation::{Decision, Modulation};
use farlink_fec::monte_carlo::Effort;
use farlink_fec::scheme::{Coding, Convolutional, Scheme};

fn main() -> Result<(), LibraryError> {
    let words: Vec<f64> = std::env::args().skip(1).map_while(|word| word.parse().ok()).collect();
    let billions = words.first().copied().unwrap_or(3.0);
    let seed = words.get(1).map_or(1, |&seed| seed as u64);
    let less_db = words.get(2).copied().unwrap_or(0.0);
    let traceback = words.get(3).map(|&steps| steps as usize);
    for (rate, eb_n0_db) in [("1/2", 4.8 - less_db), ("3/4", 5.8 - less_db)] {
        let code = Code::new(7, &[0o171, 0o133]).expect("the usual code");
        let coding = Convolutional { traceback, ..Convolutional::new(code) };
        let coding = coding.punctured(Puncturing::usual(rate).expect("a usual rate"));
        let scheme =
            Scheme::new(Coding::Convolutional(coding), Modulation::Bpsk, Decision::Soft).expect("parts that fit");
        let plain = Effort { bits_max: (billions * 1e9) as u64, seed, events: None, ..Effort::default() };
        let sampled = Effort { bits_max: 1 << 29, seed, events: Some(20_000), ..Effort::default() };
        for found in [
            timed(|| importance_sampled(&scheme, eb_n0_db, &sampled, &|_, _| true))?,
            timed(|| simulated(&scheme, eb_n0_db, &plain, &|_, _| true))?,
        ] {
            let (found, seconds) = found;
            println!(
                "{scheme} at {eb_n0_db:.1} dB, {} in {seconds:.1} s: {} events in {:.2e} bits; event rate {:.3e} ({:.3e} to \
                 {:.3e}), BER {:.3e} ({:.3e} to {:.3e}), {:.2} wrong bits an event",
                found.method.name(),
                found.seen,
                found.bits as f64,
                found.event_rate.value,
                found.event_rate.low,
                found.event_rate.high,
                found.bit_error_rate.value,
                found.bit_error_rate.low,
                found.bit_error_rate.high,
                found.bit_error_rate.value / found.event_rate.value,
            );
        }
    }
    Ok(())
}

fn timed(collect: impl FnOnce() -> Result<Library, LibraryError>) -> Result<(Library, f64), LibraryError> {
    let start = Instant::now();
    Ok((collect()?, start.elapsed().as_secs_f64()))
}
