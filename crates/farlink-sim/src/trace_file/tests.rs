use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use proptest::prelude::*;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

/// An array file in the form that NumPy writes.
fn npy(descriptor: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(values: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("<f8", &format!("({},)", values.len()), &data)
}

fn integers(values: &[u64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("<u8", &format!("({},)", values.len()), &data)
}

fn meta(kind: &str, duration_s: f64) -> Vec<u8> {
    let duration = if duration_s > 0.0 { format!(r#", "duration_s": {duration_s}"#) } else { String::new() };
    let json = format!(r#"{{"farlink_trace": 1, "kind": "{kind}", "title": "Übung"{duration}}}"#);
    let data: Vec<u8> = json.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    npy(&format!("<U{}", data.len() / 4), "()", &data)
}

fn npz(method: CompressionMethod, arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(format!("{name}.npy"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn stored(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    npz(CompressionMethod::Stored, arrays)
}

fn rate_file(method: CompressionMethod) -> Vec<u8> {
    let arrays =
        [("time_s", floats(&[0.0, 1.0, 2.5])), ("rate_bps", floats(&[1e6, 0.0, 2e6])), ("meta", meta("rate", 4.0))];
    npz(method, &arrays)
}

fn read(bytes: &[u8]) -> Result<Trace, String> {
    read_trace(Cursor::new(bytes))
}

/// Reads an array as each of the types that it may have.
fn read_all(bytes: &[u8]) {
    let array = || npy::Array::open(bytes, bytes.len() as u64);
    let _ = array().map(|array| array.floats(1 << 20));
    let _ = array().map(|array| array.integers(1 << 20));
    let _ = array().map(|array| array.flags(1 << 20));
    let _ = array().map(|array| array.text(1 << 20));
}

fn refusal(arrays: &[(&str, Vec<u8>)]) -> String {
    read(&stored(arrays)).unwrap_err()
}

#[test]
fn every_kind_is_read_stored_and_deflated() {
    let rate = Trace::Rate { time_s: vec![0.0, 1.0, 2.5], rate_bps: vec![1e6, 0.0, 2e6], duration_s: 4.0 };
    assert_eq!(read(&rate_file(CompressionMethod::Stored)).as_ref(), Ok(&rate));
    assert_eq!(read(&rate_file(CompressionMethod::Deflated)).as_ref(), Ok(&rate));

    let scalar = |value: i64| npy("<i8", "()", &value.to_le_bytes());
    let delivery = stored(&[
        ("meta", meta("delivery", 0.5)),
        ("opportunity_s", npy("<f4", "(2,)", &[0, 0, 0, 0, 0, 0, 0x80, 0x3e])),
        ("bytes_per_opportunity", scalar(1500)),
    ]);
    let expected = Trace::Delivery { opportunity_s: vec![0.0, 0.25], bytes_per_opportunity: 1500, duration_s: 0.5 };
    assert_eq!(read(&delivery), Ok(expected));

    let delay = stored(&[("meta", meta("delay", 9.0)), ("time_s", floats(&[0.0])), ("delay_s", floats(&[0.25]))]);
    let expected = Trace::Delay { time_s: vec![0.0], delay_s: vec![0.25], duration_s: 9.0 };
    assert_eq!(read(&delay), Ok(expected));

    for descriptor in ["|u1", "|b1", "|i1"] {
        let losses = stored(&[("meta", meta("packet-loss", 0.0)), ("lost", npy(descriptor, "(3,)", &[0, 1, 0]))]);
        assert_eq!(read(&losses), Ok(Trace::PacketLoss { lost: vec![false, true, false] }));
    }

    let plain = br#"{"farlink_trace": 1, "kind": "bit-errors"}"#;
    let meta = npy(&format!("|S{}", plain.len()), "(1,)", plain);
    let errors = stored(&[("meta", meta), ("position", integers(&[3, 9])), ("bits", integers(&[10]))]);
    assert_eq!(read(&errors), Ok(Trace::BitErrors { position: vec![3, 9], bits: 10 }));
}

#[test]
fn refusals_name_the_array_and_what_is_wrong() {
    assert_eq!(read(b"").unwrap_err(), "it is empty");
    assert!(read(b"1\n2\n3\n").unwrap_err().starts_with("it is not a whole .npz archive"));
    let whole = rate_file(CompressionMethod::Stored);
    assert!(read(&whole[..whole.len() / 2]).unwrap_err().starts_with("it is not a whole .npz archive"));

    let rate = |time_s, rate_bps| refusal(&[("meta", meta("rate", 4.0)), ("time_s", time_s), ("rate_bps", rate_bps)]);
    assert_eq!(refusal(&[("time_s", floats(&[0.0]))]), "it has no array meta");
    assert_eq!(refusal(&[("meta", meta("rate", 4.0))]), "it has no array time_s");
    assert_eq!(rate(b"no array".to_vec(), floats(&[1.0])), "the array time_s is not a NumPy array");
    assert_eq!(rate(floats(&[0.0, f64::NAN]), floats(&[1.0; 2])), "time_s holds NaN; allowed: 0 to duration_s = 4");
    assert_eq!(rate(floats(&[0.0, 2.0, 1.0]), floats(&[1.0; 3])), "time_s is not ascending: 1 follows 2");
    assert_eq!(rate(floats(&[0.0]), floats(&[1.0; 2])), "rate_bps has 2 entries but time_s has 1");
    assert_eq!(
        rate(npy("<f8", "(2,)", &[0; 12]), floats(&[1.0])),
        "the array time_s has 12 bytes of data but 2 elements of 8 bytes"
    );
    assert_eq!(
        rate(npy("<f8", "(99999999999999999999,)", &[]), floats(&[])),
        "the array time_s has more than one dimension, or no shape"
    );
    assert_eq!(
        rate(npy(">f8", "(1,)", &[0; 8]), floats(&[1.0])),
        "the array time_s holds >f8; allowed: little-endian numbers of 1 to 8 bytes, and text"
    );
    assert_eq!(rate(npy("|S8", "(1,)", &[65; 8]), floats(&[1.0])), "the array time_s holds text, not numbers");

    assert_eq!(refusal(&[("meta", floats(&[1.0]))]), "meta does not hold text");
    assert!(refusal(&[("meta", npy("|S2", "()", b"{}"))]).starts_with("meta is not as it should be: missing field"));
    assert_eq!(
        refusal(&[("meta", meta("fading", 1.0))]),
        "its kind is \"fading\"; allowed: delivery, rate, delay, power, cn0, ber, packet-loss, bit-errors"
    );
    let no_duration = [("meta", meta("rate", 0.0)), ("time_s", floats(&[0.0])), ("rate_bps", floats(&[1.0]))];
    assert_eq!(refusal(&no_duration), "meta has no duration_s");
    let losses = |lost| refusal(&[("meta", meta("packet-loss", 0.0)), ("lost", lost)]);
    assert_eq!(losses(npy("|u1", "(2,)", &[1, 2])), "the array lost holds 2; allowed: 0 and 1");
    assert_eq!(losses(npy("|i1", "(2,)", &[1, 255])), "the array lost holds -1; allowed: 0 and above");
    assert_eq!(losses(npy("|u1", "(0,)", &[])), "lost is empty");
    let errors = |position, bits| refusal(&[("meta", meta("bit-errors", 0.0)), ("position", position), ("bits", bits)]);
    assert_eq!(errors(integers(&[5]), integers(&[5])), "position 5 is not below bits = 5");
    assert_eq!(errors(integers(&[5]), integers(&[5, 6])), "the array bits has 2 entries, not one");
}

#[test]
fn files_are_read_once_and_missing_ones_named() {
    let path: PathBuf = std::env::temp_dir().join(format!("farlink-trace-file-{}.npz", std::process::id()));
    fs::write(&path, rate_file(CompressionMethod::Deflated)).unwrap();
    let name = path.to_str().unwrap();
    let files = TraceFiles::new();
    let first = files.load(name).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(Arc::ptr_eq(&first, &files.load(name).unwrap()));

    let missing = TraceFiles::new().load("/no/such/trace.npz").unwrap_err();
    assert_eq!(missing.to_string(), "cannot read the trace /no/such/trace.npz: no such file or directory");
    let directory = TraceFiles::new().load("/").unwrap_err();
    assert_eq!(directory.to_string(), "cannot read the trace /: it is not a file");
}

/// The size in a header or in the archive is checked before memory is allocated.
#[test]
fn sizes_are_checked_before_memory_is_allocated() {
    let refused = |name: &str, array: Vec<u8>| {
        let arrays = [("meta", meta("power", 4.0)), (name, array)];
        read(&stored(&arrays)).unwrap_err()
    };
    let many = refused("power_w", npy("<f8", "(1152921504606846976,)", &[0; 8]));
    assert_eq!(many, "the array power_w has 8 bytes of data but 1152921504606846976 elements of 8 bytes");
    assert!(refused("power_w", npy("<f8", "(70000000, 70000000)", &[])).contains("more than one dimension"));
    assert!(refused("power_w", npy("|O", "(1,)", &[0; 8])).contains("holds |O"));
    let other = [("meta", meta("power", 4.0)), ("power_w", floats(&[1.0])), ("junk", floats(&[1.0]))];
    assert_eq!(refusal(&other), "\"junk\" is no array of a power trace; its arrays are: power_w, blocked");

    // A byte of an array becomes 8 bytes as a number; the limit applies to the numbers.
    let zeros = vec![0; (LARGEST_TRACE / 8 + 1) as usize];
    let wide = npz(
        CompressionMethod::Deflated,
        &[("meta", meta("power", 4.0)), ("power_w", npy("|u1", &format!("({},)", zeros.len()), &zeros))],
    );
    assert!(wide.len() < 1_000_000);
    assert_eq!(read(&wide).unwrap_err(), "the array power_w has 67108865 elements; a trace may have 67108864 more");

    let nested = format!(r#"{{"farlink_trace": 1, "kind": "rate", "deep": {}{}}}"#, "[".repeat(9999), "]".repeat(9999));
    let deep = npy(&format!("|S{}", nested.len()), "()", nested.as_bytes());
    assert!(refusal(&[("meta", deep)]).starts_with("meta is not as it should be: recursion limit exceeded"));
    let many: Vec<(String, Vec<u8>)> = (0..17).map(|at| (format!("a{at}"), floats(&[1.0]))).collect();
    let many: Vec<(&str, Vec<u8>)> = many.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    assert_eq!(refusal(&many), "it has 17 arrays; allowed: up to 16");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_refused_or_read_right(
        deflated: bool,
        keep in 0.0..1.5f64,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 0..8),
    ) {
        let method = if deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let whole = rate_file(method);
        let mut bytes = whole.clone();
        bytes.truncate((keep * whole.len() as f64) as usize);
        for (at, mask) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
            }
        }
        // The archive's checksums exclude any other result.
        if let Ok(trace) = read(&bytes) {
            prop_assert_eq!(trace, read(&whole).unwrap());
        }
    }

    #[test]
    fn no_header_makes_an_array_panic(
        mut header in "[ -~]{0,20}('descr':|'shape':|[ -~]){0,6}", data in proptest::collection::vec(any::<u8>(), 0..20)
    ) {
        header.truncate(200);
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        read_all(&bytes);
    }

    #[test]
    fn no_descriptor_or_shape_makes_an_array_panic(
        order in "[<>|]?", kind in "[fiubSUOcV]", size in 0..40u64, shape in "\\([0-9]{0,20},?( ?[0-9]+)?\\)?",
        data in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        read_all(&npy(&format!("{order}{kind}{size}"), &shape, &data));
    }
}
