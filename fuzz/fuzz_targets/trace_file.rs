//! Bytes that claim to be a trace file: a trace that can be replayed, or a reason. The engine and Python read the same.
//!
//! An archive that is put around noise by its own checksums is rare, so that half of the inputs are arrays in a whole archive.
#![no_main]

use std::io::{Cursor, Write};

use farlink_core::trace::TraceSource;
use farlink_sim::{Content, LARGEST_TRACE, TraceFiles, Values};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ARRAYS: [&str; 8] = ["time_s", "rate_bps", "delay_s", "power_w", "blocked", "lost", "position", "bits"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((first, rest)) if first & 1 == 1 => check(&archive(rest)),
        _ => check(bytes),
    }
});

/// `meta` and other arrays, each up to a zero byte pair.
fn archive(bytes: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut rest = bytes;
    for name in std::iter::once("meta").chain(ARRAYS) {
        let end = rest.windows(2).position(|pair| pair == [0, 0]).unwrap_or(rest.len());
        let (array, after) = rest.split_at(end);
        rest = after.get(2..).unwrap_or(&[]);
        if name == "meta" || !array.is_empty() {
            writer.start_file(format!("{name}.npy"), options).expect("in memory");
            writer.write_all(&npy(name, array)).expect("in memory");
        }
    }
    writer.finish().expect("in memory").into_inner()
}

/// An array of the right type around the bytes, or the bytes themselves.
fn npy(name: &str, bytes: &[u8]) -> Vec<u8> {
    let size = match name {
        _ if bytes.first().is_some_and(|first| first & 1 == 1) => return bytes.to_vec(),
        "meta" => bytes.len(),
        "blocked" | "lost" => 1,
        _ => 8,
    };
    let (descriptor, count) = match (name, size) {
        (_, 0) => return bytes.to_vec(),
        ("meta", size) => (format!("|S{size}"), 1),
        ("blocked" | "lost", _) => ("|u1".to_owned(), bytes.len()),
        ("position" | "bits", _) => ("<u8".to_owned(), bytes.len() / 8),
        _ => ("<f8".to_owned(), bytes.len() / 8),
    };
    let header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({count},), }}\n");
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(&bytes[..count * size]);
    array
}

fn check(bytes: &[u8]) {
    let content = Content::read(Cursor::new(bytes));
    if let Ok(content) = &content {
        let kept = content.arrays.iter().map(|(_, values)| match values {
            Values::Floats(values) => 8 * values.len(),
            Values::Whole(values) => 8 * values.len(),
            Values::Flags(values) => values.len(),
            Values::Scalar(_) => 0,
        });
        assert!(kept.sum::<usize>() as u64 <= LARGEST_TRACE);
    }
    let path = std::env::temp_dir().join(format!("farlink-fuzz-{}.npz", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder is writable");
    if let Ok(trace) = TraceFiles::new().load(&path.to_string_lossy()) {
        trace.check().expect("what is read has been checked");
        assert!(content.is_ok(), "what the engine reads Python reads");
    }
}
