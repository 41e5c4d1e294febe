//! Two AeroTP connections, any sequence of operations, and forged segments.
#![no_main]

#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/examples.rs"]
mod examples;
#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/forgery.rs"]
mod forgery;

use std::sync::LazyLock;

static EXAMPLES: LazyLock<Vec<examples::Example>> = LazyLock::new(examples::examples);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(forgery::against_a_forger(&EXAMPLES, bytes)));
