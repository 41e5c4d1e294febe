//! Bytes that claim to be kept error events: some that can be played, or a reason. Each is tried as a file, and with the
//! heading and the checksum that it should have, so that what lies behind them is tried.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = farlink_sim::is_kept_file(bytes, false);
    let _ = farlink_sim::is_kept_file(bytes, true);
});
