//! Bytes that claim to be a trace file: a trace that can be replayed, or a reason.
#![no_main]

use farlink_core::trace::TraceSource;
use farlink_sim::TraceFiles;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("farlink-fuzz-{}.npz", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder is writable");
    if let Ok(trace) = TraceFiles::new().load(&path.to_string_lossy()) {
        trace.check().expect("what is read has been checked");
    }
});
