//! Two endpoints of any protocol, any sequence of operations.
#![no_main]

#[path = "../../crates/farlink-core/tests/pair/examples.rs"]
mod examples;
#[path = "../../crates/farlink-core/tests/pair/operations.rs"]
mod operations;

use std::sync::LazyLock;

static EXAMPLES: LazyLock<Vec<examples::Example>> = LazyLock::new(examples::examples);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::any_protocol(&EXAMPLES, bytes));
