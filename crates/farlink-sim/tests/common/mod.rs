//! Shared by the engine's tests: scenarios from JSON, columns of tables, trace files, random scenarios.

pub(crate) mod generator;
pub(crate) mod random;

use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use farlink_core::scenario::{Expanded, expand};
use farlink_sim::engine::{NoTrace, RunResult, Setup, simulate};
use farlink_sim::{Column, Options, Output, RunError, Table, TraceFiles, resolve};
use serde_json::{Value, json};

/// One hop, one transport, one flow of bulk data; `changes` replace or add keys at dotted paths.
pub(crate) fn scenario(changes: &[(&str, Value)]) -> Value {
    let mut scenario = json!({
        "duration_s": 20,
        "runs": 2,
        "link": { "rate_bps": 1e6, "delay_s": 0.05, "queue_packets": 50 },
        "transport": { "tcp": { "kind": "tcp", "variant": "sack", "segment_bytes": 1000 } },
        "flow": { "bulk": { "transport": "tcp", "traffic": { "kind": "bulk" } } },
    });
    for (path, value) in changes {
        set(&mut scenario, path, value.clone());
    }
    scenario
}

/// 1 Gb/s and 1 ms, then a bottleneck of 10 Mb/s; flows start half a second apart, and are measured from 60 s on, for a minute.
pub(crate) fn bottleneck(transports: &[Value], delay_s: f64, queue_packets: u32, loss: f64) -> Value {
    let mut scenario = json!({
        "duration_s": 120,
        "measure": { "warmup_s": 60 },
        "runs": 1,
        "seed": 1,
        "path": ["lan", "wan"],
        "hop": {
            "lan": { "rate_bps": 1e9, "delay_s": 0.001 },
            "wan": { "rate_bps": 1e7, "delay_s": delay_s, "queue_packets": queue_packets },
        },
        "transport": {},
        "flow": {},
    });
    if loss > 0.0 {
        scenario["hop"]["wan"]["channel"] = json!({ "kind": "loss", "loss": loss });
    }
    for (n, transport) in transports.iter().enumerate() {
        scenario["transport"][format!("t{n}")] = transport.clone();
        let traffic = json!({ "kind": "bulk" });
        scenario["flow"][format!("f{n}")] =
            json!({ "transport": format!("t{n}"), "start_s": 0.5 * n as f64, "traffic": traffic });
    }
    scenario
}

/// Sets a key at a dotted path; `null` removes it.
pub(crate) fn set(scenario: &mut Value, path: &str, value: Value) {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    let table = table.split('.').filter(|key| !key.is_empty()).fold(scenario, |value, key| &mut value[key]);
    if value.is_null() {
        table.as_object_mut().unwrap().remove(key);
    } else {
        table[key] = value;
    }
}

pub(crate) fn expanded(scenario: &Value) -> Expanded {
    expand(scenario).unwrap_or_else(|error| panic!("{error:?}\n{scenario:#}"))
}

/// All runs, on as many threads as given.
pub(crate) fn run(scenario: &Value, threads: usize) -> Output {
    try_run(scenario, threads).unwrap_or_else(|error| panic!("{error}\n{scenario:#}"))
}

pub(crate) fn try_run(scenario: &Value, threads: usize) -> Result<Output, RunError> {
    farlink_sim::run(&expanded(scenario), &Options { threads: Some(threads), ..Options::default() }, &go_on)
}

/// A progress callback that never stops a run.
pub(crate) fn go_on(_done: u64, _total: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The only grid point, ready to run.
pub(crate) fn setup(scenario: &Value) -> Setup {
    resolve(&expanded(scenario).points[0].scenario, &TraceFiles::new()).unwrap()
}

pub(crate) fn once(setup: &Setup, seed: u64) -> RunResult {
    simulate(setup, seed, 0, &mut NoTrace, &|| false).expect("the run is not stopped")
}

pub(crate) fn real<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match column(table, name) {
        Column::Real(values) => values,
        other => panic!("{name} is {other:?}"),
    }
}

pub(crate) fn text<'a>(table: &'a Table, name: &str) -> &'a [String] {
    match column(table, name) {
        Column::Text(values) => values,
        other => panic!("{name} is {other:?}"),
    }
}

pub(crate) fn integer<'a>(table: &'a Table, name: &str) -> &'a [u64] {
    match column(table, name) {
        Column::Integer(values) => values,
        other => panic!("{name} is {other:?}"),
    }
}

fn column<'a>(table: &'a Table, name: &str) -> &'a Column {
    &table.columns.iter().find(|column| column.0 == name).unwrap_or_else(|| panic!("no column {name}")).1
}

/// Every bit of a table, so that NaN equals NaN and 0 differs from -0.
pub(crate) fn bits(table: &Table) -> Vec<String> {
    let column = |column: &Column| match column {
        Column::Real(values) => format!("{:x?}", values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()),
        other => format!("{other:?}"),
    };
    table.columns.iter().map(|(name, values)| format!("{name}: {}", column(values))).collect()
}

/// Writes a trace file and returns its path.
pub(crate) fn trace_file(name: &str, content: &[u8]) -> String {
    let path =
        option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from).join(format!("{name}.npz"));
    // Another test may read it while another process writes it, so it is replaced as a whole.
    let unfinished = path.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    std::fs::write(&unfinished, content).unwrap();
    std::fs::rename(&unfinished, &path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A recording of losses, one entry per frame.
pub(crate) fn losses(name: &str, lost: &[bool]) -> String {
    let bytes: Vec<u8> = lost.iter().map(|&lost| lost.into()).collect();
    trace_file(name, &npz(&[("lost", npy("|b1", lost.len(), &bytes))], "packet-loss", None))
}

/// A recording of wrong bits.
pub(crate) fn bit_errors(name: &str, position: &[u64], bits: u64) -> String {
    let data: Vec<u8> = position.iter().flat_map(|position| position.to_le_bytes()).collect();
    let arrays = [("position", npy("<u8", position.len(), &data)), ("bits", scalar("<u8", &bits.to_le_bytes()))];
    trace_file(name, &npz(&arrays, "bit-errors", None))
}

/// A series of a rate or a delay.
pub(crate) fn series(name: &str, kind: &str, quantity: &str, steps: &[(f64, f64)], duration_s: f64) -> String {
    let times = floats(&steps.iter().map(|step| step.0).collect::<Vec<_>>());
    let values = floats(&steps.iter().map(|step| step.1).collect::<Vec<_>>());
    trace_file(name, &npz(&[("time_s", times), (quantity, values)], kind, Some(duration_s)))
}

/// Instants at which 1500 bytes may leave.
pub(crate) fn deliveries(name: &str, opportunity_s: &[f64], duration_s: f64) -> String {
    let arrays =
        [("opportunity_s", floats(opportunity_s)), ("bytes_per_opportunity", scalar("<u8", &1500_u64.to_le_bytes()))];
    trace_file(name, &npz(&arrays, "delivery", Some(duration_s)))
}

/// Samples of equal distance.
pub(crate) fn samples(name: &str, kind: &str, quantity: &str, values: &[f64], duration_s: f64) -> String {
    trace_file(name, &npz(&[(quantity, floats(values))], kind, Some(duration_s)))
}

fn floats(values: &[f64]) -> Vec<u8> {
    npy("<f8", values.len(), &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

/// All numbers of a value, in order.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}

fn npz(arrays: &[(&str, Vec<u8>)], kind: &str, duration_s: Option<f64>) -> Vec<u8> {
    let mut meta = json!({ "farlink_trace": 1, "kind": kind });
    if let Some(duration_s) = duration_s {
        meta["duration_s"] = duration_s.into();
    }
    let letters: Vec<u8> = meta.to_string().chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect();
    let meta = scalar(&format!("<U{}", letters.len() / 4), &letters);
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays.iter().chain([&("meta", meta)]) {
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file(format!("{name}.npy"), stored).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn npy(descriptor: &str, length: usize, data: &[u8]) -> Vec<u8> {
    array(descriptor, &format!("({length},)"), data)
}

fn scalar(descriptor: &str, data: &[u8]) -> Vec<u8> {
    array(descriptor, "()", data)
}

fn array(descriptor: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// `PROPTEST_CASES`, if it is larger.
pub(crate) fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .map_or(usual, |cases: u32| cases.max(usual))
}
