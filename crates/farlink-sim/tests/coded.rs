//! Coding in a scenario, from the file to the table: error events are collected once, stored, and replayed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{expanded, real, scenario, set};
use farlink_sim::{Options, Output, RunError};
use serde_json::{Value, json};

/// An empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn run(study: &Value, codes: &Path, threads: usize) -> Result<Output, RunError> {
    let options = Options { threads: Some(threads), codes: Some(codes.to_path_buf()), ..Options::default() };
    farlink_sim::run(&expanded(study), &options, &|_, _| ControlFlow::Continue(()))
}

/// A short code at a low Eb/N0, so that a few thousand bits are enough.
fn study() -> Value {
    let code = json!({ "kind": "convolutional", "generators": "7,5" });
    let coding = json!({ "ebn0_db": 5, "decision": "hard", "code": code, "effort": { "events": 200 } });
    scenario(&[("link.coding", coding)])
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn events_are_collected_once_and_the_result_is_the_same() {
    let codes = folder("once");
    let first = run(&study(), &codes, 2).unwrap();
    let file = only_file(&codes);
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    let second = run(&study(), &codes, 1).unwrap();
    assert_eq!(format!("{:?}", first.rows), format!("{:?}", second.rows));
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), written, "it was not written again");
    assert!(first.notes.is_empty() && second.notes.is_empty(), "{:?}", first.notes);
    assert!(real(&first.rows, "loss_fraction").iter().any(|&lost| lost > 0.0), "the code does not mend everything");
}

#[test]
fn a_damaged_file_is_collected_again_with_a_note() {
    let codes = folder("damaged");
    let first = run(&study(), &codes, 1).unwrap();
    let file = only_file(&codes);
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    let second = run(&study(), &codes, 1).unwrap();
    assert_eq!(format!("{:?}", first.rows), format!("{:?}", second.rows));
    assert_eq!(second.notes.len(), 1, "{:?}", second.notes);
    assert!(second.notes[0].contains("collected again") && second.notes[0].contains("its checksum is wrong"));
    assert_eq!(std::fs::read(&file).unwrap(), whole, "it was collected again");
    assert_eq!(std::fs::read(file.with_extension("events.damaged")).unwrap(), damaged, "the other is set aside");
    assert!(second.notes[0].contains("set aside as"), "{:?}", second.notes);
}

#[test]
fn an_unwritable_folder_causes_a_note() {
    let codes = folder("no-folder");
    std::fs::write(&codes, "a file").unwrap();
    let output = run(&study(), &codes, 1).unwrap();
    assert!(output.notes.iter().any(|note| note.contains("cannot be kept")), "{:?}", output.notes);
    assert!(!output.interrupted);
}

#[test]
fn bursts_lose_fewer_packets_than_as_many_independent_errors() {
    let mut study = study();
    set(&mut study, "grid", json!({ "link.coding.errors": ["bursts", "independent"] }));
    set(&mut study, "runs", json!(4));
    set(&mut study, "transport.tcp", json!({ "kind": "udp" }));
    set(&mut study, "flow.bulk.traffic", json!({ "kind": "cbr", "rate_bps": 9e5, "payload_bytes": 972 }));
    set(&mut study, "link.coding.ebn0_db", json!(6.5));
    let output = run(&study, &folder("bursts"), 2).unwrap();
    let lost = real(&output.summary, "loss_fraction");
    // A row for the flow and one for all flows at each point.
    let (bursts, independent) = (lost[0], lost[lost.len() / 2]);
    assert!(bursts > 0.001 && 1.3 * bursts < independent, "{bursts} against {independent}");
}

#[test]
fn events_of_one_point_serve_bursts_and_independent_errors() {
    let codes = folder("shared");
    let mut study = study();
    set(&mut study, "grid", json!({ "link.coding.errors": ["bursts", "independent"], "link.rate_bps": [1e6, 2e6] }));
    run(&study, &codes, 1).unwrap();
    only_file(&codes);
}

#[test]
fn progress_counts_the_collection_and_reaches_its_total() {
    let (most, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let note = |done: u64, of: u64| {
        most.fetch_max(done, Ordering::Relaxed);
        total.fetch_max(of, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let options = Options { threads: Some(1), codes: Some(folder("progress")), ..Options::default() };
    farlink_sim::run(&expanded(&study()), &options, &note).unwrap();
    assert_eq!((most.into_inner(), total.into_inner()), (102, 102));
}

#[test]
fn the_collection_of_events_can_be_stopped() {
    let mut study = study();
    set(&mut study, "link.coding.effort", json!({ "events": 1e6, "max_bits": 1e14 }));
    let asked = AtomicBool::new(false);
    let stop = |_: u64, _: u64| {
        asked.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    };
    let codes = folder("stopped");
    let options = Options { threads: Some(1), codes: Some(codes.to_path_buf()), ..Options::default() };
    let stopped = farlink_sim::run(&expanded(&study), &options, &stop);
    assert!(matches!(stopped, Err(RunError::Stopped)), "{stopped:?}");
    assert!(asked.into_inner() && !codes.exists(), "incomplete events are not stored");
}

#[test]
fn a_point_without_errors_is_replayed_with_a_note() {
    let mut study = study();
    let coding = |ebn0_db: f64| {
        let effort = json!({ "events": 200, "max_bits": 1e5 });
        json!({ "modulation": "16qam", "ebn0_db": ebn0_db, "code": { "kind": "uncoded" }, "effort": effort })
    };
    // Slow enough for no queue to overflow.
    set(&mut study, "transport.tcp", json!({ "kind": "udp" }));
    set(&mut study, "flow.bulk.traffic", json!({ "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 972 }));
    let codes = folder("rare");
    set(&mut study, "link.coding", coding(40.0));
    // The second run reads the file.
    for _ in 0..2 {
        let output = run(&study, &codes, 1).unwrap();
        assert!(real(&output.rows, "loss_fraction").iter().all(|&lost| lost == 0.0));
        let [note] = &output.notes[..] else { panic!("{:?}", output.notes) };
        assert!(note.starts_with("no error in 1.000e5 bits of") && note.contains("at 40 dB"), "{note}");
        only_file(&codes);
    }
    // Some, but few.
    set(&mut study, "link.coding", coding(13.4));
    let output = run(&study, &codes, 1).unwrap();
    assert!(output.notes.len() == 1 && output.notes[0].starts_with("only "), "{:?}", output.notes);
    // The closed form expects none.
    set(&mut study, "link.coding", json!({ "modulation": "bpsk", "ebn0_db": 40, "code": { "kind": "uncoded" } }));
    let output = run(&study, &codes, 1).unwrap();
    assert!(output.notes.len() == 1 && output.notes[0].contains("rarer than 1e-300"), "{:?}", output.notes);
}

#[test]
fn every_code_can_be_replayed() {
    let viterbi = json!({ "kind": "convolutional", "generators": "171,133", "rate": "3/4" });
    let reed_solomon = json!({ "kind": "reed-solomon", "n": 31, "k": 27, "interleaving": 2 });
    let erasure = json!({ "kind": "erasure", "k": 8, "m": 2, "block_bytes": 23 });
    let codes = [
        (json!({ "kind": "uncoded" }), 10.0),
        (viterbi.clone(), 5.5),
        (reed_solomon.clone(), 9.0),
        (erasure.clone(), 9.5),
        (json!({ "kind": "concatenated", "outer": reed_solomon, "inner": viterbi }), 4.5),
        (json!({ "kind": "concatenated", "outer": erasure, "inner": viterbi }), 4.5),
    ];
    let folder = folder("every-code");
    for (code, ebn0_db) in codes {
        let mut study = study();
        let effort = json!({ "events": 100, "max_bits": 2e6 });
        let coding = json!({ "ebn0_db": ebn0_db, "modulation": "qpsk", "code": code, "effort": effort });
        set(&mut study, "link.coding", coding);
        let output = run(&study, &folder, 2).unwrap_or_else(|error| panic!("{error}: {code}"));
        assert!(real(&output.rows, "delivered_packets").iter().sum::<f64>() > 0.0, "{code}");
    }
}

/// An LDPC code by measured points; packets of 8,320 bits in blocks of 32,400.
fn by_points(ebn0_db: f64) -> Value {
    let code = json!({
        "kind": "measured", "block_bits": 32_400, "points": [[1.0, 0.5], [2.0, 0.005], [3.0, 0.00005]],
    });
    let traffic = json!({ "kind": "cbr", "rate_bps": 8e6, "payload_bytes": 1012, "bytes": 1012 * 200_000 });
    scenario(&[
        ("duration_s", Value::Null),
        ("link.rate_bps", json!(1e7)),
        ("link.queue_packets", Value::Null),
        ("link.coding", json!({ "ebn0_db": ebn0_db, "code": code })),
        ("transport", json!({ "udp": { "kind": "udp", "segment_bytes": 1012 } })),
        ("flow.bulk", json!({ "transport": "udp", "traffic": traffic })),
    ])
}

#[test]
fn packets_are_lost_with_the_failed_blocks_of_measured_points() {
    let codes = folder("measured");
    let output = run(&by_points(1.5), &codes, 1).unwrap();
    // At 1.5 dB 0.05 of the blocks fail. A packet lies in one block, or across the end of one: 8319 of 32400 places.
    let (both, fails): (f64, f64) = (8319.0 / 32_400.0, 0.05);
    let expected = 1.0 - (1.0 - both) * (1.0 - fails) - both * (1.0 - fails).powi(2);
    let lost = real(&output.rows, "loss_fraction")[0];
    // Some 51,400 blocks; each failed one takes 4.9 packets.
    let error = (expected * 4.9 / 200_000.0).sqrt();
    assert!((lost - expected).abs() < 4.0 * error, "{lost} is not {expected} within 4 times {error}");
    assert!(!codes.exists(), "no decoder ran");
}

#[test]
fn measured_points_are_not_extrapolated() {
    for ebn0_db in [0.9, 3.1] {
        let error = farlink_core::scenario::expand(&by_points(ebn0_db)).expect_err("a refusal");
        assert_eq!(error.path, "link.coding.code.points", "{error}");
        assert!(error.to_string().contains("was not measured; the points are from 1 to 3 dB"), "{error}");
    }
}
