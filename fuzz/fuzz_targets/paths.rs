//! An end of a bundle of paths whose peer sends arbitrary packets.
#![no_main]

#[path = "../../crates/farlink-core/tests/paths/forged.rs"]
mod forged;
mod memory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memory::bounded(3, 200_000, || forged::forged_packets(bytes)));
