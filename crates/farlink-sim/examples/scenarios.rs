//! Random scenarios of the generators of the tests, one a line as JSON, for `benches/estimates.py` and `.ci/same`:
//! `cargo run -p farlink-sim --example scenarios -- FIRST_SEED COUNT MOST_CPU_S [shapes]`.
//!
//! Without `shapes` any key of a scenario is drawn. With it, hops, bundles, transports and flows that go well together are,
//! for some seconds each.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, usual: f64| arguments.get(at).map_or(usual, |argument| argument.parse::<f64>().expect("a number"));
    let (first, count, most_cpu_s) = (number(0, 1.0) as u64, number(1, 100.0) as u64, number(2, 10.0));
    let has_shapes = arguments.get(3).is_some_and(|argument| argument == "shapes");
    for seed in first..first + count {
        let scenario = if has_shapes { Some(shape(seed)) } else { common::generator::drawn(seed, most_cpu_s) };
        if let Some(scenario) = scenario {
            println!("{scenario}");
        }
    }
}

/// A scenario of the tests' properties.
fn shape(seed: u64) -> serde_json::Value {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    common::random::scenarios().new_tree(&mut runner).expect("no draw is refused").current()
}
