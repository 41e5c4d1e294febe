//! Two endpoints of any protocol, any sequence of operations.
#![no_main]

#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/examples.rs"]
mod examples;
#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/operations.rs"]
mod operations;

use std::sync::LazyLock;

static EXAMPLES: LazyLock<Vec<examples::Example>> = LazyLock::new(examples::examples);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::any_protocol(&EXAMPLES, bytes));
