//! Random scenarios of the generator of the tests, one a line as JSON, for `benches/estimates.py`:
//! `cargo run -p farlink-sim --example scenarios -- FIRST_SEED COUNT MOST_CPU_S`.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<f64>().expect("a number"));
    let mut next = |usual: f64| arguments.next().unwrap_or(usual);
    let (first, count, most_cpu_s) = (next(1.0) as u64, next(100.0) as u64, next(10.0));
    for seed in first..first + count {
        if let Some(scenario) = common::generator::drawn(seed, most_cpu_s) {
            println!("{scenario}");
        }
    }
}
