//! A host that accepts AeroTP connections, and strangers that send it anything.
#![no_main]

#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/hall.rs"]
mod hall;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hall::strangers(bytes));
