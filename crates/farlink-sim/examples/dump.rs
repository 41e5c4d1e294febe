//! Everything that scenarios give, to the bit, for `.ci/same`, which compares two commits.
//!
//! `cargo run --release -p farlink-sim --features toml --example dump -- FOLDER [SCENARIO.toml ...] < SCENARIOS.jsonl`
//!
//! Standard input has a scenario a line as JSON, as the example `scenarios` prints them. For each, and for each file, FOLDER gets its
//! rows, its summary and its remarks (`NAME.txt`; numbers as their bits) and a capture of its first run (`NAME.pcapng`). A refusal
//! is what a scenario gives as well.

use std::fmt::Write as _;
use std::io::{BufRead, stdin};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farlink_core::scenario::{Expanded, expand, from_toml};
use farlink_core::units::CountToMillion;
use farlink_sim::{Column, Options, RunError, Table, run, trace_run};
use serde_json::Value;

/// Number of runs that covers everything.
const MOST_RUNS: f64 = 2.0;

/// Scenarios that may take longer than this on some machine are named but not compared.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: dump FOLDER [SCENARIO.toml ...] < SCENARIOS.jsonl");
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    match write_all(folder, &arguments.collect::<Vec<_>>()) {
        Ok(count) => {
            println!("{count} scenarios in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write_all(folder: &Path, files: &[String]) -> Result<usize, Failure> {
    std::fs::create_dir_all(folder)?;
    let mut scenarios: Vec<(String, Value)> = Vec::new();
    for file in files {
        let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
        scenarios
            .push((stem.into_owned(), from_toml(&std::fs::read_to_string(file)?).map_err(|error| error.to_string())?));
    }
    for (number, line) in stdin().lock().lines().enumerate() {
        scenarios.push((format!("random-{number:04}"), serde_json::from_str(&line?)?));
    }
    // Not rayon's threads: one that waits for the pool of a study would take the next scenario while the clock runs.
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Failure> {
        while let Some((name, scenario)) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            write(folder, name, scenario)?;
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(scenarios.len())
}

fn write(folder: &Path, name: &str, scenario: &Value) -> Result<(), Failure> {
    let (text, capture) = given(scenario).unwrap_or_else(|error| (format!("{error}\n"), None));
    std::fs::write(folder.join(format!("{name}.txt")), text)?;
    if let Some(capture) = capture {
        std::fs::write(folder.join(format!("{name}.pcapng")), capture)?;
    }
    Ok(())
}

/// Tables and remarks as text, and the capture.
fn given(scenario: &Value) -> Result<(String, Option<Vec<u8>>), RunError> {
    let mut points = expand(scenario)?;
    points.points.iter_mut().for_each(|point| {
        point.scenario.precision = None;
        let runs = point.scenario.runs.map_or(MOST_RUNS, |runs| f64::from(runs).min(MOST_RUNS));
        point.scenario.runs = CountToMillion::new(runs).ok();
    });
    let begin = Instant::now();
    let progress = |_, _| if begin.elapsed() > PATIENCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let engine = if scenario["engines"] == serde_json::json!(["fluid"]) { farlink_sim::fluid::run } else { run };
    let output = engine(&points, &Options { threads: Some(1), ..Options::default() }, &progress)?;
    if output.interrupted {
        return Ok((format!("took more than {} s\n", PATIENCE.as_secs()), None));
    }
    let mut text = String::new();
    for (title, table) in [("rows", &output.rows), ("summary", &output.summary)] {
        writeln!(text, "{title}").expect("a string takes it");
        columns(&mut text, table);
    }
    output.notes.iter().for_each(|note| writeln!(text, "{note}").expect("a string takes it"));
    Ok((text, captured(&points)))
}

/// Every column with its values; numbers as their bits, so that NaN equals NaN and 0 differs from -0.
fn columns(text: &mut String, table: &Table) {
    for (name, column) in &table.columns {
        let values = match column {
            Column::Real(values) => {
                values.iter().map(|value| format!("{:016x}", value.to_bits())).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        };
        writeln!(text, "{name}: {values}").expect("a string takes it");
    }
}

/// The first run of the first point, packet by packet; none if the engine has no packets.
fn captured(points: &Expanded) -> Option<Vec<u8>> {
    let begin = Instant::now();
    trace_run(points, 0, 0, false, true, &|| begin.elapsed() > PATIENCE).ok()?.pcapng
}
