//! A host that accepts AeroTP connections, and arbitrary forged segments.
#![no_main]

#[allow(dead_code, reason = "what the tests need besides")]
#[path = "../../crates/farlink-core/tests/pair/shared_host.rs"]
mod shared_host;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shared_host::forged_segments(bytes));
