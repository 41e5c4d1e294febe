//! Runs a scenario without Python and prints one line of JSON: what was delivered, and what it cost.
//!
//! `cargo run --release --features toml --example run -- SCENARIO.toml [--runs N] [--single-thread]`
//!
//! The benchmarks use it, since CPU time and memory are then the engine's alone.

use std::process::ExitCode;

use farlink_core::scenario::{expand, from_toml};
use farlink_core::units::CountToMillion;
use farlink_sim::{Column, Options, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut file, mut runs, mut threads) = (None, None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--single-thread" => threads = Some(1),
            "--runs" => runs = arguments.next().and_then(|runs| CountToMillion::new(runs.parse().ok()?).ok()),
            _ => file = Some(argument),
        }
    }
    let Some(file) = file else {
        eprintln!("usage: run SCENARIO.toml [--runs N] [--single-thread]");
        return ExitCode::from(2);
    };
    match measure(&file, runs, threads) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(
    file: &str,
    runs: Option<CountToMillion>,
    threads: Option<usize>,
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file)?;
    let mut points = expand(&from_toml(&text)?)?;
    if runs.is_some() {
        points.points.iter_mut().for_each(|point| point.scenario.runs = runs);
    }
    let output = run(&points, &Options { threads, ..Options::default() }, &|_, _| std::ops::ControlFlow::Continue(()))?;
    let (cpu_s, peak_rss_kib) = usage()?;
    let total = |name: &str| {
        let column = output.rows.columns.iter().find(|column| column.0 == name);
        let flows = output.rows.columns.iter().find(|column| column.0 == "flow");
        match (column, flows) {
            (Some((_, Column::Real(values))), Some((_, Column::Text(flows)))) => {
                values.iter().zip(flows).filter(|(_, flow)| *flow == "all").map(|(value, _)| value).sum()
            }
            _ => f64::NAN,
        }
    };
    let delivered_packets = total("delivered_packets");
    Ok(serde_json::json!({
        "delivered_packets": delivered_packets,
        "delivered_bytes": total("delivered_bytes"),
        "cpu_s": cpu_s,
        "peak_rss_kib": peak_rss_kib,
        "ns_per_packet": cpu_s * 1e9 / delivered_packets,
    }))
}

/// CPU seconds of this process (user and system) and its peak resident memory, from Linux's /proc.
fn usage() -> Result<(f64, u64), Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = fields.get(11..13).ok_or("no CPU time in /proc/self/stat")?;
    let ticks: f64 = ticks.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak memory in /proc/self/status")?;
    // Linux reports ticks of 1/100 s to user space on every architecture in use.
    Ok((ticks / 100.0, peak.trim().trim_end_matches("kB").trim().parse()?))
}
