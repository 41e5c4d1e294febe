//! Times that libraries of error events take, and by which method, on one thread:
//! `cargo run --release -p farlink-fec --example collect_events [soft|hard] [rate] [events]`.

use std::time::Instant;

use farlink_fec::convolutional::{Code, Puncturing};
use farlink_fec::events::library;
use farlink_fec::modulation::{Decision, Modulation};
use farlink_fec::monte_carlo::Effort;
use farlink_fec::scheme::{Coding, Convolutional, Scheme};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let decision = if words.iter().any(|word| word == "hard") { Decision::Hard } else { Decision::Soft };
    let rate = words.iter().find(|word| word.contains('/')).map_or("1/2", String::as_str);
    let events = words.iter().find_map(|word| word.parse().ok()).unwrap_or(2000);

    let code = Code::new(7, &[0o171, 0o133]).expect("the usual code");
    let coding = Convolutional::new(code).punctured(Puncturing::usual(rate).expect("a usual rate"));
    let scheme = Scheme::new(Coding::Convolutional(coding), Modulation::Bpsk, decision).expect("parts that fit");
    let effort = Effort { events: Some(events), ..Effort::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    println!("{scheme}, {events} events wanted");
    for half_db in 6..=16 {
        let eb_n0_db = f64::from(half_db) / 2.0;
        let start = Instant::now();
        match pool.install(|| library(&scheme, eb_n0_db, &effort, &|_, _| true)) {
            Ok(found) => println!(
                "{eb_n0_db} dB: {:6.2} s, {}, {} events in {:.1e} bits, {:?}, BER {:.2e} ({:.2e} to {:.2e})",
                start.elapsed().as_secs_f64(),
                found.method.name(),
                found.seen,
                found.bits as f64,
                found.status,
                found.bit_error_rate.value,
                found.bit_error_rate.low,
                found.bit_error_rate.high,
            ),
            Err(error) => println!("{eb_n0_db} dB: {error}"),
        }
    }
}
