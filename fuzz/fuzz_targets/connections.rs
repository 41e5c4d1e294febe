//! Two connections, any sequence of operations.
#![no_main]

#[path = "../../crates/farlink-core/tests/pair/examples.rs"]
mod examples;
#[path = "../../crates/farlink-core/tests/pair/operations.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::operations(bytes));
